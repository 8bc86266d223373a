#!/usr/bin/env python3
"""What tools/build cuda does before CMake: finds nvcc, the GPUs' architectures and Kokkos, which it builds where there is none.

    prepare_cuda.py [--here] [--check] [--jobs=N] BUILD_FOLDER [-DNAME=VALUE ...]

Standard output gets, one a line, what CMake is to do with BUILD_FOLDER (keep: nothing, again: configure, fresh: forget its cache and
configure) and CMake's options. Environment: TWILL_CUDA_ARCH, TWILL_KOKKOS_SOURCE, Kokkos_ROOT, CUDACXX, CUDA_HOME, CUDA_PATH,
CUDAHOSTCXX, PATH, XDG_CACHE_HOME and HOME. --here fails where this machine could not run what is built. --check fetches Kokkos but
does not build it, and says nothing else where nothing is missing. Kokkos is built by N compilers at a time (2). A fault is one line,
the last; exit status 1.
"""

import os
import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cuda_setup import cards, kokkos, toolkit  # noqa: E402
from cuda_setup.missing import Missing, capability  # noqa: E402

ALL = "80-real;86-real;89-real;90"  # what twill is compiled for to be given to others
COMPILED = (80, 86, 89, 90)         # what tools/check-cuda compiles and reads
OWN = ("TWILL_CUDA_ARCH", "CMAKE_CUDA_ARCHITECTURES", "Kokkos_ROOT", "CMAKE_CUDA_COMPILER", "CMAKE_CUDA_HOST_COMPILER")


def say(text: str) -> None:
    print("twill:", " ".join(text.split()), file=sys.stderr, flush=True)  # one line, whatever a variable holds


def architectures(text: str) -> str:
    """CMake's list for what a user wrote: 80, 8.6, sm_90, `80,86`, or all."""
    if text.strip().lower() == "all":
        return ALL
    found = []
    for word in re.split(r"[,;\s]+", text.strip()):
        part = re.fullmatch(r"(?:sm_|compute_)?(?:(\d{2,3})|(\d{1,2})\.(\d))(-real|-virtual)?", word, re.ASCII)
        number = 0 if part is None else int(part[1]) if part[1] else 10 * int(part[2]) + int(part[3])
        if number < cards.OLDEST:
            raise Missing(f"TWILL_CUDA_ARCH must be `all` or compute capabilities from {cards.OLDEST}, such as 80 or 80,86, got \"{text}\"")
        found.append(f"{number}{part[4] or '-real'}")
    return ";".join(dict.fromkeys(found))


def numbers(archs: str) -> list:
    return sorted({int(re.match(r"\d+", one)[0]) for one in archs.split(";")})


