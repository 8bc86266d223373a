"""Answers of the chat page that a reload, a lost network, a restarted daemon or another tab comes into. The server stores them
meanwhile, so that each ends as if nothing had happened."""

import json
import signal
import time
import types

import pytest

from page_test import DONE, answers, ask, open_dialog
from proxy import Proxy
from support import OPEN, clients

QUESTION = "Write a long story about a ship."
LENGTH = 700  # some seconds, so that there is a middle
SETTINGS = {"max_output_tokens": LENGTH}
BEGUN = "document.querySelector('.running .body')?.innerText.length > 20"
WITHOUT_LOCKS = "Object.defineProperty(navigator, 'locks', { value: undefined });"


def nodes(page):
    """The answers as the browser keeps them, those of the newest chat last."""
    return page.run("""Object.entries(localStorage).filter(([key]) => key.includes('chat:'))
      .map(([, text]) => JSON.parse(text)).sort((a, b) => a.created - b.created)
      .flatMap((chat) => Object.values(chat.nodes)).filter((node) => node.role === 'assistant')""")


def node(page):
    [only] = nodes(page)
    return only


@pytest.fixture(scope="module")
def whole():
    """The answer that nothing disturbs."""
    alone = clients.Daemon("kv.memory=256MiB")
    try:
        status, response = alone.post("/v1/responses", {"input": QUESTION, "temperature": 0, "max_output_tokens": LENGTH, "store": False})
        assert status == 200, response
        return types.SimpleNamespace(text=response["output"][-1]["content"][0]["text"], tokens=response["usage"]["output_tokens"])
    finally:
        alone.stop()


def begin(page, text=QUESTION):
    """Asks, and waits until some of the answer is here: the id of the response that the server stores."""
    ask(page, text, wait=False)
    page.wait(BEGUN)
    found = wait_kept(page, lambda found: "sequence_number" in found[-1])
    return found[-1]["response_id"]


def delete_chat(page):
    open_dialog(page, "#chat-list button", f"Options of {QUESTION}")
    page.click("dialog button", "Delete")
    page.click("dialog button", "Delete")


def reads_on(page):
    return [url for url in page.requests() if "stream=true" in url]


def wait_gone(daemon, id, seconds=30):
    deadline = time.monotonic() + seconds
    while (status := daemon.request("GET", f"/v1/responses/{id}")[0]) != 404:
        assert status == 200 and time.monotonic() < deadline, f"the server still stores {id}"
        time.sleep(0.02)


