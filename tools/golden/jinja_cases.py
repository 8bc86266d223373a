#!/usr/bin/env python3
"""Renders templates with Jinja2 as Hugging Face configures it and writes what came out.

usage: jinja_cases.py OUT.json          (needs jinja2 3.1)

The environment follows transformers' chat template support: an immutable sandbox, trim_blocks,
lstrip_blocks, loop controls, a JSON filter that is json.dumps, raise_exception and strftime_now.
The expression cases and chat templates live beside this file, in jinja_expressions.py and
chat_templates.py. A case whose "error" is true must fail in any engine.
"""
import datetime
import json
import sys

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

import chat_templates
import jinja_expressions


class Generation(jinja2.ext.Extension):
    """Accepts {% generation %} and renders its body."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_run"), [], [], body).set_lineno(line)

    def _run(self, caller):
        return caller()


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                          sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[Generation, loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda f: datetime.datetime.now().strftime(f)
    return env


def render(env, template, variables):
    try:
        return {"text": env.from_string(template).render(**variables)}
    except Exception as error:  # every failure counts: the engine under test must fail too
        return {"error": True, "message": f"{type(error).__name__}: {error}"[:200]}


def expression_cases(env):
    for template in jinja_expressions.CASES:
        yield {"template": template, **render(env, template, jinja_expressions.VARIABLES)}


def chat_cases(env):
    for name, template in chat_templates.TEMPLATES.items():
        inputs = chat_templates.CONVERSATIONS
        outputs = []
        for key, variables in inputs.items():
            for prompt in (True, False):
                given = {"bos_token": "<s>", "eos_token": "</s>", "tools": None, "documents": None,
                         "add_generation_prompt": prompt, **variables}
                outputs.append({"input": key, "add_generation_prompt": prompt,
                                **render(env, template, given)})
        yield {"name": name, "template": template, "outputs": outputs}


def main():
    env = environment()
    result = {
        "jinja2": jinja2.__version__,
        "variables": jinja_expressions.VARIABLES,
        "expressions": list(expression_cases(env)),
        "conversations": chat_templates.CONVERSATIONS,
        "chats": list(chat_cases(env)),
    }
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump(result, out, ensure_ascii=False, indent=0)
        out.write("\n")
    failed = [c for c in result["expressions"] if "error" in c]
    print(f"{len(result['expressions'])} expressions, {len(failed)} of them errors")


if __name__ == "__main__":
    main()
