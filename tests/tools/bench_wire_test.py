#!/usr/bin/env python3
"""Runs twill-bench against servers that send given bytes, in given pieces."""

import base64
import hashlib
import json
import pathlib
import queue
import socket
import struct
import threading
import time
import unittest

from programs import run, scratch

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def frame(payload, opcode=TEXT, last=True, masked=False):
    payload = payload.encode() if isinstance(payload, str) else payload
    head = bytes([(0x80 if last else 0) | opcode])
    n = len(payload)
    size = bytes([n]) if n < 126 else b"\x7e" + struct.pack(">H", n) if n < 65536 else b"\x7f" + struct.pack(">Q", n)
    if masked:
        return head + bytes([size[0] | 0x80]) + size[1:] + b"\0\0\0\0" + payload
    return head + size + payload


class Canned:
    """A server that answers each generation by calling `answer(send, asked, frames)`.

    `send` writes bytes at once, `asked` is the JSON of the request, and `frames` is a queue of what the client sends
    later. After an answer, a WebSocket connection waits for the next request.
    """

    def __init__(self, answer, greeting=b""):
        self.answer, self.greeting = answer, greeting
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        with connection, connection.makefile("rb") as stream:
            try:
                if not (line := stream.readline()):
                    return
                headers = {}
                while header := stream.readline().decode().strip():
                    name, value = header.split(":", 1)
                    headers[name.lower()] = value.strip()
                if "sec-websocket-key" in headers:
                    self.talk_frames(connection, stream, headers)
                elif line.startswith(b"GET"):
                    body = b'{"data":[{"id":"m"}]}'
                    connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                else:
                    asked = json.loads(stream.read(int(headers["content-length"])))
                    self.answer(connection.sendall, asked, None)
            except OSError:
                pass  # the client or the server closed the connection, as some tests want
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def talk_frames(self, connection, stream, headers):
        key = headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest())
        connection.sendall(b"HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
                           accept + b"\r\n\r\n" + self.greeting)
        frames = queue.Queue()
        threading.Thread(target=self.read_frames, args=(stream, frames), daemon=True).start()
        while (said := frames.get(timeout=60))[0] == TEXT:
            self.answer(connection.sendall, json.loads(said[1]), frames)

    @staticmethod
    def read_frames(stream, frames):
        while len(head := stream.read(2)) == 2:
            assert head[1] & 0x80, "a client must mask"
            n = head[1] & 0x7F
            if n >= 126:
                n = int.from_bytes(stream.read(2 if n == 126 else 8), "big")
            mask, payload = stream.read(4), stream.read(n)
            frames.put((head[0] & 0xF, bytes(b ^ mask[i % 4] for i, b in enumerate(payload))))
        frames.put((None, b""))


def token(asked):
    return '{"id":"%s","tokens":[5],"text":"a"}' % asked["id"]


def end(asked, n):
    return ('{"id":"%s","finish":"length","usage":{"prompt_tokens":5,"completion_tokens":%d},"done":true}'
            % (asked["id"], n))


def chunk(text):
    data = text if isinstance(text, bytes) else b"data: " + text.encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = '{"choices":[{"text":"a","finish_reason":null}]}'
LAST = '{"choices":[{"text":"a","finish_reason":"length"}]}'


