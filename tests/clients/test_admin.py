"""The routes of administrators as a client sees them: a Unix socket, metrics of tenants, and the log of requests."""

import concurrent.futures
import http.client
import json
import re
import socket
import stat
import subprocess
import time

from conftest import BIN
from test_tenants import key_of, tenant


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.path)


def ask(path, target, **headers):
    connection = UnixConnection(path)
    connection.request("GET", target, headers=headers)
    reply = connection.getresponse()
    return reply.status, reply.read().decode()


def test_administrators_see_tenants_and_each_request_has_a_line(start_daemon, tmp_path):
    door = tmp_path / "admin.sock"
    daemon = start_daemon(f"server.admin_listen=unix:{door}", "log.format=json", "kv.memory=64MiB",
                          "model.name=tiny", f"tenants=[{tenant('a')}]")
    assert stat.S_IMODE(door.stat().st_mode) == 0o660
    body = {"prompt": "My secret word", "max_tokens": 4, "ignore_eos": True}
    status, _ = daemon.post("/v1/completions", body, headers={**key_of("a"), "X-Request-Id": 'my"id'})
    assert status == 200
    # A reply may arrive before the engine has removed its request.
    counted = r'^twill_tenant_requests_total\{.*tenant="a".*finished_reason="length".*\} 1$'
    deadline = time.monotonic() + 10
    while not re.search(counted, (reply := ask(door, "/metrics"))[1], re.M) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert reply[0] == 200 and re.search(counted, reply[1], re.M), reply[1]
    assert "tenant_" not in daemon.request("GET", "/metrics")[2].decode()
    routes = json.loads(ask(door, "/admin")[1])["routes"]
    assert {"method": "GET", "path": "/metrics", "websocket": False} in routes
    assert ask(door, "/admin", Origin="https://evil.example")[0] == 403
    assert ask(door, "/admin", Host="evil.example")[0] == 421
    assert daemon.request("GET", "/admin", headers=key_of("a"))[0] == 404
    lines = [json.loads(line) for line in daemon.text_of_log().splitlines()]
    ended = [line for line in lines if "request" in line]
    assert len(ended) == 1
    assert ended[0].items() >= {"level": "info", "id": 'my"id', "tenant": "a", "model": "tiny", "status": "length",
                                "output_tokens": 4}.items()
    assert ended[0]["total_ms"] >= ended[0]["first_token_ms"] >= ended[0]["queue_ms"] >= 0
    assert "secret" not in daemon.text_of_log()


def post(path, target):
    connection = UnixConnection(path)
    connection.request("POST", target)
    reply = connection.getresponse()
    return reply.status, json.loads(reply.read())


def test_administrators_reload_and_see_the_state(start_daemon, tmp_path):
    door, file = tmp_path / "admin.sock", tmp_path / "twilld.toml"
    file.write_text("[limits]\nmax_choices = 2\n")
    daemon = start_daemon(f"server.admin_listen=unix:{door}", "kv.memory=64MiB", "model.name=tiny", config=file)
    assert daemon.post("/v1/completions", {"prompt": "One", "max_tokens": 2, "ignore_eos": True})[0] == 200

    file.write_text("[limits]\nmax_choices = 3\n[server]\nthreads = 2\n")
    status, report = post(door, "/admin/reload")
    assert status == 200 and report["reloaded"]
    assert report["changed"] == [{"key": "limits.max_choices", "before": "2", "after": "3"}]
    assert [one["key"] for one in report["needs_restart"]] == ["server.threads"]
    file.write_text("[limits]\nmax_choices = 0\n")
    status, report = post(door, "/admin/reload")
    assert status == 400 and not report["reloaded"] and "limits.max_choices" in report["errors"][0]
    assert daemon.post("/v1/completions", {"prompt": "One", "max_tokens": 2, "n": 3})[0] == 200

    status, text = ask(door, "/admin/state")
    state = json.loads(text)
    assert status == 200
    (model,), (tenant_of_all,) = state["models"], state["tenants"]
    assert model["model"] == tenant_of_all["model"] == "tiny"
    assert model["kv_blocks_used"] == 0 < model["kv_blocks_total"]
    assert tenant_of_all["finished"]["length"] >= 1
    (scheduler,) = state["schedulers"]
    assert scheduler["sequences"] == scheduler["orphans"] == []
    assert {one["actor"] for one in state["mailboxes"]} >= {"batcher", "executor", "kv_allocator", "session"}
    status, text = ask(door, "/admin/models")
    assert status == 200 and json.loads(text)["data"][0]["state"] == "ready"
    # The only model cannot be put to sleep.
    assert post(door, "/admin/models/tiny/sleep")[0] == 400


