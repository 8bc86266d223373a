"""nvcc: which one is taken, and whether it compiles for the wanted GPUs with this machine's C++ compiler."""

import dataclasses
import glob
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from .missing import Missing, capability, version_words

WANTED = (12, 13)  # major versions
INSTALLED = "/usr/local/cuda*/bin/nvcc"
SEEN_IN = "CUDACXX, CUDA_HOME, CUDA_PATH, PATH and /usr/local/cuda*/bin"
PROGRAM = """#include <concepts>
template <std::integral T> __global__ void kernel(T* out) { *out = threadIdx.x; }
int main() { kernel<int><<<1, 1>>>(nullptr); }
"""


@dataclasses.dataclass(frozen=True)
class Nvcc:
    path: str
    version: tuple  # (13, 0, 88)
    named: str = ""  # the variable that names it

    @property
    def words(self) -> str:
        return f"nvcc {version_words(self.version)} ({self.path}{f', of {self.named}' if self.named else ''})"


def named(environ, given: dict):
    """The nvcc that the user names, which is taken or refused; None where no variable names one."""
    for variable, value in (("CMAKE_CUDA_COMPILER", given.get("CMAKE_CUDA_COMPILER")),
                            *((name, environ.get(name)) for name in ("CUDACXX", "CUDA_HOME", "CUDA_PATH"))):
        if not value:
            continue
        folder = variable in ("CUDA_HOME", "CUDA_PATH")
        path = shutil.which(os.path.abspath(f"{value}/bin/nvcc") if folder else value, path=environ.get("PATH"))
        rule = "a folder with bin/nvcc" if folder else "nvcc, by its path or by a name on the PATH"
        advice = "correct it, or leave it out, and the PATH and /usr/local/cuda*/bin are searched"
        if path is None:
            raise Missing(f"{variable} must be {rule}, got \"{value}\", where there is none: {advice}")
        path = os.path.abspath(path)
        version = version_of(path)
        if version is None or version[0] < WANTED[0]:
            found = f"which is {version_words(version)}" if version else "which does not tell its version as nvcc does"
            raise Missing(f"{variable} must name nvcc of CUDA 12 or 13, got \"{value}\", {found}: {advice}")
        return Nvcc(path, version, variable)
    return None


def paths(environ) -> list:
    """Every nvcc that no variable names, in the order in which they are tried."""
    found = [f"{folder}/nvcc" for folder in environ.get("PATH", "").split(":") if folder]
    found += sorted(glob.glob(INSTALLED), key=lambda path: [int(number) for number in re.findall(r"\d+", path)], reverse=True)
    return list(dict.fromkeys(path for path in found if os.path.isfile(path) and os.access(path, os.X_OK)))


def version_of(path: str):
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"release (\d+)\.(\d+)(?:, V\d+\.\d+\.(\d+))?", done.stdout)
    return tuple(int(part) for part in found.groups() if part) if found else None


def choose(environ, given: dict, driver_major=None) -> Nvcc:
    """The one that the user names; else the first nvcc of a wanted version that the driver can run programs of; where there is none, the first of a wanted version."""
    if nvcc := named(environ, given):
        return nvcc
    found = [Nvcc(path, version) for path in paths(environ) if (version := version_of(path))]
    usable = [nvcc for nvcc in found if nvcc.version[0] >= WANTED[0]]
    if not usable:
        seen = "found none" if not found else "found " + ", ".join(nvcc.words for nvcc in found)
        limit = "" if driver_major is None else f"; this machine's driver runs CUDA {driver_major} and older"
        raise Missing(f"nvcc of CUDA 12 or 13 is needed, {seen} in {SEEN_IN}: install the CUDA toolkit "
                      f"(https://developer.nvidia.com/cuda-downloads), or name its folder with CUDA_HOME{limit}")
    return next((nvcc for nvcc in usable if driver_major is None or nvcc.version[0] <= driver_major), usable[0])


def host_compiler(environ, given: dict, before: str, demanded: bool) -> str:
    """The C++ compiler for nvcc, by its path: the user's, the one of an earlier call, or g++. Empty where g++ is not installed yet
    and it is not `demanded`."""
    for variable, value in (("CMAKE_CUDA_HOST_COMPILER", given.get("CMAKE_CUDA_HOST_COMPILER")), ("CUDAHOSTCXX", environ.get("CUDAHOSTCXX"))):
        if value:
            if path := shutil.which(value, path=environ.get("PATH")):
                return os.path.abspath(path)
            raise Missing(f"{variable} must be a C++ compiler, by its path or by a name on the PATH, got \"{value}\", where there is none: "
                          f"install it (apt-get install g++-12), or leave it out, and g++ is taken")
    path = (before and shutil.which(before)) or shutil.which("g++", path=environ.get("PATH"))
    if path is None and demanded:
        raise Missing("nvcc needs a C++ compiler, and g++ is not on the PATH: apt-get install g++, or name another with CUDAHOSTCXX")
    return os.path.abspath(path) if path else ""


def try_out(nvcc: Nvcc, archs: list, host: str, environ) -> None:
    """Compiles a small program for the architectures. nvcc refuses C++ compilers that are newer than itself, and old or new GPUs."""
    with tempfile.TemporaryDirectory() as name:
        source = pathlib.Path(name) / "try.cu"
        source.write_text(PROGRAM)
        command = [nvcc.path, "-std=c++20", "-c", str(source), "-o", f"{name}/try.o"]
        command += [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in archs]
        command += ["-ccbin", host]
        done = subprocess.run(command, capture_output=True, text=True, env={**environ, "LC_ALL": "C"}, check=False)
    if done.returncode == 0:
        return
    said = (done.stdout + done.stderr).strip().splitlines()
    line = next((one for one in said if re.search("error|unsupported", one, re.IGNORECASE)), said[0] if said else "it says nothing")
    if re.search("gpu architecture", line, re.IGNORECASE):
        advice = "install a CUDA that knows this GPU, or leave the architecture out of TWILL_CUDA_ARCH"
    elif re.search("cc1plus|preprocess host compiler|(?:gcc|cc|[+][+])[-0-9]*: (?:not found|No such file)", line):
        advice = f"{host} does not compile C++: install the whole compiler (apt-get install g++), or name another with CUDAHOSTCXX"
    elif re.search("unsupported (?:GNU|clang)|host compiler", line):
        advice = "install an older g++ and name it, as in CUDAHOSTCXX=g++-12"
    else:
        advice = "install the whole toolkit (in NVIDIA's package repositories: cuda-toolkit-12-8, not cuda-nvcc alone)"
    wanted = ", ".join(capability(arch) for arch in archs)
    raise Missing(f"{nvcc.words} does not compile for compute capability {wanted}: {line.strip()}: {advice}")
