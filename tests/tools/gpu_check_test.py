#!/usr/bin/env python3
"""Packs a bundle and runs gpu-check from it on the processor; then gpu-check with programs that fail, hang, crash and go missing."""

import contextlib
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

BIN = pathlib.Path(os.environ["TWILL_BIN_DIR"])
SOURCE = pathlib.Path(os.environ["TWILL_SOURCE_DIR"])
CHECK, BUNDLE = SOURCE / "tools/gpu-check", SOURCE / "tools/gpu-bundle"
sys.path.insert(0, str(SOURCE / "tools/detail"))
import torch_beside
from gpu_check import catch2
from gpu_check.parts_daemon import MODELS
from gpu_check.parts_tests import FAMILIES, LOST, SANITIZED
from gpu_check.report import LOG_BYTES, TABLE_LINES, Log, Report

# A fake test program; each of its cases does what its name says.
STAND_IN = """#!/bin/sh
case "$1" in
--list*) printf 'works\\nfails\\ncrashes\\nprints odd bytes\\nfills the disk\\nsays nothing\\nhangs with a child\\n' ;;
works) echo "All tests passed (1 assertion in 1 test case)"; echo "device $TWILL_TEST_DEVICE $LD_LIBRARY_PATH $TWILL_TEST_SOURCE" ;;
fails) printf 'this cannot help\\n../x/y_test.cpp:3: FAILED:\\ndue to unexpected exception with message:\\n  planted\\n'; exit 1 ;;
crashes) kill -SEGV $$ ;;
"prints odd bytes") printf '\\377\\000\\033[31modd\\n'; exit 1 ;;
"fills the disk") echo "error: No space left on device" >&2; exit 1 ;;
"says nothing") ;;
*) sleep 1000 & echo $! $$ >"$CHILDREN.new"; mv "$CHILDREN.new" "$CHILDREN"; wait ;;
esac
"""

# A fake of test_gpu on a GPU, and of a compute-sanitizer one of whose tools does not run on the machine.
GPU_STAND_IN = """#!/bin/sh
case "$1" in
--list*) printf 'works\ntests no device\n' ;;
"tests no device") echo "All tests passed (1 assertion in 1 test case)" ;;
argmax*) echo "All tests passed (1 assertion in 1 test case)"; echo "kernels launched on the GPU: 0" ;;
*) echo "All tests passed (1 assertion in 1 test case)"; echo "kernels launched on the GPU: 5" ;;
esac
"""
# Fakes of the test cases with planted errors: Kokkos ends two of them, and only one of these ends as it should.
PLANTED_STAND_IN = f"""#!/bin/sh
case "$1 $2" in
"--list-test-names-only [planted]") printf 'an error\\nan end\\nan abort\\n' ;;
--list*) echo 'after it' ;;
"an end "*) echo "{LOST}, and Kokkos ended the process" >&2; exit 1 ;;
"an abort "*) echo "{LOST}, and Kokkos ended the process" >&2; kill -ABRT $$ ;;
*) echo "All tests passed (1 assertion in 1 test case)"; echo "kernels launched on the GPU: 5" ;;
esac
"""
FAMILIES_STAND_IN = f"""#!/bin/sh
case "$1 $3" in
--list*) printf '%s\\n' "{FAMILIES}" ;;
*" opt-tiny-fp32") echo "test cases: 1 | 1 passed"; echo "assertions: - none -" ;;
*) echo "All tests passed (1 assertion in 1 test case)"; echo "kernels launched on the GPU: 5" ;;
esac
"""
# A fake twilld that writes its address file before its output has come through the pipe, as on a busy machine.
SLOW_SPEAKER = """#!/bin/sh
trap 'exit 0' TERM
while [ "$1" != --address-file ]; do shift; done
echo 127.0.0.1:9 >"$2.new"; mv "$2.new" "$2"
sleep 0.3
echo "model tiny is ready on host (x) with 1 KV blocks"
while :; do sleep 0.05; done
"""
SANITIZER = """#!/bin/sh
tool=$2
shift 4
case "$tool" in
memcheck) exec "$@" ;;
racecheck) echo "========= Error: Device not supported"; exit 1 ;;
*) "$@"; echo "========= Barrier error detected"; exit 9 ;;
esac
"""


