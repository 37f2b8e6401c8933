"""Ways to say a thing: templates with alternatives, their split, and the small habits of people who type.

A template holds `[a|b|]` (one of these) and `{slot}` (a filling). Every sixth template of a list is
held out: training never sees it, evaluation asks nothing else.
"""

import os
import re

import words

HELD_OUT_EVERY = 6
_TEXT_DIR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "text")
_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_SLOT = re.compile(r"\{(\w+)\}")


class Source:
    """Where fillings and templates come from: the seeded generator and which side of the split."""

    def __init__(self, rng, held_out=False, by_parts=True):
        self.rng = rng
        self.held_out = held_out
        self.by_parts = by_parts  # whether sums are answered by way of tens and ones

    def word(self, words_list):
        return self.rng.choice(words.part(words_list, self.held_out))

    def template(self, templates):
        if len(templates) < HELD_OUT_EVERY:
            return self.rng.choice(templates)
        return self.rng.choice(split(templates, self.held_out))

    def name(self):
        """A first name; one in five is made up, so that copying is learned and not a list of names."""
        if self.rng.random() < 0.2:
            return words.pseudo_word(self.rng).capitalize()
        return self.word(words.NAMES)

    def city(self):
        if self.rng.random() < 0.1:
            return words.pseudo_word(self.rng).capitalize()
        return self.word(words.CITIES)

    def say(self, templates, **slots):
        """One template of the list, filled."""
        return fill(self, self.template(templates), slots)


def split(templates, held_out):
    return [t for i, t in enumerate(templates)
            if (i % HELD_OUT_EVERY == HELD_OUT_EVERY - 1) == held_out]


_FILLERS = {
    "name": lambda s: s.name(),
    "city": lambda s: s.city(),
    "country": lambda s: s.word(words.UNKNOWN_COUNTRIES + list(words.CAPITALS)),
    "thing": lambda s: s.word(words.THINGS),
    "machine": lambda s: s.word(words.MACHINES),
    "science": lambda s: s.word(words.SCIENCES),
    "place": lambda s: s.word(words.REGIONS),
    "language": lambda s: s.rng.choice(words.LANGUAGES),
    "noun": lambda s: s.word(words.ANIMALS + words.OBJECTS),
    "plural": lambda s: s.word(words.ANIMALS) + "s",
    "pseudo": lambda s: words.pseudo_word(s.rng),
}


def fill(source, template, slots=None):
    text = _CHOICE.sub(lambda m: source.rng.choice(m.group(1).split("|")), template)
    text = _SLOT.sub(
        lambda m: str(slots[m.group(1)]) if slots and m.group(1) in slots
        else _FILLERS[m.group(1)](source), text)
    return re.sub(r" +([?.!,]|'s|$)", r"\1", re.sub(r"  +", " ", text)).strip()


def read_intents(name):
    """text/NAME.txt -> {intent: (ways to ask, answers)}."""
    intents, asks, answers = {}, None, None
    with open(os.path.join(_TEXT_DIR, name + ".txt"), encoding="utf-8") as file:
        for line in file:
            mark, text = line[:1], line[2:].rstrip("\n")
            if mark in "@%":
                asks, answers = ([], []) if mark == "@" else (text.split(" | "), [])
                intents[text.split(" | ")[0]] = (asks, answers)
            elif mark == "?":
                asks.append(text)
            elif mark == "=":
                answers.append(text.replace("\\n", "\n"))
    return intents


ABOUT = read_intents("about")
TALK = read_intents("talk")
REFUSALS = read_intents("refusals")
TOPICS = read_intents("topics")

FRAMES = [  # {be} and {it}: is/are, it/they; {topic}: the thing
    "What {be} {topic}?",
    "What {be} {topic}? [Explain it|Tell me|In short, please].",
    "What does {topic} mean?",
    "Explain {topic}.",
    "Tell me about {topic}.",
    "Do you know what {topic} {be}?",
    "[Can you|Could you|Please] explain {topic}[ to me|]?",
    "Explain {topic} to me.",
    "Tell me what {topic} {be}.",
    "What do you know about {topic}?",
    "I [want|would like] to know what {topic} {be}.",
    "I do not know what {topic} {be}.",
    "What exactly {be} {topic}?",
    "Can you tell me what {topic} {be}?",
    "[Describe|Define] {topic}.",
    "What do people mean by {topic}?",
    "I have heard of {topic}. What {be} [it|that]?",
    "Give me a short explanation of {topic}.",
    "[Please|] say what {topic} {be}.",
    "How would you [explain|describe] {topic}?",
    "[Say|Tell me] something about {topic}.",
    "So what {be} {topic}?",
    "Explain what {topic} {be}.",
    "What {be} meant by {topic}?",
    "Explain to me what {topic} {be}.",
    "{topic}, what {be} that?",
    "What is the meaning of {topic}?",
    "Would you explain {topic}?",
    "Could you tell me what {topic} {be}?",
    "What, please, {be} {topic}?",
    "Teach me what {topic} {be}.",
    "Please explain what {topic} {be}.",
    "[And|So] {topic}?",
    "Give me a definition of {topic}.",
    "What can you tell me about {topic}?",
    "Please tell me about {topic}.",
]

_PREFIXES = ["hey, ", "ok, ", "so, ", "and ", "well, ", "hi, ", "hello, ", "please, ", "hey Wick, ",
             "one question: ", "another question: ", "I have a question. ", "now, ", "tell me, ",
             "just wondering, ", "quick question: ", "hello! ", "hi! ", "thanks. ", "good. "]
_SHORTER = [("What is", "What's"), ("what is", "what's"), ("I am ", "I'm "), ("do not", "don't"),
            ("cannot", "can't"), ("Let us", "Let's"), ("does not", "doesn't"), ("I would", "I'd"),
            ("I have ", "I've "), ("Who is", "Who's"), ("is not", "isn't"), ("it is", "it's")]


def as_typed(source, text, keep_case=False):
    """The same words as another person would type them: contractions, no capital, no mark at the end."""
    rng = source.rng
    if rng.random() < 0.35:
        for long, short in _SHORTER:
            text = text.replace(long, short)
    if rng.random() < 0.12:
        prefix = rng.choice(_PREFIXES)
        first = text.split(" ")[0]
        lower = first in ("I", "I'm", "I've", "I'd") or first[1:] != first[1:].lower()
        text = prefix + (text if lower or keep_case or prefix[-2] in ".!" else text[0].lower() + text[1:])
        text = text[0].upper() + text[1:]
    draw = rng.random()
    if text[-1] not in ".?!" and draw < 0.6:
        text += rng.choice("..!")
    elif text[-1] in ".?" and draw < 0.18:
        text = text[:-1]
    elif text[-1] == "." and draw < 0.25:
        text = text[:-1] + rng.choice([", please.", " please", " for me."])
    elif text[-1] == "?" and draw < 0.22:
        text += rng.choice(["?", " Please tell me.", " Thanks."])
    if not keep_case and rng.random() < 0.2:
        text = text.lower() if rng.random() < 0.6 else text[0].lower() + text[1:]
    return text
