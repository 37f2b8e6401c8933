"""Imitates how people type on a chat page: no capitals, no punctuation, "u" for "you", typing errors, politeness, smileys.

`hasty` changes how a question is typed but not its meaning, so its answer stays the same. `expand` makes one text
from a wording with nested alternatives: `[a|b [c|d]|]`.
"""

import hashlib
import os
import re
import zlib

HELD_OUT_EVERY = 8
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "text", "kept_out.txt"), encoding="utf-8") as _file:
    KEPT_OUT = {line.strip() for line in _file if not line.startswith("#")}
_INNER = re.compile(r"\[([^\[\]]*)\]")

_SLANG = [(r"\byou are\b", ["ur", "u are", "youre", "you're"]), (r"\byour\b", ["ur", "your", "you're"]), (r"\byou\b", ["u", "ya"]),
          (r"\bare\b", ["r"]), (r"\bwhat is\b", ["whats", "what's", "wats", "wat is"]), (r"\bwho is\b", ["whos", "who's"]),
          (r"\bhow is\b", ["hows"]), (r"\bwhere is\b", ["wheres", "where's"]), (r"\bplease\b", ["pls", "plz", "plss"]),
          (r"\bdo not\b", ["dont", "don't"]), (r"\bcannot\b", ["cant", "can't"]), (r"\bi am\b", ["im", "i'm"]),
          (r"\bit is\b", ["its", "it's"]), (r"\bwant to\b", ["wanna"]), (r"\bgoing to\b", ["gonna"]),
          (r"\bbecause\b", ["cuz", "bc"]), (r"\bthanks\b", ["thx", "ty"]), (r"\bfor\b", ["4"]), (r"\bto\b", ["2"]),
          (r"\bwhy\b", ["y"]), (r"\bokay\b", ["k", "kk"]), (r"\bi have\b", ["ive", "i've"]), (r"\bi would\b", ["id", "i'd"]),
          (r"\bdoes not\b", ["doesnt"]), (r"\bis not\b", ["isnt"]), (r"\bwithout\b", ["w/o"]), (r"\bwith\b", ["w/"]),
          (r"\bpeople\b", ["ppl"]), (r"\band\b", ["&", "n"]), (r"\bdid not\b", ["didnt"]), (r"\blet us\b", ["lets", "let's"]),
          (r"\bi will\b", ["ill", "i'll"]), (r"\bthat is\b", ["thats", "that's"]), (r"\bright now\b", ["rn"]),
          (r"\bsomething\b", ["sth", "smth"]), (r"\bgive me\b", ["gimme"]), (r"\bgot to\b", ["gotta"])]
_RARE = {"4", "2", "y", "n", "&", "w/", "r", "ya", "k", "kk", "you're"}
_PLAIN = [("What is", "What's"), ("what is", "what's"), ("I am ", "I'm "), ("do not", "don't"), ("cannot", "can't"),
          ("does not", "doesn't"), ("I would", "I'd"), ("I have ", "I've "), ("who is", "who's"), ("it is", "it's"),
          ("let us", "let's"), ("Let us", "Let's"), ("is not", "isn't"), ("You are", "You're"), ("you are", "you're")]
_BEFORE = ["hey ", "hey, ", "hi ", "hi, ", "hello, ", "ok ", "ok so ", "so ", "um ", "uh ", "yo ", "bro ", "dude ", "wait ", "wait, ",
           "please ", "pls ", "and ", "btw ", "quick question: ", "question: ", "hey wick, ", "wick, ", "lol ", "well ",
           "can you tell me ", "i wanted to ask: ", "just curious, ", "sorry, ", "hmm ", "oh ", "also ", "ok then ", "now ",
           "one question, ", "i was wondering ", "could you please tell me ", "do you happen to know ", "my friend asks: ", "ok here is one: ", "hey so ",
           "excuse me, ", "listen, ", "thanks! ", "cool, ", "nice. ", "alright, ", "hello! ", "hi! ", "hey! "]
_AFTER = [" please", " pls", " plz", " thanks", " thx", " lol", " haha", " bro", " man", " tho", " :)", " 🙂", " 😊", "??", "!!", "...",
          " ??", " ?", " huh", " rn", " then", " btw", " 🤔", " 😅", " dude", " mate", " xD", " :D", " !!", "?!"]
