"""Asks a GGUF file the questions of first-time visitors, in held-out wordings: python evaluate_visits.py MODEL.gguf [--part visits,sums,sampled,tempered,likeliest].

`visits` has cases of every kind in wordings that no training text has (haste.held_out), and `sums` has sums of numbers below 100 in free
wording, whose pairs are held out, too. The other parts count answers without invented words, which are in neither the corpus nor the
prompt: `sampled` with Wick's default settings, which the chat page uses for further answers, `tempered` with only a temperature, and
`likeliest` with the most likely token each time, which shows the words that are not caused by sampling. --seed and --cases select other
questions, and more of them, for these three parts. --engine uses Wick's engine and prints two figures: for the model alone, and for the
chat page, which allows only known words.
The exit status is 1 if a figure misses its goal.
"""

import argparse
import collections
import json
import random
import re
import sys

import jax.numpy as jnp

import corpus
import engine_answers
import followups
import generate
import ggufmodel
import phrases
import roles
import tales
import visit_records
import visits
import wordsums

BARS = {"visits": 0.75, "sums": 0.97, "sampled": 1.0, "tempered": 0.0, "likeliest": 0.0}
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
LEXICON_TURNS = 60000
DEFAULTS = generate.Manner(temperature=0.8, top_k=40, top_p=0.95, min_p=0.05)  # js/page/request_options.js
TOKENS_MAX = 250
SAMPLED_COUNT, SAMPLED_SEED, SAMPLED_DRAW = 500, 11, 3


def _source(seed, held_out=True):
    return phrases.Source(random.Random(seed), held_out=held_out, stage=phrases.VISIT_STAGE)


def _last(told):
    return told[-1], told[:-1]


def visit_cases(seed=150):
    """Returns about 150 cases: (kind, system prompt, turns before, turn)."""
    source, cases = _source(seed), []
    closed = [name for name in visits.INTENTS if name not in visits.OPEN_INTENTS]
    for name in closed[::2] + visits.OPEN_INTENTS * 2:
        cases.append((name, corpus.DEFAULT_SYSTEM, [], visits.canned_named(source, name)))
    for maker, count in ((wordsums.wish, 8), (visits.fact, 8), (visit_records.wish, 8), (visits.two, 3), (tales.poem, 3)):
        cases += [(maker.__module__ + "." + maker.__name__, corpus.DEFAULT_SYSTEM, [], maker(source)) for _ in range(count)]
    for maker, count in ((followups.episode, 10), (visits.jokes, 3), (visits.capitals, 3), (wordsums.follow_up, 3), (followups.story, 6)):
        for _ in range(count):
            turn, before = _last(maker(source))
            cases.append((maker.__module__ + "." + maker.__name__, corpus.DEFAULT_SYSTEM, before, turn))
    for _ in range(10):
        system, told = roles.dressed(source, visits.canned)
        cases.append(("roles", system, told[:-1], told[-1]))
    return cases


def sum_cases(count=300, seed=97):
    """Returns sums, differences and products of numbers below 100; two of three are plain, one is a word problem."""
    source, cases = _source(seed), []
    while len(cases) < count:
        turn = (wordsums.problem if len(cases) % 3 == 2 else wordsums.plain)(source)
        cases.append((turn.kind, corpus.DEFAULT_SYSTEM, [], turn))
    return cases


def result_of(text):
    """Returns the last number in an answer to a sum."""
    found = re.findall(r"-?\d+", text)
    return found[-1] if found else None


def _words(text):
    return {word.lower() for word in _WORD.findall(text)}


def _fixed_words():
    """Returns the words of answers that are the same for every wording; a question may also contain them."""
    intents = (visits.INTENTS, phrases.ABOUT, phrases.TALK, phrases.REFUSALS, phrases.TOPICS)
    answers = [answer for named in intents for _, told in named.values() for answer in told]
    return set().union(*(_WORD.findall(answer) for answer in answers if "{" not in answer))


def written_words(turns_wanted=LEXICON_TURNS, seed=7):
    """Returns every word, as spelled, of the fixed answers, and of other training answers whose question does not contain it."""
    source, known = _source(seed, held_out=False), _fixed_words()
    seen = 0
    while seen < turns_wanted:
        system, told = corpus.conversation(source, lambda t: len(t) >= 3)
        seen += len(told)
        asked = _words(" ".join([system or ""] + [turn.user for turn in told]))
        for turn in told:
            known |= {word for word in _WORD.findall(turn.answer) if word.lower() not in asked}  # copied words may be invented
    return known


def lexicon():
    """Returns the words, in lower case, that the model may use without being given them."""
    return {word.lower() for word in written_words()}


