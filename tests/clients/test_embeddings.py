"""Embeddings of a decoder model by the openai package, and by plain HTTP the routes that use them: scores, ranks, Ollama's."""

import base64
import json
import math
import pathlib
import struct
import time

import openai
import pytest

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
TEXTS = ["The cat sat on the mat.", "A kitten lay on the rug.", "Interest rates rose again in March."]


@pytest.fixture
def client(daemon):
    return openai.OpenAI(base_url=daemon.url + "/v1", api_key="none", max_retries=0, timeout=60)


def embed(daemon, **fields):
    status, reply = daemon.post("/v1/embeddings", fields)
    assert status == 200, reply
    return [one["embedding"] for one in reply["data"]]


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b)) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def test_the_openai_package_gets_vectors_of_length_one(daemon, client):
    model = client.models.list().data[0].id
    reply = client.embeddings.create(model=model, input=TEXTS)  # the package asks for base64 and decodes it
    plain = client.embeddings.create(model=model, input=TEXTS, encoding_format="float")
    assert [one.index for one in reply.data] == [0, 1, 2]
    assert reply.model == model and reply.object == "list"
    for one, other in zip(reply.data, plain.data):
        assert len(one.embedding) == 576
        assert math.isclose(sum(x * x for x in one.embedding), 1, rel_tol=1e-5)
        assert one.embedding == pytest.approx(other.embedding, abs=1e-7)
    tokens = sum(daemon.post("/tokenize", {"prompt": text})[1]["count"] for text in TEXTS)
    assert reply.usage.prompt_tokens == reply.usage.total_tokens == tokens
    a, b, c = (one.embedding for one in client.embeddings.create(model=model, input=TEXTS,
                                                                 extra_body={"pooling": "mean"}).data)
    assert cosine(a, b) > cosine(a, c)


def test_each_form_of_input_gives_the_same_vector_alone_and_among_others(daemon):
    ids = daemon.post("/tokenize", {"prompt": TEXTS[0]})[1]["tokens"]
    for pooling in ("last", "mean"):
        alone = embed(daemon, input=TEXTS[0], pooling=pooling)[0]
        assert embed(daemon, input=ids, pooling=pooling)[0] == alone
        assert embed(daemon, input=[ids, ids], pooling=pooling) == [alone, alone]
        many = embed(daemon, input=[f"text {n}" for n in range(80)] + [TEXTS[0]], pooling=pooling)
        assert many[-1] == alone and len(many) == 81
        text = embed(daemon, input=TEXTS[0], pooling=pooling, encoding_format="base64")[0]
        assert list(struct.unpack("<576f", base64.b64decode(text))) == pytest.approx(alone, abs=1e-7)
        raw = embed(daemon, input=TEXTS[0], pooling=pooling, normalize=False)[0]
        assert cosine(raw, alone) == pytest.approx(1, abs=1e-6)
        assert sum(x * x for x in raw) > 1.5
    messages = [{"role": "user", "content": TEXTS[0]}]
    assert len(embed(daemon, messages=messages)[0]) == 576


def test_what_cannot_be_embedded_is_refused_by_name(daemon, client):
    model = client.models.list().data[0].id
    with pytest.raises(openai.BadRequestError, match="dimensions"):
        client.embeddings.create(model=model, input="x", dimensions=64)
    client.embeddings.create(model=model, input="x", dimensions=576)
    with pytest.raises(openai.BadRequestError, match="not empty"):
        client.embeddings.create(model=model, input="")
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="no-such-model", input="x")
    status, reply = daemon.post("/v1/embeddings", {"input": ["x"] * 2049})
    assert status == 400 and "2048" in reply["error"]["message"]
    # Nothing of a failed request stays in the engine, and the daemon serves the next one.
    assert len(embed(daemon, input=TEXTS)) == 3


def test_scores_and_ranks_are_cosines_of_embeddings(daemon):
    vectors = embed(daemon, input=TEXTS, pooling="mean")
    status, reply = daemon.post("/v1/score", {"text_1": TEXTS[0], "text_2": TEXTS[1:], "pooling": "mean"})
    assert status == 200
    scores = [one["score"] for one in reply["data"]]
    assert scores == pytest.approx([cosine(vectors[0], other) for other in vectors[1:]], abs=1e-5)
    body = {"query": TEXTS[0], "documents": [TEXTS[2], {"text": TEXTS[1]}], "pooling": "mean"}
    for path in ("/v1/rerank", "/v2/rerank", "/rerank"):
        status, reply = daemon.post(path, body)
        assert status == 200
        assert [one["index"] for one in reply["results"]] == [1, 0]
        assert reply["results"][0]["document"]["text"] == TEXTS[1]
        assert [one["relevance_score"] for one in reply["results"]] == pytest.approx(scores, abs=1e-5)
    status, reply = daemon.post("/v1/rerank", {**body, "top_n": 1, "return_documents": False})
    assert len(reply["results"]) == 1 and "document" not in reply["results"][0]


