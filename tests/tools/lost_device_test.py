#!/usr/bin/env python3
"""twilld on a device that is lost: every stream is told, and the process ends so that a service manager starts it."""

import http.client
import json
import os
import re
import socket
import threading
import time
import unittest
import urllib.parse

from programs import BIN, SOURCE, Daemon, scratch

LOST_AT = 750  # steps of 2 ms, within which four clients connect


class LosingDaemon(Daemon):
    """The test's own program, in the place of twilld."""

    def __init__(self, lost_at):
        self.folder = scratch()
        self.lost_at = lost_at
        super().__init__()

    def start(self, command, **how):
        program = os.path.join(BIN, "losing_daemon")
        return super().start([program, str(self.lost_at), os.path.join(self.folder.name, "address")], **how)

    def __exit__(self, *_):
        super().__exit__()
        self.folder.cleanup()


def connect(url):
    return http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=30)


def stream(url, events):
    """Reads a stream to its end and keeps the data of its events."""
    connection = connect(url)
    body = {"prompt": "Hello", "max_tokens": 5000, "stream": True, "ignore_eos": True}
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    for line in connection.getresponse():
        if line.startswith(b"data: "):
            events.append(line[6:].strip())
    connection.close()


def send_and_read_nothing(url):
    """A stream whose output no longer fits the buffers of its socket, long before it ends."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    host, port = urllib.parse.urlsplit(url).netloc.split(":")
    client.connect((host, int(port)))
    body = json.dumps({"prompt": "Hello", "max_tokens": 5000, "stream": True, "ignore_eos": True, "logprobs": 5})
    client.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
                   f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
    return client


class LostDevice(unittest.TestCase):
    def test_streams_end_with_an_error_and_the_process_with_status_1(self):
        with LosingDaemon(LOST_AT) as daemon:
            url = daemon.ready()
            streams = [[] for _ in range(4)]
            readers = [threading.Thread(target=stream, args=(url, events)) for events in streams]
            for reader in readers:
                reader.start()
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
        with LosingDaemon(3000) as daemon:
            began = time.monotonic()
            with send_and_read_nothing(daemon.ready()):
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
