#!/bin/sh
# vllm-router 0.1.17 in front of the three workers of README.md: each prompt goes to the worker that has the longest
# beginning of it in its KV cache. Further options are passed on.
#
# /ready every 2 s, since /health goes on answering 200 while a worker drains. Three answers of status 5xx one after the
# other take a worker out for 2 s, so that what a worker refuses while it ends is tried at another one; by itself the
# router goes on choosing the worker that has the prompt cached. The router reads a body before a worker sees the key,
# so it takes none larger than server.max_body, and web pages of other origins do not get its answers.
w1="http://${FLEET_W1-127.0.0.1:8001}" w2="http://${FLEET_W2-127.0.0.1:8002}" w3="http://${FLEET_W3-127.0.0.1:8003}"
address="${FLEET_ROUTER-127.0.0.1:8090}"
exec vllm-router --host "${address%:*}" --port "${address##*:}" --policy kv_aware --worker-urls "$w1" "$w2" "$w3" \
  --kv-event-source "$w1=tcp://${FLEET_W1_EVENTS-127.0.0.1:8201}" \
  --kv-event-source "$w2=tcp://${FLEET_W2_EVENTS-127.0.0.1:8202}" \
  --kv-event-source "$w3=tcp://${FLEET_W3_EVENTS-127.0.0.1:8203}" \
  --kv-event-block-size 16 --kv-event-model "${FLEET_MODEL-assistant}" \
  --health-check-endpoint /ready --health-check-interval-secs 2 --health-failure-threshold 1 --health-success-threshold 1 \
  --cb-failure-threshold 3 --cb-success-threshold 1 --cb-timeout-duration-secs 2 \
  --retry-max-retries 6 --retry-initial-backoff-ms 20 --retry-max-backoff-ms 500 --max-payload-size 16777216 \
  --health-check-timeout-secs 2 --cors-allowed-origins "${FLEET_ORIGIN-https://llm.example.com}" "$@"
