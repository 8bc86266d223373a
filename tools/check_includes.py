#!/usr/bin/env python3
"""Who may include whom: our folders, their private parts and the third parties; and how long a file may be.

check_includes.py [ROOT]: reads every C++ and CUDA file, prints each breach, and exits with 1 if there is any.
tests/tools/check_includes_test.py shows that each rule fails where it should.
"""

import pathlib
import re
import sys

TOPS = ("config", "gpu", "models", "actors", "net", "tools", "tests")
SUFFIXES = {".hpp", ".cpp", ".cuh", ".cu"}

# The names of third parties, and how the paths of their headers begin.
THIRD_PARTIES = {
    "kokkos": ("Kokkos_", "OpenMP", "omp.h"),
    "cuda": ("cuda", "cub/", "cublas", "cooperative_groups", "mma.h", "nccl", "nv/"),
    "caf": ("caf/",),
    "fibers": ("boost/context/",),  # before Boost, whose name it begins with
    "boost": ("boost/",),
    "toml": ("toml++/",),
    "spdlog": ("spdlog/", "fmt/"),
    "pcre2": ("pcre2",),
    "sentencepiece": ("sentencepiece",),
    "utf8proc": ("utf8proc",),
    "xxhash": ("xxhash.h", "xxh_x86dispatch.h"),
    "json": ("nlohmann/",),
    "prometheus": ("prometheus/",),
    "openssl": ("openssl/",),
    "cli11": ("CLI/",),
    "libedit": ("histedit.h", "editline/"),
    "catch": ("catch2/",),
    "x86": ("immintrin.h", "x86intrin.h", "cpuid.h"),
    "xgrammar": ("xgrammar/", "dlpack/"),
    "zmq": ("zmq",),
}
# folder -> (our folders that it may include, third parties that it may include). A '*' stands for one
# folder of any name; the rule with the most parts wins; files in tests/x follow the rule of tests.
RULES = {
    "config": ({"config"}, {"toml", "spdlog"}),
    "config/base": ({"config/base"}, {"spdlog"}),
    "gpu": ({"gpu", "config"}, {"kokkos"}),
    "gpu/host": ({"gpu", "config"}, {"x86"}),
    "gpu/*/host": ({"gpu", "config"}, {"x86"}),
    "gpu/cuda": ({"gpu", "config"}, {"kokkos", "cuda"}),
    "gpu/*/cuda": ({"gpu", "config"}, {"kokkos", "cuda"}),
    "models": ({"models", "gpu", "config"}, {"pcre2", "sentencepiece", "utf8proc", "xxhash"}),
    "models/offload/plan": ({"models/offload/plan", "config"}, set()),
    "models/text/grammar": ({"models", "config"}, {"utf8proc", "xxhash", "xgrammar"}),
    "actors": ({"actors", "models", "gpu", "config"}, {"caf"}),
    "actors/port": ({"actors/port", "config"}, set()),
    "actors/scheduling": ({"actors/scheduling", "actors/port", "config"}, set()),
    "net": ({"net", "actors/port", "config"}, {"boost", "prometheus", "openssl"}),
    "net/stored": ({"net", "actors/port", "config"}, {"xxhash"}),
    "net/kv_events": ({"net/kv_events", "actors/port", "config"}, {"zmq"}),
    "tools": ({"tools", "net", "actors", "models", "gpu", "config"}, {"cli11", "boost", "toml", "libedit"}),
    "tools/gpu-kernels": ({"tools/gpu-kernels", "tools/twill-bench/kernels", "tests/gpu/linear", "gpu", "config"}, {"cuda"}),
    "tests": ({"tests", "tools", "net", "actors", "models", "gpu", "config"},
              {"catch", "boost", "caf", "kokkos"}),
    "tests/net/kv_events": ({"tests", "net", "actors", "config"}, {"catch", "json", "zmq"}),
    "tests/net/protocol/anthropic": ({"tests", "net", "actors", "config"}, {"catch", "json"}),
    "tests/net/support": ({"tests", "net", "actors", "config"}, {"openssl"}),
    "tests/gpu/cuda": ({"tests", "gpu", "config"}, {"catch", "fibers"}),
}
# Third parties that only one file may include.
HOME = {"json": "models/checkpoint/json.cpp"}
# Version macros, each of which only one file may test.
VERSION_MACROS = {
    "KOKKOS_VERSION": "gpu/detail/kokkos_compat.hpp",
    "CAF_VERSION": None,  # no file: CMake refuses every series but 0.17
    "BOOST_VERSION": None,  # no file: what we use of Boost is spelled alike in every version that we support
}
# These headers must not include Kokkos or intrinsics, neither directly nor through another header.
PUBLIC = re.compile(r"^gpu/(?!(?:detail|host|portable|cuda)/)([a-z0-9_]+/)?[a-z0-9_]+\.hpp$")
HIDDEN = ("kokkos", "cuda", "x86")
# Sources that a build with CUDA compiles as CUDA (CMakeLists.txt of their folders): these alone may reach Kokkos, which
# the host's compiler cannot read in such a build.
KOKKOS_SOURCES = {"gpu/portable/backends.cpp", "tests/gpu/distant/distant_ops.cpp", "tests/gpu/implementations.cpp"}
# Folders of pure functions: the result depends only on the arguments, and there are no side effects. They may take
# points in time as arguments, but must not read a clock.
PURE = ("actors/scheduling", "models/offload/plan")
IMPURE_HEADERS = {
    "condition_variable", "filesystem", "fstream", "future", "iostream", "mutex", "ostream", "istream", "random",
    "shared_mutex", "thread", "ctime", "fcntl.h", "unistd.h", "sched.h", "pthread.h", "stdio.h", "time.h",
}
IMPURE_CALLS = re.compile(
    r"_clock::now\b|\brandom_device\b|\bs?rand\s*\(|\b(?:clock_gettime|gettimeofday|getenv|f?printf|f?puts|fopen|"
    r"system)\s*\(|\bstd::(?:time|clock)\s*\(|\bstd::(?:cout|cerr|clog|cin)\b")
