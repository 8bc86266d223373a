#!/usr/bin/env python3
"""`twill top` over several daemons shows all daemons that answer, whatever happens to the others."""

import contextlib
import json
import os
import re
import signal
import socket
import unittest
import urllib.request

from programs import Daemon, run, scratch
from terminal import Terminal

MODEL = "dummy:opt-125m?layers=1&vocab=1000"
NOBODY = "http://127.0.0.1:1"
QUICK = ("--once", "--interval", "0.1")


def daemon(*settings, **how):
    return Daemon("--model", MODEL, *settings, **how)


def ask(url, tokens):
    body = {"prompt": "hello", "max_tokens": tokens, "ignore_eos": True}
    request = urllib.request.Request(url + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as reply:
        reply.read()


def top(*arguments, env=None):
    return run("twill", "top", *arguments, env=env)


def of(*urls):
    return [part for url in urls for part in ("--url", url)]


def row(text, label):
    """The words of a daemon's row, or an empty list."""
    line = next((line for line in text.splitlines() if line.startswith(label + " ")), "")
    return re.sub(r"\[.*?\]", "", line).split()


@contextlib.contextmanager
def silent_server():
    """A server that accepts connections and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


class FleetOnce(unittest.TestCase):
    def test_one_table_has_all_daemons_and_their_sum(self):
        with daemon("--set", "server.name=east") as one, daemon() as two:
            urls = one.ready(), two.ready()
            for url, requests in zip(urls, (2, 1)):
                for _ in range(requests):
                    ask(url, 5)
            done = top(*QUICK, *of(*urls, NOBODY))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^twill top  3 daemons, 2 ready\n\nDAEMON +STATE +MODEL +RUN +WAIT +KV CACHE +OUT/S")
        address = urls[1].removeprefix("http://")
        for label, state, ended in (("east", "ready", "2"), (address, "ready", "1"), ("all", "2", "3")):
            words = row(done.stdout, label)
            self.assertEqual((words[1], words[-2]), (state, ended), done.stdout)
        self.assertEqual(row(done.stdout, "127.0.0.1:1"), ["127.0.0.1:1", "no", "answer"])
        self.assertIn("127.0.0.1:1: no answer from http://127.0.0.1:1: cannot connect", done.stdout)

    def test_a_silent_daemon_holds_up_the_end_and_not_the_numbers(self):
        with daemon() as one, silent_server() as silent:
            url = one.ready()
            done = top(*QUICK, *of(silent, url))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(row(done.stdout, silent.removeprefix("http://"))[1:], ["no", "answer"])
        self.assertEqual(row(done.stdout, url.removeprefix("http://"))[1], "ready")
        self.assertIn("none came in time", done.stdout)

    def test_no_answer_from_any_is_an_error(self):
        done = top(*QUICK, *of(NOBODY, "http://127.0.0.1:2"))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(len(done.stderr.splitlines()), 2)
        self.assertRegex(done.stderr, r"^twill: no answer from http://127.0.0.1:1: cannot connect")

    def test_an_address_is_given_once_and_an_administrators_alone(self):
        for urls in ((NOBODY, "127.0.0.1:1"), ("http://a", "http://a:80/v1")):
            done = top(*QUICK, *of(*urls))
            self.assertEqual(done.returncode, 2)
            self.assertIn("is given twice", done.stderr)
        done = top(*QUICK, *of(NOBODY, "http://a"), "--admin", "http://b")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--admin: shows one daemon", done.stderr)
        self.assertEqual(top(*QUICK, "--url", "http://a", "http://b").returncode, 2)

    def test_one_address_is_shown_as_it_was_also_from_the_environment(self):
        with daemon() as one:
            url = one.ready()
            for done in (top(*QUICK, "--url", url), top(*QUICK, env={"TWILL_URL": url})):
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stdout, rf"^twill top  {url}  ready\nmemory: ")
                self.assertNotIn("DAEMON", done.stdout)
        done = top(*QUICK, "--url", NOBODY)
        self.assertEqual((done.returncode, done.stdout), (1, ""))


class FleetAtATerminal(unittest.TestCase):
    def test_a_daemon_that_is_killed_comes_back_without_false_rates(self):
        with contextlib.ExitStack() as all:
            address = "unix:" + os.path.join(all.enter_context(scratch()), "east.sock")
            east = {"listen": address}
            silent = all.enter_context(silent_server())
            one, two = all.enter_context(daemon("--set", "server.name=east", **east)), all.enter_context(daemon())
            one.wait_for("ready in")
            url = two.ready()
            run("twill", "complete", "hello", "--max-tokens", "500", "--url", address)
            shown = all.enter_context(Terminal("top", *of(address, url, silent), "--interval", "0.1", columns=160, rows=30))
            other = re.escape(url.removeprefix("http://"))
            # The other daemons are shown while `twill top` still waits for the silent one.
            waits = re.escape(silent.removeprefix("http://"))
            shown.wait_for(rf"east +ready +opt.*\n{other} +ready +opt.*\n{waits} +asking.*\nall +2 ready")
            one.signal(signal.SIGKILL)
            one.ends_with()
            # The row of a daemon that is gone keeps its name, and the other rows stay.
            shown.wait_for(rf"east +no answer\b(?s:.)*{other} +ready +opt.*\n(?s:.)*all +1 ready(?s:.)*east: no answer from {address}")
            again = all.enter_context(daemon("--set", "server.name=east", **east))
            again.wait_for("ready in")
            frames = shown.wait_for(3 * r"all +2 ready(?s:.)*?q leaves(?s:.)*?").split("\x1b[H")
            rows = [row(frame.replace("\x1b[K", ""), "east") for frame in frames]
            counted = [words for words in rows if words[1:2] == ["ready"]]
            self.assertGreater(len(counted), 0, frames)
            for words in counted:
                self.assertEqual(words[7:9], ["0", "0"], words)
            shown.type("q")
            self.assertEqual(shown.ends_with(), 0)

    def test_it_starts_while_none_answers(self):
        with Terminal("top", *of(NOBODY, "http://127.0.0.1:2"), "--interval", "0.1", columns=120, rows=30) as shown:
            shown.wait_for(r"127.0.0.1:1 +no answer(?s:.)*127.0.0.1:2 +no answer(?s:.)*all +0 ready")
            shown.type("q")
            self.assertEqual(shown.ends_with(), 0)

    def test_a_low_terminal_keeps_the_sum(self):
        urls = [f"http://127.0.0.1:{port}" for port in range(1, 30)]
        with Terminal("top", *of(*urls), "--interval", "0.1", columns=120, rows=12) as shown:
            frame = shown.wait_for(r"more rows(?s:.)*all +0 ready(?s:.)*q leaves")
            self.assertLess(frame.rsplit("\x1b[H", 1)[-1].count("\n"), 12)
            shown.type("q")
            self.assertEqual(shown.ends_with(), 0)


if __name__ == "__main__":
    unittest.main()
