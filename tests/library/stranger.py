"""A user's program with the installed library and examples/bindings/wick.py: it chats, embeds and handles errors.

python3 stranger.py LIBWICK.SO MODEL.gguf TOKENS QUESTION... prints JSON: {answers, again, vectors, errors: [[status, subject, message]], closed}
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
next(iter(engine.chat(messages[:1], 0)))  # stopped after the first piece
both = [engine.chat(messages[:1], int(sys.argv[3])) for _ in range(2)]
pieces = zip(*both)
again = [b"".join(one).decode() for one in zip(*pieces)]
engine.close()
engine.close()
try:
    closed = engine.embed(["a fox"])
except ValueError as error:
    closed = str(error)
print(json.dumps({"answers": answers, "again": again, "vectors": vectors, "errors": errors, "closed": closed}))
