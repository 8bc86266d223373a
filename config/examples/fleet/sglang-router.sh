#!/bin/sh
# sglang-router 0.3.2 in place of vllm-router.sh, in front of the same three workers: it guesses from what it has sent
# where the beginning of a prompt is cached. Further options are passed on.
address="${FLEET_ROUTER-127.0.0.1:8090}"
exec sglang-router launch --host "${address%:*}" --port "${address##*:}" --policy cache_aware \
  --worker-urls "http://${FLEET_W1-127.0.0.1:8001}" "http://${FLEET_W2-127.0.0.1:8002}" "http://${FLEET_W3-127.0.0.1:8003}" \
  --health-check-endpoint /ready --health-check-interval-secs 2 --health-failure-threshold 1 --health-success-threshold 1 \
  --cb-failure-threshold 1 --cb-success-threshold 1 --cb-timeout-duration-secs 2 \
  --retry-max-retries 8 --retry-initial-backoff-ms 20 --retry-max-backoff-ms 500 "$@"
