"""Renders conversations with Python's jinja2, configured as in transformers.

    .toolchain/text/bin/python tools/text/templates.py [--mutable] < REQUESTS

--mutable: templates may change their lists and dicts, which transformers forbids.

Each line of REQUESTS is [TEMPLATE FILE, [VARIABLES, ...]]. Each printed line is a list with the text of each
rendering, or {"error": message}. Needs the packages that tools/setup.sh text installs.
"""
import json
import sys
from datetime import datetime

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEnvironment


class Generation(Extension):
    """{% generation %}: renders its content unchanged."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_text"), [], [], body).set_lineno(line)

    def _text(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def make_environment():
    kind = SandboxedEnvironment if "--mutable" in sys.argv else ImmutableSandboxedEnvironment
    made = kind(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    made.filters["tojson"] = tojson
    made.filters["from_json"] = json.loads  # not in transformers, but three templates use it
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return made


def main():
    environment = make_environment()
    for line in sys.stdin:
        path, conversations = json.loads(line)
        with open(path, encoding="utf-8", newline="") as file:
            source = file.read()
        template = None
        results = []
        for variables in conversations:
            try:
                template = template or environment.from_string(source)
                results.append(template.render(**variables))
            except Exception as problem:  # any: a template is a program
                results.append({"error": f"{type(problem).__name__}: {problem}"})
        print(json.dumps(results), flush=True)


main()
