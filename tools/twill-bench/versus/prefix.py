#!/usr/bin/env python3
"""Measures what a cached prefix saves, and how much of it remains after kill -9, in turn with llama.cpp's server and vLLM.
Prints two Markdown tables.

    prefix.py BIN MODEL [--llama-server PROGRAM --gguf FILE] [--vllm PROGRAM --hf FOLDER] [--rounds 3] [--only restart|shared]

restart: after one turn of a conversation of 1,200 tokens, the server is killed with kill -9 and started again. Then the
next turn arrives: the same prompt with 32 further tokens. `BIN/twilld` runs with `kv.keep`. llama-server runs with
`--slot-save-path`: its client must save the slot's file before the kill and restore it before the turn. Both calls are
timed, and the time to the first token includes the restore. For comparison, the table also has the same turn on a
server that kept nothing.

shared: 32 requests arrive at once. Their prompts have 1,000 tokens in common and then 24 tokens of their own. They
arrive at a server that has not seen the shared tokens (cold), or that has served one request with them (warm), each
with and without the prefix cache. Work is the number of prompt tokens computed, as the servers count them. llama-server
has one slot per request. vLLM is only in this table, since it keeps nothing across a restart.

MODEL is the model for twilld, FILE the model for llama-server (MODEL, unless given), and FOLDER the model for vLLM,
which runs it in bf16. Prompts are token ids, and decoding is greedy. Cells are medians (least to most) over the rounds.
"""

import concurrent.futures
import json
import os
import pathlib
import random
import signal
import statistics
import tempfile
import time

from harness import Server, free_port, heading, in_turn, parser, row, spread, twilld

CONVERSATION, TURN, OUTPUT = 1200, 32, 16
SHARED, OWN, REQUESTS = 1000, 24, 32


def words(seed: int, n: int) -> list:
    return [random.Random(seed + i).randrange(1000, 20000) for i in range(n)]


def stream(server: Server, path: str, body: dict) -> tuple:
    """Returns the seconds to the first event with text, and all events."""
    began, first, events = time.monotonic(), None, []
    with server.request("POST", path, body) as reply:
        if reply.status != 200:
            raise RuntimeError(f"{path} answered {reply.status}: {reply.read()!r}")
        for line in reply:
            if not line.startswith(b"data: {"):
                continue
            first = first or time.monotonic() - began
            events.append(json.loads(line[6:]))
    return first, events


class Twill:
    name = "twilld"

    def __init__(self, bin_dir: str, model: str):
        self.bin_dir, self.model = bin_dir, model

    def start(self, *settings: str) -> Server:
        return twilld(self.bin_dir, *settings, model=self.model)

    @staticmethod
    def ask(server: Server, prompt: list, _cache: bool = True, n: int = OUTPUT) -> tuple:
        """Returns the seconds to the first token, and the number of prompt tokens that were computed."""
        first, events = stream(server, "/v1/completions", {
            "prompt": prompt, "max_tokens": n, "temperature": 0, "ignore_eos": True, "stream": True,
            "stream_options": {"include_usage": True}})
        usage = next(e["usage"] for e in reversed(events) if e.get("usage"))
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
        return first, len(prompt) - cached

    def start_shared(self, cache: bool) -> Server:
        return self.start(f"kv.prefix_cache={'true' if cache else 'false'}", f"scheduler.max_running={REQUESTS}")

    def returning(self, prompt: list, folder: pathlib.Path, kept: bool) -> dict:
        settings = ("kv.disk_memory=1GiB", f"kv.disk_dir={folder / 'kv'}", "kv.keep=true")
        server = self.start(*settings)
        self.ask(server, prompt)
        self.wait_written(server)
        server.end(signal.SIGKILL)
        server = self.start(*(settings if kept else ()))
        said = prompt + words(9000, TURN)
        first, computed = self.ask(server, said)
        server.end()
        return {"cached": len(said) - computed, "ttft": 1e3 * first, "calls": 0, "save": 0, "prompt": len(said)}

    @staticmethod
    def wait_written(server: Server):
        """Waits until twilld has written its blocks to disk, which it does in the background. A person's next turn
        would come later than that."""
        before, since = None, time.monotonic()
        while time.monotonic() - since < 0.5:
            lines = server.call("GET", "/metrics")[1].splitlines()
            written = [line for line in lines if line.startswith("twill_kv_disk_written_bytes_total")]
            if written != before:
                before, since = written, time.monotonic()
            time.sleep(0.05)


