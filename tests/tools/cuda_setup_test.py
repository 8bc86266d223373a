#!/usr/bin/env python3
"""Tests what tools/build cuda and tools/quickstart --gpu do before they compile, with fakes of NVIDIA's programs on the PATH."""

import contextlib
import hashlib
import io
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest
import unittest.mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(os.environ["TWILL_SOURCE_DIR"])
sys.path.insert(0, str(ROOT / "tools/detail"))
import prepare_cuda  # noqa: E402
from cuda_setup import kokkos, toolkit  # noqa: E402

A100 = "0, 8.0, 550.54.15, NVIDIA A100-SXM4-80GB"
H100 = "1, 9.0, 550.54.15, NVIDIA H100 80GB HBM3"
T4 = "0, 7.5, 550.54.15, Tesla T4"
DRIVER_12 = "| NVIDIA-SMI 550.54.15   Driver Version: 550.54.15   CUDA Version: 12.4 |"
DRIVER_13 = "| NVIDIA-SMI 580.65.06   Driver Version: 580.65.06   CUDA Version: 13.0 |"
DRIVER_11 = "| NVIDIA-SMI 470.82.01   Driver Version: 470.82.01   CUDA Version: 11.4 |"
NO_GPU = "this machine has no NVIDIA driver: nvidia-smi is not on the PATH"
CONFIG = "#define KOKKOS_VERSION {}\n#define KOKKOS_ENABLE_CUDA\n#define KOKKOS_ARCH_{}\n"
# A fake of CMake: installs a folder at the given prefix, and logs its arguments.
CMAKE = """#!/bin/sh
echo "$@" >> "$FAKES/cmake.log"
case "$*" in
  *nvcc_wrapper*) for word; do case $word in -DCMAKE_INSTALL_PREFIX=*) echo "${word#*=}" > "$FAKES/prefix";; esac; done ;;
  *--build*) if [ -e "$FAKES/broken" ]; then echo "a.cpp:3: error: no such name"; exit 1; fi
    mkdir -p "$(cat "$FAKES/prefix")/include"
    printf '#define KOKKOS_VERSION 40703\\n#define KOKKOS_ENABLE_CUDA\\n#define KOKKOS_ARCH_AMPERE80\\n' > "$(cat "$FAKES/prefix")/include/KokkosCore_config.h" ;;
  *--preset*) mkdir -p build/cuda && touch build/cuda/build.ninja && for word; do
    case $word in -D*) name=${word%%=*}; echo "${name#-D}:STRING=${word#*=}";; esac; done > build/cuda/CMakeCache.txt ;;
esac
"""


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


class Fakes(unittest.TestCase):
    """Tests with a folder whose bin/ is the whole PATH."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        self.build = self.folder / "build/cuda"
        for name in ("mkdir", "cat", "touch"):
            (self.bin / name).symlink_to(shutil.which(name))
        script(self.bin / "cmake", CMAKE)
        script(self.bin / "g++", "#!/bin/sh\necho 12.2.0\n")
        certificate = self.folder / "ca.pem"
        certificate.touch()
        self.patch(kokkos, "has_certificates", lambda: True)
        self.environ = {"PATH": str(self.bin), "SSL_CERT_FILE": str(certificate), "HOME": str(self.folder), "FAKES": str(self.folder)}
        self.patch(toolkit, "INSTALLED", str(self.folder / "local/cuda*/bin/nvcc"))
        self.patch(kokkos, "URL", (self.folder / "nothing.tar.gz").as_uri())

    def patch(self, module, name, value):
        patcher = unittest.mock.patch.object(module, name, value)
        patcher.start()
        self.addCleanup(patcher.stop)

    def nvcc(self, version, where="bin", refuses=""):
        says = f"echo '{refuses}' >&2; exit 1" if refuses else "exit 0"
        script(self.folder / where / "nvcc", f"""#!/bin/sh
if [ "$1" = --version ]; then echo "Cuda compilation tools, release {version.rpartition('.')[0]}, V{version}"; exit 0; fi
echo "$@" >> "$FAKES/nvcc.log"
{says}
""")
        return str(self.folder / where / "nvcc")

    def cards(self, *lines, header=DRIVER_12, status=0):
        listed = "\n".join(lines)
        answers = f"echo '{listed}'; exit {status}"
        if header == DRIVER_11:  # this driver's nvidia-smi has fewer fields
            answers = """case "$*" in
  *compute_cap*) echo 'Field "compute_cap" is not a valid field to query.'; echo; exit 2 ;;
  *=driver_version\\ *) echo 470.82.01; echo 470.82.01 ;;
  *) exit 1 ;;
esac"""
        script(self.bin / "nvidia-smi", f"""#!/bin/sh
