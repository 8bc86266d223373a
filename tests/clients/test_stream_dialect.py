"""/v1/stream with Python's websockets: submit, cancel, credit, many requests on one socket."""

import json

from websockets.sync.client import connect


def finish(socket, wanted):
    """Frames per id until every request of `wanted` is over."""
    frames = {i: [] for i in wanted}
    open_ids = set(wanted)
    while open_ids:
        frame = json.loads(socket.recv(timeout=60))
        frames[frame["id"]].append(frame)
        if frame.get("done"):
            open_ids.discard(frame["id"])
    return frames


def text_of(frames):
    return "".join(f.get("text", "") for f in frames)


def test_one_request_equals_the_http_reply(daemon):
    whole = daemon.complete("The capital of France is", max_tokens=16, return_token_ids=True)
    with connect(daemon.ws + "/v1/stream", compression=None) as socket:
        socket.send(json.dumps({"op": "submit", "id": "a", "prompt": "The capital of France is", "max_tokens": 16,
                                "temperature": 0}))
        frames = finish(socket, ["a"])["a"]
    assert text_of(frames) == whole["choices"][0]["text"]
    assert [t for f in frames for t in f.get("tokens", [])] == whole["choices"][0]["token_ids"]
    assert frames[-1]["usage"]["completion_tokens"] == 16


def test_several_requests_share_a_socket(daemon):
    ids = [f"r{i}" for i in range(8)]
    with connect(daemon.ws + "/v1/stream", compression=None) as socket:
        for i, name in enumerate(ids):
            socket.send(json.dumps({"op": "submit", "id": name, "prompt": f"Number {i} is", "max_tokens": 5 + i,
                                    "temperature": 0, "ignore_eos": True}))
        frames = finish(socket, ids)
    for i, name in enumerate(ids):
        assert text_of(frames[name]) == daemon.complete(f"Number {i} is", max_tokens=5 + i,
                                                        ignore_eos=True)["choices"][0]["text"]


def test_cancel_frees_the_blocks(daemon):
    with connect(daemon.ws + "/v1/stream", compression=None) as socket:
        socket.send(json.dumps({"op": "submit", "id": "c", "prompt": "Once", "max_tokens": 7000, "ignore_eos": True}))
        socket.recv(timeout=20)
        socket.send(json.dumps({"op": "cancel", "id": "c"}))
        daemon.wait_metric("twill_kv_blocks_used", 0)
        socket.send(json.dumps({"op": "submit", "id": "d", "prompt": "Once", "max_tokens": 2, "temperature": 0}))
        while True:
            frame = json.loads(socket.recv(timeout=20))
            if frame["id"] == "d" and frame.get("done"):
                break


def test_credit_holds_a_request_back(daemon):
    with connect(daemon.ws + "/v1/stream", compression=None) as socket:
        socket.send(json.dumps({"op": "submit", "id": "k", "prompt": "Once upon", "max_tokens": 40, "temperature": 0,
                                "ignore_eos": True, "credit": 5}))
        received = 0
        try:
            while True:
                received += len(json.loads(socket.recv(timeout=1.0)).get("tokens", []))
        except TimeoutError:
            pass
        assert 1 <= received <= 5
        socket.send(json.dumps({"op": "credit", "id": "k", "n": 1000}))
        rest = finish(socket, ["k"])["k"]
        assert received + sum(len(f.get("tokens", [])) for f in rest) == 40
