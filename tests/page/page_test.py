"""The chat page in Chromium, in front of the real default model; a scripted socket where a model's words must be known."""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

from proxy import Proxy
from support import OPEN, clients, hosts, shot, violations

DONE = "document.querySelector('.assistant:last-child .foot button') && !document.getElementById('send').hidden && !document.querySelector('.running')"

# A WebSocket that answers as the test says: answer(text) streams a whole answer to the request that was sent last.
SCRIPTED = """
window.sent = [];
window.WebSocket = class {
  constructor() { window.socket = this; setTimeout(() => this.onopen?.()); }
  send(text) { window.sent.push(JSON.parse(text)); }
  close() {}
};
window.emit = (event) => window.socket.onmessage({data: JSON.stringify({stream_id: window.sent.at(-1).stream_id, ...event})});
window.delta = (text) => emit({type: "response.output_text.delta", delta: text, logprobs: []});
window.answer = (text) => {
  emit({type: "response.created", response: {model: "scripted"}});
  for (let at = 0; at < text.length; at += 7) delta(text.slice(at, at + 7));
  emit({type: "response.completed", response: {usage: {output_tokens: 3}}});
};
"""


def ask(page, text, wait=True):
    page.click("#prompt")
    page.type(text)
    page.press("Enter")
    if wait:
        page.wait(DONE, 60)


def open_dialog(page, selector, label=None):
    """Dialogs are loaded when the first is opened."""
    page.click(selector, label)
    page.wait("document.querySelector('dialog')")


def answers(page):
    return page.run("[...document.querySelectorAll('.assistant .body')].map((e) => e.innerText)")


# --- with the real model -------------------------------------------------------------------------------------


def test_a_chat_streams_and_goes_on(visit, daemon):
    page = visit()
    ready_ms = page.run("performance.getEntriesByName('open')[0].startTime")
    loaded = page.run("performance.getEntriesByType('resource').reduce((n, e) => n + e.decodedBodySize, 0)")
    print(f"ready to chat after {ready_ms:.0f} ms, {loaded} bytes")
    assert 0 < ready_ms < 5000  # some 100 ms where nothing else runs; a busy machine must not fail this
    assert loaded < 150_000
    ask(page, "Say hello.", wait=False)
    page.wait("document.querySelector('.running .body')?.innerText.length > 0")
    page.wait(DONE)
    ask(page, "Say it again.")
    assert len(answers(page)) == 2 and all(answers(page))
    assert re.search(r"· \d+ tokens · \d+ tokens/s", page.text(".assistant:last-child .figures"))
    assert page.text("#title") == "Say hello."
    assert hosts(page) == {f"{daemon.host}:{daemon.port}"}
    page.reload()
    page.wait(OPEN)
    assert len(answers(page)) == 2, "a chat is kept over a reload"


def test_stop_ends_the_answer_here_and_in_the_daemon(visit, daemon):
    page = visit(settings={"max_output_tokens": 4000})
    ask(page, "Count to a thousand.", wait=False)
    page.wait("document.querySelector('.running .body')?.innerText.length > 20")
    page.click("#stop")
    page.wait(DONE)
    assert "Stopped" in page.text(".assistant .note")
    page.wait("/· [1-9][0-9]* tokens · [1-9][0-9]* tokens\\/s/.test(document.querySelector('.assistant .figures').innerText)")
    daemon.wait_metric("twill_num_requests_running", 0)
    kept = answers(page)
    time.sleep(0.3)
    assert answers(page) == kept
    ask(page, "Write a long story about a ship.", wait=False)
    page.wait("document.querySelectorAll('.assistant').length === 2 && document.querySelector('.running .body').innerText")
    page.click(".assistant .body")
    page.press("Escape")
    page.wait(DONE)
    assert page.run("document.activeElement.id") == "prompt"
    page.wait("!Object.keys(localStorage).some((key) => key.includes('forget:'))")  # else it asks once more, and gets a 404
    page.reload()
    page.wait(OPEN)
    assert " tokens/s" in page.text(".assistant .figures"), "the figures of a stopped answer are kept"


