#!/usr/bin/env python3
"""Runs twilld and twill together on the default model: they start, chat, complete, tokenize and obey signals."""

import json
import os
import signal
import subprocess
import time
import unittest
import urllib.request

from programs import BIN, Daemon, default_model, run, scratch

MODEL = default_model()
# The reply is greedy, so that its length does not depend on luck.
LONG_REPLY = ("Write a long essay about the history of the Roman empire.", "--temperature", "0")


class Together(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon("--model", MODEL, "--set", "model.compute=f32")
        cls.url = cls.daemon.ready()

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def twill(self, *arguments, **how):
        done = run("twill", *arguments, "--url", self.url, **how)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_chat_reply_streams_and_repeats(self):
        ask = ("chat", "--prompt", "Name a colour.", "--temperature", "0", "--max-tokens", "16")
        first = self.twill(*ask)
        self.assertGreater(len(first.strip()), 3)
        self.assertEqual(first, self.twill(*ask))

    def test_a_conversation_is_what_its_whole_history_would_be(self):
        turns = ["Name a fruit.", "Name another one."]
        replies = self.twill("chat", "--temperature", "0", "--max-tokens", "24", "--stop", "\n",
                             "--system", "Be brief.", stdin="\n".join(turns))
        history = [{"role": "system", "content": "Be brief."}]
        for turn, reply in zip(turns, replies.splitlines(), strict=True):
            history.append({"role": "user", "content": turn})
            body = {"messages": history, "temperature": 0, "max_tokens": 24, "stop": "\n"}
            request = urllib.request.Request(
                self.url + "/v1/chat/completions", json.dumps(body).encode(),
                {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                whole = json.load(answer)["choices"][0]["message"]["content"]
            self.assertEqual(reply, whole)
            history.append({"role": "assistant", "content": whole})

    def test_a_completion_streams(self):
        text = self.twill("complete", "The capital of France is", "--temperature", "0",
                          "--max-tokens", "8", "--echo")
        self.assertTrue(text.startswith("The capital of France is Paris"), text)

    def test_daemon_and_file_give_the_same_tokens(self):
        text = "naïve café, 3 × 4 = 12\n"
        asked = self.twill("tokenize", text)
        local = run("twill", "tokenize", text, "--model", MODEL)
        self.assertEqual(asked, local.stdout)
        self.assertGreater(len(asked.split()), 5)
        self.assertEqual(self.twill("tokenize", text, "--pieces"),
                         run("twill", "tokenize", text, "--model", MODEL, "--pieces").stdout)

    def test_a_bad_value_is_reported_in_the_daemons_words(self):
        for command in (["chat", "--prompt"], ["complete"]):
            done = run("twill", *command, "hi", "--temperature", "101", "--url", self.url)
            self.assertEqual(done.returncode, 1)
            self.assertIn("`temperature`", done.stderr)
            self.assertIn("101", done.stderr)

    def test_interrupting_cancels_the_reply(self):
        client = subprocess.Popen(
            [os.path.join(BIN, "twill"), "chat", "--prompt", *LONG_REPLY,
             "--url", self.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertNotEqual(client.stdout.read(1), "")
        client.send_signal(signal.SIGINT)
        client.communicate(timeout=20)
        self.assertEqual(client.returncode, 130)

    def test_doctor_describes_the_model(self):
        report = run("twill", "doctor", "--model", MODEL, timeout=120).stdout
        for words in ("Q4_1", "KV per token", "compute type", "page cache"):
            self.assertIn(words, report)


class Signals(unittest.TestCase):
    def test_term_drains_and_ends_with_success(self):
        with Daemon("--model", MODEL) as daemon:
            daemon.ready()
            daemon.signal(signal.SIGTERM)
            self.assertEqual(daemon.ends_with(), 0)
            daemon.wait_for("SIGTERM: draining")

    def test_term_lets_a_reply_finish(self):
        with Daemon("--model", MODEL) as daemon:
            url = daemon.ready()
            client = subprocess.Popen(
                [os.path.join(BIN, "twill"), "chat", "--prompt", "Count to ten.", "--max-tokens", "100",
                 "--temperature", "0", "--url", url],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertNotEqual(client.stdout.read(1), "")
            daemon.signal(signal.SIGTERM)
            _, errors = client.communicate(timeout=60)
            self.assertEqual(client.returncode, 0, errors)
            self.assertEqual(daemon.ends_with(60), 0)

    def test_a_second_interrupt_stops_at_once(self):
        with Daemon("--model", MODEL) as daemon:
            url = daemon.ready()
            client = subprocess.Popen(
                [os.path.join(BIN, "twill"), "chat", "--prompt", *LONG_REPLY, "--url", url],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertNotEqual(client.stdout.read(1), "")
            daemon.signal(signal.SIGINT)
            daemon.wait_for("SIGINT: draining")
            daemon.signal(signal.SIGINT)
            self.assertEqual(daemon.ends_with(10), 0)
            client.communicate(timeout=20)
            self.assertEqual(client.returncode, 1)

    def test_hup_reloads_the_log_level_and_says_what_it_cannot(self):
        with scratch() as folder:
            path = os.path.join(folder, "twill.toml")

            def write(text):
                with open(path, "w") as file:
                    file.write(text)

            write("")
            with Daemon("--model", MODEL, "--config", path) as daemon:
                daemon.ready()
                write('[log]\nlevel = "debug"\n[scheduler]\nmax_queued = 7\n')
                daemon.signal(signal.SIGHUP)
                daemon.wait_for("reloaded `log.level`; these changes need a restart: `scheduler.max_queued`")
                write("[log]\nlevel = 3\n")
                daemon.signal(signal.SIGHUP)
                daemon.wait_for("nothing was reloaded: .*`log.level` must be a string, got 3")


class Start(unittest.TestCase):
    def test_ready_comes_within_a_second_or_so_of_a_cached_file(self):
        with open(MODEL, "rb") as file:
            while file.read(1 << 22):
                pass
        begin = time.monotonic()
        with Daemon("--model", MODEL) as daemon:
            daemon.ready()
            # The daemon promises one second, but other work may share the cores of a test machine.
            self.assertLess(time.monotonic() - begin, 10)


if __name__ == "__main__":
    unittest.main()
