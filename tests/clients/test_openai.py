"""The official openai package, unmodified."""

import asyncio
import json
import pathlib
import re
import subprocess
import sys

import openai
import pytest

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "smollm2"


@pytest.fixture
def client(daemon):
    return openai.OpenAI(base_url=daemon.url + "/v1", api_key="none", max_retries=0, timeout=60)


@pytest.fixture
def model(client):
    return client.models.list().data[0].id


def test_the_snippet_of_the_readme_ends_when_the_reply_is_cut(daemon):
    readme = pathlib.Path(__file__).resolve().parents[2] / "README.md"
    code = re.search(r"```python\n(.*?)```", readme.read_text(), re.DOTALL).group(1)
    assert "max_output_tokens=200" in code and "http://127.0.0.1:8080/v1" in code
    code = code.replace("max_output_tokens=200", "max_output_tokens=2").replace("http://127.0.0.1:8080", daemon.url)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_models_are_listed_and_retrieved(client, model):
    assert client.models.retrieve(model).id == model
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("no-such-model")


def test_completion_equals_the_reference_token_by_token(client, model):
    cases = json.loads((GOLDEN / "hf.json").read_text())["prompts"]
    for case in cases:
        # The reference never chooses an end id, so min_tokens must ban end ids here.
        reply = client.completions.create(model=model, prompt=case["text"], max_tokens=64, temperature=0,
                                          extra_body={"min_tokens": 64, "return_token_ids": True})
        assert reply.choices[0].token_ids == case["greedy_ids"]
        assert reply.usage.completion_tokens == 64


def test_completion_streams_the_same_text(client, model):
    arguments = dict(model=model, prompt="The capital of France is", max_tokens=24, temperature=0)
    whole = client.completions.create(**arguments)
    chunks = list(client.completions.create(**arguments, stream=True, stream_options={"include_usage": True}))
    assert "".join(c.choices[0].text for c in chunks if c.choices) == whole.choices[0].text
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert len({c.id for c in chunks}) == 1


def test_token_id_prompts_and_several_prompts(client, model):
    ids = [504, 3575, 282, 4649, 314]
    one = client.completions.create(model=model, prompt=ids, max_tokens=8, temperature=0)
    text = client.completions.create(model=model, prompt="The capital of France is", max_tokens=8, temperature=0)
    both = client.completions.create(model=model, prompt=[ids, ids], max_tokens=8, temperature=0)
    assert one.choices[0].text == text.choices[0].text
    assert [c.text for c in both.choices] == [one.choices[0].text] * 2
    assert [c.index for c in both.choices] == [0, 1]


def test_completion_log_probabilities(client, model):
    case = json.loads((GOLDEN / "hf.json").read_text())["prompts"][0]
    reply = client.completions.create(model=model, prompt=case["text"], max_tokens=8, temperature=0, logprobs=5)
    found = reply.choices[0].logprobs.token_logprobs
    for mine, reference in zip(found, case["chosen_logprobs"]):
        assert abs(mine - reference) < 1e-3
    assert all(len(top) == 5 for top in reply.choices[0].logprobs.top_logprobs)


def test_chat_whole_and_streamed_agree(client, model):
    arguments = dict(model=model, messages=[{"role": "user", "content": "What is 2+2?"}], max_tokens=32,
                     temperature=0)
    whole = client.chat.completions.create(**arguments)
    assert whole.choices[0].finish_reason in ("stop", "length")
    chunks = list(client.chat.completions.create(**arguments, stream=True))
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].choices[0].finish_reason == whole.choices[0].finish_reason


