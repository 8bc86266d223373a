#!/usr/bin/env python3
"""Runs `twill grammar` as a user does, with the tokens of the default model."""

import json
import os
import unittest

from programs import default_model, run, scratch

PERSON = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
          "required": ["name"], "additionalProperties": False}


class TwillGrammar(unittest.TestCase):
    def check(self, schema, *instances, flags=()):
        with scratch() as folder:
            paths = []
            for number, content in enumerate((schema, *instances)):
                paths.append(os.path.join(folder, f"{number}.json"))
                with open(paths[-1], "w") as file:
                    file.write(content if isinstance(content, str) else json.dumps(content))
            accepts = ["--accepts", *paths[1:]] if instances else []
            return run("twill", "grammar", paths[0], *accepts, "--model", default_model(), *flags)

    def test_an_instance_passes_or_does_not(self):
        done = self.check(PERSON, {"name": "Ann", "age": 3}, {"age": 3, "name": "北京 🦊"})
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        done = self.check(PERSON, json.dumps({"name": "Ann", "age": 3}, indent=2) + "\n")
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        done = self.check(PERSON, {"name": "Ann", "age": -3})
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("the mask excludes", done.stdout)
        self.assertIn("ends too early", self.check(PERSON, '{"name": "Ann"').stdout)

    def test_it_judges_as_a_request_is(self):
        free = {k: v for k, v in PERSON.items() if k != "additionalProperties"}
        more = {"name": "Ann", "home": {"city": "Oslo"}}
        self.assertEqual(self.check(free, more).returncode, 0)
        self.assertEqual(self.check(free, more, flags=["--strict"]).returncode, 1)
        self.assertEqual(self.check(PERSON, more).returncode, 1)
        # Masks limit the length of the white space between two parts.
        self.assertEqual(self.check(PERSON, '{"name":' + " " * 40 + '"Ann"}').returncode, 0)
        done = self.check(PERSON, '{"name":' + "\n" * 200 + '"Ann"}')
        self.assertEqual(done.returncode, 1, done.stdout)
        done = self.check("true", "1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("`response_format.json_schema.schema` must be an object", done.stderr)

    def test_a_schema_alone_is_checked(self):
        self.assertEqual(self.check(PERSON).returncode, 0)
        done = self.check(PERSON, {"name": "Ann"}, flags=["--times"])
        self.assertRegex(done.stdout, r"masks: \d+, median")

    def test_a_refused_schema_says_why(self):
        done = self.check({"properties": {"a": {"type": "array", "unevaluatedItems": False}}}, {"a": []})
        self.assertEqual(done.returncode, 2)
        self.assertIn("`unevaluatedItems` at #/properties/a", done.stderr)
        self.assertEqual(self.check("{").returncode, 2)

    def test_a_missing_file_is_neither_answer(self):
        self.assertEqual(run("twill", "grammar", "/no/such.json").returncode, 3)


if __name__ == "__main__":
    unittest.main()
