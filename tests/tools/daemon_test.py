#!/usr/bin/env python3
"""Runs twilld and twill together on the default model: they start, chat, complete, tokenize and react to signals."""

import json
import os
import re
import signal
import subprocess
import time
import unittest
import urllib.parse
import urllib.request

from programs import BIN, SOURCE, Daemon, default_model, run, scratch
from terminal import Terminal

MODEL = default_model()
# The reply is greedy, so that its length is always the same.
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

    def get(self, path, body=None):
        request = urllib.request.Request(self.url + path, None if body is None else json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def test_a_chat_reply_streams_and_repeats(self):
        ask = ("chat", "--prompt", "Name a colour.", "--temperature", "0", "--max-tokens", "16")
        first = self.twill(*ask)
        self.assertGreater(len(first.strip()), 3)
        self.assertEqual(first, self.twill(*ask))

    def test_a_conversation_is_what_its_whole_history_would_be(self):
        turns = ["Name a fruit.", "Name another one."]
        replies = self.twill("chat", "--lines", "--temperature", "0", "--max-tokens", "24", "--stop", "\n",
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

    def test_standard_input_may_be_the_text(self):
        text = "The capital of France is"
        how = ("--temperature", "0", "--max-tokens", "8")
        self.assertEqual(self.twill("complete", "-", *how, stdin=text), self.twill("complete", text, *how))
        self.assertEqual(self.twill("tokenize", "-", stdin=text + "\n"), self.twill("tokenize", text + "\n"))

    def test_the_id_has_no_spaces_and_other_names_are_accepted(self):
        self.assertEqual([model["id"] for model in self.get("/v1/models")["data"]], ["SmolLM2-135M-Instruct"])
        for name in ("SmolLM2-135M-Instruct", "SmolLM2-135M-Instruct.Q4_1", "Smollm2 135M 8k Lc100K Mix1 Ep2"):
            self.assertEqual(self.get("/v1/models/" + urllib.parse.quote(name))["id"], "SmolLM2-135M-Instruct")
            reply = self.twill("chat", "--prompt", "Hi.", "--model", name, "--max-tokens", "1", "--temperature", "0")
            self.assertGreater(len(reply), 1)

    def test_the_default_model_samples_as_its_authors_advise(self):
        def replies(**how):
            body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 12, "n": 4, "seed": 1, **how}
            return [choice["message"]["content"] for choice in self.get("/v1/chat/completions", body)["choices"]]

        # The sampling that the model's authors advise; see models/open/known_sampling.cpp.
        self.assertEqual(replies(), replies(temperature=0.2, top_p=0.9))
        self.assertNotEqual(replies(), replies(temperature=1, top_p=1))

    def test_status_top_and_models_describe_the_daemon(self):
        status = self.twill("status")
        self.assertRegex(status, rf"^ready at {self.url}, twilld \d")
        for words in (r"model +SmolLM2-135M-Instruct \(llama, Q4_1, context 8192\)", r"up for +\d", r"KV cache +\d+ %",
                      r"requests +\d+ running, \d+ waiting", r"tokens/s +\d+ generated", r"memory +\d"):
            self.assertRegex(status, words)
        self.assertEqual(self.twill("status", "--quiet"), "")
        top = self.twill("top", "--once", "--interval", "0.2")
        self.assertRegex(top, r"MODEL +RUN +WAIT +KV CACHE +OUT/S")
        self.assertRegex(top, r"\nSmolLM2-135M-Instruct +\d+ +\d+  \[[#.]{10}\] +\d+ %")
        self.assertIn("SmolLM2-135M-Instruct", self.twill("models"))

    def test_a_chat_at_a_terminal_has_editing_history_and_commands(self):
        with scratch() as folder, Terminal("chat", "--url", self.url, "--temperature", "0", "--max-tokens", "8",
                                           env={"XDG_CACHE_HOME": folder}) as chat:
            chat.wait_for("> ")
            chat.type("/hlp\n")
            chat.wait_for("did you mean /help\\?")
            chat.type("/system Be brief.\n")
            chat.wait_for("these instructions from now on")
            chat.type("/model nothing\n")
            chat.wait_for('"nothing" is not served; there is SmolLM2-135M-Instruct')
            chat.type("Name a colour.\x7f\x7f\x7f!\n")  # edited to "Name a colo!"
            chat.wait_for(r"\[\d+ \+ \d+ tokens")
            saved = os.path.join(folder, "talk.json")
            chat.type(f"/save {saved}\n")
            chat.wait_for("Saved to")
            chat.type(f"/save {saved}\n")
            chat.wait_for("was not written: File exists")
            chat.type("/clear\n")
            chat.wait_for("begins anew")
            chat.type("/quit\n")
            self.assertEqual(chat.ends_with(), 0)
            with open(saved) as file:
                talk = json.load(file)
            self.assertEqual([message["role"] for message in talk], ["system", "user", "assistant"])
            self.assertEqual(talk[1]["content"], "Name a colo!")
            history = os.path.join(folder, "twill/chat_history")
            self.assertEqual(os.stat(history).st_mode & 0o077, 0)
            with open(history) as file:
                self.assertIn("colo!", file.read())

    def test_an_interrupt_at_the_prompt_leaves(self):
        with Terminal("chat", "--url", self.url, "--no-history") as chat:
            chat.wait_for("> ")
            chat.type("\x03")
            self.assertEqual(chat.ends_with(), 0)

    def test_a_conversation_goes_on_beyond_the_context_without_its_oldest_turns(self):
        with Daemon("--model", MODEL, "--set", "scheduler.max_context_tokens=256") as daemon:
            url = daemon.ready()
            turns = "".join(f"Name a colour, number {i}, please.\n" for i in range(12))
            ask = ("chat", "--lines", "--temperature", "0", "--max-tokens", "16", "--stop", "\n", "--system", "Be brief.",
                   "--url", url)
            done = run("twill", *ask, stdin=turns)
            self.assertEqual(done.returncode, 1)
            self.assertIn("; --truncation auto leaves out the oldest turns", done.stderr)
            self.assertLess(len(done.stdout.splitlines()), 12)
            done = run("twill", *ask, "--truncation", "auto", stdin=turns)
            self.assertEqual((done.returncode, done.stderr, len(done.stdout.splitlines())), (0, "", 12))

    def test_a_terminal_that_cannot_edit_has_commands_all_the_same(self):
        with Terminal("chat", "--url", self.url, env={"TERM": "dumb"}) as chat:
            chat.wait_for("> ")
            chat.type("/hlp\n")
            chat.wait_for("did you mean /help")
            chat.type("/quit\n")
            self.assertEqual(chat.ends_with(), 0)

    def test_top_draws_itself_anew_until_q(self):
        with Terminal("top", "--url", self.url, "--interval", "0.1") as top:
            top.wait_for("SmolLM2-135M-Instruct(?s:.*)SmolLM2-135M-Instruct")
            top.type("q")
            self.assertEqual(top.ends_with(), 0)
            top.wait_for(r"\x1b\[\?1049l")  # the previous content of the screen is shown again

    def test_the_examples_of_the_guide_work(self):
        with open(os.path.join(SOURCE, "tools/twill/README.md")) as page:
            examples = re.findall(r"```sh\n(.*?)```", page.read(), re.DOTALL)
        self.assertEqual(len(examples), 3)
        with scratch() as folder:
            environment = {**os.environ, "PATH": BIN + ":" + os.environ["PATH"], "TWILL_URL": self.url, "HOME": folder,
                           "TWILL_MODELS": os.path.join(folder, "models"), "XDG_CACHE_HOME": folder}
            done = subprocess.run(["sh", "-e"], input="".join(examples), capture_output=True, text=True, cwd=folder,
                                  env=environment, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ("requests are answered", "Paris", "OUT/S", "[model]"):
            self.assertIn(words, done.stdout)

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
                daemon.wait_for(r'reloaded `log.level` \("info" -> "debug"\); '
                                r"these changes need a restart: `scheduler.max_queued` \(1024 -> 7\)")
                write("[log]\nlevel = 3\n")
                daemon.signal(signal.SIGHUP)
                daemon.wait_for("nothing was reloaded: .*`log.level` must be a string, got 3")


class Start(unittest.TestCase):
    def test_a_kv_cache_that_shortens_the_context_is_warned_of(self):
        with Daemon("--model", MODEL, "--set", "kv.memory=1MiB") as daemon:
            daemon.wait_for(r"warn.* the KV cache holds \d+ tokens, .* and not at the 8192 that the model allows; "
                            r"one such request takes a `kv.memory` of \d")
            daemon.ready()

    def test_the_example_of_the_operators_guide_works(self):
        with open(os.path.join(SOURCE, "tools/twilld/README.md")) as page:
            example = re.search(r"```sh\n(.*?)```", page.read(), re.DOTALL).group(1)
        with scratch() as folder:
            done = subprocess.run(["sh", "-e"], input=example, capture_output=True, text=True, cwd=folder, timeout=60,
                                  env={**os.environ, "PATH": BIN + ":" + os.environ["PATH"], "XDG_CACHE_HOME": folder,
                                       "TWILL_MODELS": os.path.dirname(MODEL)})
            with open(os.path.join(folder, "log")) as file:
                log = file.read()
        self.assertEqual(done.returncode, 0, done.stderr + log)
        self.assertIn("twilld.toml: ok\nready at http://127.0.0.1:", done.stdout)
        self.assertIn("SIGHUP: ", log)  # A reload has a thread of its own, so the order of this line and the next is not fixed.
        self.assertRegex(log, "SIGTERM: draining(?s:.*)stopped")

    def test_configured_sampling_wins_over_the_models_own(self):
        with Daemon("--model", MODEL, "--set", "sampling.temperature=0") as daemon:
            url = daemon.ready()
            ask = ("chat", "--prompt", "Tell me a story.", "--max-tokens", "24", "--url", url)
            replies = {run("twill", *ask).stdout for _ in range(3)}
            self.assertEqual(replies, {run("twill", *ask, "--temperature", "0").stdout})

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
