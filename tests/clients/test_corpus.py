"""A corpus of malformed and odd requests, and RFC 6455 case by case, over raw sockets: the right answer,
never a request read out of another one's bytes, and the next request served."""

import json
import socket

import pytest

BODY = json.dumps({"prompt": "x", "max_tokens": 1}).encode()
NEXT = b"GET /version HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: the-next-one\r\n\r\n"


def talk(daemon, sent: bytes, pieces: int = 0) -> bytes:
    """Sends `pieces` and then closes the sending half; returns all that the daemon sends until it closes."""
    with daemon.raw() as client:
        client.settimeout(20)
        reply = b""
        try:
            step = pieces or len(sent)
            for i in range(0, len(sent), step):
                client.sendall(sent[i:i + step])
            while part := client.recv(65536):
                reply += part
        except ConnectionError:
            pass
        return reply


def post(*headers: bytes, body: bytes = b"", path: bytes = b"/v1/completions") -> bytes:
    return b"\r\n".join([b"POST " + path + b" HTTP/1.1", b"Host: localhost", *headers, b"", b""]) + body


def chunks(*parts: bytes) -> bytes:
    return post(b"Transfer-Encoding: chunked", body=b"".join(parts))


def chunk(data: bytes, extension: bytes = b"") -> bytes:
    return b"%x" % len(data) + extension + b"\r\n" + data + b"\r\n"


LENGTH = b"Content-Length: %d" % len(BODY)

