"""The command line and the output of Catch2 2 and 3: the names of test cases, one case as an argument, and what a run said."""

import re

LAUNCHED = re.compile(r"kernels launched on the GPU: (\d+)")
SUCCESS = re.compile(r"All tests passed|\b[1-9]\d* passed")


def listing(program: str, spec: str) -> list:
    """The commands that print a spec's test cases, one a line: Catch2 2's, then Catch2 3's."""
    return [[program, "--list-test-names-only", spec], [program, "--list-tests", "--verbosity", "quiet", spec]]


def names_in(output: str) -> list:
    """The test cases of a listing, each once. A line that could be no name is left out."""
    names = []
    for line in output.splitlines():
        name = line.strip()
        if name.startswith('"') and name.endswith('"'):  # as Catch2 2 prints a name that begins with #
            name = name[1:-1]
        if name and not LAUNCHED.search(name) and name not in names:
            names.append(name)
    return names


def only(name: str) -> str:
    """The argument that selects the test case of this name alone."""
    return re.sub(r'([\\,\[\]"])', r"\\\1", name)


def checked_nothing(output: str) -> bool:
    """Whether a run had no assertion: Catch2 passes a test case none of whose sections has the name that was asked for."""
    return re.search(r"assertions: - none -|No assertions", output) is not None


def launches(output: str) -> int:
    """How many kernels a test program says it launched on the GPU. One that opened no GPU says nothing, which is 0."""
    found = LAUNCHED.findall(output)
    return int(found[-1]) if found else 0
