"""What Python's jsonschema says of JSON texts, formats included.

    .toolchain/text/bin/python tools/text/schemas.py < REQUESTS

Each line of REQUESTS is [CLASS, SCHEMA, [TEXT, ...]]; CLASS is one of jsonschema's, as Draft4Validator. Each line that is
printed is a list with "" for a text that is valid, and why it is not for others; or {"error": words} for a schema
that jsonschema does not know what to do with. Needs what tools/setup.sh text installs.
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
        except Exception as problem:  # of a reference, a regular expression, a keyword's value
            result = {"error": f"{type(problem).__name__}: {problem}"}
        print(json.dumps(result), flush=True)


main()
