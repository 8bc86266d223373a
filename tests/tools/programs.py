"""Helpers that the tests of programs share: they run programs, and a daemon for the length of a test."""

import os
import re
import signal
import subprocess
import tempfile
import threading
import time

BIN = os.environ["TWILL_BIN_DIR"]
SOURCE = os.environ["TWILL_SOURCE_DIR"]


def run(program, *arguments, env=None, timeout=60, stdin=""):
    return subprocess.run([os.path.join(BIN, program), *arguments], capture_output=True, text=True,
                          input=stdin, timeout=timeout, env=None if env is None else {**os.environ, **env})


def default_model():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = os.environ.get("TWILL_DEFAULT_MODEL") or os.path.join(
        cache, "twill/models/SmolLM2-135M-Instruct.Q4_1.gguf")
    assert os.path.exists(path), f"the default model must be in {path}: run `twill default-model`"
    return path


class Daemon:
    """Runs twilld, by default on a free port, and keeps the lines of its log."""

    def __init__(self, *arguments, listen="127.0.0.1:0"):
        self.lines = []
        self.came = threading.Condition()
        self.process = self.start([os.path.join(BIN, "twilld"), "--listen", listen, *arguments],
                                  stderr=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def start(self, command, **how):
        return subprocess.Popen(command, **how)

    def _read(self):
        for line in self.process.stderr:
            with self.came:
                self.lines.append(line.rstrip("\n"))
                self.came.notify_all()
        with self.came:
            self.came.notify_all()

    def wait_for(self, pattern, timeout=30):
        """Waits for a line of the log that matches, and returns the first match from the beginning of the log."""
        end = time.monotonic() + timeout
        with self.came:
            while True:
                for line in self.lines:
                    if found := re.search(pattern, line):
                        return found
                left = end - time.monotonic()
                waits = left > 0 and self.process.poll() is None
                assert waits, f"the log must have a line that matches {pattern!r}, got {self.lines}"
                self.came.wait(min(left, 0.2))

    def ready(self):
        return self.wait_for(r"ready in .* (http://\S+)").group(1)

    def signal(self, number):
        self.process.send_signal(number)

    def ends_with(self, timeout=20):
        """Waits until the daemon has ended and `lines` has the whole log, and returns the exit status."""
        status = self.process.wait(timeout)
        self.reader.join(10)
        return status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(10)
        self.reader.join(10)
        self.process.stderr.close()


def scratch():
    return tempfile.TemporaryDirectory(prefix="twill-test-")
