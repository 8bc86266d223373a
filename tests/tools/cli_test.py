#!/usr/bin/env python3
"""Runs twilld and twill as a user does, without a model, and checks options, messages and exit status."""

import contextlib
import fcntl
import glob
import hashlib
import http.server
import json
import os
import pty
import re
import shutil
import signal
import socket
import struct
import subprocess
import termios
import threading
import time
import unittest
import urllib.request

import split_gguf
from programs import BIN, SOURCE, Daemon, run, scratch

TINY = os.path.join(SOURCE, "tests/golden/opt-tiny-fp32")
ADMIN = f"tenants=[{{name = 'ada', key_sha256 = '{64 * 'a'}', admin = true}}]"


class TwilldOptions(unittest.TestCase):
    def test_version_and_help_succeed(self):
        self.assertRegex(run("twilld", "--version").stdout, r"^twilld \d+\.\d+\.\d+\n$")
        self.assertEqual(run("twilld", "--help").returncode, 0)

    def test_an_unknown_option_is_wrong_usage(self):
        self.assertEqual(run("twilld", "--no-such-option").returncode, 2)

    def test_example_files_pass_the_check(self):
        files = sorted(glob.glob(os.path.join(SOURCE, "config/examples/**/*.toml"), recursive=True))
        self.assertGreaterEqual(len(files), 4)
        for path in files:
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

    def test_what_is_wrong_in_a_file_of_keys_is_named_by_line(self):
        with scratch() as folder:
            keys, path = os.path.join(folder, "keys"), os.path.join(folder, "twill.toml")
            with open(path, "w") as file:
                file.write(f"[server]\nkeys_file = '{keys}'\n")
            absent = run("twilld", "--check-config", path)
            with open(keys, "w") as file:
                file.write(f"# ours\nalice sha256:{64 * 'a'}\nbob plain-key\n")
            wrong = run("twilld", "--check-config", path)
            with open(keys, "w") as file:
                file.write(f"alice sha256:{64 * 'a'}\n")
            right = run("twilld", "--check-config", path)
        self.assertIn("`server.keys_file` must be readable", absent.stderr)
        self.assertEqual(wrong.returncode, 1)
        self.assertIn(f"twilld: {keys}:3:5: the key must be sha256:", wrong.stderr)
        self.assertNotIn("plain-key", wrong.stderr)
        self.assertEqual(right.returncode, 0, right.stderr)

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

    def test_the_tuning_guide_names_keys_that_there_are_and_its_examples_load(self):
        with open(os.path.join(SOURCE, "config/TUNING.md")) as page:
            text = page.read()
        printed = run("twilld", "--print-reference").stdout
        known = {f"{table}.{key}" for table, keys in re.findall(r"## \[(\w+)\]\n(.*?)(?=\n## |\Z)", printed, re.DOTALL)
                 for key in re.findall(r"(?m)^\| `(\w+)`", keys)}
        named = set(re.findall(r"`([a-z]+\.[a-z_]+)`", text))
        self.assertGreater(len(named), 15)
        self.assertEqual(named - known, {"twilld.toml"} & named)
        examples = re.findall(r"(?m)^twilld (--set .*)$", text)
        self.assertEqual(len(examples), 4)
        for example in examples:
            done = run("twilld", "--print-config", *example.split())
            self.assertEqual(done.returncode, 0, done.stderr)


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

    def test_a_path_that_holds_no_model_is_told_before_an_engine_starts(self):
        with scratch() as folder:
            for path, why in ((folder + "/none.gguf", "No such file or directory"), (folder, "neither config.json nor")):
                self.fails_with(f"`model.path` must be a GGUF file, a Hugging Face folder, hf:ORG/NAME or dummy:PRESET, got {path}: ",
                                "--model", path)
                done = run("twilld", "--listen", "127.0.0.1:0", "--model", path, timeout=30)
                self.assertIn(why, done.stderr)
                self.assertNotIn("loading", done.stderr)

    def test_a_file_that_is_no_model_is_named(self):
        path = os.path.join(SOURCE, "LICENSE")
        self.fails_with(path, "--model", path)

    def test_an_address_that_cannot_be_had_is_named(self):
        done = run("twilld", "--listen", "192.0.2.1:1", "--model", os.path.join(SOURCE, "LICENSE"),
                   timeout=30)
        self.assertEqual(done.returncode, 1)
        self.assertIn("192.0.2.1", done.stderr)
        self.assertIn("with `--listen`, such as 127.0.0.1:8080", done.stderr)

    def test_a_used_port_is_noticed_before_the_model_is_loaded(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            done = run("twilld", "--listen", address, "--model", TINY, timeout=30)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, f"twilld: .*{address}.*in use.*`--listen` .port 0 takes a free one")
        self.assertNotIn("loading", done.stderr)

    def test_every_address_that_is_taken_is_told_with_the_option_that_names_another(self):
        with scratch() as folder, socket.socket(socket.AF_UNIX) as taken, socket.create_server(("127.0.0.1", 0)) as door:
            path = os.path.join(folder, "socket")
            taken.bind(path)
            taken.listen()
            done = run("twilld", "--listen", "unix:" + path, "--model", TINY, timeout=30)
            self.assertRegex(done.stderr, "in use; .*another address with `--listen`\n$")
            self.fails_with("with `--set server.admin_listen=`", "--model", TINY, "--set",
                            f"server.admin_listen=127.0.0.1:{door.getsockname()[1]}", "--set", ADMIN)

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
        for wrong in ("temperature=101", "top_p=-0.1", "top_p=nan", "top_k=-2", "repetition_penalty=0"):
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
            self.assertRegex(done.stderr, r"^twill: .*127\.0\.0\.1:1: .*refused.*`twilld` starts a daemon.*\n$")

    def test_a_misspelt_command_suggests_one(self):
        for given, meant in (("caht", "twill chat"), ("statsu", "twill status"), ("modles", "twill models")):
            done = run("twill", given)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f"did you mean `{meant}`?", done.stderr)
        self.assertIn("did you mean `twill models pull`?", run("twill", "models", "pul", "x").stderr)
        self.assertIn("`twill --help` lists them", run("twill", "xyzxyzxyz").stderr)

    def test_a_misspelt_option_suggests_one_in_every_program(self):
        for given, meant in ((["twilld", "--modle", "x"], "--model"), (["twilld", "--lisen=x"], "--listen"),
                             (["twill", "chat", "--modle", "x"], "--model"), (["twill", "models", "pull", "--sha265", "x"], "--sha256"),
                             (["twill-bench", "engine", "--modle", "x"], "--model"), (["twill-bench", "--modle", "x"], "--model"),
                             (["twill-synth", "--seeed", "1"], "--seed")):
            done = run(*given)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, rf'^{given[0]}: .*has no option "--.*did you mean `{meant}`\?\n$')
        self.assertIn("`twilld --help` lists", run("twilld", "--xyzxyzxyz").stderr)

    def test_what_a_program_can_do_is_told_when_it_was_not_told_what_to_do(self):
        for words in (["twill"], ["twill", "key"], ["twill-bench"]):
            done = run(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            listed = set(re.findall(r"(?m)^  ([a-z][-a-z]*)  ", done.stderr))
            self.assertEqual(listed, set(re.findall(r"(?m)^  ([a-z][-a-z]*)  ", run(*words, "--help").stdout)))
            self.assertIn(f"`{' '.join(words)} COMMAND --help`", done.stderr)

    def test_what_is_missing_or_too_much_is_told_with_its_command(self):
        self.assertRegex(run("twill", "key", "new").stderr, r"^twill: `twill key new`: NAME is required; `twill key new --help`")
        self.assertRegex(run("twill", "status", "x").stderr, r'^twill: `twill status` has no place for the argument "x"')
        self.assertIn("a model is given by `--model PATH`", run("twilld", "ORG/NAME").stderr)
        self.assertEqual(run("twill-bench", "serve", "--num-prompts", "many").returncode, 2)

    def test_a_wrong_model_is_told_before_anything_is_measured(self):
        done = run("twill", "doctor", "--model", "/no/such/model.gguf")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("/no/such/model.gguf: No such file", done.stderr)

    def test_the_lines_of_a_key_are_a_configuration_of_an_administrator_when_asked_for(self):
        for flags, admin in (([], False), (["--admin"], True)):
            printed = run("twill", "key", "new", "ada", *flags).stdout
            lines = re.search(r"  \[\[tenants\]\]\n(?:  .*\n)+", printed).group(0)
            with scratch() as folder:
                path = os.path.join(folder, "twilld.toml")
                with open(path, "w") as file:
                    file.write(('[server]\nadmin_listen = "127.0.0.1:0"\n' if admin else "") + lines)
                shown = run("twilld", "--print-config", "--config", path)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.assertEqual(bool(re.search(r"(?m)^admin = true", shown.stdout)), admin)
            self.assertEqual("server.admin_listen" in printed, admin)

    def test_the_first_configuration_is_valid_also_with_every_key_taken(self):
        with scratch() as folder:
            path = os.path.join(folder, "twilld.toml")
            self.assertEqual(run("twill", "config", path).returncode, 0)
            with open(path) as file:
                text = file.read()
            self.assertEqual(run("twill", "config").stdout, text)
            self.assertEqual(os.stat(path).st_mode & 0o007, 0)
            again = run("twill", "config", path)
            self.assertEqual(again.returncode, 1)
            self.assertIn("is there already", again.stderr)
            taken = os.path.join(folder, "taken.toml")
            with open(taken, "w") as file:
                file.write(re.sub(r"(?m)^# (\w+ = )", r"\1", text))
            with open(taken) as file:
                self.assertGreater(len(re.findall(r"(?m)^\w+ = ", file.read())), 10)
            defaults = run("twilld", "--print-config").stdout
            for one in (path, taken):
                self.assertEqual(run("twilld", "--print-config", "--config", one).stdout, defaults)
                self.assertEqual(run("twilld", "--check-config", one, "--model", TINY).returncode, 0)


class Answers(http.server.BaseHTTPRequestHandler):
    """A server for the length of a test; its answers are (status, body) by path."""
    answers = {}

    def do_GET(self):
        status, body = self.answers.get(self.path, (404, b""))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(answers):
    handler = type("Handler", (Answers,), {"answers": answers})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class TwillStatus(unittest.TestCase):
    def test_no_answer_and_not_ready_are_told_by_the_exit_status(self):
        done = run("twill", "status", "--url", "http://127.0.0.1:1")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("`twilld` starts a daemon", done.stderr)
        loading = {"/ready": (503, b'{"error":{"message":"the model is loading"}}'), "/version": (200, b'{"version":"9"}'),
                   "/v1/models": (200, b'{"data":[]}'), "/metrics": (200, b"")}
        with serving(loading) as url:
            done = run("twill", "status", "--url", url)
            self.assertEqual((done.returncode, done.stderr), (1, ""))
            self.assertRegex(done.stdout, rf"^not ready at {url}, twilld 9\n +why +the model is loading\n")

    def test_waiting_ends_when_the_daemon_is_ready_or_the_time_is_over(self):
        begin = time.monotonic()
        self.assertEqual(run("twill", "status", "--wait", "0.5", "--url", "http://127.0.0.1:1").returncode, 2)
        self.assertGreater(time.monotonic() - begin, 0.4)
        answers = {"/ready": (503, b"{}"), "/version": (200, b'{"version":"9"}'), "/v1/models": (200, b'{"data":[]}'), "/metrics": (200, b"")}
        with serving(answers) as url:
            self.assertEqual(run("twill", "status", "--wait", "0.3", "--url", url).returncode, 1)
            threading.Timer(0.5, lambda: answers.update({"/ready": (200, b"{}")})).start()
            done = run("twill", "status", "--wait", "30", "--url", url)
            self.assertEqual((done.returncode, done.stdout[:5]), (0, "ready"))

    def test_another_server_is_not_taken_for_a_daemon_and_its_text_is_harmless(self):
        with serving({"/ready": (200, b"<html>")}) as url:
            self.assertEqual(run("twill", "status", "--url", url).returncode, 0)
        with serving({"/ready": (200, b""), "/v1/models": (200, b"[1]")}) as url:
            done = run("twill", "status", "--url", url)
            self.assertEqual(done.returncode, 2)
            self.assertIn("not as twilld does", done.stderr)
        evil = b'{"data":[{"id":"a\\u001b[2Jb","family":7}]}'
        with serving({"/ready": (200, b""), "/v1/models": (200, evil), "/metrics": (200, b'x{y="\n}\x1b 1 1\n{{{')}) as url:
            for command in (["status"], ["top", "--once", "--interval", "0.1"], ["models"]):
                done = run("twill", *command, "--url", url)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("\x1b", done.stdout)


class TwillTop(unittest.TestCase):
    METRICS = "".join(f'twill_{name}{{model_name="a-model-with-a-long-name-Q4_K_M"}} {value}\n' for name, value in (
        ("num_requests_running", 12), ("num_requests_waiting", 345), ("kv_cache_usage_perc", 0.5),
        ("generation_tokens_total", 123456789), ("prompt_tokens_total", 987654321)))

    def look(self, columns):
        """The lines that `twill top` shows in a terminal of so many columns."""
        models = b'{"data":[{"id":"a-model-with-a-long-name-Q4_K_M"}]}'
        with serving({"/ready": (200, b"{}"), "/v1/models": (200, models), "/metrics": (200, self.METRICS.encode())}) as url:
            end, terminal = pty.openpty()
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            done = subprocess.Popen([os.path.join(BIN, "twill"), "top", "--once", "--interval", "0.1", "--url", url],
                                    stdout=terminal, stderr=terminal)
            self.assertEqual(done.wait(20), 0)
            os.close(terminal)
            shown = b""
            with contextlib.suppress(OSError):
                while part := os.read(end, 65536):
                    shown += part
            os.close(end)
        return shown.decode().replace("\r", "").splitlines()

    def test_every_column_is_whole_at_the_usual_widths(self):
        for columns in (80, 110, 132):
            lines = self.look(columns)
            self.assertLessEqual(max(map(len, lines)), columns, lines)
            titles, row = (next(n for n, line in enumerate(lines) if line.startswith(word)) for word in ("MODEL", "a-mod"))
            for title in ("RUN", "WAIT", "KV", "OUT/S", "IN/S", "FIRST ms", "NEXT ms", "ENDED", "FAILED"):
                end = lines[titles].index(title) + len(title)
                self.assertNotIn(lines[row][end - 1:end], " ", (title, lines))  # a number ends in the same column as its title
                self.assertIn(lines[row][end:end + 1], (" ", ""), (title, lines))

    def test_a_narrow_terminal_says_what_a_wider_one_shows(self):
        lines = self.look(40)
        self.assertLessEqual(max(map(len, lines)), 40, lines)
        self.assertRegex(" ".join(lines), r"a terminal of \d+ +columns shows .*FAILED, ENDED too")


class TwillModels(unittest.TestCase):
    GGUF = os.path.join(SOURCE, "tests/golden/llama3-style-tied-bf16/model.gguf")
    FOLDER = os.path.join(SOURCE, "tests/golden/opt-tiny-fp32")

    def setUp(self):
        self.scratch = scratch()
        self.addCleanup(self.scratch.cleanup)
        self.models = os.path.join(self.scratch.name, "models")
        with open(self.GGUF, "rb") as file:
            self.bytes = file.read()
        self.sum = hashlib.sha256(self.bytes).hexdigest()

    def twill(self, *arguments, status=0):
        done = run("twill", "models", *arguments, env={"TWILL_MODELS": self.models, "HF_HOME": os.path.join(self.scratch.name, "hf")})
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def stored(self):
        return sorted(os.listdir(self.models)) if os.path.exists(self.models) else []

    def test_files_and_folders_are_copied_listed_and_removed(self):
        done = self.twill("pull", self.GGUF, "--sha256", self.sum.upper())
        path = os.path.join(self.models, "model.gguf")
        self.assertEqual(done.stdout, path + "\n")
        self.assertIn(self.sum, done.stderr)
        with open(path, "rb") as file:
            self.assertEqual(file.read(), self.bytes)
        self.assertIn("`twill models rm model.gguf`", self.twill("pull", self.GGUF, status=1).stderr)
        self.twill("pull", self.FOLDER + "/")
        self.assertEqual(self.stored(), ["model.gguf", "opt-tiny-fp32"])
        listed = self.twill("--url", "http://127.0.0.1:1", status=1).stdout
        self.assertRegex(listed, r"^in .*\n  model\.gguf +[\d.]+ \w+\n  opt-tiny-fp32 +[\d.]+ \w+\n$")
        self.twill("rm", "model")
        self.twill("rm", "opt-tiny-fp32")
        self.assertEqual(self.stored(), [])

    def test_an_address_is_downloaded_and_nothing_half_made_stays(self):
        with serving({"/tiny.gguf?x=1": (200, self.bytes), "/cut.gguf": (200, self.bytes[:3000]),
                      "/..%2Fevil.gguf": (200, self.bytes), "/page.html": (200, b"<html>")}) as url:
            self.twill("pull", url + "/tiny.gguf?x=1", "--sha256", self.sum)
            self.assertEqual(self.stored(), ["tiny.gguf"])
            self.assertIn("was not kept", self.twill("pull", url + "/cut.gguf", status=1).stderr)
            self.assertIn("could not download", self.twill("pull", url + "/none.gguf", status=1).stderr)
            self.assertIn("a model's name must", self.twill("pull", url + "/..%2Fevil.gguf", status=1).stderr)
            self.assertIn("must be a GGUF file", self.twill("pull", url + "/page.html", status=1).stderr)
            self.twill("rm", "tiny.gguf")
            wrong = self.twill("pull", url + "/tiny.gguf?x=1", "--sha256", "0" * 64, status=1).stderr
            self.assertIn(f"got {self.sum}; it was not kept", wrong)
        self.assertEqual(self.stored(), [])

    def test_all_files_of_a_model_in_several_are_pulled(self):
        parts = split_gguf.split(self.GGUF, self.scratch.name, "tiny", 2)
        names = [os.path.basename(path) for path in parts]
        self.assertEqual(self.twill("pull", parts[1]).stdout, os.path.join(self.models, "tiny") + "\n")
        self.assertEqual(sorted(os.listdir(os.path.join(self.models, "tiny"))), names)
        self.assertIn("must come with one file", self.twill("pull", parts[0], "--sha256", "0" * 64, status=1).stderr)
        self.twill("rm", "tiny")
        contents = []
        for path in parts:
            with open(path, "rb") as file:
                contents.append(file.read())
        pages = {f"/m/{name}?x=1": (200, data) for name, data in zip(names, contents)}
        with serving(pages) as url:
            self.twill("pull", f"{url}/m/{names[0]}?x=1")
            self.assertEqual(sorted(os.listdir(os.path.join(self.models, "tiny"))), names)
            self.twill("rm", "tiny")
            del pages[f"/m/{names[1]}?x=1"]
            self.assertIn("could not download", self.twill("pull", f"{url}/m/{names[0]}?x=1", status=1).stderr)
        os.remove(parts[0])
        self.assertIn("this is part 1 of 2", self.twill("pull", parts[1], status=1).stderr)
        self.assertEqual(self.stored(), [])

    def test_nothing_outside_the_folder_is_removed(self):
        os.makedirs(os.path.join(self.models, "inner"))
        beside = os.path.join(self.scratch.name, "beside.gguf")
        with open(beside, "w") as file:
            file.write("x")
        os.symlink(self.scratch.name, os.path.join(self.models, "link"))
        for name in ("../beside.gguf", "../beside", beside, "inner/../../beside.gguf", "..", ".", "", "link/beside.gguf",
                     "inner/", "/"):
            self.assertIn("there is no model", self.twill("rm", name, status=1).stderr)
        self.twill("rm", "link")  # removes the link, not its target
        self.assertTrue(os.path.exists(beside))
        self.assertEqual(self.stored(), ["inner"])

    def test_an_interrupted_pull_keeps_nothing(self):
        big = os.path.join(self.scratch.name, "big")
        shutil.copytree(self.FOLDER, big)
        with open(os.path.join(big, "more.bin"), "wb") as file:
            file.truncate(2 << 30)  # a sparse file, which takes seconds to copy
        pull = subprocess.Popen([os.path.join(BIN, "twill"), "models", "pull", big], stderr=subprocess.PIPE, text=True,
                                env={**os.environ, "TWILL_MODELS": self.models})
        while pull.poll() is None and not self.stored():
            time.sleep(0.01)
        pull.send_signal(signal.SIGINT)
        self.assertIn("nothing was kept", pull.communicate(timeout=30)[1])
        self.assertEqual(pull.returncode, 130)
        self.assertEqual(self.stored(), [])

    def test_what_an_interrupted_pull_left_is_removed_by_the_next(self):
        left = os.path.join(self.models, ".fetch-abcdef")
        os.makedirs(left)
        os.utime(left, (0, 0))
        self.twill("pull", self.GGUF)
        self.assertEqual(self.stored(), ["model.gguf"])


class TwillReplay(unittest.TestCase):
    def test_the_exit_status_tells_the_same_another_and_no_trace(self):
        with scratch() as folder:
            path = os.path.join(folder, "trace")
            with Daemon("--model", "dummy:null", "--set", f"scheduler.trace={path}") as daemon:
                body = json.dumps({"prompt": "Once upon a time", "max_tokens": 8}).encode()
                asked = urllib.request.Request(daemon.ready() + "/v1/completions", body, {"Content-Type": "application/json"})
                with urllib.request.urlopen(asked, timeout=60) as reply:
                    self.assertEqual(reply.status, 200)
                daemon.signal(signal.SIGTERM)
                self.assertEqual(daemon.ends_with(), 0)
            done = run("twill", "replay", path)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r"^the same decisions: [1-9]\d* of 1 scheduler about 1 requests\n$")

            with open(path) as file:
                lines = file.readlines()

            def replay(changed):
                with open(path, "w") as file:
                    file.writelines(changed)
                return run("twill", "replay", path)

            done = replay([*lines, lines[-1][:-2]])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("the last line is not whole", done.stdout)
            plan = next(i for i, line in enumerate(lines) if '"e":"plan"' in line)
            done = replay([*lines[:plan], *lines[plan + 1:]])
            self.assertEqual((done.returncode, done.stderr), (1, ""))
            self.assertRegex(done.stdout, rf"^another decision at {re.escape(path)}:\d+: ")
            done = replay([*lines[:plan], "no line of a trace\n"])
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f"{path}:{plan + 1}: ", done.stderr)
            self.assertEqual(replay([]).returncode, 2)
            for none in (os.path.join(folder, "none"), folder):
                done = run("twill", "replay", none)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(f"cannot read {none}: ", done.stderr)
            self.assertEqual(run("twill", "replay").returncode, 2)


