"""nvcc: which one is taken, and whether it compiles for the wanted GPUs with this machine's C++ compiler."""

import dataclasses
import glob
import os
import pathlib
import re
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

    @property
    def words(self) -> str:
        return f"nvcc {version_words(self.version)} ({self.path})"


def paths(environ) -> list:
    """Every nvcc, in the order in which they are tried: those that a variable names come first."""
    found = [environ.get("CUDACXX", "")]
    found += [f"{environ[name]}/bin/nvcc" for name in ("CUDA_HOME", "CUDA_PATH") if environ.get(name)]
    found += [f"{folder}/nvcc" for folder in environ.get("PATH", "").split(":") if folder]
    found += sorted(glob.glob(INSTALLED), key=lambda path: [int(number) for number in re.findall(r"\d+", path)], reverse=True)
    return list(dict.fromkeys(path for path in found if os.path.isfile(path) and os.access(path, os.X_OK)))


def version_of(path: str):
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"release (\d+)\.(\d+)(?:, V\d+\.\d+\.(\d+))?", done.stdout)
    return tuple(int(part) for part in found.groups() if part) if found else None


def choose(environ, driver_major=None) -> Nvcc:
    """The first nvcc of a wanted version that the driver can run programs of; where there is none, the first of a wanted version."""
    found = [Nvcc(path, version) for path in paths(environ) if (version := version_of(path))]
    usable = [nvcc for nvcc in found if nvcc.version[0] >= WANTED[0]]
    if not usable:
        seen = "found none" if not found else "found " + ", ".join(nvcc.words for nvcc in found)
        limit = "" if driver_major is None else f"; this machine's driver runs CUDA {driver_major} and older"
        raise Missing(f"nvcc of CUDA 12 or 13 is needed, {seen} in {SEEN_IN}: install the CUDA toolkit "
                      f"(https://developer.nvidia.com/cuda-downloads), or name its folder with CUDA_HOME{limit}")
    return next((nvcc for nvcc in usable if driver_major is None or nvcc.version[0] <= driver_major), usable[0])


def try_out(nvcc: Nvcc, archs: list, environ) -> None:
    """Compiles a small program for the architectures. nvcc refuses C++ compilers that are newer than itself, and old or new GPUs."""
    with tempfile.TemporaryDirectory() as name:
        source = pathlib.Path(name) / "try.cu"
        source.write_text(PROGRAM)
        command = [nvcc.path, "-std=c++20", "-c", str(source), "-o", f"{name}/try.o"]
        command += [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in archs]
        if environ.get("CUDAHOSTCXX"):
            command += ["-ccbin", environ["CUDAHOSTCXX"]]
        done = subprocess.run(command, capture_output=True, text=True, env=dict(environ), check=False)
    if done.returncode == 0:
        return
    said = (done.stdout + done.stderr).strip().splitlines()
    line = next((one for one in said if re.search("error|unsupported", one, re.IGNORECASE)), said[0] if said else "it says nothing")
    if re.search("gpu architecture", line, re.IGNORECASE):
        advice = "install a CUDA that knows this GPU, or leave the architecture out of TWILL_CUDA_ARCH"
    elif re.search("unsupported (?:GNU|clang)|host compiler", line):
        advice = "install an older g++ and name it, as in CUDAHOSTCXX=g++-12"
    else:
        advice = "install the whole toolkit (in NVIDIA's package repositories: cuda-toolkit-12-8, not cuda-nvcc alone)"
    wanted = ", ".join(capability(arch) for arch in archs)
    raise Missing(f"{nvcc.words} does not compile for compute capability {wanted}: {line.strip()}: {advice}")
