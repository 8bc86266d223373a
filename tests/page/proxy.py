"""A reverse proxy with a path in front: /PREFIX/x of this port is /x of the server's. Bytes go through unread after the head.

cut() is a network that is lost: it breaks off what goes through and lets nothing through until mend()."""

import asyncio
import re
import threading


class Proxy:
    def __init__(self, host, port, prefix):
        self.host, self.port, self.prefix = host, port, prefix
        self.is_cut = False
        self.writers = set()
        self.loop = asyncio.new_event_loop()
        self.started = threading.Event()
        self.thread = threading.Thread(target=self.loop.run_until_complete, args=(self._serve(),), daemon=True)
        self.thread.start()
        assert self.started.wait(10)

    async def _serve(self):
        self.ending = asyncio.Event()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{self.prefix}/"
        self.started.set()
        async with server:
            await self.ending.wait()

    async def _accept(self, reader, writer):
        if self.is_cut:
            return writer.transport.abort()
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            method, path, rest = head.decode("latin-1").split(" ", 2)
            if not path.startswith(self.prefix + "/"):
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                return writer.close()
            if "upgrade: websocket" not in rest.lower():
                rest = re.sub(r"\r\nconnection:[^\r]*", "", rest, flags=re.I).replace("\r\n", "\r\nConnection: close\r\n", 1)
            upstream, sink = await asyncio.open_connection(self.host, self.port)
            sink.write(f"{method} {path[len(self.prefix):]} {rest}".encode("latin-1"))
            self.writers |= {writer, sink}
            await asyncio.gather(self._pump(reader, sink), self._pump(upstream, writer))
            self.writers -= {writer, sink}
        except (OSError, asyncio.IncompleteReadError):
            writer.close()

    @staticmethod
    async def _pump(source, sink):
        try:
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
        except OSError:
            pass
        sink.close()

    def cut(self):
        async def abort():
            self.is_cut = True
            for writer in self.writers:
                writer.transport.abort()
        asyncio.run_coroutine_threadsafe(abort(), self.loop).result(10)

    def mend(self):
        self.is_cut = False

    def close(self):
        self.loop.call_soon_threadsafe(self.ending.set)
        self.thread.join(5)
