#!/usr/bin/env python3
"""Runs `twill chat` at a terminal against a server whose answers are the test's own."""

import os
import random
import re
import signal
import subprocess
import termios
import textwrap
import time
import unicodedata
import unittest

from chat_server import MODELS, ChatServer
from programs import BIN, run, scratch
from terminal import Terminal

PASTE = "\x1b[200~%s\x1b[201~"
NOTE = r"\[\d+ \+ \d+ tokens"


class Chat(Terminal):
    """A chat that has shown its first prompt. The history is in the folder `cache`; without it none is kept."""

    def __init__(self, server, *arguments, cache=None, **how):
        where = {"XDG_CACHE_HOME": cache} if cache else {}
        keeps = [] if cache else ["--no-history"]
        environment = {"NO_COLOR": "1", **where, **how.pop("env", {})}
        super().__init__("chat", "--url", server.url, *keeps, *arguments, env=environment, **how)
        self.edits_lines = environment.get("TERM") != "dumb"
        self.greeting = self.wait_for("(?m)^> ")
        if self.edits_lines:
            self.wait_for_keys()

    def wait_for_keys(self):
        """Waits until the chat gets single keys: it shows its prompt a moment before it switches the terminal."""
        end = time.monotonic() + 20
        while termios.tcgetattr(self.end)[3] & termios.ICANON:
            assert time.monotonic() < end, "keys must come one by one behind a prompt"
            time.sleep(0.01)

    def leave(self):
        self.wait_for_keys()  # before that, the kernel would take Ctrl-D as the end of a line that it edits
        self.type("\x04")
        return self.ends_with()

    def read(self, seconds):
        came = super().read(seconds)
        self.shown = re.sub(r"\x1b\[\?2004[hl]", "", self.shown)  # without the codes that switch bracketed paste
        return came

    def ask(self, text):
        """Types a line and returns the lines of the reply."""
        if self.edits_lines:
            self.wait_for_keys()  # before that, the kernel would show the line once more
        self.type(text + "\r")
        shown = self.wait_for(NOTE)
        self.wait_for("\n> ")
        return shown[:shown.rindex("[")].replace("\r", "").split("\n")[1:-1]


def answers(*texts):
    return lambda request: list(texts)


def columns(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def slow(texts, seconds=0.02):
    def answer(request):
        for text in texts:
            time.sleep(seconds)
            yield text
    return answer


def history_in(folder):
    """The lines of the history; libedit writes them as strvis does."""
    with open(os.path.join(folder, "twill/chat_history")) as file:
        lines = file.read().splitlines()
    assert lines[0] == "_HiStOrY_V2_", lines
    return [re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), line) for line in lines[1:]]


