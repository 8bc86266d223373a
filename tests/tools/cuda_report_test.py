#!/usr/bin/env python3
"""Packs a bundle for a machine with a GPU and runs its report there on the processor: part by part, resumed, and with a failure."""

import csv
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["TWILL_BIN_DIR"]).parent
SOURCE = pathlib.Path(os.environ["TWILL_SOURCE_DIR"])


def call(*command, cwd=None):
    return subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, cwd=cwd, timeout=200, check=False)


class Report(unittest.TestCase):
    def test_a_bundle_runs_its_report_on_the_processor(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) / "bundle"
            packed = call(SOURCE / "tools/gpu-bundle", folder, "--build", BUILD)
            self.assertEqual(packed.returncode, 0, packed.stdout + packed.stderr)
            self.assertNotEqual(call(SOURCE / "tools/gpu-bundle", folder, "--build", BUILD).returncode, 0, "the folder exists")

            def report(*arguments):
                return call(folder / "gpu-report", "--host", *arguments, cwd=folder)

            first = report("--part", 1, "--only", "angles carry*,cuda emulator: bank*")
            self.assertEqual(first.returncode, 0, first.stdout + first.stderr)
            self.assertIn("All tests passed", first.stdout)
            again = report("--part", 1, "--only", "no such test")
            self.assertIn("has ended before", again.stdout)
            golden = report("--part", 2, "--only", "[golden]")
            self.assertEqual(golden.returncode, 0, golden.stdout + golden.stderr)
            sanitizer = report("--part", 3)
            self.assertEqual(sanitizer.returncode, 0)
            self.assertIn("not run", sanitizer.stdout)

            next((folder / "tests/golden").glob("baichuan2-7b*/golden.json")).write_text("{}")
            broken = report("--part", 2, "--again", "--only", "each family*")
            self.assertEqual(broken.returncode, 1, broken.stdout)
            with (folder / "report/report.csv").open() as file:
                rows = list(csv.DictReader(file))
            self.assertEqual([row["outcome"].split()[0] for row in rows], ["passed", "passed", "failed", "not", "not"])
            self.assertIn("## Part 2", (folder / "report/report.md").read_text())


if __name__ == "__main__":
    unittest.main()
