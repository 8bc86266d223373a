"""A reverse proxy with a path in front: /PREFIX/x of this port is /x of the server's. Bytes go through unread after the head."""

import asyncio
import re
import threading


class Proxy:


    def __init__(self, host, port, prefix):
        self.host, self.port, self.prefix = host, port, prefix
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
            await asyncio.gather(self._pump(reader, sink), self._pump(upstream, writer))
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

    def close(self):
        self.loop.call_soon_threadsafe(self.ending.set)
        self.thread.join(5)