class TwillMessages(unittest.TestCase):
    def test_a_wrong_address_is_refused_by_name(self):
        done = run("twill", "chat", "--prompt", "hi", "--url", "ftp://example.org")
        self.assertEqual(done.returncode, 1)
        self.assertIn("`--url` must be an http://, https://, ws:// or wss:// address", done.stderr)

    def test_no_colour_codes_go_into_a_pipe(self):
        done = run("twill", "doctor", env={"TERM": "xterm"}, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("\x1b", done.stdout + done.stderr)
        for words in ("compiler", "CAF", "Boost", "instructions", "GB/s", "compute threads", "NVIDIA's GPUs", "this build"):
            self.assertIn(words, done.stdout)


    def test_doctor_names_the_gpus_that_the_driver_shows_also_where_none_can_be_opened(self):
        driver = os.path.join(os.path.dirname(BIN), "fake_nvidia_driver")
        self.assertTrue(os.path.exists(os.path.join(driver, "libcuda.so.1")), driver)
        for status, expected in (("0", ["driver +(?:[0-9.]+|installed), runs CUDA 12.4 and older\n",
                                        "GPU 0 +NVIDIA A100-SXM4-80GB, compute capability 8.0, 80.0 GiB\n", "GPU 1 +Tesla T4, compute capability 7.5"]),
                                 ("100", ["shows no GPU: no CUDA-capable device is detected\n"]), ("999", ["shows no GPU: error 999\n"])):
            done = run("twill", "doctor", "--set", "device.kind=cuda", "--model", "dummy:null", env={"LD_LIBRARY_PATH": driver, "FAKE_CUDA_INIT": status})
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn("device.kind", done.stderr)
            for words in ("^NVIDIA's GPUs\n", "this build +\\S", *expected):
                self.assertRegex(done.stdout, words)


class BenchKernels(unittest.TestCase):
    def test_every_case_is_a_line_held_against_the_measured_limits(self):
        done = run("twill-bench", "kernels", "--small", "--seconds", "0.001", "--only", "norm")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"limits: read [\d.]+ GB/s, copy [\d.]+ GB/s; multiply-adds f32 \d+, bf16 \d+, int8 \d+")
        self.assertRegex(done.stdout, r"\nlayer_norm +16 x 64 +[\d.]+ +[\d.]+ +[\d.]+ % +[\d.]+ +[\d.]+ % clock\n")

    def test_every_form_of_weights_runs_at_every_shape_it_fits(self):
        done = run("twill-bench", "kernels", "--small", "--seconds", "0.001", "--rows", "1", "--only", "linear")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\nlinear u4/128 zeros int8 +1 x 256 -> 96 ")
        self.assertRegex(done.stdout, r"\nlinear u4/32 halves int8 +1 x 576 -> 96 ")
        self.assertNotRegex(done.stdout, r"u4/128 zeros int8 +1 x 576 ")


if __name__ == "__main__":
    unittest.main()
