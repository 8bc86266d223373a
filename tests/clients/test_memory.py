"""Memory that is reserved, touched and resident: all places that report it show the same figures in the same words."""

import json
import pathlib
import re
import subprocess

from conftest import BIN
from test_admin import ask

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
TINY = GOLDEN / "llama-tiny-fp16"
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
SIZE = r"([\d.]+) (B|[KMG]iB)"
RESERVED = rf"{SIZE} reserved \(weights {SIZE}, KV {SIZE}, steps {SIZE}\), {SIZE} of it touched"
RESIDENT = rf"{SIZE} resident \(models {SIZE}, files {SIZE}, the rest {SIZE}\)"


def sizes(match):
    parts = match.groups()
    return [float(number) * UNITS[unit] for number, unit in zip(parts[::2], parts[1::2])]


def close(a, b, of):
    """Whether `a` and `b` agree within the rounding of a sum whose parts are printed with three digits."""
    return abs(a - b) <= 0.02 * of + (2 << 20)


def twill(*arguments):
    done = subprocess.run([BIN / "twill", *arguments], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_reserved_touched_and_resident_memory_agree_everywhere(start_daemon, tmp_path):
    door = tmp_path / "admin.sock"
    daemon = start_daemon("kv.memory=2GiB", "scheduler.max_running=8192", f"server.admin_listen=unix:{door}", model=str(TINY))
    assert daemon.post("/v1/completions", {"prompt": "Hello", "max_tokens": 4, "ignore_eos": True})[0] == 200
    metric = {name: daemon.metric(f"twill_{name}") for name in (
        "device_memory_reserved_bytes", "device_memory_touched_bytes", "device_weights_bytes", "device_kv_bytes",
        "process_resident_memory_bytes", "process_device_memory_bytes", "process_mapped_file_bytes")}
    reserved, touched, weights, kv, resident, device, files = metric.values()
    # Parts add up to no more than their sums, so that nothing is counted twice.
    assert 0 < weights <= touched < reserved / 2, metric
    assert kv > 100 << 20 and weights + kv < reserved
    assert device == touched and device + files <= resident
    assert abs(resident - daemon.memory_bytes()) < 16 << 20

    # The log line at the start, `status`, `top`, `models` and the administrators' state show the same.
    log = re.search(rf"{SIZE} of device memory are reserved \(weights {SIZE}, KV {SIZE}, steps {SIZE}\) and {SIZE} of them touched",
                    daemon.text_of_log())
    texts = {"log": log}
    for command in (["status"], ["models"]):
        texts[command[0]] = re.search(RESERVED, twill(*command, "--url", daemon.url))
    for where, match in texts.items():
        assert match, where
        told = sizes(match)
        assert close(told[0], reserved, reserved) and close(told[1], weights, weights) and close(told[2], kv, kv), (where, told)
        assert close(told[1] + told[2] + told[3], told[0], told[0]), (where, told)
        assert told[1] <= told[4] * 1.01, (where, told)
        # Before the first request only the weights were touched.
        assert close(told[4], touched, touched) if where != "log" else told[4] <= touched * 1.01, (where, told)
    for command in (["status"], ["top", "--once", "--interval", "0.1"]):
        said = twill(*command, "--url", daemon.url)
        whole, models, mapped, rest = sizes(re.search(RESIDENT, said))
        assert close(models + mapped + rest, whole, whole) and close(models, touched, touched), said
        first = re.search(rf"{SIZE} reserved.* {SIZE} of it touched", said)
        assert close(sizes(first)[0], reserved, reserved), said
    state = json.loads(ask(door, "/admin/state")[1])
    one = state["models"][0]
    assert (one["device_memory_reserved_bytes"], one["device_weights_bytes"], one["device_kv_bytes"]) == (reserved, weights, kv)
    assert one["device_memory_touched_bytes"] >= touched and state["process"]["device_memory_bytes"] >= touched
    assert "on the device" not in twill("status", "--url", daemon.url)


def test_touched_memory_grows_with_the_tokens_that_are_kept(start_daemon):
    daemon = start_daemon("kv.memory=1GiB", "scheduler.max_running=4096", model=str(TINY))
    before = daemon.metric("twill_device_memory_touched_bytes")
    for n in range(40):
        daemon.complete(f"{n} " + "many words " * 60, max_tokens=64, ignore_eos=True)
    after = daemon.metric("twill_device_memory_touched_bytes")
    assert after > before
    assert daemon.metric("twill_device_memory_reserved_bytes") > after
