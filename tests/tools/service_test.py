#!/usr/bin/env python3
"""Runs twilld as a service manager does: twilld reports its state over $NOTIFY_SOCKET, and takes sockets that were opened
for it."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import unittest
import urllib.parse
import urllib.request

from programs import BIN, SOURCE, Daemon, run, scratch

MODEL = "dummy:smollm2-135m?layers=1&vocab=704&hidden=96&heads=3&kv-heads=1&mlp=160"


class Manager:
    """The service manager: a folder with its socket, and the messages that came on the socket."""

    def __init__(self, watchdog=None):
        self.folder = scratch()
        self.path = os.path.join(self.folder.name, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.messages = []
        self.environment = {"NOTIFY_SOCKET": self.path}
        if watchdog is not None:
            self.environment["WATCHDOG_USEC"] = str(int(watchdog * 1e6))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.folder.cleanup()

    def wait_for(self, pattern, seconds=20):
        """Waits for a new message that matches; returns the match."""
        end = time.monotonic() + seconds
        while True:
            self.socket.settimeout(max(end - time.monotonic(), 0.01))
            try:
                text = self.socket.recv(4096).decode()
            except TimeoutError:
                raise AssertionError(f"a message must match {pattern!r}, got {self.messages}") from None
            self.messages.append(text)
            if found := re.search(pattern, text, re.MULTILINE):
                return found


class Managed(Daemon):
    """A daemon with its own environment variables, and with sockets at descriptors from 3 on."""

    def __init__(self, *arguments, env, sockets=(), model=MODEL):
        self.env, self.sockets = env, sockets
        super().__init__("--model", model, *arguments)

    def start(self, command, **how):
        if not self.sockets:
            return subprocess.Popen(command, env={**os.environ, **self.env}, **how)
        # The shell gives the sockets their numbers, as the protocol wants them, and its own number as LISTEN_PID.
        moves = " ".join(f"{3 + i}<&{s.fileno()}" for i, s in enumerate(self.sockets))
        return subprocess.Popen(
            ["bash", "-c", f'export LISTEN_PID=$$ LISTEN_FDS={len(self.sockets)}; exec "$@" {moves}', "bash",
             *command], env={**os.environ, **self.env}, pass_fds=[s.fileno() for s in self.sockets], **how)


def answer(url):
    with urllib.request.urlopen(url, timeout=20) as reply:
        return reply.status


class Notify(unittest.TestCase):
    def test_a_life_is_told_from_ready_to_stopping(self):
        with Manager() as manager:
            with Managed(env=manager.environment) as daemon:
                manager.wait_for("^READY=1$")
                url = daemon.ready()
                self.assertEqual(answer(url + "/ready"), 200)
                manager.wait_for("^STATUS=0 requests running, 0 waiting; 0 % of the KV cache in use$")
                daemon.signal(signal.SIGHUP)
                manager.wait_for(r"^RELOADING=1\nMONOTONIC_USEC=\d+$")
                manager.wait_for("^READY=1$")
                daemon.signal(signal.SIGTERM)
                manager.wait_for(r"^STOPPING=1\nSTATUS=draining\nEXTEND_TIMEOUT_USEC=45000000$")
                self.assertEqual(daemon.ends_with(), 0)

    def test_nobody_hears_of_ready_before_the_model_is_there(self):
        with Manager() as manager:
            with Managed(env=manager.environment, model="/nowhere/model.gguf") as daemon:
                self.assertEqual(daemon.ends_with(), 1)
            with self.assertRaises(AssertionError):
                manager.wait_for("READY=1", 0)

    def test_a_drain_counts_what_is_left(self):
        # The watchdog makes reports frequent; the reply takes longer than several of them.
        with Manager(watchdog=0.15) as manager, Managed(env=manager.environment) as daemon:
            url = daemon.ready()
            body = {"prompt": "on and on", "max_tokens": 1900, "ignore_eos": True, "stream": True, "n": 4}
            request = urllib.request.Request(url + "/v1/completions", json.dumps(body).encode(),
                                             {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=60) as reply:
                reply.readline()
                daemon.signal(signal.SIGTERM)
                manager.wait_for(r"^STATUS=draining: \d requests? left, for (29|30) s at most$")
                for _ in reply:
                    pass
            self.assertEqual(daemon.ends_with(60), 0)

    def test_the_watchdog_is_fed_three_times_in_its_time(self):
        with Manager(watchdog=1.5) as manager:
            with Managed(env=manager.environment):
                manager.wait_for("^READY=1$")
                manager.wait_for("^WATCHDOG=1$")
                begin = time.monotonic()
                for _ in range(5):
                    manager.wait_for("^WATCHDOG=1$", 1.5)
                self.assertLess(time.monotonic() - begin, 5)

    def test_the_watchdog_starves_while_a_step_takes_too_long(self):
        with Manager(watchdog=0.15) as manager, \
                Managed("--set", "scheduler.watchdog=20ms", "--set", "scheduler.max_step_tokens=2048",
                        env=manager.environment, model="dummy:opt-125m?layers=4&vocab=704") as daemon:
            url = daemon.ready()
            body = json.dumps({"prompt": [7] * 2000, "max_tokens": 1}).encode()
            with socket.create_connection(urllib.parse.urlsplit(url).netloc.split(":"), 30) as client:
                client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                               b"Content-Length: %d\r\nContent-Type: application/json\r\n\r\n%s" % (len(body), body))
                manager.wait_for("^STATUS=.*longer than `scheduler.watchdog` allows")
                self.assertNotIn("WATCHDOG", manager.messages[-1])
                # The watchdog is notified again only when the step is over.
                manager.wait_for("^WATCHDOG=1$", 60)
                self.assertIn("STATUS=", manager.messages[-1])
                self.assertIn(b" 200 ", client.recv(64))

    def test_without_a_watchdog_it_is_not_fed(self):
        with Manager(watchdog=0.3) as manager:
            manager.environment["WATCHDOG_PID"] = "1"
            with Managed(env=manager.environment) as daemon:
                daemon.ready()
                time.sleep(0.7)
                daemon.signal(signal.SIGTERM)
                manager.wait_for("^STOPPING=1$")
                self.assertNotIn("WATCHDOG", "".join(manager.messages))

    def test_a_manager_that_is_gone_costs_a_warning(self):
        with Managed(env={"NOTIFY_SOCKET": "/nowhere/notify"}) as daemon:
            url = daemon.ready()
            daemon.wait_for("cannot tell the service manager: No such file")
            self.assertEqual(answer(url + "/health"), 200)
        with Managed(env={"NOTIFY_SOCKET": "vsock:2:1"}) as daemon:
            daemon.wait_for("NOTIFY_SOCKET must be a path or @NAME, got vsock:2:1")
            daemon.ready()


class Folder(unittest.TestCase):
    def test_a_file_that_came_into_a_folder_is_read_by_reloading(self):
        with scratch() as folder:
            def write(name, text):
                with open(os.path.join(folder, name), "w") as file:
                    file.write(text)

            write("10.toml", "[scheduler]\nmax_queued = 7\n")
            with Managed("--config", folder, env={}) as daemon:
                daemon.ready()
                write("20.toml", "[log]\nlevel = 'debug'\n[scheduler]\nmax_queued = 8\n")
                daemon.signal(signal.SIGHUP)
                daemon.wait_for(r'reloaded `log.level` \("info" -> "debug"\); '
                                r"these changes need a restart: `scheduler.max_queued` \(7 -> 8\)")
                write("30.toml", "[log]\nlevel = 3\n")
                daemon.signal(signal.SIGHUP)
                daemon.wait_for("nothing was reloaded: .*30.toml:2:9: `log.level` must be a string, got 3")


class Hardened(unittest.TestCase):
    def test_tokens_are_the_same_where_no_memory_may_be_executable(self):
        """The unit sets MemoryDenyWriteExecute=, which PCRE2's JIT compiler must do without."""
        deny = ("import ctypes, os, sys; ctypes.CDLL(None).prctl(65, 1, 0, 0, 0) == 0 or sys.exit(99); "
                "os.execv(sys.argv[1], sys.argv[1:])")
        model = os.path.join(SOURCE, "tests/golden/llama3-style-tied-bf16")
        text = "Don't panic: naïve café, 1234567 × 89\n\n  indented\tçà et là…" * 50
        command = [os.path.join(BIN, "twill"), "tokenize", text, "--model", model]
        denied = subprocess.run([sys.executable, "-c", deny, *command], capture_output=True, text=True, timeout=60)
        if denied.returncode == 99:
            self.skipTest("this kernel has no PR_SET_MDWE")
        self.assertEqual((denied.returncode, denied.stderr), (0, ""))
        self.assertEqual(denied.stdout, run("twill", *command[1:]).stdout)
        self.assertGreater(len(denied.stdout.split()), 500)


