#!/usr/bin/env python3
"""Renders random small expressions with Jinja2: each filter, test, method and operator in many ways.

usage: jinja_random.py OUT.json          (needs jinja2 3.1)

Every argument of a function is absent in some cases and given in others, by position or by name;
values and counts are drawn around the boundaries: empty, one, exact multiples, negative. A case
is a pair of an expression and what Jinja2 prints for it; null where Jinja2 fails.
"""
import json
import random
import sys

import jinja2

from jinja_cases import environment, render

WORDS = ["''", "'a'", "'B'", "'ab'", "'a b'", "' a  b\\n'", "'Ab aB'", "'aXbXa'", "'abcabc'",
         "'a,b,,c'", "'a\\nb\\n\\nc\\n'", "'<a&\"\\'>'", "'éaÜ'", "'one two three'", "'12'", "'-7'", "'2.5'",
         "'1_0'", "'0x1f'", "'ZZ'", "'aaa'", "'--a--'"]
INTEGERS = ["0", "1", "2", "3", "4", "5", "6", "-1", "-2", "-3", "7", "10"]
REALS = ["0.0", "0.5", "1.5", "2.5", "-0.5", "-1.25", "2.675", "3.0", "125.0", "-2.5", "0.1", "0.3", "1.0", "1e18"]
LISTS = ["[]", "[1]", "[1, 2]", "[3, 1, 2]", "[1, 2, 3, 4]", "[2, 1, 2, 1, 3, 3]", "[1, 2, 3, 4, 5, 6, 7]",
         "['b', 'A', 'a', 'B']", "['a', 'b', 'c']", "['']", "(1, 2, 3)", "()", "[[1, 2], [0, 5], [1, 1]]",
         "[0, '', none, 'x', 2]", "[1, 1.0, true]", "range(5)|list", "range(4, 0, -1)|list", "[0.5, 2, -1]",
         "[true, false]"]
ROWS = ["[]", "[{'k': 1, 'v': 'x'}]", "[{'k': 2, 'v': 'x'}, {'k': 1, 'v': 'y'}, {'k': 2, 'v': 'X'}]",
        "[{'k': 'b', 'v': 1}, {'k': 'B', 'v': 0}, {'k': 'a', 'v': 1}, {'k': 'A', 'v': 3}]",
        "[{'k': 1}, {'v': 1}]", "[{'k': {'n': 2}, 'v': 0}, {'k': {'n': 1}, 'v': 2}]",
        "[{'k': 'b'}, {'k': 'B'}, {'k': 'a'}, {'v': 1}]", "[{'k': 0, 'v': none}, {'k': 0, 'v': 5}]"]
MAPS = ["{}", "{'a': 1}", "{'b': 1, 'a': 2}", "{'b': 'x', 'A': 'Y', 'a': 'y', 'B': 'X'}", "{'a': {'b': [1]}}",
        "{'b': 2, 'a': 2, 'c': 1}", "{2: 'x', 1: 'y'}"]
FLAGS = ["true", "false"]
OTHERS = ["none", "true", "false", "missing", "1", "2.5", "'a'", "[1]", "{'a': 1}"]
ANY = WORDS + INTEGERS + REALS + LISTS + MAPS + FLAGS + ["none", "missing"]
SHORT = ["''", "'a'", "'b'", "'ab'", "','", "' '", "'X'", "'-'", "'aa'"]
FILL = ["none", "0", "'x'", "''", "[]"]
KEYS = ["'k'", "'v'", "'k.n'", "'q'", "0"]
COUNTS = ["1", "2", "3", "4", "7", "8", "0"]

