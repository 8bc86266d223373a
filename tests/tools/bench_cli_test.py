#!/usr/bin/env python3
"""Runs twill-bench as a user does, against small servers whose delays are known."""

import csv
import itertools
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import xml.dom.minidom

from programs import BIN, run, scratch

SERVER = """
import http.server, json, os, sys, time
first_s = float(sys.argv[2])
# Arguments: PORT FIRST_TOKEN_SECONDS [N FILE]. Only N generations are answered before FILE is there.
n_free, gate = (int(sys.argv[3]), sys.argv[4]) if len(sys.argv) > 3 else (None, None)
n_asked = 0

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def reply(self, body, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.reply(b'{"data":[{"id":"m"}]}', "application/json")
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "max_tokens" not in asked:
            return self.send_error(404)
        global n_asked
        n_asked += 1
        while gate and n_asked > n_free and not os.path.exists(gate):
            time.sleep(0.02)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        time.sleep(first_s)
        n = asked["max_tokens"]
        for i in range(n):
            self.send({"choices": [{"text": "a", "finish_reason": "length" if i + 1 == n else None}]})
        self.send({"choices": [], "usage": {"prompt_tokens": len(asked["prompt"]), "completion_tokens": n}})
        self.wfile.write(b"data: [DONE]\\n\\n")
        self.close_connection = True
    def send(self, event):
        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\\n\\n")
        self.wfile.flush()

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


_ports = itertools.count(20000 + os.getpid() % 600 * 20)


def free_port():
    """A free port below the range that outgoing connections take, so that copies of this test do not meet."""
    while True:
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                one.bind(("127.0.0.1", port := next(_ports)))
                return port
            except OSError:
                continue


def listening(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


class Serve(unittest.TestCase):
    def test_an_infinite_rate_is_a_rate(self):
        for flag in ("--request-rate", "--burstiness"):
            done = run("twill-bench", flag, "inf", "--base-url", f"http://127.0.0.1:{free_port()}")
            self.assertIn("cannot reach", done.stderr)
            done = run("twill-bench", flag, "0")
            self.assertIn("must be > 0, got 0", done.stderr)


class Disk(unittest.TestCase):
    def test_reads_until_it_is_told_to_stop(self):
        with scratch() as folder:
            samples = os.path.join(folder, "samples.csv")
            began = time.monotonic()
            process = subprocess.Popen([os.path.join(BIN, "twill-bench"), "disk", "--dir", folder, "--size", "8",
                                        "--seconds", "600", "--samples", samples],
                                       stdout=subprocess.PIPE, text=True)
            self.assertRegex(process.stdout.readline(),
                             f"{folder}, (direct reads|reads through the page cache), 8.00 MiB of data, "
                             "4 reads of up to 1.00 MiB under way")
            self.assertEqual(os.listdir(folder), ["samples.csv"])  # the file that twill-bench reads is unnamed
            time.sleep(0.3)
            process.send_signal(signal.SIGTERM)
            reported = float(re.fullmatch(r"([\d.]+) GB/s\n", process.communicate(timeout=60)[0])[1])
            self.assertEqual(process.returncode, 0)
            with open(samples) as file:
                rows = [(float(row["at"]), int(row["bytes"])) for row in csv.DictReader(file)]
            self.assertTrue(began < rows[0][0] < rows[-1][0] < time.monotonic())
            self.assertEqual(rows, sorted(rows))
            self.assertGreater(rows[-1][1], 8 << 20)  # the file was read more than once
            seconds = rows[-1][0] - rows[0][0]
            self.assertAlmostEqual(reported, 1e-9 * (rows[-1][1] - rows[0][1]) / seconds, delta=0.0051)

    def test_a_file_is_read_where_it_holds_data(self):
        with scratch() as folder:
            path = os.path.join(folder, "sparse")
            with open(path, "wb") as file:
                file.write(b"d" * (3 << 20))
                file.seek(64 << 20)
                file.write(b"d" * (12 << 10))
                file.flush()
                os.fsync(file.fileno())
                knows_holes = os.lseek(file.fileno(), 0, os.SEEK_HOLE) == 3 << 20
            done = run("twill-bench", "disk", "--file", path, "--seconds", "0.2")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"{'3.01 MiB' if knows_holes else '64.0 MiB'} of data", done.stdout)
            self.assertRegex(done.stdout, r"\n[\d.]+ GB/s\n$")
            self.assertEqual(os.path.getsize(path), (64 << 20) + (12 << 10))  # twill-bench did not write to the file

    def test_what_cannot_be_is_refused_by_name(self):
        for path in ("/no/such/file", "/dev/null", "/tmp"):  # a device and a folder hold no data
            done = run("twill-bench", "disk", "--file", path)
            self.assertEqual(done.returncode, 1)
            self.assertIn(path, done.stderr)
        self.assertIn("excludes", run("twill-bench", "disk", "--file", "a", "--dir", "/tmp").stderr)
        done = run("twill-bench", "disk", "--dir", "/no/such/folder")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/no/such/folder", done.stderr)
        done = run("twill-bench", "disk", "--size", "0")
        self.assertIn("--size", done.stderr)
        done = run("twill-bench", "disk", "--size", "1", "--seconds", "0.05", "--samples", "/no/such/file")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--samples", done.stderr)


class Plan(unittest.TestCase):
    tiny = ("--running", "4", "--queued", "8", "--prompt", "64", "--output", "32", "--steps", "100")

    def test_actors_are_timed_from_a_result_to_the_next_plan(self):
        done = run("twill-bench", "plan", "--actors", "--step-ms", "0", *self.tiny)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("an executor whose steps take 0 ms", done.stdout)
        rows = re.findall(r"^  (\D+?) +(\d+) +(\d+)((?: +[\d.]+){6})$", done.stdout, re.MULTILINE)
        self.assertEqual([row[0] for row in rows], ["decode, no end"] * 2 + ["ends are replaced"] * 2 +
                         ["a queue", "KV blocks are short"])
        self.assertEqual([row[1:3] for row in rows[:2]], [("1", "0"), ("4", "0")])
        for *_, figures in rows:
            median, p99, most, wait_median, wait_p99, step = map(float, figures.split())
            self.assertTrue(0 < median <= p99 <= most, figures)
            self.assertTrue(0 <= wait_median <= wait_p99 <= most, figures)
            self.assertGreater(step, 0)
        self.assertGreater(float(rows[-1][3].split()[4]), 0)  # the batcher asked the allocator

    def test_a_step_time_is_for_actors_alone(self):
        done = run("twill-bench", "plan", "--step-ms", "1", *self.tiny)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--actors", done.stderr)
        self.assertRegex(run("twill-bench", "plan", *self.tiny).stdout, r"the running set is full: 4 run, \d+ wait")


class Kernels(unittest.TestCase):
    def measured(self, *flags):
        """Runs `twill-bench kernels` at toy shapes; returns the record of the device and those of the cases."""
        with scratch() as folder:
            path = pathlib.Path(folder) / "kernels.jsonl"
            done = run("twill-bench", "kernels", "--device", "host", "--small", "--seconds", "0.001", "--json", str(path), *flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stdout.startswith("device: host, "), done.stdout)
            records = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertEqual([record["record"] for record in records], ["device"] + ["case"] * (len(records) - 1))
        return records[0], records[1:]

    def test_each_group_is_measured_and_its_ceilings_with_it(self):
        device, cases = self.measured("--rows", "2")
        self.assertEqual(device["kind"], "host")
        self.assertTrue(device["name"])
        for ceiling in ("read_bytes_per_s", "copy_bytes_per_s", "f32_ops_per_s", "bf16_ops_per_s", "int8_ops_per_s"):
            self.assertGreater(device[ceiling], 0)
        self.assertGreater(device["bytes_in_turn"], device["cache_bytes"])
        self.assertEqual({case["group"] for case in cases}, {"linear", "layers", "attention", "decode", "rows"})
        for case in cases:
            self.assertEqual(case["timed_by"], "clock")
            self.assertGreaterEqual(case["samples"], 3)
            self.assertTrue(0 < case["us_least"] <= case["us"] <= case["us_most"])
            self.assertAlmostEqual(case["gb_per_s"], case["bytes"] / case["us"] / 1e3)
            self.assertAlmostEqual(case["ops_per_s"], case["operations"] / case["us"] * 1e6, delta=1)
            self.assertAlmostEqual(case["share_of_read"] * device["read_bytes_per_s"] / 1e9, case["gb_per_s"])

    def test_a_layer_is_the_sum_of_its_products(self):
        _, cases = self.measured("--group", "layers")
        layers = [case for case in cases if case["op"].startswith("layer ")]
        self.assertEqual(len(layers), 2 * 2 * 3)  # models, compute types, rows
        for layer in layers:
            rows = layer["shape"].split()[0]
            parts = [case for case in cases if case["op"].startswith("product ") and
                     case["op"].split()[2:] == layer["op"].split()[1:] and case["shape"].split()[0] == rows]
            self.assertEqual([part["op"].split()[1] for part in parts], ["qkv", "o", "up", "down"])
            for of in ("bytes", "operations"):
                self.assertEqual(layer[of], sum(part[of] for part in parts))

    def test_cases_are_chosen_by_group_and_by_word(self):
        _, cases = self.measured("--group", "decode,rows", "--only", "small-u4")
        self.assertEqual({case["group"] for case in cases}, {"decode"})
        self.assertTrue(all("small-u4" in case["op"] for case in cases))
        done = run("twill-bench", "kernels", "--group", "convolutions")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("convolutions", done.stderr)

    def test_a_device_that_is_missing_is_an_error(self):
        for command in (["kernels", "--small"], ["engine", "--model", "dummy:smollm2-135m"]):
            done = run("twill-bench", *command, "--device", "cuda", env={"CUDA_VISIBLE_DEVICES": ""})
            self.assertEqual(done.returncode, 1)
            self.assertIn('"cuda"', done.stderr)
            self.assertEqual(done.stdout, "")
        done = run("twill-bench", "kernels", "--small", "--device", "abacus")
        self.assertEqual(done.returncode, 1)
        self.assertIn("abacus", done.stderr)

    def test_the_model_on_paper_says_what_it_is_and_judges_every_mark(self):
        with scratch() as folder:
            path = pathlib.Path(folder) / "paper.jsonl"
            done = run("twill-bench", "kernels", "--paper", "--json", str(path), env={"CUDA_VISIBLE_DEVICES": ""}, timeout=10)
            self.assertEqual(done.returncode, 0, done.stderr)
            records = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertTrue(done.stdout.startswith("This is arithmetic on counts: no GPU ran."), done.stdout)
        of = lambda kind: [record for record in records if record["record"] == "paper_" + kind]
        self.assertEqual([card["card"] for card in of("card")], ["A100-40G", "A100-80G", "A6000", "H100", "H200"])
        steps = [(step["card"], step["model"], step["rows"], step["positions"]) for step in of("step")]
        models = ["mistral-7b-awq", "baichuan2-13b-gptq", "chatglm3-6b", "qwen-14b"]
        self.assertEqual(sorted(steps), sorted(itertools.product(["A100-40G", "A6000", "H100"], models, [1, 8, 16, 32], [512, 2048])))
        for step in of("step"):
            same = [kernel for kernel in of("kernel") if all(kernel[key] == step[key] for key in ("card", "model", "rows", "positions"))]
            self.assertEqual(sum(kernel["launches"] for kernel in same), step["launches"])
            self.assertAlmostEqual(sum(kernel["launches"] * kernel["us"] for kernel in same), step["gpu_us"])
            self.assertAlmostEqual(step["rows"] / step["gpu_us"] * 1e6, step["tokens_per_s"])
        for card in ("A100-40G", "A6000", "H100"):
            for model in models:  # four products, attention twice, and the other kernels of a layer and a step
                self.assertEqual(len(re.findall(rf"\n{card}, {model}: .*\nrows .*(?:\n(?:qkv|o|up|down|attention (?:512|2048)|combine|norm|"
                                                rf"rope, KV store|activation|embedding|head|choice|choice, merge) +\d.*){{14}}\nstep 512 ", done.stdout)), 1)
        cells = of("cell")
        self.assertEqual(len(cells), 78)  # of the five published sweeps; one cell is left out by name
        self.assertEqual(done.stdout.count("left out: 13.1 ms a token"), 1)
        ahead = sum(cell["tokens_per_s"] > cell["published_tokens_per_s"] for cell in cells)
        self.assertIn(f"\nahead in {ahead} of 78 cells", done.stdout)
        verdicts = re.findall(r"  (met|falls short): [\d.]+(?: %|x| us)", done.stdout)
        self.assertEqual(verdicts, ["met" if target["met"] else "falls short" for target in of("target")])

    def test_the_model_on_paper_measures_nothing(self):
        for flags in (["--small"], ["--device", "host"], ["--rows", "1"], ["--seconds", "1"], ["--group", "rows"]):
            done = run("twill-bench", "kernels", "--paper", *flags)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(flags[0], done.stderr)

    def test_a_file_that_cannot_be_written_is_an_error(self):
        self.assertIn("--json", run("twill-bench", "kernels", "--paper", "--json", "/no/such/folder/file").stderr)
        done = run("twill-bench", "kernels", "--small", "--json", "/no/such/folder/file")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--json", done.stderr)


class Null:
    """Runs `twill-bench null`, the server that does no work, for the length of a test."""

    def __init__(self, *flags):
        self.process = subprocess.Popen([os.path.join(BIN, "twill-bench"), "null", "--listen", "127.0.0.1:0", *flags],
                                        stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().split()[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)
        assert self.process.returncode == 0


class HalfClosing(threading.Thread):
    """A server that shuts down its sending side of a connection after `before`, and reads until the client closes."""

    EVENT = b'data: {"choices":[{"text":"a","finish_reason":null}]}\n\n'
    HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"

    def __init__(self, before):
        super().__init__(daemon=True)
        self.before = before
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.start()

    def run(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        with connection:
            asked = connection.makefile("rb")
            if not (line := asked.readline()):
                return
            while asked.readline().strip():
                pass
            if line.startswith(b"GET"):
                body = b'{"data":[{"id":"m"}]}'
                connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n"
                                   b"Content-Length: %d\r\n\r\n" % len(body) + body)
                return
            connection.sendall(self.before)
            connection.shutdown(socket.SHUT_WR)
            while asked.read1(4096):
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Load(unittest.TestCase):
    def test_half_closed_connections_fail_and_none_hangs(self):
        chunk = b"%x\r\n%b\r\n" % (len(HalfClosing.EVENT), HalfClosing.EVENT)
        for before in (b"", HalfClosing.HEAD,
                       HalfClosing.HEAD + b"Connection: close\r\n\r\n" + HalfClosing.EVENT,
                       HalfClosing.HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk):
            with HalfClosing(before) as server:
                done = self.serve(server, "--backend", "openai", "--num-prompts", "6", "--max-concurrency", "2",
                                  "--num-warmups", "0", timeout=60)
                self.assertIn("Failed requests:                         6", done.stdout, done.stderr)

    def serve(self, server, *flags, timeout=120):
        return run("twill-bench", "serve", "--base-url", server.url, "--input-len", "5", "--output-len", "6",
                   "--no-progress", *flags, timeout=timeout)

    def test_every_backend_gets_whole_answers_from_the_null_server(self):
        with Null("--threads", "2", "--tokens-per-write", "4") as server, scratch() as folder:
            for backend in ("openai", "openai-chat", "llama.cpp", "tgi", "twill-stream", "responses-ws"):
                for more in ([], ["--no-stream"]):
                    if more and backend in ("twill-stream", "responses-ws"):
                        continue
                    done = self.serve(server, "--backend", backend, "--num-prompts", "20", "--max-concurrency", "4",
                                      "--ignore-eos", "--save-result", "--result-dir", folder, "--result-filename",
                                      "r.json", *more)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    result = json.loads((pathlib.Path(folder) / "r.json").read_text())
                    self.assertEqual(result["completed"], 20)
                    self.assertEqual(result["total_output_tokens"], 120)
                    self.assertEqual(result["twill_bench"]["finish_reasons"], {"length": 20})
            done = self.serve(server, "--backend", "twill-stream", "--connections", "3", "--num-prompts", "50",
                              "--max-concurrency", "20")
            self.assertIn("Successful requests:                     50", done.stdout)

    def test_an_interrupted_run_keeps_and_marks_what_it_has(self):
        with Null("--token-interval-ms", "50") as server, scratch() as folder:
            result = pathlib.Path(folder) / "r.json"
            bench = subprocess.Popen(
                [os.path.join(BIN, "twill-bench"), "serve", "--base-url", server.url, "--input-len", "5",
                 "--output-len", "100000", "--max-concurrency", "4", "--save-result", "--result-filename",
                 str(result), "--html", str(result) + ".html"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while "requests" not in (line := bench.stderr.readline()):
                self.assertTrue(line)
            bench.send_signal(signal.SIGINT)
            out, errors = bench.communicate(timeout=120)
            self.assertEqual(bench.returncode, 130)
            self.assertIn("Serving Benchmark Result", out)
            self.assertIn("interrupted", errors)
            kept = json.loads(result.read_text())["twill_bench"]
            self.assertTrue(kept["interrupted"])
            self.assertEqual(kept["unfinished"], 1000)
            self.assertIn("</html>", pathlib.Path(str(result) + ".html").read_text())

    def test_a_full_disk_costs_the_file_and_not_the_table(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with Null() as server, scratch() as folder:
            path = pathlib.Path(folder) / "r.json"
            path.write_text("before")
            (pathlib.Path(folder) / "r.json.new").symlink_to("/dev/full")
            done = self.serve(server, "--num-prompts", "3", "--save-result", "--result-filename", str(path))
            self.assertEqual(done.returncode, 1)
            self.assertIn("Successful requests:                     3", done.stdout)
            self.assertIn(str(path), done.stderr)
            self.assertEqual(path.read_text(), "before")

    def test_repeats_have_intervals_and_a_duration_ends_a_run(self):
        with Null() as server, scratch() as folder:
            path = pathlib.Path(folder) / "r.json"
            done = self.serve(server, "--num-prompts", "10", "--repeats", "3", "--save-result", "--result-filename",
                              str(path))
            self.assertIn("Over 3 repeats", done.stdout)
            self.assertEqual(len(json.loads(path.read_text())["twill_bench"]["repeats"]["mean_ttft_ms"]["values"]), 3)
            done = self.serve(server, "--num-prompts", "10", "--request-rate", "0.01", "--request-rate-mode",
                              "constant", "--benchmark-duration", "0.5", "--save-result", "--result-filename", str(path))
            kept = json.loads(path.read_text())
            self.assertEqual(kept["completed"] + kept["twill_bench"]["unfinished"], 10)
            self.assertIn("as asked", kept["twill_bench"]["ended_early"])
            self.assertFalse(kept["twill_bench"]["interrupted"])

    def test_flags_that_contradict_are_refused(self):
        for flags, part in ((["--stop-over-saturation"], "needs --request-rate"),
                            (["--dataset-name", "trace"], "needs --dataset-path"),
                            (["--ramp-up-strategy", "linear"], "--ramp-up-start-rps"),
                            (["--request-disconnect-rate", "60", "--request-cancellation-rate", "60"], "<= 100")):
            done = run("twill-bench", "serve", *flags)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(part, done.stderr)


class Campaign(unittest.TestCase):
    def test_models_by_servers_are_swept_once_and_compared(self):
        with scratch() as folder:
            ports = [free_port(), free_port()]
            plan = pathlib.Path(folder) / "plan.toml"
            text = (f'prepare = "echo $GAP >> {folder}/prepared"\n'
                    'input_lens = [4]\noutput_lens = [2, 3]\nlatency_prompts = 2\nthroughput_prompts = 3\n'
                    '[[model]]\nname = "m"\ntitle = "A model"\nenvironment = { GAP = "1" }\n')
            for name, port in zip(("one", "two"), ports):
                text += (f'[[server]]\nname = "{name}"\nbase_url = "http://127.0.0.1:{port}"\nready_timeout_s = 60\n'
                         f'command = "exec {BIN}/twill-bench null --listen 127.0.0.1:{port} --token-interval-ms $GAP"\n')
            text += ('[[server]]\nname = "broken"\nbase_url = "http://127.0.0.1:1"\ncommand = "exit 7"\n')
            plan.write_text(text)
            out = pathlib.Path(folder) / "out"
            for turn in (1, 2):
                done = run("twill-bench", "campaign", str(plan), "--output-dir", str(out), timeout=300)
                self.assertEqual(done.returncode, 1)
                self.assertIn("broken ended with status 7", done.stderr)
                self.assertEqual(done.stderr.count("measured before"), 2 * (turn - 1))
            self.assertTrue((pathlib.Path(folder) / "prepared").read_text().startswith("1\n"))
            compared = (out / "m" / "compare.md").read_text()
            self.assertIn("/ one", compared)
            self.assertIn("broken", compared)
            cells = json.loads((out / "m" / "two" / "sweep.json").read_text())["cells"]
            self.assertEqual([cell["throughput"]["completed"] for cell in cells], [3, 3])
            run("twill-bench", "campaign", str(plan), "--output-dir", str(out), "--servers", "two")
            compared = (out / "m" / "compare.md").read_text()
            self.assertIn("- one: ", compared)  # the results of server one are from the run before
            self.assertIn("- two: ", compared)
            done = run("twill-bench", "campaign", str(plan), "--output-dir", str(out), "--servers", "three")
            self.assertIn("--servers must be a name in the plan", done.stderr)


class Sweep(unittest.TestCase):
    def test_an_interrupted_sweep_goes_on_where_it_was(self):
        with scratch() as folder:
            (pathlib.Path(folder) / "server.py").write_text(SERVER)
            port = free_port()
            gate = os.path.join(folder, "gate")
            # The warm-up, the test request and the first phase pass; the second phase is interrupted.
            with subprocess.Popen([sys.executable, os.path.join(folder, "server.py"), str(port), "0.2", "5",
                                   gate], stderr=subprocess.DEVNULL) as server:
                try:
                    out = os.path.join(folder, "out")
                    command = ["sweep", "--backend", "openai", "--base-url", f"http://127.0.0.1:{port}",
                               "--ready-check-timeout-sec", "60", "--input-lens", "4,8", "--output-lens", "2,4",
                               "--latency-prompts", "3", "--throughput-prompts", "4", "--output-dir", out]
                    first = subprocess.Popen([os.path.join(BIN, "twill-bench"), *command],
                                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                    state = pathlib.Path(out) / "sweep.json"
                    for _ in range(1200):
                        if state.exists():
                            break
                        time.sleep(0.05)
                    first.send_signal(signal.SIGINT)
                    printed, _ = first.communicate(timeout=120)
                    self.assertEqual(first.returncode, 130)
                    self.assertIn("not run", printed)
                    before = json.loads(state.read_text())
                    self.assertTrue(before["interrupted"])
                    pathlib.Path(gate).touch()
                    done = run("twill-bench", *command, timeout=120)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn("resuming", done.stderr)
                    after = json.loads(state.read_text())
                    self.assertFalse(after["interrupted"])
                    self.assertEqual(after["cells"][0]["latency"], before["cells"][0]["latency"])
                    for cell in after["cells"]:
                        self.assertEqual(cell["throughput"]["completed"], 4)
                        self.assertEqual(cell["latency"]["mean_output_tokens"], cell["output_len"])
                        self.assertGreaterEqual(cell["latency"]["mean_ttft_ms"], 200)
                    for chart in ("throughput-req", "throughput-token-out", "pertoken", "per-out-token"):
                        xml.dom.minidom.parse(os.path.join(out, chart + ".svg"))
                    both = run("twill-bench", "compare", str(state), str(state), "--names", "a,b")
                    self.assertIn("| / a |", both.stdout)
                    self.assertIn(" 1.00 |", both.stdout)
                finally:
                    server.kill()


class Versus(unittest.TestCase):
    def plan(self, folder, commands, ports, rounds=2):
        text = f"rounds = {rounds}\n"
        for name, command, port in zip(("quick", "slow"), commands, ports):
            text += (f'[[server]]\nname = "{name}"\ncommand = {json.dumps(command)}\n'
                     f'base_url = "http://127.0.0.1:{port}"\nready_timeout_s = 60\n')
        text += ('[[load]]\nname = "short"\ninput_tokens = 4\noutput_tokens = 3\nnum_prompts = 4\n')
        path = pathlib.Path(folder) / "plan.toml"
        path.write_text(text)
        return str(path)

    def servers(self, folder, delays=("0.1", "0.4")):
        program = pathlib.Path(folder) / "server.py"
        program.write_text(SERVER)
        ports = [free_port(), free_port()]
        return [[sys.executable, str(program), str(port), delay]
                for port, delay in zip(ports, delays)], ports

    def test_the_ratio_is_that_of_the_delays_and_nothing_is_left_running(self):
        with scratch() as folder:
            commands, ports = self.servers(folder)
            result = os.path.join(folder, "versus.json")
            done = run("twill-bench", "versus", self.plan(folder, commands, ports),
                       "--json", result, "--log-dir", folder, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            rounds = json.loads(pathlib.Path(result).read_text())["loads"][0]["servers"]
            self.assertEqual(rounds["quick"]["completed"], [4, 4])
            self.assertEqual(rounds["slow"]["failed"], [0, 0])
            for one, other in zip(rounds["quick"]["median_ttft_ms"], rounds["slow"]["median_ttft_ms"]):
                self.assertGreaterEqual(one, 100)
                self.assertGreaterEqual(other, 400)
            self.assertIn("quick better by", done.stdout)
            self.assertFalse(listening(ports[0]) or listening(ports[1]))

    def test_a_server_that_ends_early_is_told_with_its_log(self):
        with scratch() as folder:
            commands, ports = self.servers(folder)
            commands[1] = ["/bin/sh", "-c", "echo out of luck; exit 3"]
            done = run("twill-bench", "versus", self.plan(folder, commands, ports), "--log-dir", folder,
                       timeout=120)
            self.assertEqual(done.returncode, 1)
            self.assertIn("slow ended with status 3", done.stderr)
            self.assertIn("out of luck", done.stderr)
            self.assertFalse(listening(ports[0]))

    def test_a_port_in_use_is_refused(self):
        with scratch() as folder:
            commands, ports = self.servers(folder)
            with subprocess.Popen(commands[0]) as mine:
                try:
                    for _ in range(600):
                        if listening(ports[0]):
                            break
                        time.sleep(0.1)
                    done = run("twill-bench", "versus", self.plan(folder, commands, ports),
                               "--log-dir", folder, timeout=120)
                    self.assertEqual(done.returncode, 1)
                    self.assertIn("already", done.stderr)
                finally:
                    mine.kill()

    def test_an_interruption_ends_the_servers(self):
        with scratch() as folder:
            commands, ports = self.servers(folder, ("0.1", "0.1"))
            bench = subprocess.Popen(
                [os.path.join(BIN, "twill-bench"), "versus",
                 self.plan(folder, commands, ports, rounds=1000), "--log-dir", folder],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(600):
                if listening(ports[0]):
                    break
                time.sleep(0.1)
            bench.send_signal(signal.SIGINT)
            out, _ = bench.communicate(timeout=120)
            self.assertEqual(bench.returncode, 130)
            self.assertIn("Interrupted", out)
            self.assertFalse(listening(ports[0]) or listening(ports[1]))


if __name__ == "__main__":
    unittest.main()