class Wire(unittest.TestCase):
    def measure(self, server, backend, *flags, n=1):
        with scratch() as folder:
            path = pathlib.Path(folder) / "r.json"
            done = run("twill-bench", "serve", "--base-url", server.url, "--backend", backend, "--input-len", "5",
                       "--output-len", "40", "--num-prompts", str(n), "--max-concurrency", "1", "--num-warmups", "0",
                       "--no-progress", "--save-result", "--save-detailed", "--result-filename", str(path), *flags)
            self.assertTrue(path.exists(), done.stderr)
            return json.loads(path.read_text())

    def one_error(self, answer, greeting=b""):
        with Canned(answer, greeting) as server:
            return self.measure(server, "twill-stream")["errors"][0]

    def test_frames_of_one_write_are_that_many_tokens(self):
        def answer(send, asked, frames):
            send(b"".join([frame(token(asked))] * 2000 + [frame(end(asked, 2000))]))
        with Canned(answer) as server:
            result = self.measure(server, "twill-stream", n=2)
        self.assertEqual(result["completed"], 2)
        self.assertEqual(result["total_output_tokens"], 4000)
        self.assertEqual([len(gaps) for gaps in result["itls"]], [1999, 1999])
        # All tokens of one read have one time stamp, so there are far fewer stamps than tokens, in ascending order.
        self.assertTrue(all(gap >= 0 for gaps in result["itls"] for gap in gaps))
        self.assertLess(sum(gap > 0 for gap in result["itls"][0]), 1000)

    def test_frames_cut_at_every_byte_are_the_same_and_late_tokens_stay_late(self):
        def answer(send, asked, frames):
            whole = (frame(token(asked)) + frame("are you there?", PING) + frame(token(asked)[:7], last=False) +
                     frame("between", PING) + frame(token(asked)[7:], opcode=0))
            for i in range(len(whole)):
                send(whole[i:i + 1])
            self.assertEqual(frames.get(timeout=60), (PONG, b"are you there?"))
            self.assertEqual(frames.get(timeout=60), (PONG, b"between"))
            time.sleep(0.3)
            send(frame(token(asked), BINARY) + frame(end(asked, 3)))
        with Canned(answer) as server:
            result = self.measure(server, "twill-stream")
        self.assertEqual(result["completed"], 1, result)
        self.assertEqual(result["total_output_tokens"], 3)
        self.assertEqual(len(result["itls"][0]), 2)
        self.assertGreaterEqual(result["itls"][0][1], 0.25)

    def test_an_answer_held_open_by_half_a_frame_is_not_a_token(self):
        def answer(send, asked, frames):
            send(frame(token(asked)) + frame(token(asked))[:-1])
            time.sleep(0.3)
            send(frame(token(asked))[-1:] + frame(end(asked, 2)))
        with Canned(answer) as server:
            result = self.measure(server, "twill-stream")
        self.assertEqual(result["completed"], 1)
        self.assertGreaterEqual(result["itls"][0][0], 0.25)

    def test_a_close_frame_fails_the_request_with_its_code_and_is_answered(self):
        answered = queue.Queue()
        def answer(send, asked, frames):
            send(frame(token(asked)) + frame(struct.pack(">H", 1001) + b"going", CLOSE) + frame(end(asked, 1)))
            answered.put(frames.get(timeout=60))
        error = self.one_error(answer)
        self.assertIn("reset: ", error)
        self.assertIn("code 1001", error)
        self.assertEqual(answered.get(timeout=60), (CLOSE, struct.pack(">H", 1001)))

    def test_frames_that_break_the_protocol_fail_the_request_and_say_how(self):
        for wrong, how in ((frame("x", masked=True), "masked"),
                           (b"\x81\x7f" + struct.pack(">Q", 1 << 40), "too long"),
                           (frame("x", opcode=0), "continues no message"),
                           (frame("x", opcode=5), "unknown opcode")):
            def answer(send, asked, frames):
                send(frame(token(asked)) + wrong)
            error = self.one_error(answer)
            self.assertIn("protocol: ", error)
            self.assertIn(how, error)

    def test_an_error_or_an_end_in_mid_stream_fails_the_request(self):
        def refuse(send, asked, frames):
            send(frame(token(asked)) * 3 + frame('{"id":"%s","error":{"message":"out of memory"}}' % asked["id"]))
        self.assertEqual(self.one_error(refuse), "server: out of memory")

        def vanish(send, asked, _):
            send(frame(token(asked)) + frame(token(asked))[:4])
            raise ConnectionError
        self.assertIn("reset: ", self.one_error(vanish))

    def test_what_comes_with_the_handshake_is_not_lost(self):
        error = self.one_error(lambda send, asked, frames: None,
                               frame('{"error":{"message":"too many sockets"}}'))
        self.assertEqual(error, "server: too many sockets")

    def test_a_refused_handshake_says_so(self):
        class Refusing(Canned):
            def talk_frames(self, connection, stream, headers):
                connection.sendall(b"HTTP/1.1 503 x\r\nContent-Length: 4\r\n\r\nbusy")
        with Refusing(None) as server:
            self.assertIn("handshake: ", self.measure(server, "twill-stream")["errors"][0])

    def test_a_key_that_is_refused_only_by_generations_ends_the_run_with_advice(self):
        class Guarded(Canned):
            """Lists models for every client, and refuses all other requests."""
            asked = 0

            def refuse(self, connection):
                self.asked += 1
                body = b'{"error":{"message":"who are you?"}}'
                connection.sendall(b"HTTP/1.1 401 x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

            def talk_frames(self, connection, stream, headers):
                self.refuse(connection)

        for backend, flags in (("openai", ()), ("twill-stream", ()), ("twill-stream", ("--connections", "1"))):
            with self.subTest(backend, flags=flags), Guarded(None) as server:
                server.answer = lambda send, asked, frames: server.refuse(type("", (), {"sendall": staticmethod(send)}))
                done = run("twill-bench", "serve", "--base-url", server.url, "--backend", backend, "--num-prompts", "500",
                           "--max-concurrency", "2", "--num-warmups", "0", "--no-progress", *flags,
                           env={"TWILL_API_KEY": "", "OPENAI_API_KEY": ""})
                self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
                for words in ("status 401", "who are you?", "set TWILL_API_KEY or OPENAI_API_KEY, or give --api-key KEY"):
                    self.assertIn(words, done.stderr)
                self.assertLess(server.asked, 10)

    def test_events_are_the_same_in_one_write_and_byte_by_byte(self):
        usage = '{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":40}}'
        whole = HEAD + chunk(EVENT) * 39 + chunk(b": ping\n\n") + chunk(LAST) + chunk(usage) + chunk("[DONE]") + b"0\r\n\r\n"
        for step in (len(whole), 1):
            def answer(send, asked, _):
                for i in range(0, len(whole), step):
                    send(whole[i:i + step])
            with Canned(answer) as server:
                result = self.measure(server, "openai")
            self.assertEqual(result["completed"], 1, result)
            self.assertEqual(result["total_output_tokens"], 40)
            self.assertEqual(len(result["itls"][0]), 39)
            self.assertEqual(result["twill_bench"]["finish_reasons"], {"length": 1})
            if step > 1:
                self.assertLess(sum(gap > 0 for gap in result["itls"][0]), 20)

    def test_an_error_event_or_a_broken_chunk_in_mid_stream_fails_the_request(self):
        for wrong, how in ((chunk('{"error":{"message":"out of memory"}}'), "server: out of memory"),
                           (b"zz\r\n", "reset: "), (chunk("not JSON"), "protocol: "), (b"", "reset: ")):
            with Canned(lambda send, asked, _: send(HEAD + chunk(EVENT) * 3 + wrong)) as server:
                self.assertIn(how, self.measure(server, "openai")["errors"][0])


if __name__ == "__main__":
    unittest.main()