# name: (input values, arguments as (name, values), how many of them are required)
FILTERS = {
    "abs": (INTEGERS + REALS, [], 0),
    "batch": (LISTS + WORDS, [("linecount", COUNTS), ("fill_with", FILL)], 1),
    "capitalize": (WORDS, [], 0),
    "center": (WORDS, [("width", ["0", "1", "2", "3", "6", "7", "-1"])], 1),
    "count": (LISTS + WORDS + MAPS, [], 0),
    "default": (OTHERS + ["''", "0", "[]"], [("default_value", WORDS[:4] + ["none", "5"]), ("boolean", FLAGS)], 0),
    "dictsort": (MAPS, [("case_sensitive", FLAGS), ("by", ["'key'", "'value'", "'x'"]), ("reverse", FLAGS)], 0),
    "escape": (WORDS, [], 0),
    "first": (LISTS + WORDS, [], 0),
    "float": (WORDS + INTEGERS + REALS, [("default", ["1.5", "none", "'x'"])], 0),
    "format": (["'%s'", "'%d-%s'", "'%5.1f'", "'%03d'", "'%x'", "'%%'", "'a'", "'%-4s|'", "'%+d'", "'%r'",
                "'%05.3d'", "'%#x'", "'%-05d|'", "'% X'"],
               [("", INTEGERS + WORDS + REALS), ("", INTEGERS + WORDS)], 0),
    "groupby": (ROWS, [("attribute", KEYS), ("default", FILL[1:4]), ("case_sensitive", FLAGS)], 1),
    "indent": (WORDS, [("width", ["0", "1", "2", "'>'", "''"]), ("first", FLAGS), ("blank", FLAGS)], 0),
    "int": (WORDS + INTEGERS + REALS, [("default", ["5", "none", "'x'"]), ("base", ["10", "16", "2", "8", "36"])], 0),
    "items": (MAPS + ["missing"], [], 0),
    "join": (LISTS + WORDS[:6], [("d", SHORT + ["1"])], 0),
    "last": (LISTS + WORDS, [], 0),
    "length": (LISTS + WORDS + MAPS, [], 0),
    "list": (LISTS + WORDS + MAPS, [], 0),
    "lower": (WORDS, [], 0),
    "max": (LISTS, [("case_sensitive", FLAGS)], 0),
    "min": (LISTS, [("case_sensitive", FLAGS)], 0),
    "replace": (WORDS, [("old", SHORT), ("new", SHORT), ("count", ["0", "1", "2", "-1", "none"])], 2),
    "reverse": (LISTS + WORDS, [], 0),
    "round": (INTEGERS + REALS, [("precision", ["0", "1", "2", "-1", "-2"]), ("method", ["'common'", "'ceil'", "'floor'", "'x'"])], 0),
    "slice": (LISTS + WORDS, [("slices", COUNTS), ("fill_with", FILL)], 1),
    "sort": (LISTS + MAPS, [("reverse", FLAGS), ("case_sensitive", FLAGS)], 0),
    "string": (ANY, [], 0),
    "sum": (LISTS, [("attribute", ["none"]), ("start", ["0", "5", "0.5", "'a'"])], 0),
    "title": (WORDS + ["'a-b (c)[d] {e} <f>'", "'it\\'s o\\'clock'", "'x1y 2z'"], [], 0),
    "tojson": (ANY + ROWS, [("ensure_ascii", FLAGS), ("indent", ["0", "1", "2", "'-'", "none"]),
                            ("separators", ["(',', ':')", "(', ', '=')"]), ("sort_keys", FLAGS)], 0),
    "trim": (WORDS, [("chars", SHORT[1:] + ["'-a'", "none"])], 0),
    "truncate": (["'" + "ab defg hi jk"[:n] + "'" for n in range(1, 14)], [("length", ["3", "4", "5", "8", "13", "0"]), ("killwords", FLAGS),
                 ("end", ["''", "'..'", "'-'"]), ("leeway", ["0", "1", "5", "none"])], 0),
    "unique": (LISTS, [("case_sensitive", FLAGS)], 0),
    "upper": (WORDS, [], 0),
    "wordcount": (WORDS, [], 0),
}
BY_ATTRIBUTE = {
    "join": [("d", SHORT), ("attribute", KEYS)],
    "map": [("attribute", KEYS), ("default", FILL)],
    "max": [("case_sensitive", FLAGS), ("attribute", KEYS)],
    "min": [("case_sensitive", FLAGS), ("attribute", KEYS)],
    "sort": [("reverse", FLAGS), ("case_sensitive", FLAGS), ("attribute", KEYS + ["'k,v'", "'v,k'"])],
    "sum": [("attribute", KEYS), ("start", ["0", "5"])],
    "unique": [("case_sensitive", FLAGS), ("attribute", KEYS)],
}
LAZY = {"batch", "slice", "map", "items", "reverse", "unique", "select", "reject", "selectattr", "rejectattr"}
COMPARES = ["==", "eq", "equalto", "!=", "ne", "lt", "lessthan", "le", "gt", "greaterthan", "ge", "<", "<=", ">", ">="]
PLAIN_TESTS = ["boolean", "callable", "defined", "even", "false", "float", "integer", "iterable", "lower", "mapping",
               "none", "number", "odd", "sequence", "string", "true", "undefined", "upper", "escaped"]