def call(*command, timeout=280, **environment):
    return subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, timeout=timeout, check=False,
                          env={**os.environ, **environment})


def rows_of(out):
    return [json.loads(line) for line in (out / "results.jsonl").read_text(encoding="utf-8").splitlines()]


def is_there(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in ("Z", "X")


class Scratch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="twill-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out, self.children = self.folder / "out", self.folder / "children"

    def stand_in(self, **programs):
        """Makes a bundle of shell scripts in place of the programs."""
        (self.folder / "bundle/bin").mkdir(parents=True)
        for name, text in programs.items():
            path = self.folder / "bundle/bin" / name
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755)
        return self.folder / "bundle"

    def wait_for(self, condition, what, seconds=30):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)


class PlantedFaults(Scratch):
    def test_each_fault_is_a_row_and_stops_nothing_else(self):
        bundle = self.stand_in(test_gpu=STAND_IN)
        done = call(CHECK, "--host", "--parts", "ops,sanitize,goldens", "--limit", "18", "--bundle", bundle, "--out", self.out,
                    CHILDREN=str(self.children), LD_LIBRARY_PATH="/driver")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(done.stderr, "")
        rows = {row["name"]: row for row in rows_of(self.out)}

        def words(case, outcome="failed"):
            self.assertEqual(rows[f"test_gpu: {case}"]["outcome"], outcome)
            return rows[f"test_gpu: {case}"]["words"]

        words("works", "passed")
        self.assertEqual(words("fails"), "exit status 1: y_test.cpp:3 planted")
        self.assertIn("killed by SIGSEGV", words("crashes"))
        self.assertRegex(words("prints odd bytes"), r"exit status 1: .*odd")
        self.assertIn("No space left on device", words("fills the disk"))
        self.assertIn("no test case ran", words("says nothing"))
        self.assertIn("timed out after", words("hangs with a child"))
        for pid in self.children.read_text(encoding="utf-8").split():
            self.assertFalse(is_there(pid), "the hanging program and its child are killed")
        self.assertEqual(rows["test_cuda_kernels"]["words"], "test_cuda_kernels is not in the bundle")
        self.assertEqual(rows["all of it"]["words"], "no time", "of the parts after one that hangs")

        log = (self.out / "log.txt").read_bytes()
        self.assertIn(f"device host {bundle}/lib:/driver {SOURCE}\n".encode(), log, "the driver's libraries stay on the path")
        self.assertIn(b"| \xff\x00\x1b[31modd\n", log)
        table = (self.out / "table.txt").read_text(encoding="utf-8")
        self.assertTrue(done.stdout.endswith(table), "the table comes last")
        self.assertLessEqual(len(table.splitlines()), TABLE_LINES)
        with tarfile.open(self.out / "all.tar.xz") as archive:
            self.assertEqual(archive.extractfile("results.jsonl").read(), (self.out / "results.jsonl").read_bytes())
            self.assertEqual(archive.extractfile("log.txt").read(), log)

    def start(self, *arguments):
        process = subprocess.Popen([sys.executable, CHECK, "--host", *arguments, "--bundle", self.stand_in(test_gpu=STAND_IN), "--out",
                                    self.out], stdout=subprocess.PIPE, text=True,
                                   env={**os.environ, "CHILDREN": str(self.children)})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.wait_for(self.children.exists, "the last case runs")
        self.wait_for(lambda: sum(row["part"] == "ops" for row in rows_of(self.out)) >= 6, "the others have ended")
        return process

    def test_a_killed_script_leaves_all_that_had_finished(self):
        process = self.start("--parts", "card,ops")
        process.send_signal(signal.SIGKILL)
        process.wait()
        rows = rows_of(self.out)
        self.assertEqual([row["outcome"] for row in rows if row["name"] == "test_gpu: works"], ["passed"])
        self.assertIn("card: machine", (self.out / "table.txt").read_text(encoding="utf-8"), "the table of the part before")
        with tarfile.open(self.out / "all.tar.xz") as archive:
            self.assertIn("table.txt", archive.getnames())
        child, leader = self.children.read_text(encoding="utf-8").split()
        self.addCleanup(lambda: is_there(child) and os.kill(int(child), signal.SIGKILL))
        self.wait_for(lambda: not is_there(leader), "a program dies with the script")

    def test_a_script_that_is_asked_to_end_prints_its_table(self):
        process = self.start("--parts", "ops")
        process.send_signal(signal.SIGTERM)
        printed, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 1)
        self.assertIn("failed   ops: the rest  interrupted by SIGTERM\n", printed[printed.index("gpu-check:"):])
        for pid in self.children.read_text(encoding="utf-8").split():
            self.assertFalse(is_there(pid))

    def test_a_bundle_that_cannot_be_unpacked_is_a_row(self):
        (self.folder / "bundle").mkdir()
        (self.folder / "bundle/bundle.tar.xz").write_bytes(b"no archive")
        done = call(CHECK, "--host", "--parts", "goldens", "--bundle", self.folder / "bundle", "--out", self.out)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn("failed   bundle: unpacking", done.stdout)

    def test_parts_and_bundles_are_named_in_errors(self):
        unknown = call(CHECK, "--parts", "ops,opps")
        self.assertEqual(unknown.returncode, 2)
        self.assertIn("--parts must be among card, ceilings", unknown.stderr)
        (self.folder / "mine").write_text("kept", encoding="utf-8")
        foreign = call(BUNDLE, self.folder, "--build", BIN.parent)
        self.assertEqual(foreign.returncode, 1)
        self.assertIn("or be a folder that gpu-bundle made", foreign.stderr)
        self.assertEqual((self.folder / "mine").read_text(encoding="utf-8"), "kept")


    def test_a_daemon_whose_words_come_late_is_ready(self):
        bundle = self.stand_in(twilld=SLOW_SPEAKER, **{"twill-bench": "#!/bin/sh\nexit 1\n",
                                                       "twill-synth": f'#!/bin/sh\nexec "{BIN}/twill-synth" "$@"\n'})
        call(CHECK, "--host", "--parts", "daemon", "--bundle", bundle, "--out", self.out)
        outcomes = {row["name"]: row["outcome"] for row in rows_of(self.out)}
        self.assertEqual([outcomes.get(f"{preset}: twilld") for preset in MODELS], ["passed"] * len(MODELS))


