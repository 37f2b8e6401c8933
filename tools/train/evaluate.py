"""Asks the committed GGUF files questions that were held out of training, and prints the share of right answers.

python evaluate.py [--models FOLDER] [--quick] [--write]. It uses the held-out templates and fillings, the dequantised
weights of the files, and greedy decoding. --write updates the figures in MODEL_CARD.md. The exit status is 1 if a
figure misses its goal.
"""

import argparse
import collections
import json
import os
import random
import re
import sys

import jax.numpy as jnp

import corpus
import generate
import ggufmodel
import memory
import phrases
import records
import stories
import sums
import turns

BARS = {"questions": 0.90, "two-digit sums": 0.95, "JSON parses": 0.98}
TOKENS_MAX = 250  # a story has about 180
HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "..", "examples", "models")
FILES = ("wick-4.2m-q8_0.gguf", "wick-4.2m-q4_0.gguf")


class Case:
    """A prompt and the criterion for its answer."""

    def __init__(self, group, turn, system=None, told=()):
        self.group, self.turn = group, turn
        self.prompt = corpus.prompt(system, list(told), turn.user)


def _system(index):
    return corpus.DEFAULT_SYSTEM if index % 2 else None


def question_cases(source, times):
    """Returns every held-out template of every intent, every topic in held-out frames, facts and memory."""
    cases = []
    for family, intents in (("about", phrases.ABOUT), ("talk", phrases.TALK), ("refusal", phrases.REFUSALS)):
        for name, (asks, _) in intents.items():
            if not asks.held_out:
                continue
            for index in range(times * len(asks.held_out)):
                turn = turns.canned_intent(source, family, intents, name)
                cases.append(Case("questions", turn, _system(index)))
    for name in phrases.TOPICS:
        cases += [Case("questions", turns.topic_named(source, name), _system(i)) for i in range(times)]
    cases += [Case("questions", turns.fact(source), _system(i)) for i in range(60 * times)]
    for index in range(60 * times):
        mind, kind = memory.Memory(source), None
        kind = mind.pick_kind()
        told = [mind.tell(kind), turns.talk(source)] if index % 5 else []
        cases.append(Case("questions", mind.ask(kind), _system(index), told))
    return cases


def sum_cases(source):
    pairs = [(a, b) for a in range(10, 100) for b in range(10, 100)
             if sums.held_out_pair(a, b) and not sums.seen_as_part(a, b)]
    return [Case("two-digit sums", sums.add_turn(source, a, b), _system(a)) for a, b in pairs]


def other_sum_cases(source, count):
    cases = []
    for maker in (sums.minus, sums.times, sums.too_big, turns.number_fact, turns.name_list, turns.repeat):
        cases += [Case("other: " + maker.__name__, maker(source), _system(i)) for i in range(count)]
    return cases