class Messages(unittest.TestCase):
    def test_what_is_pasted_is_one_message(self):
        blocks = ["def f():\n    return 1\n\nprint(f())", "/usr/bin\n/bin", '"""A docstring."""\nx = 1\\\ny = "\\"',
                  "a\tb\n\tc", "你好\nnaïve 👍🏽", "\n".join(f"line {i} of a long file" for i in range(200)), '"""\nopen']
        with ChatServer(answers("ok")) as server, Chat(server, columns=60, rows=20) as chat:
            for block in blocks:
                # Terminals send Enter's key for newlines; a block often ends with one.
                chat.type(PASTE % (block.replace("\n", "\r") + "\r") + "\r")
                chat.wait_for(NOTE)
            chat.type("Explain: " + PASTE % "a\rb" + " now\r")
            chat.wait_for(NOTE)
            self.assertEqual(server.said(), [*blocks, "Explain: a\nb now"])

    def test_what_is_pasted_during_a_reply_is_the_next_message(self):
        with ChatServer(slow(["one "] * 40)) as server, Chat(server) as chat:
            chat.type("go\r")
            chat.wait_for("one one")
            chat.type(PASTE % "two\rlines")
            chat.wait_for(NOTE)
            chat.wait_for("lines")
            chat.type("\r")
            chat.wait_for(NOTE)
            self.assertEqual(server.said(), ["go", "two\nlines"])

    def test_a_block_between_quotation_marks_is_one_message(self):
        said = ['"""', "def f():", "  return 1", '"""', '"""one"""', '"""a', "/b", 'c"""', "d\\", "e", "f"]
        wanted = ["def f():\n  return 1", "one", "a\n/b\nc", "d\ne", "f"]
        with ChatServer(answers("ok")) as server, Chat(server) as chat:
            for line in said:
                chat.type(line + "\r")
                chat.wait_for("\n[>.] ")
            self.assertEqual(server.said(), wanted)
            chat.type('"""begun\r')
            chat.wait_for(r"\n\. ")
            chat.wait_for_keys()
            chat.type("and left")
            chat.wait_for("and left")
            chat.type("\x03")  # ends the block without sending it; the chat continues
            chat.wait_for("\n> ")
            self.assertEqual(chat.ask("g"), ["ok"])
            self.assertEqual(server.said()[len(wanted):], ["g"])

    def test_a_pipe_is_one_message_unless_its_lines_are(self):
        with ChatServer(answers("o", "k")) as server:
            self.assertEqual(run("twill", "chat", "--url", server.url, stdin="a\n\n b\n").stdout, "ok\n")
            self.assertEqual(run("twill", "chat", "--url", server.url, "--prompt", "-", stdin="c\nd").stdout, "ok\n")
            self.assertEqual(run("twill", "chat", "--url", server.url, stdin=" \n\n").stdout, "")
            self.assertEqual(run("twill", "chat", "--url", server.url, "--lines", stdin='e\n\n/f\n"""\ng\n\nh\n"""\ni').stdout,
                             "ok\n" * 4)
            self.assertEqual(server.said(), ["a\n\n b", "c\nd", "e", "/f", "g\n\nh", "i"])

    def test_keys_that_interrupt(self):
        with ChatServer(slow(["word "] * 500)) as server, Chat(server) as chat:
            chat.type("half a line")
            chat.wait_for("half a line")
            chat.type("\x03")  # forgets the line
            chat.wait_for("\n> ")
            chat.type("go\r")
            chat.wait_for("word word")
            chat.type("\x03")
            chat.wait_for(r"\[cancelled\]\s+> ")
            chat.type("\x03")
            self.assertEqual(chat.ends_with(), 0)
            self.assertEqual(server.said(), ["go"])
        with ChatServer(answers("ok")) as server, Chat(server) as chat:
            self.assertEqual(chat.leave(), 0)

    def test_the_terminal_is_as_before_after_a_signal(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            with ChatServer(slow(["word "] * 500)) as server, Chat(server) as chat:
                chat.process.send_signal(number)
                self.assertEqual(chat.ends_with(), 128 + number)
                self.assertEqual(termios.tcgetattr(chat.end)[3] & (termios.ICANON | termios.ECHO),
                                 termios.ICANON | termios.ECHO)
            with ChatServer(slow(["word "] * 500)) as server, Chat(server) as chat:
                chat.type("go\r")
                chat.wait_for("word word")
                chat.process.send_signal(number)
                self.assertEqual(chat.ends_with(), 128 + number)


class Commands(unittest.TestCase):
    def test_the_model_is_named_first(self):
        with ChatServer(answers("ok")) as server:
            with Chat(server) as chat:
                self.assertIn("tiny (llama, F32, context of 1000 tokens)", chat.greeting)
                self.assertIn(server.url, chat.greeting)
            with Chat(server, "--quiet") as chat:
                self.assertNotIn("tiny", chat.greeting)
        two = [*MODELS, {**MODELS[0], "id": "huge", "max_model_len": 9}]
        with ChatServer(answers("ok"), models=two) as server:
            with Chat(server) as chat:
                self.assertIn("serves tiny, huge; /model ID chooses one", chat.greeting)
                chat.type("/model huge\r")
                chat.wait_for("come from huge")
                chat.type("/context\r")
                chat.wait_for("holds 9 tokens")
            with Chat(server, "--model", "huge") as chat:
                self.assertIn("huge (llama, F32, context of 9 tokens)", chat.greeting)

    def test_no_daemon_is_told_before_the_first_message(self):
        with Terminal("chat", "--url", "http://127.0.0.1:1") as chat:
            chat.wait_for("cannot connect")
            self.assertEqual(chat.ends_with(), 1)

    def test_tab_completes_commands_and_their_words(self):
        with ChatServer(answers("ok"), models=[*MODELS, {**MODELS[0], "id": "evil\x1b]0;x\x07"}]) as server:
            with Chat(server, "--model", "tiny", columns=80, rows=24) as chat:
                chat.type("/con\t\r")
                chat.wait_for("Nothing was said yet; the context holds 1000 tokens")
                chat.type("/\t")
                listed = chat.wait_for("/bye|/quit")
                for command in ("/help", "/system", "/clear", "/save", "/model", "/context", "/truncation"):
                    self.assertIn(command, listed)
                chat.type("tr\ta\t\r")
                chat.wait_for("oldest turns are left out from now on")
                chat.type("/model \t\r")  # Tab completes the name of the other model
                chat.wait_for("come from tiny")
                chat.type("a\tb\r")
                chat.wait_for(NOTE)
                self.assertEqual(server.said(), ["a\tb"])
                chat.type("/help\r")
                chat.wait_for(r"/truncation auto\|disabled +leaves out")
                self.assertNotIn("\n/exit", chat.wait_for("\n> "))
                chat.type("/bye\r")
                self.assertEqual(chat.ends_with(), 0)


class Shown(unittest.TestCase):
    def test_words_are_not_broken(self):
        randomly = random.Random(5)
        words = ["".join(randomly.choices("abcdefghij.,", k=randomly.randint(1, 12))) for _ in range(300)]
        text = "x" + " ".join(words)
        pieces = [text[i:i + 7] for i in range(0, len(text), 7)]
        with ChatServer(answers(*pieces)) as server, Chat(server, columns=40, rows=24) as chat:
            for width in (40, 33, 71):
                chat.resize(width, 24)
                self.assertEqual(chat.ask("go"), textwrap.wrap(text, width, break_on_hyphens=False))
            piped = run("twill", "chat", "--url", server.url, "--prompt", "hi")
            self.assertEqual(piped.stdout, text + "\n")

    def test_a_line_is_drawn_anew_when_the_terminal_changes(self):
        with ChatServer(answers("ok")) as server, Chat(server, columns=60, rows=24) as chat:
            line = "many words " * 7
            chat.type(line)
            chat.wait_for("(many words ){5}(?s:.*)many words $")
            chat.resize(50, 24)
            chat.wait_for(r"\r\x1b\[1A\x1b\[J> many words")  # the line is drawn again from the first of its two rows
            chat.process.send_signal(signal.SIGSTOP)
            os.waitpid(chat.process.pid, os.WUNTRACED)
            modes = termios.tcgetattr(chat.end)
            modes[3] |= termios.ICANON | termios.ECHO  # as a shell does
            termios.tcsetattr(chat.end, termios.TCSANOW, modes)
            chat.process.send_signal(signal.SIGCONT)
            chat.wait_for(r"\r\x1b\[J> many words")  # the line is drawn again at the cursor
            self.assertFalse(termios.tcgetattr(chat.end)[3] & (termios.ICANON | termios.ECHO))
            chat.type("\r")
            chat.wait_for(NOTE)
            self.assertEqual(server.said(), [line.strip()])

    def test_wide_characters_fit_the_terminal(self):
        text = "你好世界，这是一个很长的句子。" * 5 + " 그리고 한국어 문장은 띄어쓰기로 나뉩니다 " * 3 + "👍🏽" * 30 + "e\u0301" * 50
        with ChatServer(answers(*text)) as server, Chat(server, columns=31, rows=24) as chat:
            lines = chat.ask("go")
            self.assertTrue(all(columns(line) <= 31 for line in lines), lines)
            self.assertEqual("".join(lines).replace(" ", ""), text.replace(" ", ""))
            self.assertFalse([line for line in lines if line[0] in "，。"], lines)
            for word in "그리고 한국어 문장은 띄어쓰기로 나뉩니다".split():
                self.assertEqual(sum(line.count(word) for line in lines), 3, lines)

    def test_code_stays_as_it_is(self):
        code = "x = [" + ", ".join(str(i) for i in range(60)) + "]"
        table = "| " + " | ".join(["cell"] * 20) + " |"
        prose = "these are many words of a text that has to be wrapped at the width of a terminal"
        text = f"{prose}\n\n```python\n{code}\n  ```x\n{code}\n```\n{prose}\n\n    {code}\n    {code}\n\n{table}\n- {prose}\n"
        with ChatServer(answers(*text)) as server, Chat(server, columns=30, rows=24) as chat:
            lines = chat.ask("go")
        self.assertEqual(lines.count(code), 2)
        self.assertEqual(lines.count("    " + code), 2)
        self.assertIn(table, lines)
        folded = textwrap.wrap(prose, 30)
        self.assertEqual(lines[:len(folded)], folded)
        item = textwrap.wrap(prose, 30, initial_indent="- ", subsequent_indent="  ")
        self.assertEqual(lines[-len(item) - 1:], [*item, ""])

    def test_a_server_cannot_steer_the_terminal(self):
        evil = "a\x1b[31mred\x1b]0;title\x07b\x9b2Jc\x08\x08\rd\x00\x7fe"
        models = [{**MODELS[0], "id": "tiny" + evil, "family": evil}]
        with ChatServer(lambda request: [evil, evil] if "good" in request["input"][-1]["content"] else ("bad", evil),
                        models=models) as server:
            for environment in ({}, {"TERM": "dumb"}):
                with Chat(server, env=environment, columns=50, rows=24) as chat:
                    shown = chat.greeting
                    for line in ("good", "bad", "/model x", "/mod\t", "/model tiny\t", "\x15/context"):
                        chat.type(line + "\r")
                        shown += chat.wait_for("\n> ")
                    chat.type("/quit\r")
                    self.assertEqual(chat.ends_with(), 0)
                    shown += chat.shown
                for bad in ("\x1b[31m", "\x1b]", "\x07b", "\x9b", "\x1b[2J", "\x00", "\x7f"):
                    self.assertNotIn(bad, shown)
                self.assertIn("�[31mred�]0;title�b�2Jc��d��e", re.sub(r"\r?\n *", "", shown))


class History(unittest.TestCase):
    def test_a_closed_terminal_keeps_it(self):
        with ChatServer(slow(["word "] * 100)) as server, scratch() as cache:
            wanted = []
            for i in range(6):
                with Chat(server, cache=cache) as chat:
                    chat.type(f"/context {i}\r")
                    chat.wait_for("\n> ")
                    if i % 2:  # in the middle of a reply
                        chat.type(f"say {i}\r")
                        chat.wait_for("word word")
                        wanted.insert(len(wanted), f"/context {i}")
                        wanted.append(f"say {i}")
                    else:
                        wanted.append(f"/context {i}")
                    chat.close()
                    self.assertIn(chat.ends_with(), (0, 129))
                self.assertEqual(history_in(cache), wanted)
            with Chat(server, cache=cache) as chat:
                chat.type("/context killed\r")
                chat.wait_for("\n> ")
                chat.process.kill()
                chat.ends_with()
            self.assertEqual(history_in(cache), [*wanted, "/context killed"])
            self.assertEqual(os.listdir(os.path.join(cache, "twill")), ["chat_history"])
            self.assertEqual(os.stat(os.path.join(cache, "twill/chat_history")).st_mode & 0o777, 0o600)

    def test_two_chats_at_once_keep_both(self):
        with ChatServer(answers("ok")) as server, scratch() as cache:
            with Chat(server, cache=cache) as one, Chat(server, cache=cache) as other:
                one.ask("first")
                other.ask("second")
                one.ask("third")
                for chat in (one, other):
                    self.assertEqual(chat.leave(), 0)
            self.assertEqual(history_in(cache), ["first", "second", "third"])

    def test_many_chats_at_once_keep_every_line(self):
        with ChatServer(answers("ok")) as server, scratch() as cache:
            chats = [Chat(server, cache=cache) for _ in range(4)]
            for i in range(5):
                for n, chat in enumerate(chats):
                    chat.type(f"/context {n} {i}\r")
            for chat in chats:
                for _ in range(5):
                    chat.wait_for("\n> ")
                chat.leave()
                chat.__exit__()
            self.assertEqual(sorted(history_in(cache)), sorted(f"/context {n} {i}" for n in range(4) for i in range(5)))

    def test_a_pasted_message_comes_back_as_one(self):
        with ChatServer(answers("ok")) as server, scratch() as cache:
            with Chat(server, cache=cache) as chat:
                chat.type(PASTE % "two\rlines" + "\r")
                chat.wait_for(NOTE)
            with Chat(server, cache=cache) as chat:
                chat.type("\x1b[A\r")
                chat.wait_for(NOTE)
            self.assertEqual(server.said(), ["two\nlines"] * 2)
            with Chat(server, cache=cache) as chat:
                chat.type(PASTE % ("many words\r" * 7000))  # too long for the history, which is rewritten with each line
                chat.type("\r")
                chat.wait_for(NOTE)
            self.assertEqual(server.said()[-1], ("many words\n" * 7000).strip())
            self.assertEqual(history_in(cache), ["two\nlines"])

    def test_an_older_file_and_a_link_are_kept(self):
        with ChatServer(answers("ok")) as server, scratch() as cache:
            os.makedirs(os.path.join(cache, "twill"))
            real = os.path.join(cache, "real")
            with open(real, "w") as file:
                file.write("_HiStOrY_V2_\nold\\040line\n")
            os.chmod(real, 0o644)
            os.symlink(real, os.path.join(cache, "twill/chat_history"))
            with Chat(server, cache=cache) as chat:
                chat.ask("new")
            self.assertTrue(os.path.islink(os.path.join(cache, "twill/chat_history")))
            self.assertEqual(history_in(cache), ["old line", "new"])
            self.assertEqual(os.stat(real).st_mode & 0o777, 0o600)


class Keys(unittest.TestCase):
    def test_a_missing_key_is_told_with_how_to_give_it(self):
        with ChatServer(answers("ok"), key="the-key") as server:
            none = {"TWILL_API_KEY": ""}
            for command in (["chat", "--prompt", "hi"], ["complete", "hi"], ["tokenize", "hi"], ["models"]):
                done = run("twill", *command, "--url", server.url, env=none)
                self.assertEqual(done.returncode, 1, command)
                for words in ("wants an API key, and none was given", "TWILL_API_KEY", "--api-key", "twill key new"):
                    self.assertIn(words, done.stderr, command)
                done = run("twill", *command, "--url", server.url, env={"TWILL_API_KEY": "another"})
                self.assertIn("does not know the API key", done.stderr, command)
                self.assertNotIn("another", done.stderr)
            with Terminal("chat", "--url", server.url, env=none) as chat:
                chat.wait_for("wants an API key")
                self.assertEqual(chat.ends_with(), 1)
            done = run("twill", "chat", "--prompt", "hi", "--url", server.url, env={"TWILL_API_KEY": "the-key"})
            self.assertEqual(done.stdout, "ok\n")


class Context(unittest.TestCase):
    def test_it_is_told_how_full_the_context_is(self):
        uses = [(100, 50), (700, 99), (750, 50), (800, 50), (900, 100), (10, 1)]
        with ChatServer(answers("ok"), usage=lambda turn: uses[turn - 1]) as server:
            with Chat(server, columns=400, rows=24) as chat:
                for words, warned in (("", False), ("", False), ("context 80 % full", True), ("context 85 % full", False),
                                      ("context 100 % full", True)):
                    chat.type("go\r")
                    shown = chat.wait_for("\n> ")
                    self.assertIn(words, shown)
                    self.assertEqual("/truncation auto goes on" in shown, warned, shown)
                chat.type("/context\r")
                self.assertIn("1000 of 1000 tokens are in the context, 100 %.", chat.wait_for("\n> "))
                chat.type("/clear\r/context\r")
                chat.wait_for("Nothing was said yet")

    def test_a_full_context_offers_what_to_do(self):
        def answer(request):
            full = len(server.requests) > 1 and "truncation" not in request
            return ("context_length_exceeded", "`prompt` must be < 1000 tokens, got 1001") if full else ["ok"]
        with ChatServer(answer) as server, Chat(server, columns=400, rows=24) as chat:
            chat.ask("one")
            chat.type("two\r")
            shown = chat.wait_for("\n> ")
            for words in ("got 1001", "/clear begins a new conversation", "/truncation auto goes on"):
                self.assertIn(words, shown)
            chat.type("/truncation sometimes\r")
            chat.wait_for("auto or disabled, got \"sometimes\"")
            chat.type("/truncation auto\r")
            chat.wait_for("left out from now on.\\s+> ")
            self.assertEqual(chat.ask("two"), ["ok"])
            self.assertEqual(server.requests[-1]["truncation"], "auto")
            # The whole conversation is sent; the server chooses what to leave out.
            self.assertEqual([item["content"] for item in server.requests[-1]["input"]], ["one", "ok", "two"])
            chat.type("/truncation disabled\r/clear\r")
            chat.wait_for("begins anew")
            chat.type("long\r")
            chat.wait_for("The message alone is too long; say it shorter")
            server.requests.clear()
            done = run("twill", "chat", "--url", server.url, "--lines", stdin="a\nb\n")
            self.assertEqual((done.returncode, done.stdout), (1, "ok\n"))
            self.assertIn("got 1001", done.stderr)
            self.assertIn("--truncation auto", done.stderr)
            done = run("twill", "chat", "--url", server.url, "--lines", "--truncation", "auto", stdin="a\nb\n")
            self.assertEqual(done.stdout, "ok\nok\n")


if __name__ == "__main__":
    unittest.main()
