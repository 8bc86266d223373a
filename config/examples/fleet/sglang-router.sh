#!/bin/sh
# sglang-router 0.3.2 in place of vllm-router.sh, in front of the same three workers: it guesses from what it has sent
# where the beginning of a prompt is cached. Further options are passed on.
#
# /ready every second, and further tries for longer than that: so what a worker refuses while it ends is tried at another
# one. Its circuit breaker takes a full queue (429) for a fault and would then refuse everything, so it is off.
address="${FLEET_ROUTER-127.0.0.1:8090}"
exec sglang-router launch --host "${address%:*}" --port "${address##*:}" --policy cache_aware \
  --worker-urls "http://${FLEET_W1-127.0.0.1:8001}" "http://${FLEET_W2-127.0.0.1:8002}" "http://${FLEET_W3-127.0.0.1:8003}" \
  --health-check-endpoint /ready --health-check-interval-secs 1 --health-failure-threshold 1 --health-success-threshold 1 \
  --disable-circuit-breaker --retry-max-retries 12 --retry-initial-backoff-ms 50 --retry-max-backoff-ms 500 "$@"
