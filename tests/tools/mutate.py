#!/usr/bin/env python3
"""Puts small faults into the sources, one at a time, and tells which of them the tests find.

    mutate.py --build DIR [--count 60] [--seed 1] [--only TEXT] [--log FILE] [--limit SECONDS]

A mutant changes one operator, bound, constant or statement in one line of a .cpp file of actors/, models/offload, net/ or
gpu's dispatch. Mutants are drawn by the seed, spread over the folders. Each mutant is compiled, then run through the test
programs that cover its folder, the cheapest first; a failure, a crash or a run beyond the limit kills it. A mutant that does
not compile is replaced by another. The source file is restored after each. The script writes to the source tree that it is in,
so run it in a checkout of its own (git worktree add). DIR is a build of that tree.
"""

import argparse
import pathlib
import random
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Folder, share of the mutants, and the test programs that cover it.
AREAS = [
    ("actors/batcher", 8, ["test_actors"]),
    ("actors/scheduling", 6, ["test_actors"]),
    ("actors/session", 6, ["test_actors"]),
    ("actors/kv", 4, ["test_actors"]),
    ("actors/executor", 5, ["test_actors"]),
    ("actors/offloader", 5, ["test_actors"]),
    ("actors/supervisor", 3, ["test_actors"]),
    ("actors/structured", 2, ["test_actors"]),
    ("actors/detail", 3, ["test_actors"]),
    ("actors/pool", 4, ["test_actors_pool"]),
    ("models/offload", 10, ["test_models_offload_job", "test_models_offload"]),
    ("net", 16, ["test_net"]),
    ("gpu", 8, ["test_gpu", "test_models_weights"]),
]
# Of gpu/, only code that selects, packs, checks and dispatches is changed: tests compare the kernels with naive loops.
NOT_DISPATCH = re.compile(r"^gpu/(.*/)?(host|portable|cuda|collectives)/")

