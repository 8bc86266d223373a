#!/usr/bin/env python3
"""Runs ninja and shows on one line of a terminal how far it is: BUILD_FOLDER NINJA_ARGUMENTS...

The time that is left is estimated from what is still to be built: a unit that joins a folder's sources takes
as long as several others. What ninja prints beside its steps, such as a compiler's errors, is kept. Where
standard output is no terminal, each fortieth step is printed. Returns ninja's exit status.
"""

import os
import re
import shutil
import subprocess
import sys
import time

STEP = re.compile(r"\[(\d+)/(\d+)\] (.*)")
# What a step takes, roughly, in seconds; the first that matches counts.
WEIGHTS = [(re.compile(pattern), seconds) for pattern, seconds in (
    (r"Building .*(kernels_|attention_).*\.o$", 10), (r"Building .*/Unity/", 9), (r"Building .*\.gch$", 5),
    (r"Building ", 3.5), (r"Linking CXX executable", 1.5), (r"", 0.1))]


def weight(step: str) -> float:
    return next(seconds for pattern, seconds in WEIGHTS if pattern.search(step))


def planned_weight(command: list[str]) -> float:
    plan = subprocess.run([*command, "-n"], capture_output=True, text=True).stdout
    return sum(weight(found.group(3)) for found in map(STEP.match, plan.splitlines()) if found)


def time_left(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"about {minutes} min left" if minutes > 1 else "a minute left" if seconds > 30 else "nearly done"


class Line:
    """The last line of the terminal, drawn over and over."""

    def __init__(self) -> None:
        self.shown = False

    def draw(self, text: str) -> None:
        width = shutil.get_terminal_size().columns
        sys.stdout.write("\r\033[K" + text[:width - 1])
        sys.stdout.flush()
        self.shown = True

    def clear(self) -> None:
        if self.shown:
            sys.stdout.write("\r\033[K")
            sys.stdout.flush()
            self.shown = False


def main() -> int:
    folder, arguments = sys.argv[1], sys.argv[2:]
    command = ["ninja", "-C", folder, *arguments]
    os.environ["NINJA_STATUS"] = "[%f/%t] "
    on_terminal = sys.stdout.isatty()
    planned = planned_weight(command)
    line, done, started = Line(), 0.0, time.monotonic()
    ninja = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace")
    for text in ninja.stdout:
        text = text.rstrip("\n")
        step = STEP.match(text)
        if step is None:
            if not text.startswith("ninja: Entering"):
                line.clear()
                print(text, flush=True)
            continue
        at, of, what = int(step.group(1)), int(step.group(2)), step.group(3)
        done += weight(what)
        if on_terminal:
            passed = time.monotonic() - started
            left = passed * max(planned - done, 0) / done
            line.draw(f"  {at} of {of}" + (f", {time_left(left)}" if passed > 10 else ""))
        elif at % 40 == 1:
            print(text, flush=True)
    line.clear()
    return ninja.wait()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