def test_an_answer_that_was_cut_goes_on(visit):
    page = visit(settings={"max_output_tokens": 20})
    ask(page, "Why is the sky blue?")
    cut = answers(page)[0]
    assert "cut at its longest length, 20 tokens" in page.text(".assistant .note")
    for tokens in (40, 60):
        page.click(".assistant button", "Continue")
        page.wait(f"document.querySelector('.assistant .figures')?.innerText.includes('{tokens} tokens') && !document.getElementById('send').hidden")
    whole = answers(page)[0]
    assert len(answers(page)) == 1 and whole.startswith(cut) and len(whole) > len(cut) + 40
    open_dialog(page, "#open-settings")
    page.run("document.getElementById('set-max_output_tokens').value = '60'")
    page.click("dialog button", "Save")
    page.click(".assistant button", "Regenerate")
    page.wait("document.querySelector('.assistant .versions')?.innerText.includes('2 / 2')")
    page.wait(DONE)
    assert answers(page)[0][:len(cut) + 20] == whole[:len(cut) + 20], "it goes on as if it had not been cut"
    page.run("document.getElementById('prompt').focus()")
    page.click(".assistant button", "Continue")
    page.wait("!document.getElementById('stop').hidden")
    page.click("#stop")
    page.wait(DONE)
    assert "Stopped" in page.text(".assistant .note")


def test_a_full_context_drops_its_oldest_turns(visit):
    small = clients.Daemon("kv.memory=256MiB", "scheduler.max_context_tokens=1024")
    try:
        drop_the_oldest_turns(visit(small.url + "/", complaints=True))  # the page is closed after the daemon
    finally:
        small.stop()


def drop_the_oldest_turns(page):
    page.wait("document.querySelectorAll('#model-name:not(:empty)').length")
    assert page.run("document.getElementById('context').hidden")
    for n in range(3):
        ask(page, f"turn {n} " + "word " * 280, wait=False)
        page.wait(f"document.querySelectorAll('.assistant').length === {n + 1}")
        page.wait("!document.getElementById('send').hidden", 60)
    assert re.search(r"Context: 9\d\d of 1,024 tokens", page.text("#context"))
    ask(page, "turn 3 " + "word " * 280, wait=False)
    page.wait("document.querySelector('.message .fault:not([hidden])')", 60)
    assert "the context limit" in page.text(".message .fault:not([hidden])")
    page.run("document.getElementById('scroll').scrollTop = 1e6")
    shot(page, "full-context")
    page.click(".fault button", "Drop the oldest turns and ask again")
    page.wait("document.querySelector('.divider')")
    page.wait(DONE, 60)
    assert answers(page)[-1] and page.text(".message:last-child .fault") == ""
    assert re.search(r"Context: 3\d\d of 1,024 tokens", page.text("#context"))
    page.reload()
    page.wait(OPEN)
    assert page.run("document.querySelector('.divider').previousElementSibling.nextElementSibling.nextElementSibling.innerText.includes('turn 3')")
    page.click(".divider button", "Send all again")
    assert page.run("document.querySelectorAll('.divider').length") == 0


def test_regenerating_and_editing_make_branches(visit):
    page = visit(settings={"temperature": 1})
    ask(page, "Tell me a story.")
    first = answers(page)
    page.click(".assistant button", "Regenerate")
    page.wait("document.querySelector('.assistant .versions')?.innerText.includes('2 / 2')")
    page.wait(DONE)
    page.click(".assistant button", "Previous version")
    page.wait("document.querySelector('.assistant .versions')?.innerText.includes('1 / 2')")
    assert answers(page) == first
    page.click(".user button", "Edit")
    page.run("document.querySelector('.user textarea').select()")
    page.type("Tell me a joke.")
    page.press("Enter")
    page.wait("document.querySelector('.user .versions')?.innerText.includes('2 / 2')")
    page.wait(DONE)
    assert page.text(".user .plain") == "Tell me a joke."
    page.click(".user button", "Previous version")
    assert page.text(".user .plain") == "Tell me a story." and answers(page) == first


def test_an_error_is_shown_as_the_server_says_it(visit):
    page = visit(settings={"model": "no-such-model"})
    ask(page, "Hello")
    assert "`model` must be a served model" in page.text(".message .fault:not([hidden])")
    shot(page, "error")
    open_dialog(page, "#open-settings")
    page.run("document.getElementById('set-model').selectedIndex = 0")
    page.run("document.getElementById('set-top_k').value = 'many'")
    page.click("dialog button", "Save")
    assert "Top k must be a number." in page.text("dialog .fault")
    page.run("document.getElementById('set-top_k').value = ''")
    page.click("dialog button", "Save")
    page.click(".assistant button", "Try again")
    page.wait("document.querySelector('.assistant .versions')?.innerText.includes('2 / 2')")
    page.wait(DONE)
    assert page.text(".message .fault:not([hidden])") == "" and answers(page)[0]


