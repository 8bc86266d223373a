"""A worker of Dynamo's that hands each request to one daemon: worker.py URL MODEL KEY"""

import asyncio
import json
import sys

import aiohttp
from dynamo.llm import HttpError, ModelInput, ModelType, WorkerType, register_model
from dynamo.runtime import dynamo_worker


@dynamo_worker()
async def serve(runtime):
    url, model, key = sys.argv[1:]
    endpoint = runtime.endpoint("twill.backend.generate")
    await register_model(ModelInput.Text, ModelType.Chat | ModelType.Completions, endpoint, model, model,
                         worker_type=WorkerType.Aggregated, skip_model_assets=True)
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as session:
        async def generate(request, context):
            """Chunks of a stream, which the frontend joins for a client that wants one answer."""
            path = "/v1/completions" if "prompt" in request else "/v1/chat/completions"
            body = {**request, "stream": True, "stream_options": {"include_usage": True}}
            async with session.post(url + path, json=body) as reply:
                if reply.status != 200:
                    raise HttpError(reply.status, json.loads(await reply.text())["error"]["message"])
                async for line in reply.content:
                    if context.is_stopped():
                        return
                    if line.startswith(b"data: {"):
                        yield json.loads(line[6:])

        await endpoint.serve_endpoint(generate)


asyncio.run(serve())
