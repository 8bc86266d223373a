#!/usr/bin/env python3
"""The files of the pages, without a browser: what they load, what they must not hold, how large they are."""

import html.entities
import json
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
PAGES = {name: text for name, text in FILES.items() if name.endswith(".html")}


def imports(name):
    """A script or style and all that it needs."""
    found, unread = set(), [name]
    while unread:
        one = unread.pop()
        if one not in found:
            found.add(one)
            unread += re.findall(r'''(?:from|@import) "\./([\w.]+)"''', FILES[one])
    return found


def asked_for(page):
    """What a page asks for: itself, and bundles and pictures."""
    return {page, *re.findall(r'(?:src|href)="page/([\w.]+)"', PAGES[page])}


def asked_for_later(page):
    """The bundles that its scripts ask for when they need them."""
    return {name for one in first_load(page) for name in re.findall(r'\bimport\("\./([\w.]+)"\)', FILES[one])}


def first_load(page):
    """All files that a page is made of."""
    return set().union(*map(imports, asked_for(page)))


def embedded(kind):
    """What net/CMakeLists.txt embeds as it is (FILES), or with its imports (BUNDLES)."""
    call = re.search(r"twill_embed_page\(([^)]*)\)", (ROOT / "net/CMakeLists.txt").read_text())[1]
    return set(re.search(kind + r"((?:\s+[\w.]+\.\w+)+)", call)[1].split())


class PageFiles(unittest.TestCase):
    def test_the_first_load_is_small(self):
        for page in PAGES:
            self.assertLess(sum(len(FILES[name].encode()) for name in first_load(page)), 150_000, page)

    def test_what_pages_ask_for_is_embedded(self):
        needed = set().union(*map(asked_for, PAGES), *map(asked_for_later, PAGES))
        self.assertEqual(embedded("BUNDLES"), {name for name in needed if name.endswith((".js", ".css"))})
        self.assertLessEqual(needed, embedded("FILES") | embedded("BUNDLES"))

    def test_a_page_asks_for_one_script_and_one_style(self):
        for page in PAGES:
            self.assertEqual(sorted(name.split(".")[-1] for name in asked_for(page)), ["css", "html", "js", "svg"], page)

    def test_nothing_leads_to_another_server(self):
        for name, text in FILES.items():
            found = [url for url in re.findall(r"""["'(](?:https?:)?//[^"'\s)]+""", text) if "www.w3.org/" not in url]  # names of formats
            self.assertEqual(found, [], name)

    def test_addresses_are_relative(self):
        for name, text in FILES.items():
            self.assertEqual(re.findall(r"""(?:src|href|from|import|action)\s*=?\s*["']/[^"']*""", text), [], name)

    def test_the_policy_needs_no_exception(self):
        for text in PAGES.values():
            self.assertNotRegex(text, r"<style|\sstyle=|\son\w+=|javascript:")
            self.assertEqual(re.findall(r"<script[^>]*>([^<]*)</script>", text), [""])
        for name, text in SCRIPTS.items():
            code = re.sub(r"//.*|/\*.*?\*/", "", text)
            self.assertNotRegex(code, r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|"
                                      r"createContextualFragment|DOMParser|srcdoc|setAttribute\(\"style", name)

    def test_each_file_is_of_a_page(self):
        later = set().union(*map(asked_for_later, PAGES))
        self.assertEqual(set().union(*map(first_load, PAGES), *map(imports, later)), set(FILES))

    @unittest.skipIf(NODE is None, "node is not installed")
    def test_modules_parse(self):
        for name, text in SCRIPTS.items():
            checked = subprocess.run([NODE, "--check", "--input-type=module"], input=text, text=True, capture_output=True)
            self.assertEqual(checked.returncode, 0, f"{name}: {checked.stderr}")

    @unittest.skipIf(NODE is None, "node is not installed")
    def test_text_becomes_data_as_it_should(self):
        # Python's table of HTML 4; HTML 5 gave two of these names other characters.
        entities = json.dumps({**html.entities.name2codepoint, "lang": 0x27e8, "rang": 0x27e9})
        for test in ("markdown_test.mjs", "chat_test.mjs", "stored_test.mjs", "feed_test.mjs"):
            run = subprocess.run([NODE, "--no-warnings", ROOT / "tests/page" / test, PAGE, entities], text=True, capture_output=True)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)


if __name__ == "__main__":
    unittest.main()