BOUNDS = ["", "0", "1", "2", "3", "5", "9", "-1", "-2", "-4", "-9"]
STEPS = ["", "", "1", "2", "3", "-1", "-2", "-3"]
RANGE = ["0", "1", "3", "4", "-1", "-3"]
METHODS = {
    "strip": [("", SHORT + ["none"])], "lstrip": [("", SHORT + ["'-a'"])], "rstrip": [("", SHORT + ["'-a'"])],
    "split": [("sep", SHORT + ["none"]), ("maxsplit", ["0", "1", "2", "-1"])],
    "rsplit": [("sep", SHORT + ["none"]), ("maxsplit", ["0", "1", "2", "-1"])],
    "splitlines": [("keepends", FLAGS)], "partition": [("!", SHORT)], "rpartition": [("!", SHORT)],
    "startswith": [("!", SHORT + ["('b', 'a')"]), ("", RANGE), ("", RANGE)],
    "endswith": [("!", SHORT + ["('b', 'a')"]), ("", RANGE), ("", RANGE)],
    "removeprefix": [("!", SHORT)], "removesuffix": [("!", SHORT)], "upper": [], "lower": [],
    "capitalize": [], "title": [], "replace": [("!", SHORT), ("!", SHORT), ("", ["0", "1", "2", "-1"])],
    "find": [("!", SHORT), ("", RANGE), ("", RANGE)], "rfind": [("!", SHORT), ("", RANGE), ("", RANGE)],
    "index": [("!", SHORT), ("", RANGE), ("", RANGE)], "rindex": [("!", SHORT), ("", RANGE), ("", RANGE)],
    "count": [("!", SHORT), ("", RANGE), ("", RANGE)], "join": [("!", LISTS[7:10] + WORDS[:5])],
    "isspace": [], "isdigit": [], "isnumeric": [], "isdecimal": [], "isalpha": [], "isalnum": [],
    "isupper": [], "islower": [], "ljust": [("!", RANGE + ["6"]), ("", ["'.'"])],
    "rjust": [("!", RANGE + ["6"]), ("", ["'.'"])], "center": [("!", RANGE + ["6", "7"]), ("", ["'.'"])],
    "zfill": [("!", RANGE + ["6"])],
}


def named(rng, arguments, n_required, fixed=(-1, None)):
    """Returns a list of arguments. Arguments after one that is left out are given by name. `fixed` is the
    place and the value of an argument that must be given."""
    out, by_name = [], False
    for i, (name, values) in enumerate(arguments):
        if i == fixed[0]:
            out.append((f"{name}=" if by_name and name else "") + fixed[1])
            continue
        required = i < n_required or name == "!"
        if not required and rng.random() < 0.45:
            if name in ("", "!"):
                break
            by_name = True
            continue
        by_name = by_name or (name not in ("", "!") and rng.random() < 0.2)
        out.append((f"{name}=" if by_name else "") + rng.choice(values))
    return "(" + ", ".join(out) + ")" if out else ""


def filters(rng):
    for name, (inputs, arguments, n_required) in FILTERS.items():
        # First each value of each argument with many inputs, then random combinations of all values.
        fixed = [(i, value) for i, (_, values) in enumerate(arguments) if name != "tojson" for value in values]
        calls = [(given, one) for one in fixed for given in rng.sample(inputs, min(len(inputs), 5))]
        calls += [(rng.choice(inputs if rng.random() < 0.9 else OTHERS), (-1, None))
                  for _ in range(14 + 3 * len(arguments))]
        for given, one in calls:
            lazy = "|list" if name in LAZY and not (name == "reverse" and given in WORDS) else ""
            yield f"({given})|{name}{named(rng, arguments, n_required, one)}{lazy}"
    for name, arguments in BY_ATTRIBUTE.items():
        n = 1 if name == "map" else 0
        for _ in range(26):
            given = named(rng, arguments, n)
            if name == "map":
                given = given.replace("('", "(attribute='").replace("(0", "(attribute=0")
            yield f"({rng.choice(ROWS)})|{name}{given}{'|list' if name in LAZY else ''}"


def selections(rng):
    for name in ("select", "reject", "selectattr", "rejectattr"):
        for _ in range(26):
            given = [rng.choice(KEYS)] if name.endswith("attr") else []
            if rng.random() < 0.7:
                if rng.random() < 0.5:
                    given += [f"'{rng.choice(COMPARES)}'", rng.choice(["1", "2", "'x'", "'a'"])]
                else:
                    given += [f"'{rng.choice(PLAIN_TESTS)}'"]
            given = "(" + ", ".join(given) + ")" if given else ""
            yield f"({rng.choice(ROWS if name.endswith('attr') else LISTS)})|{name}{given}|list"
    for _ in range(24):
        inner = rng.choice(["'upper'", "'int'", "'default', 'x'", "'default', 'x', true", "'string'", "'length'",
                            "'replace', 'a', 'Q'", "'join', '-'", "'abs'", "'round', 1", "'first'", "'batch', 2"])
        yield f"({rng.choice(LISTS + WORDS)})|map({inner})|list"


