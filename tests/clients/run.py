#!/usr/bin/env python3
"""Runs twilld against real clients: openai, websockets, curl, raw sockets. run.py --bin DIR [pytest arguments]

Installs the pinned clients of requirements.txt into the user's cache once, then hands over to pytest.
"""

import argparse
import hashlib
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def clients_folder() -> pathlib.Path:
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "twill"
    requirements = HERE / "requirements.txt"
    key = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    folder = cache / f"clients-{sys.version_info[0]}.{sys.version_info[1]}-{key}"
    if not (folder / ".done").exists():
        print("installing the pinned clients (once)", flush=True)
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target", folder,
                        "--require-hashes", "--only-binary=:all:", "-r", requirements],
                       check=True, stderr=subprocess.DEVNULL)
        (folder / ".done").touch()
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, help="folder with twilld and twill")
    arguments, rest = parser.parse_known_args()
    environment = dict(os.environ)
    environment["PYTHONPATH"] = str(clients_folder())
    environment["TWILL_BIN"] = str(pathlib.Path(arguments.bin).resolve())
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    return subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", HERE, *rest],
                          env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
