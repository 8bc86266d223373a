#!/usr/bin/env python3
"""Everything at once, for as long as one likes: soak.py --bin DIR [--minutes N]

Drives a twilld from outside: tenants with shares and limits, two models with golden answers that are loaded, put to
sleep and unloaded, one that computes nothing and whose executor fails once a minute, cancelled requests and broken
sockets (one request in five), malformed requests, streams and whole replies. Every token is compared with the
expected one, so that a token that is lost, doubled or of another request is found. At rest no KV block may be in use,
all that requests took must have been given back, and the memory must be what it was; at the end the daemon drains while
streams are open.
"""

import argparse
import collections
import hashlib
import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden"
GOLDEN_MODELS = ("llama-tiny-fp16", "opt-tiny-fp32")
TENANTS = {"gold": 'weight=3', "silver": 'weight=1', "small": 'weight=1, max_running=2, max_queued=2'}
DRAIN_S = 5
PROMPTS = 24  # of the model that computes nothing; each with a seed
LONGEST = 120
MALFORMED = (
    (400, "/v1/completions", b'{"prompt": "x", "max_tokens": 4'),
    (400, "/v1/completions", b'{"prompt": "x", "max_tokens": -4}'),
    (400, "/v1/completions", b'{"prompt": "x", "temperature": "hot"}'),
    (400, "/v1/completions", b'\xff\xfe\x00'),
    (400, "/v1/chat/completions", b'{"messages": "hello"}'),
    (404, "/v1/completions", b'{"model": "nobody", "prompt": "x"}'),
    (404, "/v1/nowhere", b'{}'),
)
BROKEN_HEADS = (b"GET\r\n\r\n", b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
                b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 70000)


class Failure(AssertionError):
    pass


