"""What the parts of gpu-check share: the bundle, the clock of the whole call, and how a program's run becomes a row."""

import os
import pathlib
import re
import time

from . import catch2
from .report import FAILED, NOT_RUN, PASSED, say

SPEAKS_OF_ERROR = re.compile(r"FAILED|[Ee]rror|[Ff]ail|cannot|must be|not found|[Ii]llegal|[Ii]nvalid|[Hh]azard|no GPU|no CUDA")
CATCH2_FAILED = re.compile(r":\d+: FAILED:")
CATCH2_WORDS = re.compile(r"\S*/(\S+:\d+): FAILED:(?: due to unexpected exception with message:)?")
SECONDS_LEAST = 3.0  # a program is not started with less time than that


class Context:
    def __init__(self, given, root: pathlib.Path, bundle, report, runner, scratch: pathlib.Path, at_once: int):
        self.host, self.root, self.bundle, self.report, self.runner = given.host, root, bundle, report, runner
        self.device = "host" if given.host else "cuda"
        self.layers = given.layers
        self.plain_environment = {**os.environ, **({"CUDA_VISIBLE_DEVICES": ""} if given.host else {})}
        self.environment = {**self.plain_environment, **bundle.environment(root, self.device)}
        self.scratch, self.at_once = scratch, at_once
        self.has_no_torch = False
        self.ceilings = {}  # name -> figure, as the part `ceilings` measured it
        self.part, self._part_end, self._end = "", 0.0, time.monotonic() + given.limit

    def begin_part(self, part: str, seconds: float) -> bool:
        """Whether any time is left for a part; a row says so where there is none."""
        self.part = part
        self._part_end = min(self._end, time.monotonic() + seconds)
        if self.seconds_left() < SECONDS_LEAST:
            self.not_run("all of it", "no time")
            return False
        say(f"-------- {part}: at most {self.seconds_left():.0f} s")
        return True

    def seconds_left(self) -> float:
        """Of the part."""
        return self._part_end - time.monotonic()

    def passed(self, name: str, words: str = "", seconds: float = 0.0, shown: bool = True, **figures) -> None:
        self.report.add(self.part, name, PASSED, seconds, words, shown, **figures)

    def failed(self, name: str, words: str, seconds: float = 0.0, **figures) -> None:
        self.report.add(self.part, name, FAILED, seconds, words, **figures)

    def not_run(self, name: str, words: str) -> None:
        self.report.add(self.part, name, NOT_RUN, 0.0, words)

    def program(self, name: str):
        """The path of a program of the bundle; None, and a row that says so, where the bundle lacks it."""
        if self.bundle.has(name):
            return str(self.bundle.program(name))
        self.failed(name, f"{name} is not in the bundle")
        return None

    def run(self, name: str, command, seconds: float, bundled: bool = True):
        """Runs a program to its end, with the bundle's libraries if `bundled`; None, and a row, where no time is left for it."""
        seconds = min(seconds, self.seconds_left())
        if seconds < SECONDS_LEAST:
            self.not_run(name, "no time")
            return None
        return self.runner.run(command, seconds, self.environment if bundled else self.plain_environment, self.root)

    def start(self, command, seconds: float):
        """Starts a program of the bundle, which ends with the part at the latest."""
        return self.runner.start(command, min(seconds, self.seconds_left()), self.environment, self.root)

    def judge(self, name: str, program, fault: str = "", words: str = "", shown: bool = True, **figures) -> bool:
        """Adds the row of a program that has ended. `fault` says what is wrong though its exit status is 0; `words` what it found."""
        if not program.passed:
            self.failed(name, f"{program.how_it_ended()}: {error_words(program)}", program.seconds, **figures)
        elif fault:
            self.failed(name, fault, program.seconds, **figures)
        else:
            self.passed(name, words or program.last_words(), program.seconds, shown, **figures)
        return program.passed and not fault

    def cases_of(self, program: str, spec: str):
        """The names of a test program's cases; None, and a row, where it lists none."""
        for command in catch2.listing(program, spec):
            listed = self.run(f"listing of {pathlib.Path(program).name}", command, 30)
            if listed is None:
                return None
            # Catch2 2 exits with the number of cases.
            unclean = listed.timed_out or listed.failure or listed.status is None or listed.status < 0
            names = [] if unclean else catch2.names_in(listed.output)
            if names and not any(re.search("Unrecogni[sz]ed token", name) for name in names):
                return names
        self.failed(f"listing of {pathlib.Path(program).name}", f"no test case of {spec}: {listed.how_it_ended()}: {error_words(listed)}")
        return None

    def run_cases(self, jobs, seconds: float, at_once: int, judge) -> None:
        """Runs (name, command) in processes of their own, `at_once` at a time, each for at most `seconds`. judge(name, program)
        adds the row of each as it ends."""
        waiting, running = list(jobs), {}
        while waiting or running:
            while waiting and len(running) < at_once:
                name, command = waiting.pop(0)
                allowed = min(seconds, self.seconds_left())
                if allowed < SECONDS_LEAST:
                    self.not_run(name, "no time")
                else:
                    running[self.start(command, allowed)] = name
            self.runner.pump(0.02)
            for program in [program for program in running if program.done]:
                judge(running.pop(program), program)


def error_words(program) -> str:
    """What a failed program says: Catch2's first line of a failure, else the first line that speaks of an error, with the three
    lines after it; else the last line. Of Catch2's it leaves the file, the line, and what was expected or thrown."""
    lines = [line for line in program.output.splitlines() if any(char.isalnum() for char in line)]
    for pattern in (CATCH2_FAILED, SPEAKS_OF_ERROR):
        for at, line in enumerate(lines):
            if pattern.search(line):
                return CATCH2_WORDS.sub(r"\1", " ".join(" ".join(lines[at:at + 4]).split()))
    return program.last_words()
