"""schemathesis against /openapi.json: no reply of 5xx, none with a status or a body that is not documented."""

import os
import subprocess
import sys
import tempfile

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
SEED = 20261128
SECONDS = 300


def test_what_the_document_says_of_replies_holds(start_daemon):
    daemon = start_daemon(model="dummy:null")
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            [sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()", "run",
             daemon.url + "/openapi.json", "--seed", str(SEED), "--checks", CHECKS, "--mode", "all",
             "--max-examples", "150", "--max-time", str(SECONDS), "--request-timeout", "20", "--no-color",
             "--generation-database", "none"],
            cwd=folder, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True,
            timeout=SECONDS + 240)
    assert run.returncode == 0, run.stdout[-8000:]
    assert daemon.request("GET", "/health")[0] == 200
    daemon.check_ledger()
