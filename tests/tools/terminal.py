"""A terminal in which tests run twill, as a user does."""

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

from programs import BIN


class Terminal:
    """Runs twill at a terminal, as a user does, and keeps what it shows."""

    def __init__(self, *arguments, env=None, columns=0, rows=0):
        """Without `columns` and `rows` the terminal does not report a size."""
        self.shown = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.end, inner = pty.openpty()
        self.resize(columns, rows)
        # A session of its own, so that keys such as Ctrl-C reach the program as signals.
        self.process = subprocess.Popen(
            [os.path.join(BIN, "twill"), *arguments], stdin=inner, stdout=inner, stderr=inner, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", **(env or {})})
        os.close(inner)

    def resize(self, columns, rows):
        fcntl.ioctl(self.end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        if not select.select([self.end], [], [], seconds)[0]:
            return False
        try:
            self.shown += self.decoder.decode(os.read(self.end, 65536))
        except OSError:
            return False
        return True

    def wait_for(self, pattern, timeout=20):
        """Waits for a match; returns the text shown up to its end, and drops that text, so that the next call finds what comes
        after it."""
        end = time.monotonic() + timeout
        while not (found := re.search(pattern, self.shown)):
            assert time.monotonic() < end, f"the terminal must show {pattern!r}, got {self.shown!r}"
            self.read(0.1)
        before, self.shown = self.shown[:found.end()], self.shown[found.end():]
        return before

    def type(self, text):
        left = text.encode()
        while left:
            if select.select([], [self.end], [], 0.1)[1]:
                left = left[os.write(self.end, left[:1024]):]
            self.read(0)

    def close(self):
        """Closes the terminal, as when the user closes the window."""
        os.close(self.end)
        self.end = -1

    def ends_with(self, timeout=10):
        end = time.monotonic() + timeout
        while self.end >= 0 and self.process.poll() is None and time.monotonic() < end:
            self.read(0.05)
        while self.end >= 0 and self.read(0):
            pass
        return self.process.wait(max(end - time.monotonic(), 1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        if self.end >= 0:
            os.close(self.end)