def tests(rng):
    for name in PLAIN_TESTS:
        for _ in range(9):
            yield f"({rng.choice(ANY)}) is {'not ' * (rng.random() < 0.3)}{name}"
    for _ in range(90):
        pool = rng.choice([INTEGERS + REALS, WORDS, LISTS, ANY])
        yield f"({rng.choice(pool)}) is {rng.choice([c for c in COMPARES if c.isalpha()])}({rng.choice(pool)})"
    for _ in range(24):
        yield f"({rng.choice(INTEGERS + REALS)}) is divisibleby({rng.choice(INTEGERS)})"
        yield f"({rng.choice(ANY)}) is in({rng.choice(LISTS + WORDS + MAPS)})"
    for name in sorted(set(FILTERS) | set(METHODS)):
        yield f"'{name}' is filter"
    for name in PLAIN_TESTS + COMPARES:
        yield f"'{name}' is test"


def operators(rng):
    for _ in range(190):
        op = rng.choice(["+", "-", "*", "/", "//", "%", "**", "~"])
        pool = INTEGERS + REALS if rng.random() < 0.75 else ANY
        left, right = rng.choice(pool), rng.choice(INTEGERS if op in ("*", "**") else pool)
        yield f"({left}) {op} ({right})"
    for _ in range(160):
        op = rng.choice(["==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"])
        pool = rng.choice([INTEGERS + REALS, WORDS, LISTS, ANY])
        right = LISTS + WORDS + MAPS if op.endswith("in") else pool
        yield f"({rng.choice(pool)}) {op} ({rng.choice(right)})"
    for _ in range(60):
        n = rng.randint(2, 4)
        text = rng.choice(INTEGERS[:6])
        for _ in range(n):
            text += rng.choice([" + ", " - ", " * ", " // ", " % ", " ** ", " ~ ", " < ", " == ", " and ", " or ", " and not "])
            text += rng.choice(["", "", "-"]) + rng.choice(INTEGERS[1:6])
        yield text
    for _ in range(150):
        given = rng.choice(["'abcdef'", "'éaÜb'", "[1, 2, 3, 4, 5]", "(1, 2, 3)", "''", "[]", "'a'", "[7]", "range(6)"])
        if rng.random() < 0.2:
            yield f"({given})[{rng.choice(BOUNDS[1:])}]"
        else:
            step = rng.choice(STEPS)
            yield f"({given})[{rng.choice(BOUNDS)}:{rng.choice(BOUNDS)}{':' + step if step else ''}]" + \
                ("|list" if given.startswith("range") else "")


def methods(rng):
    for name, arguments in METHODS.items():
        for _ in range(8 + 7 * len(arguments)):
            given = named(rng, arguments, 0) or "()"
            yield f"({rng.choice(WORDS)}).{name}{given}"
    for _ in range(30):
        yield f"({rng.choice(LISTS[:12])}).{rng.choice(['index', 'count'])}({rng.choice(INTEGERS[:5] + SHORT)})"
        yield f"({rng.choice(MAPS)}).get({rng.choice(SHORT + ['2'])}{rng.choice(['', ', 9', ', none'])})"
    for _ in range(12):
        yield f"({rng.choice(MAPS)}).{rng.choice(['keys', 'values', 'items'])}()|list"
    for _ in range(60):
        given = ", ".join(rng.choice(INTEGERS) for _ in range(rng.randint(1, 3)))
        yield f"range({given})|list"
    for _ in range(40):
        spec = rng.choice(["", "<", ">", "^", "*<", "0>"]) + rng.choice(["", "1", "4", "7"])
        kind = rng.choice(["s", "d", "f", "x", "", ".1f", ".2s", "e", "X", "o"])
        yield f"'{{:{spec}{kind}}}|'.format({rng.choice(INTEGERS + REALS + WORDS)})"
        yield f"'%{rng.choice(['', '-', '0', '+', ' ', '#'])}{rng.choice(['', '1', '4', '7'])}" \
              f"{rng.choice(['s', 'd', 'f', 'x', 'r', '.1f', '.2s', 'e', 'g', 'i', 'o', 'X', '.3d', '.1x'])}|'" \
              f" % ({rng.choice(INTEGERS + REALS + WORDS)})"


