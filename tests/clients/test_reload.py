"""Reloads: keys, tenants, limits, log and certificate change while streams run, and no stream is disturbed."""

import hashlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import ssl
import threading
import time

from websockets.sync.client import connect

TINY = "dummy:opt-125m?layers=1&vocab=1000"
TLS = pathlib.Path(__file__).resolve().parent / "tls"
LONG = bool(os.environ.get("TWILL_LONG"))
N_STREAMS, N_ROUNDS = (100, 50) if LONG else (12, 3)
BODY = {"prompt": "Once upon a time", "max_tokens": 300, "ignore_eos": True, "temperature": 0, "stream": True,
        "stream_options": {"include_usage": True}}


def digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


class Reloading:
    """A daemon with a configuration file of its own; reload() rewrites the file and waits for the daemon's report."""

    def __init__(self, start_daemon, folder: pathlib.Path, text: str, *settings: str):
        self.file = folder / "twilld.toml"
        self.keys = folder / "keys"
        self.keys.write_text(f"stream sha256:{digest('stream-key')}\n")
        self.text = text
        self.file.write_text(text)
        self.moments = []  # for each reload: the times of the request and of the report
        self.wait_before = lambda: None
        self.daemon = start_daemon(*settings, f"server.keys_file={self.keys}", model=TINY, config=self.file)

    def reload(self, text=None) -> str:
        if text is not None:
            self.file.write_text(text)
        self.wait_before()
        before, asked = len(self.reports()), time.monotonic()
        self.daemon.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 60
        while len(self.reports()) == before:
            assert time.monotonic() < deadline and self.daemon.process.poll() is None, self.daemon.text_of_log()
            time.sleep(0.01)
        self.moments.append((asked, time.monotonic()))
        return self.reports()[-1]

    def reports(self):
        return [line for line in self.daemon.text_of_log().splitlines() if "SIGHUP: " in line]


def key(name: str) -> dict:
    return {"Authorization": f"Bearer {name}"}