_NEAR = {"a": "sq", "e": "wr", "i": "uo", "o": "ip", "t": "ry", "n": "bm", "s": "ad", "r": "et", "h": "gj", "l": "k",
         "d": "sf", "c": "xv", "u": "yi", "m": "n", "p": "o", "g": "fh", "y": "tu", "w": "qe", "k": "jl", "b": "vn"}


def held_out(text):
    """Returns whether a text is held out of training: one in eight, by its checksum. `drawn` uses only one side of the split."""
    return zlib.crc32(text.encode()) % HELD_OUT_EVERY == 0


def fingerprint(text):
    """Returns the form of a text in text/kept_out.txt: a checksum of its letters and digits, in lower case."""
    return hashlib.sha256(re.sub(r"[\W_]+", " ", text.lower()).strip().encode()).hexdigest()[:16]


def kept_out(text):
    """Returns whether a text is one of the evaluation questions. Very common texts ("hi", "tell me a joke") are not among them."""
    return fingerprint(text) in KEPT_OUT


def expand(rng, text):
    """Expands a wording: each [a|b] becomes one of its alternatives, the innermost ones first."""
    while "[" in text:
        changed = _INNER.sub(lambda m: rng.choice(m.group(1).split("|")), text)
        if changed == text:
            break
        text = changed
    return re.sub(r" +([?.!,])", r"\1", re.sub(r"  +", " ", text)).strip()


def drawn(source, make):
    """Returns a text from `make()` on the source's side of the split; the last one if none is found."""
    for _ in range(40):
        text = make()
        if held_out(text.lower()) == source.held_out:
            break
    return text


def slip(rng, word):
    """Makes one typing error inside a word of four or more letters."""
    if len(word) < 4 or not word.isalpha() or not word.isascii():
        return word
    i, draw = rng.randint(1, len(word) - 2), rng.random()
    if draw < 0.35:
        return word[:i] + word[i + 1] + word[i] + word[i + 2:]
    if draw < 0.65:
        return word[:i] + word[i + 1:]
    if draw < 0.85:
        return word[:i] + word[i] + word[i:]
    return word[:i] + rng.choice(_NEAR.get(word[i].lower(), word[i])) + word[i + 1:]


def _slang(rng, text, chance):
    for pattern, shorts in _SLANG:
        def shorter(match):
            short = rng.choice(shorts)
            if rng.random() >= (chance * 0.3 if short in _RARE else chance):
                return match.group(0)
            return short
        text = re.sub(pattern, shorter, text)
    return text


def hasty(rng, text, fixed=(), framed=True):
    """Returns the text as somebody might type it. Words in `fixed` (values to copy) are not misspelled, and keep their case."""
    draw = rng.random()
    if draw < 0.22:
        out = text
        if rng.random() < 0.5:
            for long, short in _PLAIN:
                out = out.replace(long, short)
        return out
    low = draw < 0.86
    kept = {word.lower() for value in fixed for word in str(value).split()}
    out = text
    if low:
        out = " ".join(w if re.sub(r"\W", "", w).lower() in kept and rng.random() < 0.6 else w.lower() for w in text.split(" "))
        out = _slang(rng, out, rng.choice((0.0, 0.35, 0.8)))
    if low and rng.random() < 0.25:
        out = out.replace("'", "")
    if rng.random() < 0.22:
        parts = out.split(" ")
        i = rng.randrange(len(parts))
        if parts[i].strip(".?!,").lower() not in kept and not any(c.isdigit() for c in parts[i]):
            parts[i] = slip(rng, parts[i])
        out = " ".join(parts)
    if out and out[-1] in ".?!" and rng.random() < (0.75 if low else 0.3):
        out = out[:-1]
    if framed and rng.random() < 0.16:
        out = rng.choice(_BEFORE) + out
    if framed and rng.random() < 0.16:
        out = out.rstrip(".?!") + rng.choice(_AFTER)
    if rng.random() < 0.02:
        out = out.upper() if not kept else out
    return out or text
