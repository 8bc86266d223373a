"""One browser for all tests of pages, and one daemon on the real default model."""

import json

import pytest

from browser import Browser
from support import OPEN, clients


@pytest.fixture(scope="session")
def browser():
    running = Browser()
    yield running
    running.close()


@pytest.fixture(scope="session")
def daemon():
    running = clients.Daemon("kv.memory=256MiB")
    yield running
    running.stop()


@pytest.fixture
def visit(browser, request):
    """Opens the page with settings in a fresh profile; at the end the browser must have had nothing to complain about."""
    pages = []

    def visit(url=None, wait=OPEN, complaints=False, **options):
        settings = {"temperature": 0, "max_output_tokens": 24, **options.pop("settings", {})}
        url = url or request.getfixturevalue("daemon").url + "/"
        path = "/" + url.split("/", 3)[3]
        before = f"if (location.protocol !== 'about:' && !localStorage.getItem('twill:{path}:settings')) localStorage.setItem('twill:{path}:settings', " \
                 f"JSON.stringify({json.dumps(settings)}));"
        page = browser.page(url, before=before + options.pop("before", ""), **options)
        pages.append((page, complaints))
        if wait:
            page.wait(wait)
        return page

    yield visit
    for page, complaints in pages:
        found = page.complaints()
        page.close()
        assert complaints or found == []
