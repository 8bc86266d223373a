"""What the tests of all pages share: the daemons of the client tests, screenshots, axe."""

import importlib.util
import os
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("clients_conftest", HERE.parent / "clients" / "conftest.py")
clients = importlib.util.module_from_spec(spec)
spec.loader.exec_module(clients)

OPEN = "document.getElementById('state').dataset.state === 'open'"


def shot(page, name):
    if folder := os.environ.get("TWILL_SCREENSHOTS"):
        page.screenshot(pathlib.Path(folder) / f"{name}.png")


def hosts(page):
    """Whom the page asked; addresses that hold their data ask nobody."""
    return {url.split("/")[2] for url in page.requests() if not url.startswith("data:")}


def violations(page):
    page.call("Page.setBypassCSP", {"enabled": False})
    # DevTools runs the library: the page's policy does not hold for it.
    page.run(pathlib.Path(os.environ["TWILL_AXE"]).read_text() + "; true")
    found = page.run("axe.run(document).then((r) => r.violations.map((v) => [v.id, v.help, v.nodes.map((n) => n.html.slice(0, 200) + ' ' + n.failureSummary)]))")
    return found