# Each of these is answered with one error, and the connection is closed: bytes behind it must not be read as a request.
MALFORMED = {
    "no target": b"GET\r\nHost: localhost\r\n\r\n",
    "two spaces": b"GET  /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "no version": b"GET /health\r\nHost: localhost\r\n\r\n",
    "HTTP/2.0": b"GET /health HTTP/2.0\r\nHost: localhost\r\n\r\n",
    "http/1.1": b"GET /health http/1.1\r\nHost: localhost\r\n\r\n",
    "a preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "method of odd bytes": b"G\xe9T /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "NUL in the target": b"GET /hea\x00lth HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "NUL in a header": post(b"X: a\x00b", LENGTH, body=BODY),
    "CR in a header": post(b"X: a\rb", LENGTH, body=BODY),
    "space before the colon": post(b"Content-Length : 5", body=b"hello"),
    "a first line that is folded": b"GET /health HTTP/1.1\r\n Host: localhost\r\n\r\n",
    "no name": post(b": x"),
    "no colon": post(b"Content-Length"),
    "two hosts": post(b"Host: localhost"),
    "no host": b"GET /health HTTP/1.1\r\n\r\n",
    "a host of two words": b"GET /health HTTP/1.1\r\nHost: a b\r\n\r\n",
    "negative length": post(b"Content-Length: -1"),
    "signed length": post(b"Content-Length: +5", body=b"hello"),
    "hexadecimal length": post(b"Content-Length: 0x5", body=b"hello"),
    "length and a word": post(b"Content-Length: 5 x", body=b"hello"),
    "two lengths": post(b"Content-Length: 5", b"Content-Length: 6", body=b"hello"),
    "a list of lengths": post(b"Content-Length: 5, 6", body=b"hello"),
    "empty length": post(b"Content-Length: "),
    "overflowing length": post(b"Content-Length: 18446744073709551621", body=b"hello"),
    "too long a body": post(b"Content-Length: 99999999999"),
    "length and chunks": post(b"Content-Length: 5", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
    "chunks twice": post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
    "chunked, chunked": post(b"Transfer-Encoding: chunked, chunked", body=b"0\r\n\r\n"),
    "gzip, chunked": post(b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"),
    "chunked after a tab": post(b"Transfer-Encoding: \x0bchunked", body=b"0\r\n\r\n"),
    "chunk size with a sign": chunks(b"-1\r\nx\r\n0\r\n\r\n"),
    "chunk size with 0x": chunks(b"0x1\r\nx\r\n0\r\n\r\n"),
    "chunk size of no digits": chunks(b"\r\nx\r\n0\r\n\r\n"),
    "chunk size that overflows": chunks(b"10000000000000001\r\nx\r\n0\r\n\r\n"),
    "chunk size beyond the limit": chunks(b"7fffffffffffffff\r\nx\r\n0\r\n\r\n"),
    "chunk longer than its size": chunks(b"1\r\nxyz\r\n0\r\n\r\n"),
    "chunk with NUL for its end": chunks(b"1\r\nx\x00\x000\r\n\r\n"),
    "many headers": b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 20000 + b"\r\n",
    "a long target": b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_requests_get_one_error_and_the_close(daemon, name):
    reply = talk(daemon, MALFORMED[name] + NEXT)
    assert reply == b"" or reply.startswith(b"HTTP/1.1 4") or reply.startswith(b"HTTP/1.1 5"), reply[:200]
    assert reply.count(b"Server: twill") <= 1, reply
    assert b"the-next-one" not in reply, reply
    assert daemon.request("GET", "/health")[0] == 200


def statuses(reply: bytes) -> list:
    found = []
    while reply:
        head, _, rest = reply.partition(b"\r\n\r\n")
        found.append(int(head.split()[1]))
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        reply = rest[int(fields.get(b"content-length", b"0")):]
    return found


CLOSE = b"GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
# Each of these is a request that is served; a second request follows it at once.
ODD = {
    "lengths that agree": (post(LENGTH, body=BODY), 200),
    "chunks": (chunks(chunk(BODY), b"0\r\n\r\n"), 200),
    "chunks of one byte": (chunks(*(chunk(BODY[i:i + 1]) for i in range(len(BODY))), b"0\r\n\r\n"), 200),
    "chunk extensions": (chunks(chunk(BODY, b";name=value;other=\"quoted \\\" one\""), b"0;last\r\n\r\n"), 200),
    "chunk sizes with zeros": (chunks(b"000" + chunk(BODY), b"000\r\n\r\n"), 200),
    "trailers": (chunks(chunk(BODY), b"0\r\nX-Trailer: a\r\nAuthorization: Bearer x\r\n\r\n"), 200),
    "an absolute target": (b"GET http://localhost/health HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
    "an absolute target of elsewhere": (b"GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\n\r\n", 421),
    "a folded header": (post(b"X: a\r\n b", LENGTH, body=BODY), 200),
    "header names in any case": (post(LENGTH.upper(), b"cOnTeNt-TyPe: application/json", body=BODY), 200),
    "an unknown method": (b"BREW /health HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
    "an empty line first": (b"\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", None),
    "a body that GET has": (b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", None),
    "a refused body": (post(b"Content-Length: 5", body=b"hello", path=b"/nowhere"), 404),
    "a refused body in chunks": (post(b"Transfer-Encoding: chunked", body=chunk(NEXT) + b"0\r\n\r\n",
                                      path=b"/nowhere"), None),
}


@pytest.mark.parametrize("pieces", [0, 1])
@pytest.mark.parametrize("name", ODD)
def test_odd_requests_are_read_to_their_end(daemon, name, pieces):
    request, status = ODD[name]
    reply = talk(daemon, request + CLOSE, pieces)
    found = statuses(reply)
    if status is None:  # it may be refused, which closes the connection, or served
        assert found in ([200, 200], [found[0]]) and (found[0] == 200 or 400 <= found[0] < 500), reply
    else:
        assert found == [status, 200], reply
    assert b"the-next-one" not in reply


def test_pipelined_requests_are_answered_in_order(daemon):
    names = [b"first", b"second", b"third", b"fourth"]
    sent = b""
    for i, name in enumerate(names):
        if i % 2:
            sent += b"GET /version HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: " + name + b"\r\n\r\n"
        else:
            sent += post(LENGTH, b"X-Request-Id: " + name, body=BODY)
    for pieces in (0, 7):
        reply = talk(daemon, sent + CLOSE, pieces)
        assert statuses(reply) == [200] * 5
        places = [reply.index(b"X-Request-Id: " + name) for name in names]
        assert places == sorted(places)


# --- RFC 6455 -----------------------------------------------------------------------------------


class WebSocket:
    """A WebSocket client that can break every rule of the protocol."""

    def __init__(self, daemon, path: str = "/v1/stream"):
        self.socket = daemon.raw()
        self.socket.settimeout(20)
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.take(1)
        assert b" 101 " in head and b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head

    def take(self, n: int) -> bytes:
        taken = b""
        while len(taken) < n:
            part = self.socket.recv(n - len(taken))
            if not part:
                raise EOFError
            taken += part
        return taken

    def frame(self):
        """Opcode and payload of the next frame; (None, b"") at the end."""
        try:
            first, second = self.take(2)
            assert not second & 0x80, "a server must not mask"
            assert not first & 0x70, "no extension was agreed on"
            size = second & 0x7F
            if size > 125:
                size = int.from_bytes(self.take(2 if size == 126 else 8), "big")
            return first & 0x0F, self.take(size)
        except (EOFError, ConnectionError):
            return None, b""

    def send(self, *frames: bytes, slowly: bool = False):
        try:
            for sent in frames:
                for i in range(0, len(sent), 1 if slowly else max(1, len(sent))):
                    self.socket.sendall(sent[i:i + 1] if slowly else sent)
        except ConnectionError:
            pass

    def close_code(self) -> int:
        while True:
            opcode, payload = self.frame()
            if opcode is None:
                return 1006
            if opcode == 8:
                return int.from_bytes(payload[:2], "big") if payload else 1005


def frame(opcode: int, payload: bytes = b"", fin: bool = True, bits: int = 0, mask: bytes = b"\x01\x02\x03\x04",
          length: bytes = b"") -> bytes:
    first = (0x80 if fin else 0) | bits | opcode
    masked = bytes(b ^ mask[i % 4] for i, b in enumerate(payload)) if mask else payload
    size = len(payload)
    if length:
        size_bytes = length
    elif size < 126:
        size_bytes = bytes([size])
    elif size < 65536:
        size_bytes = b"\x7e" + size.to_bytes(2, "big")
    else:
        size_bytes = b"\x7f" + size.to_bytes(8, "big")
    return bytes([first, size_bytes[0] | (0x80 if mask else 0)]) + size_bytes[1:] + mask + masked


TEXT, BINARY, CLOSING, PING, PONG = 1, 2, 8, 9, 10
PING_OP = b'{"op":"ping","nonce":"gr\xc3\xbc\xc3\x9fe \xf0\x9f\x98\x80"}'
PONG_OP = {"op": "pong", "nonce": "grüße 😀"}

BROKEN = {
    "reserved bit 1": (1002, frame(TEXT, PING_OP, bits=0x40)),
    "reserved bit 2": (1002, frame(TEXT, PING_OP, bits=0x20)),
    "reserved bit 3": (1002, frame(TEXT, PING_OP, bits=0x10)),
    "reserved opcode 3": (1002, frame(3, PING_OP)),
    "reserved opcode 7": (1002, frame(7)),
    "reserved control opcode 11": (1002, frame(11)),
    "reserved control opcode 15": (1002, frame(15)),
    "no mask": (1002, frame(TEXT, PING_OP, mask=b"")),
    "a ping without mask": (1002, frame(PING, b"", mask=b"")),
    "a ping of 126 bytes": (1002, frame(PING, b"p" * 126)),
    "a fragmented ping": (1002, frame(PING, b"p", fin=False)),
    "a fragmented close": (1002, frame(CLOSING, b"\x03\xe8", fin=False)),
    "a continuation of nothing": (1002, frame(0, PING_OP)),
    "a text inside a text": (1002, frame(TEXT, b"{", fin=False) + frame(TEXT, PING_OP)),
    # A protocol error by RFC 6455, 5.2; the Beast of Boost 1.81 says that it is too long.
    "a length with its high bit": ((1002, 1009), frame(TEXT, length=b"\x7f\x80" + bytes(7))),
    "a length of 4 GiB": (1009, frame(TEXT, length=b"\x7f" + (1 << 32).to_bytes(8, "big"))),
    "fragments beyond the limit": (1009, frame(TEXT, b"x" * 3_000_000, fin=False) + frame(0, b"x" * 3_000_000)),
    "binary": (1003, frame(BINARY, PING_OP)),
    "not UTF-8": (1007, frame(TEXT, b"\xc3\x28")),
    "an overlong character": (1007, frame(TEXT, b"\xc0\xaf")),
    "a surrogate": (1007, frame(TEXT, b"\xed\xa0\x80")),
    "beyond Unicode": (1007, frame(TEXT, b"\xf4\x90\x80\x80")),
    "a character cut off": (1007, frame(TEXT, b"\xf0\x9f\x98")),
    "a character broken over frames": (1007, frame(TEXT, b"\xf0\x9f", fin=False) + frame(0, b"(\x80")),
    "a close of one byte": (1002, frame(CLOSING, b"\x03")),
    "a close with a reason that is not UTF-8": (1002, frame(CLOSING, b"\x03\xe8\xff\xff")),
    **{f"close code {code}": (1002, frame(CLOSING, code.to_bytes(2, "big")))
       for code in (0, 999, 1004, 1005, 1006, 1015, 1016, 2999)},
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_frame_ends_its_socket_with_the_right_code(daemon, name):
    code, sent = BROKEN[name]
    broken = WebSocket(daemon)
    other = WebSocket(daemon)
    broken.send(sent)
    assert broken.close_code() in (code if isinstance(code, tuple) else (code,))
    other.send(frame(TEXT, PING_OP))
    opcode, payload = other.frame()
    assert opcode == TEXT and json.loads(payload) == PONG_OP
    for one in (broken, other):
        one.socket.close()
    assert daemon.request("GET", "/health")[0] == 200


GOOD = {
    "one frame": [frame(TEXT, PING_OP)],
    "a mask of zeros": [frame(TEXT, PING_OP, mask=bytes(4))],
    "fragments of one byte": [frame(TEXT if i == 0 else 0, PING_OP[i:i + 1], fin=i + 1 == len(PING_OP))
                              for i in range(len(PING_OP))],
    "empty fragments": [frame(TEXT, b"", fin=False), frame(0, b"", fin=False), frame(0, PING_OP, fin=False), frame(0)],
    "pongs that nobody asked for": [frame(PONG, b"?"), frame(TEXT, PING_OP), frame(PONG)],
    "many small messages before": [frame(TEXT, PING_OP)] * 50,
}


@pytest.mark.parametrize("slowly", [False, True])
@pytest.mark.parametrize("name", GOOD)
def test_good_frames_are_understood_however_they_come(daemon, name, slowly):
    one = WebSocket(daemon)
    one.send(*GOOD[name], slowly=slowly)
    wanted = sum(1 for sent in GOOD[name] if sent[0] & 0x8F in (0x80, 0x81))
    for _ in range(wanted):
        opcode, payload = one.frame()
        assert opcode == TEXT and json.loads(payload) == PONG_OP
    one.send(frame(CLOSING, b"\x03\xe8bye"))
    assert one.close_code() == 1000
    one.socket.close()


def test_control_frames_between_fragments(daemon):
    one = WebSocket(daemon)
    half = PING_OP.index(b"\xf0") + 2  # the cut is in the middle of a character
    one.send(frame(TEXT, PING_OP[:half], fin=False), frame(PING, b"are you there?"), frame(PONG),
             frame(0, PING_OP[half:half + 1], fin=False), frame(PING, b""), frame(0, PING_OP[half + 1:]))
    got = [one.frame() for _ in range(3)]
    assert sorted(opcode for opcode, _ in got) == [TEXT, PONG, PONG]
    assert json.loads(next(payload for opcode, payload in got if opcode == TEXT)) == PONG_OP
    assert b"are you there?" in [payload for opcode, payload in got if opcode == PONG]
    # A close frame between fragments ends the connection and the unfinished message.
    one.send(frame(TEXT, b"{", fin=False), frame(CLOSING, b"\x0b\xb8"))
    assert one.close_code() == 3000
    one.socket.close()


# RFC 6455 defines no close codes from 5000 on.
@pytest.mark.parametrize("code", [1000, 1001, 1003, 1007, 1011, 3000, 4999, 5000, 65535])
def test_a_close_is_answered_and_ends_the_socket(daemon, code):
    one = WebSocket(daemon)
    one.send(frame(CLOSING, code.to_bytes(2, "big") + b"why"), frame(TEXT, PING_OP))
    assert one.close_code() in (code, 1000)
    assert one.frame() == (None, b"")
    one.socket.close()


def test_a_close_without_a_code_is_answered(daemon):
    one = WebSocket(daemon)
    one.send(frame(CLOSING))
    assert one.close_code() in (1005, 1000)
    one.socket.close()


HANDSHAKE = {"Host": "localhost", "Upgrade": "websocket", "Connection": "Upgrade",
             "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version": "13"}


@pytest.mark.parametrize("field,value", [
    ("Upgrade", "h2c"), ("Connection", "close"), ("Sec-WebSocket-Key", None), ("Sec-WebSocket-Key", "short"),
    ("Sec-WebSocket-Key", ""), ("Sec-WebSocket-Version", "8"), ("Sec-WebSocket-Version", None),
    ("Content-Length", "5"),
])
def test_a_broken_handshake_is_refused(daemon, field, value):
    fields = {**HANDSHAKE, field: value}
    head = "".join(f"{name}: {text}\r\n" for name, text in fields.items() if text is not None)
    with daemon.raw() as client:
        client.settimeout(20)
        client.sendall(f"GET /v1/stream HTTP/1.1\r\n{head}\r\nhello".encode())
        reply = b""
        try:
            while part := client.recv(65536):
                reply += part
        except (ConnectionError, socket.timeout):
            pass
    assert reply.startswith(b"HTTP/1.1 4"), reply[:200]
    assert daemon.request("GET", "/health")[0] == 200