def runs_on(archs: str, arch: int) -> bool:
    """Whether kernels for `archs` run on a GPU: machine code within a major version, PTX on every later GPU."""
    for one in archs.split(";"):
        number = int(re.match(r"\d+", one)[0])
        if (not one.endswith("-virtual") and number // 10 == arch // 10 and number <= arch) or (not one.endswith("-real") and number <= arch):
            return True
    return False


def cached(build: pathlib.Path) -> dict:
    """CMake's variables of an earlier configuration; empty where there is none."""
    try:
        text = (build / "CMakeCache.txt").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return dict(re.findall(r"^([A-Za-z_]\w*):\w+=(.*)$", text, re.MULTILINE))


def choose_architectures(wanted: str, before: str, machine: cards.Machine, remark) -> str:
    if wanted:
        return architectures(wanted)
    if re.fullmatch(r"(?:\d{2,3}[a-z]?(?:-real|-virtual)?;?)+", before, re.ASCII) and all(runs_on(before, card.arch) for card in machine.usable):
        return before
    if machine.usable:
        for card in set(machine.cards) - set(machine.usable):
            remark(f"left out: {card.words}, which is older than {capability(cards.OLDEST)}")
        return architectures(",".join(str(arch) for arch in sorted({card.arch for card in machine.usable})))
    raise Missing(f"{machine.fault or cards.too_old(machine)}: to build for the GPU of another machine, name its compute capability, as in "
                  f"TWILL_CUDA_ARCH=80 (80: A100, 86: RTX 30, 89: RTX 40 and L4, 90: H100 and H200; 80,86: both; all)")


def earlier_kokkos(root: str, cache: pathlib.Path, nvcc, host: str, arch: int, environ, remark) -> str:
    """The Kokkos of an earlier call, a user's own or a built one, while it still fits; empty where there is none."""
    if not root:
        return ""
    if pathlib.Path(root).parent == cache:
        # Built for one architecture: on a later one its own kernels would be compiled by the driver at each start.
        number = kokkos.number_of(re.search(r"(\d+\.\d+\.\d+)", pathlib.Path(root).name)[1])
        if not root.endswith(f"-{kokkos.arch_name(arch, number).lower()}{kokkos.built_with(nvcc, host, environ)}"):
            return ""
    try:
        kokkos.demand_installed(pathlib.Path(root), nvcc.version, arch)
    except Missing as missing:
        remark(f"not taken again: {missing}")
        return ""
    return root


def prepare(build: pathlib.Path, given: dict, here: bool, check: bool, jobs: int, environ, remark) -> list:
    """What main() prints. `remark` takes each line for the user but those of what takes time, which are said at once."""
    before = cached(build)
    machine = cards.ask(environ)
    if here:
        cards.demand_usable(machine)
    nvcc = toolkit.choose(environ, given, machine.cuda[0] if machine.cuda else None)
    if nvcc.version[0] > toolkit.WANTED[-1]:
        remark(f"{nvcc.words} is newer than CUDA {toolkit.WANTED[-1]}, the newest that twill knows")
    try:
        cards.demand_driver(machine, nvcc)
    except Missing as missing:
        if here:
            raise
        remark(f"on this machine {missing}")
    wanted = given.get("TWILL_CUDA_ARCH") or given.get("CMAKE_CUDA_ARCHITECTURES") or environ.get("TWILL_CUDA_ARCH", "")
    archs = choose_architectures(wanted, before.get("CMAKE_CUDA_ARCHITECTURES", ""), machine, remark)
    if here and not any(runs_on(archs, card.arch) for card in machine.usable):
        raise Missing(f"TWILL_CUDA_ARCH must fit this machine's {machine.usable[0].words}, got \"{wanted}\"")
    if strange := [capability(arch) for arch in numbers(archs) if arch not in COMPILED]:
        remark(f"twill was never compiled for compute capability {', '.join(strange)} before this")
    host = toolkit.host_compiler(environ, given, before.get("CMAKE_CUDA_HOST_COMPILER", ""), demanded=not check)
    settings = {"CMAKE_CUDA_COMPILER": nvcc.path, "CMAKE_CUDA_HOST_COMPILER": host, "CMAKE_CUDA_ARCHITECTURES": archs}
    if host and any(before.get(name) != value for name, value in settings.items()):
        remark(f"{nvcc.words}, for compute capability {', '.join(capability(arch) for arch in numbers(archs))}")
        toolkit.try_out(nvcc, numbers(archs), host, environ)
    root = given.get("Kokkos_ROOT") or environ.get("Kokkos_ROOT", "")
    source = environ.get("TWILL_KOKKOS_SOURCE", "")
    cache = pathlib.Path(environ.get("XDG_CACHE_HOME") or f"{environ['HOME']}/.cache") / "twill"
    if not root and not source:
        root = earlier_kokkos(before.get("Kokkos_ROOT", ""), cache, nvcc, host, numbers(archs)[0], environ, remark)
    if root:
        root = os.path.abspath(root)
        kokkos.demand_installed(pathlib.Path(root), nvcc.version, numbers(archs)[0])
    else:
        cache.mkdir(parents=True, exist_ok=True)
        root = str(kokkos.provide(source, nvcc, host, numbers(archs)[0], cache, environ, say, jobs, only_look=check))
    settings["Kokkos_ROOT"] = root
    others = {name: value for name, value in given.items() if name not in OWN}
    how = "again" if any(before.get(name) != value for name, value in others.items()) else "keep"
    if any(before.get(name) != value for name, value in settings.items()):
        how = "fresh"  # CMake keeps what it found for the earlier ones
    return [how, *(f"-D{name}={value}" for name, value in {**settings, **others}.items())]


def main(arguments: list, environ) -> int:
    flags = {argument for argument in arguments if re.fullmatch(r"--here|--check|--jobs=\d+", argument)}
    jobs = next((int(flag.removeprefix("--jobs=")) for flag in flags if flag.startswith("--jobs=")), 2)
    build, *defines = [argument for argument in arguments if argument not in flags]
    given = {}
    for define in defines:
        name, _, value = define.removeprefix("-D").partition("=")
        given[name.partition(":")[0]] = value
    check, held = "--check" in flags, []  # what a check remarks matters where it fails: the build that follows says it again
    try:
        lines = prepare(pathlib.Path(build), given, "--here" in flags, check, jobs, environ, held.append if check else say)
    except Missing as missing:
        for text in (*held, str(missing)):
            say(text)
        return 1
    if not check:
        print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
