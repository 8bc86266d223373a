"""WebSockets through HAProxy: the conversation or key chooses the worker, and either side may end them."""

import asyncio
import json

from load import worker_of
from websockets.asyncio.client import connect

SUBMIT = {"op": "submit", "id": 1, "tokens": [5, 6, 7], "max_tokens": 4, "temperature": 0, "store": True}


def opened(example, subprotocols=None, **headers):
    return connect(f"wss://localhost:{example.port}/v1/stream", ssl=example.trust, open_timeout=30, subprotocols=subprotocols,
                   additional_headers={name.replace("_", "-"): value for name, value in headers.items()})


async def first_frame(lane) -> dict:
    return json.loads(await asyncio.wait_for(lane.recv(), 30))


async def stored_at(lane) -> str:
    """The worker that a request comes to, by the id under which it is kept there."""
    await lane.send(json.dumps(SUBMIT))
    frame = first = await first_frame(lane)
    while not frame.get("done"):
        frame = await first_frame(lane)
    return first["stored"]


def running(example) -> float:
    return sum(one.daemon.metric("twill_num_requests_running") for one in example.workers.values())


def test_a_conversation_or_a_key_stays_with_its_worker(fleet):
    example = fleet.example("server.api_keys=[\"one\",\"two\",\"three\",\"four\",\"five\",\"six\"]", router="")

    async def worker_for(**headers) -> str:
        async with opened(example, **headers) as lane:
            return worker_of((await stored_at(lane)).replace("_", "-", 1))

    async def all_of_it():
        by_conversation = {}
        for number in range(12):
            seen = {await worker_for(Authorization="Bearer one", X_Session_ID=f"talk {number}") for _ in range(4)}
            assert len(seen) == 1, seen
            by_conversation[number] = seen.pop()
        assert set(by_conversation.values()) == set(example.workers)
        by_key = {}
        for key in ("one", "two", "three", "four", "five", "six"):
            for how in ({"Authorization": f"Bearer {key}"}, {"X_Api_Key": key}, {"subprotocols": ["v1", f"openai-insecure-api-key.{key}"]}):
                seen = {await worker_for(**how) for _ in range(2)}
                assert len(seen) == 1
                by_key.setdefault(next(iter(how)), set()).update(seen)
        assert min(len(seen) for seen in by_key.values()) > 1  # the key decides, however it is given, and not the address alone
        for name in example.workers:
            assert await worker_for(Authorization="Bearer one", X_Twill_Server=name) == name

    asyncio.run(all_of_it())


def test_what_a_client_cancels_or_leaves_ends_at_its_worker(fleet):
    example = fleet.example(router="")
    long = {**SUBMIT, "store": False, "ignore_eos": True, "max_tokens": 2000}

    async def begun(lane):
        await lane.send(json.dumps(long))
        while "tokens" not in await first_frame(lane):
            pass

    async def all_of_it():
        async with opened(example) as lane:
            await begun(lane)
            await lane.send(json.dumps({"op": "cancel", "id": 1}))
            frame = await first_frame(lane)
            while not frame.get("done"):
                frame = await first_frame(lane)
            assert frame["cancelled"] is True and frame["usage"]["completion_tokens"] < 2000
            assert running(example) == 0
            await begun(lane)
            assert running(example) == 1
            lane.transport.abort()
        for one in example.workers.values():
            one.daemon.wait_metric("twill_num_requests_running", 0, seconds=1)

    asyncio.run(all_of_it())


def test_a_stored_stream_is_read_on_at_its_worker(fleet):
    example = fleet.example(router="")

    async def all_of_it():
        for number in range(6):
            async with opened(example, X_Session_ID=f"talk {number}") as lane:
                name = await stored_at(lane)
            async with opened(example, X_Twill_Server=worker_of(name.replace("_", "-", 1))) as lane:
                await lane.send(json.dumps({"op": "resume", "id": 2, "stored": name}))
                frame, tokens = {}, []
                while not frame.get("done"):
                    frame = await first_frame(lane)
                    assert "error" not in frame, frame
                    tokens += frame.get("tokens", [])
                assert len(tokens) == 4

    asyncio.run(all_of_it())