LOOP_PARTS = ["loop.index", "loop.index0", "loop.revindex", "loop.revindex0", "loop.first", "loop.last", "loop.length",
              "loop.depth", "loop.depth0", "loop.previtem", "loop.nextitem", "loop.cycle('a', 'b')",
              "loop.changed(x)", "loop.changed(x is odd)", "x"]
ITERATED = ["[]", "[1]", "[1, 1, 2]", "[3, 4, 4, 5]", "range(3)", "[0, 1]|reverse", "(1, 2)", "[1, 2, 3]|select('odd')"]


def block(rng, depth):
    kind = rng.randrange(9) if depth > 0 else rng.randrange(3)
    start, end = rng.choice([("{%", "%}"), ("{%-", "%}"), ("{%", "-%}"), ("{%", "%}"), ("{%+", "%}"), ("{%", "+%}")])
    inner = lambda: "".join(block(rng, depth - 1) for _ in range(rng.randint(0, 2)))
    space = lambda: rng.choice(["", "", " ", "\n", "  \n", "\n  "])
    if kind == 0:
        return space() + rng.choice(["t", "{# c #}", "{#- c -#}", "u\n"]) + space()
    if kind == 1:
        return "{{ n }}" if rng.random() < 0.5 else "{{- s -}}"
    if kind == 2:
        return f"{space()}{start} set n = n + {rng.randint(1, 3)} {end}{space()}"
    if kind in (3, 4, 5):
        parts = "{{ " + " ~ ',' ~ ".join(rng.sample(LOOP_PARTS, rng.randint(1, 2))) + " }};"
        condition = rng.choice(["", "", " if x is odd", " if x > 1", " if x > 9"])
        skip = rng.choice(["", "", "", "{% if loop.index == 2 %}{% break %}{% endif %}",
                           "{% if x == 1 %}{% continue %}{% endif %}"])
        other = rng.choice(["", f"{start} else {end}E{inner()}"])
        return f"{space()}{start} for x in {rng.choice(ITERATED)}{condition} {end}{space()}{skip}{parts}{inner()}" \
               f"{other}{{% endfor %}}{space()}"
    if kind == 6:
        tests_ = ["n > 1", "n is odd", "s", "not s", "n in [0, 2]", "missing"]
        middle = rng.choice(["", f"{start} elif {rng.choice(tests_)} {end}L{inner()}"])
        return f"{start} if {rng.choice(tests_)} {end}I{inner()}{middle}{space()}{{% else %}}O{inner()}{{% endif %}}{space()}"
    if kind == 7:
        return f"{start} set s {end}{space()}{inner()}{{% endset %}}[{{{{ s }}}}]" if rng.random() < 0.5 else \
            f"{start} filter upper {end}{inner()}f{{% endfilter %}}"
    name = f"m{rng.randint(0, 9)}"
    call = rng.choice(["", "1", "1, 2", "b=3", "1, b=4", "1, 2, 3", "c=1"])
    return f"{start} macro {name}(a, b=5) {end}{{{{ a }}}}/{{{{ b }}}}{space()}{{% endmacro %}}{{{{ {name}({call}) }}}}"


def statements(rng):
    for _ in range(112):
        yield "{% set n = 1 %}{% set s = 'x' %}" + "".join(block(rng, 2) for _ in range(rng.randint(1, 3)))


def left_out(result):
    """Whether a case is left out. twill is more lenient on purpose: it compares values where Python
    needs their hash, it truncates values that have no length, and its range() is a list. A result
    with the address of an object, or of more than 220 characters, is left out, too."""
    message = result.get("message", "")
    lenient = "unhashable" in message or "has no len()" in message or "range" in result.get("text", "")
    return lenient or " at 0x" in result.get("text", "") or len(result.get("text", "")) > 220


def main():
    env = environment()
    cases, seen = [], set()
    for make in (filters, selections, tests, operators, methods, statements):
        for expression in make(random.Random(make.__name__)):
            template = expression if make is statements else "{{ " + expression + " }}"
            if template in seen:
                continue
            seen.add(template)
            result = render(env, template, {})
            if not left_out(result):
                cases.append([template if make is statements else expression, result.get("text")])
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump({"jinja2": jinja2.__version__, "cases": cases}, out, ensure_ascii=False, indent=0)
        out.write("\n")
    print(f"{len(cases)} cases, {sum(text is None for _, text in cases)} of them errors")


main()
