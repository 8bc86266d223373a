"""What gpu-check leaves behind: results.jsonl, log.txt, table.txt and all.tar.xz in one folder.

A finished check is one line of results.jsonl, written at once, so that a killed script leaves all that had finished. log.txt gets
the output of every program as it comes, with the program's number before each line. Where the folder cannot be written, for a
full disk say, the checks go on, and the failure is a row of its own.
"""

import collections
import io
import json
import pathlib
import re
import tarfile
import time

LOG_BYTES = 12 << 20      # of log.txt: a file that comes back may have 16 MiB
PROGRAM_BYTES = 256 << 10  # of one program's output that are logged as they come
LAST_BYTES = 64 << 10      # and of its end, where it printed more
TABLE_LINES, LINE_CHARS, NAME_CHARS = 60, 160, 72
FAILED_LINES, NOT_RUN_LINES = 24, 8
PASSED, FAILED, NOT_RUN = "passed", "failed", "not run"


def printable(text: str, most: int = 300) -> str:
    """One line without control characters, cut at its end."""
    return re.sub(r"[^\x20-\x7e\u00a1-\ufffc]", "?", " ".join(text.split()))[:most]


class Log:
    """log.txt. Writing it never fails: what went wrong is kept in `failure`."""

    def __init__(self, path: pathlib.Path):
        self.failure = ""
        self._room = LOG_BYTES
        self._count = 0
        self._open = {}  # number -> [part of a line, bytes so far, the last bytes that were not logged]
        try:
            self._file = path.open("wb", buffering=0)
        except OSError as error:
            self._file, self.failure = None, f"{path.name} cannot be written: {error}"

    def begin(self, command) -> int:
        self._count += 1
        self._open[self._count] = [b"", 0, b""]
        self._write(f"#{self._count} $ {' '.join(command)}\n".encode("utf-8", "replace"))
        return self._count

    def add(self, number: int, data: bytes) -> None:
        state = self._open[number]
        state[1] += len(data)
        if state[1] > PROGRAM_BYTES:
            state[2] = (state[2] + data)[-LAST_BYTES:]
            return
        lines = (state[0] + data).split(b"\n")
        state[0] = lines.pop()
        self._write(b"".join(b"#%d| %s\n" % (number, line) for line in lines))

    def end(self, number: int, how: str) -> None:
        part, _, last = self._open.pop(number)
        if last:
            part += b"\n...\n" + last.removesuffix(b"\n")
        lines = part.split(b"\n") if part else []
        self._write(b"".join(b"#%d| %s\n" % (number, line) for line in lines) + f"#{number} = {how}\n".encode("utf-8", "replace"))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _write(self, data: bytes) -> None:
        if self._file is None or self.failure or not data:
            return
        if self._room < len(data):
            data, self.failure = b"log.txt is full\n", f"log.txt is full: it holds at most {LOG_BYTES >> 20} MiB"
        self._room -= len(data)
        try:
            self._file.write(data)
        except OSError as error:
            self.failure = f"log.txt cannot be written: {error}"


