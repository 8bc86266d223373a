#!/usr/bin/env python3
"""Runs `twill inspect` as a user does: checks what it says of good models and why it refuses bad ones."""

import contextlib
import json
import math
import os
import re
import shutil
import struct
import unittest

import split_gguf
from programs import SOURCE, Daemon, run, scratch

GOLDEN = os.path.join(SOURCE, "tests/golden")
NORM = "model.layers.1.input_layernorm.weight"
UP = "model.layers.0.mlp.up_proj.weight"


def read_tensors(path):
    """Returns the tensors of a safetensors file: (dtype, shape, bytes) by name."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        header.pop("__metadata__", None)
        data = file.read()
    return {name: (t["dtype"], t["shape"], data[slice(*t["data_offsets"])]) for name, t in header.items()}


def write_tensors(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def without(tensors, name):
    tensors.pop(name)


def in_half(tensors, name):
    dtype, (rows, cols), values = tensors[name]
    tensors[name] = (dtype, [rows // 2, cols], values[:len(values) // 2])


def as_integers(tensors, name):
    _, shape, values = tensors[name]
    tensors[name] = ("I16", shape, values)


def renamed(tensors, name):
    tensors[name.replace("layers.1", "layers.7")] = tensors.pop(name)


@contextlib.contextmanager
def environment(values):
    """Sets environment variables for programs that are started meanwhile."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


