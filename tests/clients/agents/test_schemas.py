"""Answers sampled at temperature 1 under a schema validate with Python's jsonschema.

A few schemas by default; with TWILL_LONG, 200 of JSONSchemaBench's where they lie beside the checkout or in
TWILL_SCHEMAS.
"""

import json
import os
import pathlib
from concurrent.futures import ThreadPoolExecutor

import jsonschema
import pytest

FOLDER = pathlib.Path(os.environ.get("TWILL_SCHEMAS")
                      or pathlib.Path(__file__).resolve().parents[3].parent / "shared" / "schemas")
FEW = [
    {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "minimum": -5, "maximum": 12}}},
    {"type": "array", "minItems": 1, "maxItems": 3, "items": {"enum": ["x", 2, None, True]}},
    {"anyOf": [{"const": {"k": [1]}}, {"type": "string", "pattern": "^[ab]{2,4}$"}]},
    {"type": "object", "additionalProperties": False, "required": ["d", "n"],
     "properties": {"d": {"type": "string", "format": "date"}, "n": {"type": "number", "maximum": 3}}},
]


def sample(daemon, name, schema, max_tokens):
    status, reply = daemon.post("/v1/chat/completions", {
        "messages": [{"role": "user", "content": "Answer in JSON."}], "max_tokens": max_tokens, "temperature": 1,
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}}, timeout=300)
    if status == 400:
        assert reply["error"]["code"] == "grammar_refused", (name, reply)
        return "refused"
    assert status == 200, (name, reply)
    choice = reply["choices"][0]
    if choice["finish_reason"] == "length":
        return "cut"
    jsonschema.validate(json.loads(choice["message"]["content"]), schema,
                        format_checker=jsonschema.FormatChecker())
    return "valid"


def test_sampled_answers_validate(tool_daemon):
    outcomes = [sample(tool_daemon, i, schema, 96) for i, schema in enumerate(FEW)]
    assert "refused" not in outcomes
    assert "valid" in outcomes


@pytest.mark.skipif(not os.environ.get("TWILL_LONG"), reason="200 schemas take minutes: tools/test --long")
@pytest.mark.skipif(not FOLDER.is_dir(), reason="the schemas do not lie beside the checkout")
def test_sampled_answers_validate_over_a_benchmark(tool_daemon):
    files = sorted(FOLDER.glob("*.json"))[:200]
    schemas = [(f.name, json.loads(f.read_text())) for f in files]
    schemas = [(name, s["schema"]) for name, s in schemas]
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda one: sample(tool_daemon, *one, 400), schemas))
    print({kind: outcomes.count(kind) for kind in set(outcomes)})
    assert outcomes.count("refused") <= 0.15 * len(outcomes)