echo "$@" >> "$FAKES/nvidia-smi.log"
if [ $# = 0 ]; then echo '{header}'; exit; fi
{answers}
""")

    def installed(self, number=40703, arch="AMPERE80", name="own"):
        header = self.folder / name / "include/KokkosCore_config.h"
        header.parent.mkdir(parents=True)
        header.write_text(CONFIG.format(number, arch))
        return str(self.folder / name)

    def sources(self, version, cuda="nothing of it", name="kokkos"):
        folder = self.folder / name
        script(folder / "bin/nvcc_wrapper", "#!/bin/sh\n")
        (folder / "core/src/Cuda").mkdir(parents=True)
        (folder / "core/src/Cuda/Kokkos_Cuda.hpp").write_text(cuda)
        (folder / "CMakeLists.txt").write_text("".join(
            f"set(Kokkos_VERSION_{part} {int(number)})\n" for part, number in zip(("MAJOR", "MINOR", "PATCH"), version.split("."))))
        return str(folder)

    def prepare(self, *arguments, **environ):
        """The exit status, the lines for CMake, and the messages to the user."""
        out, said = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
            status = prepare_cuda.main([str(self.build), *arguments], {**self.environ, **environ})
        return status, out.getvalue().splitlines(), said.getvalue()

    def refusal(self, *arguments, **environ):
        status, lines, said = self.prepare(*arguments, **environ)
        self.assertEqual((status, lines), (1, []), said)
        self.assertNotIn("Traceback", said)
        return said.splitlines()[-1].removeprefix("twill: ")

    def settings(self, *arguments, **environ):
        status, lines, said = self.prepare(*arguments, **environ)
        self.assertEqual(status, 0, said)
        return lines[0], dict(line.removeprefix("-D").split("=", 1) for line in lines[1:]), said


class Nvcc(Fakes):
    def taken(self, **environ):
        return self.settings(TWILL_CUDA_ARCH="80", Kokkos_ROOT=self.folder / "own", **environ)[1]["CMAKE_CUDA_COMPILER"]

    def setUp(self):
        super().setUp()
        self.installed()

    def test_it_is_found_by_variables_then_on_the_path_then_where_it_is_installed(self):
        old = self.nvcc("12.9.86", "local/cuda-12.9/bin")
        self.assertEqual(self.taken(), old)
        new = self.nvcc("12.10.20", "local/cuda-12.10/bin")
        self.assertEqual(self.taken(), new)
        on_path = self.nvcc("12.4.131")
        self.assertEqual(self.taken(), on_path)
        own = self.nvcc("12.6.20", "own/bin")
        self.assertEqual(self.taken(CUDA_HOME=str(self.folder / "own")), own)
        self.assertEqual(self.taken(CUDA_PATH=str(self.folder / "own")), own)
        self.assertEqual(self.taken(CUDACXX=old), old)

    def test_one_that_is_named_is_taken_or_refused(self):
        self.nvcc("12.4.131")
        old, new = self.nvcc("11.8.89", "old/bin"), self.nvcc("13.0.88", "new/bin")
        script(self.bin / "other-nvcc", "#!/bin/sh\n")
        (self.bin / "nvcc-13").symlink_to(new)
        self.cards(A100)  # the card's driver runs CUDA 12
        self.assertEqual(self.taken(CUDA_HOME=str(self.folder / "new")), new)
        self.assertEqual(self.taken(CUDACXX="nvcc-13", CUDA_HOME="/nowhere"), f"{self.bin}/nvcc-13")
        self.assertEqual(self.settings(f"-DCMAKE_CUDA_COMPILER:FILEPATH={new}", Kokkos_ROOT=str(self.folder / "own"))[1]["CMAKE_CUDA_COMPILER"], new)
        advice = ": correct it, or leave it out, and the PATH and /usr/local/cuda*/bin are searched"
        by_name, by_folder = "be nvcc, by its path or by a name on the PATH", "be a folder with bin/nvcc"
        for variable, value, words in (
                ("CUDA_HOME", "/nowhere", f'{by_folder}, got "/nowhere", where there is none'),
                ("CUDA_PATH", new, f'{by_folder}, got "{new}", where there is none'),
                ("CUDACXX", "nvcc-14", f'{by_name}, got "nvcc-14", where there is none'),
                ("CUDACXX", old, f'name nvcc of CUDA 12 or 13, got "{old}", which is 11.8.89'),
                ("CUDACXX", "other-nvcc", 'name nvcc of CUDA 12 or 13, got "other-nvcc", which does not tell its version as nvcc does')):
            self.assertEqual(self.refusal(**{variable: value}), f"{variable} must {words}{advice}")
            if variable == "CUDACXX":
                self.assertEqual(self.refusal(f"-DCMAKE_CUDA_COMPILER={value}"), f"CMAKE_CUDA_COMPILER must {words}{advice}")

    def test_one_that_is_too_old_is_passed_over(self):
        self.nvcc("11.8.89")
        good = self.nvcc("12.4.131", "local/cuda-12.4/bin")
        self.assertEqual(self.taken(), good)

    def test_one_that_the_driver_runs_precedes_a_newer_one(self):
        self.nvcc("13.0.88")
        good = self.nvcc("12.4.131", "local/cuda-12.4/bin")
        self.cards(A100)
        self.assertEqual(self.taken(), good)

    def test_none_and_too_old_ones_are_refused_with_what_was_found(self):
        said = self.refusal(TWILL_CUDA_ARCH="80")
        self.assertEqual(said, "nvcc of CUDA 12 or 13 is needed, found none in CUDACXX, CUDA_HOME, CUDA_PATH, PATH and /usr/local/cuda*/bin: "
                               "install the CUDA toolkit (https://developer.nvidia.com/cuda-downloads), or name its folder with CUDA_HOME")
        old = self.nvcc("11.8.89")
        self.assertIn(f"needed, found nvcc 11.8.89 ({old}) in", self.refusal(TWILL_CUDA_ARCH="80"))
        self.cards(A100)
        self.assertTrue(self.refusal().endswith("; this machine's driver runs CUDA 12 and older"))

    def test_what_it_cannot_compile_is_told_before_anything_is_built(self):
        for words, advice in (("nvcc fatal : Unsupported gpu architecture compute_120", "leave the architecture out of TWILL_CUDA_ARCH"),
                              ("host_config.h:143:2: error: #error -- unsupported GNU version! gcc versions later than 12", "CUDAHOSTCXX=g++-12"),
                              ("gcc: No such file or directory", f"{self.bin}/g++ does not compile C++: install the whole compiler"),
                              ("cuda_runtime.h: No such file or directory: an error", "install the whole toolkit")):
            path = self.nvcc("12.4.131", refuses=words)
            said = self.refusal(TWILL_CUDA_ARCH="80")
            self.assertIn(f"nvcc 12.4.131 ({path}) does not compile for compute capability 8.0: {words}: ", said)
            self.assertIn(advice, said)

    def test_the_trial_waits_for_a_host_compiler_and_the_fetch_for_certificates(self):
        self.nvcc("12.4.131", refuses="gcc: No such file or directory")
        (self.bin / "g++").rename(self.bin / "g++-12")
        root = str(self.folder / "own")
        self.assertEqual(self.prepare("--check", TWILL_CUDA_ARCH="80", Kokkos_ROOT=root), (0, [], ""))
        self.assertFalse((self.folder / "nvcc.log").exists())
        self.assertEqual(self.refusal(TWILL_CUDA_ARCH="80", Kokkos_ROOT=root),
                         "nvcc needs a C++ compiler, and g++ is not on the PATH: apt-get install g++, or name another with CUDAHOSTCXX")
        self.assertTrue(self.refusal("--check", TWILL_CUDA_ARCH="80", CUDAHOSTCXX="g++-11").startswith(
            'CUDAHOSTCXX must be a C++ compiler, by its path or by a name on the PATH, got "g++-11", where there is none: install it'))
        with unittest.mock.patch.object(kokkos, "has_certificates", lambda: False):
            self.assertEqual(self.prepare("--check", TWILL_CUDA_ARCH="80"), (0, [], ""))
        self.assertIn("could not be fetched", self.refusal("--check", TWILL_CUDA_ARCH="80"))

    def test_the_trial_uses_the_architectures_and_the_host_compiler(self):
        self.nvcc("12.4.131")
        script(self.bin / "g++-12", "#!/bin/sh\necho 12.2.0\n")
        self.settings(TWILL_CUDA_ARCH="80,9.0", Kokkos_ROOT=str(self.folder / "own"), CUDAHOSTCXX="g++-12")
        log = (self.folder / "nvcc.log").read_text()
        for words in ("arch=compute_80,code=sm_80", "arch=compute_90,code=sm_90", f"-ccbin {self.bin}/g++-12"):
            self.assertIn(words, log)

    def test_the_compilers_are_read_in_english(self):
        script(pathlib.Path(self.nvcc("12.4.131")), """#!/bin/sh
if [ "$1" = --version ]; then echo "Cuda compilation tools, release 12.4, V12.4.131"; exit 0; fi
if [ "$LC_ALL" = C ]; then echo "gcc: No such file or directory"; else echo "gcc: Datei oder Verzeichnis nicht gefunden"; fi
exit 1
""")
        self.assertIn("install the whole compiler", self.refusal(TWILL_CUDA_ARCH="80", LC_ALL="de_DE.UTF-8"))

    def test_a_newer_one_than_ever_was_tried_is_taken_with_a_word(self):
        self.nvcc("14.1.2")
        self.assertIn("newer than CUDA 13, the newest that twill knows", self.settings(TWILL_CUDA_ARCH="80", Kokkos_ROOT=str(self.folder / "own"))[2])


class Cards(Fakes):
    def setUp(self):
        super().setUp()
        self.nvcc("12.4.131")
        self.environ["Kokkos_ROOT"] = self.installed()

    def archs(self, *arguments, **environ):
        return self.settings(*arguments, **environ)[1]["CMAKE_CUDA_ARCHITECTURES"]

    def test_architectures_are_those_of_all_cards(self):
        self.cards(A100)
        self.assertEqual(self.archs(), "80-real")
        self.cards(H100, A100, A100)
        self.assertEqual(self.archs(), "80-real;90-real")
        self.cards(T4, H100)
        _, settings, said = self.settings()
        self.assertEqual(settings["CMAKE_CUDA_ARCHITECTURES"], "90-real")
        self.assertIn("left out: GPU 0 (Tesla T4, compute capability 7.5), which is older than 8.0", said)

    def test_a_list_of_the_user_precedes_them(self):
        self.cards(A100)
        for text, wanted in (("90", "90-real"), ("8.6 sm_89", "86-real;89-real"), ("80;90,80", "80-real;90-real"), ("90-virtual", "90-virtual"),
                             ("all", "80-real;86-real;89-real;90"), ("12.0", "120-real")):
            self.assertEqual(self.archs(TWILL_CUDA_ARCH=text), wanted)
            self.assertEqual(self.archs(f"-DTWILL_CUDA_ARCH={text}", TWILL_CUDA_ARCH="86"), wanted)
            self.assertEqual(self.archs(f"-DCMAKE_CUDA_ARCHITECTURES:STRING={text}"), wanted)

    def test_what_is_no_capability_is_refused(self):
        for text in ("75", "a100", "80,", "8", "native", "80 -real", "-80", "8.0.0", "80;rm -rf", "９0", "80\n--x"):
            self.assertEqual(self.refusal(f"-DTWILL_CUDA_ARCH={text}").partition(", got")[0], "TWILL_CUDA_ARCH must be `all` or compute "
                             "capabilities from 80, such as 80 or 80,86", text)

    def test_without_a_card_the_user_must_say_for_which(self):
        advice = ": to build for the GPU of another machine, name its compute capability, as in TWILL_CUDA_ARCH=80 (80: A100, "
        self.assertIn(NO_GPU + advice, self.refusal())
        self.cards("No devices were found", status=6)
        self.assertIn('nvidia-smi lists no GPU, it says "No devices were found"' + advice, self.refusal())
        self.cards("")
        self.assertIn("nvidia-smi lists no GPU" + advice, self.refusal())
        self.cards(T4)
        self.assertIn("a GPU of compute capability 8.0 or later is needed, found GPU 0 (Tesla T4, compute capability 7.5)" + advice, self.refusal())

    def test_one_that_was_never_compiled_for_is_named(self):
        self.cards("0, 12.0, 580.65.06, NVIDIA GeForce RTX 5090", header=DRIVER_13)
        _, settings, said = self.settings()
        self.assertEqual(settings["CMAKE_CUDA_ARCHITECTURES"], "120-real")
        self.assertIn("twill was never compiled for compute capability 12.0 before this", said)

    def test_what_runs_where(self):
        for archs, arch, runs in (("80-real", 80, True), ("80-real", 86, True), ("80-real", 90, False), ("86-real", 80, False), ("80", 90, True),
                                  ("80-real;90-real", 89, True), ("90-virtual", 120, True), ("90-virtual", 89, False), ("90-real", 120, False)):
            self.assertEqual(prepare_cuda.runs_on(archs, arch), runs, (archs, arch))


class Here(Fakes):
    """With --here, a build that this machine could not run is refused."""

    def setUp(self):
        super().setUp()
        self.nvcc("12.4.131")
        self.environ["Kokkos_ROOT"] = self.installed()

    def test_each_thing_that_is_missing_has_its_own_line(self):
        install = ": install NVIDIA's driver (Debian: apt-get install nvidia-driver, from non-free) and restart, so that nvidia-smi lists the GPU"
        self.assertEqual(self.refusal("--here"), NO_GPU + install)
        self.cards("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.".replace("'", ""), status=9)
        self.assertIn('it says "NVIDIA-SMI has failed because it couldnt', self.refusal("--here"))
        self.cards(T4)
        self.assertTrue(self.refusal("--here").endswith("compute capability 7.5): compute on the processor, with tools/quickstart"))
        self.cards(A100)
        self.assertEqual(self.prepare("--here")[0], 0)
        self.assertEqual(self.refusal("--here", TWILL_CUDA_ARCH="90"),
                         'TWILL_CUDA_ARCH must fit this machine\'s GPU 0 (NVIDIA A100-SXM4-80GB, compute capability 8.0), got "90"')

    def test_a_driver_must_be_of_the_toolkits_major_version(self):
        self.nvcc("13.0.88")
        self.cards(A100)
        said = self.refusal("--here")
        self.assertEqual(said, f"the driver must be at least 580 for programs of nvcc 13.0.88 ({self.bin}/nvcc), got 550.54.15, which runs CUDA 12.4 "
                               "and older: update the driver, or install the toolkit of CUDA 12 and name its folder with CUDA_HOME")
        self.assertIn(said, self.settings()[2])  # a build for another machine continues
        self.cards(A100, header=DRIVER_13)
        self.assertEqual(self.prepare("--here")[0], 0)
        self.nvcc("12.8.61")
        self.cards(A100.replace("550.54.15", "520.61.05"), header=DRIVER_12.replace("12.4", "11.8"))
        self.assertTrue(self.refusal("--here").endswith("at least 525 for programs of nvcc 12.8.61 "
                        f"({self.bin}/nvcc), got 520.61.05, which runs CUDA 11.8 and older: update the driver"))

    def test_a_driver_that_does_not_know_compute_capabilities_is_too_old(self):
        self.cards(A100, header=DRIVER_11)
        self.assertEqual(self.refusal("--here"), "the driver must be at least 525, got 470.82.01: update the driver")
        self.assertIn("the driver must be at least 525, got 470.82.01: to build for the GPU of another machine", self.refusal())

    def test_a_driver_whose_header_is_unknown_is_taken(self):
        self.cards(A100, header="a header of another year")
        self.assertEqual(self.prepare("--here")[0], 0)

    def test_a_check_that_passes_says_nothing(self):
        self.assertEqual(self.prepare("--here", "--check")[:2], (1, []))
        self.cards(A100)
        self.assertEqual(self.prepare("--here", "--check"), (0, [], ""))


class Kokkos(Fakes):
    def setUp(self):
        super().setUp()
        self.nvcc("13.0.88")
        self.environ["TWILL_CUDA_ARCH"] = "80,90"

    def test_an_installed_one_is_taken(self):
        root = self.installed()
        for how in ({"Kokkos_ROOT": root}, {"Kokkos_ROOT": os.path.relpath(root)}):
            self.assertEqual(self.settings(**how)[1]["Kokkos_ROOT"], root)
        self.assertEqual(self.settings(f"-DKokkos_ROOT={root}", Kokkos_ROOT="/nowhere")[1]["Kokkos_ROOT"], root)

    def test_an_installed_one_that_does_not_fit_is_refused(self):
        self.assertEqual(self.refusal(Kokkos_ROOT="/nowhere"), "Kokkos_ROOT must be a folder with include/KokkosCore_config.h of an installed "
                                                               "Kokkos, got /nowhere")
        self.assertIn("must be at least 4.7.02 for CUDA 13.0, got 4.6.01, which does not compile with it: take release",
                      self.refusal(Kokkos_ROOT=self.installed(40601, name="old")))
        self.assertIn("is for GPUs of compute capability 9.0 or later, and cannot run on 8.0: build one with -DKokkos_ARCH_AMPERE80=ON",
                      self.refusal(Kokkos_ROOT=self.installed(40703, "HOPPER90", "hopper")))
        host = pathlib.Path(self.installed(name="host"))
        (host / "include/KokkosCore_config.h").write_text("#define KOKKOS_VERSION 40703\n/* #undef KOKKOS_ENABLE_CUDA */\n")
        self.assertIn("must have CUDA, and has none", self.refusal(Kokkos_ROOT=str(host)))
        # An installed version between two releases is accepted, since it has been compiled.
        self.assertEqual(self.prepare(Kokkos_ROOT=self.installed(40699, name="tree"))[0], 0)

    def test_versions_follow_the_releases_list_of_changes(self):
        for cuda, number, fits in (((12, 4), 40001, True), ((12, 4), 40000, False), ((12, 9), 40601, True), ((13, 0), 40701, False),
                                   ((13, 0), 40702, True), ((13, 0), 50000, True), ((13, 1), 40702, False), ((13, 1), 40703, True),
                                   ((13, 1), 50001, False), ((13, 1), 50002, True), ((13, 2), 50100, True), ((14, 0), 40703, True)):
            try:
                kokkos.demand_version(number, cuda, "x")
                self.assertTrue(fits, (cuda, number))
            except prepare_cuda.Missing:
                self.assertFalse(fits, (cuda, number))

    def test_sources_are_built_once_for_each_compiler_and_architecture(self):
        source = self.sources("4.7.03")
        root = self.settings("--jobs=3", TWILL_KOKKOS_SOURCE=source)[1]["Kokkos_ROOT"]
        self.assertRegex(pathlib.Path(root).name, r"^kokkos-4\.7\.03-[0-9a-f]{12}-ampere80-cuda13\.0\.88-")
        self.assertEqual(os.listdir(root), ["include"])
        log = (self.folder / "cmake.log").read_text()
        for words in ("-DKokkos_ENABLE_CUDA=ON", "-DKokkos_ARCH_AMPERE80=ON", f"-DCMAKE_CXX_COMPILER={source}/bin/nvcc_wrapper", "--parallel 3 --target install"):
            self.assertIn(words, log)
        self.assertEqual(self.settings(TWILL_KOKKOS_SOURCE=source)[1]["Kokkos_ROOT"], root)
        self.assertEqual((self.folder / "cmake.log").read_text(), log)
        others = {root, self.settings(TWILL_KOKKOS_SOURCE=source, TWILL_CUDA_ARCH="90")[1]["Kokkos_ROOT"]}
        self.nvcc("13.0.99")
        others.add(self.settings(TWILL_KOKKOS_SOURCE=source)[1]["Kokkos_ROOT"])
        pathlib.Path(source, "core/src/Cuda/Kokkos_Cuda.hpp").write_text("something new")  # the file has the same length as before
        others.add(self.settings(TWILL_KOKKOS_SOURCE=source)[1]["Kokkos_ROOT"])
        self.assertEqual(len(others), 4, others)

    def test_sources_that_would_not_compile_are_refused_at_once(self):
        self.assertIn("TWILL_KOKKOS_SOURCE must be a folder of Kokkos' sources, with CMakeLists.txt and bin/nvcc_wrapper, got /nowhere",
                      self.refusal(TWILL_KOKKOS_SOURCE="/nowhere"))
        self.assertIn("must be at least 4.7.02 for CUDA 13.0, got 4.6.01", self.refusal(TWILL_KOKKOS_SOURCE=self.sources("4.6.01", name="a")))
        self.assertIn("got 4.6.99", self.refusal(TWILL_KOKKOS_SOURCE=self.sources("4.6.99", name="b")))
        knows = self.sources("4.6.99", "#if CUDART_VERSION >= 13000\n", "c")
        self.assertEqual(self.prepare(TWILL_KOKKOS_SOURCE=knows)[0], 0)

    def test_a_build_that_fails_leaves_nothing_but_its_log(self):
        (self.folder / "broken").touch()
        said = self.refusal(TWILL_KOKKOS_SOURCE=self.sources("4.7.03"))
        log = self.folder / ".cache/twill/kokkos-cuda.log"
        self.assertEqual(said, f"Kokkos 4.7.03 did not build: a.cpp:3: error: no such name: the log is {log}")
        self.assertEqual(os.listdir(log.parent), [log.name])

    def test_the_release_is_fetched_by_its_hash(self):
        self.assertIn(f"Kokkos {kokkos.RELEASE} could not be fetched from {kokkos.URL}: ", self.refusal())
        self.assertIn(f"or its unpacked sources with TWILL_KOKKOS_SOURCE=DIR (release {kokkos.RELEASE})", self.refusal("--check"))
        archive = self.folder / "made.tar.gz"
        with tarfile.open(archive, "w:gz") as packed:
            packed.add(self.sources(kokkos.RELEASE), f"kokkos-{kokkos.RELEASE}")
        found = hashlib.sha256(archive.read_bytes()).hexdigest()
        with unittest.mock.patch.object(kokkos, "URL", archive.as_uri()):
            self.assertIn(f"must be {kokkos.SHA256}, got {found}: what came is not that release", self.refusal())
            with unittest.mock.patch.object(kokkos, "SHA256", found):
                self.assertEqual(self.prepare("--check"), (0, [], f"twill: fetching Kokkos {kokkos.RELEASE}\n"))
                root = self.settings()[1]["Kokkos_ROOT"]
        self.assertTrue(pathlib.Path(root).name.startswith(f"kokkos-{kokkos.RELEASE}-ampere80-cuda13.0.88-"), root)
        self.assertEqual(self.settings()[1]["Kokkos_ROOT"], root)

    def test_a_fetch_that_breaks_off_leaves_nothing(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(20)

            def answer():
                client, _ = server.accept()
                with client:
                    client.recv(4096)
                    client.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100\r\nhalf of a chunk")

            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            # No proxy that this machine's user has set is used.
            with unittest.mock.patch.dict(os.environ, no_proxy="*"), \
                    unittest.mock.patch.object(kokkos, "URL", f"http://127.0.0.1:{server.getsockname()[1]}/x"):
                self.assertIn("could not be fetched from http://127.0.0.1", self.refusal())
            thread.join(20)
        self.assertEqual(list((self.folder / ".cache/twill").glob("tmp*")), [])

    def test_cmake_pins_the_same_release(self):
        text = (ROOT / "tools/cmake/twill_kokkos.cmake").read_text()
        self.assertIn(f"/{kokkos.RELEASE}/kokkos-{kokkos.RELEASE}.tar.gz", text)
        self.assertEqual(re.findall("SHA256=([0-9a-f]{64})", text), [kokkos.SHA256])


class Again(Fakes):
    """The configuration of an earlier call is kept while it fits."""

    def setUp(self):
        super().setUp()
        self.nvcc("12.4.131")
        self.root = self.installed()
        self.build.mkdir(parents=True)
        self.host = f"{self.bin}/g++"
        self.configure()

    def configure(self, archs="80-real"):
        (self.build / "CMakeCache.txt").write_text(f"//a comment\nCMAKE_CUDA_COMPILER:STRING={self.bin}/nvcc\n"
                                                   f"CMAKE_CUDA_HOST_COMPILER:STRING={self.host}\nKokkos_ROOT:UNINITIALIZED={self.root}\n"
                                                   f"CMAKE_CUDA_ARCHITECTURES:STRING={archs}\nTWILL_WERROR:BOOL=OFF\n")

    def test_a_second_call_needs_no_words(self):
        how, settings, said = self.settings()
        self.assertEqual((how, settings["Kokkos_ROOT"], said), ("keep", self.root, ""))
        self.assertFalse((self.folder / "nvcc.log").exists())

    def test_other_options_configure_again_and_other_tools_afresh(self):
        self.assertEqual(self.settings("-DTWILL_WERROR=OFF")[0], "keep")
        self.assertEqual(self.settings("-DTWILL_WERROR=ON")[0], "again")
        self.assertEqual(self.settings(TWILL_CUDA_ARCH="80,90")[0], "fresh")
        self.assertEqual(self.settings(Kokkos_ROOT=self.installed(name="other"))[0], "fresh")
        self.assertEqual(self.settings(CUDACXX=self.nvcc("12.8.61", "local/cuda-12.8/bin"))[0], "fresh")

    def test_the_host_compiler_stays(self):
        script(self.bin / "g++-12", "#!/bin/sh\necho 12.3.0\n")
        self.host = f"{self.bin}/g++-12"
        for given in (["-DCMAKE_CUDA_HOST_COMPILER=g++-12"], []):
            how, settings, _ = self.settings(*given, CUDAHOSTCXX="g++" if given else "")
            self.assertEqual((how, settings["CMAKE_CUDA_HOST_COMPILER"]), ("fresh" if given else "keep", self.host))
            self.configure()
        root = self.settings(TWILL_KOKKOS_SOURCE=self.sources("4.7.03"))[1]["Kokkos_ROOT"]
        self.assertTrue(root.endswith("-cxx12.3.0"), root)

    def test_a_list_that_fits_the_card_stays(self):
        self.configure("80-real;90-real")
        self.cards(A100)
        self.assertEqual(self.settings()[0], "keep")
        self.cards("0, 8.9, 550.54.15, NVIDIA L4")
        self.assertEqual(self.settings()[0], "keep")  # machine code for 8.0 runs on this card
        self.configure("90-real")
        how, settings, _ = self.settings()
        self.assertEqual((how, settings["CMAKE_CUDA_ARCHITECTURES"]), ("fresh", "89-real"))

    def test_sources_need_not_be_named_again(self):
        root = self.settings(TWILL_KOKKOS_SOURCE=self.sources("4.7.03"))[1]["Kokkos_ROOT"]
        self.root = root
        self.configure()
        self.assertEqual(self.settings()[:2], ("keep", {"CMAKE_CUDA_COMPILER": f"{self.bin}/nvcc", "CMAKE_CUDA_HOST_COMPILER": self.host,
                                                        "CMAKE_CUDA_ARCHITECTURES": "80-real",
                                                        "Kokkos_ROOT": root}))
        self.assertEqual(self.settings(TWILL_CUDA_ARCH="80,90")[1]["Kokkos_ROOT"], root)
        self.assertIn("could not be fetched", self.refusal(TWILL_CUDA_ARCH="90"))  # that Kokkos has code for 8.0 beside that for 9.0
        self.nvcc("12.8.61")
        self.assertIn("could not be fetched", self.refusal())  # another compiler needs another Kokkos

    def test_a_list_that_is_cmakes_own_word_is_not_kept(self):
        for words in ("native", "all-major", "OFF", ""):
            self.configure(words)
            self.assertIn("TWILL_CUDA_ARCH=80", self.refusal())

    def test_a_kokkos_that_is_gone_is_not_asked_for(self):
        shutil.rmtree(self.root)
        for arguments in ([], ["--check"]):  # --check also says what led to its failure
            status, _, said = self.prepare(*arguments)
            self.assertEqual(status, 1)
            self.assertIn("not taken again: Kokkos_ROOT must be", said)
            self.assertIn("could not be fetched", said)


class Scripts(Fakes):
    """tools/build and tools/quickstart themselves, in a copy of tools/."""

    def setUp(self):
        super().setUp()
        for name in ("bash", "dirname", "sed", "grep", "awk", "nproc", "rm", "mktemp", "sleep", "head", "tail", "id", "env", "true", "seq", "tr"):
            (self.bin / name).symlink_to(shutil.which(name))
        script(self.bin / "python3", f'#!/bin/sh\n[ "$1" = -m ] || exec "{sys.executable}" "$@"\n')
        script(self.bin / "ninja", '#!/bin/sh\necho "$@" >> "$FAKES/ninja.log"\ncase "$*" in *-n*) ;; *) echo "[1/1] Linking";; esac\n')
        script(self.bin / "dpkg-query", '#!/bin/sh\nfor one in $(cat "$FAKES/packages"); do echo "installed $one"; done\n')
        script(self.bin / "apt-cache", "#!/bin/sh\n")
        (self.folder / "tools").mkdir()
        for name in ("build", "quickstart"):
            shutil.copy(ROOT / "tools" / name, self.folder / "tools" / name)
        shutil.copytree(ROOT / "tools/detail", self.folder / "tools/detail", ignore=shutil.ignore_patterns("__pycache__"))
        # Like the modules in this process, the copy must find no toolkit of this machine and no network.
        for name, module, constant in (("toolkit", toolkit, "INSTALLED"), ("kokkos", kokkos, "URL")):
            path = self.folder / f"tools/detail/cuda_setup/{name}.py"
            text, count = re.subn(rf"(?m)^{constant} = .*$", f"{constant} = {getattr(module, constant)!r}", path.read_text())
            self.assertEqual(count, 1, constant)
            path.write_text(text)
        listed = re.search(r"^packages=\((.*?)\)", (ROOT / "tools/build").read_text(), re.MULTILINE | re.DOTALL).group(1)
        (self.folder / "packages").write_text(listed)
        xgrammar = re.search(r"prefix=\$cache/(xgrammar-\S+?)\$key", (ROOT / "tools/build").read_text()).group(1)
        done = self.folder / f".cache/twill/{xgrammar}12.2.0/.done"
        done.parent.mkdir(parents=True)
        done.touch()

    def call(self, *command, **environ):
        done = subprocess.run(["bash", f"tools/{command[0]}", *command[1:]], cwd=self.folder, env={**self.environ, **environ}, capture_output=True,
                              text=True, timeout=60, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout + done.stderr

    def test_quickstart_ends_with_the_first_thing_that_is_missing(self):
        def said():
            status, text = self.call("quickstart", "--gpu", "--once")
            self.assertEqual(status, 1, text)
            return text

        self.assertEqual(said(), f"twill: {NO_GPU}: install NVIDIA's driver (Debian: apt-get install nvidia-driver, from non-free) and restart, "
                                 "so that nvidia-smi lists the GPU\n")
        self.cards(A100)
        self.assertEqual(said(), "twill: nvcc of CUDA 12 or 13 is needed, found none in CUDACXX, CUDA_HOME, CUDA_PATH, PATH and "
                                 "/usr/local/cuda*/bin: install the CUDA toolkit (https://developer.nvidia.com/cuda-downloads), or name its folder "
                                 "with CUDA_HOME; this machine's driver runs CUDA 12 and older\n")
        self.nvcc("12.4.131", "local/cuda-12.4/bin")
        missing = f"[Errno 2] No such file or directory: '{self.folder}/nothing.tar.gz'"
        self.assertEqual(said(), f"twill: fetching Kokkos {kokkos.RELEASE}\n"
                                 f"twill: nvcc 12.4.131 ({self.folder}/local/cuda-12.4/bin/nvcc), for compute capability 8.0\n"
                                 f"twill: Kokkos {kokkos.RELEASE} could not be fetched from {kokkos.URL}: {missing}: fetch it where there is a "
                                 f"network, {kokkos.ELSE}\n")
        self.assertFalse((self.folder / "cmake.log").exists())

    def test_quickstart_starts_the_daemon_on_the_gpu(self):
        self.nvcc("12.4.131")
        self.cards(A100)
        (self.folder / "tools/detail/fetch_default_model.py").write_text("")
        script(self.folder / "build/cuda/bin/twill", '#!/bin/sh\necho "$@" >> "$FAKES/twill.log"\n[ "$1" = default-model ] && echo a.gguf\nexit 0\n')
        script(self.folder / "build/cuda/bin/twilld", '#!/bin/sh\necho "$@" >> "$FAKES/twilld.log"\n'
                                                      'while [ $# -gt 1 ]; do shift; done\necho 127.0.0.1:1 > "$1"\nexec sleep 30\n')
        status, said = self.call("quickstart", "--gpu", "--once", "--listen", "127.0.0.1:0", Kokkos_ROOT=self.installed())
        self.assertEqual(status, 0, said)
        self.assertRegex((self.folder / "twilld.log").read_text(), "^--model a.gguf --set device.kind=cuda --listen 127.0.0.1:0 --address-file ")
        self.assertIn("chat --url ws://127.0.0.1:1 ", (self.folder / "twill.log").read_text())
        self.assertRegex((self.folder / "ninja.log").read_text(), r"-C build/cuda .*twilld twill\n")
        self.assertIn("the GPU computed this reply", said)
        # The script has checked this machine twice: before it fetched anything, and when all packages were installed.
        self.assertEqual((self.folder / "nvcc.log").read_text().count("-c "), 2)
        self.assertEqual((self.folder / "nvidia-smi.log").read_text().count("compute_cap"), 2)
        # If the daemon ends, its own message says why, and the script fails.
        script(self.folder / "build/cuda/bin/twilld", "#!/bin/sh\necho no kernels for it >&2\nexit 1\n")
        status, said = self.call("quickstart", "--gpu", "--once", "--listen", "127.0.0.1:0")
        self.assertEqual(status, 1, said)
        self.assertIn("no kernels for it\ntwill: twilld ended before it was ready", said)

    def test_build_cuda_configures_builds_and_says_what_is_next(self):
        self.nvcc("12.4.131")
        self.cards(A100)
        root = self.installed()
        status, said = self.call("build", "cuda", f"-DKokkos_ROOT={root}", "-DTWILL_WERROR=ON")
        self.assertEqual(status, 0, said)
        configured = (self.folder / "cmake.log").read_text()
        for words in ("--preset cuda", f"-DCMAKE_CUDA_COMPILER={self.bin}/nvcc", "-DCMAKE_CUDA_ARCHITECTURES=80-real", f"-DKokkos_ROOT={root}",
                      "-DTWILL_WERROR=ON"):
            self.assertIn(words, configured)
        self.assertRegex((self.folder / "ninja.log").read_text(), r"-j \d+ twilld twill twill-bench .*test_gpu test_cuda_kernels")
        self.assertIn("tools/quickstart --gpu streams a reply", said)
        self.assertIn("TWILL_TEST_DEVICE=cuda ctest --test-dir build/cuda -R '^(gpu|cuda_kernels|models_weights|actors)$'", said)
        self.assertIn("tools/gpu-bundle and then tools/gpu-check", said)
        self.assertFalse((self.folder / "build/release").exists())
        # A second call configures nothing again; a call for another GPU configures everything.
        status, said = self.call("build", "cuda", "twilld")
        self.assertEqual((status, (self.folder / "cmake.log").read_text()), (0, configured), said)
        (self.folder / "build/cuda/CMakeFiles").mkdir()
        status, said = self.call("build", "cuda", "twilld", TWILL_CUDA_ARCH="90")
        self.assertEqual(status, 0, said)
        self.assertIn("-DCMAKE_CUDA_ARCHITECTURES=90-real", (self.folder / "cmake.log").read_text().removeprefix(configured))
        self.assertFalse((self.folder / "build/cuda/CMakeFiles").exists())

    def test_build_cuda_without_a_gpu_asks_for_an_architecture(self):
        self.nvcc("12.4.131")
        status, said = self.call("build", "cuda")
        self.assertEqual((status, said.count("\n")), (1, 1), said)
        self.assertIn("TWILL_CUDA_ARCH=80", said)

    def test_packages_are_installed_whatever_language_apt_speaks(self):
        self.nvcc("12.4.131")
        self.cards(A100)
        listed = self.folder / "packages"
        listed.write_text(listed.read_text().replace(" ninja-build", ""))
        script(self.bin / "id", "#!/bin/sh\necho 0\n")
        script(self.bin / "apt-cache", '#!/bin/sh\ncase ${LC_ALL:-$LANG} in C) word=Candidate ;; *) word=Installationskandidat ;; esac\n'
                                       'echo "$2:"\necho "  $word: 1.0-1"\n')
        script(self.bin / "apt-get", '#!/bin/sh\necho "$@" >> "$FAKES/apt.log"\n')
        status, said = self.call("build", "cuda", "twilld", Kokkos_ROOT=self.installed(), LANG="de_DE.UTF-8")
        self.assertEqual(status, 0, said)
        self.assertRegex((self.folder / "apt.log").read_text(), r"install .* ninja-build .*ccache")

    def test_unknown_options_are_refused(self):
        status, said = self.call("build", "cuda", "--arch")
        self.assertEqual(status, 2)
        self.assertIn("unknown option --arch", said)
        for option in ("--here", "--checked"):
            status, said = self.call("build", "release", option, "twilld")
            self.assertEqual((status, said), (2, f"twill: {option} is for the preset cuda, got the preset release\n"))


if __name__ == "__main__":
    unittest.main()
