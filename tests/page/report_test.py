"""twill-bench's pages in Chromium: nothing is cut or said twice, on a desktop and a phone, light and dark."""

import os
import pathlib
import subprocess

import pytest

from support import clients, hosts, shot, violations

BENCH = pathlib.Path(os.environ["TWILL_BIN"]) / "twill-bench"
SIZES = [(1280, False), (390, False), (1280, True), (390, True)]
DRAWN = "document.querySelectorAll('.chart-drawing').length > 0 && [...document.querySelectorAll('.charts')].filter((c) => c.checkVisibility())" \
        ".every((c) => [...c.querySelectorAll('.chart-drawing')].every((d) => d.childElementCount > 3))"
WIDE = "[...document.querySelectorAll('.table')].filter((t) => t.checkVisibility() && t.scrollWidth > t.clientWidth + 1)" \
       ".map((t) => t.innerText.slice(0, 80))"
TITLES = "[...document.querySelectorAll('.chart-title')].filter((t) => t.checkVisibility()).map((t) => t.textContent)"


def bench(*arguments):
    done = subprocess.run([BENCH, *map(str, arguments), "--no-progress"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """The page of a grid and that of a run whose rate rises; by a daemon that computes nothing, in some seconds."""
    folder = tmp_path_factory.mktemp("reports")
    daemon = clients.Daemon("model.name='a-model-with-quite-a-long-name-7b-instruct'", model="dummy:null?step-us=2000")
    try:
        bench("sweep", "--base-url", daemon.url, "--input-lens", 128, 2048, "--output-lens", 8, 16, "--latency-prompts", 1,
              "--throughput-prompts", 8, "--output-dir", folder / "sweep", "--num-warmups", 0)
        bench("serve", "--base-url", daemon.url, "--ramp-up-strategy", "linear", "--ramp-up-start-rps", 10, "--ramp-up-end-rps", 120,
              "--num-prompts", 300, "--random-input-len", 64, "--random-output-len", 12, "--html", folder / "serve.html")
    finally:
        daemon.stop()
    return {"sweep": folder / "sweep" / "sweep.html", "serve": folder / "serve.html"}


@pytest.mark.parametrize("name", ["sweep", "serve"])
def test_reports_are_whole_on_every_screen(visit, reports, name):
    for width, dark in SIZES:
        page = visit(f"file://{reports[name]}", wait=DRAWN, width=width, height=900, dark=dark)
        assert page.run("document.documentElement.scrollWidth <= innerWidth"), f"{width}: the page scrolls sideways"
        assert page.run(WIDE) == [], f"{width}: tables are cut"
        titles = page.run(TITLES)
        heading = page.text("h1")
        assert len(titles) == len(set(titles)), titles
        for title in titles:
            inner = title.partition(" (")[2].rstrip(")")
            assert heading.split(":")[0] not in title and (not inner or inner not in title.partition(" (")[0]), title
        assert hosts(page) <= {""}, "a report asks nobody"
        if "TWILL_AXE" in os.environ:
            assert violations(page) == []
        page.resize(width, page.run("document.documentElement.scrollHeight"))
        shot(page, f"report-{name}-{width}{'-dark' if dark else ''}")


def test_a_run_shows_distributions_and_load_before_the_servers_metrics(visit, reports):
    page = visit(f"file://{reports['serve']}", wait=DRAWN, width=1280, height=900)
    headings = page.run("[...document.querySelectorAll('h2')].map((h) => h.textContent)")
    assert headings == ["How the times are spread", "Latency against the load", "The run over time", "The server's metrics", "What was asked",
                        "Where the client ran"]
    titles = page.run(TITLES)
    assert titles[:3] == ["Time to first token (TTFT)", "Time between tokens (ITL)", "End-to-end latency (E2EL)"]
    assert {"TTFT against the rate of requests (ms)", "E2EL against the rate of requests (ms)"} <= set(titles)
    assert len(titles) <= 20 and not any("_sum" in title or "_count" in title for title in page.run(
        "[...document.querySelectorAll('.chart-title')].map((t) => t.textContent)")), titles
    # The bars of the first chart are all requests.
    page.run("document.querySelector('.chart details').open = true")
    page.wait("document.querySelector('.chart table')")
    counts = page.run("[...document.querySelectorAll('.chart table')[0].querySelectorAll('tbody td:nth-child(2)')].map((c) => c.textContent)")
    assert sum(int(count.replace(",", "")) for count in counts) == 300
    # The rest is a click away, and drawn then.
    page.run("document.querySelector('main > details > summary').click()")
    page.wait("[...document.querySelectorAll('main > details[open] .chart-drawing')].some((d) => d.childElementCount > 3)")
