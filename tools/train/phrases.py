"""Wordings: templates with alternatives, their training split, and variations in how people type.

A template can contain `[a|b|]` (alternatives) and `{slot}` (to be filled). About a sixth of each list is held out:
training never uses it, and evaluation uses nothing else. Training begins with the plainest wordings; later stages
(a Source's `stage`) add more templates, typing errors, and words that occur in no list.
"""

import dataclasses
import os
import re

import words

HELD_OUT_EVERY = 6
LAST_STAGE = 3  # 0: narrow, 1: wide, 2: wide, with much to copy, 3: still more ways to ask, and odd words
VISIT_STAGE = 4  # mostly questions of first-time visitors (visits.py and related modules)
_TEXT_DIR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "text")
_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_SLOT = re.compile(r"\{(\w+)\}")


class Source:
    """Draws templates and their fillings: a seeded generator and a side of the split."""

    def __init__(self, rng, held_out=False, by_parts=True, stage=LAST_STAGE):
        self.rng = rng
        self.held_out = held_out
        self.by_parts = by_parts  # whether sums are answered by tens and ones
        self.stage = stage  # which mixture of episodes (corpus.py)
        self.wide = stage > 0  # whether more than the plainest wordings are used
        self.broad = stage > 2  # whether all wordings are used

    def word(self, words_list):
        return self.rng.choice(words.part(words_list, self.held_out))

    def template(self, templates):
        if isinstance(templates, Asks):
            if self.held_out and templates.held_out:
                return self.rng.choice(templates.held_out)
            return self.rng.choice(templates.early + (templates.late if self.wide else [])
                                   + (templates.broad if self.broad else []))
        if len(templates) < HELD_OUT_EVERY:
            return self.rng.choice(templates)
        return self.rng.choice(split(templates, self.held_out))

    def odd(self, chance):
        """Returns, sometimes and only in the last stage of training, a word to copy that is in no list; otherwise None."""
        if not self.broad or self.held_out or self.rng.random() >= chance:
            return None
        return words.odd_word(self.rng)

    def name(self):
        """Returns a first name; one in five is made up, so that the model learns to copy and not a list of names."""
        odd = self.odd(0.2)
        if odd or self.rng.random() < 0.2:
            return (odd or words.pseudo_word(self.rng)).capitalize()
        return self.word(words.NAMES)

    def city(self):
        odd = self.odd(0.2)
        if odd or self.rng.random() < 0.1:
            return (odd or words.pseudo_word(self.rng)).capitalize()
        return self.word(words.CITIES)

    def say(self, templates, **slots):
        """Fills one template of the list."""
        return fill(self, self.template(templates), slots)


@dataclasses.dataclass
class Asks:
    """The wordings of one intent: trained from the start, from stage 1, from stage 3; held out."""

    early: list
    late: list
    broad: list
    held_out: list

    @property
    def trained(self):
        return self.early + self.late + self.broad


def split(templates, held_out):
    return [t for i, t in enumerate(templates)
            if (i % HELD_OUT_EVERY == HELD_OUT_EVERY - 1) == held_out]


def ways(templates, broad):
    """Makes a list with a sixth held out, and more templates for the last stage of training."""
    return Asks(split(templates, False), [], broad, split(templates, True))


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


def variants(template):
    """Returns every expansion of a template, in lower case and without final punctuation; slots stay open."""
    match = _CHOICE.search(template)
    if not match:
        return [re.sub(r" +", " ", template).strip().lower().rstrip(".! ")]
    return [text for choice in match.group(1).split("|")
            for text in variants(template[:match.start()] + choice + template[match.end():])]


def _read_lines(name):
    with open(os.path.join(_TEXT_DIR, name + ".txt"), encoding="utf-8") as file:
        return [(line[:1], line[2:].rstrip("\n")) for line in file if line[:1] in ("@", "%", "?", "+", "*", "!", "=")]


def read_intents(name):
    """Reads text/NAME.txt -> {intent: (Asks, answers)}."""
    found = {}
    for mark, text in _read_lines(name):
        if mark == "@":
            asks, answers = found.setdefault(text, (Asks([], [], [], []), []))
        elif mark == "=":
            answers.append(text.replace("\\n", "\n"))
        else:
            {"?": asks.early, "+": asks.late, "*": asks.broad, "!": asks.held_out}[mark].append(text)
    return found


def read_topics(name):
    """Reads text/NAME.txt -> {topic: (names, answers)}."""
    topics = {}
    for mark, text in _read_lines(name):
        if mark == "%":
            names = text.split(" | ")
            topics[names[0]] = (names, [])
        else:
            topics[names[0]][1].append(text.replace("\\n", "\n"))
    return topics


ABOUT = read_intents("about")
TALK = read_intents("talk")
REFUSALS = read_intents("refusals")
TOPICS = read_topics("topics")

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