class OnAGpu(Scratch):
    def check(self, *parts, **programs):
        bundle = self.stand_in(**programs)
        call(CHECK, "--parts", ",".join(parts), "--bundle", bundle, "--out", self.out, PATH=f"{bundle}/bin:{os.environ['PATH']}")
        return {row["name"]: row for row in rows_of(self.out)}

    def test_a_program_none_of_whose_cases_launched_a_kernel_is_a_failure(self):
        rows = self.check("ops", "goldens", test_gpu=GPU_STAND_IN, test_models_weights=GPU_STAND_IN.replace(": 5", ": 0"))
        self.assertEqual((rows["test_gpu: works"]["outcome"], rows["test_gpu: works"]["launched"]), ("passed", 5))
        self.assertEqual(rows["test_gpu: tests no device"]["words"], "no kernel was launched")
        self.assertEqual(rows["test_gpu on the GPU"]["words"],
                         "5 kernels launched by 2 cases, 1 of which passed without any")
        self.assertEqual(rows["test_gpu on the GPU"]["without"], ["tests no device"])
        self.assertEqual(rows["test_models_weights on the GPU"]["outcome"], "failed")

    def test_each_golden_folder_has_a_process_of_its_own(self):
        rows = self.check("goldens", test_models_weights=FAMILIES_STAND_IN)
        first = f"test_models_weights: {FAMILIES}: "
        self.assertEqual(sum(name.startswith(first) for name in rows), len(list((SOURCE / "tests/golden").glob("**/golden.json"))))
        self.assertEqual(rows[first + "variants/qwen3"]["outcome"], "passed")
        self.assertEqual(rows[first + "opt-tiny-fp32"]["words"], "the test case has no such section")

    def test_a_planted_fault_may_end_the_process_with_a_line(self):
        rows = self.check("faults", test_gpu=PLANTED_STAND_IN)
        outcomes = {name: rows[name]["outcome"] for name in ("an error", "an end", "an abort", "after it")}
        self.assertEqual(outcomes, {"an error": "passed", "an end": "passed", "an abort": "failed", "after it": "passed"})

    def test_a_sanitizer_must_see_kernels_unless_the_machine_refuses_it(self):
        rows = self.check("sanitize", **{"test_gpu": GPU_STAND_IN, "compute-sanitizer": SANITIZER})
        self.assertEqual(len(rows), 3 * len(SANITIZED))
        for case in SANITIZED:
            launches = not case.startswith("argmax")
            self.assertEqual(rows[f"memcheck of {case}"]["outcome"], "passed" if launches else "failed")
            self.assertEqual((rows[f"racecheck of {case}"]["outcome"], rows[f"racecheck of {case}"]["words"]),
                             ("not run", "========= Error: Device not supported"))
            self.assertEqual(rows[f"synccheck of {case}"]["outcome"], "failed")
            self.assertIn("exit status 9: ========= Barrier error", rows[f"synccheck of {case}"]["words"])
        self.assertEqual(rows["memcheck of argmax takes*"]["words"], "no kernel was launched")


