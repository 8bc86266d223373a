"""Kokkos with CUDA: an installed one, or a release or clone that is built once into the cache."""

import dataclasses
import hashlib
import http.client
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import tarfile
import tempfile
import urllib.error
import urllib.request

from .missing import Missing, capability, version_words

# The release that twill_kokkos.cmake pins, too. Its hash is what Spack and other recipes have for it.
RELEASE = "4.7.03"
URL = f"https://github.com/kokkos/kokkos/releases/download/{RELEASE}/kokkos-{RELEASE}.tar.gz"
SHA256 = "969e7933b9426219b220f08036e489b3226e6d8cd24eecf2c5b80df8c37443c0"
DEVELOPMENT = 99  # the patch number of trees between releases
# Kokkos' names of architectures. It is built for one, and runs on later ones, too.
ARCHS = {80: "AMPERE80", 86: "AMPERE86", 87: "AMPERE87", 89: "ADA89", 90: "HOPPER90", 100: "BLACKWELL100", 120: "BLACKWELL120"}
ELSE = f"or name an installed Kokkos with -DKokkos_ROOT=DIR, or its unpacked sources with TWILL_KOKKOS_SOURCE=DIR (release {RELEASE})"


def words_of(number: int) -> str:
    return f"{number // 10000}.{number // 100 % 100}.{number % 100:02}"


def number_of(release: str) -> int:
    major, minor, patch = (int(part) for part in release.split("."))
    return 10000 * major + 100 * minor + patch


def demand_version(number: int, cuda: tuple, where: str) -> None:
    """What Kokkos' own list of changes says of CUDA: 4.7.01 and 4.7.02 bring CUDA 13, 4.7.03 and 5.0.2 bring CUDA 13.1."""
    least = 40001
    if cuda >= (13, 0):
        least = 40702
    if cuda >= (13, 1):
        least = 50002 if number >= 50000 else 40703
    if number < least:
        raise Missing(f"Kokkos in {where} must be at least {words_of(least)} for CUDA {version_words(cuda[:2])}, got {words_of(number)}, "
                      f"which does not compile with it: take release {RELEASE}")


@dataclasses.dataclass(frozen=True)
class Sources:
    folder: pathlib.Path
    number: int
    key: str  # what the cache knows them by


def read_sources(folder: pathlib.Path, cuda: tuple) -> Sources:
    """Sources that a user unpacked or cloned. Refuses what would not compile, before minutes go into it."""
    try:
        text = (folder / "CMakeLists.txt").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    parts = [re.search(rf"set\(Kokkos_VERSION_{part} (\d+)\)", text) for part in ("MAJOR", "MINOR", "PATCH")]
    if not all(parts) or not (folder / "bin/nvcc_wrapper").is_file():
        raise Missing(f"TWILL_KOKKOS_SOURCE must be a folder of Kokkos' sources, with CMakeLists.txt and bin/nvcc_wrapper, got {folder}")
    number = number_of(".".join(part[1] for part in parts))
    files = sorted(path for top in ("CMakeLists.txt", "bin", "cmake", "core/src", "containers/src", "algorithms/src", "simd/src", "tpls")
                   for path in ([folder / top] if (folder / top).is_file() else (folder / top).glob("**/*")) if path.is_file())
    digest, knows_13 = hashlib.sha256(), False
    for path in files:
        data = path.read_bytes()
        knows_13 = knows_13 or (b"13000" in data and "/Cuda/" in path.as_posix())
        digest.update(f"{path.relative_to(folder)} {len(data)}\n".encode() + data)
    # A tree between releases has no version that says what it knows: its sources do.
    if number % 100 != DEVELOPMENT or (cuda >= (13, 0) and number < 50000 and not knows_13):
        demand_version(number, cuda, str(folder))
    return Sources(folder, number, f"{words_of(number)}-{digest.hexdigest()[:12]}")


def demand_installed(prefix: pathlib.Path, cuda: tuple, arch: int) -> None:
    """An installed Kokkos: it has CUDA, its version knows the toolkit, and it is not for later GPUs than `arch`."""
    try:
        text = (prefix / "include/KokkosCore_config.h").read_text(encoding="utf-8", errors="replace")
    except OSError:
        raise Missing(f"Kokkos_ROOT must be a folder with include/KokkosCore_config.h of an installed Kokkos, got {prefix}") from None
    number = re.search(r"^#define KOKKOS_VERSION (\d+)", text, re.MULTILINE)
    if not re.search(r"^#define KOKKOS_ENABLE_CUDA\b", text, re.MULTILINE) or not number:
        raise Missing(f"Kokkos in {prefix} must have CUDA, and has none: install one that was built with -DKokkos_ENABLE_CUDA=ON, "
                      f"or name no Kokkos_ROOT, and one is built")
    if int(number[1]) % 100 != DEVELOPMENT:
        demand_version(int(number[1]), cuda, str(prefix))
    built = [int(found) for found in re.findall(r"^#define KOKKOS_ARCH_(?:AMPERE|ADA|HOPPER|BLACKWELL|TURING|VOLTA)(\d+)", text, re.MULTILINE)]
    if built and min(built) > arch:
        raise Missing(f"Kokkos in {prefix} is for GPUs of compute capability {capability(min(built))} or later, and cannot run on "
                      f"{capability(arch)}: build one with -DKokkos_ARCH_{arch_name(arch, int(number[1]))}=ON, or name no Kokkos_ROOT, and one is built")


