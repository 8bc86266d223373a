"""Hostile pages and clients: framing, hosts, origins, keys, and bodies that are not allowed."""

import json
import os
import socket
import time

import pytest
import websockets
from websockets.sync.client import connect

SMUGGLED = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def all_bytes(daemon, sent: bytes) -> bytes:
    """Sends bytes; returns everything that the daemon sends until it closes."""
    with daemon.raw() as client:
        client.settimeout(20)
        client.sendall(sent)
        reply = b""
        try:
            while part := client.recv(65536):
                reply += part
        except ConnectionError:
            pass
        return reply


@pytest.mark.parametrize("framing", [
    b"Transfer-Encoding: chunked, identity\r\n",
    b"Transfer-Encoding: identity\r\n",
    b"Transfer-Encoding: xchunked\r\n",
    b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
])
def test_a_body_framed_in_two_ways_gets_one_reply_and_the_close(daemon, framing):
    head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n" + framing + b"\r\n"
    reply = all_bytes(daemon, head + SMUGGLED)
    assert reply.startswith(b"HTTP/1.1 400 ")
    assert reply.count(b"Server: twill") == 1, reply
    assert daemon.request("GET", "/health")[0] == 200


def test_transfer_encoding_is_not_for_http_1_0(daemon):
    reply = all_bytes(daemon, b"POST /v1/completions HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED)
    assert reply.startswith(b"HTTP/1.1 400 ")
    assert reply.count(b"Server: twill") == 1, reply


def test_a_foreign_host_and_none_are_refused(daemon):
    assert daemon.request("GET", "/health", headers={"Host": "evil.example"})[0] == 421
    assert all_bytes(daemon, b"GET /health HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 400 ")


def test_a_foreign_page_can_neither_ask_nor_open_a_websocket(daemon):
    status, headers, _ = daemon.request("POST", "/v1/completions", {"prompt": "x", "max_tokens": 1},
                                        {"Origin": "https://evil.example"})
    assert status == 403
    assert "Access-Control-Allow-Origin" not in headers
    with pytest.raises(websockets.exceptions.InvalidStatus) as refused:
        connect(daemon.ws + "/v1/stream", origin="https://evil.example").close()
    assert refused.value.response.status_code == 403
    with connect(daemon.ws + "/v1/stream", origin=daemon.url) as own:
        own.send('{"op":"ping"}')
        assert json.loads(own.recv(timeout=20)) == {"op": "pong"}


def test_keys_pages_and_bodies(start_daemon):
    daemon = start_daemon("server.api_keys=['sk-secret']", "server.cors_origins=['https://chat.example']",
                          "server.max_per_address=40", "model.name=tiny")
    key = {"Authorization": "Bearer sk-secret"}
    # A browser sends its key as a subprotocol; the daemon must answer with the other subprotocol.
    with connect(daemon.ws + "/v1/stream", origin="https://chat.example",
                 subprotocols=["realtime", "openai-insecure-api-key.sk-secret"]) as page:
        assert page.subprotocol == "realtime"
        page.send('{"op":"ping"}')
        assert json.loads(page.recv(timeout=20)) == {"op": "pong"}
    assert daemon.request("GET", "/v1/models", headers={"X-Api-Key": "sk-secret"})[0] == 200
    # The preflight of OpenAI's JavaScript SDK.
    status, headers, _ = daemon.request("OPTIONS", "/v1/chat/completions", headers={
        "Origin": "https://chat.example", "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type,x-stainless-os,x-stainless-lang"})
    assert status == 204
    assert headers["Access-Control-Allow-Origin"] == "https://chat.example"
    assert "x-stainless-os" in headers["Access-Control-Allow-Headers"]
    # No route shows where the model is or what the key is.
    _, _, models = daemon.request("GET", "/v1/models", headers=key)
    assert b"/" not in json.loads(models)["data"][0]["root"].encode()
    # Bodies of clients without a key are not read.
    head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16777216\r\n\r\n"
    keyless = [daemon.raw() for _ in range(17)]
    for client in keyless:
        client.sendall(head)
    for client in keyless:
        assert client.recv(65536).startswith(b"HTTP/1.1 401 ")
    assert daemon.post("/v1/completions", {"prompt": "x", "max_tokens": 1}, headers=key)[0] == 200
    for client in keyless:
        client.close()
    # The number of sockets of one address is limited.
    many = []
    refused = False
    for _ in range(60):
        client = daemon.raw()
        client.settimeout(2)
        many.append(client)
        try:
            client.sendall(SMUGGLED)
            refused = refused or not client.recv(65536)
        except (ConnectionError, socket.timeout):
            refused = True
    assert refused
    for client in many:
        client.close()
    assert "sk-secret" not in daemon.text_of_log()


def test_log_lines_cannot_be_forged(start_daemon):
    daemon = start_daemon("log.level=debug")
    assert daemon.request("GET", "/x%0Aforged%1b[31m")[0] == 404
    log = daemon.text_of_log()
    assert "/x\\x0aforged\\x1b[31m" in log
    assert "\nforged" not in log


def websocket(daemon, path: str) -> socket.socket:
    """A WebSocket over a raw socket, which reads only when the test reads."""
    client = daemon.raw()
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                   "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += client.recv(1)
    assert b" 101 " in head
    return client


def text_frame(text: bytes) -> bytes:
    return b"\x81\xff" + len(text).to_bytes(8, "big") + bytes(4) + text


def test_replies_that_nobody_reads_cost_little(start_daemon):
    daemon = start_daemon()
    tools = [{"type": "function", "name": f"tool_{i}", "parameters": {"note": "n" * 1000}} for i in range(2900)]
    warm_up = text_frame(json.dumps({"type": "response.create", "generate": False, "input": "x",
                                     "tools": tools}).encode())
    before = most = daemon.memory_bytes()
    silent = [websocket(daemon, "/v1/responses") for _ in range(60)]
    for client in silent:
        try:
            client.sendall(warm_up)
        except OSError:
            pass  # the daemon closed the connection
        most = max(most, daemon.memory_bytes())
    deadline = time.monotonic() + 20
    while daemon.post("/v1/completions", {"prompt": "x", "max_tokens": 1})[0] != 200:
        most = max(most, daemon.memory_bytes())
        assert time.monotonic() < deadline, "the output of clients that do not read is never given up"
        time.sleep(0.1)
    print(f"60 clients that read nothing: {(most - before) / 2**20:.0f} MiB")
    assert most - before < 256 * 2**20
    for client in silent:
        client.close()
