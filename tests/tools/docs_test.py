#!/usr/bin/env python3
"""Runs tools/check_docs.py over the tree and over an installed one, and on made-up pages that name what is not there."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

from programs import BIN, SOURCE, run, scratch

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SOURCE, "tools"))
sys.path.insert(0, os.path.join(SOURCE, "tools/package"))
import check_docs  # noqa: E402
import install_docs  # noqa: E402

ROOT = pathlib.Path(SOURCE)
PROGRAMS = check_docs.Programs(pathlib.Path(BIN))
ROUTES = check_docs.read_routes((ROOT / "net/endpoints.cpp").read_text())


def faults_of(text, programs=PROGRAMS):
    return list(check_docs.faults_of_page(ROOT / "made_up.md", text, programs, ROUTES))


class Checker(unittest.TestCase):
    def test_what_is_there_is_fine(self):
        self.assertEqual(faults_of("[a](README.md) [b](README.md#what-runs) [c](https://example.com/x) [d](config/README.md#adding-a-key)\n"
                                   "`twill chat --prompt TEXT`, `twilld --set kv.memory=2GiB --set models.a.path=x`, `/v1/files`, `POST /v1/batches`\n"
                                   "`kv.type`, `twilld.toml`, `/etc/twill`, `/help`, `GET /v1/files/*`, `/page/*`, `twill models pull default`\n"
                                   "```sh\nfor x in 1; do twill key new $x | tail -n 1; done  # twill nope\ncurl -s http://127.0.0.1:8080/v1/models\n"
                                   "TWILL_URL=x sudo -u me twill status --quiet && twill-bench --base-url x \\\n  --num-prompts 3\n```\n"), [])

    def test_each_kind_of_fault_is_found(self):
        for text, words in (("[a](none.md)", "the link none.md leads nowhere"), ("[a](README.md#none)", "names no heading"),
                            ("[`a`](none.md)", "leads nowhere"), ("`twill caht`", "`twill` has no command caht"),
                            ("`twill models pul x`", "no command pul"), ("`twill chat --modle x`", "no option --modle"),
                            ("`twilld --set kv.memry=1`", "no key kv.memry"), ("`kv.memry`", "no key kv.memry"),
                            ("`kv.memry = 1`", "no key kv.memry"), ("`/v1/videos`", "no route /v1/videos"),
                            ("`PUT /health`", "no route PUT /health"), ("```\n$ twill-bench --rte 3\n```\n", "no option --rte"),
                            ("| a |\n|---|\n| `x` |\n| `y` |\n| `x` |\n", "two rows for `x`"),
                            ("```sh\necho $(twill sttus)\n```\n", "no command sttus"),
                            ("```\ncurl http://localhost:8080/v1/moderations\n```\n", "no route /v1/moderations")):
            found = faults_of(text)
            self.assertEqual(len(found), 1, (text, found))
            self.assertIn(words, found[0])

    def test_functions_of_a_table_are_in_its_files(self):
        table = "| file | functions | x |\n|---|---|---|\n| `gpu/device.hpp`, `gpu/tensor.hpp`; `gpu/device.cpp` | `{}` | `nothing_of_it` |\n"
        self.assertEqual(list(check_docs.absent_names(table.format("device"), ROOT)), [])
        self.assertEqual(list(check_docs.absent_names(table.format("view_2d"), ROOT)), ["there is no view_2d in gpu/device.cpp"])
        self.assertEqual(list(check_docs.absent_names(table.replace("functions", "what").format("view_2d"), ROOT)), [])

    def test_first_cells_of_a_folder_s_tables_name_what_is_there(self):
        table = "| file | what |\n|---|---|\n| {} | `not_looked_at` |\n"
        known = check_docs.identifiers(ROOT)

        def faults(cell, page="actors/README.md"):
            return list(check_docs.absent_first_cells(ROOT / page, table.format(cell), ROOT, known))

        there = "`kv/`, `step_plan`, `batcher_core`, `detail/message_probe`, `gpu/device.cpp`, `session/session_core.*`"
        others = "`kv.memory`, `/v1/batches`, `--set`, `NAME_policy.hpp`, `decode_KIND`, `twill_requests`, two words, `a b`"
        self.assertEqual(faults(there), [])
        self.assertEqual(faults(others), [])
        self.assertEqual(faults("`batcher/batcher_core.cpp`", "actors/kv/README.md"), [])
        for name in ("session_coer", "kvv/", "detail/message_prob", "session/none.*", "device_none.cpp"):
            found = faults(f"`step_plan`, `{name}`")
            self.assertEqual(len(found), 1, (name, found))
            self.assertIn(name, found[0])

    def test_links_need_no_program(self):
        self.assertEqual(faults_of("[a](none.md) `twill caht`", None), ["the link none.md leads nowhere"])

    def test_a_link_to_what_is_not_installed_becomes_its_words(self):
        page = "[a](../../config/reference.md#kv) [b](../../README.md) ([c](../../gpu/README.md)) ([d](x.md)) [e](https://x.y) [f](#g)\n```\n[b](../README.md)\n```\n"
        self.assertEqual(install_docs.rewrite(page, "config/guides/x.md", "guides/x.md"),
                         "[a](../reference.md#kv) b ([d](x.md)) [e](https://x.y) [f](#g)\n```\n[b](../README.md)\n```\n")


#: Text that shows that a file knows CUDA, and the files that may.
KNOWS_CUDA = re.compile(r'Kokkos::Cuda|KOKKOS_ENABLE_CUDA|TWILL_CUDA|open_cuda_space|"cuda"|\bor cuda\b|__CUDA\w+__|__HIPCC__')
CUDAS_OWN = re.compile(r"(^|/)cuda/|^tools/gpu-|^tools/detail/|^tests/(actors|models|tools)/")


class Documentation(unittest.TestCase):
    def test_the_page_of_backends_names_all_that_one_brings_and_all_that_knows_cuda(self):
        page = (ROOT / "gpu/portable/README.md").read_text()
        named = set(check_docs.SPAN.findall(page))
        functions = {name for _, names in check_docs.function_rows(page) for name in names}

        def text(name):
            return (ROOT / "gpu/detail" / name).read_text()

        def body(name, struct):
            return re.sub(r"//.*", "", re.search(rf"(?ms)^struct {struct} \{{(.*?)^\}};", text(name))[1])

        members = {"space": re.findall(r"virtual [^;{~]*?(\w+)\(", text("space.hpp")),
                   "space_facts": re.findall(r"(\w+)(?: = [^;,]*)?[;,]", body("space.hpp", "space_facts")),
                   "chip_kind": re.findall(r"(\w+)(?:\)\([^;]*)?;", body("space.hpp", "chip_kind")),
                   "transfer_backend": re.findall(r"(\w+)(?:\)\([^;]*)?;", body("transfer_backend.hpp", "transfer_backend")),
                   "probe_backend": re.findall(r"\(\*(\w+)\)\(", body("probe_backend.hpp", "probe_backend")),
                   "op_backends": re.findall(r"const (\w+_backend)\*", body("op_backends.hpp", "op_backends"))}
        members["launcher"] = re.findall(r"static (?:void|std::uint64_t) (\w+)\(", (ROOT / "gpu/portable/launch.hpp").read_text().split("private:")[0])
        for struct, names in members.items():
            self.assertGreater(len(names), 2, struct)
            self.assertEqual(set(names) - functions, set(), struct)
        for top in check_docs.TOPS:
            for path in (ROOT / top).rglob("*"):
                name = str(path.relative_to(ROOT))
                if path.suffix in (".cpp", ".hpp", ".cmake", ".py", ".txt") and not CUDAS_OWN.search(name):
                    if KNOWS_CUDA.search(path.read_text(errors="replace")):
                        self.assertTrue(name in named, f"{name} knows CUDA, so another backend changes it: the page must name it")

    def test_the_tree_names_nothing_that_is_not_there(self):
        self.assertEqual(list(check_docs.faults_below(ROOT, ROOT, PROGRAMS)), [])

    def test_pages_and_messages_of_the_programs_name_nothing_that_is_not_there(self):
        self.assertEqual(list(check_docs.faults_of_texts(ROOT, PROGRAMS)), [])

    def test_installed_pages_lead_to_installed_pages(self):
        with scratch() as folder:
            done = subprocess.run(["cmake", "--install", os.path.dirname(BIN), "--prefix", folder], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            docs = pathlib.Path(folder) / "share/doc/twill"
            pages = {str(page.relative_to(docs)) for page in check_docs.pages_below(docs)}
            self.assertLessEqual({"README.md", "guides/team.md", "reference.md", "operators.md", "clients.md"}, pages)
            self.assertEqual(list(check_docs.faults_below(docs, ROOT, PROGRAMS)), [])
            # Links lead from the first page to all others.
            found, unread = set(), ["README.md"]
            while unread:
                page = unread.pop()
                if page in pages - found:
                    found.add(page)
                    for target in check_docs.LINK.findall((docs / page).read_text()):
                        unread.append(os.path.normpath(os.path.join(os.path.dirname(page), target.partition("#")[0])))
            self.assertEqual(pages - found, set())

    def test_the_table_of_commands_has_every_command(self):
        for program, page in (("twill", "tools/README.md"), ("twill-bench", "tools/twill-bench/README.md")):
            table = set(re.findall(r"(?m)^\| `([a-z-]+)", (ROOT / page).read_text()))
            self.assertEqual(set(PROGRAMS.roots[program].commands) - table, set(), page)

    def test_tables_of_toml_are_configurations(self):
        for page in check_docs.pages_below(ROOT):
            for language, block in check_docs.FENCE.findall(page.read_text()):
                if language == "toml":
                    with scratch() as folder:
                        path = os.path.join(folder, "twilld.toml")
                        pathlib.Path(path).write_text(block)
                        done = run("twilld", "--print-config", "--config", path)
                    self.assertEqual(done.returncode, 0, f"{page}: {done.stderr}")

    def test_what_packages_say_of_themselves_is_served(self):
        text = (ROOT / "tools/package/pack.cmake").read_text()
        protocols = {"Anthropic": "/v1/messages", "Ollama": "/api/chat", "OpenAI": "/v1/chat/completions"}
        for name, path in protocols.items():
            if name in text:
                self.assertTrue(check_docs.is_route(ROUTES, "POST", path), f"{name}'s {path}")


if __name__ == "__main__":
    unittest.main()