def json_cases(source, count):
    cases = [Case("JSON", records.wish(source), _system(i)) for i in range(count)]
    for maker in (records.extract_by_system, records.mood_by_system):
        for _ in range(count // 5):
            system, told = maker(source)
            cases.append(Case("JSON", told[-1], system, told[:-1]))
    return cases


def story_cases(source, count):
    cases = [Case("stories", stories.story(source)[0], _system(i)) for i in range(count)]
    return cases + [Case("stories", stories.poem(source), _system(i)) for i in range(count // 4)]


def long_cases(source, tokenizer, tokens, count):
    """Returns a question after `tokens` tokens of other conversation, and one about a fact at its beginning."""
    cases = []
    makers = (turns.about, turns.topic, sums.plus, turns.fact, turns.refusal, None)
    for index in range(count):
        mind = memory.Memory(source)
        told = [mind.tell("name")]
        length = 0
        while length < tokens - 60:
            told += corpus.conversation(phrases.Source(source.rng), lambda t: len(t) >= 6)[1]
            told = [t for t in told if not t.kind.startswith(("memory", "persona")) or t is told[0]]
            length = len(tokenizer.encode(corpus.render(None, told)).ids)
        while len(tokenizer.encode(corpus.render(None, told)).ids) > tokens:
            told.pop()
        maker = makers[index % len(makers)]
        turn = maker(source) if maker else mind.ask("name")
        group = f"after {tokens} tokens" if maker else f"name told {tokens} tokens ago"
        cases.append(Case(group, turn, None, told))
    return cases


def _parsed(text):
    """Parses `text` as a JSON object or list; returns None if it is neither."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, (dict, list)) else None


def _same_shape(value, expected):
    """Returns whether the answer has the expected keys (an object), or is a list like the expected one."""
    if isinstance(expected, dict):
        return isinstance(value, dict) and value.keys() == expected.keys()
    return isinstance(value, list)


def judge(cases, results):
    """Returns {figure: [right, asked]} and the list of failures."""
    figures, failures = collections.defaultdict(lambda: [0, 0]), []

    def count(figure, right):
        figures[figure][0] += bool(right)
        figures[figure][1] += 1

    for case, (text, ended) in zip(cases, results):
        right = ended and case.turn.right(text)
        count("answers that end by themselves", ended)
        if case.group == "JSON":
            value = _parsed(text) if ended else None
            count("JSON parses", value is not None)
            count("JSON: right keys", _same_shape(value, json.loads(case.turn.answer)))
            count("JSON: wholly right", right)
        else:
            count(case.group, right)
        if case.turn.accept_all:
            count("stories: with everything asked for", ended and case.turn.accept_all(text))
        if case.group == "questions":
            count("questions: " + case.turn.kind.split("/")[0], right)
        if not right:
            failures.append((case, text))
    return figures, failures


def suggestion_texts(params, tokenizer):
    with open(os.path.join(MODELS, "suggestions.json"), encoding="utf-8") as file:
        suggestions = json.load(file)
    prompts = [corpus.prompt(s.get("system", corpus.DEFAULT_SYSTEM), [], s["prompt"]) for s in suggestions]
    return [(s["prompt"], text) for s, (text, _) in zip(suggestions, generate.answers(params, tokenizer, prompts))]


def check_reference(loaded, tokenizer, params):
    """Checks that the plain numpy pass over the file generates the same text as the batched JAX pass."""
    prompts = [corpus.prompt(corpus.DEFAULT_SYSTEM, [], q)
               for q in ("What is Wick?", "What is 47 + 38?", "Tell me a story about a fox and a lamp.")]
    stop = tokenizer.token_to_id(corpus.IM_END)
    for prompt, (text, _) in zip(prompts, generate.answers(params, tokenizer, prompts)):
        ids = ggufmodel.greedy(loaded, tokenizer.encode(prompt).ids, [stop], 160)
        if tokenizer.decode(ids, skip_special_tokens=False) != text:
            return False
    return True


def make_cases(tokenizer, quick):
    source = phrases.Source(random.Random(77), held_out=True)
    cases = question_cases(source, 1 if quick else 2) + sum_cases(source) + json_cases(source, 100 if quick else 300)
    cases += other_sum_cases(source, 20 if quick else 40) + story_cases(source, 24 if quick else 80)
    if not quick:
        cases += long_cases(source, tokenizer, 2600, 24) + long_cases(source, tokenizer, 3800, 12)
    return sorted(cases, key=lambda case: len(case.turn.answer))


def evaluate(path, quick, verbose):
    loaded = ggufmodel.GgufModel(path)
    tokenizer = loaded.tokenizer()
    params = {name: jnp.asarray(value) for name, value in loaded.params().items()}
    cases = make_cases(tokenizer, quick)
    figures, failures = judge(cases, generate.answers(params, tokenizer, [c.prompt for c in cases], tokens_max=TOKENS_MAX))
    random.Random(1).shuffle(failures)
    for case, text in failures[:verbose]:
        print(f"  [{case.turn.kind}] {case.turn.user!r}\n    said {text!r}\n    want {case.turn.answer!r}")
    print(f"numpy pass over the file generates the same text: {check_reference(loaded, tokenizer, params)}")
    return figures, (params, tokenizer)


def table(all_figures):
    names = list(dict.fromkeys(name for figures in all_figures.values() for name in figures))
    order = list(BARS) + sorted(n for n in names if n not in BARS)
    lines = ["| held out, greedy | aim | " + " | ".join(all_figures) + " |",
             "|---|---|" + "---|" * len(all_figures)]
    for name in order:
        cells = []
        for figures in all_figures.values():
            right, asked = figures[name]
            cells.append(f"{100 * right / asked:.1f} % of {asked}" if asked else "")
        bar = f"{BARS[name]:.0%}" if name in BARS else ""
        lines.append(f"| {name} | {bar} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write_card(text):
    path = os.path.join(MODELS, "MODEL_CARD.md")
    with open(path, encoding="utf-8") as file:
        card = file.read()
    card = re.sub(r"(<!-- figures -->\n).*?(<!-- /figures -->)", lambda m: m[1] + text + "\n" + m[2], card, flags=re.S)
    with open(path, "w", encoding="utf-8") as file:
        file.write(card)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=MODELS, help="folder with the GGUF files")
    parser.add_argument("--quick", action="store_true", help="fewer cases, no long contexts")
    parser.add_argument("--failures", type=int, default=20, help="how many wrong answers to show")
    parser.add_argument("--write", action="store_true", help="update the figures in MODEL_CARD.md")
    args = parser.parse_args()
    all_figures, missed = {}, []
    for name in FILES:
        print(f"== {name}")
        figures, (params, tokenizer) = evaluate(os.path.join(args.models, name), args.quick, args.failures)
        all_figures[name] = figures
        missed += [f"{name}: {bar}" for bar, least in BARS.items() if figures[bar][0] < least * figures[bar][1]]
        for prompt, text in suggestion_texts(params, tokenizer):
            print(f"  > {prompt}\n    {text}")
    text = table(all_figures)
    print(text)
    if args.write:
        write_card(text)
    for miss in missed:
        print("missed:", miss)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
