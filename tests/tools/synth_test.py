#!/usr/bin/env python3
"""Runs twill-synth as a user does: checks files as other readers see them, messages, and that it fails cleanly."""

import json
import os
import pickletools
import resource
import signal
import struct
import subprocess
import time
import unittest
import zipfile

from programs import BIN, run, scratch

SMALL = ["--layers", "2", "--hidden", "96", "--heads", "3", "--mlp", "160", "--vocab", "704"]


def safetensors_header(path):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
        header.pop("__metadata__")
        return header, os.path.getsize(path) - 8 - size


class Synth(unittest.TestCase):
    def test_the_list_has_every_family(self):
        listed = run("twill-synth", "--list").stdout
        for name in ("opt-30b", "mistral-7b-awq", "baichuan2-13b-gptq", "chatglm3-6b", "qwen-14b", "qwen3-8b"):
            self.assertIn(name, listed)

    def test_a_folder_has_what_its_config_says(self):
        with scratch() as folder:
            out = os.path.join(folder, "opt")
            done = run("twill-synth", "opt-125m", out, *SMALL)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, out + "\n", ""))
            header, data = safetensors_header(os.path.join(out, "model.safetensors"))
            with open(os.path.join(out, "config.json")) as file:
                config = json.load(file)
            with open(os.path.join(out, "vocab.json")) as file:
                self.assertEqual(sorted(json.load(file).values()), list(range(704)))
            self.assertEqual((config["vocab_size"], config["hidden_size"]), (704, 96))
            self.assertEqual(header["model.decoder.embed_tokens.weight"]["shape"], [704, 96])
            self.assertEqual(max(t["data_offsets"][1] for t in header.values()), data)

    def test_two_runs_write_the_same_bytes_and_another_seed_does_not(self):
        with scratch() as folder:
            bodies = []
            for name, seed in (("a", "5"), ("b", "5"), ("c", "6")):
                out = os.path.join(folder, name)
                run("twill-synth", "opt-125m", out, *SMALL, "--seed", seed)
                with open(os.path.join(out, "model.safetensors"), "rb") as file:
                    bodies.append(file.read())
            self.assertEqual(bodies[0], bodies[1])
            self.assertNotEqual(bodies[0], bodies[2])

    def test_pytorch_shards_are_sound_zips_of_plain_pickles(self):
        with scratch() as folder:
            out = os.path.join(folder, "opt")
            run("twill-synth", "opt-125m", out, *SMALL, "--format", "bin", "--max-shard-size", "200 kB")
            with open(os.path.join(out, "pytorch_model.bin.index.json")) as file:
                shards = set(json.load(file)["weight_map"].values())
            self.assertGreater(len(shards), 2)
            for shard in shards:
                with zipfile.ZipFile(os.path.join(out, shard)) as archive:
                    self.assertIsNone(archive.testzip())
                    body = archive.read(shard[:-4] + "/data.pkl")
                calls = {arg for op, arg, _ in pickletools.genops(body) if op.name == "GLOBAL"}
                self.assertEqual(calls, {"collections OrderedDict", "torch HalfStorage",
                                         "torch._utils _rebuild_tensor_v2"})

    def test_wrong_names_and_sizes_are_one_line(self):
        for arguments, part in ((["opt-1b", "/tmp/never"], "opt-1.3b"),
                                (["opt-125m", "/tmp/never", "--heads", "5"], "multiple of the 5 heads"),
                                (["opt-125m", "/tmp/never", "--format", "gguf"], "not for opt"),
                                (["opt-125m", "/nonexistent/folder"], "/nonexistent/folder"),
                                (["opt-125m"], "output path")):
            done = run("twill-synth", *arguments)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertIn(part, done.stderr)
        self.assertEqual(run("twill-synth", "--no-such-option").returncode, 2)

    def test_a_script_that_is_wrong_is_one_line_that_names_the_key(self):
        with scratch() as folder:
            path, out = os.path.join(folder, "script.json"), os.path.join(folder, "out.gguf")
            for script, part in (("[]", "must be an object"), ("{", "script.json"), ('{"pieces": []}', "`pieces`"),
                                 ('{"pieces": ["a", ""]}', "`pieces`"), ('{"pieces": ["a"], "control": "a"}', "`control`"),
                                 ('{"pieces": ["a"], "chat_templates": {"x": 1}}', "`chat_templates.x`"),
                                 ('{"pieces": ["a"], "context": 0}', "`context`")):
                with open(path, "w") as file:
                    file.write(script)
                done = run("twill-synth", "scripted", out, "--script", path)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
                self.assertIn(part, done.stderr)
                self.assertFalse(os.path.exists(out))
            for arguments in (["scripted", out], ["opt-125m", out, "--script", path],
                              ["scripted", out, "--script", path, "--layers", "2"],
                              ["scripted", out, "--script", path, "--dry-run"]):
                done = run("twill-synth", *arguments)
                self.assertEqual(done.returncode, 1)
                self.assertIn("--script", done.stderr)

    def test_a_write_that_fails_leaves_nothing(self):
        with scratch() as folder:
            out = os.path.join(folder, "opt")
            program = os.path.join(BIN, "twill-synth")
            limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
            done = subprocess.run([program, "opt-125m", out], preexec_fn=limit, capture_output=True,
                                  text=True, timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertIn("cannot be written", done.stderr)
            self.assertEqual(os.listdir(folder), [])

    def test_an_interrupt_leaves_nothing(self):
        with scratch() as folder:
            out = os.path.join(folder, "opt")
            program = subprocess.Popen([os.path.join(BIN, "twill-synth"), "opt-1.3b", out],
                                       stderr=subprocess.PIPE, text=True)
            deadline = time.monotonic() + 20
            while not os.path.exists(os.path.join(out, "model.safetensors")) and time.monotonic() < deadline:
                time.sleep(0.01)
            program.send_signal(signal.SIGINT)
            _, errors = program.communicate(timeout=20)
            self.assertEqual((program.returncode, os.listdir(folder)), (130, []), errors)


if __name__ == "__main__":
    unittest.main()