def test_top_by_the_door_of_administrators_shows_tenants(start_daemon, tmp_path):
    door = tmp_path / "admin.sock"
    daemon = start_daemon(f"server.admin_listen=unix:{door}", "model.name=tiny", f"tenants=[{tenant('a')},{tenant('b')}]",
                          model="dummy:opt-125m?layers=1&vocab=1000")
    for who in "aab":
        body = {"prompt": "Once", "max_tokens": 2, "ignore_eos": True}
        assert daemon.post("/v1/completions", body, headers=key_of(who))[0] == 200
    top = subprocess.run([BIN / "twill", "top", "--once", "--interval", "0.1", "--admin", f"unix:{door}"],
                         capture_output=True, text=True, timeout=60)
    assert top.returncode == 0, top.stderr
    assert re.search(r"^tiny .* 0 +3$", top.stdout, re.M), top.stdout
    assert re.search(r"^a +tiny .* 0 +2$", top.stdout, re.M), top.stdout
    assert re.search(r"^b +tiny .* 0 +1$", top.stdout, re.M), top.stdout
    front = subprocess.run([BIN / "twill", "top", "--once", "--interval", "0.1", "--url", daemon.url, "--api-key",
                            key_of("a")["Authorization"].split()[1]], capture_output=True, text=True, timeout=60)
    assert "TENANT" not in front.stdout and re.search(r"^tiny .* 0 +3$", front.stdout, re.M), front.stdout + front.stderr


def test_the_ledger_names_who_holds_what(start_daemon):
    daemon = start_daemon("debug.check_ledger=true", model="dummy:null?step-us=20000")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(daemon.post, "/v1/completions", {"prompt": "One two three", "max_tokens": 40, "n": 2})
                 for _ in range(2)]
        daemon.wait_metric("twill_num_requests_running", 2)
        ledger = daemon.ledger()
        assert all(one.result()[0] == 200 for one in asked)
    assert not ledger["at_rest"]
    accounts = {one["what"]: one for one in ledger["accounts"]}
    assert accounts["running requests"]["taken"] == 2 and accounts["sequences of requests"]["taken"] == 4
    assert accounts["KV blocks"]["taken"] >= 2
    holders = {one["name"] for one in accounts["KV blocks"]["holders"]}
    assert {name for name in holders if name.startswith("request ")} == {"request 1", "request 2"}
    daemon.check_ledger()
    left = daemon.ledger()
    assert left["at_rest"] and not left["faults"]
    staying = {"bytes of stored responses", "bytes of stored responses of tenants", "sequences in the executor",
               "open sockets"}
    assert not {one["what"] for one in left["accounts"] if one["taken"]} - staying
    time.sleep(2.5)  # the daemon samples its own state twice in this time
    assert "does not add up" not in daemon.text_of_log()


def test_the_state_names_the_owner_of_every_block(start_daemon, tmp_path):
    door = tmp_path / "admin.sock"
    daemon = start_daemon(f"server.admin_listen=unix:{door}", "scheduler.max_running=2", f"tenants=[{tenant('a')}]",
                          model="dummy:null?step-us=20000")
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(daemon.post, "/v1/completions", {"prompt": "One two three", "max_tokens": 60},
                             headers={**key_of("a"), "X-Request-Id": f"mine-{i}"}) for i in range(3)]
        daemon.wait_metric("twill_num_requests_running", 2)
        daemon.wait_metric("twill_num_requests_waiting", 1)
        state = json.loads(ask(door, "/admin/state")[1])
        assert all(one.result()[0] == 200 for one in asked)
    (scheduler,) = state["schedulers"]
    assert {one["id"] for one in scheduler["sequences"]} == {"mine-0", "mine-1", "mine-2"}
    assert {one["tenant"] for one in scheduler["sequences"]} == {"a"}
    assert sorted(one["state"] for one in scheduler["sequences"]) == ["running", "running", "waiting"]
    held = sum(one["kv_blocks"] for one in scheduler["sequences"])
    assert 2 <= held == scheduler["kv_blocks_used"]
    assert scheduler["orphans"] == [] and not scheduler["tied"]
    assert re.search(r'^twill_actor_mailbox_depth\{.*actor="batcher".*\} 0$', ask(door, "/metrics")[1], re.M)
