"""Validates JSON documents with Python's jsonschema, including formats.

    .toolchain/text/bin/python tools/text/schemas.py < REQUESTS

Each line of REQUESTS is [CLASS, SCHEMA, [TEXT, ...]]; CLASS is a jsonschema class such as Draft4Validator. Each printed
line is a list with "" for each valid document and the reason for each invalid one, or {"error": message} for a schema
that jsonschema cannot process. Needs the packages that tools/setup.sh text installs.
"""
import json
import sys

import jsonschema


def judge(name, schema, texts):
    kind = getattr(jsonschema, name)
    kind.check_schema(schema)
    validator = kind(schema, format_checker=kind.FORMAT_CHECKER)
    problems = [next(validator.iter_errors(json.loads(text)), None) for text in texts]
    return [problem.message if problem else "" for problem in problems]


def main():
    for line in sys.stdin:
        try:
            result = judge(*json.loads(line))
        except Exception as problem:  # caused by a reference, a regular expression or a keyword's value
            result = {"error": f"{type(problem).__name__}: {problem}"}
        print(json.dumps(result), flush=True)


main()