def test_a_daemon_that_returns_is_found_again_behind_a_path(visit):
    old = clients.Daemon("kv.memory=256MiB")
    proxy = Proxy(old.host, old.port, "/some/where")
    new = None
    try:
        page = visit(proxy.url, settings={"max_output_tokens": 60, "seed": 1}, complaints=True)
        ask(page, "Count to a thousand.", wait=False)
        page.wait("document.querySelector('.running .body')?.innerText.length > 10")
        old.process.kill()
        page.wait("document.getElementById('state').dataset.state === 'waiting' && document.querySelector('.assistant .note').innerText.includes('when the server is back')")
        shot(page, "daemon-gone")
        new = clients.Daemon("kv.memory=256MiB")
        proxy.port = new.port
        page.wait(OPEN, 60)
        page.wait(DONE, 60)
        assert " tokens/s" in page.text(".figures") and page.run("document.getElementById('notice').hidden")
        assert all(url.startswith((proxy.url, "data:")) for url in page.requests())
    finally:
        proxy.close()
        old.stop()
        if new:
            new.stop()


def test_a_key_is_asked_for_where_one_is_needed(visit):
    guarded = clients.Daemon("kv.memory=256MiB", "server.api_keys=['right-key']")
    try:
        page = visit(guarded.url + "/", wait="document.querySelector('dialog.key-dialog')", complaints=True)
        shot(page, "key")
        page.type("wrong-key")
        page.press("Enter")
        page.wait("document.querySelector('dialog.key-dialog')?.innerText.includes('does not know this key')")
        page.run("document.getElementById('key').focus()")
        page.type("right-key")
        page.press("Enter")
        page.wait(OPEN)
        ask(page, "Hello")
        assert answers(page)[0]
        page.reload()
        page.wait(OPEN)
        assert page.run("Object.values(localStorage).every((text) => !text.includes('right-key'))")
    finally:
        guarded.stop()


def test_probabilities_are_shown_on_hover_and_by_keys(visit):
    page = visit(settings={"logprobs": True})
    ask(page, "Say hello.")
    page.click(".assistant button", "Probabilities")
    page.wait("document.querySelector('.token')")
    page.click(".token[data-at='0']")
    assert "%" in page.text("#tip") and page.run("document.querySelectorAll('#tip tr').length") == 5
    page.press("ArrowRight")
    assert page.run("document.activeElement.dataset.at") == "1"
    shot(page, "probabilities")
    page.press("Escape")
    assert page.run("document.getElementById('tip').hidden")
    page.click(".assistant button", "Probabilities")
    assert page.run("document.querySelectorAll('.token').length") == 0 and answers(page)[0]


def test_the_code_that_the_page_gives_runs(visit, daemon, tmp_path):
    page = visit(settings={"instructions": "You're \"brief\".", "top_k": 5, "max_output_tokens": 8})
    ask(page, "It's a test: say 'hi' & \\n \"bye\" $HOME `x`")
    open_dialog(page, "#open-snippet")
    shot(page, "code")
    code = {}
    for name in ("curl", "Python", "JavaScript"):
        page.click(f"#as-{name}")
        code[name] = page.text("dialog code")
    reply = json.loads(subprocess.run(["bash", "-c", code["curl"]], capture_output=True, text=True, timeout=60).stdout)
    assert reply["usage"]["output_tokens"] > 0 and reply["instructions"] == "You're \"brief\"."
    (tmp_path / "it.py").write_text(code["Python"])
    said = subprocess.run([sys.executable, tmp_path / "it.py"], capture_output=True, text=True, timeout=120)
    assert said.returncode == 0 and said.stdout.strip(), said.stderr
    (tmp_path / "it.mjs").write_text(code["JavaScript"])
    said = subprocess.run(["node", tmp_path / "it.mjs"], capture_output=True, text=True, timeout=60)
    assert said.returncode == 0 and said.stdout.strip(), said.stderr


# --- with a scripted socket ----------------------------------------------------------------------------------