class PassedSockets(unittest.TestCase):
    def test_clients_that_came_first_are_served_by_passed_sockets(self):
        with scratch() as folder:
            path = os.path.join(folder, "t.sock")
            with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as local, \
                    socket.create_connection(tcp.getsockname(), 30) as early:
                local.bind(path)
                local.listen()
                # This client connects before the model is loaded, and gets no answer until it is.
                early.sendall(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                with Managed(env={}, sockets=[tcp, local]) as daemon:
                    self.assertIn(f"http://127.0.0.1:{tcp.getsockname()[1]}, unix:{path}",
                                  daemon.wait_for("ready in .*").group())
                    self.assertIn(b" 200 ", early.recv(64))
                    # Only this machine can connect, so foreign host names are refused.
                    early.close()
                    with socket.socket(socket.AF_UNIX) as late:
                        late.connect(path)
                        late.sendall(b"GET /health HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
                        self.assertIn(b" 421 ", late.recv(64))
                    daemon.signal(signal.SIGTERM)
                    self.assertEqual(daemon.ends_with(), 0)
                # The sockets stay open for the next daemon.
                self.assertTrue(os.path.exists(path))
                with Managed(env={}, sockets=[tcp]) as daemon:
                    self.assertEqual(answer(daemon.ready() + "/ready"), 200)

    def test_a_stop_while_clients_wait_for_the_model_is_heard(self):
        with socket.create_server(("127.0.0.1", 0)) as tcp, \
                Managed(env={}, sockets=[tcp], model="dummy:opt-1.3b?layers=6") as daemon:
            daemon.wait_for("listening on")
            daemon.signal(signal.SIGTERM)
            daemon.wait_for("SIGTERM: draining")
            self.assertEqual(daemon.ends_with(60), 0)
            self.assertFalse([line for line in daemon.lines if "ready in" in line])

    def test_what_is_no_listening_socket_is_refused(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wrong:
            wrong.bind(("127.0.0.1", 0))
            with Managed(env={}, sockets=[wrong]) as daemon:
                self.assertEqual(daemon.ends_with(), 1)
                daemon.wait_for("descriptor 3 .* must be a TCP or Unix stream socket that listens")

    def test_sockets_of_another_process_are_left_alone(self):
        with Managed(env={"LISTEN_PID": "1", "LISTEN_FDS": "1"}) as daemon:
            self.assertEqual(answer(daemon.ready() + "/health"), 200)


class Installed(unittest.TestCase):
    def test_an_installed_tree_is_whole_and_finds_its_helper(self):
        with scratch() as folder:
            done = subprocess.run(["cmake", "--install", os.path.dirname(BIN), "--prefix", folder],
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            for path in ("bin/twilld", "bin/twill-bench", "libexec/twill/twill-grammar", "etc/twill/twilld.toml",
                         "lib/systemd/system/twilld.socket", "share/man/man8/twilld.8.gz",
                         "share/bash-completion/completions/twill", "share/doc/twill/copyright"):
                self.assertTrue(os.path.exists(os.path.join(folder, path)), path)
            with open(os.path.join(folder, "lib/systemd/system/twilld.service")) as file:
                self.assertIn(f"ExecStart={folder}/bin/twilld --config {folder}/etc/twill/twilld.toml", file.read())
            # The installed configuration names a model that the administrator must still install.
            with open(os.path.join(folder, "etc/twill/twilld.toml"), "r+") as file:
                text, n = re.subn('(?m)^path = .*', f'path = "{SOURCE}/tests/golden/llama-tiny-fp16"', file.read())
                self.assertEqual(n, 1)
                file.seek(0)
                file.truncate()
                file.write(text)
            for config in (("etc/twill/twilld.toml",), ("etc/twill/conf.d",), ("share/doc/twill/examples/keys.toml",)):
                done = subprocess.run([os.path.join(folder, "bin/twilld"), "--check-config",
                                       os.path.join(folder, *config)], capture_output=True, text=True, timeout=20)
                self.assertEqual(done.returncode, 0, done.stderr)
            # Schemas are compiled by the helper program alone, so this shows that it is found.
            schema = os.path.join(folder, "schema.json")
            with open(schema, "w") as file:
                file.write('{"type": "integer"}')
            done = subprocess.run([os.path.join(folder, "bin/twill"), "grammar", schema, "--model",
                                   os.path.join(SOURCE, "tests/golden/llama-tiny-fp16")],
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


class Pages(unittest.TestCase):
    PROGRAMS = ("twilld", "twill", "twill-bench", "twill-synth")

    def test_every_man_page_lists_every_option(self):
        for program in self.PROGRAMS:
            page = run(program, "--print-man").stdout
            self.assertIn(".SH NAME", page)
            for name in re.findall(r"(--[a-z][-a-z0-9]*)", run(program, "--help").stdout.split("Exit status")[0]):
                self.assertIn("\\fB" + name.replace("-", "\\-") + "\\fR", page, program)

    def complete(self, script, *words):
        """The completions that bash offers for the last word."""
        line = " ".join(f"'{word}'" for word in words)
        program = f"""source "$1"; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}
        _{words[0].replace("-", "_")}; printf '%s\\n' "${{COMPREPLY[@]}}" """
        done = subprocess.run(["bash", "-c", program, "bash", script], capture_output=True, text=True, timeout=20)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes_commands_options_values_and_files(self):
        with scratch() as folder:
            for program in ("twill", "twilld", "twill-bench"):
                with open(os.path.join(folder, program), "w") as file:
                    file.write(run(program, "--print-completion", "bash").stdout)
            twill, daemon, bench = (os.path.join(folder, p) for p in ("twill", "twilld", "twill-bench"))
            self.assertEqual(self.complete(twill, "twill", "to"), ["tokenize", "top"])
            self.assertIn("--pieces", self.complete(twill, "twill", "tokenize", "--"))
            self.assertNotIn("--pieces", self.complete(twill, "twill", "chat", "--"))
            self.assertEqual(self.complete(daemon, "twilld", "--address"), ["--address-file"])
            self.assertEqual(self.complete(daemon, "twilld", "--set", ""), [])
            self.assertIn(os.path.join(SOURCE, "CMakeLists.txt"),
                          self.complete(daemon, "twilld", "--config", os.path.join(SOURCE, "CMake")))
            self.assertEqual(self.complete(bench, "twill-bench", "serve", "--ramp-up-strategy", "l"), ["linear"])

    def test_the_scripts_of_other_shells_parse(self):
        for shell in ("zsh", "fish"):
            if not any(os.path.exists(os.path.join(p, shell)) for p in os.environ["PATH"].split(":")):
                continue
            for program in self.PROGRAMS:
                script = run(program, "--print-completion", shell).stdout
                self.assertGreater(len(script), 200)
                done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, timeout=20)
                self.assertEqual((done.returncode, done.stderr), (0, ""), f"{shell} {program}")


if __name__ == "__main__":
    unittest.main()