class Report:
    """Rows of finished checks. A row has part, name, outcome (passed, failed, not run), seconds, words (what it said), shown
    (whether the table has a line for it although it passed) and the figures of the check."""

    def __init__(self, folder: pathlib.Path, title: str):
        self.folder, self.rows = folder, []
        self._title, self._begin, self._unwritten = title, time.monotonic(), set()
        self._extra = {}  # name in the archive -> path
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._results = (folder / "results.jsonl").open("w", encoding="utf-8")
        except OSError as error:
            self._results = None
            self._cannot_write("results.jsonl", error)
        self.log = Log(folder / "log.txt")

    def add(self, part: str, name: str, outcome: str, seconds: float = 0.0, words: str = "", shown: bool = False, **figures) -> dict:
        row = {"part": part, "name": printable(name), "outcome": outcome, "seconds": round(seconds, 2), "words": printable(words),
               "shown": shown, **figures}
        self.rows.append(row)
        if self._results is not None:
            try:
                self._results.write(json.dumps(row) + "\n")
                self._results.flush()
            except OSError as error:
                self._results = None
                self._cannot_write("results.jsonl", error)
        if shown or outcome != PASSED:
            say(f"{outcome:8} {part}: {row['name']}  {row['words']}")
        return row

    def keep(self, path: pathlib.Path, name: str) -> None:
        """Adds a file to the archive."""
        self._extra[name] = path

    def close(self) -> None:
        self.log.close()
        if self._results is not None:
            self._results.close()

    def count(self, outcome: str, part: str = "") -> int:
        return sum(row["outcome"] == outcome and part in ("", row["part"]) for row in self.rows)

    def save(self) -> list:
        """Writes table.txt and all.tar.xz of what has finished so far; returns the lines of the table."""
        lines = self.table()
        try:
            (self.folder / "table.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
            whole, fresh = self.folder / "all.tar.xz", self.folder / "all.tar.xz.new"
            files = {name: self.folder / name for name in ("results.jsonl", "log.txt", "table.txt")} | self._extra
            with tarfile.open(fresh, "w:xz", preset=1) as archive:
                for name, path in files.items():
                    if path.is_file():
                        data = path.read_bytes()
                        about = tarfile.TarInfo(name)
                        about.size, about.mtime = len(data), int(time.time())
                        archive.addfile(about, io.BytesIO(data))
            fresh.replace(whole)
        except (OSError, EOFError, ValueError) as error:
            self._cannot_write("table.txt and all.tar.xz", error)
            lines = self.table()
        if self.log.failure and not any(row["name"] == "log.txt" for row in self.rows):
            self.add("report", "log.txt", FAILED, words=self.log.failure)
            lines = self.table()
        return lines

    def table(self) -> list:
        parts = list(dict.fromkeys(row["part"] for row in self.rows))
        totals = ", ".join(f"{self.count(outcome)} {outcome}" for outcome in (PASSED, FAILED, NOT_RUN))
        lines = [f"gpu-check: {self._title}", f"{totals}; {time.monotonic() - self._begin:.0f} s"]
        for part in parts:
            counts = ", ".join(f"{n} {outcome}" for outcome in (PASSED, FAILED, NOT_RUN) if (n := self.count(outcome, part)))
            lines.append(f"{part:10} {counts}")
        lines += self._some(FAILED, FAILED_LINES) + self._some(NOT_RUN, NOT_RUN_LINES)
        shown = [row for row in self.rows if row["shown"] and row["outcome"] == PASSED]
        room, left_out = TABLE_LINES - len(lines), 0
        while len(shown) + (left_out > 0) > room:  # the part with most lines loses its last one
            longest = collections.Counter(row["part"] for row in shown).most_common(1)[0][0]
            del shown[max(at for at, row in enumerate(shown) if row["part"] == longest)]
            left_out += 1
        rest = [f"... and {left_out} more lines of figures in results.jsonl"] if left_out else []
        return [line[:LINE_CHARS] for line in lines + [self._line(row) for row in shown] + rest]

    def _some(self, outcome: str, most: int) -> list:
        found = [self._line(row) for row in self.rows if row["outcome"] == outcome]
        return found if len(found) <= most else found[:most - 1] + [f"... and {len(found) - most + 1} more that are {outcome}"]

    @staticmethod
    def _line(row: dict) -> str:
        name = row["name"] if len(row["name"]) <= NAME_CHARS else row["name"][:NAME_CHARS - 3] + "..."
        return f"{row['outcome']:8} {row['part']}: {name}  {row['words']}"

    def _cannot_write(self, name: str, error) -> None:
        if name not in self._unwritten:
            self._unwritten.add(name)
            self.add("report", name, FAILED, words=f"{name} cannot be written: {error}")


def say(line: str) -> None:
    """Prints a line at once. A reader that has gone stops nothing."""
    try:
        print(line[:LINE_CHARS], flush=True)
    except (OSError, ValueError):
        pass