def test_ollama_gets_the_same_vectors(daemon):
    vectors = embed(daemon, input=TEXTS)
    status, reply = daemon.post("/api/embed", {"model": daemon.model(), "input": TEXTS, "options": {"num_ctx": 99}})
    assert status == 200
    assert reply["embeddings"] == vectors and reply["prompt_eval_count"] > 10
    status, reply = daemon.post("/api/embeddings", {"model": daemon.model(), "prompt": TEXTS[1]})
    assert status == 200
    assert reply["embedding"] == embed(daemon, input=TEXTS[1], normalize=False)[0]


def test_an_input_may_fill_the_context_and_what_is_longer_is_refused_or_cut(start_daemon):
    daemon = start_daemon(model="dummy:null")
    most = json.loads(daemon.request("GET", "/v1/models")[2])["data"][0]["max_model_len"]
    first, last = [7] * most + [8], [9] + [7] * most
    assert len(embed(daemon, input=[first[:most], last[1:]])) == 2
    status, reply = daemon.post("/v1/embeddings", {"input": [[5], first]})
    assert status == 400 and reply["error"]["param"] == "input[1]"
    # vLLM keeps the last tokens, Ollama the first; this model's vectors are those of the last token.
    kept, = embed(daemon, input=first, truncate_prompt_tokens=-1)
    assert [kept] == embed(daemon, input=[8]) != embed(daemon, input=[7])
    status, reply = daemon.post("/api/embed", {"input": first})
    assert status == 200 and reply["prompt_eval_count"] == most and reply["embeddings"] == embed(daemon, input=[7])
    assert daemon.post("/api/embed", {"input": first, "truncate": False})[0] == 400


def test_embeddings_are_counted_as_other_requests_are(daemon):
    finished = daemon.metric("twill_request_success_total")
    prompt, made = daemon.metric("twill_prompt_tokens_total"), daemon.metric("twill_generation_tokens_total")
    _, reply = daemon.post("/v1/embeddings", {"input": TEXTS})
    daemon.wait_metric("twill_request_success_total", finished + 3)
    daemon.wait_metric("twill_prompt_tokens_total", prompt + reply["usage"]["prompt_tokens"])
    assert daemon.metric("twill_generation_tokens_total") == made


def test_a_batch_may_hold_embeddings(daemon, client):
    lines = [{"custom_id": str(n), "method": "POST", "url": "/v1/embeddings", "body": {"input": [TEXTS[n], "x"]}}
             for n in range(3)]
    file = client.files.create(file=("in.jsonl", "\n".join(json.dumps(line) for line in lines).encode()),
                               purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/embeddings", completion_window="24h")
    deadline = time.monotonic() + 30
    while client.batches.retrieve(batch.id).status != "completed":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    output = client.files.content(client.batches.retrieve(batch.id).output_file_id).text
    replies = {one["custom_id"]: one["response"]["body"] for one in map(json.loads, output.splitlines())}
    for n in range(3):
        assert [one["embedding"] for one in replies[str(n)]["data"]] == embed(daemon, input=[TEXTS[n], "x"])


def test_a_model_that_computes_nothing_and_one_that_streams_have_vectors(start_daemon):
    nothing = start_daemon(model="dummy:null")
    one, other, again = (embed(nothing, input=text)[0] for text in ("one", "other", "one"))
    assert one == again != other
    assert math.isclose(sum(x * x for x in one), 1, rel_tol=1e-5)

    folder = GOLDEN / "llama-tiny-fp16"
    case = json.loads((folder / "golden.json").read_text())["prompts"][1]["ids"]
    resident = start_daemon("model.compute=f32", "kv.type=f32", "kv.memory=1MiB", model=str(folder))
    streamed = start_daemon("model.compute=f32", "kv.type=f32", "kv.memory=1MiB", "offload.device_percent=0",
                            "offload.host_percent=50", model=str(folder))
    for pooling in ("last", "mean"):
        assert embed(streamed, input=case, pooling=pooling) == embed(resident, input=case, pooling=pooling)
