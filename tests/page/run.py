#!/usr/bin/env python3
"""Drives the pages of a running twilld with headless Chromium. run.py --bin DIR [pytest arguments]

Takes the pinned packages of tests/clients and the pinned axe-core of axe/ (fetched into the user's cache once). Ends with 77
where there is no Chromium: apt-get install chromium. TWILL_SCREENSHOTS names a folder for screenshots.
"""

import argparse
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))
import run as clients  # noqa: E402


def axe_file() -> pathlib.Path:
    """axe-core, by npm from the lockfile with its hash; into the cache that holds the clients."""
    lock = HERE / "axe" / "package-lock.json"
    folder = clients.clients_folder(clients.HERE).parent / f"axe-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not script.exists():
        shutil.copytree(HERE / "axe", folder, dirs_exist_ok=True)
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True)
    return script


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, help="folder with twilld")
    arguments, rest = parser.parse_known_args()
    if not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        print("page_browser needs Chromium: apt-get install chromium")
        return 77
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join([str(clients.clients_folder(clients.HERE)), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment["TWILL_BIN"] = str(pathlib.Path(arguments.bin).resolve())
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    if shutil.which("npm"):
        environment["TWILL_AXE"] = str(axe_file())
    return subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", HERE / "page_test.py",
                           HERE / "stored_test.py", HERE / "dashboard_test.py", HERE / "report_test.py", *rest],
                          env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