def test_chat_logprobs_n_seed_and_stop(client, model):
    arguments = dict(model=model, messages=[{"role": "user", "content": "Count to five."}], max_tokens=16)
    several = client.chat.completions.create(**arguments, n=3, seed=7, temperature=1.0)
    again = client.chat.completions.create(**arguments, n=3, seed=7, temperature=1.0)
    texts = [c.message.content for c in several.choices]
    assert texts == [c.message.content for c in again.choices]
    assert len(set(texts)) > 1
    scored = client.chat.completions.create(**arguments, temperature=0, logprobs=True, top_logprobs=3)
    assert all(len(t.top_logprobs) == 3 for t in scored.choices[0].logprobs.content)
    full = scored.choices[0].message.content
    stop = full[4:7]
    cut = client.chat.completions.create(**arguments, temperature=0, stop=stop)
    assert cut.choices[0].message.content == full[: full.index(stop)]
    assert cut.choices[0].finish_reason == "stop"


def test_responses_whole_streamed_and_continued(client, model):
    first = client.responses.create(model=model, input="My name is Ada.", max_output_tokens=16, temperature=0)
    assert first.output_text
    events = list(client.responses.create(model=model, input="My name is Ada.", max_output_tokens=16,
                                          temperature=0, stream=True))
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == first.output_text
    assert events[0].type == "response.created"
    assert events[-1].type in ("response.completed", "response.incomplete")
    assert [e.sequence_number for e in events] == sorted({e.sequence_number for e in events})
    second = client.responses.create(model=model, input="What is my name?", previous_response_id=first.id,
                                     max_output_tokens=16, temperature=0, truncation="auto")
    assert (first.truncation, second.truncation) == ("disabled", "auto")
    assert second.previous_response_id == first.id
    assert second.usage.input_tokens > first.usage.input_tokens


def test_responses_over_websocket(client, model):
    with client.responses.connect() as connection:
        connection.response.create(model=model, input="Say hello.", max_output_tokens=16, temperature=0)
        events = []
        for event in connection:
            events.append(event)
            if event.type in ("response.completed", "response.incomplete", "response.failed", "error"):
                break
        assert events[0].type == "response.created", events[0]
        assert events[-1].type in ("response.completed", "response.incomplete"), events[-1]
        text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
        assert text == events[-1].response.output_text
        previous = events[-1].response.id
        connection.response.create(model=model, input="And again.", previous_response_id=previous,
                                   max_output_tokens=8, temperature=0, store=False)
        for event in connection:
            if event.type in ("response.completed", "response.incomplete"):
                assert event.response.previous_response_id == previous
                break
            assert event.type not in ("response.failed", "error"), event
    whole = client.responses.create(model=model, input="Say hello.", max_output_tokens=16, temperature=0)
    assert whole.output_text == text


def test_bad_arguments_raise_the_typed_errors(client, model):
    with pytest.raises(openai.BadRequestError, match="temperature"):
        client.completions.create(model=model, prompt="x", temperature=-1)
    with pytest.raises(openai.NotFoundError, match="no-such-model"):
        client.completions.create(model="no-such-model", prompt="x")
    with pytest.raises(openai.BadRequestError, match="prompt"):
        client.completions.create(model=model, prompt="")


def test_many_at_once_each_equals_its_solo_text(daemon, model):
    prompts = [f"{'word ' * (i * 5 % 70)}Item {i}:" for i in range(32)]
    lengths = [8 + i * 7 % 40 for i in range(32)]
    solo = [daemon.complete(p, max_tokens=n, ignore_eos=True)["choices"][0]["text"] for p, n in zip(prompts, lengths)]

    async def one(client, index):
        call = client.completions.create(model=model, prompt=prompts[index], max_tokens=lengths[index],
                                         temperature=0, stream=index % 2 == 0, extra_body={"ignore_eos": True})
        reply = await call
        if index % 2:
            return reply.choices[0].text
        parts = []
        async for chunk in reply:
            parts.append(chunk.choices[0].text)
            if index % 8 == 0 and len(parts) == 3:
                await reply.close()
                return None
        return "".join(parts)

    async def all_of_them():
        async with openai.AsyncOpenAI(base_url=daemon.url + "/v1", api_key="none", max_retries=0) as client:
            return await asyncio.gather(*(one(client, i) for i in range(32)))

    for mine, alone in zip(asyncio.run(all_of_them()), solo):
        assert mine is None or mine == alone
    daemon.wait_metric("twill_kv_blocks_used", 0)
