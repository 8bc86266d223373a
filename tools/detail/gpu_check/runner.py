"""Runs programs under deadlines, some of them at once, without threads.

Each program leads a process group of its own, which is killed whole at the program's deadline and when the program has ended, so
that no child outlives it. A program is also killed when this process dies. Its output is logged as it comes.
"""

import collections
import ctypes
import os
import selectors
import signal
import subprocess
import time

HEAD_BYTES = 128 << 10  # of each program's output that are kept in memory: its beginning
TAIL_BYTES = 512 << 10  # and its end
KILL_SECONDS = 5.0      # how long a killed program may take to end: one that hangs in a driver may never end
PIPE_READS = 32         # which take all that a pipe can hold after its writer has ended
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def lead_group() -> None:
    """In the child: becomes the leader of a process group that gets SIGKILL when the parent dies."""
    os.setpgid(0, 0)
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Program:
    """A program that was started, or could not be. `status` is its exit status, negative for a signal; None while it runs."""

    def __init__(self, command, seconds: float):
        self.command, self.limit_seconds = [str(word) for word in command], seconds
        self.begin = time.monotonic()
        self.seconds = 0.0
        self.status = None
        self.timed_out = False
        self.failure = ""  # why it could not be started or ended
        self.done = False
        self._head, self._tail, self._tail_bytes = bytearray(), collections.deque(), 0

    def keep(self, data: bytes) -> None:
        room = HEAD_BYTES - len(self._head)
        self._head += data[:room]
        if data[room:]:
            self._tail.append(data[room:])
            self._tail_bytes += len(data) - room
            while self._tail_bytes - len(self._tail[0]) > TAIL_BYTES:
                self._tail_bytes -= len(self._tail.popleft())

    @property
    def output(self) -> str:
        """The beginning and the end of what it printed; bytes that are no UTF-8 become U+FFFD."""
        return (bytes(self._head) + b"".join(self._tail)).decode("utf-8", "replace")

    @property
    def passed(self) -> bool:
        return self.done and self.status == 0 and not self.timed_out and not self.failure

    def how_it_ended(self) -> str:
        if self.failure:
            return self.failure
        if self.timed_out:
            return f"timed out after {self.limit_seconds:.0f} s"
        if self.status is not None and self.status < 0:
            try:
                return f"killed by {signal.Signals(-self.status).name}"
            except ValueError:
                return f"killed by signal {-self.status}"
        return f"exit status {self.status}"

    def last_words(self) -> str:
        """Its last line that holds a letter or a digit."""
        lines = [line for line in self.output.splitlines() if any(char.isalnum() for char in line)]
        return " ".join(lines[-1].split()) if lines else ""


class Runner:
    def __init__(self, log):
        self._log = log
        self._selector = selectors.DefaultSelector()
        self._running = {}  # Program -> (Popen, number in the log)

    def start(self, command, seconds: float, env=None, cwd=None) -> Program:
        program = Program(command, seconds)
        number = self._log.begin(program.command)
        try:
            process = subprocess.Popen(program.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                       env=env, cwd=cwd, preexec_fn=lead_group)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            program.failure, program.done = f"cannot be started: {error}", True
            self._log.end(number, program.failure)
            return program
        os.set_blocking(process.stdout.fileno(), False)
        self._selector.register(process.stdout, selectors.EVENT_READ, program)
        self._running[program] = (process, number)
        return program

    def run(self, command, seconds: float, env=None, cwd=None) -> Program:
        program = self.start(command, seconds, env, cwd)
        while not program.done:
            self.pump(0.05)
        return program

    def pump(self, seconds: float) -> None:
        """Takes output for at most so long, and sees which programs have ended or are late."""
        if self._selector.get_map():
            for key, _ in self._selector.select(seconds):
                self._read(key.data)
        else:
            time.sleep(seconds)
        for program, (process, _) in list(self._running.items()):
            now = time.monotonic()
            if self._has_ended(process):
                self._finish(program)
            elif not program.timed_out and now - program.begin > program.limit_seconds:
                program.timed_out = True
                self._kill_group(process)
            elif program.timed_out and now - program.begin > program.limit_seconds + KILL_SECONDS:
                program.failure = f"did not end {KILL_SECONDS:.0f} s after SIGKILL, having run {program.limit_seconds:.0f} s"
                self._finish(program)

    def stop(self, program: Program, signal_number=signal.SIGTERM, seconds: float = 10) -> None:
        """Asks a program to end, and kills it when it has not after so long."""
        if program.done:
            return
        self._running[program][0].send_signal(signal_number)
        program.limit_seconds = time.monotonic() - program.begin + seconds
        while not program.done:
            self.pump(0.05)

    def kill_all(self) -> None:
        for program, (process, _) in list(self._running.items()):
            self._kill_group(process)
            program.limit_seconds, program.timed_out = time.monotonic() - program.begin, True
        while self._running:
            self.pump(0.05)

    def _read(self, program: Program) -> bool:
        """Takes some output; false where there is none now, or no more."""
        process, number = self._running[program]
        try:
            data = os.read(process.stdout.fileno(), 1 << 16)
        except BlockingIOError:
            return False
        if not data:
            self._selector.unregister(process.stdout)
            return False
        program.keep(data)
        self._log.add(number, data)
        return True

    @staticmethod
    def _has_ended(process) -> bool:
        # The process is left unreaped, so that its number still names its group.
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _open_pipes(self) -> list:
        return [key.fileobj for key in self._selector.get_map().values()]

    @staticmethod
    def _kill_group(process) -> None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass

    def _finish(self, program: Program) -> None:
        """Kills what is left of the group, takes the rest of the output and reaps the program."""
        process, number = self._running[program]
        self._kill_group(process)
        for _ in range(PIPE_READS):
            if process.stdout not in self._open_pipes() or not self._read(program):
                break
        if process.stdout in self._open_pipes():
            self._selector.unregister(process.stdout)
        process.stdout.close()
        if not program.failure:
            program.status = process.wait()
        program.seconds = time.monotonic() - program.begin
        program.done = True
        del self._running[program]
        self._log.end(number, f"{program.how_it_ended()}, {program.seconds:.1f} s")
