"""Answers by Wick's engine instead of JAX: as the model gives them alone, and as the chat page shows them, which holds them to known words.

Needs a built package (make) and Node.
"""

import json
import os
import subprocess

SCRIPT = os.path.join(os.path.dirname(__file__), "answer.mjs")
KINDS = ("alone", "page")


def messages(system, before, question):
    said = [message for turn in before for message in (("user", turn.user), ("assistant", turn.answer))]
    return [{"role": role, "content": text} for role, text in [*([("system", system)] if system else []), *said, ("user", question)]]


class Engine:
    """Of a GGUF file. What is asked once is kept, since both kinds of answers come together."""

    def __init__(self, path):
        self.path, self.kind, self._kept = path, KINDS[0], {}

    def answers(self, cases, manner, seed, tokens_max):
        """[(text, ended)] of the kind that is set, for cases as (kind, system prompt, turns before, turn)."""
        settings = {"temperature": manner.temperature, "top_k": manner.top_k, "top_p": manner.top_p, "min_p": manner.min_p, "max_tokens": tokens_max}
        lines = "".join(json.dumps({"messages": messages(system, before, turn.user), "seed": 1000 * seed + index, **settings}) + "\n"
                        for index, (_, system, before, turn) in enumerate(cases))
        if lines not in self._kept:
            run = subprocess.run(["node", SCRIPT, self.path], input=lines, stdout=subprocess.PIPE, text=True, check=True)
            self._kept[lines] = [json.loads(line) for line in run.stdout.splitlines()]
        return [(both[self.kind]["text"], both[self.kind]["ended"]) for both in self._kept[lines]]
