#!/usr/bin/env python3
"""Drives the targets of fuzz_net, fuzz_sockets and fuzz_text by clang's libFuzzer, under sanitizers.

    libfuzzer.py build                   compiles what the programs need into build/libfuzzer
    libfuzzer.py run SECONDS TARGET...   searches from the kept corpus on, each target for so long ("all": every one)
    libfuzzer.py pack TARGET...          keeps the smallest inputs that reach all that was reached

It needs clang (Debian: clang-16 libclang-rt-16-dev); CXX names another one. What is found lies in build/libfuzzer/found.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "libfuzzer"
CORPORA = ROOT / "tests" / "fuzz" / "corpora"
CXX = os.environ.get("CXX") or next((c for c in ("clang++-16", "clang++") if shutil.which(c)), "clang++")
SANITIZERS = "address,undefined"
# NDEBUG, as in a release: an assertion of Beast 1.81 does not hold for some ends of chunked bodies, and nothing comes of it.
FLAGS = ["-std=c++20", "-O1", "-g1", "-DNDEBUG", "-march=x86-64-v3", f"-fsanitize={SANITIZERS}", "-fno-sanitize-recover=all",
         "-DTWILL_LIBFUZZER", '-DTWILL_VERSION="fuzz"', "-DSPDLOG_COMPILED_LIB", "-DSPDLOG_FMT_EXTERNAL", f"-I{ROOT}"]
COVERED = "-fsanitize=fuzzer-no-link"
NET_LIBRARIES = ["-lboost_json", "-lssl", "-lcrypto", "-lprometheus-cpp-core", "-lxxhash", "-lspdlog", "-lfmt", "-lpthread"]
TEXT_LIBRARIES = ["-lpcre2-8", "-lutf8proc", "-lspdlog", "-lfmt", "-lpthread"]
# What only a whole server needs, and takes long to compile.
SERVER = ["net/server.cpp", "net/listeners.cpp", "net/http/http_session.cpp", "net/websocket/websocket_session.cpp",
          "net/connection/client_acceptor.cpp", "net/connection/output_relief.cpp", "net/connection/arrival.cpp",
          "net/connection/tls_stream.cpp", "net/connection/tls_credentials.cpp"]
PARTS = {
    "net": ["config/base/*.cpp", "config/detail/*.cpp", "config/sampling.cpp", "config/tenants.cpp", "net/*.cpp", "net/*/*.cpp",
            "net/protocol/*/*.cpp"],
    "server": SERVER,
    "text": ["config/base/*.cpp", "models/checkpoint/json.cpp", "models/checkpoint/mapped_file.cpp",
             "models/checkpoint/mapping_guard.cpp", "models/text/chat_template.cpp", "models/text/message_form.cpp",
             "models/text/detokenizer.cpp", "models/text/jinja/*.cpp", "models/text/tool_calls/*.cpp",
             "models/text/grammar/spec_text.cpp", "models/text/grammar/schema/*.cpp"],
}
PROGRAMS = {
    "fuzz_net": (["net"], ["tests/fuzz/fuzz_net.cpp", "tests/net/stored/hostile_files.cpp",
                          "tests/net/support/scripted_engine.cpp"], NET_LIBRARIES),
    "fuzz_sockets": (["server", "net"], ["tests/fuzz/fuzz_sockets.cpp", "tests/net/support/scripted_engine.cpp",
                                         "tests/net/support/client.cpp"], NET_LIBRARIES),
    "fuzz_text": (["text"], ["tests/fuzz/fuzz_text.cpp"], TEXT_LIBRARIES),
}
MOST_BYTES = 24 * 1024  # of the inputs kept of one target
LONGEST = 2048          # bytes of an input


def compile_one(source: pathlib.Path, covered: bool) -> pathlib.Path:
    made = BUILD / "objects" / (str(source.relative_to(ROOT)).replace("/", "+") + ".o")
    made.parent.mkdir(parents=True, exist_ok=True)
    launcher = ["ccache"] if shutil.which("ccache") else []
    command = [*launcher, CXX, *FLAGS, *([COVERED] if covered else []), "-c", source, "-o", made]
    subprocess.run(command, check=True, cwd=ROOT)
    return made


def embed_page() -> pathlib.Path:
    """The pages' files as they are: no parser looks into them, so that they need not be bundled."""
    made = BUILD / "page_files.cpp"
    call = re.search(r"twill_embed_page\(([^)]*)\)", (ROOT / "net/CMakeLists.txt").read_text()).group(1)
    files = ";".join(f"{ROOT}/net/page/{name}" for name in re.findall(r"(?<![\w/])[\w.]+\.(?:html|svg|css|js)\b", call))
    subprocess.run(["cmake", f"-DOUT={made}", f"-DFILES={files}", "-P", ROOT / "tools/cmake/twill_embed.cmake"], check=True)
    return made


