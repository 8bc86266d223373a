#!/usr/bin/env python3
"""Runs tools/check_includes.py on made-up trees: each rule is broken once, and the check must find each violation."""

import contextlib
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["TWILL_SOURCE_DIR"], "tools"))
import check_includes  # noqa: E402

PURE_FOLDER = check_includes.PURE[0]


class CheckIncludes(unittest.TestCase):
    def breaches(self, files, **tables):
        """Returns what the check says of a tree with these files; `tables` replace the tables of the check."""
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            for name, value in {"DETAIL_EXCEPTIONS": {}, **tables}.items():
                stack.enter_context(mock.patch.object(check_includes, name, value))
            tree = check_includes.tree(root)
            return [breach for f in tree.files for breach in tree.breaches(f)]

    def assert_breach(self, said, files, **tables):
        found = self.breaches(files, **tables)
        self.assertEqual(len(found), 1, found)
        self.assertIn(said, found[0])

    def test_arrows_that_point_the_right_way_pass(self):
        self.assertEqual(self.breaches({
            "config/base/result.hpp": "#include <string>\n",
            "gpu/device.hpp": '#include "config/base/result.hpp"\n',
            "models/model.cpp": '#include "gpu/device.hpp"\n#include <pcre2.h>\n',
            "tests/models/model_test.cpp": '#include "gpu/device.hpp"\n#include <catch2/catch.hpp>\n',
        }), [])

    def test_an_arrow_may_not_turn(self):
        self.assert_breach('gpu/device.cpp:2: may not include "models/model.hpp"', {
            "models/model.hpp": "", "gpu/device.cpp": '\n#include "models/model.hpp"\n'})

    def test_net_sees_the_port_of_actors_alone(self):
        self.assert_breach('may not include "actors/engine.hpp"', {
            "actors/engine.hpp": "", "actors/port/engine_port.hpp": "",
            "net/server.cpp": '#include "actors/port/engine_port.hpp"\n#include "actors/engine.hpp"\n'})

    def test_a_third_party_stays_in_its_folder(self):
        self.assert_breach("may not include <caf/all.hpp> (caf)", {"net/server.cpp": "#include <caf/all.hpp>\n"})
        self.assert_breach("may not include <nlohmann/json.hpp> (json)",
                           {"models/spec.cpp": "#include <nlohmann/json.hpp>\n"})

    def test_a_reader_of_private_parts_reads_those_of_one_folder(self):
        tables = {"PRIVATE_READERS": {"tools/harness": "gpu"}}
        files = {"gpu/detail/space.hpp": "", "models/detail/m.hpp": "", "tools/harness/a.cpp": '#include "gpu/detail/space.hpp"\n'}
        self.assertEqual(self.breaches(files, **tables), [])
        self.assert_breach("private to gpu/", {**files, "tools/other/b.cpp": '#include "gpu/detail/space.hpp"\n'}, **tables)
        self.assert_breach("private to models/", {**files, "tools/harness/b.cpp": '#include "models/detail/m.hpp"\n'}, **tables)

    def test_one_file_alone_may_include_a_library_that_has_a_home(self):
        self.assertEqual(self.breaches({"models/j.cpp": "#include <nlohmann/json.hpp>\n"},
                                       HOME={"json": "models/j.cpp"}), [])

    def test_the_longest_rule_wins(self):
        self.assertEqual(self.breaches({"gpu/linear/cuda/tiles.cu": "#include <cuda_runtime.h>\n",
                                        "gpu/linear/host/tiles.cpp": "#include <immintrin.h>\n"}), [])
        self.assert_breach("(kokkos)", {"gpu/linear/host/tiles.hpp": "#include <Kokkos_Core.hpp>\n"})
        self.assert_breach("(x86)", {"gpu/linear/linear.cpp": "#include <immintrin.h>\n"})

    def test_cuda_files_are_read_too(self):
        for suffix in ("cu", "cuh"):
            self.assert_breach("may not include <boost/asio.hpp> (boost)",
                               {f"gpu/linear/cuda/tiles.{suffix}": "#include <boost/asio.hpp>\n"})

    def test_fibers_belong_to_the_tests_of_cuda_kernels(self):
        fibers = "#include <boost/context/fiber.hpp>\n"
        self.assertEqual(self.breaches({"tests/gpu/cuda/emulator.cpp": fibers}), [])
        self.assert_breach("(fibers)", {"tests/net/server_test.cpp": fibers})
        self.assert_breach("(fibers)", {"net/server.cpp": fibers})
        self.assert_breach("(boost)", {"tests/gpu/cuda/emulator.cpp": "#include <boost/asio.hpp>\n"})

    def test_portable_forms_are_private_to_gpu(self):
        form = {"gpu/rows/portable/rows_portable.hpp": "#pragma once\n"}
        use = '#include "gpu/rows/portable/rows_portable.hpp"\n'
        self.assertEqual(self.breaches({**form, "tests/gpu/implementations.cpp": use}), [])
        self.assert_breach("is private to gpu/", {**form, "models/decoder.cpp": use})

    def test_paths_begin_at_the_root(self):
        self.assert_breach("is not the path of a file", {
            "gpu/device.hpp": "", "gpu/device.cpp": '#include "device.hpp"\n'})

    def test_sources_of_the_host_compiler_reach_no_kokkos(self):
        header = {"gpu/portable/launch.hpp": "#include <Kokkos_Core.hpp>\n"}
        for source in ("gpu/portable/backends.cpp", "tests/gpu/implementations.cpp", "tests/gpu/cuda/fault.cu"):
            self.assertEqual(self.breaches({**header, source: '#include "gpu/portable/launch.hpp"\n'}), [])
        self.assert_breach("tests/gpu/rows_test.cpp: may not reach Kokkos", {
            **header, "tests/gpu/rows_test.cpp": '#include "gpu/portable/launch.hpp"\n'})

    def test_a_public_header_shows_no_kokkos_also_not_through_another(self):
        self.assert_breach("gpu/linear/linear.hpp: a public header of gpu/ must not show kokkos", {
            "gpu/linear/linear.hpp": '#include "gpu/detail/launch.hpp"\n',
            "gpu/detail/launch.hpp": "#include <Kokkos_Core.hpp>\n"})

    def test_what_is_in_detail_is_private_to_its_parent(self):
        files = {"models/detail/json.hpp": "", "models/text/detail/trie.hpp": ""}
        self.assertEqual(self.breaches({
            **files,
            "models/text/tokenizer.cpp": '#include "models/detail/json.hpp"\n'
                                         '#include "models/text/detail/trie.hpp"\n',
            "tests/models/json_test.cpp": '#include "models/detail/json.hpp"\n'}), [])
        self.assert_breach('"models/detail/json.hpp" is private to models/', {
            **files, "tools/twill/doctor.cpp": '#include "models/detail/json.hpp"\n'})
        self.assert_breach('"models/text/detail/trie.hpp" is private to models/text/', {
            **files, "models/decoder/run.cpp": '#include "models/text/detail/trie.hpp"\n'})
        self.assert_breach("private to models/", {
            **files, "tests/net/json_test.cpp": '#include "models/detail/json.hpp"\n'})

    def test_backends_are_private_to_gpu(self):
        for folder in ("gpu/host", "gpu/linear/host", "gpu/linear/cuda"):
            header = folder + "/tiles.hpp"
            self.assertEqual(self.breaches({header: "", "gpu/device.cpp": f'#include "{header}"\n',
                                            "tests/gpu/linear_test.cpp": f'#include "{header}"\n'}), [])
            self.assert_breach(f'"{header}" is private to gpu/', {
                header: "", "models/run.cpp": f'#include "{header}"\n'})

    def test_an_exception_needs_no_more_than_an_entry(self):
        self.assertEqual(self.breaches(
            {"models/detail/json.hpp": "", "tests/fuzz/json.cpp": '#include "models/detail/json.hpp"\n'},
            DETAIL_EXCEPTIONS={("tests/fuzz/json.cpp", "models/detail/json.hpp"): "a reason"}), [])

    def test_a_version_macro_is_tested_in_its_home_alone(self):
        for macro, home in check_includes.VERSION_MACROS.items():
            if home:
                self.assertEqual(self.breaches({home: f"#if {macro} < 2\n#endif\n"}), [])
            self.assert_breach(f"{macro} may be tested in", {"gpu/device.cpp": f"#if {macro} < 2\n#endif\n"})

    def test_pure_folders_have_no_clock_no_threads_no_files_and_no_chance(self):
        source = PURE_FOLDER + "/choose.cpp"
        for header in sorted(check_includes.IMPURE_HEADERS) + ["sys/stat.h"]:
            self.assert_breach(f"a pure folder may not include <{header}>", {source: f"#include <{header}>\n"})
        for call in ("std::chrono::steady_clock::now()", "std::rand()", "printf(text)", "std::getenv(name)",
                     "std::time(nullptr)", "std::cerr << x"):
            self.assert_breach("a pure folder may not use", {source: f"  const auto x = {call};\n"})

    def test_pure_folders_may_count_time_and_format_text(self):
        self.assertEqual(self.breaches({PURE_FOLDER + "/choose.cpp":
                                        "#include <chrono>\n#include <cstdio>\n"
                                        "std::chrono::steady_clock::time_point t; // never now()\n"
                                        "int n = std::snprintf(text, 8, \"x\");\n"}), [])

    def test_a_long_file_is_a_breach_outside_the_tests(self):
        self.assertEqual(self.breaches({"net/server.cpp": "\n" * 500, "tests/net/server_test.cpp": "\n" * 501}), [])
        self.assert_breach("net/server.cpp: must have at most 500 lines, got 501", {"net/server.cpp": "\n" * 501})

    def test_the_tables_name_only_what_exists(self):
        with tempfile.TemporaryDirectory() as folder:
            said = "\n".join(check_includes.tree(pathlib.Path(folder)).stale_names())
        for name in list(check_includes.HOME.values()) + list(check_includes.PURE) + ["config/base"] + \
                [home for home in check_includes.VERSION_MACROS.values() if home]:
            self.assertIn(name + ", which does not exist", said)

    def test_an_exception_that_nobody_uses_is_a_breach(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(
                check_includes, "DETAIL_EXCEPTIONS", {("a.cpp", "x/detail/b.hpp"): "a reason"}):
            said = "\n".join(check_includes.tree(pathlib.Path(folder)).stale_names())
        self.assertIn('a.cpp does not include "x/detail/b.hpp"; delete its exception', said)


if __name__ == "__main__":
    unittest.main()
