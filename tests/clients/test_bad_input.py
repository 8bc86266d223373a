"""Bad input over HTTP and WebSocket: the right status, a message that names field, rule and value,
and the next request served."""

import json

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

COMPLETIONS = "/v1/completions"

BAD_FIELDS = [
    ({"prompt": 5}, "prompt"),
    ({"prompt": ""}, "prompt"),
    ({"prompt": []}, "prompt"),
    ({"prompt": [-1]}, "prompt"),
    ({"prompt": [99999999]}, "prompt"),
    ({"prompt": [1.5]}, "prompt"),
    ({"prompt": "x", "temperature": -0.5}, "temperature"),
    ({"prompt": "x", "temperature": "hot"}, "temperature"),
    ({"prompt": "x", "temperature": 1e999}, None),
    ({"prompt": "x", "top_p": -0.5}, "top_p"),
    ({"prompt": "x", "top_p": 1.5}, "top_p"),
    ({"prompt": "x", "top_k": -5}, "top_k"),
    ({"prompt": "x", "min_p": 2}, "min_p"),
    ({"prompt": "x", "repetition_penalty": 0}, "repetition_penalty"),
    ({"prompt": "x", "presence_penalty": 9}, "presence_penalty"),
    ({"prompt": "x", "frequency_penalty": -9}, "frequency_penalty"),
    ({"prompt": "x", "max_tokens": -4}, "max_tokens"),
    ({"prompt": "x", "max_tokens": 10**12}, "max_tokens"),
    ({"prompt": "x", "max_tokens": 2.5}, "max_tokens"),
    ({"prompt": "x", "min_tokens": 9, "max_tokens": 3}, "min_tokens"),
    ({"prompt": "x", "n": 0}, "n"),
    ({"prompt": "x", "n": 100000}, "n"),
    ({"prompt": "x", "stop": [""]}, "stop"),
    ({"prompt": "x", "stop": ["s"] * 1000}, "stop"),
    ({"prompt": "x", "logprobs": 100000}, "logprobs"),
    ({"prompt": "x", "logit_bias": {"abc": 1}}, "logit_bias"),
    ({"prompt": "x", "logit_bias": {"5": 1000}}, "logit_bias"),
    ({"prompt": "x", "logit_bias": {"99999999": 1}}, "logit_bias"),
    ({"prompt": "x", "stream": "yes"}, "stream"),
]


@pytest.mark.parametrize("body,field", BAD_FIELDS, ids=lambda v: json.dumps(v)[:48] if v else "any")
def test_a_bad_field_is_400_and_named(daemon, body, field):
    status, reply = daemon.post(COMPLETIONS, body)
    assert status == 400, reply
    error = reply["error"]
    assert error["type"] and error["message"]
    if field:
        assert f"`{field}" in error["message"], error
    assert daemon.complete("x", max_tokens=1)["choices"]


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"nonsense", b'{"prompt": "\xff"}', b'{"prompt": NaN}',
                                 b'{"prompt": "x", "temperature": NaN}', b"[" * 100000, b'{"a":' * 5000,
                                 b'{"prompt": "\\ud800"}', b"\x00" * 10])
def test_broken_json_is_400(daemon, raw):
    status, _, text = daemon.request("POST", COMPLETIONS, raw)
    assert status == 400
    assert json.loads(text)["error"]["message"]


def test_unknown_things_are_404_and_405(daemon):
    assert daemon.post(COMPLETIONS, {"model": "nope", "prompt": "x"})[0] == 404
    assert daemon.request("GET", "/nope")[0] == 404
    assert daemon.request("GET", COMPLETIONS)[0] == 405
    assert daemon.request("DELETE", "/health")[0] == 405


def test_a_prompt_over_the_context_is_400_with_both_numbers(daemon):
    status, reply = daemon.post(COMPLETIONS, {"prompt": [5] * 20000, "max_tokens": 1})
    assert status == 400
    assert "20000" in reply["error"]["message"] or "20001" in reply["error"]["message"]


def test_unknown_fields_are_accepted(daemon):
    assert daemon.post(COMPLETIONS, {"prompt": "x", "max_tokens": 1, "no_such_field": {"a": 1}})[0] == 200


def test_bad_chat_messages(daemon):
    for messages in (None, [], "hi", [{"content": "x"}], [{"role": "user"}], [{"role": 5, "content": "x"}],
                     [{"role": "user", "content": {"a": 1}}]):
        status, reply = daemon.post("/v1/chat/completions", {"messages": messages})
        assert status == 400, (messages, reply)
        assert "messages" in reply["error"]["message"]


def test_broken_http_heads(daemon):
    for head in (b"GARBAGE\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                 b"Content-Length: -5\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"A: " + b"b" * 200000 + b"\r\n\r\n"):
        with daemon.raw() as socket:
            try:
                socket.sendall(head)
                reply = socket.recv(65536)
            except ConnectionError:
                reply = b""
            assert reply == b"" or reply.startswith(b"HTTP/1.1 4"), reply[:100]
    assert daemon.request("GET", "/health")[0] == 200


def close_code(daemon, path, *frames) -> int:
    with connect(daemon.ws + path, max_size=None, compression=None) as socket:
        try:
            for frame in frames:
                socket.send(frame)
            while True:
                socket.recv(timeout=20)
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else 1006


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/stream"])
def test_binary_frames_and_huge_frames_close_the_socket(daemon, path):
    assert close_code(daemon, path, b"\x00\x01") == 1003
    assert close_code(daemon, path, "x" * (10 * 1024 * 1024)) == 1009
    assert daemon.complete("x", max_tokens=1)["choices"]


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/stream"])
def test_bad_messages_get_an_error_frame_and_the_socket_lives(daemon, path):
    with connect(daemon.ws + path, compression=None) as socket:
        for frame in ("{", "[]", '{"type": "nope", "op": "nope"}', "5", '"x"', "{}"):
            socket.send(frame)
            reply = json.loads(socket.recv(timeout=20))
            assert "error" in reply, reply
            assert reply["error"]["message"]
        socket.ping().wait(10)


def test_fragmented_and_interleaved_frames(daemon):
    body = json.dumps({"op": "submit", "id": "f", "prompt": "The capital of France is", "max_tokens": 4,
                       "temperature": 0})
    with connect(daemon.ws + "/v1/stream", compression=None) as socket:

        def pieces():
            for i in range(0, len(body), 7):
                yield body[i:i + 7]
                socket.ping()

        socket.send(pieces())
        text = ""
        while True:
            frame = json.loads(socket.recv(timeout=20))
            assert "error" not in frame, frame
            text += frame.get("text", "")
            if frame.get("done"):
                break
    assert text == daemon.complete("The capital of France is", max_tokens=4)["choices"][0]["text"]


def test_invalid_utf8_in_a_text_frame_is_1007(daemon):
    import base64
    import os
    with daemon.raw() as socket:
        key = base64.b64encode(os.urandom(16)).decode()
        socket.sendall(f"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                       f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        assert b"101" in socket.recv(65536)
        socket.sendall(bytes([0x81, 0x82, 0, 0, 0, 0, 0xC3, 0x28]))
        reply = b""
        while len(reply) < 4:
            part = socket.recv(100)
            if not part:
                break
            reply += part
        assert reply[0] == 0x88 and int.from_bytes(reply[2:4], "big") == 1007


def test_half_open_sockets_hurt_nobody(daemon):
    idle = [daemon.raw() for _ in range(50)]
    for i, socket in enumerate(idle):
        socket.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Le"[: i + 1])
    assert daemon.complete("x", max_tokens=1)["choices"]
    for socket in idle:
        socket.close()