HOSTILE = [
    "<script>pwned()</script>", "<img src=x onerror=pwned()>", "<svg onload=pwned()>", "<iframe srcdoc='<script>parent.pwned()</script>'>",
    "[a](javascript:pwned())", "[a](JAVASCRIPT&colon;pwned())", "![a](http://evil.example/p.png)", "<javascript:pwned()>",
    "[a](data:text/html,<script>pwned()</script>)", "```html\n<script>pwned()</script>\n```", "```\"><script>pwned()</script>\n```",
    "| <script>pwned()</script> | <img src=x onerror=pwned()> |\n|---|---|\n| <b onclick=pwned()>x</b> | y |",
    "<tool_call>{\"name\": \"<img src=x onerror=pwned()>\", \"arguments\": {\"<script>\": \"</script>\"}}</tool_call>",
    "<think><script>pwned()</script></think>", "{\"<img src=x onerror=pwned()>\": \"</code><script>pwned()</script>\"}",
    "[x](http://a.example/\"onmouseover=\"pwned())", "<base href=//evil.example>", "<meta http-equiv=refresh content=0;url=//evil.example>",
    "<style>@import '//evil.example'</style>", "<link rel=stylesheet href=//evil.example>", "<form action=//evil.example><button>go</button>",
    "# <a href=javascript:pwned()>x</a>", "> - 1. <script>pwned()</script>", "<a id=title name=title>clobber</a>", "${pwned()} {{pwned()}}",
    "$\\href{javascript:pwned()}{x}$ \\(\\text{<img src=x onerror=pwned()>}\\) $$\\style{background:url(//evil.example)}{x}$$", "\\[<script>pwned()</script>\\]",
    "&lt;script&gt;pwned()&lt;/script&gt; [x](&#106;avascript:pwned())", "[^1]\n\n[^1]: <script>pwned()</script> [x](javascript:pwned())", "```html\n<img src=x onerror=pwned()>\n```",
    "[^title]\n\n[^title]: x", "\\(\\class{a}{b} \\cssId{title}{c} \\operatorname{<b onclick=pwned()>}\\)",
]


def test_what_a_model_says_stays_text(visit, daemon):
    page = visit(before=SCRIPTED + "window.pwned = () => { window.was_pwned = true; };")
    ask(page, "Hello", wait=False)
    page.run(f"answer({json.dumps(chr(10).join(text + chr(10) for text in HOSTILE))})")
    for text in HOSTILE:
        page.wait(DONE)
        ask(page, text, wait=False)
        page.run(f"answer({json.dumps(text)})")
    page.wait(DONE)
    page.run("document.querySelectorAll('#log a').forEach((a) => a.dispatchEvent(new MouseEvent('mouseover', {bubbles: true})))")
    assert page.run("window.was_pwned") is None
    assert page.run("document.querySelectorAll('#log :is(script, img, svg, iframe, object, embed, base, meta, link, style, form, video, audio)').length") == 0
    handlers = page.run("[...document.querySelectorAll('#log *')].flatMap((e) => e.getAttributeNames()).filter((n) => n.startsWith('on') || n === 'style' || n === 'name')")
    assert handlers == []
    links = page.run("[...document.querySelectorAll('#log a')].map((a) => [a.protocol, a.rel, a.target])")
    assert all(link[0] in ("http:", "https:", "mailto:") and "noopener" in link[1] and link[2] == "_blank" for link in links)
    assert page.run("document.getElementById('title').tagName") == "H1"
    assert hosts(page) == {f"{daemon.host}:{daemon.port}"}


SHOWCASE = """## What a *model* may write

A paragraph with **strong words**, `code`, ~~a mistake~~ and [a link](https://example.com/a).

1. first
2. second
   - inner
   - [x] done

> A quotation
> of two lines.

| Name | Amount | Note |
|:-----|-------:|------|
| warp | 12 | lengthwise |
| weft | 7 | crosswise |

```python
def twill(n):
    return ["/" if (row + column) % 4 < 2 else " " for row in range(n) for column in range(n)]
```

<tool_call>{"name": "get_weather", "arguments": {"city": "Ghent", "days": 2, "metric": true}}</tool_call>
"""


