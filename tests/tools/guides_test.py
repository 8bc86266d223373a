#!/usr/bin/env python3
"""Runs the commands of config/guides/*.md that are marked as sh, as they are written, on the default model.

Only addresses are changed: free ports replace the ports of a guide, and a twilld that a guide starts without `--listen` listens on the
first of them, which TWILL_URL names. A test for each guide says what its commands must print.
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import unittest

from programs import BIN, SOURCE, default_model, scratch

GUIDES = os.path.join(SOURCE, "config/guides")
MODEL = default_model()
PORTS = ("8080", "8001", "8443", "5557", "5558")


def free_ports(n):
    with contextlib.ExitStack() as stack:
        taken = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(n)]
        return [str(one.getsockname()[1]) for one in taken]


def script_of(text):
    return "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))


class Guides(unittest.TestCase):
    def follow(self, guide, *expected, seconds=60):
        with open(os.path.join(GUIDES, guide)) as page:
            script = script_of(page.read())
        self.assertTrue(script, guide)
        ports = free_ports(len(PORTS))
        for written, free in zip(PORTS, ports):
            script = script.replace(":" + written, ":" + free).replace(f"listen {written}", f"listen {free}").replace(f"0.0.1/{written}", f"0.0.1/{free}")
        script = re.sub(r"(?m)^twilld (?!--listen)(?=.*&$)", f"twilld --listen 127.0.0.1:{ports[0]} ", script)
        with scratch() as folder:
            work = os.path.join(folder, "work")
            os.mkdir(work)
            os.makedirs(os.path.join(folder, "twill/models"))
            os.symlink(MODEL, os.path.join(folder, "twill/models", os.path.basename(MODEL)))
            environment = {**os.environ, "PATH": BIN + ":" + os.environ["PATH"], "HOME": folder, "XDG_CACHE_HOME": folder,
                           "TWILL_URL": f"http://127.0.0.1:{ports[0]}"}
            environment.pop("TWILL_API_KEY", None)
            done = subprocess.Popen(["bash", "-e"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                    cwd=work, env=environment, start_new_session=True)
            try:
                # When a command fails, the script ends; daemons that kept running would hold its output open.
                ended = "trap 'kill $(jobs -p) 2> ignored || true; wait' EXIT\n"
                output, _ = done.communicate(ended + script + "\nsleep 0.3; kill $(jobs -p); wait; cat log\n", timeout=seconds)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(done.pid, signal.SIGKILL)
                with contextlib.suppress(OSError), open(os.path.join(work, "nginx.pid")) as file:
                    os.kill(int(file.read()), signal.SIGTERM)  # workers of nginx would survive if the master were killed
        self.assertEqual(done.returncode, 0, output)
        for words in expected:
            self.assertRegex(output, words)
        return output

    def test_a_team_has_keys_and_a_dashboard(self):
        output = self.follow("team.md", "twilld.toml: ok", '"object":"list"', "401 without a key", r"TENANT(?s:.*)\nalice ", "SIGHUP: ")
        self.assertNotIn("twk_", output)

    def test_a_model_may_be_larger_than_the_memory(self):
        self.follow("larger-than-memory.md", r"KV per token +128 KiB", r"plan: \d+ sequences", r"streaming weights \d",
                    r'host_memory = "4 GiB"')

    def test_nginx_passes_streams_and_its_name(self):
        if not os.path.exists("/usr/sbin/nginx"):
            self.skipTest("nginx is not installed")
        self.follow("nginx.md", "twilld.toml: ok", '"status":"ready"', r"data: .*\n(?s:.*)data: \[DONE\]")

    def test_each_dialect_answers_its_clients(self):
        self.follow("clients.md", r'"object":"chat.completion"', r'"type":"message"', r'"done":true', r'"generated_text":', r'"stop_type":',
                    r'"object":"embedding"')

    def test_a_user_is_limited(self):
        self.follow("limits.md", r"HTTP/1.1 200(?s:.*)HTTP/1.1 429", "(?i)retry-after: ", "tokens_per_minute")

    def test_speed_is_measured(self):
        self.follow("measure.md", r"requests +0 running", r"MODEL +RUN", "twill_num_requests_running", r"Mean TTFT", "Request throughput")

    def test_several_models_share_one_address(self):
        self.follow("several-models.md", "twilld.toml: ok", '"id":"toy"', r'"model":"assistant"')

    def test_requests_reach_the_daemon_that_their_id_names(self):
        if not os.path.exists("/usr/sbin/nginx"):
            self.skipTest("nginx is not installed")
        output = self.follow("several-daemons.md", '"name":"b2"', "read on behind chatcmpl-", "the id names the server .{1,2}b2")
        for said in ("from", "continued at"):
            names = re.findall(rf"(?m)^200 {said} (a1|b2)$", output)
            self.assertEqual(len(names), 4, output)
            self.assertEqual(set(names), {"a1", "b2"}, output)

    def test_routers_are_told_of_caches(self):
        self.follow("routers.md", r'"endpoint":"tcp://127.0.0.1:\d+"', '"status":"ready".* 200|ready.* 200', "up ready 100%")

    def test_answers_outlive_a_restart(self):
        self.follow("stored-responses.md", "twilld.toml: ok", r'data: .*"type":"response\.(completed|incomplete)"')

    def test_a_gpu_is_asked_for(self):
        with open(os.path.join(GUIDES, "gpu.md")) as page:
            script = script_of(page.read())
        self.assertEqual(script.count("twill doctor | grep"), 2)
        # The guide and the program must agree about the GPUs that were tried.
        with open(os.path.join(GUIDES, "gpu.md")) as page, open(os.path.join(SOURCE, "tools/twill/nvidia_report.cpp")) as program:
            told, said = page.read(), program.read()
        date = re.search(r"as of (\d{4}-\d\d-\d\d)", told).group(1)
        self.assertIn(f"no GPU has run twill as of {date}", said)
        for path in ("README.md", "tools/twilld/README.md"):
            with open(os.path.join(SOURCE, path)) as other:
                self.assertIn(f"No GPU has run twill as of {date}", other.read(), path)

    def test_each_guide_has_its_test(self):
        with open(__file__) as file:
            tested = set(re.findall(r'(?:follow\(|GUIDES, )"([a-z-]+\.md)"', file.read()))
        self.assertEqual(tested | {"README.md"}, set(os.listdir(GUIDES)))
        self.assertIsNotNone(shutil.which("bash"))


if __name__ == "__main__":
    unittest.main()