def sources_of(part: str) -> list:
    found = [one for pattern in PARTS[part] for one in sorted(ROOT.glob(pattern))]
    return [one for one in found if part == "server" or str(one.relative_to(ROOT)) not in SERVER]


def build(programs: list) -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    jobs = int(os.environ.get("JOBS", "1"))
    for part in dict.fromkeys(part for p in programs for part in PROGRAMS[p][0]):
        sources = sources_of(part)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            objects = list(pool.map(lambda s: compile_one(s, True), sources))
        if part == "net":
            page = BUILD / "page_files.o"
            subprocess.run([CXX, *FLAGS, "-c", embed_page(), "-o", page], check=True, cwd=ROOT)
            objects.append(page)
        archive = BUILD / f"lib{part}.a"
        archive.unlink(missing_ok=True)
        subprocess.run(["ar", "qc", archive, *objects], check=True)
    for program in programs:
        parts, sources, libraries = PROGRAMS[program]
        archives = [BUILD / f"lib{part}.a" for part in parts]
        objects = [compile_one(ROOT / s, False) for s in [*sources, "tests/fuzz/driver.cpp"]]
        subprocess.run([CXX, f"-fsanitize=fuzzer,{SANITIZERS}", *objects, *archives, *libraries, "-o",
                        BUILD / program], check=True)


def targets() -> dict:
    """Each target's program, from the tables at the ends of their sources."""
    found = {}
    for program in PROGRAMS:
        text = (ROOT / f"tests/fuzz/{program}.cpp").read_text()
        table = text[text.index("fuzz::targets()"):]
        for name in re.findall(r'^      \{"(\w+)",\s*\{', table, re.M):
            found[name] = program
    return found


def unpack(target: str, folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    data = (CORPORA / f"{target}.corpus").read_bytes() if (CORPORA / f"{target}.corpus").exists() else b""
    at = number = 0
    while at < len(data):
        end = data.index(b"\n", at)
        size = int(data[at:end])
        (folder / f"kept{number}").write_bytes(data[end + 1:end + 1 + size])
        at, number = end + 1 + size, number + 1


def write_words() -> pathlib.Path:
    """Short texts of the parsers' own sources, which a search would take long to guess."""
    words = set()
    for pattern in [*PARTS["net"], *PARTS["text"]]:
        for source in ROOT.glob(pattern):
            for word in re.findall(r'"((?:[^"\\\n]|\\.){2,24})"', source.read_text()):
                if re.fullmatch(r"[\w .:/<>|{}\[\]$-]+", word) and word.count(" ") < 2:
                    words.add(word)
    made = BUILD / "words.dict"
    made.write_text("".join(f'"{word}"\n' for word in sorted(words)))
    return made


def fuzzer(target: str, *arguments) -> list:
    return [BUILD / targets()[target], f"-max_len={LONGEST}", "-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1",
            f"-artifact_prefix={BUILD}/found/{target}-", *arguments]


def run(target: str, seconds: int) -> int:
    corpus = BUILD / "corpus" / target
    unpack(target, corpus)
    (BUILD / "found").mkdir(exist_ok=True)
    environment = {**os.environ, "TWILL_FUZZ_TARGET": target, "TWILL_FUZZ_SEEDS": str(corpus)}
    return subprocess.run(fuzzer(target, f"-max_total_time={seconds}", f"-dict={write_words()}", corpus),
                          env=environment).returncode


def pack(target: str) -> None:
    corpus, least = BUILD / "corpus" / target, BUILD / "least" / target
    shutil.rmtree(least, ignore_errors=True)
    least.mkdir(parents=True)
    environment = {**os.environ, "TWILL_FUZZ_TARGET": target}
    subprocess.run(fuzzer(target, "-merge=1", least, corpus), env=environment, check=True, stderr=subprocess.DEVNULL)
    kept, size = [], 0
    for path in sorted(least.iterdir(), key=lambda p: (p.stat().st_size, p.name)):
        if size + path.stat().st_size > MOST_BYTES:
            break
        kept.append(path.read_bytes())
        size += len(kept[-1])
    CORPORA.mkdir(exist_ok=True)
    (CORPORA / f"{target}.corpus").write_bytes(b"".join(b"%d\n" % len(one) + one for one in kept))
    print(f"{target}: {len(kept)} inputs, {size} bytes")


def main() -> int:
    command, *rest = sys.argv[1:] or [""]
    if command == "build":
        build(rest or list(PROGRAMS))
        return 0
    if command not in ("run", "pack") or len(rest) < 1 + (command == "run"):
        print(__doc__, file=sys.stderr)
        return 2
    seconds = int(rest.pop(0)) if command == "run" else 0
    chosen = list(targets()) if rest == ["all"] else rest
    worst = 0
    for target in chosen:
        if command == "run":
            status = run(target, seconds)
            print(f"{target}: {'nothing found' if status == 0 else 'FOUND something'}", flush=True)
            worst = max(worst, status)
        else:
            pack(target)
    return worst


if __name__ == "__main__":
    sys.exit(main())
