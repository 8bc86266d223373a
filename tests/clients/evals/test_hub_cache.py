"""huggingface_hub and twill use one cache: each finds what the other has fetched, from the same server."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/tools"))
import hub_server  # noqa: E402

TWILL = pathlib.Path(os.environ["TWILL_BIN"]) / "twill"
GOLDEN = ROOT / "tests/golden"


@pytest.fixture
def hub():
    server = hub_server.Hub()
    for name in ("llama-tiny-fp16", "baichuan2-13b-tiny-bf16"):
        folder = GOLDEN / name
        server.repos["org/" + name] = hub_server.Repo(
            {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()})
    gguf = (GOLDEN / "llama3-style-tied-bf16/model.gguf").read_bytes()
    server.repos["org/gguf"] = hub_server.Repo({"m-Q8_0.gguf": gguf, "m-Q4_K_M.gguf": gguf + b"x"})
    yield server
    server.close()


@pytest.fixture
def run(hub, tmp_path):
    def run(command, **environment):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={
            **os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path), "HF_HUB_DISABLE_XET": "1", **environment})
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()
    return run


def library(call):
    """A program that prints what a function of the library returns; its constants are read when it is imported."""
    return [sys.executable, "-c", f"import huggingface_hub; print(huggingface_hub.{call})"]


@pytest.mark.parametrize("name", ["llama-tiny-fp16", "baichuan2-13b-tiny-bf16"])
def test_the_library_finds_what_twill_fetched(hub, run, name):
    path = run([TWILL, "models", "pull", "org/" + name])
    assert run(library(f"snapshot_download('org/{name}', local_files_only=True)")) == path
    hub.forget()
    assert run(library(f"hf_hub_download('org/{name}', 'config.json')")) == path + "/config.json"
    assert hub.paths("store") == []
    scanned = run(library("scan_cache_dir()"))
    assert f"repo_id='org/{name}'" in scanned and "warnings=[]" in scanned, scanned


def test_twill_finds_what_the_library_fetched(hub, run):
    for call, source in (("snapshot_download('org/llama-tiny-fp16')", "org/llama-tiny-fp16"),
                         ("hf_hub_download('org/gguf', 'm-Q8_0.gguf')", "org/gguf:Q8_0")):
        path = run(library(call))
        hub.forget()
        assert run([TWILL, "models", "pull", source]) == path
        assert hub.paths("store") == [] and len(hub.paths("hub")) == 1
        assert run([TWILL, "models", "pull", source], HF_HUB_OFFLINE="1") == path
