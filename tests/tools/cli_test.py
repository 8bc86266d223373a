#!/usr/bin/env python3
"""Runs twilld and twill as a user does, without a model, and checks options, messages and exit status."""

import os
import socket
import unittest

from programs import SOURCE, run, scratch

TINY = os.path.join(SOURCE, "tests/golden/opt-tiny-fp32")


class TwilldOptions(unittest.TestCase):
    def test_version_and_help_succeed(self):
        self.assertRegex(run("twilld", "--version").stdout, r"^twilld \d+\.\d+\.\d+\n$")
        self.assertEqual(run("twilld", "--help").returncode, 0)

    def test_an_unknown_option_is_wrong_usage(self):
        self.assertEqual(run("twilld", "--no-such-option").returncode, 2)

    def test_example_files_pass_the_check(self):
        folder = os.path.join(SOURCE, "config/examples")
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            done = run("twilld", "--check-config", path, "--model", TINY)
            self.assertEqual((done.returncode, done.stdout), (0, f"{path}: ok\n"), done.stderr)

    def test_the_check_finds_that_the_model_or_a_key_file_is_missing(self):
        with scratch() as folder:
            path = os.path.join(folder, "twill.toml")
            with open(path, "w") as file:
                file.write('[model]\npath = "/no/such/model.gguf"\n'
                           '[server]\ntls_certificate = "/no/cert.pem"\ntls_key = "/no/key.pem"\n')
            done = run("twilld", "--check-config", path)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            lines = done.stderr.splitlines()
            self.assertEqual(len(lines), 3, lines)
            for line, key in zip(lines, ("model.path", "server.tls_certificate", "server.tls_key")):
                self.assertTrue(line.startswith(f"twilld: {path}: `{key}` "), line)
            self.assertIn("/no/such/model.gguf", lines[0])

    def test_every_error_of_a_file_is_one_line(self):
        with scratch() as folder:
            path = os.path.join(folder, "bad.toml")
            with open(path, "w") as file:
                file.write('[server]\nlisten = "x"\nlisten_backlog = 1\n[kv]\nblock_tokens = 9\n')
            done = run("twilld", "--check-config", path)
        self.assertEqual(done.returncode, 1)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 3)
        self.assertIn(f'twilld: {path}:2:10: `server.listen` must be HOST:PORT or unix:/PATH, or a list of such addresses, got "x"', lines)
        for line in lines:
            self.assertTrue(line.startswith("twilld: "))

    def test_the_printed_configuration_can_be_loaded_again(self):
        printed = run("twilld", "--print-config", "--set", "kv.memory=64MiB", "--model", "/m.gguf").stdout
        self.assertIn('memory = "64 MiB" # default: 0', printed)
        self.assertIn('path = "/m.gguf"', printed)
        with scratch() as folder:
            path = os.path.join(folder, "again.toml")
            with open(path, "w") as file:
                file.write(printed)
            self.assertEqual(run("twilld", "--print-config", "--config", path).stdout, printed)

    def test_the_reference_page_is_up_to_date(self):
        with open(os.path.join(SOURCE, "config/reference.md")) as page:
            self.assertEqual(run("twilld", "--print-reference").stdout, page.read())


