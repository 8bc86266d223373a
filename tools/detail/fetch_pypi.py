#!/usr/bin/env python3
"""Fetches one file of a PyPI release, checked against its SHA-256: NAME VERSION sdist|wheel HASH DIR.

pip does the fetching, with the user's own settings (index, proxy, certificates).
"""

import hashlib
import pathlib
import subprocess
import sys
import tempfile


def sha256(path: pathlib.Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def main() -> int:
    name, version, kind, wanted, folder = sys.argv[1:]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as requirements:
        requirements.write(f"{name}=={version} --hash=sha256:{wanted}\n")
        requirements.flush()
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes",
                   "-d", folder, "-r", requirements.name]
        command += ["--no-binary" if kind == "sdist" else "--only-binary", name]
        done = subprocess.run(command, capture_output=True, text=True)
    files = [p for p in pathlib.Path(folder).iterdir() if p.is_file() and sha256(p) == wanted]
    if not files:
        print(f"{name} {version}: pip download failed:\n{done.stdout}{done.stderr}", file=sys.stderr)
        return 1
    print(files[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