SWAPS = [
    (r" <= ", " < "), (r" < ", " <= "), (r" >= ", " > "), (r" > ", " >= "), (r" == ", " != "), (r" != ", " == "),
    (r" && ", " || "), (r" \|\| ", " && "), (r" \+ ", " - "), (r" - ", " + "), (r" \* ", " / "), (r" \+= ", " -= "),
    (r" -= ", " += "), (r"\+\+(?=\w)", "--"), (r"--(?=\w)", "++"), (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
    (r"\bstd::min\b", "std::max"), (r"\bstd::max\b", "std::min"), (r"(?<![.\w'])0\b(?![.xX'])", "1"), (r"(?<![.\w'])1\b(?![.xX'])", "2"),
    (r"(?<![.\w'])([2-9]|[1-6]\d)\b(?![.xX'])", None), (r"!(?=[\w(])", ""), (r"\.front\(\)", ".back()"), (r"\.back\(\)", ".front()"),
    (r"\bif \(", "if (!"), (r"\bbreak;", "continue;"), (r"\bcontinue;", "break;"),
]
STATEMENT = re.compile(r"^\s+[\w>.:\[\]()*&-]+(\(.*\)| [-+*|&]?= .*|\+\+|--);$")
SKIPPED = re.compile(r"^\s*(//|#|\*|using |namespace|static_assert|TWILL_ASSERT|template|constexpr auto|case |default:)"
                     r"|\blog::|reserve\(|probe\(|static_cast<void>|^\s*}|noexcept|operator|lock_guard|unique_lock")


def sources(folder: str) -> list:
    found = sorted((ROOT / folder).rglob("*.cpp"))
    return [p for p in found if not NOT_DISPATCH.match(str(p.relative_to(ROOT)))]


def without_literals(line: str) -> str:
    """The line with string literals and comments blanked, so that columns stay the same."""
    blank = lambda m: m.group(0)[0] + " " * (len(m.group(0)) - 2) + m.group(0)[-1]
    line = re.sub(r'"(?:[^"\\]|\\.)*"', blank, line)
    line = re.sub(r"'(?:[^'\\]|\\.)'", blank, line)
    return re.sub(r"//.*$", lambda m: " " * len(m.group(0)), line)


def variants(line: str, line_before: str) -> list:
    """All changed forms of one line."""
    code = without_literals(line)
    if SKIPPED.search(code) or not code.strip():
        return []
    found = []
    for pattern, into in SWAPS:
        if into == "if (!" and not re.search(r"\)( \{|;| \w.*)?$", code.rstrip()):
            continue
        for match in re.finditer(pattern, code):
            if pattern in (r" < ", r" > ", r" \* ") and re.search(r"template|<.*>", code):
                continue
            text = into
            if into is None:
                text = str(int(match.group(0)) + 1)
            if into == "if (!":
                depth, end = 0, match.end() - 1
                for end in range(match.end() - 1, len(code)):
                    depth += {"(": 1, ")": -1}.get(code[end], 0)
                    if depth == 0:
                        break
                if depth != 0:
                    continue
                inner = line[match.end():end]
                found.append(line[:match.end()] + "!(" + inner + ")" + line[end:])
                continue
            found.append(line[:match.start()] + text + line[match.end():])
    whole = re.search(r"[;{}:]\s*$|\)\s*$|^\s*$", without_literals(line_before)) is not None
    if whole and STATEMENT.match(code) and "return" not in code and not re.match(r"^\s+(const |auto |std::)", code):
        found.append(re.match(r"^\s*", line).group(0) + ";  // " + line.strip())
    return [v for v in found if v != line]


def all_mutants(folder: str, rng: random.Random) -> list:
    found = []
    for path in sources(folder):
        lines = path.read_text().splitlines()
        for i, line in enumerate(lines):
            changed = variants(line, lines[i - 1] if i > 0 else "")
            if changed:  # each line at most once
                found.append((path, i, rng.choice(changed)))
    rng.shuffle(found)
    return found


def run(command: list, limit: float) -> tuple:
    try:
        done = subprocess.run(command, cwd=ROOT, timeout=limit, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace")
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        return -1, "over the limit of time"


def why_killed(output: str) -> str:
    cases = re.findall(r"^(?:Scenario: |)(\S.*)\n-{20,}\n/?\S+:\d+\n\.{20,}\n\n/?(\S+):(\d+): FAILED", output, re.M)
    if cases:
        name, file, line = cases[0]
        return f"{name} ({pathlib.Path(file).name}:{line})"
    return output.strip().splitlines()[-1][:100] if output.strip() else "a crash"


def judge(build: pathlib.Path, programs: list, limit: float) -> tuple:
    """Returns whether the mutant was built, whether it was killed, and by what."""
    status, output = run(["ninja", "-C", build, "-j1", "-k1", *programs], 600)
    if status != 0:
        return False, False, output[-300:]
    for program in programs:
        status, output = run([build / "bin" / program, "--abortx", "1"], limit)
        if status != 0:
            return True, True, why_killed(output)
    return True, False, ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only files whose path has this text")
    parser.add_argument("--limit", type=float, default=180, help="seconds of one test program")
    parser.add_argument("--log", type=pathlib.Path, help="a line for each mutant is added to it as well")
    parser.add_argument("--skip", type=int, default=0, help="mutants at the beginning that were judged already")
    parser.add_argument("--list", action="store_true", help="only names the mutants")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    rng = random.Random(arguments.seed)
    waiting = {folder: all_mutants(folder, rng) for folder, _, _ in AREAS}
    total = sum(share for _, share, _ in AREAS)
    order = [area for area in AREAS for _ in range(max(1, round(area[1] * arguments.count / total)))]
    rng.shuffle(order)
    order = [area for area in order if arguments.only in area[0] or "/" in arguments.only][:arguments.count]

    def say(text: str) -> None:
        print(text, flush=True)
        if arguments.log:
            with open(arguments.log, "a") as log:
                log.write(text + "\n")

    killed = survived = 0
    for number, (folder, _, programs) in enumerate(order, 1):
        while waiting[folder]:
            path, i, changed = waiting[folder].pop()
            name = f"{path.relative_to(ROOT)}:{i + 1}"
            if arguments.only not in name:
                continue
            before = path.read_text()
            lines = before.splitlines()
            if arguments.list or number <= arguments.skip:
                say(f"{number:3} listed   {name}\n      - {lines[i].strip()}\n      + {changed.strip()}") if arguments.list else None
                break
            try:
                path.write_text("\n".join([*lines[:i], changed, *lines[i + 1:]]) + "\n")
                began = time.monotonic()
                built, dead, by = judge(build, programs, arguments.limit)
            finally:
                path.write_text(before)
            if not built:
                continue
            killed, survived = killed + dead, survived + (not dead)
            say(f"{number:3} {'killed  ' if dead else 'SURVIVED'} {name} in {time.monotonic() - began:.0f} s"
                f"{' by ' + by if dead else ''}\n      - {lines[i].strip()}\n      + {changed.strip()}")
            break
    say(f"{killed} of {killed + survived} killed, seed {arguments.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