class TwilldStart(unittest.TestCase):
    def fails_with(self, words, *arguments, env=None):
        done = run("twilld", "--listen", "127.0.0.1:0", *arguments, env=env, timeout=30)
        self.assertEqual(done.returncode, 1, done.stderr)
        errors = [l for l in done.stderr.splitlines() if l.startswith("twilld: ")]
        self.assertEqual(len(errors), 1, done.stderr)
        self.assertIn(words, errors[0])

    def test_a_missing_default_model_says_how_to_get_it(self):
        with scratch() as folder:
            self.fails_with("run `twill default-model`", env={"XDG_CACHE_HOME": folder})

    def test_a_model_that_cannot_be_read_is_named(self):
        self.fails_with("/no/such/model.gguf", "--model", "/no/such/model.gguf")

    def test_a_file_that_is_no_model_is_named(self):
        path = os.path.join(SOURCE, "LICENSE")
        self.fails_with(path, "--model", path)

    def test_an_address_that_cannot_be_had_is_named(self):
        done = run("twilld", "--listen", "192.0.2.1:1", "--model", os.path.join(SOURCE, "LICENSE"),
                   timeout=30)
        self.assertEqual(done.returncode, 1)
        self.assertIn("192.0.2.1", done.stderr)

    def test_a_used_port_is_noticed_before_the_model_is_loaded(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            done = run("twilld", "--listen", address, "--model", TINY, timeout=30)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, f"twilld: .*{address}.*in use")
        self.assertNotIn("loading", done.stderr)

    def test_an_address_file_that_cannot_be_written_ends_the_start(self):
        with scratch() as folder:
            for path in ("/no/such/folder/address", folder):
                self.fails_with("`--address-file` must be a file that this user can write, got " + path,
                                "--model", TINY, "--address-file", path)
            self.assertEqual(os.listdir(folder), [])

    def test_more_kv_memory_than_there_is_blames_that_key(self):
        self.fails_with("`kv.memory` must be at most ", "--model", TINY, "--set", "kv.memory=60TiB")
        self.fails_with("which `device.memory` (64.0 MiB) leaves beside weights and workspace, got 63.0 MiB",
                        "--model", TINY, "--set", "device.memory=64MiB", "--set", "kv.memory=63MiB")

    def test_a_sampling_default_out_of_range_is_refused(self):
        for wrong in ("temperature=101", "top_p=0", "top_p=nan", "top_k=-2", "repetition_penalty=0"):
            self.fails_with("`sampling." + wrong.split("=")[0] + "` must be between", "--set", "sampling." + wrong)


class TwillClient(unittest.TestCase):
    def test_a_sub_command_is_needed(self):
        self.assertEqual(run("twill").returncode, 2)
        self.assertEqual(run("twill", "no-such-command").returncode, 2)
        self.assertEqual(run("twill", "chat", "--temperature", "warm").returncode, 2)
        self.assertEqual(run("twill", "--help").returncode, 0)

    def test_a_daemon_that_is_not_there_is_one_clear_line(self):
        for command in (["chat", "--prompt", "hi"], ["complete", "hi"], ["tokenize", "hi"]):
            done = run("twill", *command, "--url", "http://127.0.0.1:1")
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, r"^twill: .*127\.0\.0\.1:1: .*refused.*\n$")

    def test_a_wrong_address_is_refused_by_name(self):
        done = run("twill", "chat", "--prompt", "hi", "--url", "ftp://example.org")
        self.assertEqual(done.returncode, 1)
        self.assertIn("`--url` must be an http://, https://, ws:// or wss:// address", done.stderr)

    def test_no_colour_codes_go_into_a_pipe(self):
        done = run("twill", "doctor", env={"TERM": "xterm"}, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("\x1b", done.stdout + done.stderr)
        for words in ("compiler", "CAF", "Boost", "instructions", "GB/s", "compute threads"):
            self.assertIn(words, done.stdout)


class BenchKernels(unittest.TestCase):
    def test_every_case_is_a_line_held_against_the_measured_limits(self):
        done = run("twill-bench", "kernels", "--small", "--seconds", "0.001", "--only", "norm")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"limits: read [\d.]+ GB/s; multiply-adds f32 \d+, bf16 \d+, int8 \d+")
        self.assertRegex(done.stdout, r"\nlayer_norm +16 x 64 +[\d.]+ +[\d.]+ +[\d.]+ % +[\d.]+ +[\d.]+ %\n")

    def test_every_form_of_weights_runs_at_every_shape_it_fits(self):
        done = run("twill-bench", "kernels", "--small", "--seconds", "0.001", "--rows", "1", "--only", "linear")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\nlinear u4/128 zeros int8 +1 x 256 -> 96 ")
        self.assertRegex(done.stdout, r"\nlinear u4/32 halves int8 +1 x 576 -> 96 ")
        self.assertNotRegex(done.stdout, r"u4/128 zeros int8 +1 x 576 ")


if __name__ == "__main__":
    unittest.main()
