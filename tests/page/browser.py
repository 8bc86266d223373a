"""Headless Chromium over its DevTools protocol: pages, clicks, keys, screenshots. Needs `websockets` alone."""

import base64
import contextlib
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from websockets.sync.client import connect

FLAGS = [
    "--headless=new", "--remote-debugging-port=0", "--no-first-run", "--no-default-browser-check", "--disable-gpu",
    "--disable-extensions", "--disable-sync", "--disable-background-networking", "--disable-component-update",
    "--disable-dev-shm-usage", "--hide-scrollbars",
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",  # a mouse
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
KEYS = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowRight": 39, "ArrowLeft": 37, "End": 35, "Home": 36}


def find_chromium():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        # Root needs --no-sandbox; what the browser loads here comes from loopback alone.
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        self.process = subprocess.Popen([find_chromium(), *FLAGS, *sandbox, f"--user-data-dir={self.folder.name}"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port_file = pathlib.Path(self.folder.name) / "DevToolsActivePort"
        deadline = time.monotonic() + 60
        while not (port_file.exists() and port_file.read_text().count("\n") >= 1):
            assert self.process.poll() is None, "chromium ended early"
            assert time.monotonic() < deadline, "chromium was not ready within 60 s"
            time.sleep(0.05)
        port, path = port_file.read_text().split("\n")[:2]
        self.resources = contextlib.ExitStack()
        self.socket = self.resources.enter_context(connect(f"ws://127.0.0.1:{port}{path}", max_size=None, proxy=None))
        self.ids = itertools.count(1)
        self.events = []

    def call(self, method, params=None, session=None, timeout=60):
        number = next(self.ids)
        message = {"id": number, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        self.socket.send(json.dumps(message))
        deadline = time.monotonic() + timeout
        while True:
            reply = json.loads(self.socket.recv(timeout=max(0.01, deadline - time.monotonic())))
            if reply.get("id") == number:
                assert "error" not in reply, f"{method}: {reply['error']}"
                return reply["result"]
            if "method" in reply:
                self.events.append(reply)

    def page(self, url, **options):
        return Page(self, url, **options)

    def close(self):
        try:
            self.call("Browser.close", timeout=10)
        except Exception:
            self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        with contextlib.suppress(Exception):
            self.resources.close()
        self.folder.cleanup()


class Page:
    """A tab with storage of its own."""

    def __init__(self, browser, url, width=1200, height=800, dark=False, before="", context=None):
        self.browser = browser
        self.context = context or browser.call("Target.createBrowserContext")["browserContextId"]
        target = browser.call("Target.createTarget", {"url": "about:blank", "browserContextId": self.context})["targetId"]
        self.target = target
        self.session = browser.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height)
        self.theme(dark)
        if before:
            self.call("Page.addScriptToEvaluateOnNewDocument", {"source": before})
        self.open(url)

    def call(self, method, params=None, **options):
        return self.browser.call(method, params, self.session, **options)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride",
                  {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})

    def theme(self, dark, reduced=False):
        self.call("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if reduced else "no-preference"}]})

    def open(self, url):
        self.call("Page.navigate", {"url": url})
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def reload(self):
        self.run("window.before_reload = true")
        self.call("Page.reload")
        self.wait("document.readyState === 'complete' && window.before_reload === undefined")

    def run(self, expression):
        """The value of an expression of JavaScript; promises are awaited."""
        reply = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True,
                                               "userGesture": True})
        assert "exceptionDetails" not in reply, json.dumps(reply["exceptionDetails"])[:2000]
        return reply["result"].get("value")

    def wait(self, expression, seconds=30):
        deadline = time.monotonic() + seconds
        while True:
            try:
                if self.run(f"!!({expression})"):
                    return
            except AssertionError:
                pass  # between two documents
            assert time.monotonic() < deadline, f"not within {seconds} s: {expression}\n{self.text()[-1500:]}"
            time.sleep(0.03)

    def text(self, selector="body"):
        return self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def click(self, selector, label=None):
        """Clicks with the mouse what matches the selector, the last one that has the label."""
        name = json.dumps(label)
        place = self.run(f"""(() => {{
          const all = [...document.querySelectorAll({json.dumps(selector)})];
          const one = all.filter((e) => {name} === null || e.textContent === {name} || e.getAttribute("aria-label") === {name}).at(-1);
          one.scrollIntoView({{block: "nearest"}});
          const box = one.getBoundingClientRect();
          return [box.x + box.width / 2, box.y + box.height / 2];
        }})()""")
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", {"type": kind, "x": place[0], "y": place[1], "clickCount": 1,
                                                   "button": "none" if kind == "mouseMoved" else "left"})

    def type(self, text):
        self.call("Input.insertText", {"text": text})

    def press(self, key, shift=False):
        code = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key], "modifiers": 8 if shift else 0}
        if key == "Enter":
            code["text"] = "\r"
        self.call("Input.dispatchKeyEvent", {"type": "keyDown", **code})
        self.call("Input.dispatchKeyEvent", {"type": "keyUp", **{k: v for k, v in code.items() if k != "text"}})

    def screenshot(self, path):
        picture = self.call("Page.captureScreenshot", {"format": "png"})["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(picture))

    def mine(self, method):
        self.run("1")  # takes in what has come
        return [e["params"] for e in self.browser.events if e["method"] == method and e.get("sessionId") == self.session]

    def complaints(self):
        """What the browser reported: exceptions, breaches of the content policy, failed loads."""
        thrown = [p["exceptionDetails"].get("exception", {}).get("description", "") for p in self.mine("Runtime.exceptionThrown")]
        logged = [f"{p['entry']['text']} {p['entry'].get('url', '')}" for p in self.mine("Log.entryAdded") if p["entry"]["level"] == "error"]
        return thrown + logged

    def requests(self):
        return [p["request"]["url"] for p in self.mine("Network.requestWillBeSent")]

    def close(self):
        self.browser.call("Target.closeTarget", {"targetId": self.target})
