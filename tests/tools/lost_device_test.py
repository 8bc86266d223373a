#!/usr/bin/env python3
"""twilld on a device that is lost: every stream ends with an error, and the process ends so that a service manager restarts it."""

import http.client
import json
import os
import re
import socket
import subprocess
import threading
import time
import unittest
import urllib.parse

from programs import BIN, SOURCE, Daemon, scratch

MAX_TOKENS = 90000  # they take a minute, so that no stream ends before the device is lost


class LosingDaemon(Daemon):
    """The test's own program, in place of twilld."""

    def __init__(self):
        self.folder = scratch()
        super().__init__()

    def start(self, command, **how):
        program = os.path.join(BIN, "losing_daemon")
        return super().start([program, os.path.join(self.folder.name, "address")], stdin=subprocess.PIPE, **how)

    def lose_the_device(self):
        self.process.stdin.write("lose it\n")
        self.process.stdin.flush()

    def __exit__(self, *_):
        super().__exit__()
        self.process.stdin.close()
        self.folder.cleanup()


def connect(url):
    return http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=30)


def stream(url, events, has_begun):
    """Reads a stream to its end and keeps the data of its events."""
    connection = connect(url)
    body = {"prompt": "Hello", "max_tokens": MAX_TOKENS, "stream": True, "ignore_eos": True}
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    for line in connection.getresponse():
        if line.startswith(b"data: "):
            events.append(line[6:].strip())
            has_begun.set()
    connection.close()


def send_and_read_nothing(url):
    """A stream whose output soon no longer fits the buffers of its socket."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    host, port = urllib.parse.urlsplit(url).netloc.split(":")
    client.connect((host, int(port)))
    body = json.dumps({"prompt": "Hello", "max_tokens": MAX_TOKENS, "stream": True, "ignore_eos": True, "logprobs": 5})
    client.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
                   f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
    return client


def tokens_of(url):
    """How many tokens the daemon has generated."""
    connection = connect(url)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return sum(float(number) for number in re.findall(r"^twill_generation_tokens_total(?:{.*})? (\S+)", text, re.MULTILINE))


def wait_until_paused(url):
    """Returns once the daemon generates no more tokens for a client that does not read them."""
    end, before, now = time.monotonic() + 20, -1, tokens_of(url)
    while now == 0 or now != before:
        assert time.monotonic() < end, f"a client that reads nothing must be paused, got {now} tokens"
        time.sleep(0.5)
        before, now = now, tokens_of(url)


class LostDevice(unittest.TestCase):
    def test_streams_end_with_an_error_and_the_process_with_status_1(self):
        with LosingDaemon() as daemon:
            url = daemon.ready()
            streams = [[] for _ in range(4)]
            begun = [threading.Event() for _ in streams]
            readers = [threading.Thread(target=stream, args=(url, *both)) for both in zip(streams, begun)]
            for reader in readers:
                reader.start()
            for one in begun:
                self.assertTrue(one.wait(30), daemon.lines)
            daemon.lose_the_device()
            self.assertEqual(daemon.ends_with(), 1)
            for reader in readers:
                reader.join(10)
                self.assertFalse(reader.is_alive())
        for events in streams:
            self.assertGreater(len(events), 1, "some tokens come before the loss")
            self.assertEqual(events.pop(), b"[DONE]")
            error = json.loads(events[-1])["error"]
            self.assertEqual(error["code"], "shutting_down", error)
        own = [line for line in daemon.lines if line.startswith("twilld: ")]
        self.assertEqual(len(own), 1, daemon.lines)
        self.assertRegex(own[0], "the device is lost: scripted step failure; .*start twilld again")
        self.assertFalse([line for line in daemon.lines if "restarted" in line], daemon.lines)

    def test_a_client_that_reads_nothing_does_not_hold_up_the_end(self):
        with LosingDaemon() as daemon, send_and_read_nothing(daemon.ready()):
            wait_until_paused(daemon.ready())
            daemon.lose_the_device()
            stream(daemon.ready(), [], threading.Event())  # the first step of this request fails
            daemon.wait_for("the device is lost")
            began = time.monotonic()
            self.assertEqual(daemon.ends_with(), 1)
            self.assertLess(time.monotonic() - began, 15)

    def test_the_service_manager_starts_what_ends_with_status_1(self):
        with open(os.path.join(SOURCE, "tools/package/systemd/twilld.service.in"), encoding="utf-8") as unit:
            text = unit.read()
        self.assertRegex(text, "(?m)^Restart=on-failure$")
        prevented = re.search("(?m)^RestartPreventExitStatus=(.*)$", text).group(1).split()
        self.assertNotIn("1", prevented)


if __name__ == "__main__":
    unittest.main()
