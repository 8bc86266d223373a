#!/usr/bin/env python3
"""Builds the harness of CUDA's kernels as a machine with a GPU would: with nvcc, from the tree alone."""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

from programs import BIN, SOURCE, scratch

BUILD = "tools/gpu-kernels/build"
HAS_NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")


def build(*arguments, tree=SOURCE, **environment):
    return subprocess.run([os.path.join(tree, BUILD), *arguments], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})


class Build(unittest.TestCase):
    def test_the_files_that_are_needed_are_listed(self):
        done = build("--list")
        self.assertEqual(done.returncode, 0, done.stderr)
        listed = done.stdout.split()
        for name in ("gpu/linear/cuda/gemm_w4.hpp", "tests/gpu/linear/linear_fixture.hpp", "tools/gpu-kernels/main.cpp", BUILD):
            self.assertIn(name, listed)
        text = "".join(pathlib.Path(SOURCE, name).read_text() for name in listed)
        for third_party in ("Kokkos_", "caf/", "boost/", "catch2/", "toml++/", "spdlog/"):
            self.assertNotRegex(text, f"#include <{re.escape(third_party)}")

    def test_what_is_missing_is_named(self):
        done = build()
        self.assertEqual(done.returncode, 2)
        self.assertIn("FOLDER", done.stderr)
        with scratch() as folder:
            done = build(folder, CXX="no-such-compiler")
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, "(no-such-compiler|nvcc) must be on PATH")

    @unittest.skipUnless(HAS_NVCC, "nvcc is not on this machine")
    def test_the_listed_files_alone_are_built_and_want_a_gpu(self):
        # The folder is kept beside the build's programs, so that the next run compiles only what has changed.
        folder = pathlib.Path(BIN).parent / "gpu-kernels"
        tree = folder / "tree"
        shutil.rmtree(tree, ignore_errors=True)
        for name in build("--list").stdout.split():
            copy = tree / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(os.path.join(SOURCE, name), copy)
        done = build(str(folder / "made"), "--arch", "90", "--jobs", "2", tree=str(tree))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"sm_90, \d+ of \d+ files compiled in [\d.]+ s")
        program = str(folder / "made" / "gpu-kernels")
        ran = subprocess.run([program], capture_output=True, text=True, check=False,
                             env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertRegex(ran.stderr, r'\Agpu-kernels: no GPU: CUDA says ".*"\n\Z')
        ran = subprocess.run([program, "--often"], capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("--often", ran.stderr)


if __name__ == "__main__":
    unittest.main()
