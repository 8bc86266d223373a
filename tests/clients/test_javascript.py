"""The official openai package for JavaScript, unmodified: it comes from npm by the lockfile of javascript/."""

import hashlib
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from stored_streams import RestartableDaemon

HERE = pathlib.Path(__file__).resolve().parent / "javascript"


@pytest.fixture(scope="module")
def openai_index():
    if not (shutil.which("npm") and shutil.which("node")):
        pytest.skip("npm and node are not installed")
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "twill"
    key = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()[:12]
    folder = cache / f"clients-javascript-{key}"
    if not (folder / ".done").exists():
        shutil.copytree(HERE, folder, dirs_exist_ok=True)
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True)
        (folder / ".done").touch()
    return folder / "node_modules" / "openai" / "index.mjs"


def test_stored_responses_over_a_restart(openai_index, tmp_path):
    def script(*arguments):
        done = subprocess.run(["node", HERE / "stored_responses.mjs", openai_index, f"http://127.0.0.1:{daemon.port}",
                               *arguments], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    with RestartableDaemon(tmp_path, "kv.memory=256MiB") as daemon:
        state = script("before")
        daemon.restart(signal.SIGKILL)
        script("after", state)