@pytest.mark.skipif("TWILL_AXE" not in os.environ, reason="axe-core comes from npm, which is not installed")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
def test_nobody_is_kept_out(visit, dark, width):
    page = visit(before=SCRIPTED, dark=dark, width=width, height=900)
    name = f"{'dark' if dark else 'light'}-{width}"
    shot(page, f"{name}-empty")
    assert violations(page) == []
    ask(page, "Show me all that you can do.", wait=False)
    page.run("delta('Look here.\\n\\n')")
    page.wait("document.querySelector('.running .body').innerText")
    assert violations(page) == []
    page.run(f"answer({json.dumps(SHOWCASE)})")
    page.wait(DONE)
    ask(page, "And in JSON?", wait=False)
    page.run("answer('{\"answer\": [1, 2.50, null], \"why\": \"because\"}')")
    page.wait(DONE)
    assert '"city": "Ghent",' in page.text(".call") and '"why": "because"' in page.text(".assistant:last-child pre")
    page.run("document.getElementById('scroll').scrollTop = 0")
    time.sleep(0.2)
    shot(page, f"{name}-chat")
    assert page.run("document.documentElement.scrollWidth <= innerWidth"), "nothing scrolls sideways"
    assert violations(page) == []
    page.run("document.getElementById('scroll').scrollTop = 1e6")
    shot(page, f"{name}-chat-end")
    open_dialog(page, "#open-settings")
    time.sleep(0.2)
    shot(page, f"{name}-settings")
    assert violations(page) == []
    page.press("Escape")
    open_dialog(page, "#open-snippet")
    assert violations(page) == []
    shot(page, f"{name}-code")
    page.press("Escape")
    if width < 600:
        page.click("#open-list")
        assert page.run("document.activeElement.id") == "new-chat"
        time.sleep(0.3)
        assert violations(page) == []
        shot(page, f"{name}-list")
        page.press("Escape")
        assert page.run("document.activeElement.id") == "open-list" and not page.run("document.body.matches('.list-open')")


@pytest.mark.parametrize("unit", ["*a* ", "$a$ ", "- *a*\\n", "|*a*", "&amp;`a`", "https://a.example/ ", "[^1]", "$$a$$\\n", "```py\\nif\\n```\\n"])
def test_a_long_answer_does_not_hold_the_page(visit, unit):
    page = visit(before=SCRIPTED)
    ask(page, "Much.", wait=False)
    began = time.monotonic()
    page.run(f"emit({{type: 'response.created', response: {{model: 'm'}}}}); delta('{unit}'.repeat({60_000 // len(unit)}) + '\\n\\n[^1]: a');"
             "emit({type: 'response.completed', response: {usage: {output_tokens: 1}}})")
    page.wait(DONE)
    took = time.monotonic() - began
    print(f"{took:.1f} s")
    assert took < 30  # under two seconds where nothing else runs


def test_all_can_be_done_with_the_keyboard(visit):
    page = visit(before=SCRIPTED)
    assert page.run("document.activeElement.id") == "prompt"
    page.type("one")
    page.press("Enter", shift=True)
    assert page.run("document.getElementById('prompt').value.length") == 4, "Shift+Enter begins a new line"
    page.press("Enter")
    page.run("answer('two')")
    page.wait(DONE)
    page.wait("document.getElementById('announcer').innerText === 'Answer: two'")
    seen = set()
    for _ in range(40):
        page.press("Tab")
        seen.add(page.run("document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText"))
        visible = page.run("document.activeElement === document.body || document.activeElement.getBoundingClientRect().width > 1")
        assert visible, "focus is never on what cannot be seen"
    assert {"Send", "Copy", "Edit", "Regenerate", "Settings", "Code", "New chat", "Messages"} <= seen


