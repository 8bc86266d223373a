"""The parts that run the test programs: ops, goldens, faults and sanitize."""

import re
import shutil

from . import catch2

CASE_SECONDS = {"cuda": 60, "host": 150}
# Short cases that launch kernels of each kind, as Catch2 selects them.
SANITIZED = ("relu keeps a NaN*", "angles carry a magnitude*", "argmax takes*")
TOOLS = ("memcheck", "racecheck", "synccheck")
REFUSED = re.compile(r"Device not supported|LibraryNotLoaded|not supported on this (?:device|platform|system)", re.IGNORECASE)
FAULT_NAMED = re.compile(r"illegal|misaligned|device.{0,40}lost|out.of.bounds", re.IGNORECASE)


def ops(context) -> None:
    run_every_case(context, "test_gpu", "~[planted]")
    if path := context.program("test_cuda_kernels"):
        if program := context.run("emulated CUDA kernels", [path], CASE_SECONDS["host"]):
            context.judge("emulated CUDA kernels", program, catch2_fault(program))


def goldens(context) -> None:
    for program in ("test_models_weights", "test_actors"):
        run_every_case(context, program, "[golden]")


def run_every_case(context, program: str, spec: str) -> None:
    """One process a case, since an illegal address leaves its process without a GPU. On a GPU each must say how many kernels it
    launched, and one of them must have launched some."""
    path = context.program(program)
    names = context.cases_of(path, spec) if path else None
    if names is None:
        return
    total = {"launched": 0, "without": 0}

    def judge(name, ended):
        launched = catch2.launches(ended.output)
        fault = catch2_fault(ended)
        if not context.host and launched is None:
            fault = fault or "it does not say that its device is cuda: no line \"kernels launched on the GPU\""
        total["launched"] += launched or 0
        total["without"] += launched == 0
        words = "no kernel was launched" if launched == 0 and not context.host else ""
        context.judge(f"{program}: {name}", ended, fault, words, shown=False, launched=launched)

    context.run_cases([(name, [path, catch2.only(name)]) for name in names], CASE_SECONDS[context.device], context.at_once, judge)
    if context.host:
        return
    words = f"{total['launched']} kernels launched by {len(names)} cases, {total['without']} of which launched none"
    if total["launched"] > 0:
        context.passed(f"{program} on the GPU", words, launched=total["launched"])
    else:
        context.failed(f"{program} on the GPU", f"no kernel was launched: {words}")


def faults(context) -> None:
    if path := context.program("test_models_weights"):
        names = context.cases_of(path, "two models*")
        context.run_cases([(name, [path, catch2.only(name)]) for name in names or ()], CASE_SECONDS[context.device], 1,
                          lambda name, ended: context.judge(name, ended, catch2_fault(ended) or launch_fault(context, ended)))
    if context.host:
        context.not_run("planted fault", "it needs a GPU")
        return
    path = context.program("test_gpu")
    names = context.cases_of(path, "[planted]") if path else None
    for name in names or ():
        planted = context.run(name, [path, catch2.only(name)], CASE_SECONDS[context.device])
        if planted is None:
            return
        named = next((line for line in planted.output.splitlines() if FAULT_NAMED.search(line)), "")
        if planted.timed_out or planted.failure:
            context.failed(name, f"{planted.how_it_ended()}: {planted.last_words()}", planted.seconds)
        elif not named:
            context.failed(name, f"no line names the fault ({planted.how_it_ended()}): {planted.last_words()}", planted.seconds)
        else:
            context.passed(name, f"{planted.how_it_ended()}: {' '.join(named.split())}", planted.seconds)
        after = context.run("a process after the fault", [path, SANITIZED[0]], CASE_SECONDS[context.device])
        if after is not None:
            context.judge("a process after the fault", after, catch2_fault(after) or launch_fault(context, after))


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
