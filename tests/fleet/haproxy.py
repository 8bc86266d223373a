"""Finds Debian's HAProxy: the installed one, else the program of the package, unpacked into the user's cache. The
package itself is not installed, since it would start a service."""

import os
import pathlib
import shutil
import subprocess
import tempfile

SUBFOLDERS = ("usr/lib", "lib")


def find_haproxy() -> tuple:
    """The program, and the folder of libraries that it needs beside those of the system. Raises FileNotFoundError, which
    says why there is no program."""
    if there := shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin"):
        return there, ""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "twill/haproxy"
    if fault_of(cache):
        shutil.rmtree(cache, ignore_errors=True)
        fetch(cache)
        if fault := fault_of(cache):
            raise FileNotFoundError("haproxy does not run from its packages: " + fault)
    return str(program_in(cache)), libraries_in(cache)


def program_in(cache: pathlib.Path) -> pathlib.Path:
    return cache / "usr/sbin/haproxy"


def libraries_in(cache: pathlib.Path) -> str:
    return ":".join(sorted({str(one.parent) for below in SUBFOLDERS for one in (cache / below).rglob("*.so*")}))


def fault_of(cache: pathlib.Path) -> str:
    """Why the program in the cache does not run, such as a missing library; empty if it runs."""
    if not program_in(cache).exists():
        return "it is not there"
    done = subprocess.run([program_in(cache), "-v"], env={**os.environ, "LD_LIBRARY_PATH": libraries_in(cache)}, capture_output=True,
                          text=True)
    return "" if done.returncode == 0 else done.stderr[-500:] or f"status {done.returncode}"


def fetch(into: pathlib.Path):
    if not shutil.which("apt-get"):
        raise FileNotFoundError("haproxy is missing, and there is no apt-get: install HAProxy 2.6 or newer")
    missing = packages()
    if not missing and os.geteuid() == 0:
        subprocess.run(["apt-get", "update", "-qq"], check=True, capture_output=True)
        missing = packages()
    if not missing:
        raise FileNotFoundError("haproxy is missing, and apt-get does not know it: apt-get update, or apt-get install haproxy")
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into.parent) as work:
        try:
            subprocess.run(["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=", *missing], cwd=work, check=True, capture_output=True)
        except subprocess.CalledProcessError as fault:
            raise FileNotFoundError("haproxy is missing, and could not be downloaded: " + fault.stderr.decode()[-500:]) from fault
        root = pathlib.Path(work) / "root"
        for package in pathlib.Path(work).glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", package, root], check=True)
        root.rename(into)


def packages() -> list:
    """The packages of haproxy and of its missing dependencies: those that apt would install. (The list of what apt would
    fetch lacks packages that it has already fetched.)"""
    lines = subprocess.run(["apt-get", "install", "--simulate", "-qq", "--no-install-recommends", "haproxy"], capture_output=True,
                           text=True, env={**os.environ, "LC_ALL": "C"}).stdout.splitlines()
    return [line.split()[1] for line in lines if line.startswith("Inst ")]
