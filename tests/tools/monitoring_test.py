"""Tests the alert rules and the dashboard of the package with Prometheus' own tools: promtool and a server that scrapes twilld.

Skipped where they are not installed (Debian's package prometheus has both). With TWILL_LONG=1, which tools/test --long
sets, an overload also lets an alert fire.
"""

import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse
import urllib.request

from programs import SOURCE, Daemon, scratch

FOLDER = pathlib.Path(SOURCE) / "tools" / "package" / "monitoring"
MODEL = "dummy:opt-125m?layers=1&vocab=1000"
has_tools = shutil.which("promtool") and shutil.which("prometheus")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def complete(url: str, n: int):
    where = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=120)
    connection.request("POST", "/v1/completions",
                       json.dumps({"prompt": "Once upon a time", "max_tokens": n, "ignore_eos": True}),
                       {"Content-Type": "application/json"})
    reply = connection.getresponse()
    answer = reply.status, reply.read()
    connection.close()
    return answer


class Prometheus:
    """A Prometheus that scrapes one twilld each second, in a folder of its own."""

    def __init__(self, folder, target: str, rules: pathlib.Path):
        self.port = free_port()
        config = pathlib.Path(folder) / "prometheus.yml"
        config.write_text("global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
                          f"rule_files: [{rules}]\n"
                          f"scrape_configs: [{{job_name: twill, static_configs: [{{targets: ['{target}']}}]}}]\n")
        self.log = open(pathlib.Path(folder) / "prometheus.log", "w+")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address=127.0.0.1:{self.port}"], stdout=self.log, stderr=self.log)

    def ask(self, path: str, **fields):
        query = "?" + urllib.parse.urlencode(fields) if fields else ""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}{query}", timeout=20) as reply:
            return json.load(reply)["data"]

    def wait_for(self, what, seconds: float, path: str, **fields):
        end = time.monotonic() + seconds
        while True:
            try:
                if found := what(self.ask(path, **fields)):
                    return found
            except OSError:
                pass
            assert time.monotonic() < end and self.process.poll() is None, self.text_of_log()
            time.sleep(0.2)

    def text_of_log(self) -> str:
        self.log.flush()
        return pathlib.Path(self.log.name).read_text()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)
        self.log.close()


def queries_of_dashboard():
    """Each panel's queries, with the dashboard's variables as Grafana would fill them in."""
    for panel in json.loads((FOLDER / "grafana.json").read_text())["panels"]:
        for target in panel["targets"]:
            text = target["expr"].replace("$__rate_interval", "10s")
            yield panel["title"], text.replace("$instance", ".*").replace("$model", ".*")


def queries_of_vllm(model: str):
    """The queries of the panels of vLLM's dashboard, with present and with earlier names of metrics.

    Read from examples/observability/prometheus_grafana/grafana.json of vllm-project/vllm, at 4b5c627c, and from
    examples/online_serving/prometheus_grafana/grafana.json, at 004f771f, as it was before the inter-token latency and
    the use of the cache were renamed.
    """
    def of(name: str) -> str:
        return f'vllm:{name}{{model_name="{model}"}}'

    for name in ("e2e_request_latency_seconds", "inter_token_latency_seconds", "time_per_output_token_seconds",
                 "time_to_first_token_seconds"):
        for quantile in (0.5, 0.9, 0.95, 0.99):
            yield f"histogram_quantile({quantile}, sum by(le) (rate({of(name + '_bucket')}[10s])))"
        yield f"rate({of(name + '_sum')}[10s]) / rate({of(name + '_count')}[10s])"
    for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "gpu_cache_usage_perc"):
        yield of(name)
    for name in ("prompt_tokens_total", "generation_tokens_total", "request_queue_time_seconds_sum",
                 "request_prefill_time_seconds_sum", "request_decode_time_seconds_sum",
                 "request_max_num_generation_tokens_sum"):
        yield f"rate({of(name)}[10s])"
    for name in ("request_prompt_tokens", "request_generation_tokens"):
        yield f"sum by(le) (increase({of(name + '_bucket')}[10s]))"
    yield f"sum by(finished_reason) (increase({of('request_success_total')}[10s]))"


