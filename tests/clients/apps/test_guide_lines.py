"""The lines of Python in config/guides/clients.md, with the packages that they name."""

import importlib
import pathlib
import re

import pytest

GUIDE = pathlib.Path(__file__).resolve().parents[3] / "config" / "guides" / "clients.md"
LINES = [re.match(r"(\w+)(\(.*\))  # ([\w.]+)$", line).groups()
         for line in re.search(r"```python\n(.*?)```", GUIDE.read_text(), re.S).group(1).splitlines()]
MESSAGES = [{"role": "user", "content": "Name a colour."}]


@pytest.fixture(scope="module")
def address():
    from conftest import Daemon
    daemon = Daemon("model.name=smollm2", "limits.default_max_tokens=16")
    yield daemon.url
    daemon.stop()


@pytest.mark.parametrize("name,arguments,package", LINES, ids=[f"{p}-{i}" for i, (_, _, p) in enumerate(LINES)])
def test_a_line_of_the_guide_answers(address, name, arguments, package):
    made = getattr(importlib.import_module(package), name)
    answer = eval(name + arguments.replace("http://127.0.0.1:8080", address), {name: made, "messages": MESSAGES})
    if package == "litellm":
        assert answer.choices[0].message.content
    elif package.startswith("langchain"):
        assert answer.invoke("Name a colour.").content
        assert "".join(chunk.text() if callable(chunk.text) else chunk.text for chunk in answer.stream("Name a colour."))
    else:
        assert answer.complete("Name a colour.").text
        assert [part.delta for part in answer.stream_complete("Name a colour.")]
