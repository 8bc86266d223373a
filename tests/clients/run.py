#!/usr/bin/env python3
"""Runs twilld against real clients: openai, LangChain, instructor, curl, raw sockets, and with --long lm-eval, schemathesis and frameworks.

    run.py --bin DIR [--long] [pytest arguments]

Installs the pinned clients of each requirements.txt into the user's cache once, then hands over to pytest: the tests
of this folder with its clients, then those of agents/, evals/, apps/ and openapi/ with theirs. With pytest arguments that name files,
only the suites of those files run.
"""

import argparse
import hashlib
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SUITES = (HERE, HERE / "agents", HERE / "evals", HERE / "apps", HERE / "openapi")
EVALS = SUITES[2]
LONG = SUITES[2:]  # large, and pinned for one Python


def clients_folder(suite: pathlib.Path) -> pathlib.Path:
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "twill"
    requirements = suite / "requirements.txt"
    key = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    folder = cache / f"clients-{sys.version_info[0]}.{sys.version_info[1]}-{key}"
    if not (folder / ".done").exists():
        print("installing the pinned clients (once)", flush=True)
        # A requirements.txt names all packages with their dependencies.
        # Some packages that lm-eval needs have no wheels.
        binary = [] if suite == EVALS else ["--only-binary=:all:"]
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target", folder,
                        "--require-hashes", "--no-deps", *binary, "-r", requirements], check=True, stderr=subprocess.DEVNULL)
        (folder / ".done").touch()
    return folder


def suite_of(path: str) -> pathlib.Path:
    parents = pathlib.Path(path.partition("::")[0]).resolve().parents
    return next((suite for suite in SUITES[1:] if suite in parents), HERE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, help="folder with twilld and twill")
    parser.add_argument("--long", action="store_true", help="also the tests that take minutes")
    arguments, rest = parser.parse_known_args()
    files = [one for one in rest if one.partition("::")[0].endswith(".py")]
    options = [one for one in rest if one not in files]
    environment = dict(os.environ)
    environment["TWILL_BIN"] = str(pathlib.Path(arguments.bin).resolve())
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    if arguments.long:
        environment["TWILL_LONG"] = "1"
    worst = 0
    for suite in SUITES:
        targets = [one for one in files if suite_of(one) == suite] if files else [suite]
        if not targets:
            continue
        if suite in LONG and not files and not (arguments.long and sys.version_info[:2] == (3, 11)):
            print(f"not run: {suite.name}/, which wants --long and CPython 3.11", flush=True)
            continue
        environment["PYTHONPATH"] = str(clients_folder(suite))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", HERE, "--confcutdir",
                   HERE, *targets, *options]
        if suite == HERE:
            command += [f"--ignore={other}" for other in SUITES[1:]]
        worst = max(worst, subprocess.run(command, env=environment).returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main())
