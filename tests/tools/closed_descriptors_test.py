#!/usr/bin/env python3
"""Starts the programs with descriptors 0 to 2 closed: a file that they open must not get what they print."""

import itertools
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest
import urllib.request

from programs import BIN, SOURCE, scratch

MODEL = "dummy:opt-125m?layers=1&vocab=1000"


def without(closed, program, *arguments):
    """The command that runs a program with these descriptors closed."""
    closing = " ".join(f"{number}<&-" for number in closed)
    return ["sh", "-c", f'exec "$@" {closing}', "sh", os.path.join(BIN, program), *arguments]


class Programs(unittest.TestCase):
    def test_every_program_opens_them_before_anything_else(self):
        sources = [path for path in pathlib.Path(SOURCE, "tools").rglob("*.cpp")
                   if re.search(r"^int main\(", path.read_text(), re.MULTILINE)]
        self.assertGreaterEqual(len(sources), 7)
        for path in sources:
            self.assertRegex(path.read_text(), r"\nint main\([^)]*\) \{\n  twill::open_missing_standard_streams\(\);\n",
                             path)


class Daemon(unittest.TestCase):
    def test_no_line_of_the_log_gets_into_a_file_of_the_daemon(self):
        for closed in itertools.chain.from_iterable(itertools.combinations(range(3), n) for n in (1, 3)):
            with self.subTest(closed=closed), scratch() as folder:
                self.runs_and_logs(closed, folder)

    def runs_and_logs(self, closed, folder):
        address, trace = os.path.join(folder, "address"), os.path.join(folder, "trace")
        blocks = os.path.join(folder, "blocks")
        os.mkdir(blocks, 0o700)
        process = subprocess.Popen(
            without(closed, "twilld", "--model", MODEL, "--listen", "127.0.0.1:0", "--address-file", address, "--set",
                    f"scheduler.trace={trace}", "--set", f"kv.disk_dir={blocks}", "--set", "kv.disk_memory=16MiB",
                    "--set", "log.level=debug"),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            end = time.monotonic() + 30
            while not (os.path.exists(address) and os.path.getsize(address) > 0):
                self.assertIsNone(process.poll())
                self.assertLess(time.monotonic(), end)
                time.sleep(0.02)
            for number in range(3):
                self.assertEqual(os.readlink(f"/proc/{process.pid}/fd/{number}"), "/dev/null")
            with open(address) as file:
                url = "http://" + file.read().split("//")[-1].strip()
            body = b'{"prompt": "Once upon a time", "max_tokens": 4}'
            request = urllib.request.Request(url + "/v1/completions", body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                self.assertEqual(answer.status, 200)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(20), 0)
            with open(trace) as file:
                lines = file.read().splitlines()
            self.assertGreater(len(lines), 1)
            for line in lines:
                self.assertNotRegex(line, r"^\d{4}-\d\d-\d\d |debug|info")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


if __name__ == "__main__":
    unittest.main()