class Architectures(Scratch):
    def test_a_bundle_has_device_code_for_the_named_architectures_alone(self):
        (self.folder / "bin").mkdir()
        (self.folder / "bin/test_gpu").symlink_to("/bin/true")
        for configured, archs, fits in (("90-real", "90", True), ("90", "90", False), ("80-real;90-real", "90", False),
                                        ("80-real;90", "80,90", False), ("80-real;86-real", None, True), ("80;90", None, True)):
            (self.folder / "CMakeCache.txt").write_text(f"TWILL_CUDA:BOOL=ON\nCMAKE_CUDA_ARCHITECTURES:STRING={configured}\n",
                                                        encoding="utf-8")
            with self.subTest(configured=configured, archs=archs):
                done = call(BUNDLE, self.folder / "bundle", "--build", self.folder, *(("--archs", archs) if archs else ()), "--preset", "1", PATH="/usr/bin:/bin")
                refused = "CMAKE_CUDA_ARCHITECTURES" in done.stderr
                self.assertNotEqual(refused, fits, done.stderr)


class Pieces(Scratch):
    def test_an_argument_selects_one_case(self):
        self.assertEqual(catch2.only('a [b], "c"\\'), 'a \\[b\\]\\, \\"c\\"\\\\')
        self.assertEqual(catch2.names_in('one, two\n"#3"\nkernels launched on the GPU: 0\n\none, two\n'), ["one, two", "#3"])
        self.assertEqual(catch2.launches("kernels launched on the GPU: 17\n"), 17)
        self.assertEqual(catch2.launches("no such line\n"), 0)

    def test_a_log_stays_within_what_comes_back(self):
        log = Log(self.folder / "log.txt")
        self.addCleanup(log.close)
        for _ in range(60):
            number = log.begin(["much"])
            for at in range(64):
                log.add(number, b"line %d\n" % at + b"x" * 8191 + b"\n")
            log.add(number, b"the end\n")
            log.end(number, "exit status 0")
        self.assertLessEqual((self.folder / "log.txt").stat().st_size, LOG_BYTES + 100)
        self.assertIn("log.txt is full", log.failure)
        text = (self.folder / "log.txt").read_bytes()
        self.assertIn(b"#1| line 0\n", text)
        self.assertNotIn(b"#1| line 40\n", text, "one program has its share")
        self.assertIn(b"#1| the end\n#1 = exit status 0\n", text)

    def report(self, folder):
        """A report that prints nothing."""
        printed = contextlib.redirect_stdout(io.StringIO())
        printed.__enter__()
        self.addCleanup(printed.__exit__, None, None, None)
        report = Report(folder, "cuda")
        self.addCleanup(report.close)
        return report

    def test_a_table_of_many_rows_has_sixty_lines(self):
        report = self.report(self.folder / "report")
        for outcome in ("passed", "failed", "not run"):
            for at in range(200):
                report.add("ops", f"case {at}", outcome, words="w" * 400, shown=at % 2 == 0)
        table = report.save()
        self.assertEqual(len(table), TABLE_LINES)
        self.assertIn("200 passed, 200 failed, 200 not run", table[1])
        self.assertEqual(sum(line.startswith("failed") for line in table), 23)

    def test_results_that_cannot_be_written_are_a_row(self):
        report = self.report(pathlib.Path("/dev/null/report"))
        report.add("ops", "case", "passed")
        self.assertTrue(any("results.jsonl cannot be written" in line for line in report.save()))
        self.assertEqual(report.count("passed"), 1)

    def test_pytorch_takes_seven_sizes(self):
        self.assertEqual(torch_beside.shape_of("4096,4,32,8,14336,32000,1").kv_heads, 8)
        done = call(SOURCE / "tools/detail/torch_beside.py", "--device", "cpu", "--shape", "1,2")
        self.assertIn("--shape must be 7 integers with commas between them, got 1,2", done.stderr)


