#!/usr/bin/env python3
"""Packs a bundle for a machine with a GPU and runs its report there on the processor: part by part, resumed, and with a failure."""

import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["TWILL_BIN_DIR"]).parent
SOURCE = pathlib.Path(os.environ["TWILL_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "tools/detail"))
import torch_beside


def call(*command, cwd=None):
    return subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, cwd=cwd, timeout=200, check=False)


class Report(unittest.TestCase):
    def test_pytorch_gets_the_shape_of_every_family(self):
        shapes = {path.parent.name: torch_beside.shape_of(json.loads(path.read_text()))
                  for path in (SOURCE / "tests/golden").glob("*/config.json")}
        self.assertGreater(len(shapes), 8)
        self.assertEqual(shapes["chatglm3-tiny-fp16"], (128, 2, 4, 2, 32, 192, 768, True))
        self.assertEqual(shapes["qwen-v1-tiny-bf16"], (128, 2, 4, 4, 32, 256, 768, True))
        self.assertEqual(shapes["mistral-tiny-awq"], (128, 2, 4, 2, 32, 256, 736, True))
        self.assertEqual(shapes["opt-tiny-fp32"], (96, 2, 3, 3, 32, 256, 704, False))

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
            self.assertRegex(golden.stdout, "passed +an engine whose steps run ahead +All tests passed")
            sanitizer = report("--part", 3)
            self.assertEqual(sanitizer.returncode, 0)
            self.assertIn("not run", sanitizer.stdout)

            for part in (5, 6, 7, 8, 9):
                with self.subTest(part=part):
                    measured = report("--part", part, "--tiny")
                    self.assertEqual(measured.returncode, 0, measured.stdout + measured.stderr)
            self.assertEqual(list((folder / "models").iterdir()), [], "models go when their part has ended")

            next((folder / "tests/golden").glob("baichuan2-7b*/golden.json")).write_text("{}")
            broken = report("--part", 2, "--again", "--only", "each family*")
            self.assertEqual(broken.returncode, 1, broken.stdout)
            with (folder / "report/report.csv").open() as file:
                rows = list(csv.DictReader(file))
            outcomes = {row["name"]: row["outcome"].split()[0] for row in rows}
            self.assertEqual(outcomes["ops"], "passed")
            self.assertEqual(outcomes["golden models"], "failed")
            self.assertEqual(outcomes["memcheck of ops"], "not")
            plot = (folder / "report/report.svg").read_text()
            for model in ("mistral-7b-awq", "baichuan2-13b-gptq", "chatglm3-6b", "qwen-14b"):
                for name in (f"{model}, 1 at once", f"{model}, 32 at once"):
                    row = next(row for row in rows if row["name"] == name)
                    self.assertGreater(float(row["tokens_per_second"]), 0)
                    self.assertIn(name, plot)
            for order in ("zigzag", "diagonal", "fused"):
                row = next(row for row in rows if row["name"].startswith(order))
                self.assertGreater(float(row["tokens_per_second"]), 0)
            self.assertIn("## Part 2", (folder / "report/report.md").read_text())


if __name__ == "__main__":
    unittest.main()
