#!/usr/bin/env python3
"""Runs `twill offload` as a user does: every schedule and tier must give the same outputs; checks its report, what it
refuses, and that an interrupted run writes the outputs that it has."""

import csv
import json
import os
import random
import re
import signal
import subprocess
import time
import unittest

from programs import BIN, SOURCE, run, scratch

GOLDEN = os.path.join(SOURCE, "tests/golden")
MODEL = os.path.join(GOLDEN, "llama-tiny-fp16")


def offload(*arguments, **kwargs):
    return run("twill", "offload", *arguments, **kwargs)


class Offload(unittest.TestCase):
    def setUp(self):
        held = scratch()
        self.addCleanup(held.cleanup)
        self.folder = held.name
        self.prompts = os.path.join(self.folder, "in.jsonl")
        with open(self.prompts, "w") as file:
            for line in ({"prompt": list(range(5, 40))}, {"prompt": "hello", "max_tokens": 3},
                         {"token_ids": [7, 8]}):
                file.write(json.dumps(line) + "\n")

    def outputs(self, *arguments):
        path = os.path.join(self.folder, "out.jsonl")
        done = offload("--model", MODEL, "--prompts", self.prompts, "--output", path, "--gen-len", "6",
                       "--ignore-eos", "--set", "model.compute=f32", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path) as file:
            return [json.loads(line) for line in file], done.stdout

    def test_schedules_and_tiers_agree(self):
        wanted, text = self.outputs()
        self.assertEqual([len(o["token_ids"]) for o in wanted], [6, 3, 6])
        self.assertEqual({o["finish_reason"] for o in wanted}, {"length"})
        for word in ("model size", "cache size", "hidden size (p)", "peak gpu mem", "prefill latency",
                     "prefill throughput", "decode throughput", "total throughput"):
            self.assertIn(word, text)
        for order in ("zigzag", "diagonal", "fused"):
            kv, hidden = ("100 0", "100 0") if order == "fused" else ("30 40", "0 50")
            for parts in ("false", "true"):
                got, text = self.outputs("--search-order", order, "--gpu-batch-size", "2", "--num-gpu-batches",
                                         "2", "--percent", *f"0 30 {kv} {hidden}".split(), "--offload-dir",
                                         self.folder, "--sep-layer", parts)
                self.assertEqual(got, wanted)
                self.assertRegex(text, r"moved to the device per round .* from disk")
                self.assertEqual("activations per round" in text, order != "fused")

    def test_weights_rounded_to_8_bits_are_streamed_like_others(self):
        rounded = "--set", "model.compute=w8a8"
        wanted, _ = self.outputs(*rounded)
        for order in ("zigzag", "diagonal"):
            tiers = ("--search-order", order, "--gpu-batch-size", "2", "--num-gpu-batches", "2",
                     "--percent", *"20 30 100 0 100 0".split(), "--offload-dir", self.folder)
            got, text = self.outputs(*tiers, *rounded)
            self.assertEqual(got, wanted)
            _, exact = self.outputs(*tiers)
            moved = r"moved to the device per round .*: ([0-9.]+ [A-Za-z]+) from disk"
            self.assertNotEqual(re.search(moved, text)[1], re.search(moved, exact)[1])

    def test_attention_at_home_changes_no_token_and_moves_no_kv(self):
        wanted, _ = self.outputs()
        got, text = self.outputs("--percent", *"100 0 0 100 100 0".split(), "--cpu-cache-compute")
        self.assertEqual(got, wanted)
        self.assertIn("attended there", text)
        self.assertNotIn("KV per round", text)

    def test_kv_in_four_bits_is_said_and_moves_less(self):
        def kib_stored(*flags):
            done = offload("--model", "dummy:opt-125m?layers=6&vocab=1000", "--prompt-len", "64", "--gen-len",
                           "8", "--percent", *"100 0 0 0 100 0".split(), "--offload-dir", self.folder, *flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual("in 4 bits off the device" in done.stdout, bool(flags))
            number, unit = re.search(r"loaded, ([\d.]+) (KiB|MiB) stored", done.stdout).groups()
            return float(number) * (1024 if unit == "MiB" else 1)
        self.assertLess(kib_stored("--compress-cache"), 0.4 * kib_stored())

    def test_simulated_links_and_projections_say_so(self):
        done = offload("--model", MODEL, "--prompt-len", "8", "--gen-len", "12", "--cut-gen-len", "5",
                       "--percent", *"0 100 100 0 100 0".split(), "--set", "device.link_gbps=1",
                       "--log-file", os.path.join(self.folder, "log"), "--timeline",
                       os.path.join(self.folder, "picture.svg"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("projected: True", done.stdout)
        self.assertIn("simulated: a link of 1 GB/s", done.stdout)
        with open(os.path.join(self.folder, "log")) as file:
            self.assertIn("total throughput", file.read())
        with open(os.path.join(self.folder, "picture.svg")) as file:
            self.assertIn("simulated", file.read())

    def assert_memory_as_projected(self, *arguments, within):
        done = offload(*arguments, "--offload-dir", self.folder)
        self.assertEqual(done.returncode, 0, (arguments, done.stderr))
        off = float(re.search(r"measured \(([-+][\d.]+) %\)", done.stdout)[1])
        self.assertLessEqual(abs(off), within, (arguments, done.stdout))

    def test_memory_is_as_projected_for_few_rows_too(self):
        for order in ("zigzag", "diagonal", "fused"):
            for percent in ("100 0 100 0 100 0", "0 50 100 0 100 0"):
                for parts in ("false", "true"):
                    self.assert_memory_as_projected(
                        "--model", "dummy:opt-125m?layers=8&vocab=2000", "--prompt-len", "8", "--gen-len", "4",
                        "--gpu-batch-size", "4", "--num-gpu-batches", "3", "--search-order", order, "--percent",
                        *percent.split(), "--sep-layer", parts, within=0.5)

    def test_memory_is_as_projected_for_quantised_weights_too(self):
        for model in ("dummy:mistral-7b-awq?layers=2&vocab=2000", "dummy:baichuan2-13b-gptq?layers=1&vocab=2000"):
            for compute in ("int8", "w8a8"):
                for percent in ("100 0 100 0 100 0", "0 50 100 0 100 0"):
                    self.assert_memory_as_projected(
                        "--model", model, "--prompt-len", "8", "--gen-len", "2", "--gpu-batch-size", "2",
                        "--num-gpu-batches", "2", "--percent", *percent.split(), "--set",
                        f"model.compute={compute}", within=0.5)

    def test_memory_is_as_projected_whatever_is_asked_for(self):
        """Projects the memory of tiny models, where even the smallest array is a noticeable share of the whole."""
        draw = random.Random(14)
        models = [name for name in sorted(os.listdir(GOLDEN))
                  if os.path.exists(os.path.join(GOLDEN, name, "config.json"))]
        self.assertGreater(len(models), 10)
        for model in 2 * models:
            order = draw.choice(("zigzag", "diagonal", "fused"))
            device = draw.choice((0, 25, 50, 77, 100))
            percent = [device, draw.choice((0, 100 - device)), 100, 0, 100, 0]
            if order != "fused":
                percent[2:] = draw.choice(((100, 0, 100, 0), (50, 50, 100, 0), (0, 0, 0, 100), (50, 0, 0, 0)))
            self.assert_memory_as_projected(
                "--model", os.path.join(GOLDEN, model), "--prompt-len", str(draw.choice((1, 16, 60))), "--gen-len",
                "3", "--gpu-batch-size", str(draw.choice((1, 5, 8))), "--num-gpu-batches", str(draw.choice((1, 3))),
                "--search-order", order, "--percent", *map(str, percent), "--sep-layer",
                draw.choice(("true", "false")), "--set", "model.compute=" + draw.choice(("f32", "bf16", "int8", "w8a8")),
                "--set", "device.threads=" + draw.choice(("1", "2", "3")), within=2)

    def test_parts_of_layers_travel_apart_in_less_memory(self):
        def peak(*flags):
            done = offload("--model", "dummy:opt-125m?layers=8&vocab=2000", "--prompt-len", "8", "--gen-len", "4",
                           "--percent", *"0 0 0 50 0 50".split(), "--offload-dir", self.folder, *flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            return float(re.search(r"peak gpu mem: ([\d.]+) GB", done.stdout)[1]), done.stdout
        whole, _ = peak()
        parts, text = peak("--sep-layer", "true", "--pin-weight", "false")
        self.assertIn("ring of 3 parts of layers", text)
        # The ring holds three layers of 12 h^2 values of 2 bytes, or three MLPs of 8 h^2 values.
        self.assertAlmostEqual(whole - parts, 3 * 4 * 768 * 768 * 2 / 2**30, delta=0.002)

    def test_rounds_add_up_to_the_report(self):
        path = os.path.join(self.folder, "rounds.csv")
        done = offload("--model", MODEL, "--prompt-len", "8", "--gen-len", "6", "--gpu-batch-size", "2",
                       "--num-gpu-batches", "3", "--search-order", "diagonal", "--stagger", "1", "--rounds", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path) as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 8)  # the last of three batches starts in the third round and takes six steps
        for name, column in (("total", "seconds"), ("decode", "decode_seconds")):
            told = float(re.search(name + r" latency: ([\d.]+) s", done.stdout)[1])
            self.assertAlmostEqual(sum(float(row[column]) for row in rows), told, delta=0.002)
        self.assertTrue(all(float(row["decode_seconds"]) == float(row["seconds"]) for row in rows[3:]))
        self.assertEqual(float(rows[0]["decode_seconds"]), 0)
        self.assertTrue(all(float(row["moving_seconds"]) == float(row["moved_bytes"]) == 0 for row in rows))
        ended = [float(row["ended"]) for row in rows]
        self.assertTrue(0 < time.monotonic() - ended[-1] < 60)  # `ended` is in seconds of this clock
        for before, after, row in zip(ended, ended[1:], rows[1:]):
            self.assertGreaterEqual(after - before, float(row["seconds"]) - 0.001)
        for order in ("zigzag", "fused"):
            done = offload("--model", "dummy:opt-125m?layers=8&vocab=2000", "--prompt-len", "8", "--gen-len", "6",
                           "--percent", *"0 0 100 0 100 0".split(), "--search-order", order, "--rounds", path,
                           "--set", "device.link_gbps=1")  # the link is slow, so that a transfer is always running
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(path) as file:
                rows = list(csv.DictReader(file))
            took, moving = (sum(float(row[name]) for row in rows) for name in ("seconds", "moving_seconds"))
            self.assertGreater(moving, 0.5 * took)
            self.assertLess(moving, 1.1 * took)
            told = re.search(r"\((\d+) rounds\): ([\d.]+) MiB from disk", done.stdout)
            self.assertEqual(int(told[1]), len(rows))
            self.assertAlmostEqual(sum(int(row["moved_bytes"]) for row in rows) / len(rows) / 2**20, float(told[2]),
                                   delta=0.02 * float(told[2]))
        done = offload("--model", MODEL, "--prompt-len", "8", "--gen-len", "2", "--rounds", "/no/such/file")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--rounds", done.stderr)

    def test_a_breakdown_adds_up(self):
        done = offload("--model", MODEL, "--prompt-len", "8", "--gen-len", "6", "--percent", *"0 0 0 0 0 0".split(),
                       "--offload-dir", self.folder, "--debug-mode", "breakdown", "--attn-sparsity", "1.0")
        self.assertEqual(done.returncode, 0, done.stderr)
        line = re.search(r"breakdown: .*", done.stdout)[0]
        prompts, decoding, compute, waiting, weights, kv, states, moving = map(float, re.findall(r"[\d.]+", line))
        self.assertAlmostEqual(prompts + decoding, compute + waiting, delta=0.003)
        self.assertAlmostEqual(waiting, weights + kv + states, delta=0.003)
        self.assertGreater(moving, 0)

    def test_what_is_refused_says_why(self):
        for flags, words in ((["--percent", *"60 60 100 0 100 0".split()], "at most 100"),
                             (["--percent", *"0 0 100 0 50 0".split(), "--search-order", "fused"], "activations"),
                             (["--percent", *"0 0 100 0 50 60".split()], "at most 100"),
                             (["--attn-sparsity", "0.1"], "attn-sparsity"),
                             (["--compress-cache"], "kv.type=int8"),
                             (["--compress-cache", "--percent", *"100 0 0 100 100 0".split(), "--set",
                               "kv.type=int8"], "f32, f16 or bf16"),
                             (["--compress-cache", "--cpu-cache-compute", "--percent",
                               *"100 0 0 100 100 0".split()], "unpacks"),
                             (["--compress-weight", "--set", "model.compute=w8a8"], "w8a8 with"),
                             (["--prompts", "/no/such"], "--prompts"),
                             (["--percent", *"0 0 100 0 100 0".split(), "--offload-dir", "/no/such"],
                              "offload.dir"),
                             (["--set", "device.memory=1MiB"], "device.memory")):
            done = offload("--model", MODEL, "--prompt-len", "8", "--gen-len", "4", *flags)
            self.assertEqual(done.returncode, 1, flags)
            self.assertIn(words, done.stderr)

    def test_a_plan_fits_and_is_printed(self):
        done = offload("--model", MODEL, "--plan-only", "--prompt-len", "8", "--gen-len", "4",
                       "--gpu-batch-size", "4", "--num-gpu-batches", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"plan: .*--gpu-batch-size 4 --num-gpu-batches 2 --percent")
        self.assertRegex(done.stdout, r"simulated task by task: [\d.]+ token/s")

    def test_a_plan_keeps_to_given_shares_of_all_three(self):
        done = offload("--model", MODEL, "--plan", "--prompt-len", "8", "--gen-len", "4", "--gpu-batch-size", "4",
                       "--num-gpu-batches", "2", "--percent", *"0 100 0 100 50 0".split())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"plan: .* --percent 0 100 0 100 50 0 ")
        self.assertIn("between tasks: 50 % device, 0 % host, 50 % disk", done.stdout)
        self.assertIn("activations per round", done.stdout)

    def test_a_plan_counts_packed_kv(self):
        def projected_on_disk(*flags):
            done = offload("--model", MODEL, "--plan-only", "--prompt-len", "64", "--gen-len", "4",
                           "--gpu-batch-size", "512", "--num-gpu-batches", "16", "--search-order", "diagonal",
                           "--percent", *"100 0 0 0 100 0".split(), *flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            return float(re.search(r"projected memory: .*disk ([\d.]+) GB", done.stdout).group(1))
        self.assertLess(projected_on_disk("--compress-cache"), 0.6 * projected_on_disk())

    def test_a_plan_is_drawn_as_simulated(self):
        picture = os.path.join(self.folder, "plan.svg")
        done = offload("--model", MODEL, "--plan-only", "--prompt-len", "8", "--gen-len", "4", "--percent",
                       *"0 0 0 100 100 0".split(), "--timeline", picture)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("benchmark", done.stdout)
        with open(picture) as file:
            drawn = file.read()
        for word in ("simulated", "disk read", "device to host"):
            self.assertIn(word, drawn)
        done = offload("--model", MODEL, "--plan-only", "--prompt-len", "8", "--gen-len", "4", "--timeline",
                       "/no/such/picture.svg")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--timeline", done.stderr)

    def test_a_machine_is_measured_once(self):
        def measured(*flags):
            done = offload("--model", MODEL, "--plan-only", "--prompt-len", "8", "--gen-len", "4", *flags,
                           env={"XDG_CACHE_HOME": self.folder})
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout.split("\n")[0]
        first = measured()
        self.assertRegex(first, "^measured: ")
        self.assertEqual(measured(), first.replace("measured:", "measured by an earlier run (--remeasure):"))
        self.assertRegex(measured("--remeasure"), "^measured: ")
        (name,) = os.listdir(os.path.join(self.folder, "twill/machines"))
        path = os.path.join(self.folder, "twill/machines", name)
        with open(path) as file:
            whole = file.read()
        lines = whole.split("\n")
        for damaged in ("", whole[:len(whole) // 2], whole.replace(lines[0], "another machine"),
                        whole.replace(lines[3], lines[3].split()[0] + " -1"), "\n" + whole):
            with open(path, "w") as file:
                file.write(damaged)
            self.assertRegex(measured(), "^measured: ")

    def test_an_interrupt_keeps_what_there_is(self):
        path = os.path.join(self.folder, "out.jsonl")
        process = subprocess.Popen(
            [os.path.join(BIN, "twill"), "offload", "--model", MODEL, "--prompts", self.prompts, "--output",
             path, "--gen-len", "400", "--ignore-eos", "--percent", *"0 100 100 0 100 0".split(),
             "--num-gpu-batches", "3", "--gpu-batch-size", "1", "--timeline", "/dev/null"],
            stdout=subprocess.PIPE, text=True)
        for line in process.stdout:
            if "benchmark" in line:
                break
        process.send_signal(signal.SIGTERM)
        rest = process.communicate(timeout=60)[0]
        self.assertIn(process.returncode, (0, 130))
        with open(path) as file:
            outputs = [json.loads(line) for line in file]
        self.assertEqual(len(outputs), 3)
        if process.returncode == 130:
            self.assertIn("interrupted", rest)
            self.assertTrue(any(o["finish_reason"] == "interrupted" for o in outputs))


if __name__ == "__main__":
    unittest.main()
