"""A program of somebody who has the installed library and examples/bindings/wick.py: it chats, embeds and handles errors.

python3 stranger.py LIBWICK.SO MODEL.gguf TOKENS QUESTION... prints JSON: {answers, vectors, errors: [[status, subject, message]]}
"""

import json
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parents[2] / "examples/bindings"))
import wick


def error_of(call):
    try:
        call()
    except wick.WickError as error:
        return [error.status, error.subject, str(error)]
    return None


library = wick.open_library(sys.argv[1])
engine = wick.Engine(library, sys.argv[2], threads=2)
messages, answers = [], []
for question in sys.argv[4:]:
    messages.append({"role": "user", "content": question})
    answers.append(b"".join(engine.chat(messages, int(sys.argv[3]))).decode())
    messages.append({"role": "assistant", "content": answers[-1]})
vectors = engine.embed(["a fox", "a crow", "a fox"])
errors = [
    error_of(lambda: engine.chat([], 0)),
    error_of(lambda: engine.generate("fox " * 10000, 1)),
    error_of(lambda: engine.embed([])),
    error_of(lambda: wick.Engine(library, sys.argv[2], threads=65)),
    error_of(lambda: wick.Engine(library, "none.gguf")),
]
again = b"".join(engine.chat(messages[:1], int(sys.argv[3]))).decode()
engine.close()
print(json.dumps({"answers": answers, "again": again, "vectors": vectors, "errors": errors}))
