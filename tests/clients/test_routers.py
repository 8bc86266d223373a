"""Requests of routers in front of several daemons: ids of requests, load, and the agent check."""

import re
import signal
import socket
import time

TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


def post(daemon, path: str, body: dict):
    status, reply = daemon.post(path, body)
    assert status == 200, reply
    return reply


def agent_line(address: str) -> str:
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=10) as s:
        return s.makefile().readline()


def agent_of(daemon) -> str:
    return re.search(r"load balancers are answered at (\S+)", daemon.text_of_log())[1]


def test_rendered_ids_are_those_of_the_prompt(daemon):
    chats = [
        {"messages": [{"role": "user", "content": "Grüße, 世界!"}]},
        {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]},
        {"messages": [{"role": "user", "content": "hi"}], "tools": TOOLS, "tool_choice": "auto"},
        {"messages": [{"role": "user", "content": "hi"}], "add_generation_prompt": False},
    ]
    for body in chats:
        body |= {"max_tokens": 1, "return_token_ids": True}
        rendered = post(daemon, "/v1/chat/completions/render", body)
        asked = post(daemon, "/v1/chat/completions", body)
        assert rendered["token_ids"] == asked["prompt_token_ids"]
        assert rendered["model"] == asked["model"]
    for prompt in ["Once upon a time", [1, 2, 3], ["a", "b c"], [[4, 5], [6]]]:
        body = {"prompt": prompt, "max_tokens": 1, "return_token_ids": True}
        rendered = post(daemon, "/v1/completions/render", body)
        asked = post(daemon, "/v1/completions", body)
        assert [one["token_ids"] for one in rendered] == [one["prompt_token_ids"] for one in asked["choices"]]


def test_a_daemon_that_ends_says_drain_and_keeps_its_streams(start_daemon):
    daemon = start_daemon("server.agent_listen=0", "server.drain_timeout=30s", "scheduler.max_running=4",
                          model="dummy:opt-125m?layers=1&vocab=1000")
    address = agent_of(daemon)
    assert address.startswith("127.0.0.1:")
    assert agent_line(address) == "up ready 100%\n"
    with daemon.raw() as s:
        body = b'{"prompt":[5],"max_tokens":1500,"ignore_eos":true,"stream":true}'
        s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        stream = s.makefile("rb")
        while not stream.readline().startswith(b"data:"):
            pass
        assert agent_line(address) == "up ready 75%\n"
        daemon.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + 20
        while agent_line(address) != "drain\n":
            assert time.monotonic() < deadline
        assert b"data: [DONE]" in stream.read()