def test_calls_of_tools_are_answered(visit):
    page = visit(before=SCRIPTED)
    ask(page, "The weather in Ghent?", wait=False)
    page.run("""
      emit({type: "response.created", response: {model: "scripted"}});
      emit({type: "response.output_item.added", item: {type: "function_call", id: "i1", call_id: "c1", name: "get_weather", arguments: ""}});
      emit({type: "response.function_call_arguments.delta", item_id: "i1", delta: '{"city": '});
      emit({type: "response.function_call_arguments.delta", item_id: "i1", delta: '"Ghent"}'});
      emit({type: "response.completed", response: {usage: {output_tokens: 9}}});""")
    page.wait(DONE)
    assert "get_weather" in page.text(".call") and '"city": "Ghent"' in page.text(".call")
    page.click(".results textarea")
    page.type("rain")
    shot(page, "tool-call")
    page.click(".results button", "Send results")
    page.wait("window.sent.length === 2")
    assert page.run("window.sent[1].input.slice(1)") == [
        {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": '{"city": "Ghent"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "rain"}]


def test_streaming_costs_little(visit):
    page = visit(before=SCRIPTED)
    ask(page, "Write much.", wait=False)
    page.call("Performance.enable")
    figures = lambda: {m["name"]: m["value"] for m in page.call("Performance.getMetrics")["metrics"]}  # noqa: E731
    before = figures()
    page.run("""new Promise((done) => {
      const text = "A sentence of **some** words with `code`, then another.\\n\\n";
      let at = 0;
      const timer = setInterval(() => {
        delta(text.slice((at * 5) % text.length).slice(0, 5));
        if (++at === 500) { clearInterval(timer); done(); }
      }, 10);
    })""")
    after = figures()
    share = (after["TaskDuration"] - before["TaskDuration"]) / (after["Timestamp"] - before["Timestamp"])
    print(f"streaming 100 tokens/s takes {100 * share:.1f} % of a core")
    assert share < 0.5  # 10 % where nothing else runs; a busy machine must not fail this
    page.click("#stop")
    page.wait(DONE)


MATHEMATICS = r"""The roots of \(ax^2 + bx + c = 0\), for $a \neq 0$ and *not* for \$5:

\[
x_{1,2} = \frac{-b \pm \sqrt{b^2 - 4ac}}{2a}
\]

It is $$\int_0^1 x_i\,dx$$ and \(\ce{H2O}\).[^1] &lt;b&gt;

```python
def f(x):  # no
    return "a"
```

[^1]: A note with $x_1$.
"""


def test_formulas_code_and_footnotes_are_shown(visit):
    page = visit(before=SCRIPTED)
    ask(page, "Mathematics?", wait=False)
    page.run(f"answer({json.dumps(MATHEMATICS)})")
    page.wait(DONE)
    page.wait("document.querySelectorAll('.body math').length === 5 && document.querySelector('.code-word')")
    assert page.run("[...document.querySelectorAll('.body math')].map((e) => e.getAttribute('alttext').trim())") == [
        "ax^2 + bx + c = 0", "a \\neq 0", "x_{1,2} = \\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a}", "\\int_0^1 x_i\\,dx", "x_1"]
    assert page.run("document.querySelector('.body math').namespaceURI") == "http://www.w3.org/1998/Math/MathML"
    assert page.run("document.querySelector('.unbroken').lastChild.data") == ",", "no line begins with what follows a formula"
    assert page.run("document.querySelector('mfrac').getBoundingClientRect().height > 20"), "fractions stand above each other"
    assert page.text(".tex") == "\\(\\ce{H2O}\\)" and "<b>" in page.text(".assistant .body")
    assert page.run("[...document.querySelectorAll('pre span')].map((e) => e.className + ' ' + e.innerText)") == [
        "code-word def", "code-comment # no", "code-word return", 'code-string "a"']
    page.click(".note-mark", "Footnote 1")
    assert page.run("document.activeElement.dataset.note") == "1"
    page.click(".note-mark", "Back to where footnote 1 is named")
    assert page.run("document.activeElement.dataset.mark") == "1"
    shot(page, "mathematics")
    if "TWILL_AXE" in os.environ:
        assert violations(page) == []


def test_code_and_formulas_stay_readable_without_their_part_of_the_page(visit):
    page = visit(before=SCRIPTED, complaints=True)
    page.call("Network.setBlockedURLs", {"urls": ["*extras.js"]})
    ask(page, "Mathematics?", wait=False)
    page.run(f"answer({json.dumps(MATHEMATICS)})")
    page.wait(DONE)
    assert page.run("document.querySelectorAll('math').length") == 0
    assert page.text(".tex") == "\\(ax^2 + bx + c = 0\\)" and "def f(x):" in page.text("pre")
    page.click("#export-all")
    page.wait("document.getElementById('notice').innerText.includes('was not loaded')")


def test_thoughts_of_a_model_are_folded(visit):
    page = visit(before=SCRIPTED)
    ask(page, "Think.", wait=False)
    page.run("emit({type: 'response.created', response: {model: 'scripted'}}); emit({type: 'response.reasoning_text.delta', delta: 'hm, *well*'})")
    page.wait("document.querySelector('.thought[open] em')?.innerText === 'well'")
    page.run("delta('Yes.'); emit({type: 'response.completed', response: {usage: {output_tokens: 9}}})")
    page.wait(DONE)
    assert page.run("!document.querySelector('.thought').open") and answers(page) == ["Yes."]
    ask(page, "Again.", wait=False)
    assert page.run("sent[1].input.map((item) => item.content)") == ["Think.", "Yes.", "Again."]


def test_chats_are_renamed_searched_exported_and_imported(visit):
    page = visit(before=SCRIPTED + """
      window.files = [];
      URL.createObjectURL = (blob) => { blob.text().then((text) => files.push(text)); return "#"; };""")
    ask(page, "first chat", wait=False)
    page.run("answer('of **looms**')")
    page.wait(DONE)
    page.click("#new-chat")
    ask(page, "second chat", wait=False)
    page.run("answer('of ships')")
    page.wait(DONE)
    open_dialog(page, "#chat-list button", "Options of second chat")
    page.type("The sea")
    page.press("Enter")
    page.wait("document.getElementById('title').innerText === 'The sea' && !document.querySelector('dialog')")
    page.click("#search")
    page.type("LOOMS")
    page.wait("document.querySelectorAll('.chat').length === 1 && document.getElementById('search-state').innerText === '1 chat found'")
    assert page.text(".chat") == "first chat"
    page.type("xyz")
    page.wait("document.getElementById('chat-list').innerText === 'No chat holds this text.'")
    page.run("document.getElementById('search').value = ''; document.getElementById('search').dispatchEvent(new Event('input'))")
    page.wait("document.querySelectorAll('.chat').length === 2")
    open_dialog(page, "#chat-list button", "Options of first chat")
    shot(page, "options")
    page.click("dialog button", "Export as Markdown")
    page.wait("files.length === 1")
    assert page.run("files[0]") == "# first chat\n\n## You\n\nfirst chat\n\n## Answer\n\nof **looms**\n"
    page.press("Escape")
    page.click("#export-all")
    page.wait("files.length === 2")
    for title in ("first chat", "The sea"):
        open_dialog(page, "#chat-list button", f"Options of {title}")
        page.click("dialog button", "Delete")
        page.click("dialog button", "Delete")
    page.wait("document.querySelectorAll('.chat').length === 1 && document.querySelectorAll('.message').length === 0")
    choose = """((text) => { const files = new DataTransfer(); files.items.add(new File([text], "a.json"));
      const field = document.getElementById("import-file"); field.files = files.files; field.dispatchEvent(new Event("change")); })"""
    page.run(f"{choose}(files[1])")
    page.wait("[...document.querySelectorAll('.chat')].map((e) => e.innerText).join() === 'The sea,first chat'")
    page.click(".chat", "first chat")
    page.wait("document.querySelector('.assistant .body strong')?.innerText === 'looms'")
    page.run(f"{choose}('no')")
    page.wait("document.getElementById('notice').innerText.includes('a.json is not JSON')")
    page.click("#notice button", "Close")
    assert page.run("document.getElementById('notice').hidden && document.activeElement.id") == "prompt"


def test_the_theme_is_kept(visit):
    page = visit(before=SCRIPTED)
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.run(ground)
    choose = "((name) => { const list = document.getElementById('theme'); list.value = name; list.dispatchEvent(new Event('change')); })"
    page.run(f"{choose}('dark')")
    dark = page.run(ground)
    assert dark != light
    page.reload()
    assert page.run(ground) == dark and page.run("document.getElementById('theme').value") == "dark"
    page.run(f"{choose}('auto')")
    assert page.run(ground) == light
    page.theme(dark=True)
    assert page.run(ground) == dark
    page.run(f"{choose}('light')")
    assert page.run(ground) == light


def test_the_end_can_be_jumped_to(visit):
    page = visit(before=SCRIPTED)
    ask(page, "Much.", wait=False)
    page.run("answer('A line.\\n\\n'.repeat(100))")
    page.wait(DONE)
    assert page.run("document.getElementById('to-end').hidden")
    page.run("document.getElementById('scroll').scrollTop = 0")
    page.wait("!document.getElementById('to-end').hidden")
    shot(page, "jump")
    page.click("#to-end")
    page.wait("document.getElementById('to-end').hidden && document.getElementById('scroll').scrollTop > 1000")
    assert page.run("document.activeElement.id") == "prompt"


def test_text_files_go_with_a_message(visit):
    page = visit(before=SCRIPTED)
    drop = """((...files) => { const given = new DataTransfer(); for (const [name, part] of files) given.items.add(new File([part], name));
      dispatchEvent(new DragEvent("drop", {dataTransfer: given, cancelable: true})); })"""
    page.run(f"{drop}(['a b.py', 'def f():\\n    return 1\\n'], ['b.txt', '```\\nx\\n```'], ['c.txt', 'away'])")
    page.wait("document.querySelectorAll('#attachments li').length === 3")
    page.click("#attachments button", "Take out c.txt")
    assert page.text("#attachments").split() == ["a", "b.py", "×", "b.txt", "×"] and page.run("document.activeElement.id") == "prompt"
    page.run(f"{drop}(['p.png', new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 1])])")
    page.wait("document.getElementById('notice').innerText.includes('p.png is not a text file')")
    page.run(f"{drop}(['big.txt', 'x'.repeat(300000)])")
    page.wait("document.getElementById('notice').innerText.includes('big.txt has 293 KiB; at most 256 KiB')")
    shot(page, "attachments")
    ask(page, "What is this?", wait=False)
    assert page.run("sent[0].input") == [{"role": "user", "content": "```a-b.py\ndef f():\n    return 1\n```\n\n````b.txt\n```\nx\n```\n````\n\nWhat is this?"}]
    page.run("answer('Files.')")
    page.wait(DONE)
    assert page.text("#title") == "What is this?" and page.run("document.getElementById('attachments').hidden")
    assert page.run("[...document.querySelectorAll('.file summary')].map((e) => e.innerText)") == ["a-b.py · 2 lines", "b.txt · 3 lines"]
    page.click(".file:first-child summary")
    page.wait("document.querySelector('.file[open] .code-word')?.innerText === 'def'")
    page.run(f"{drop}(['only.txt', 'alone'])")
    page.wait("document.querySelectorAll('#attachments li').length === 1")
    page.press("Enter")
    page.wait("sent.length === 2")
    assert page.run("sent[1].input.at(-1).content") == "```only.txt\nalone\n```", "a file may go alone"


def test_actions_show_where_the_pointer_or_the_focus_is(visit):
    page = visit(before=SCRIPTED)
    for text in ("one", "two"):
        ask(page, text, wait=False)
        page.run("answer('yes')")
        page.wait(DONE)
    seen = "[...document.querySelectorAll('.message')].map((e) => getComputedStyle(e.querySelector('.foot button')).opacity)"
    page.call("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": 5, "y": 5})
    page.wait(f"{seen}.join() === '0,0,0,1'")
    place = page.run("(() => { const box = document.querySelector('.user .body').getBoundingClientRect(); return [box.x + 5, box.y + 5]; })()")
    page.call("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": place[0], "y": place[1]})
    page.wait(f"{seen}.join() === '1,0,0,1'")
    page.call("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": 5, "y": 5})
    page.run("document.querySelectorAll('.message')[1].querySelector('.foot button').focus()")
    page.wait(f"{seen}.join() === '0,1,0,1'")
    page.call("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 1})
    page.wait(f"{seen}.join() === '1,1,1,1'")


def test_a_system_prompt_is_hinted_at(visit):
    page = visit(before=SCRIPTED)
    assert page.run("document.getElementById('system-hint').hidden")
    open_dialog(page, "#open-settings")
    page.run("document.getElementById('set-instructions').value = 'Answer in verse.'")
    page.click("dialog button", "Save")
    assert page.text("#system-hint span") == "System prompt: Answer in verse."
    page.click("#system-hint button")
    page.wait("document.querySelector('dialog')")
    page.run("document.getElementById('set-instructions').value = ''")
    page.click("dialog button", "Save")
    assert page.run("document.getElementById('system-hint').hidden")


def test_help_leads_to_what_the_server_has(visit):
    page = visit(before=SCRIPTED)
    open_dialog(page, "#open-help")
    found = page.run("Promise.all([...document.querySelectorAll('dialog a')].map(async (a) => [a.getAttribute('href'), (await fetch(a.href)).status]))")
    assert found == [["routes", 200], ["metrics", 200], ["v1/models", 200], ["routes", 200]]  # the guides are among them
    assert "server.admin_listen" in page.text("dialog")
    if "TWILL_AXE" in os.environ:
        assert violations(page) == []


def test_several_chats_are_kept_apart(visit):
    page = visit(before=SCRIPTED)
    ask(page, "first chat", wait=False)
    page.click("#new-chat")
    ask(page, "second chat", wait=False)
    page.run("answer('to the second')")
    page.wait("document.querySelector('.assistant .body')?.innerText === 'to the second'")
    page.run("emit({stream_id: sent[0].stream_id, type: 'response.output_text.delta', delta: 'to the first', logprobs: []});"
             "emit({stream_id: sent[0].stream_id, type: 'response.completed', response: {}})")
    page.click(".chat", "first chat")
    page.wait("document.querySelector('.assistant .body')?.innerText === 'to the first'")
    open_dialog(page, "#chat-list button", "Options of first chat")
    page.click("dialog button", "Delete")
    page.click("dialog button", "Delete")
    page.wait("document.querySelectorAll('.chat').length === 1")
    assert page.text("#title") == "second chat"
