"""The parts that run the test programs: ops, goldens, faults and sanitize."""

import re
import shutil

from . import catch2

CASE_SECONDS = {"cuda": 60, "host": 150}
# Short cases of test_gpu, as Catch2 selects them, that launch kernels of each kind.
SANITIZED = ("angles carry a magnitude*", "head_norm normalises*", "rotary and the KV store*", "an embedding may be added*",
             "argmax takes*", "ties at a top_k*", "rows may be strided*", "every backend's own table*", "attention over several chunks*", "4-bit KV comes back*")
# The test case of test_models_weights that has a section for each golden folder.
FAMILIES = "each family's folder gives the reference's logits and greedy tokens"
# What a process logs that Kokkos ends, before its exit status 1 (gpu/detail/kokkos_abort.cpp).
LOST = "the device is lost: a kernel failed on the GPU"
TOOLS = ("memcheck", "racecheck", "synccheck")
REFUSED = re.compile(r"Device not supported|LibraryNotLoaded|not supported on this (?:device|platform|system)", re.IGNORECASE)


def ops(context) -> None:
    run_every_case(context, "test_gpu", "~[planted]")
    if path := context.program("test_cuda_kernels"):
        if program := context.run("emulated CUDA kernels", [path], CASE_SECONDS["host"]):
            context.judge("emulated CUDA kernels", program, catch2_fault(program))


def goldens(context) -> None:
    folder = context.root / "tests/golden"
    families = sorted(str(path.parent.relative_to(folder)) for path in folder.glob("**/golden.json"))
    run_every_case(context, "test_models_weights", "[golden]", {FAMILIES: families})
    run_every_case(context, "test_actors", "[golden]")


def run_every_case(context, program: str, spec: str, sections=None) -> None:
    """One process a case, since an illegal address leaves its process without a GPU; of a case that `sections` names, one for each
    section. A case may test no device; together they must have launched kernels on the GPU."""
    path = context.program(program)
    names = context.cases_of(path, spec) if path else None
    if names is None:
        return
    launched, without, runs = {}, [], []
    for name in names:
        command = [path, catch2.only(name)]
        parts = (sections or {}).get(name, [])
        runs += [(f"{name}: {part}", [*command, "-c", part]) for part in parts] or [(name, command)]

    def judge(name, ended):
        launched[name] = catch2.launches(ended.output)
        fault, words = catch2_fault(ended), ""
        if "-c" in ended.command and catch2.checked_nothing(ended.output):
            fault = fault or "the test case has no such section"
        if not context.host and ended.passed and not fault and launched[name] == 0:
            without.append(name)
            words = "no kernel was launched"
        context.judge(f"{program}: {name}", ended, fault, words, shown=False, launched=launched[name])

    context.run_cases(runs, CASE_SECONDS[context.device], context.at_once, judge)
    if context.host:
        return
    total = sum(launched.values())
    words = f"{total} kernels launched by {len(launched)} cases, {len(without)} of which passed without any"
    if total > 0:
        context.passed(f"{program} on the GPU", words, launched=total, without=without)
    else:
        context.failed(f"{program} on the GPU", f"no kernel was launched: {words}", without=without)


def faults(context) -> None:
    """The planted cases pass where the fault is an error of the GPU's device, or ends the process as the daemon's would end."""
    for program, spec in (("test_models_weights", "two models*"), ("test_gpu", "[planted]"), ("test_gpu", SANITIZED[0])):
        if context.host and program == "test_gpu":
            context.not_run(f"{program} {spec}", "it needs a GPU")
            continue
        path = context.program(program)
        names = context.cases_of(path, spec) if path else None
        context.run_cases([(name, [path, catch2.only(name)]) for name in names or ()], CASE_SECONDS[context.device], 1,
                          lambda name, ended, planted=spec == "[planted]": judge_fault(context, name, ended, planted))


def judge_fault(context, name: str, ended, planted: bool) -> None:
    if planted and ended.status == 1 and LOST in ended.output:
        context.passed(name, "Kokkos met the fault; the process ended with one line", ended.seconds)
    else:
        context.judge(name, ended, catch2_fault(ended) or launch_fault(context, ended))


def sanitize(context) -> None:
    sanitizer = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    if context.host or sanitizer is None:
        for tool in TOOLS:
            context.not_run(tool, "it needs a GPU" if context.host else "compute-sanitizer is not on this machine")
        return
    path = context.program("test_gpu")
    if path is None:
        return

    def judge(name, ended):
        if REFUSED.search(ended.output):
            context.not_run(name, next(line for line in ended.output.splitlines() if REFUSED.search(line)))
        else:
            context.judge(name, ended, catch2_fault(ended) or launch_fault(context, ended))

    context.run_cases([(f"{tool} of {case}", [sanitizer, "--tool", tool, "--error-exitcode", "9", path, case])
                       for tool in TOOLS for case in SANITIZED], CASE_SECONDS[context.device], context.at_once, judge)


def launch_fault(context, ended) -> str:
    """Why a run that must have used the GPU counts as failed; empty where it used it, or on the host."""
    return "" if context.host or catch2.launches(ended.output) else "no kernel was launched"


def catch2_fault(ended) -> str:
    """Why a run with exit status 0 counts as failed: Catch2 2 gives it too where no test case has the name."""
    return "" if catch2.SUCCESS.search(ended.output) else f"no test case ran: {ended.last_words()}"