def invented(text, prompt, known):
    """Returns the words of an answer that are neither in the corpus nor in its prompt."""
    told = _words(prompt)
    return [w for w in _WORD.findall(text) if w.lower() not in known and w.lower() not in told and w.lower().removesuffix("s") not in told
            and w.lower().removesuffix("'s") not in known | told]


def sampled_cases(count=SAMPLED_COUNT, seed=SAMPLED_SEED):
    """Returns questions as in training: (kind, system prompt, turns before, turn)."""
    source, cases = _source(seed, held_out=False), []
    while len(cases) < count:
        system, told = corpus.conversation(source, lambda t: len(t) >= 1)
        if told:  # a system prompt about JSON may have no suitable turn
            turn, before = _last(told)
            cases.append((turn.kind, system or corpus.DEFAULT_SYSTEM, before, turn))
    return cases


def _prompts(cases):
    return [corpus.prompt(system, before, turn.user) for _, system, before, turn in cases]


def _answers(model, cases, **manner):
    if isinstance(model, engine_answers.Engine):
        return model.answers(cases, manner.get("manner", generate.Manner()), manner.get("seed", 0), TOKENS_MAX)
    params, tokenizer = model
    prompts = _prompts(cases)
    manner = {"tokens_max": TOKENS_MAX, **manner}
    return generate.answers(params, tokenizer, prompts, expected=[len(turn.answer) for _, _, _, turn in cases], **manner)


def _judged(model, cases, right, show):
    tally, kinds, wrong = collections.Counter(), collections.Counter(), []
    for (kind, _, _, turn), (text, ended) in zip(cases, _answers(model, cases)):
        good = ended and right(turn, text)
        tally[good] += 1
        if not good:
            kinds[kind] += 1
            wrong.append((kind, turn.user, text, turn.answer))
    for kind, user, text, answer in wrong[:show]:
        print(f"  [{kind}] {user!r}\n    said {text!r}\n    want {answer!r}")
    print("  wrong by kind:", dict(kinds.most_common()))
    return tally[True], len(cases)


def run_visits(model, show, _asked):
    return _judged(model, visit_cases(), lambda turn, text: turn.right(text), show)


def run_sums(model, show, _asked):
    return _judged(model, sum_cases(), lambda turn, text: result_of(text) == result_of(turn.answer), show)


def run_sampled(model, show, asked, manner=DEFAULTS):
    *asked, draw = asked
    cases, known = sampled_cases(*asked), lexicon()
    found = _answers(model, cases, manner=manner, seed=draw)
    clean = 0
    for index, (prompt, (text, _)) in enumerate(zip(_prompts(cases), found)):
        odd = invented(text, prompt, known)
        clean += not odd
        if odd and show:
            print(f"  {odd} in {text[:160]!r} to {prompt.splitlines()[-2]!r}")
        elif show and index % 5 == 0:
            print(f"  ok {prompt.splitlines()[-2]!r} -> {text[:200]!r}")
    return clean, len(cases)


def run_tempered(model, show, asked):
    return run_sampled(model, show, asked, generate.Manner(DEFAULTS.temperature))


def run_likeliest(model, show, asked):
    return run_sampled(model, show, asked, generate.Manner())


RUNS = {"visits": run_visits, "sums": run_sums, "sampled": run_sampled, "tempered": run_tempered, "likeliest": run_likeliest}
USUAL = "visits,sums,sampled,tempered"


def _loaded(path):
    loaded = ggufmodel.GgufModel(path)
    return {name: jnp.asarray(value) for name, value in loaded.params().items()}, loaded.tokenizer()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--part", default=USUAL, help=f"parts to run, from {','.join(RUNS)}")
    parser.add_argument("--show", type=int, default=0, help="how many failures to print; any number prints samples")
    parser.add_argument("--cases", type=int, default=SAMPLED_COUNT, help="how many answers are checked for invented words")
    parser.add_argument("--seed", type=int, default=SAMPLED_SEED, help="the seed of the questions for these answers")
    parser.add_argument("--draw", type=int, default=SAMPLED_DRAW, help="the seed for sampling answers")
    parser.add_argument("--engine", action="store_true", help="use Wick's engine, with and without the chat page's word list")
    args = parser.parse_args()
    model = engine_answers.Engine(args.model) if args.engine else _loaded(args.model)
    missed = 0
    for part in args.part.split(","):
        for kind in engine_answers.KINDS if args.engine else ("",):
            if kind:
                model.kind = kind
            right, asked = RUNS[part](model, args.show, (args.cases, args.seed, args.draw))
            missed += right < BARS[part] * asked
            print(json.dumps({"part": part, **({"answers": kind} if kind else {}), "right": right, "asked": asked, "share": round(right / asked, 4)}), flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
