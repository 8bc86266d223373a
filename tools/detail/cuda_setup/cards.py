"""The GPUs of this machine and their driver, as nvidia-smi tells them."""

import dataclasses
import re
import shutil
import subprocess

from .missing import Missing, capability, version_words

OLDEST = 80  # compute capability: kernels need cp.async and mma of 16-bit types
LEAST_DRIVERS = {12: 525, 13: 580}  # by the major version of CUDA
QUERY = "--query-gpu=index,compute_cap,driver_version,name"
INSTALL_DRIVER = "install NVIDIA's driver (Debian: apt-get install nvidia-driver, from non-free) and restart, so that nvidia-smi lists the GPU"


@dataclasses.dataclass(frozen=True)
class Card:
    index: int
    arch: int
    name: str

    @property
    def words(self) -> str:
        return f"GPU {self.index} ({self.name}, compute capability {capability(self.arch)})"


@dataclasses.dataclass(frozen=True)
class Machine:
    cards: tuple = ()
    driver: str = ""         # its own version: 580.65.06
    cuda: tuple = ()         # the newest CUDA that the driver runs: (13, 0); empty where it is not known
    fault: str = ""          # why there are no cards
    advice: str = INSTALL_DRIVER  # what to do about it here

    @property
    def usable(self) -> list:
        return [card for card in self.cards if card.arch >= OLDEST]


def ask(environ) -> Machine:
    program = shutil.which("nvidia-smi", path=environ.get("PATH"))
    if program is None:
        return Machine(fault="this machine has no NVIDIA driver: nvidia-smi is not on the PATH")

    def say(*arguments):
        try:
            done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, env=dict(environ), check=False)
            return done.returncode, (done.stdout + done.stderr).strip()
        except (OSError, subprocess.TimeoutExpired) as error:
            return 1, str(error)

    status, text = say(QUERY, "--format=csv,noheader")
    lines = [line for line in text.splitlines() if line.strip()]
    if "not a valid field" in text:  # of an old driver, such as 470
        version = (say("--query-gpu=driver_version", "--format=csv,noheader")[1].splitlines() or ["an older one"])[0].strip()
        return Machine(fault=f"the driver must be at least {min(LEAST_DRIVERS.values())}, got {version}", advice="update the driver")
    if status != 0:
        first = lines[0].strip() if lines else f"exit status {status}"
        return Machine(fault=f"nvidia-smi lists no GPU, it says \"{first}\"")
    cards, driver = [], ""
    for line in lines:
        if found := re.fullmatch(r"(\d+), (\d+)\.(\d), ([^,]+), (.*)", line.strip()):
            cards.append(Card(int(found[1]), 10 * int(found[2]) + int(found[3]), found[5]))
            driver = found[4]
    cuda = re.search(r"CUDA (?:\w+ )?Version\s*:\s*(\d+)\.(\d+)", say()[1])
    fault = "" if cards else "nvidia-smi lists no GPU"
    return Machine(tuple(cards), driver, tuple(int(part) for part in cuda.groups()) if cuda else (), fault)


def demand_usable(machine: Machine) -> None:
    if machine.fault:
        raise Missing(f"{machine.fault}: {machine.advice}")
    if not machine.usable:
        raise Missing(f"{too_old(machine)}: compute on the processor, with tools/quickstart")


def too_old(machine: Machine) -> str:
    return (f"a GPU of compute capability {capability(OLDEST)} or later is needed, found "
            f"{', '.join(card.words for card in machine.cards)}")


def demand_driver(machine: Machine, nvcc) -> None:
    """Programs of one major version of CUDA run on drivers of that version or a later one."""
    if not machine.cuda or machine.cuda[0] >= nvcc.version[0]:
        return
    least = LEAST_DRIVERS.get(nvcc.version[0])
    advice = "update the driver"
    if machine.cuda[0] in LEAST_DRIVERS:
        advice += f", or install the toolkit of CUDA {machine.cuda[0]} and name its folder with CUDA_HOME"
    raise Missing(f"the driver must be {f'at least {least}' if least else 'newer'} for programs of {nvcc.words}, got {machine.driver}, "
                  f"which runs CUDA {version_words(machine.cuda)} and older: {advice}")