FRAMES_MORE = [  # for the last stage of training
    "Give me a short [definition|description] of {topic}.", "Give me an explanation of {topic}.",
    "Give a short explanation of {topic}.", "I need a short explanation of {topic}.", "A short explanation of {topic}, please.",
    "What, then, {be} {topic}?", "What, in short, {be} {topic}?", "What do you mean by {topic}?", "Can you define {topic}?",
    "What {be} {topic} supposed to mean?", "I want to know about {topic}.", "Could you explain to me what {topic} {be}?",
    "Would you tell me what {topic} {be}?", "Do you know about {topic}?", "Do you know {topic}?",
    "In one sentence, what {be} {topic}?", "Describe what {topic} {be}.", "I'd like to understand {topic}.",
    "Explain [to me |]in short what {topic} {be}.", "Please tell me what {topic} {be}.",
]
FRAME_WAYS = ways(FRAMES, FRAMES_MORE)

_PREFIXES = ["hey, ", "ok, ", "so, ", "and ", "well, ", "hi, ", "hello, ", "please, ", "hey Wick, ",
             "one question: ", "another question: ", "I have a question. ", "now, ", "tell me, ",
             "just wondering, ", "quick question: ", "hello! ", "hi! ", "thanks. ", "good. "]
_MORE_PREFIXES = ["Wick, ", "I want to know: ", "can you tell me: ", "tell me: ", "I wonder: ", "may I ask: ", "oh, ",
                  "and now: ", "next question: ", "by the way, ", "good day! ", "excuse me, ", "great. ", "I see. ",
                  "let me ask: ", "ah, ", "listen, ", "actually, ", "hm, ", "ok. ", "hello Wick, ", "please tell me: "]
_INSERTED = "really actually just now exactly then maybe perhaps also honestly simply".split()
_DROPPED = set("the a do does please me of to is are my it some so very".split())
_SWAPS = [("which", "what"), ("what", "which"), ("large", "big"), ("big", "large"), ("small", "little"),
          ("fast", "quick"), ("computer", "machine"), ("machine", "computer"), ("website", "page"), ("page", "website"),
          ("messages", "texts"), ("created", "made"), ("made", "built"), ("need", "require"), ("start", "begin"),
          ("favourite", "favorite"), ("favorite", "favourite"), ("colour", "color"), ("licence", "license"),
          ("movie", "film"), ("film", "movie"), ("internet", "web"), ("sick", "ill"), ("scared", "afraid"),
          ("picture", "image"), ("images", "pictures"), ("chat", "conversation"), ("text", "words"), ("can", "could"),
          ("run", "work"), ("work", "run"), ("use", "try"), ("want", "would like"), ("use", "have"), ("find", "get"),
          ("get", "find"), ("show", "give"), ("explain", "describe"), ("describe", "explain"),
          ("phone", "mobile"), ("network", "internet"), ("answer", "reply"), ("answers", "replies")]


def _misspelled(rng, word):
    """Drops one letter or swaps two inside a word of five or more letters."""
    if len(word) < 5 or not word.isalpha():
        return word
    i = rng.randint(1, len(word) - 3)
    return word[:i] + word[i + 1:] if rng.random() < 0.5 else word[:i] + word[i + 1] + word[i] + word[i + 2:]


def shaken(source, text):
    """Returns the question as typed in haste: a word swapped, inserted, left out or misspelled."""
    rng, out = source.rng, text.split(" ")
    for i, word in enumerate(out):
        match = re.fullmatch(r"(\w+)(\W*)", word)
        swaps = [b for a, b in _SWAPS if match and match.group(1).lower() == a]
        if swaps and rng.random() < 0.3:
            new = rng.choice(swaps)
            out[i] = (new.capitalize() if word[0].isupper() and new != "i" else new) + match.group(2)
    draw = rng.random()
    if len(out) > 2 and draw < 0.3:
        out.insert(rng.randint(1, len(out) - 1), rng.choice(_INSERTED))
    elif len(out) > 3 and draw < 0.5:
        drops = [i for i, word in enumerate(out) if word.lower() in _DROPPED]
        if drops:
            del out[rng.choice(drops)]
            out[0] = out[0][0].upper() + out[0][1:]
    elif draw < 0.6:
        i = rng.randrange(len(out))
        out[i] = _misspelled(rng, out[i])
    return " ".join(out)


def asked(source, text):
    """Returns a question from text/ as somebody might type it, starting with stage 1 sometimes with errors."""
    if source.wide and not source.held_out and source.rng.random() < 0.4:
        text = shaken(source, text)
    return as_typed(source, text)


_SHORTER = [("What is", "What's"), ("what is", "what's"), ("I am ", "I'm "), ("do not", "don't"),
            ("cannot", "can't"), ("Let us", "Let's"), ("does not", "doesn't"), ("I would", "I'd"),
            ("I have ", "I've "), ("Who is", "Who's"), ("is not", "isn't"), ("it is", "it's")]


def as_typed(source, text, keep_case=False):
    """Returns the same words typed differently: contractions, no capital, no final punctuation."""
    rng = source.rng
    if rng.random() < 0.35:
        for long, short in _SHORTER:
            text = text.replace(long, short)
    if rng.random() < 0.12:
        prefix = rng.choice(_PREFIXES + _MORE_PREFIXES if source.wide and not source.held_out else _PREFIXES)
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