class EndToEnd(Scratch):
    """The programs of this build, packed once."""

    @classmethod
    def setUpClass(cls):
        cls.packed = tempfile.TemporaryDirectory(prefix="twill-test-")
        cls.addClassCleanup(cls.packed.cleanup)
        cls.bundle = pathlib.Path(cls.packed.name) / "bundle"
        cls.bundle.mkdir()
        (cls.bundle / "about.json").write_text('{"made_by": "tools/gpu-bundle"}', encoding="utf-8")  # lets gpu-bundle replace the folder
        (cls.bundle / "old").touch()
        done = call(BUNDLE, cls.bundle, "--build", BIN.parent, "--preset", "1")
        assert done.returncode == 0, done.stdout + done.stderr

    def test_a_bundle_is_checked_on_the_processor(self):
        self.assertFalse((self.bundle / "old").exists(), "an older bundle is replaced")
        done = call(CHECK, "--host", "--parts", "card,goldens,faults,sanitize,kernels,daemon", "--bundle", self.bundle, "--out", self.out)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        rows = rows_of(self.out)
        by_name = {row["name"]: row for row in rows}
        self.assertRegex(by_name["twill doctor"]["words"], "^host: ")
        self.assertGreater(sum("test_models_weights" in row["name"] for row in rows), 3)
        self.assertEqual(by_name[f"test_models_weights: {FAMILIES}: mistral-tiny-awq"]["outcome"], "passed")
        self.assertTrue(any(row["part"] == "faults" and row["name"].startswith("two models") for row in rows))
        self.assertEqual(by_name["memcheck"]["outcome"], "not run")
        self.assertGreater(sum(row["part"] == "kernels" for row in rows), 10)
        for model in ("mistral-7b-awq", "baichuan2-13b-gptq", "chatglm3-6b", "qwen-14b", "opt-1.3b"):
            for at_once, completed in ((1, 3), (32, 32)):
                row = by_name[f"{model}, {at_once} at once"]
                self.assertEqual(row["completed"], completed)
                self.assertGreater(row["output_throughput"], 0)

    def test_the_sanitizers_cases_exist(self):
        listed = subprocess.run([BIN / "test_gpu", "--list-test-names-only"], capture_output=True, text=True, check=False).stdout
        for case in SANITIZED:
            self.assertRegex(listed, re.compile(f"^{re.escape(case[:-1])}", re.MULTILINE))

    def test_a_gpu_that_is_not_seen_is_a_failure(self):
        done = call(CHECK, "--parts", "card,goldens,faults,kernels,daemon", "--bundle", self.bundle, "--out", self.out,
                    CUDA_VISIBLE_DEVICES="")
        self.assertEqual((done.returncode, done.stderr), (1, ""), done.stdout)
        rows = rows_of(self.out)
        for row in rows:
            if row["outcome"] == "passed" and row["name"] not in ("bundle", "machine", "nvcc", "nvidia-smi"):
                self.assertEqual(row["words"], "no kernel was launched", row)
        for part in ("goldens", "faults", "kernels", "daemon"):
            self.assertIn("failed", [row["outcome"] for row in rows if row["part"] == part], part)
        self.assertEqual({row["outcome"] for row in rows if row["name"] == "twill doctor"}, {"failed"})


if __name__ == "__main__":
    unittest.main()
