"""Ways to say a thing: templates with alternatives, their split, and the small habits of people who type.

A template holds `[a|b|]` (one of these) and `{slot}` (a filling). About a sixth of each list is held out:
training never sees it, evaluation asks nothing else. Training begins narrow, with the plainest ways to
ask, and grows wide (a Source's `stage`): more templates, and words shaken as by a hasty hand.
"""

import dataclasses
import hashlib
import os
import re

import words

HELD_OUT_EVERY = 6
LAST_STAGE = 2  # 0: narrow, 1: wide, 2: wide, with much to copy
_TEXT_DIR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "text")
_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_SLOT = re.compile(r"\{(\w+)\}")


class Source:
    """Where fillings and templates come from: the seeded generator and which side of the split."""

    def __init__(self, rng, held_out=False, by_parts=True, stage=LAST_STAGE):
        self.rng = rng
        self.held_out = held_out
        self.by_parts = by_parts  # whether sums are answered by way of tens and ones
        self.stage = stage  # which mixture of episodes (corpus.py)
        self.wide = stage > 0  # whether all ways to ask are used, or only the plainest

    def word(self, words_list):
        return self.rng.choice(words.part(words_list, self.held_out))

    def template(self, templates):
        if isinstance(templates, Asks):
            if self.held_out and templates.held_out:
                return self.rng.choice(templates.held_out)
            return self.rng.choice(templates.early + templates.late if self.wide else templates.early)
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


@dataclasses.dataclass
class Asks:
    """The ways to ask of one intent: trained from the start, trained once training is wide, held out."""

    early: list
    late: list
    held_out: list


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


def variants(template):
    """Every text of a template's alternatives, in lower case and without end marks; slots stay open."""
    match = _CHOICE.search(template)
    if not match:
        return [re.sub(r" +", " ", template).strip().lower().rstrip(".! ")]
    return [text for choice in match.group(1).split("|")
            for text in variants(template[:match.start()] + choice + template[match.end():])]


def _words_of(templates):
    texts = " ".join(text for template in templates for text in variants(template))
    return set(re.findall(r"[a-z0-9'-]+", _SLOT.sub(" ", texts)))


_COMMON = set("""the a an is are am was were be been do does did you i me my your we us our it its this that these
    what which who whom how why when where can could will would should may must to of in on at for with from by and
    or not no have has had please tell say know so very really there here some any one as if about up now
    today too then just still""".split())


def _is_fair(template, others):
    """Whether a way to ask is new, but in its order and frame alone: its telling words are in `others`."""
    if set(variants(template)) & {text for other in others for text in variants(other)}:
        return False
    known, own = _words_of(others), _words_of([template])
    telling = own - _COMMON
    return len(own) > 1 and (telling or own) <= known


def _split_asks(plain, further):
    """Asks of an intent. Held out: a sixth, of those outside the early ones, as far as they are fair."""
    early = plain if len(plain) < HELD_OUT_EVERY else split(plain, False)
    open_ones = [t for t in plain if t not in early] + further
    open_ones.sort(key=lambda t: hashlib.sha256(t.encode()).digest())
    wanted, held_out = (len(plain) + len(further)) // HELD_OUT_EVERY, []
    for template in open_ones:
        rest = early + [t for t in open_ones if t != template and t not in held_out]
        if len(held_out) < wanted and _is_fair(template, rest):
            held_out.append(template)
    return Asks(early, [t for t in open_ones if t not in held_out], held_out)


def _read_lines(name):
    with open(os.path.join(_TEXT_DIR, name + ".txt"), encoding="utf-8") as file:
        return [(line[:1], line[2:].rstrip("\n")) for line in file if line[:1] in ("@", "%", "?", "+", "=")]


def read_intents(name):
    """text/NAME.txt -> {intent: (Asks, answers)}."""
    found = {}
    for mark, text in _read_lines(name):
        if mark == "@":
            plain, further, answers = found.setdefault(text, ([], [], []))
        elif mark in "?+":
            (plain if mark == "?" else further).append(text)
        else:
            answers.append(text.replace("\\n", "\n"))
    return {intent: (_split_asks(plain, further), answers) for intent, (plain, further, answers) in found.items()}


def read_topics(name):
    """text/NAME.txt -> {topic: (names, answers)}."""
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
    """One letter lost or two exchanged, in the inside of a word of five letters or more."""
    if len(word) < 5 or not word.isalpha():
        return word
    i = rng.randint(1, len(word) - 3)
    return word[:i] + word[i + 1:] if rng.random() < 0.5 else word[:i] + word[i + 1] + word[i] + word[i + 2:]


def shaken(source, text):
    """The same question in a hasty hand: a word swapped, put in, left out or misspelled."""
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
    """A canned question as somebody types it; shaken now and then while training is wide."""
    if source.wide and not source.held_out and source.rng.random() < 0.4:
        text = shaken(source, text)
    return as_typed(source, text)


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
