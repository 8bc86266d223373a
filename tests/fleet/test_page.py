"""Runs the commands of config/examples/fleet/README.md as they are written, with other ports."""

import os
import random
import re
import shutil
import signal
import socket
import subprocess

from example import EXAMPLE, put_commands
from workers import clients, free_port


def free_tens() -> str:
    """Four digits which, followed by 1, 2 or 3, are free ports."""
    while True:
        tens = random.randrange(2000, 3200)
        try:
            for number in (1, 2, 3):
                with socket.create_server(("127.0.0.1", 10 * tens + number)):
                    pass
            return str(tens)
        except OSError:
            pass


def test_the_commands_of_the_page(tmp_path):
    folder = tmp_path / "fleet"
    shutil.copytree(EXAMPLE, folder)
    script = "".join(re.findall(r"```sh\n(.*?)```", (EXAMPLE / "README.md").read_text(), re.DOTALL))
    listen, router = free_port(), free_port()
    script = script.replace(":8443", f":{listen}").replace("sh vllm-router.sh", f"sh vllm-router.sh --prometheus-port {free_port()}")
    environment = {**os.environ, "FLEET_LISTEN": f":{listen}", "FLEET_ROUTER": f"127.0.0.1:{router}"}
    for written, variable in (("800", "FLEET_W{}"), ("810", "FLEET_W{}_AGENT"), ("820", "FLEET_W{}_EVENTS")):
        tens = free_tens()
        assert f"{written}$" in script
        script = script.replace(f"{written}$", f"{tens}$")
        for number in (1, 2, 3):
            address = f"{tens}{number}" if "AGENT" in variable else f"127.0.0.1:{tens}{number}"
            environment[variable.format(number)] = address
    put_commands(tmp_path)
    script = script.replace("/usr/sbin/haproxy", "haproxy")
    environment["PATH"] = f"{tmp_path}:{clients.BIN}:{environment['PATH']}"
    if model := os.environ.get("TWILL_DEFAULT_MODEL"):
        script = script.replace("twilld --config", f"twilld --model {model} --config")
    done = subprocess.Popen(["bash", "-e"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            cwd=folder, env=environment, start_new_session=True)
    try:
        output, _ = done.communicate("trap 'kill $(jobs -p); wait' EXIT\n" + script, timeout=120)
    finally:
        try:
            os.killpg(done.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    assert done.returncode == 0, output
    assert '"finish_reason"' in output and '"model":"assistant"' in output, output
    assert re.search(r"(?m)^w3 +ready .*\nall +3 ready", output), output
    assert [line for line in output.splitlines() if line.endswith("is back")] == [f"w{number} is back" for number in (1, 2, 3)]
    log = (folder / "log-of-haproxy").read_text()
    assert "router/router" in log.split('"POST ')[0].splitlines()[-1], log
