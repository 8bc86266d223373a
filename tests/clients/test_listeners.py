"""Listeners: TLS, Unix sockets, several addresses, the daemon's user, and warnings about unsafe settings."""

import http.client
import json
import os
import pathlib
import pwd
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import time

import pytest
from conftest import BIN
from websockets.sync.client import connect, unix_connect

TINY = "dummy:opt-125m?layers=1&vocab=1000"
TLS = pathlib.Path(__file__).resolve().parent / "tls"


def install(folder: pathlib.Path, name: str, mode: int = 0o600):
    """Replaces a certificate and its key by renaming files, as certificate tools do."""
    for suffix in ("pem", "key"):
        fresh = folder / f"fresh.{suffix}"
        shutil.copy(TLS / f"{name}.{suffix}", fresh)
        fresh.chmod(mode)
        fresh.rename(folder / f"tls.{suffix}")


def trust(*names: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    for name in names:
        context.load_verify_locations(TLS / f"{name}.pem")
    return context


def handshake(daemon, context: ssl.SSLContext) -> ssl.SSLSocket:
    return context.wrap_socket(daemon.raw(), server_hostname="localhost")


def common_name(daemon) -> str:
    with handshake(daemon, trust("first", "second")) as client:
        return dict(part[0] for part in client.getpeercert()["subject"])["commonName"]


def with_tls(folder) -> tuple:
    return (f"server.tls_certificate={folder}/tls.pem", f"server.tls_key={folder}/tls.key")


def wait_for_log(daemon, text: str):
    deadline = time.monotonic() + 20
    while text not in daemon.text_of_log():
        assert time.monotonic() < deadline, daemon.text_of_log()
        time.sleep(0.02)


def test_tls(start_daemon, tmp_path):
    install(tmp_path, "first")
    daemon = start_daemon(*with_tls(tmp_path), "server.header_timeout=1s")
    context = trust("first")
    context.set_alpn_protocols(["h2", "http/1.1"])
    with handshake(daemon, context) as client:
        assert client.version() == "TLSv1.3"
        assert client.selected_alpn_protocol() == "http/1.1"
    # HTTP: a whole reply, a stream, and a body of more than one TLS record.
    connection = http.client.HTTPSConnection("localhost", daemon.port, context=trust("first"), timeout=60)
    body = {"prompt": "The capital of France is", "max_tokens": 8, "temperature": 0}
    replies = []
    for stream in (False, True):
        connection.request("POST", "/v1/completions", json.dumps({**body, "stream": stream}))
        replies.append(connection.getresponse().read().decode())
    whole = json.loads(replies[0])["choices"][0]["text"]
    pieces = [json.loads(line[6:]) for line in replies[1].splitlines() if line.startswith("data: {")]
    assert "".join(p["choices"][0]["text"] for p in pieces if p["choices"]) == whole
    connection.request("POST", "/tokenize", json.dumps({"prompt": "word " * 20000}))
    assert json.loads(connection.getresponse().read())["count"] >= 20000
    # WebSocket.
    with connect(f"wss://localhost:{daemon.port}/v1/stream", ssl=trust("first")) as page:
        page.send(json.dumps({"op": "submit", "id": 1, **body}))
        text = ""
        while True:
            frame = json.loads(page.recv(timeout=30))
            text += frame.get("text", "")
            if frame.get("done"):
                break
        assert text == whole
    # The command line.
    for url in (f"https://localhost:{daemon.port}", f"wss://127.0.0.1:{daemon.port}"):
        told = subprocess.run([BIN / "twill", "complete", body["prompt"], "--max-tokens", "8", "--temperature", "0",
                               "--url", url, "--cacert", TLS / "first.pem"], capture_output=True, text=True)
        assert whole in told.stdout, told.stderr
    told = subprocess.run([BIN / "twill", "tokenize", "hi", "--url", f"https://localhost:{daemon.port}"],
                          capture_output=True, text=True)
    assert told.returncode == 1 and "certificate is not trusted" in told.stderr
    # Handshakes that are too old, not TLS, or never end are closed, and other clients are still served.
    old = trust("first")
    old.minimum_version = ssl.TLSVersion.TLSv1
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        handshake(daemon, old)
    only_h2 = trust("first")
    only_h2.set_alpn_protocols(["h2"])
    with pytest.raises((ssl.SSLError, ConnectionError)):
        handshake(daemon, only_h2)
    for sent in (b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", b"", b"\x16\x03\x01\x02\x00"):
        with daemon.raw() as plain:
            plain.sendall(sent)
            plain.settimeout(5)
            try:
                assert b"HTTP/1.1 2" not in plain.recv(65536)
            except ConnectionError:
                pass
    connection.request("GET", "/health")
    assert connection.getresponse().read()


def test_a_certificate_is_renewed_without_a_restart(start_daemon, tmp_path):
    install(tmp_path, "first")
    daemon = start_daemon(*with_tls(tmp_path))
    with handshake(daemon, trust("first")) as kept:
        install(tmp_path, "second")
        daemon.process.send_signal(signal.SIGHUP)
        wait_for_log(daemon, "reloaded the TLS certificate")
        assert common_name(daemon) == "twill test second"
        kept.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert kept.recv(65536).startswith(b"HTTP/1.1 200 ")
    shutil.copy(TLS / "first.pem", tmp_path / "tls.pem")  # this certificate is not for the key
    daemon.process.send_signal(signal.SIGHUP)
    wait_for_log(daemon, "nothing was reloaded: `server.tls_key` must be the key of")
    assert common_name(daemon) == "twill test second"


def test_a_pair_that_cannot_be_used_is_named(tmp_path):
    install(tmp_path, "first")
    shutil.copy(TLS / "second.key", tmp_path / "other.key")
    for key, reason in (("other.key", "must be the key of"), ("tls.pem", "must be a PEM file with a key"),
                        ("none.key", "No such file")):
        ended = subprocess.run([BIN / "twilld", "--model", TINY, "--listen", "127.0.0.1:0", "--set",
                                f"server.tls_certificate={tmp_path}/tls.pem", "--set",
                                f"server.tls_key={tmp_path}/{key}"], capture_output=True, text=True, timeout=60)
        assert ended.returncode == 1
        assert "`server.tls_key`" in ended.stderr and reason in ended.stderr, ended.stderr


def test_a_unix_socket_beside_tcp(start_daemon, tmp_path):
    path = tmp_path / "t.sock"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    daemon = start_daemon(f"server.listen=['127.0.0.1:0', '[::1]:0', 'unix:{path}']")
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    assert (pathlib.Path(daemon.folder.name) / "address").read_text().splitlines()[2] == f"unix:{path}"
    for family, where in ((socket.AF_UNIX, str(path)), (socket.AF_INET6, ("::1", daemon.ports[1]))):
        with socket.socket(family) as client:
            client.connect(where)
            client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
    assert daemon.request("GET", "/health")[0] == 200
    with unix_connect(str(path), "ws://localhost/v1/stream") as page:
        page.send('{"op":"ping"}')
        assert json.loads(page.recv(timeout=20)) == {"op": "pong"}
    told = subprocess.run([BIN / "twill", "complete", "hi", "--max-tokens", "2", "--url", f"unix:{path}"],
                          capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    told = subprocess.run([BIN / "twill", "tokenize", "hi", "--url", f"unix:{path}"], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    second = subprocess.run([BIN / "twilld", "--model", TINY, "--listen", f"unix:{path}"],
                            capture_output=True, text=True, timeout=60)
    assert second.returncode == 1 and "Address already in use" in second.stderr
    daemon.process.terminate()
    assert daemon.process.wait(30) == 0
    assert not path.exists()


def test_unsafe_listeners_and_readable_secrets_are_warned_of(start_daemon, tmp_path):
    install(tmp_path, "first", 0o644)
    daemon = start_daemon("server.listen=0.0.0.0:0", *with_tls(tmp_path), "server.max_connections=1000000")
    log = daemon.text_of_log()
    assert "may use this server: set `server.api_keys`" in log
    assert "every user of this machine can read `server.tls_key`" in log
    files = int([line for line in pathlib.Path(f"/proc/{daemon.process.pid}/limits").read_text().splitlines()
                 if line.startswith("Max open files")][0].split()[3])
    assert files >= 1000512 or "raise the limit" in log


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_daemon_that_gave_up_roots_rights_still_renews_roots_files(start_daemon, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir(0o700)
    install(secret, "first")
    nobody = pwd.getpwnam("nobody")
    tmp_path.chmod(0o755)
    for part in tmp_path.parents:
        if part.is_relative_to("/tmp/pytest-of-root") or "pytest" in str(part):
            part.chmod(0o755)
    address = tmp_path / "run"
    address.mkdir()
    os.chown(address, nobody.pw_uid, nobody.pw_gid)
    daemon = start_daemon(*with_tls(secret), "server.user=nobody", model=TINY, folder=address)
    lines = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text().splitlines()
    state = {line.split(":")[0]: line.split(":")[1].split() for line in lines}
    assert set(state["Uid"]) == {str(nobody.pw_uid)} and set(state["Gid"]) == {str(nobody.pw_gid)}
    assert "0" not in state["Groups"]
    assert state["CapEff"] == ["0" * 16] and state["CapPrm"] == ["0" * 16]
    install(secret, "second")
    daemon.process.send_signal(signal.SIGHUP)
    wait_for_log(daemon, "reloaded the TLS certificate")
    assert common_name(daemon) == "twill test second"
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(daemon.process.pid)], capture_output=True, text=True)
    daemon.process.terminate()
    assert daemon.process.wait(30) == 0
    for pid in children.stdout.split():
        assert not pathlib.Path(f"/proc/{pid}").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's daemon has another process read its files")
def test_a_stop_does_not_wait_for_a_reload_that_hangs(start_daemon, tmp_path):
    for part in (tmp_path, *tmp_path.parents):
        if "pytest" in str(part):
            part.chmod(0o755)
    address = tmp_path / "run"
    address.mkdir()
    address.chmod(0o777)
    configuration = tmp_path / "twilld.toml"
    configuration.write_text("")
    daemon = start_daemon("server.user=nobody", model=TINY, folder=address, config=configuration)
    children = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(daemon.process.pid)], capture_output=True,
                              text=True).stdout.splitlines()
    [reads] = [int(line.split()[0]) for line in children if "twilld-files" in line]
    os.kill(reads, signal.SIGSTOP)  # as if its file system did not answer
    try:
        daemon.process.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        daemon.process.terminate()
        assert daemon.process.wait(10) == 0
        assert "a reload has not ended" in daemon.text_of_log()
    finally:
        os.kill(reads, signal.SIGCONT)


def test_a_user_that_does_not_exist_is_named():
    ended = subprocess.run([BIN / "twilld", "--model", TINY, "--listen", "127.0.0.1:0", "--set",
                            "server.user=no-such-user"], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert '`server.user` must be a user of this system, got "no-such-user"' in ended.stderr
