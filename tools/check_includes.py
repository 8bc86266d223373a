#!/usr/bin/env python3
"""Who may include whom: our folders and the third parties. Prints each breach; exit 1 if any."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# folder -> (our folders it may include, third-party prefixes it may include)
# The longest matching folder wins; tests/<x> follows tests.
PREFIX = {
    "kokkos": ("Kokkos_", "OpenMP", "omp.h"),
    "caf": ("caf/",),
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
    "catch": ("catch2/",),
    "x86": ("immintrin.h", "x86intrin.h", "cpuid.h"),
}
RULES = {
    "config": ({"config"}, {"toml", "spdlog"}),
    "config/base": ({"config/base"}, {"spdlog"}),
    "gpu": ({"gpu", "config"}, {"kokkos"}),
    "gpu/host": ({"gpu", "config"}, {"x86"}),
    "models": ({"models", "gpu", "config"}, {"pcre2", "sentencepiece", "utf8proc", "xxhash"}),
    "actors": ({"actors", "models", "gpu", "config"}, {"caf"}),
    "actors/port": ({"actors/port", "config"}, set()),
    "actors/policy": ({"actors/policy", "actors/port", "config"}, set()),
    "net": ({"net", "actors/port", "config"}, {"boost", "prometheus", "openssl"}),
    "tools": ({"tools", "net", "actors", "models", "gpu", "config"}, {"cli11", "boost", "toml"}),
    "tests": ({"tests", "tools", "net", "actors", "models", "gpu", "config"},
              {"catch", "boost", "caf", "kokkos"}),
}
# Third parties that one file alone may include.
HOME = {"json": "models/checkpoint/json.cpp"}
# Kokkos and x86 intrinsics never show in these headers; version macros live in one file each.
PUBLIC_GPU = re.compile(r"^gpu/(ops/)?[a-z0-9_]+\.hpp$")
VERSION_MACROS = {
    "KOKKOS_VERSION": "gpu/detail/kokkos_compat.hpp",
    "CAF_VERSION": "actors/detail/caf_compat.hpp",
    "BOOST_VERSION": "net/beast.hpp",
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def rule_of(path: str):
    folder = str(pathlib.PurePosixPath(path).parent)
    while folder not in RULES:
        if folder == ".":
            return None
        folder = str(pathlib.PurePosixPath(folder).parent)
    return RULES[folder]


def breaches(path: str):
    rule = rule_of(path)
    if rule is None:
        return
    ours, theirs = rule
    for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        for macro, home in VERSION_MACROS.items():
            if macro in line and line.lstrip().startswith("#") and path != home \
                    and not path.startswith("tools/"):
                yield f"{path}:{number}: {macro} may be tested in {home} only"
        found = INCLUDE.match(line)
        if not found:
            continue
        target = found.group(2)
        if found.group(1) == '"':
            if not (ROOT / target).exists():
                yield f'{path}:{number}: "{target}" is not a path from the root'
            elif not any(target == o or target.startswith(o + "/") for o in ours):
                yield f'{path}:{number}: may not include "{target}"'
            continue
        for name, prefixes in PREFIX.items():
            if not target.startswith(prefixes):
                continue
            if name in HOME and path == HOME[name]:
                continue
            if name not in theirs:
                yield f"{path}:{number}: may not include <{target}> ({name})"
            elif name == "kokkos" and PUBLIC_GPU.match(path):
                yield f"{path}:{number}: a public header of gpu/ shows <{target}>"


def main() -> int:
    files = sorted(
        str(p.relative_to(ROOT)) for top in ("config", "gpu", "models", "actors", "net", "tools", "tests")
        for p in (ROOT / top).rglob("*") if p.suffix in {".hpp", ".cpp"} and p.is_file())
    found = [breach for f in files for breach in breaches(f)]
    print("\n".join(found) if found else f"includes: {len(files)} files, every arrow points the right way")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
