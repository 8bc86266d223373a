#!/usr/bin/env python3
"""The files of the chat page, without a browser: what they load, what they must not hold, how large they are."""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

ROOT = pathlib.Path(os.environ.get("TWILL_SOURCE_DIR") or pathlib.Path(__file__).resolve().parents[2])
PAGE = ROOT / "net" / "page"
FILES = {path.name: path.read_text(encoding="utf-8") for path in PAGE.iterdir()}
SCRIPTS = {name: text for name, text in FILES.items() if name.endswith(".js")}
NODE = shutil.which("node")


class PageFiles(unittest.TestCase):
    def test_the_first_load_is_small(self):
        self.assertLess(sum(len(text.encode()) for text in FILES.values()), 150_000)

    def test_every_file_is_embedded(self):
        listed = re.search(r"twill_embed_page\(([^)]*)\)", (ROOT / "net/CMakeLists.txt").read_text())[1].split()[2:]
        self.assertEqual(sorted(listed), sorted(FILES))

    def test_nothing_leads_to_another_server(self):
        for name, text in FILES.items():
            found = [url for url in re.findall(r"""["'(](?:https?:)?//[^"'\s)]+""", text) if "www.w3.org/2000/svg" not in url]
            self.assertEqual(found, [], name)

    def test_addresses_are_relative(self):
        for name, text in FILES.items():
            self.assertEqual(re.findall(r"""(?:src|href|from|import|action)\s*=?\s*["']/[^"']*""", text), [], name)

    def test_the_policy_needs_no_exception(self):
        html = FILES["index.html"]
        self.assertNotRegex(html, r"<style|\sstyle=|\son\w+=|javascript:")
        self.assertEqual(re.findall(r"<script[^>]*>([^<]*)</script>", html), [""])
        for name, text in SCRIPTS.items():
            code = re.sub(r"//.*|/\*.*?\*/", "", text)
            self.assertNotRegex(code, r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|"
                                      r"createContextualFragment|DOMParser|srcdoc|setAttribute\(\"style", name)

    def test_all_modules_are_loaded_at_once(self):
        imported = {name for text in SCRIPTS.values() for name in re.findall(r'from "\./([\w.]+)"', text)}
        preloaded = set(re.findall(r'modulepreload" href="page/([\w.]+)"', FILES["index.html"]))
        self.assertEqual(preloaded, imported)
        self.assertEqual(imported | {"chat.js"}, set(SCRIPTS))

    @unittest.skipIf(NODE is None, "node is not installed")
    def test_modules_parse(self):
        for name, text in SCRIPTS.items():
            checked = subprocess.run([NODE, "--check", "--input-type=module"], input=text, text=True, capture_output=True)
            self.assertEqual(checked.returncode, 0, f"{name}: {checked.stderr}")

    @unittest.skipIf(NODE is None, "node is not installed")
    def test_text_becomes_data_as_it_should(self):
        run = subprocess.run([NODE, "--no-warnings", ROOT / "tests/page/markdown_test.mjs", PAGE], text=True, capture_output=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)


if __name__ == "__main__":
    unittest.main()