def wait_kept(page, condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition(found := nodes(page)):
        assert time.monotonic() < deadline, found
        time.sleep(0.03)
    return found


def test_an_answer_that_nothing_disturbs_is_stored_until_it_is_here(visit, daemon, whole):
    page = visit(settings=SETTINGS)
    id = begin(page)
    assert daemon.request("GET", f"/v1/responses/{id}")[0] == 200
    page.wait(DONE, 60)
    assert node(page)["text"] == whole.text and " tokens/s" in page.text(".figures")
    wait_gone(daemon, id)
    assert "response_id" not in node(page) and reads_on(page) == []
    assert page.run("Object.keys(localStorage).filter((key) => key.includes('forget:'))") == []


def test_a_reload_in_the_middle_goes_on(visit, daemon, whole):
    page = visit(settings=SETTINGS)
    id = begin(page)
    page.reload()
    page.wait("document.querySelector('.running') && !document.getElementById('stop').hidden")
    assert whole.text.startswith(before := node(page)["text"]) and len(before) > 20
    page.wait(DONE, 60)
    assert node(page)["text"] == whole.text and node(page)["status"] in ("cut", "done")
    assert f"{whole.tokens} tokens" in page.text(".figures") and "tokens/s" not in page.text(".figures")
    assert len(reads_on(page)) == 1 and f"{id}?stream=true&starting_after=" in reads_on(page)[0]
    wait_gone(daemon, id)
    ask(page, "And now?")
    assert len(answers(page)) == 2


def test_answers_in_other_chats_go_on_after_a_reload(visit, daemon, whole):
    page = visit(settings=SETTINGS)
    ids = []
    for _ in range(2):
        ids.append(begin(page))
        page.click("#new-chat")
    page.reload()
    assert page.run("document.getElementById('stop').hidden")
    wait_kept(page, lambda found: all("response_id" not in one for one in found))
    assert [one["text"] for one in nodes(page)] == [whole.text] * 2
    for id in ids:
        wait_gone(daemon, id)


def test_an_answer_that_ended_while_no_page_was_open_is_shown(visit, daemon, whole):
    page = visit(settings=SETTINGS)
    id = begin(page)
    page.call("Page.navigate", {"url": "about:blank"})
    deadline = time.monotonic() + 60
    while json.loads(daemon.request("GET", f"/v1/responses/{id}")[2])["status"] in ("queued", "in_progress"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    page.open(daemon.url + "/")
    page.wait(DONE, 60)
    assert node(page)["text"] == whole.text
    wait_gone(daemon, id)


def test_probabilities_outlive_a_reload_in_the_middle(visit, whole):
    page = visit(settings={**SETTINGS, "logprobs": True})
    begin(page)
    page.reload()
    page.wait(DONE, 60)
    assert node(page)["text"] == whole.text
    page.click(".assistant button", "Probabilities")
    page.wait("document.querySelector('.token')")
    assert page.run("document.querySelectorAll('.token').length") == whole.tokens


def test_a_network_that_is_lost_twice_goes_on(visit, daemon, whole):
    proxy = Proxy(daemon.host, daemon.port, "/some/where")
    try:
        page = visit(proxy.url, settings=SETTINGS, complaints=True)
        id = begin(page)
        for _ in range(2):
            proxy.cut()
            page.wait("document.querySelector('.assistant .note')?.innerText.includes('goes on when the server is back')")
            length = len(answers(page)[0])
            proxy.mend()
            page.wait(f"document.querySelector('.assistant .body').innerText.length > {length}")
        page.wait(DONE, 60)
        assert node(page)["text"] == whole.text
        assert all(f"{id}?stream=true&starting_after=" in url for url in reads_on(page)) and reads_on(page)
        wait_gone(daemon, id)
    finally:
        proxy.close()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("reloads", [False, True])
def test_a_daemon_with_a_folder_goes_on_after_a_restart(visit, whole, tmp_path, how, reloads):
    settings = ("kv.memory=256MiB", f"responses.folder={tmp_path / 'responses'}", "server.drain_timeout=0s")
    old = clients.Daemon(*settings)
    proxy = Proxy(old.host, old.port, "/some/where")
    new = None
    try:
        page = visit(proxy.url, settings=SETTINGS, complaints=True)
        id = begin(page)
        old.process.send_signal(how)
        old.process.wait(60)
        page.wait("document.getElementById('state').dataset.state === 'waiting'")
        assert node(page)["response_id"] == id and len(node(page)["text"]) < len(whole.text)
        new = clients.Daemon(*settings)
        proxy.port = new.port
        if reloads:
            page.reload()
        page.wait(OPEN, 60)
        page.wait(DONE, 60)
        assert node(page)["text"] == whole.text
        wait_gone(new, id)
    finally:
        proxy.close()
        old.stop()
        if new:
            new.stop()


def test_a_daemon_without_a_folder_is_asked_anew(visit, whole):
    old = clients.Daemon("kv.memory=256MiB")
    proxy = Proxy(old.host, old.port, "/some/where")
    new = None
    try:
        page = visit(proxy.url, settings=SETTINGS, complaints=True)
        begin(page)
        old.process.kill()
        page.wait("document.getElementById('state').dataset.state === 'waiting'")
        new = clients.Daemon("kv.memory=256MiB")
        proxy.port = new.port
        page.wait(DONE, 60)
        assert node(page)["text"] == whole.text and len(nodes(page)) == 1

        page.click(".assistant button", "Regenerate")
        page.wait(BEGUN)
        wait_kept(page, lambda found: any(one.get("sequence_number") for one in found))
        new.process.kill()
        new.process.wait(60)
        newest = clients.Daemon("kv.memory=256MiB")
        try:
            proxy.port = newest.port
            page.reload()
            page.wait("document.querySelector('.assistant .note')?.innerText.includes('not finished')", 60)
            assert all("response_id" not in one for one in nodes(page))
            page.click(".assistant button", "Continue")
            page.wait("document.getElementById('send').hidden")
            page.wait(DONE, 60)
        finally:
            newest.stop()
    finally:
        proxy.close()
        old.stop()
        if new:
            new.stop()


def test_stop_ends_what_is_read_over_http(visit, daemon):
    page = visit(settings={"max_output_tokens": 4000})
    id = begin(page)
    page.reload()
    page.wait("document.querySelector('.running') && !document.getElementById('stop').hidden")
    length = len(answers(page)[0])
    page.wait(f"document.querySelector('.running .body').innerText.length > {length}")
    page.click("#stop")
    page.wait(DONE)
    daemon.wait_metric("twill_num_requests_running", 0)
    wait_gone(daemon, id)
    page.wait("/· [1-9][0-9]* tokens/.test(document.querySelector('.assistant .figures').innerText)")
    assert "Stopped" in page.text(".assistant .note")
    assert page.run("Object.keys(localStorage).filter((key) => key.includes('forget:'))") == []


@pytest.mark.parametrize("reloads", [False, True])
def test_a_stop_without_a_network_is_done_when_there_is_one(visit, daemon, reloads):
    proxy = Proxy(daemon.host, daemon.port, "/some/where")
    try:
        page = visit(proxy.url, settings={"max_output_tokens": 4000}, complaints=True)
        id = begin(page)
        proxy.cut()
        page.wait("document.querySelector('.assistant .note')?.innerText.includes('goes on when the server is back')")
        page.click("#stop")
        page.wait("document.querySelector('.assistant .note').innerText === 'Stopped.'")
        assert daemon.request("GET", f"/v1/responses/{id}")[0] == 200
        proxy.mend()
        if reloads:
            page.reload()
        page.wait(OPEN, 60)
        daemon.wait_metric("twill_num_requests_running", 0)
        wait_gone(daemon, id)
        assert "Stopped" in page.text(".assistant .note")
    finally:
        proxy.close()


def test_deleting_a_chat_ends_its_answer(visit, daemon):
    page = visit(settings={"max_output_tokens": 4000})
    id = begin(page)
    delete_chat(page)
    daemon.wait_metric("twill_num_requests_running", 0)
    wait_gone(daemon, id)
    assert nodes(page) == [], "the last event of its answer does not bring it back"


# --- two tabs ------------------------------------------------------------------------------------------------


def test_another_tab_watches_and_goes_on_when_the_first_is_closed(visit, daemon, whole):
    first = visit(settings=SETTINGS)
    id = begin(first)
    second = visit(settings=SETTINGS, context=first.context)
    second.wait("document.querySelector('.assistant .body')?.innerText.length > 0 && !document.getElementById('stop').hidden")
    length = len(answers(second)[0])
    second.wait(f"document.querySelector('.assistant .body').innerText.length > {length}")
    assert reads_on(second) == [], "it sees what the first tab keeps"
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        first.call("Page.navigate", {"url": "about:blank"})
    finally:
        daemon.process.send_signal(signal.SIGCONT)
    second.wait(DONE, 60)
    assert node(second)["text"] == whole.text and len(reads_on(second)) == 1
    wait_gone(daemon, id)


def test_another_tab_sees_the_end_and_stops_nothing_by_itself(visit, daemon, whole):
    first = visit(settings=SETTINGS)
    id = begin(first)
    second = visit(settings=SETTINGS, context=first.context)
    second.reload()
    second.wait(DONE, 60)
    assert node(second)["text"] == whole.text and reads_on(second) == [] and reads_on(first) == []
    wait_gone(daemon, id)
    second.wait(f"document.querySelector('.assistant .figures').innerText.includes('{whole.tokens} tokens')")


def test_stop_in_another_tab_ends_the_answer(visit, daemon):
    first = visit(settings={"max_output_tokens": 4000})
    id = begin(first)
    second = visit(settings={"max_output_tokens": 4000}, context=first.context)
    second.wait("!document.getElementById('stop').hidden")
    second.click("#stop")
    second.wait(DONE, 60)
    daemon.wait_metric("twill_num_requests_running", 0)
    wait_gone(daemon, id)
    assert node(second)["status"] == "stopped"


def test_tabs_without_locks_do_not_damage_each_others_answers(visit, daemon, whole):
    first = visit(settings=SETTINGS, before=WITHOUT_LOCKS, complaints=True)
    id = begin(first)
    second = visit(settings=SETTINGS, before=WITHOUT_LOCKS, context=first.context, complaints=True)
    first.wait(DONE, 60)
    second.wait(DONE, 60)
    assert node(first)["text"] == whole.text
    wait_gone(daemon, id)
    ask(first, "And now?")
    second.wait("document.querySelectorAll('.assistant').length === 2")
    second.wait(DONE, 60)
    assert len(nodes(second)) == 2 and nodes(second)[0]["text"] == whole.text


def test_a_chat_that_another_tab_deletes_does_not_come_back(visit, daemon):
    first = visit(settings={"max_output_tokens": 4000}, complaints=True)  # both have the server forget the answer
    id = begin(first)
    second = visit(settings={"max_output_tokens": 4000}, context=first.context, complaints=True)
    second.wait("!document.getElementById('stop').hidden")
    delete_chat(second)
    daemon.wait_metric("twill_num_requests_running", 0)
    wait_gone(daemon, id)
    first.wait("document.querySelectorAll('.message').length === 0 && document.getElementById('stop').hidden")
    assert nodes(first) == [] and first.run("Object.keys(localStorage).filter((key) => key.includes('forget:'))") == []