class GoodModels(unittest.TestCase):
    def test_every_golden_folder_would_be_served(self):
        names = [n for n in sorted(os.listdir(GOLDEN)) if os.path.exists(os.path.join(GOLDEN, n, "config.json"))]
        self.assertEqual(len(names), 16)
        for name in names:
            with self.subTest(name):
                done = run("twill", "inspect", os.path.join(GOLDEN, name))
                self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
                self.assertIn("twilld would serve this model", done.stdout)

    def test_shapes_kinds_and_memory_are_those_of_the_folder(self):
        text = run("twill", "inspect", os.path.join(GOLDEN, "mistral-tiny-awq")).stdout
        for line in (r"quantization_config +awq, 4 bits, group 64", r"weights AWQ-4 +14 tensors, [\d.]+ KiB",
                     r"layers +2 of width 128, MLP 256", r"attention +4 heads of 32, 2 of keys and values",
                     r"vocabulary +736", r"context +512 tokens", r"KV per token +512 B",
                     r"at 512 tokens +256 KiB of KV, .* fits", r"fits +yes: all weights stay in device memory",
                     r"a daemon would take +about [\d.]+ [KMG]iB reserved \(weights .*, KV .*, steps .*\), .* of it touched at the start"):
            self.assertRegex(text, r"(?m)^  " + line)

    def test_a_gguf_file_and_a_dummy_are_models_too(self):
        done = run("twill", "inspect", os.path.join(GOLDEN, "llama3-style-tied-bf16/model.gguf"))
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"format +GGUF v3")
        done = run("twill", "inspect", "dummy:opt-175b")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"layers +96 of width 12288")
        self.assertRegex(done.stdout, r"at 1024 tokens .* fits, with weights streamed")
        self.assertNotIn("does not fit", done.stdout)

    def test_the_rows_of_contexts_agree_with_what_a_daemon_has_room_for(self):
        done = run("twill", "inspect", "dummy:llama2-7b?layers=2&vocab=1000", "--set", "device.memory=1200MiB")
        self.assertEqual(done.returncode, 0, done.stdout)
        room = int(re.search(r"KV for (\d+) tokens of all requests", done.stdout).group(1))
        rows = re.findall(r"(?m)^  at (\d+) tokens .* in all, (.*)$", done.stdout)
        self.assertGreater(len(rows), 1, done.stdout)
        for tokens, says in rows:
            self.assertEqual(says, "fits" if int(tokens) <= room else "more than there is room for", done.stdout)
        self.assertEqual("longer requests are refused" in done.stdout, room < int(rows[-1][0]), done.stdout)

    def test_a_model_larger_than_the_memory_is_streamed_at_a_speed(self):
        """A checkpoint that a daemon would stream, since it has less memory than the file is long."""
        with scratch() as folder:
            path = os.path.join(folder, "larger.gguf")
            written = run("twill-synth", "smollm2-135m?layers=24&hidden=256&mlp=1024&vocab=2000&heads=4&kv-heads=4", path, "--format", "gguf", "--gguf-kind", "F16", "-q")
            self.assertEqual(written.returncode, 0, written.stderr)
            cache = {"XDG_CACHE_HOME": folder}  # an empty cache, which has no measured speeds of this machine
            limits = ["--set", "device.memory=40MiB", "--set", "kv.memory=2MiB", "--set", "scheduler.max_running=4",
                      "--set", "scheduler.max_step_tokens=32", "--set", f"offload.dir={folder}"]
            in_host, on_disk = [(*limits, "--set", f"offload.host_memory={size}") for size in ("64MiB", "1MiB")]
            places = {in_host: "come from host memory in each step", on_disk: "from the disk of " + folder}
            for settings, place in places.items():  # no speeds of this machine are known yet, and `twill inspect` measures little
                told = run("twill", "inspect", path, *settings, env=cache)
                self.assertEqual((told.returncode, told.stderr), (0, ""), told.stdout)
                self.assertRegex(told.stdout, r"(?m)^  fits +streamed: \d+ % of the weights \([\d.]+ MiB\) stay in device memory, .*" + place)
                self.assertRegex(told.stdout, r"(?m)^  speed +at most about [\d.e+]+ tokens/s with one request: each token takes .* at [\d.]+ GB/s")
            told = run("twill", "doctor", "--model", path, *on_disk, env=cache, timeout=120)
            self.assertEqual(told.returncode, 0, told.stderr)
            self.assertRegex(told.stdout, r"(?m)^  fits +streamed: .*" + places[on_disk])
            self.assertRegex(told.stdout, r"(?m)^  speed +about [\d.e+]+ tokens/s with one request.*, bound by .* measured now")
            for settings, place in places.items():  # now the speeds are known, and the output says where they come from
                told = run("twill", "inspect", path, *settings, env=cache)
                self.assertRegex(told.stdout, r"(?m)^  fits +streamed: .*" + place)
                self.assertRegex(told.stdout, r"(?m)^  speed +about .* measured by an earlier run")
            # A daemon places the weights as `twill inspect` predicted.
            percent = int(re.search(r"streamed: (\d+) %", told.stdout).group(1))
            with environment(cache), Daemon("--model", path, *on_disk) as daemon:
                placed = daemon.wait_for(r"streaming weights .*: (\d+) % device, (\d+) % host, (\d+) % disk")
                self.assertLessEqual(abs(int(placed.group(1)) - percent), 3, (placed.group(0), told.stdout))
            refused = run("twill", "inspect", path, "--set", "device.memory=1MiB", env=cache)
            self.assertRegex(refused.stdout, r"(?m)^  fits +no, not even streamed: `device.memory` must ")
            self.assertRegex(refused.stdout, r"nothing +twilld would serve this model with more memory")

    def test_a_model_in_several_gguf_files_is_one_model(self):
        whole = os.path.join(GOLDEN, "llama3-style-tied-bf16/model.gguf")
        facts = [line for line in run("twill", "inspect", whole).stdout.splitlines()[2:]
                 if "  name " not in line and "memory" not in line]
        with scratch() as folder:
            parts = split_gguf.split(whole, folder, "tiny", 3)
            for path in [*parts, folder]:
                with self.subTest(path):
                    done = run("twill", "inspect", path)
                    self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
                    self.assertRegex(done.stdout, r"format +GGUF v3, 3 files\n")
                    self.assertEqual([line for line in done.stdout.splitlines()[2:]
                                      if "  name " not in line and "memory" not in line], facts)
            os.remove(parts[1])
            for path in (parts[0], parts[2], folder):
                done = run("twill", "inspect", path)
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertEqual(done.stdout.split("\nrefused\n")[1].strip(),
                                 f"{parts[1]}: No such file or directory; this is part 2 of 3 of a model in several files")

    def test_buffers_beside_the_weights_change_nothing(self):
        plain = run("twill", "inspect", os.path.join(GOLDEN, "llama-tiny-fp16")).stdout.splitlines()[1:]
        with scratch() as parent:
            folder = os.path.join(parent, "llama-tiny-fp16")
            shutil.copytree(os.path.join(GOLDEN, "llama-tiny-fp16"), folder)
            weights = os.path.join(folder, "model.safetensors")
            tensors = read_tensors(weights)
            for name, shape in (("rotary_emb.cos_cached", [64, 32]), ("model.rotary_emb.inv_freq", [16]),
                                ("model.layers.1.self_attn.rotary_emb.sin_cached", [1, 1, 64, 32])):
                tensors[name] = ("F32", shape, bytes(4 * math.prod(shape)))
            write_tensors(weights, tensors)
            with open(os.path.join(folder, "model.safetensors.index.json"), "w") as file:
                names = [*tensors, "model.layers.0.self_attn.rotary_emb.inv_freq"]
                json.dump({"weight_map": {name: "model.safetensors" for name in names}}, file)
            done = run("twill", "inspect", folder)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            self.assertEqual([line for line in done.stdout.splitlines()[1:] if "memory" not in line],
                             [line for line in plain if "memory" not in line])