def arch_name(arch: int, number: int) -> str:
    """The newest architecture that this Kokkos knows and that the GPU runs. Blackwell came with 4.6.01."""
    return ARCHS[max(one for one in ARCHS if one <= arch and (one < 100 or number >= 40601))]


def has_certificates() -> bool:
    """Whether this machine can tell servers apart: a fresh Debian has no ca-certificates."""
    found = ssl.get_default_verify_paths()
    return bool(found.cafile or (found.capath and os.listdir(found.capath)))


def fetch(cache: pathlib.Path) -> pathlib.Path:
    """The archive of the pinned release, whose hash is checked each time."""
    archive = cache / f"kokkos-{RELEASE}.tar.gz"
    if not archive.exists():
        descriptor, part = tempfile.mkstemp(dir=cache)
        try:
            with urllib.request.urlopen(URL, timeout=60) as reply, open(descriptor, "wb") as file:
                shutil.copyfileobj(reply, file)
            os.replace(part, archive)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise Missing(f"Kokkos {RELEASE} could not be fetched from {URL}: {reason}: fetch it where there is a network, {ELSE}") from None
        finally:
            pathlib.Path(part).unlink(missing_ok=True)
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != SHA256:
        archive.unlink()
        raise Missing(f"the SHA-256 of {URL} must be {SHA256}, got {found}: what came is not that release; try again, {ELSE}")
    return archive


def unpack(archive: pathlib.Path, folder: str) -> pathlib.Path:
    with tarfile.open(archive) as packed:
        packed.extractall(folder)  # the archive has the known hash
    return next(pathlib.Path(folder).iterdir())


def build(sources: Sources, prefix: pathlib.Path, nvcc, host: str, arch: int, jobs: int, log: pathlib.Path, environ) -> None:
    """Compiles and installs Kokkos' libraries. The prefix appears whole, or not at all."""
    # nvcc_wrapper takes the first nvcc of PATH, and CMake the toolkit that these variables name before it.
    environ = {name: value for name, value in environ.items() if name not in ("CUDA_ROOT", "CUDA_PATH", "CUDA_HOME", "CUDACXX")}
    environ["PATH"] = f"{os.path.dirname(nvcc.path)}:{environ['PATH']}"
    environ["NVCC_WRAPPER_DEFAULT_COMPILER"] = host
    environ["LC_ALL"] = "C"  # the log's first error is looked for
    work = pathlib.Path(tempfile.mkdtemp(dir=prefix.parent, prefix="kokkos-build-"))
    steps = (["cmake", "-S", str(sources.folder), "-B", str(work / "build"), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
              f"-DCMAKE_CXX_COMPILER={sources.folder}/bin/nvcc_wrapper", "-DCMAKE_CXX_STANDARD=20", "-DCMAKE_POSITION_INDEPENDENT_CODE=ON",
              "-DKokkos_ENABLE_CUDA=ON", "-DKokkos_ENABLE_SERIAL=ON", f"-DKokkos_ARCH_{arch_name(arch, sources.number)}=ON",
              f"-DCMAKE_INSTALL_PREFIX={work}/install", "-DCMAKE_INSTALL_LIBDIR=lib"],
             ["cmake", "--build", str(work / "build"), "--parallel", str(jobs), "--target", "install"])
    try:
        with log.open("w", encoding="utf-8") as output:
            for step in steps:
                if subprocess.run(step, stdout=output, stderr=subprocess.STDOUT, env=environ, check=False).returncode != 0:
                    output.flush()
                    error = next((line for line in log.read_text(encoding="utf-8", errors="replace").splitlines()
                                  if re.search(r"\berror\b", line, re.IGNORECASE)), "no line of it has the word error")
                    raise Missing(f"Kokkos {words_of(sources.number)} did not build: {error.strip()}: the log is {log}")
        try:
            os.replace(work / "install", prefix)
        except OSError:
            if not prefix.exists():
                raise
            # Another call has built the same meanwhile.
    finally:
        shutil.rmtree(work, ignore_errors=True)


def built_with(nvcc, host: str, environ) -> str:
    """How the name of a Kokkos in the cache ends: what tells builds of different compilers apart."""
    command = [host or "g++", "-dumpfullversion", "-dumpversion"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=dict(environ), check=False)
    except OSError:
        done = None
    return f"-cuda{version_words(nvcc.version)}-cxx{done.stdout.strip() if done else ''}"


def provide(source: str, nvcc, host: str, arch: int, cache: pathlib.Path, environ, say, jobs: int, only_look: bool = False) -> pathlib.Path:
    """The prefix of a Kokkos that is built for this nvcc, architecture and compiler from the folder `source`, else from the pinned
    release, with `jobs` compilers at a time. With `only_look` it builds nothing, and the prefix may not exist."""
    cuda = nvcc.version
    sources = read_sources(pathlib.Path(source).absolute(), cuda) if source else None
    number = sources.number if sources else number_of(RELEASE)
    name = f"kokkos-{sources.key if sources else RELEASE}-{arch_name(arch, number).lower()}{built_with(nvcc, host, environ)}"
    prefix = cache / name
    if prefix.exists():
        return prefix
    if only_look and not has_certificates():
        return prefix  # tools/build installs them, and then looks again
    if sources is None:
        say(f"fetching Kokkos {RELEASE}")
        archive = fetch(cache)
    if only_look:
        return prefix
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        if sources is None:
            sources = read_sources(unpack(archive, folder), cuda)
        say(f"building Kokkos {words_of(sources.number)} for compute capability {capability(arch)} (once, some minutes)")
        build(sources, prefix, nvcc, host, arch, jobs, cache / "kokkos-cuda.log", environ)
    return prefix
