#!/usr/bin/env python3
"""Runs tools/check_words.py on made-up lines and trees: it must find retired words and let plain English pass."""

import os
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["TWILL_SOURCE_DIR"], "tools"))
import check_words  # noqa: E402

WORD, INSTEAD = next(iter(check_words.RETIRED.items()))


class CheckWords(unittest.TestCase):
    def test_an_identifier_is_found_also_as_a_member(self):
        self.assertEqual(list(check_words.uses_in(f"  const {WORD} a = {WORD}_;")), [WORD, WORD])

    def test_an_included_file_is_found(self):
        self.assertEqual(list(check_words.uses_in(f'#include "actors/{WORD}.hpp"')), [WORD])

    def test_texts_comments_and_longer_words_are_not(self):
        for line in (f'log("the {WORD}"); // the {WORD}', f"int {WORD}s = my_{WORD};", f"/// {WORD}"):
            self.assertEqual(list(check_words.uses_in(line)), [], line)

    def test_a_word_of_one_folder_is_found_there_and_in_its_tests(self):
        word = next(iter(check_words.RETIRED_IN["actors"]))
        with tempfile.TemporaryDirectory() as folder:
            for name in ("actors/a.cpp", "tests/actors/a_test.cpp", "gpu/a.cpp"):
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"int {word};\n")
            found = list(check_words.uses(pathlib.Path(folder)))
        self.assertEqual([one.partition(":")[0] for one in found], ["actors/a.cpp", "tests/actors/a_test.cpp"])

    def test_a_kind_called_what_is_found(self):
        for line, count in (("  event_kind what = event_kind::text;", 1), ("  kind what;", 1),
                            ("  std::string what;", 0), ("  void take(kind what, int n);", 0)):
            self.assertEqual(bool(check_words.KIND_CALLED_WHAT.match(line)), bool(count), line)

    def test_a_file_name_is_found_with_what_to_say(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in (f"gpu/{WORD}.cu", f"tests/gpu/{WORD}_test.cpp", "gpu/other.cpp"):
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("int x;\n")
            found = list(check_words.uses(pathlib.Path(folder)))
        self.assertEqual(len(found), 2, found)
        self.assertTrue(all(INSTEAD in one for one in found), found)


if __name__ == "__main__":
    unittest.main()