class RefusedModels(unittest.TestCase):
    def refused(self, change=None, config=None, remove=None):
        """Changes a copy of a good folder and returns the reasons for which `twill inspect` refuses it."""
        with scratch() as parent:
            folder = os.path.join(parent, "model")
            shutil.copytree(os.path.join(GOLDEN, "llama-tiny-fp16"), folder)
            weights = os.path.join(folder, "model.safetensors")
            if change:
                tensors = read_tensors(weights)
                change(tensors)
                write_tensors(weights, tensors)
            if config:
                path = os.path.join(folder, "config.json")
                with open(path) as file:
                    values = {**json.load(file), **config}
                with open(path, "w") as file:
                    json.dump(values, file)
            if remove:
                os.remove(os.path.join(folder, remove))
            done = run("twill", "inspect", folder)
            self.assertEqual(done.returncode, 1, done.stdout)
            lines = done.stdout.split("\nrefused\n")[1].splitlines()
            reasons = [line.strip().replace(folder, "FOLDER") for line in lines]
            if change:  # the daemon gives the first of these reasons
                daemon = run("twilld", "--listen", "127.0.0.1:0", "--model", folder, timeout=30)
                self.assertEqual(daemon.returncode, 1)
                self.assertIn(lines[0].strip(), daemon.stderr)
            return reasons

    def test_a_missing_tensor_is_named(self):
        self.assertEqual(self.refused(lambda t: without(t, NORM)), [f"tensor `{NORM}` is not in the file"])

    def test_a_wrong_shape_is_named_with_the_right_one(self):
        _, (rows, cols), _ = read_tensors(os.path.join(GOLDEN, "llama-tiny-fp16/model.safetensors"))[UP]
        self.assertEqual(self.refused(lambda t: in_half(t, UP)),
                         [f"tensor `{UP}` must have shape ({rows}, {cols}), got ({rows // 2}, {cols})"])

    def test_elements_that_are_no_weights_are_named(self):
        self.assertEqual(self.refused(lambda t: as_integers(t, UP)),
                         [f"tensor `{UP}` has type I16; weights must be F32, F16 or BF16"])

    def test_a_tensor_without_a_role_is_named_and_so_is_the_missing_one(self):
        other = NORM.replace("layers.1", "layers.7")
        self.assertEqual(self.refused(lambda t: renamed(t, NORM)),
                         [f"tensor `{other}` has no role in a llama model of 2 layers",
                          f"tensor `{NORM}` is not in the file"])

    def test_of_many_reasons_the_first_dozen_is_shown(self):
        def all_in_half(tensors):
            for name in [n for n, t in tensors.items() if ".layers." in n and len(t[1]) == 2]:
                in_half(tensors, name)
        reasons = self.refused(all_in_half)
        self.assertEqual(len(reasons), 13)
        self.assertRegex(reasons[-1], r"^and \d+ more reasons$")

    def test_a_family_that_twill_does_not_know_is_one_reason(self):
        reasons = self.refused(config={"architectures": ["MambaForCausalLM"], "model_type": "mamba"})
        self.assertEqual(len(reasons), 1, reasons)
        self.assertRegex(reasons[0], r'^FOLDER: config.json: `architectures` must name one of .*"MambaForCausalLM"')

    def test_a_folder_without_a_tokenizer_is_one_reason(self):
        reasons = self.refused(remove="tokenizer.model")
        self.assertEqual(len(reasons), 1, reasons)
        self.assertRegex(reasons[0], r"^FOLDER: must have tokenizer.json, tokenizer.model, ")

    def test_nothing_there_is_one_reason(self):
        done = run("twill", "inspect", "/no/such/model")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stdout.split("\nrefused\n")[1].splitlines()), 1, done.stdout)
        self.assertIn("/no/such/model", done.stdout)


if __name__ == "__main__":
    unittest.main()