def test_streams_run_on_over_reloads_of_every_kind(start_daemon, tmp_path):
    def install(pair):
        shutil.copy(TLS / f"{pair}.pem", tmp_path / "tls.pem")
        shutil.copy(TLS / f"{pair}.key", tmp_path / "tls.key")

    install("first")
    reloading = Reloading(start_daemon, tmp_path, "", f"server.tls_certificate={tmp_path}/tls.pem",
                          f"server.tls_key={tmp_path}/tls.key", "scheduler.max_running=128", "kv.memory=256MiB")
    daemon = reloading.daemon
    stop = threading.Event()
    faults, streams = [], []  # for each whole stream: its client, and the times of its first and last event
    under_way = {}  # for each client that is reading a stream: how many events it has read
    trust = ssl.create_default_context()
    trust.check_hostname = False
    trust.verify_mode = ssl.CERT_NONE

    def stream(i) -> str:
        connection = http.client.HTTPSConnection(daemon.host, daemon.port, timeout=120, context=trust)
        connection.request("POST", "/v1/completions", json.dumps(BODY), key("stream-key"))
        reply = connection.getresponse()
        assert reply.status == 200, reply.read()
        text, n_tokens, times = "", 0, []
        line = b""
        for line in filter(bytes.strip, reply):
            if not line.startswith(b"data: {"):
                continue
            times.append(time.monotonic())
            under_way[i] = len(times)
            event = json.loads(line[6:])
            assert "error" not in event, event
            text += "".join(choice["text"] for choice in event["choices"])
            n_tokens = (event.get("usage") or {}).get("completion_tokens", n_tokens)
        connection.close()
        under_way.pop(i, None)
        assert line == b"data: [DONE]\n" and n_tokens == 300, (line, n_tokens, len(times), text[-200:])
        streams.append((i, times[0], times[-1]))
        return text

    # The text of a stream when nothing is reloaded.
    alone = stream(0)
    streams.clear()

    def stream_on(i):
        while not stop.is_set():
            try:
                text = stream(i)
                if text != alone:
                    faults.append(f"another text than alone: {text}")
            except Exception as error:
                faults.append(repr(error))

    def wait_for_streams():
        deadline = time.monotonic() + 60
        # Only streams in their first half count, since a stream that is nearly over could end before the reload does.
        while sum(n < BODY["max_tokens"] // 2 for n in list(under_way.values())) < N_STREAMS * 3 // 4:
            assert time.monotonic() < deadline and not faults, (len(under_way), faults)
            time.sleep(0.001)

    reloading.wait_before = wait_for_streams
    threads = [threading.Thread(target=stream_on, args=(i,)) for i in range(N_STREAMS)]
    for thread in threads:
        thread.start()
    stream_line = f"stream sha256:{digest('stream-key')}\n"
    try:
        for i in range(N_ROUNDS):
            reloading.keys.write_text(f"{stream_line}guest sha256:{digest(str(i))}\n")
            assert "reloaded the TLS certificate, `tenants.guest" in reloading.reload("")
            assert "`server.api_keys` (0 secrets -> 1 secret)" in reloading.reload(f'[server]\napi_keys = ["k{i}"]\n')
            weight = f'[[tenants]]\nname = "stream"\nkey_sha256 = "{digest("other")}"\nweight = {2 + i}\n'
            assert f"-> {2 + i})" in reloading.reload(weight)
            assert f"`limits.max_choices` (16 -> {2 + i % 9})" in reloading.reload(f"[limits]\nmax_choices = {2 + i % 9}\n")
            assert "`log.level`" in reloading.reload('[log]\nlevel = "debug"\n')
            install("second" if i % 2 == 0 else "first")
            assert "the TLS certificate" in reloading.reload()
            assert "need a restart: `server.threads` (1 -> 2)" in reloading.reload("[server]\nthreads = 2\n")
            for fault in ("[server]\nthreads = 'x'\n", "no TOML [", "[limits]\nmax_choice = 1\n"):
                assert "nothing was reloaded: " in reloading.reload(fault)
            reloading.keys.write_text("stream no-digest\n")
            assert "nothing was reloaded: " in reloading.reload("[limits]\nmax_choices = 1\n")
            reloading.keys.write_text(stream_line)
            shutil.copy(TLS / ("first.pem" if i % 2 == 0 else "second.pem"), tmp_path / "tls.pem")
            assert "nothing was reloaded: `server.tls_key` must be" in reloading.reload("[limits]\nmax_choices = 1\n")
            install("first")
            assert "max_choices` (1" not in reloading.reload("")
    finally:
        stop.set()
        for thread in threads:
            thread.join(120)
    assert faults == []
    assert {i for i, _, _ in streams} == set(range(N_STREAMS))
    # Each reload came while most clients had begun to read their stream and had not read all of it.
    across = [sum(first < asked and reported < last for _, first, last in streams) for asked, reported in reloading.moments]
    assert min(across) >= N_STREAMS // 2, across
    print(f"\n{len(streams)} streams of 300 tokens, {len(across)} reloads, each during {min(across)} or more of them")


def test_a_reload_changes_what_new_requests_meet(start_daemon, tmp_path):
    reloading = Reloading(start_daemon, tmp_path, "")
    daemon = reloading.daemon
    body = {"prompt": "Once", "max_tokens": 2, "n": 3}
    assert daemon.post("/v1/completions", body, headers=key("stream-key"))[0] == 200
    assert daemon.post("/v1/completions", body, headers=key("fresh"))[0] == 401
    with connect(daemon.ws + "/v1/stream", compression=None, additional_headers=key("stream-key")) as socket:
        submit = json.dumps({"op": "submit", "id": "a", "prompt": "Once", "max_tokens": 1})
        socket.send(submit)
        while not json.loads(socket.recv(timeout=20)).get("done"):
            pass
        reloading.keys.write_text(f"stream sha256:{digest('fresh')}\n")
        report = reloading.reload("[limits]\nmax_choices = 2\n[scheduler]\nmax_queued = 9\n")
        assert "`limits.max_choices` (16 -> 2), `tenants.stream.key_sha256` (1 secret, others than before)" in report
        assert "these changes need a restart: `scheduler.max_queued` (1024 -> 9)" in report
        # The key was removed: connections that stay open start no new request.
        socket.send(submit)
        frame = socket.recv(timeout=20)
        while "error" not in frame:
            frame = socket.recv(timeout=20)
        assert "a known API key is needed" in frame
    assert daemon.post("/v1/completions", body, headers=key("stream-key"))[0] == 401
    status, reply = daemon.post("/v1/completions", body, headers=key("fresh"))
    assert status == 400 and "`n`" in reply["error"]["message"], reply
    assert daemon.post("/v1/completions", {**body, "n": 2}, headers=key("fresh"))[0] == 200
    # A changed budget of a tenant applies at once.
    tenant = '[[tenants]]\nname = "stream"\nkey_sha256 = []\ntokens_per_minute = 10\n'
    assert "`tenants.stream.tokens_per_minute` (0 -> 10)" in reloading.reload(tenant)
    statuses = [daemon.post("/v1/completions", {"prompt": "Once", "max_tokens": 8}, headers=key("fresh"))[0]
                for _ in range(3)]
    assert statuses[0] == 200 and statuses[2] == 429, statuses


def test_the_last_key_is_not_taken_away(start_daemon, tmp_path):
    file = tmp_path / "keys.toml"
    file.write_text('[server]\napi_keys = ["only"]\n')
    daemon = start_daemon(model="dummy:null", config=file)
    file.write_text("[server]\n")
    daemon.process.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + 10
    while "the last key cannot be taken away" not in daemon.text_of_log() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert daemon.request("GET", "/v1/models")[0] == 401
    assert daemon.request("GET", "/v1/models", headers={"Authorization": "Bearer only"})[0] == 200


def test_a_file_that_nests_without_end_changes_nothing(start_daemon, tmp_path):
    deep = "a" + ".a" * 50_000
    reloading = Reloading(start_daemon, tmp_path, "")
    for text in (f"[limits]\nmax_choices = 1\n{deep} = 1\n", f"[{deep}]\n", f"x = {{{deep} = 1}}\n"):
        report = reloading.reload(text)
        assert "nothing was reloaded: " in report and "a key must have at most 32 parts, got more" in report
    for bracket in ("[", "{a = "):
        report = reloading.reload("[limits]\nmax_choices = 1\nx = " + bracket * 50_000)
        assert "at most 32 lists and tables may lie within each other, got more" in report
    assert reloading.daemon.post("/v1/completions", {"prompt": "a", "max_tokens": 1, "n": 2},
                                 headers=key("stream-key"))[0] == 200