@unittest.skipUnless(has_tools, "promtool and prometheus are not installed")
class Monitoring(unittest.TestCase):
    def promtool(self, *arguments, text=None):
        ended = subprocess.run(["promtool", *arguments], input=text, cwd=FOLDER, capture_output=True, text=True)
        return ended.returncode, ended.stdout + ended.stderr

    def test_the_rules_hold_what_their_tests_say(self):
        self.assertEqual(self.promtool("check", "rules", "alerts.yaml")[0], 0)
        status, said = self.promtool("test", "rules", "alerts_test.yaml")
        self.assertEqual(status, 0, said)

    def test_a_real_prometheus_scrapes_and_answers_every_panel(self):
        with scratch() as folder, Daemon("--model", MODEL) as daemon:
            url = daemon.ready()
            with Prometheus(folder, urllib.parse.urlsplit(url).netloc, FOLDER / "alerts.yaml") as prometheus:
                target = prometheus.wait_for(lambda data: data["activeTargets"], 30, "targets")[0]
                for _ in range(3):
                    self.assertEqual(complete(url, 20)[0], 200)
                    time.sleep(1.1)
                prometheus.wait_for(lambda data: data["result"] and float(data["result"][0]["value"][1]) >= 3, 30, "query",
                                    query='sum(twill_request_success_total{finished_reason="length"})')
                target = prometheus.ask("targets")["activeTargets"][0]
                self.assertEqual((target["health"], target["lastError"]), ("up", ""))
                for title, query in queries_of_dashboard():
                    with self.subTest(title, query=query):
                        self.assertTrue(prometheus.ask("query", query=query)["result"], query)
                rules = prometheus.ask("rules")["groups"][0]["rules"]
                self.assertEqual({rule["health"] for rule in rules} - {"ok", "unknown"}, set())
                warned = [line for line in prometheus.text_of_log().splitlines()
                          if re.search("level=(warn|error)", line)]
                self.assertEqual(warned, [])
            text = urllib.request.urlopen(url + "/metrics").read().decode()
        self.assertEqual(self.promtool("check", "metrics", text=text), (0, ""))

    def test_the_dashboard_that_vllm_publishes_is_answered(self):
        with scratch() as folder, Daemon("--model", MODEL, "--set", "metrics.compat=vllm") as daemon:
            url = daemon.ready()
            with Prometheus(folder, urllib.parse.urlsplit(url).netloc, FOLDER / "alerts.yaml") as prometheus:
                prometheus.wait_for(lambda data: data["activeTargets"], 30, "targets")
                for _ in range(3):
                    self.assertEqual(complete(url, 20)[0], 200)
                    time.sleep(1.1)
                counted = prometheus.wait_for(
                    lambda data: data["result"] and float(data["result"][0]["value"][1]) >= 3 and data["result"], 30,
                    "query", query='vllm:request_success_total{finished_reason="length"}')
                labels = counted[0]["metric"]
                self.assertEqual(labels["engine"], "0")
                for query in queries_of_vllm(labels["model_name"]):
                    with self.subTest(query=query):
                        result = prometheus.ask("query", query=query)["result"]
                        self.assertTrue(result)
                        if "quantile" in query:
                            self.assertNotEqual(result[0]["value"][1], "NaN")
                target = prometheus.ask("targets")["activeTargets"][0]
                self.assertEqual((target["health"], target["lastError"]), ("up", ""))

    @unittest.skipUnless(os.environ.get("TWILL_LONG"), "takes a minute: tools/test --long")
    def test_an_overload_lets_an_alert_fire(self):
        with scratch() as folder, Daemon("--model", MODEL, "--set", "scheduler.max_running=1") as daemon:
            url = daemon.ready()
            # The rules wait for minutes; the test replaces minutes by seconds.
            rules = pathlib.Path(folder) / "alerts.yaml"
            text = (FOLDER / "alerts.yaml").read_text()
            rules.write_text(re.sub(r"(for: |\[)(\d+)m", lambda found: f"{found[1]}{int(found[2]) + 1}s", text))
            with Prometheus(folder, urllib.parse.urlsplit(url).netloc, rules) as prometheus:
                stop = threading.Event()

                def load():
                    while not stop.is_set():
                        complete(url, 400)

                threads = [threading.Thread(target=load) for _ in range(30)]
                for thread in threads:
                    thread.start()

                def firing(data):
                    return {alert["labels"]["alertname"] for alert in data["alerts"] if alert["state"] == "firing"}

                try:
                    prometheus.wait_for(lambda data: "TwillQueueLong" in firing(data), 60, "alerts")
                finally:
                    stop.set()
                    for thread in threads:
                        thread.join()
                prometheus.wait_for(lambda data: "TwillQueueLong" not in firing(data), 60, "alerts")


if __name__ == "__main__":
    unittest.main()
