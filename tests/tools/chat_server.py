"""A server with the part of twilld's protocol that `twill chat` needs. A test chooses its answers."""

import base64
import hashlib
import json
import socket
import struct
import threading

MODELS = [{"id": "tiny", "family": "llama", "quantization": "F32", "max_model_len": 1000, "state": "ready"}]


class ChatServer:
    """Answers each turn by `answer(request)`: a list of texts, or an error's (code, message).

    `requests` are the turns that came. If `key` is given, requests must have it."""

    def __init__(self, answer, models=MODELS, key=None, usage=None):
        self.answer, self.models, self.key, self.usage = answer, models, key, usage
        self.requests = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            with connection, connection.makefile("rwb") as stream:
                self.speak(stream)
        except (OSError, EOFError):
            pass  # the client has closed the connection

    def speak(self, stream):
        path = stream.readline().split()[1].decode()
        heads = {}
        while (line := stream.readline().strip()):
            name, value = line.decode().split(":", 1)
            heads[name.lower()] = value.strip()
        if self.key is not None and heads.get("authorization") != "Bearer " + self.key:
            return self.reply(stream, "401 Unauthorized", {"error": {"message": "a key", "code": "invalid_api_key"}})
        if path == "/v1/models":
            return self.reply(stream, "200 OK", {"object": "list", "data": self.models})
        digest = hashlib.sha1((heads["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        stream.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                     b"Sec-WebSocket-Accept: " + base64.b64encode(digest) + b"\r\n\r\n")
        stream.flush()
        while True:
            self.take_turn(stream, json.loads(self.read_frame(stream)))

    def reply(self, stream, status, body):
        body = json.dumps(body).encode()
        stream.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        stream.flush()

    def take_turn(self, stream, request):
        if request["type"] == "response.cancel":
            return self.send(stream, {"type": "response.incomplete", "response": {"id": "resp_0"}})
        self.requests.append(request)
        answer = self.answer(request)
        if isinstance(answer, tuple):
            return self.send(stream, {"type": "error", "status": 400,
                                      "error": {"code": answer[0], "message": answer[1]}})
        written = 0
        for written, text in enumerate(answer, 1):
            self.send(stream, {"type": "response.output_text.delta", "delta": text})
        read = 10
        if self.usage:
            read, written = self.usage(len(self.requests))
        self.send(stream, {"type": "response.completed", "response": {
            "id": "resp_%d" % len(self.requests), "usage": {"input_tokens": read, "output_tokens": written}}})

    @staticmethod
    def send(stream, event):
        text = json.dumps(event).encode()
        size = struct.pack("!BBH", 0x81, 126, len(text)) if len(text) > 125 else struct.pack("!BB", 0x81, len(text))
        stream.write(size + text)
        stream.flush()

    @staticmethod
    def read_exactly(stream, n):
        data = stream.read(n)
        if len(data) < n:
            raise EOFError
        return data

    def read_frame(self, stream):
        """The next text message, which may come in several frames. Control frames are left out."""
        whole = b""
        while True:
            kind, size = self.read_exactly(stream, 2)
            size &= 0x7f
            if size == 126:
                size, = struct.unpack("!H", self.read_exactly(stream, 2))
            elif size == 127:
                size, = struct.unpack("!Q", self.read_exactly(stream, 8))
            mask = self.read_exactly(stream, 4)
            text = bytes(byte ^ mask[i % 4] for i, byte in enumerate(self.read_exactly(stream, size)))
            if kind & 0x0f == 8:
                stream.write(b"\x88\x00")
                raise EOFError
            if kind & 0x0f <= 1:
                whole += text
                if kind & 0x80:
                    return whole

    def said(self):
        """The text of the user in each turn."""
        return [request["input"][-1]["content"] for request in self.requests]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