class Llama:
    name = "llama-server"

    def __init__(self, program: str, gguf: str):
        self.command = [program, "-m", gguf, "--host", "127.0.0.1", "-t", len(os.sched_getaffinity(0))]

    def start(self, slots: int, tokens: int, *more: str) -> Server:
        port = free_port()
        return Server([*self.command, "--port", port, "-np", slots, "-c", slots * tokens, *more], port, "/health")

    @staticmethod
    def ask(server: Server, prompt: list, cache: bool = True, n: int = OUTPUT) -> tuple:
        first, events = stream(server, "/completion", {
            "prompt": prompt, "n_predict": n, "temperature": 0, "ignore_eos": True, "stream": True,
            "cache_prompt": cache})
        return first, events[-1]["timings"]["prompt_n"]

    def start_shared(self, cache: bool) -> Server:
        return self.start(REQUESTS, SHARED + OWN + OUTPUT + 16)

    def returning(self, prompt: list, folder: pathlib.Path, kept: bool) -> dict:
        more = ("--slot-save-path", str(folder))
        server = self.start(1, 2048, *more)
        self.ask(server, prompt)
        save = self.slot(server, "save") if kept else 0
        server.end(signal.SIGKILL)
        server = self.start(1, 2048, *more)
        calls = self.slot(server, "restore") if kept else 0
        said = prompt + words(9000, TURN)
        first, computed = self.ask(server, said)
        server.end()
        return {"cached": len(said) - computed, "ttft": 1e3 * (first + calls), "calls": 1e3 * calls, "save": 1e3 * save,
                "prompt": len(said)}

    @staticmethod
    def slot(server: Server, action: str) -> float:
        began = time.monotonic()
        status, body = server.call("POST", f"/slots/0?action={action}", {"filename": "conversation.bin"})
        if status != 200:
            raise RuntimeError(f"the slot's file: {action} answered {status}: {body!r}")
        return time.monotonic() - began


class Vllm:
    name = "vLLM"

    def __init__(self, program: str, folder: str):
        self.command = [program, "serve", folder, "--dtype", "bfloat16", "--max-num-seqs", REQUESTS, "--max-model-len", "8192",
                        "--enable-prompt-tokens-details"]

    def start_shared(self, cache: bool) -> Server:
        port = free_port()
        return Server([*self.command, "--port", port, *([] if cache else ["--no-enable-prefix-caching"])], port, "/health", 400)

    ask = staticmethod(Twill.ask)


def together(who, server: Server, salt: int, cache: bool, warm: bool) -> dict:
    shared = words(salt, SHARED)
    if warm:
        who.ask(server, shared + words(salt + 5000, OWN), cache, 1)
    prompts = [shared + words(salt + 10000 + 100 * i, OWN) for i in range(REQUESTS)]
    with concurrent.futures.ThreadPoolExecutor(REQUESTS) as pool:
        done = list(pool.map(lambda p: who.ask(server, p, cache, 1), prompts))
    return {"work": sum(one[1] for one in done), "ttft": 1e3 * statistics.median(one[0] for one in done),
            "last": 1e3 * max(one[0] for one in done)}


def cells(rounds: list, *keys: str) -> list:
    return [spread([one[key] for one in rounds]) for key in keys]


def restart_table(peers: list, n_rounds: int):
    found = {(peer, kept): [] for peer in peers for kept in (True, False)}
    for number in range(n_rounds):
        for peer, kept in in_turn(found, number):
            with tempfile.TemporaryDirectory() as folder:
                found[peer, kept].append(peer.returning(words(1, CONVERSATION), pathlib.Path(folder), kept))
    print()
    heading("first turn after kill -9", f"tokens of {found[peers[0], True][0]['prompt']} that were kept", "first token, ms",
            "of which calls of the client, ms", "saving before, ms", "first token where nothing was kept, ms")
    for peer in peers:
        row(peer.name, *cells(found[peer, True], "cached", "ttft", "calls", "save"), *cells(found[peer, False], "ttft"))


def shared_table(peers: list, n_rounds: int):
    found = {(peer, cache, warm): [] for peer in peers for cache in (True, False) for warm in (False, True)}
    for number in range(n_rounds):
        for peer in in_turn(peers, number):
            for cache in (True, False):
                server = peer.start_shared(cache)
                peer.ask(server, words(777, 512), cache, 1)  # after this, the weights have been touched
                for warm in (False, True):
                    salt = 100000 * (2 * number + warm + 1)
                    found[peer, cache, warm].append(together(peer, server, salt, cache, warm))
                server.end()
    print()
    heading(f"{REQUESTS} requests, {SHARED} tokens shared", "prompt tokens computed", "median first token, ms",
            "last first token, ms")
    for (peer, cache, warm), rounds in found.items():
        row(f"{peer.name}, {'prefix cache' if cache else 'none'}, {'warm' if warm else 'cold'}", *cells(rounds, "work", "ttft", "last"))


def main() -> None:
    flags = parser(__doc__)
    flags.add_argument("bin")
    flags.add_argument("model")
    flags.add_argument("--llama-server")
    flags.add_argument("--gguf")
    flags.add_argument("--vllm")
    flags.add_argument("--hf")
    flags.add_argument("--rounds", type=int, default=3)
    flags.add_argument("--only", choices=("restart", "shared"))
    given = flags.parse_args()
    peers = [Twill(given.bin, given.model)]
    if given.llama_server:
        peers.append(Llama(given.llama_server, given.gguf or given.model))
    if given.only != "shared":
        restart_table(peers, given.rounds)
    if given.vllm:
        peers.append(Vllm(given.vllm, given.hf))
    if given.only != "restart":
        shared_table(peers, given.rounds)


if __name__ == "__main__":
    main()