class Daemon:
    def __init__(self, bin_folder, folder, fault_every):
        self.admin = folder / "admin.sock"
        self.trace = folder / "trace"
        self.log_path = folder / "log"
        address = folder / "address"
        tenants = ", ".join(f'{{name="{name}", key_sha256="{hashlib.sha256(name.encode()).hexdigest()}", {rest}}}'
                            for name, rest in TENANTS.items())
        settings = [f"models.{name}.path={GOLDEN / name}" for name in GOLDEN_MODELS]
        settings += [f"models.{name}.compute=f32" for name in GOLDEN_MODELS]
        settings += [f"models.null.path=dummy:null?step-us=3000&fault-every={fault_every}", "models.null.pin=true",
                     f"tenants=[{tenants}]", f"server.admin_listen=unix:{self.admin}", "kv.type=f32",
                     "kv.memory=4MiB", "scheduler.max_running=6", "scheduler.max_queued=40",
                     f"server.drain_timeout={DRAIN_S}s", "device.threads=1", f"scheduler.trace={self.trace}",
                     "scheduler.restart_delay=50ms", "log.level=warn"]
        command = [bin_folder / "twilld", "--listen", "127.0.0.1:0", "--address-file", address]
        for setting in settings:
            command += ["--set", setting]
        self.log = open(self.log_path, "wb")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + 60
        while not (address.exists() and address.read_text().strip()):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Failure("twilld did not become ready:\n" + self.log_text())
            time.sleep(0.02)
        host, port = address.read_text().split()[0].rsplit(":", 1)
        self.address = (host, int(port))

    def log_text(self):
        return self.log_path.read_text(errors="replace")[-4000:]

    def raw(self):
        return socket.create_connection(self.address, timeout=60)

    def connection(self):
        return http.client.HTTPConnection(*self.address, timeout=60)

    def ask_admin(self, method, path):
        door = http.client.HTTPConnection("localhost", timeout=60)
        door.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        door.sock.settimeout(60)
        door.sock.connect(str(self.admin))
        door.request(method, path)
        reply = door.getresponse()
        text = reply.read().decode()
        door.close()
        return reply.status, text

    def metrics(self):
        found = collections.Counter()
        for name, value in re.findall(r"^([a-z_:]+)(?:\{[^}]*\})? ([^\s]+)$", self.ask_admin("GET", "/metrics")[1], re.M):
            found[name] += float(value)
        return found

    def memory(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", text).group(1)) * 1024


class Expected:
    """What each model must answer, asked once before anything is disturbed."""

    def __init__(self, daemon):
        self.cases = []  # (model, prompt, seed, ids)
        for model in GOLDEN_MODELS:
            for case in json.loads((GOLDEN / model / "golden.json").read_text())["prompts"]:
                self.cases.append((model, case["ids"], 0, case["greedy_ids"]))
        self.golden = list(self.cases)
        self.null = []
        connection = daemon.connection()
        for seed in range(PROMPTS):
            prompt = f"Conversation {seed % 6}. " + "Once upon a time there was a weaver. " * (1 + seed % 6)
            for _ in range(5):  # this request may fail, too
                body = json.dumps({"model": "null", "prompt": prompt, "seed": seed, "max_tokens": LONGEST,
                                   "return_token_ids": True})
                connection.request("POST", "/v1/completions", body, {"X-Api-Key": "gold"})
                reply = connection.getresponse()
                text = reply.read()
                if reply.status == 200:
                    break
            if reply.status != 200:
                raise Failure(f"the first answers failed: {text[:500]}")
            self.null.append(("null", prompt, seed, json.loads(text)["choices"][0]["token_ids"]))


class Soak:
    def __init__(self, daemon, expected, rate, seed):
        self.daemon, self.expected, self.rate = daemon, expected, rate
        self.counts = collections.Counter()
        self.lock = threading.Lock()
        self.wrong = []
        self.over = threading.Event()
        self.go = threading.Event()
        self.go.set()
        self.busy = 0
        self.seed = seed
        self.changed = threading.Condition(self.lock)

    def count(self, what, n=1):
        with self.lock:
            self.counts[what] += n

    def check(self, ids, expected, whole, what):
        """Checks that a whole answer equals the expected one, and that a broken one is a beginning of it."""
        self.count("tokens compared", len(ids))
        if ids != expected[:len(ids)] or (whole and len(ids) != len(expected)):
            with self.lock:
                self.wrong.append(f"{what}: got {ids}, expected {expected}")

    def client(self, number):
        chosen = random.Random(self.seed * 1000 + number)
        while not self.over.is_set():
            self.go.wait()
            with self.lock:
                self.busy += 1
            try:
                self.one(chosen)
            except Exception as error:  # a failure of the thread must be reported
                with self.lock:
                    self.wrong.append(f"client {number}: {type(error).__name__}: {error}")
            finally:
                with self.lock:
                    self.busy -= 1
                    self.changed.notify_all()
            self.over.wait(chosen.expovariate(self.rate))

    def one(self, chosen):
        what = chosen.random()
        if what < 0.05:
            return self.malformed(chosen)
        if what < 0.07:
            return self.broken_head(chosen)
        if what < 0.08:
            return self.order_models(chosen)
        model, prompt, seed, ids = chosen.choice(self.expected.golden if chosen.random() < 0.3 else self.expected.null)
        n = min(len(ids), chosen.randint(1, LONGEST))
        body = {"model": model, "prompt": prompt, "seed": seed, "max_tokens": n, "return_token_ids": True,
                "stream": chosen.random() < 0.8}
        if model != "null":
            body.update(temperature=0, repetition_penalty=1, ignore_eos=True)
        self.stream(chosen, body, ids[:n], chosen.choice(list(TENANTS)))

    def stream(self, chosen, body, expected, tenant):
        leaves = chosen.random() < 0.2
        text = json.dumps(body).encode()
        with self.daemon.raw() as client:
            client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                           b"Connection: close\r\nX-Api-Key: " + tenant.encode() +
                           b"\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
            if leaves and chosen.random() < 0.3:
                self.count("left at once")
                return
            got = b""
            limit = chosen.randint(300, 6000) if leaves else 1 << 30
            while len(got) < limit and (part := client.recv(65536)):
                got += part
            if leaves and len(got) >= limit and chosen.random() < 0.5:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # close() sends a TCP reset
        self.judge(got, body, expected, tenant, leaves)

    def judge(self, got, body, expected, tenant, leaves):
        head, _, rest = got.partition(b"\r\n\r\n")
        status = int(head.split(b" ", 2)[1]) if head.startswith(b"HTTP/1.1 ") else 0
        what = f"{body['model']} for {tenant}"
        if status != 200:
            if status == 0 and leaves:
                return self.count("left before the head")
            if status in (429, 503) and b"retry-after" not in head.lower():
                raise Failure(f"{what}: status {status} without Retry-After: {head[:300]}")
            if status == 500 and b"executor_failed" in rest or status in (429, 503):
                return self.count(f"refused {status}")
            if leaves:
                return self.count("left before the reply")
            raise Failure(f"{what}: status {status}: {got[:600]}")
        if b"chunked" in head.lower():
            rest = unchunked(rest)
        if not body["stream"]:
            if leaves:
                return self.count("left a whole reply")
            reply = json.loads(rest)
            if reply["usage"]["completion_tokens"] != len(reply["choices"][0]["token_ids"]):
                raise Failure(f"{what}: usage says {reply['usage']}")
            self.check(reply["choices"][0]["token_ids"], expected, True, what)
            return self.count("whole")
        ids, done, failed = [], False, False
        for line in rest.split(b"\n"):
            if not line.startswith(b"data: "):
                continue
            if line.strip() == b"data: [DONE]":
                done = True
                continue
            try:
                event = json.loads(line[6:])
            except json.JSONDecodeError:
                if leaves:
                    break
                raise
            if "error" in event:
                failed = True
                if event["error"]["code"] not in ("executor_failed", "shutting_down"):
                    raise Failure(f"{what}: {event['error']}")
                continue
            for choice in event.get("choices", []):
                ids += choice.get("token_ids") or []
        whole = done and not failed
        if not whole and not leaves and not failed:
            raise Failure(f"{what}: the stream broke off: {got[-300:]}")
        self.check(ids, expected, whole, what)
        self.count("streamed" if whole else "failed in a stream" if failed else "left a stream")

    def malformed(self, chosen):
        wanted, path, body = chosen.choice(MALFORMED)
        connection = self.daemon.connection()
        connection.request("POST", path, body, {"X-Api-Key": "gold", "Content-Type": "application/json"})
        status = connection.getresponse().status
        connection.close()
        if status != wanted:
            raise Failure(f"{path} with {body!r} got status {status}, not {wanted}")
        self.count("malformed")

    def broken_head(self, chosen):
        with self.daemon.raw() as client:
            try:
                client.sendall(chosen.choice(BROKEN_HEADS))
                client.recv(4096)
            except ConnectionError:
                pass
        self.count("broken heads")

    def order_models(self, chosen):
        model, order = chosen.choice(GOLDEN_MODELS), chosen.choice(("load", "sleep", "unload"))
        status, text = self.daemon.ask_admin("POST", f"/admin/models/{model}/{order}")
        if status not in (202, 409):
            raise Failure(f"{order} of {model} got status {status}: {text}")
        self.count(f"models: {order}")

    def rest(self):
        """Lets all threads wait until no request is under way and the models are asleep; returns the memory at that time."""
        self.go.clear()
        with self.changed:
            if not self.changed.wait_for(lambda: self.busy == 0, 60):
                raise Failure(f"{self.busy} requests did not end within 60 s")
        for model in GOLDEN_MODELS:
            self.daemon.ask_admin("POST", f"/admin/models/{model}/unload")
        deadline = time.monotonic() + 20
        while True:
            found = self.daemon.metrics()
            states = {m["id"]: m["state"] for m in json.loads(self.daemon.ask_admin("GET", "/admin/models")[1])["data"]}
            busy = {name: found[name] for name in ("twill_num_requests_running", "twill_num_requests_waiting",
                                                   "twill_kv_blocks_used") if found[name] != 0}
            awake = [m for m in GOLDEN_MODELS if states[m] not in ("unloaded", "asleep", "failed")]
            status, text = self.daemon.ask_admin("GET", "/admin/ledger")
            faults = json.loads(text)["faults"] if status == 200 else [text]
            if not busy and not awake and not faults:
                break
            if time.monotonic() > deadline:
                raise Failure(f"not at rest after 20 s: {busy}, awake {awake}, {faults}")
            time.sleep(0.05)
        self.count("rests")
        memory = self.daemon.memory()
        self.go.set()
        return memory

    def drain(self):
        """Sends SIGTERM while streams are open: each stream ends or says why it breaks off, and the daemon ends in time."""
        ended = []

        def run(seed):
            model, prompt, seed, ids = self.expected.null[seed]
            try:
                self.stream(random.Random(0), {"model": model, "prompt": prompt, "seed": seed, "max_tokens": LONGEST,
                                               "return_token_ids": True, "stream": True}, ids[:LONGEST], "gold")
                ended.append(seed)
            except Exception as error:
                self.wrong.append(f"while draining: {error}")

        threads = [threading.Thread(target=lambda s=s: run(s)) for s in range(6)]
        for thread in threads:
            thread.start()
        time.sleep(0.15)
        began = time.monotonic()
        self.daemon.process.send_signal(signal.SIGTERM)
        try:
            status = self.daemon.process.wait(DRAIN_S + 5)
        except subprocess.TimeoutExpired:
            raise Failure(f"the drain took longer than {DRAIN_S} + 5 s") from None
        took = time.monotonic() - began
        for thread in threads:
            thread.join(10)
        if status != 0:
            raise Failure(f"twilld ended with status {status}:\n{self.daemon.log_text()}")
        if took > DRAIN_S + 2:
            raise Failure(f"the drain took {took:.1f} s, and may take {DRAIN_S}")
        return took, len(ended)


def unchunked(data):
    whole = b""
    while data:
        size, found, rest = data.partition(b"\r\n")
        if not found or not size.strip():
            break
        n = int(size.split(b";")[0], 16)
        if n == 0:
            break
        whole += rest[:n]
        data = rest[n + 2:]
    return whole


def memory_grew(rests):
    """By which fraction the median memory in the last third of `rests` exceeds that of the second third. The first third warms
    up."""
    third = max(len(rests) // 3, 1)
    before, after = rests[third:2 * third] or rests[:1], rests[-third:]
    return sorted(after)[len(after) // 2] / sorted(before)[len(before) // 2] - 1


def allowed_growth(minutes, rests):
    """One per cent; a run of less than three minutes is still filling caches and may take 4 MiB instead."""
    return 0.01 if minutes >= 3 else max(0.01, 4 * 2**20 / rests[0])


def soak(bin_folder, minutes, clients=8, rate=1.0, fault_every=60, rest_every=None, say=print):
    bin_folder = pathlib.Path(bin_folder).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        daemon = Daemon(bin_folder, folder, fault_every)
        try:
            run = Soak(daemon, Expected(daemon), rate, seed=int(minutes * 100))
            threads = [threading.Thread(target=run.client, args=(i,), daemon=True) for i in range(clients)]
            began = time.monotonic()
            end = began + minutes * 60
            for thread in threads:
                thread.start()
            rests = []
            pause = rest_every or max(minutes * 60 / 30, 2)
            while time.monotonic() < end:
                time.sleep(min(pause, max(end - time.monotonic(), 0)))
                if daemon.process.poll() is not None:
                    raise Failure("twilld ended:\n" + daemon.log_text())
                rests.append(run.rest())
                if run.wrong:
                    raise Failure("\n".join(run.wrong[:5]))
                say(f"{time.monotonic() - began:6.0f} s  {rests[-1] / 2**20:7.2f} MiB at rest  "
                    f"{sum(run.counts[k] for k in ('streamed', 'whole'))} whole answers, "
                    f"{run.counts['tokens compared']} tokens compared", flush=True)
            run.over.set()
            run.go.set()
            for thread in threads:
                thread.join(60)
            restarts = daemon.metrics()["twill_executor_restarts_total"]
            cpu = sum(float(x) for x in pathlib.Path(f"/proc/{daemon.process.pid}/stat").read_text().rsplit(")", 1)[1]
                      .split()[11:13]) / os.sysconf("SC_CLK_TCK")
            took, ended = run.drain()
            if run.wrong:
                raise Failure("\n".join(run.wrong[:5]))
            replayed = subprocess.run([bin_folder / "twill", "replay", daemon.trace], capture_output=True, text=True)
            if replayed.returncode != 0:
                raise Failure(f"twill replay: status {replayed.returncode}: {replayed.stdout}{replayed.stderr}")
            growth = memory_grew(rests)
            for what, n in sorted(run.counts.items()):
                say(f"  {what}: {n}")
            say(f"  executor restarts: {restarts:.0f}\n  memory at rest: {growth * 100:+.2f} % over the last two thirds"
                f"\n  CPU time of twilld: {cpu:.1f} s\n  drain: {took:.2f} s, {ended} streams ended"
                f"\n  {replayed.stdout.strip()}")
            if restarts < minutes * 60 / fault_every - 1:
                raise Failure(f"the executor was restarted {restarts} times only")
            if growth > allowed_growth(minutes, rests):
                raise Failure(f"memory grew by {growth * 100:.2f} %: {rests}")
            return run.counts
        finally:
            if daemon.process.poll() is None:
                daemon.process.kill()
                daemon.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder with twilld and twill")
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--rate", type=float, default=1.0, help="requests of a client a second, at most")
    arguments = parser.parse_args()
    try:
        soak(arguments.bin, arguments.minutes, arguments.clients, arguments.rate)
    except Failure as failure:
        print(f"soak.py: {failure}", file=sys.stderr)
        return 1
    print("nothing was lost, doubled, leaked or late")
    return 0


if __name__ == "__main__":
    sys.exit(main())
