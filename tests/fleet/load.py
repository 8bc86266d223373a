"""Clients that never pause: streams, whole replies, and lanes of WebSockets, each checked to its last token."""

import asyncio
import http.client
import json
import os
import re
import threading
import time
from dataclasses import dataclass, field

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

LONG = pytest.mark.skipif("TWILL_LONG" not in os.environ, reason="--long")
# The router behind HAProxy (empty: none), and whether HAProxy ends the sessions at a worker that a check finds dead.
WAYS = [pytest.param("vllm-router", True, id="vllm-router"), pytest.param("", False, id="HAProxy-without-shutdown-sessions"),
        *(pytest.param(*one, marks=LONG) for one in (("vllm-router", False), ("", True), ("sglang-router", False), ("sglang-router", True)))]
TOKENS = 200
ASK = {"model": "assistant", "prompt": "Once", "max_tokens": TOKENS, "ignore_eos": True, "temperature": 0}


@dataclass
class Outcome:
    kind: str
    begun: float
    worker: str = ""     # its name, from the reply's id
    text: str = ""
    failure: str = ""
    ended: float = 0


@dataclass
class Load:
    example: object
    streams: int = 3
    replies: int = 2
    lanes: int = 0
    outcomes: list = field(default_factory=list)
    closings: list = field(default_factory=list)     # codes with which WebSockets were closed
    ends: bool = False

    def __enter__(self):
        self.text = self.reference()
        kinds = [(self.stream, self.streams), (self.reply, self.replies), (self.lane, self.lanes)]
        self.threads = [threading.Thread(target=work, args=(number,)) for work, count in kinds for number in range(count)]
        for one in self.threads:
            one.start()
        return self

    def __exit__(self, *_):
        self.ends = True
        for one in self.threads:
            one.join()

    def reference(self) -> str:
        worker = next(iter(self.example.workers.values()))
        status, reply = worker.daemon.post("/v1/completions", ASK)
        assert status == 200, reply
        return reply["choices"][0]["text"]

    def failures(self) -> list:
        return [one for one in self.outcomes if one.failure]

    def counts(self) -> dict:
        return {kind: sum(one.kind == kind for one in self.outcomes) for kind in ("stream", "reply", "lane")}

    def post(self, connection, body, headers=None):
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json", **(headers or {})})
        return connection.getresponse()

    def connection(self):
        return http.client.HTTPSConnection("localhost", self.example.port, timeout=60, context=self.example.trust)

    def stream(self, _):
        while not self.ends:
            one = Outcome("stream", time.monotonic())
            connection = self.connection()
            done = False
            try:
                reply = self.post(connection, {**ASK, "stream": True})
                if reply.status != 200:
                    one.failure = f"status {reply.status}: {reply.read()[:300]}"
                    continue
                for line in reply:
                    if line.startswith(b"data: [DONE]"):
                        done = True
                    elif line.startswith(b"data: "):
                        event = json.loads(line[6:])
                        one.worker = one.worker or worker_of(event.get("id", ""))
                        if "error" in event:
                            one.failure = f"event {event['error']}"
                        one.text += "".join(choice["text"] for choice in event.get("choices", []))
                if not one.failure and (not done or one.text != self.text):
                    one.failure = f"the stream ended after {len(one.text)} of {len(self.text)} characters, done: {done}"
            except (OSError, http.client.HTTPException) as fault:
                one.failure = repr(fault)
            finally:
                self.end(one)
                connection.close()

    def reply(self, number):
        """Sends one request after the other on a kept connection. As clients do, it opens a new connection if the server has
        closed the old one between two requests, which is found when the second request gets no answer."""
        connection = self.connection()
        kept = False
        while not self.ends:
            one = Outcome("reply", time.monotonic())
            answered = False
            try:
                reply = self.post(connection, ASK)
                answered = True
                text = reply.read()
                if reply.status == 200:
                    whole = json.loads(text)
                    one.worker = worker_of(whole["id"])
                    if whole["choices"][0]["text"] != self.text:
                        one.failure = "another text"
                else:
                    one.failure = f"status {reply.status}: {text[:300]}"
                kept = True
            except (OSError, http.client.HTTPException) as fault:
                connection.close()
                if kept and not answered:
                    kept = False
                    continue
                one.failure = repr(fault)
            self.end(one)

    def lane(self, number):
        # The blocking client of websockets is not used: it reads and writes a TLS socket from two threads, which loses requests.
        asyncio.run(self.requests_of_lane(number))

    async def requests_of_lane(self, number):
        """Sends one request after the other. As clients do, it opens a new socket if the old one was closed between two
        requests, or before a request had any answer."""
        lane = None
        while not self.ends:
            one = Outcome("lane", time.monotonic())
            answered = False
            try:
                lane = lane or await self.open_lane(number)
                await lane.send(json.dumps({"op": "submit", "id": number,
                                            **{key: ASK[key] for key in ("prompt", "max_tokens", "ignore_eos", "temperature")}}))
                text, done = "", False
                while not done:
                    frame = json.loads(await asyncio.wait_for(lane.recv(), 60))
                    if frame.get("status") == 503 and not answered:
                        ending = frame["error"]["code"] == "shutting_down"
                        break
                    answered = True
                    text += frame.get("text", "")
                    one.failure = str(frame) if "error" in frame else one.failure
                    done = frame.get("done", False)
                if not answered:  # the daemon is ending and closes the socket, or has only just started
                    await (asyncio.wait_for(lane.recv(), 60) if ending else asyncio.sleep(0.05))
                    continue
                if not one.failure and text != self.text:
                    one.failure = f"{len(text)} of {len(self.text)} characters"
            except ConnectionClosed as closed:
                self.closings.append(closed.rcvd.code if closed.rcvd else 1006)
                lane = None
                if not answered and self.closings[-1] == 1001:
                    continue
                one.failure = f"closed within a request: {closed!r}"
            except (OSError, InvalidStatus) as fault:
                one.failure = repr(fault)
                lane = None
            self.end(one)
        if lane is not None:
            await lane.close()

    async def open_lane(self, number):
        return await connect(f"wss://localhost:{self.example.port}/v1/stream", ssl=self.example.trust, open_timeout=30,
                             additional_headers={"X-Session-ID": f"lane {number}"})

    def end(self, one: Outcome):
        one.ended = time.monotonic()
        self.outcomes.append(one)


def worker_of(name: str) -> str:
    found = re.match(r"[a-z]+-([A-Za-z0-9-]+)\.", name)
    return found[1] if found else ""