# A longer file has more than one job. Tests may be longer: a list of cases is one job.
MOST_LINES = 500
# Private headers (see private_parent) that a file outside their folder includes, each with the reason. tests/x
# may include the private headers of x without an entry: a part that is private to its folder has tests of its own.
DETAIL_EXCEPTIONS = {
    ("tests/tools/gpu_kernels_test.cpp", "gpu/detail/linear_backend.hpp"): "plants faults in a table of kernels",
    ("tests/tools/gpu_kernels_test.cpp", "gpu/detail/op_backends.hpp"): "plants faults in a table of kernels",
    ("tools/twill-bench/kernels/weights.cpp", "gpu/detail/half.hpp"): "measures kernels on f16 weights",
}
# A folder whose files may include another's private headers: it runs those parts alone.
PRIVATE_READERS = {"tools/gpu-kernels": "gpu", "tools/twill-bench/plan": "actors"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def matches(folder: str, pattern: str) -> bool:
    """Whether the folder is what the pattern names, or lies in it."""
    parts, wanted = folder.split("/"), pattern.split("/")
    return len(parts) >= len(wanted) and all(w in ("*", p) for w, p in zip(wanted, parts))


def rule_of(path: str):
    folder = str(pathlib.PurePosixPath(path).parent)
    fitting = [pattern for pattern in RULES if matches(folder, pattern)]
    # With equally many parts, a pattern that names its folders precedes one with a '*'.
    return RULES[max(fitting, key=lambda p: (p.count("/"), -p.count("*")))] if fitting else None


def is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def private_parent(header: str):
    """The folder that alone may include the header; None for one that others may include too.

    A detail/ is private to the folder that holds it; host/, portable/ and cuda/, the backends, are private to gpu/.
    """
    if "/detail/" in header:
        return header[:header.rindex("/detail/")]
    return "gpu" if re.match(r"gpu/([a-z0-9_]+/)?(host|portable|cuda)/", header) else None


def third_party_of(header: str):
    return next((name for name, starts in THIRD_PARTIES.items() if header.startswith(starts)), None)


class tree:
    """The files below a root, each read once."""

    def __init__(self, root: pathlib.Path):
        self.root = root
        self.files = sorted(
            str(p.relative_to(root)) for top in TOPS for p in (root / top).rglob("*")
            if p.suffix in SUFFIXES and p.is_file())
        self.lines = {f: (root / f).read_text(encoding="utf-8").splitlines() for f in self.files}
        self.includes = {f: [(number, found[1] == '"', found[2]) for number, line in enumerate(lines, 1)
                             if (found := INCLUDE.match(line))] for f, lines in self.lines.items()}
        self.used_exceptions = set()

    def hidden_through(self, header: str) -> set:
        """The third parties of HIDDEN that the header brings in, itself or through others of ours."""
        brought, seen, left = set(), {header}, [header]
        while left:
            for _, ours, target in self.includes.get(left.pop(), ()):
                if not ours:
                    brought.add(third_party_of(target))
                elif target not in seen:
                    seen.add(target)
                    left.append(target)
        return brought & set(HIDDEN)

    def breaches(self, path: str):
        for number, ours, target in self.includes[path]:
            place = f"{path}:{number}"
            if ours:
                yield from self.breaches_of_ours(place, path, target)
            else:
                yield from self.breaches_of_theirs(place, path, target)
        if len(self.lines[path]) > MOST_LINES and not is_inside(path, "tests"):
            yield f"{path}: must have at most {MOST_LINES} lines, got {len(self.lines[path])}; split it by job"
        if PUBLIC.match(path):
            for name in sorted(self.hidden_through(path)):
                yield f"{path}: a public header of gpu/ must not show {name}, also not through another header"
        if path.endswith(".cpp") and path not in KOKKOS_SOURCES and "kokkos" in self.hidden_through(path):
            yield f"{path}: may not reach Kokkos, also not through a header: a build with CUDA gives it to the host's compiler"
        for number, line in enumerate(self.lines[path], 1):
            yield from self.breaches_of_line(f"{path}:{number}", path, line)

    def breaches_of_ours(self, place: str, path: str, target: str):
        if not (self.root / target).is_file():
            yield f'{place}: "{target}" is not the path of a file from the root'
            return
        rule = rule_of(path)
        if rule and not any(is_inside(target, folder) for folder in rule[0]):
            yield f'{place}: may not include "{target}"'
        if parent := private_parent(target):
            if (path, target) in DETAIL_EXCEPTIONS:
                self.used_exceptions.add((path, target))
            elif not any(is_inside(path, folder) for folder in (parent, "tests/" + parent)) and not any(
                    is_inside(path, folder) and is_inside(parent, read) for folder, read in PRIVATE_READERS.items()):
                yield f'{place}: "{target}" is private to {parent}/'

    def breaches_of_theirs(self, place: str, path: str, target: str):
        name, rule = third_party_of(target), rule_of(path)
        if name and rule and name not in rule[1] and HOME.get(name) != path:
            yield f"{place}: may not include <{target}> ({name})"
        if any(is_inside(path, folder) for folder in PURE) and (
                target in IMPURE_HEADERS or target.startswith("sys/")):
            yield f"{place}: a pure folder may not include <{target}>"

    def breaches_of_line(self, place: str, path: str, line: str):
        stripped = line.lstrip()
        if stripped.startswith("#"):
            for macro, only_file in VERSION_MACROS.items():
                if re.search(rf"\b{macro}\b", line) and path != only_file:
                    yield f"{place}: {macro} may be tested in {only_file or 'no file'} only"
        elif not stripped.startswith("//") and any(is_inside(path, folder) for folder in PURE):
            if found := IMPURE_CALLS.search(line.split("//")[0]):
                yield f"{place}: a pure folder may not use {found[0]}"

    def stale_names(self):
        """Breaches of this script's own tables: each names only files and folders that exist."""
        for table, name in [("HOME", f) for f in HOME.values()] + [("KOKKOS_SOURCES", f) for f in sorted(KOKKOS_SOURCES)] + \
                [("VERSION_MACROS", f) for f in VERSION_MACROS.values() if f] + \
                [("DETAIL_EXCEPTIONS", f) for pair in DETAIL_EXCEPTIONS for f in pair]:
            if not (self.root / name).is_file():
                yield f"tools/check_includes.py: {table} names {name}, which does not exist"
        for table, name in [("RULES", f) for f in RULES if "*" not in f] + [("PURE", f) for f in PURE] + \
                [("PRIVATE_READERS", f) for pair in PRIVATE_READERS.items() for f in pair]:
            if not (self.root / name).is_dir():
                yield f"tools/check_includes.py: {table} names the folder {name}, which does not exist"
        for path, target in sorted(set(DETAIL_EXCEPTIONS) - self.used_exceptions):
            yield f'tools/check_includes.py: {path} does not include "{target}"; delete its exception'


def main() -> int:
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    all_files = tree(root)
    found = [breach for f in all_files.files for breach in all_files.breaches(f)]
    found += all_files.stale_names()
    print("\n".join(found) if found else f"includes: {len(all_files.files)} files, every arrow points the right way, no file is too long")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
