"""lm-eval's local-completions, unmodified, against a direct computation in f32.

It finds the tokenizer by itself (GET /tokenizer_info, then /tokenize), scores the choices of a multiple-choice task by
echoed log-probabilities, and generates greedily.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from direct_llama import DirectLlama

MODEL = pathlib.Path(__file__).resolve().parents[2] / "golden" / "llama-tiny-fp16"
N_NEW = 8
DOCS = [
    {"text": "The sky over the sea is", "choices": [" blue", " a stone", " made of wood"], "label": 0},
    {"text": "Two and two make", "choices": [" four", " five", " a very long answer that nobody gives"], "label": 0},
    {"text": "Question: which animal barks?\nAnswer:", "choices": [" the cat", " the dog"], "label": 1},
    {"text": "é ü 北", "choices": [" x", " 京"], "label": 1},
]
CHOICE = """
task: twill_choice
dataset_path: json
dataset_kwargs: {{data_files: {{test: {docs}}}}}
output_type: multiple_choice
test_split: test
doc_to_text: "{{{{text}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: label
target_delimiter: ""
metric_list: [{{metric: acc}}]
"""
GENERATE = """
task: twill_generate
dataset_path: json
dataset_kwargs: {{data_files: {{test: {docs}}}}}
output_type: generate_until
test_split: test
doc_to_text: "{{{{text}}}}"
doc_to_target: "{{{{choices[label]}}}}"
generation_kwargs: {{until: ["no such text"], max_gen_toks: {n_new}, do_sample: false, temperature: 0}}
metric_list: [{{metric: exact_match}}]
"""


@pytest.fixture
def samples(start_daemon, tmp_path):
    """What lm-eval recorded of each task, by document, and the daemon that it asked."""
    daemon = start_daemon("model.compute=f32", "kv.memory=64MiB", model=str(MODEL))
    docs = tmp_path / "docs.jsonl"
    docs.write_text("".join(json.dumps(doc) + "\n" for doc in DOCS))
    (tmp_path / "choice.yaml").write_text(CHOICE.format(docs=docs))
    (tmp_path / "generate.yaml").write_text(GENERATE.format(docs=docs, n_new=N_NEW))
    environment = dict(os.environ, HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_HOME=str(tmp_path / "hf"),
                       NO_PROXY="*")
    command = [sys.executable, "-m", "lm_eval", "--model", "local-completions", "--model_args",
               f"model={daemon.model()},base_url={daemon.url}/v1/completions,num_concurrent=2,max_length=256",
               "--tasks", "twill_choice,twill_generate", "--include_path", str(tmp_path), "--log_samples",
               "--output_path", str(tmp_path / "out")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert "Using remote tokenizer" in done.stdout + done.stderr
    read = {}
    for task in ("twill_choice", "twill_generate"):
        [path] = (tmp_path / "out").rglob(f"samples_{task}_*.jsonl")
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        read[task] = [line["resps"] for line in sorted(lines, key=lambda line: line["doc_id"])]
    return read, daemon


def test_scores_and_texts_are_those_of_a_direct_computation(samples):
    read, daemon = samples
    direct = DirectLlama(MODEL)

    def ids_of(text):
        status, reply = daemon.post("/tokenize", {"prompt": text, "add_special_tokens": False})
        assert status == 200, reply
        return reply["tokens"]

    worst = 0.0
    for doc, resps in zip(DOCS, read["twill_choice"], strict=True):
        context = ids_of(doc["text"])
        for choice, [[score, _]] in zip(doc["choices"], resps, strict=True):
            whole = ids_of(doc["text"] + choice)
            assert whole[:len(context)] == context
            worst = max(worst, abs(float(score) - direct.score(context, whole[len(context):])))
    print(f"largest difference of a choice's score: {worst:.2e}")
    assert worst < 1e-4
    end_id = direct.config["eos_token_id"]
    for doc, [[text]] in zip(DOCS, read["twill_generate"], strict=True):
        ids = ids_of(doc["text"])
        made = direct.greedy(ids, N_NEW, end_id)
        status, reply = daemon.post("/detokenize", {"tokens": ids + made})
        assert status == 200
        before = daemon.post("/detokenize", {"tokens": ids})[1]["prompt"]
        assert text.strip() == reply["prompt"][len(before):].strip()
