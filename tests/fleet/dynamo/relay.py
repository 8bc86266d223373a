"""Relays a daemon's KV events to a router of Dynamo's: relay.py ENDPOINT. Of each line with token ids it says, as a line
of JSON, how many of their blocks that router believes to be where."""

import asyncio
import json
import os
import sys

from dynamo.llm import KvEventPublisher, KvRouter, KvRouterConfig, ModelInput, ModelType, WorkerType, register_model
from dynamo.runtime import dynamo_worker

BLOCK = 16


@dynamo_worker()
async def relay(runtime):
    endpoint = runtime.endpoint("twill.backend.generate")

    async def generate(request, context):
        yield {}

    await register_model(ModelInput.Text, ModelType.Chat, endpoint, "relayed", "relayed", worker_type=WorkerType.Aggregated,
                         skip_model_assets=True)
    serving = asyncio.ensure_future(endpoint.serve_endpoint(generate))
    await asyncio.sleep(1)
    publisher = KvEventPublisher(endpoint, kv_block_size=BLOCK, zmq_endpoint=sys.argv[1], zmq_topic="")
    router = KvRouter(endpoint, BLOCK, KvRouterConfig())
    print("relaying", flush=True)
    while line := await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
        workers = (await router.get_overlap_scores(json.loads(line)))["workers"]
        print(json.dumps(workers), flush=True)
    publisher.shutdown()
    serving.cancel()
    os._exit(0)  # its runtime waits for a signal


asyncio.run(relay())
