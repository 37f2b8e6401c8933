"""Input of first-time visitors as turns: text/visits.txt, text/open.txt, text/facts.txt, text/foreign.txt with the subjects in wide.py.

Every function takes a phrases.Source and returns a Turn or, where more than one belongs together, a list of Turns. One text in
eight is held out (haste.held_out); a Source with `held_out` asks nothing else.
"""

import dataclasses
import os

import haste
import phrases
import turns
import wide
import words
import wordsums
from turns import Turn

_TEXT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "text")


def _read(name):
    """Reads text/NAME.txt -> {heading: (wordings, answers)}; "@" or "%" begins a heading."""
    found = {}
    with open(os.path.join(_TEXT, name + ".txt"), encoding="utf-8") as file:
        for line in file:
            mark, text = line[:1], line[2:].rstrip("\n")
            if mark in "@%":
                asks, answers = found.setdefault(text, ([], []))
            elif mark == "?":
                asks.append(text)
            elif mark == "=":
                answers.append(text)
    return found


OPEN = {name: asks for name, (asks, _) in _read("open").items()}
FACTS = _read("facts")
with open(os.path.join(_TEXT, "foreign.txt"), encoding="utf-8") as _file:
    FOREIGN = [line.rstrip("\n").split("|") for line in _file if line.strip() and not line.startswith("#")]
_FAMILIES = {"about": phrases.ABOUT, "talk": phrases.TALK, "refusals": phrases.REFUSALS}


def _intents():
    """Returns {name: (wordings, answers)}; a name with a family uses the answers of that family's intent."""
    out = {}
    for name, (asks, answers) in _read("visits").items():
        if "/" in name:
            family, intent = name.split("/")
            answers = _FAMILIES[family][intent][1]
        out[name] = (asks, answers)
    return out


INTENTS = _intents()
_WEIGHTS = {"foreign": 14, "injection": 7, "refusals/knowledge": 26, "refusals/people": 8, "opinion": 9, "refusals/code": 12, "refusals/now": 11,
            "refusals/translate": 10, "writing": 10, "summarise": 12, "verse": 5, "play": 6, "refusals/advice": 6, "refusals/harm": 4,
            "about/privacy": 4, "talk/insult": 5, "talk/sad": 3, "bigger-model": 4, "about/can-do": 3, "talk/nonsense": 4, "talk/joke": 2,
            "how-works": 3, "about/server": 3, "talk/hello": 2, "laugh": 2, "liked": 2, "silent": 2, "about/compare": 2, "about/use-page": 3, "about/see": 2}
OPEN_INTENTS = ["opinion", "refusals/advice", "refusals/harm", "refusals/now", "refusals/code", "refusals/translate", "writing", "summarise", "verse", "play",
                "injection", "refusals/people", "refusals/knowledge", "foreign", "talk/nonsense"]
_UNDRESSED = {"foreign", "talk/nonsense", "laugh", "liked", "silent"}  # asked unchanged
_ROWS = ["qwertyuiop", "asdfghjkl", "zxcvbnm"]


def _mash(rng):
    """Returns random keys."""
    draw = rng.random()
    if draw < 0.35:
        row = rng.choice(_ROWS)
        start = rng.randint(0, 3)
        text = row[start:start + rng.randint(4, 9)]
        return text + rng.choice(["", ";", ";;", text, "'", "kk", "\\", "[]", "123"])
    if draw < 0.7:
        return "".join(rng.choice("asdfghjklqwertyuiopzxcvbnm") if rng.random() < 0.9 else " " for _ in range(rng.randint(5, 18)))
    if draw < 0.82:
        return " ".join(words.pseudo_word(rng) for _ in range(rng.randint(1, 4)))
    if draw < 0.9:
        return "".join(rng.choice("#$%&*+-/<>@^_~{}[]|;:,") for _ in range(rng.randint(2, 10)))
    return rng.choice(["aaaaaaa", "hhhhhh", "lkjlkj", "blah blah", "bla bla bla", "xyzzy", "dfdfdf", "jjjjj", "lalalala", "0000", "1111111", "abcabc", "x", "zzz", "b", "qq", "blub"])


def _laugh(rng):
    draw = rng.random()
    if draw < 0.5:
        return rng.choice(["😂", "🤣", "😆", "😹", "😄", "😁", "😀", "😅"]) * rng.randint(1, 4)
    return rng.choice(["haha", "hahaha", "lol", "lmao", "rofl", "hehe", "hihi", "hahahaha", "lolol", "loool", "xd", "xD", "hah", "lol that was funny", "haha good one", "that was funny",
                       "that is hilarious", "you are funny lol", "haha nice", "lmfao", "made me laugh", "haha that's good", "good one", "jaja", "bahaha", "kek", "heh", "😂 lol", "haha 😂"])


def _liked(rng):
    return rng.choice(["👍", "👌", "🙏", "❤️", "😍", "🥰", "👏", "🎉", "💯", "😎", "🙂", "😊", "☺️", "🤗", "💕", "⭐", "🔥", "✌️", "💪", "🤩", "😘", "✅", "♥", ":)", ":-)", ";)", ":D", "<3", "(:", "👋🙂"]) \
        * rng.choice([1, 1, 1, 2, 3])


def _silent(rng):
    return rng.choice(["?", "??", "???", ".", "..", "...", "....", "!", "!!", "?!", "-", "…", "? ?", ". . .", "!?", "!!!", "so?", "and?", "well?", "hello??", "hey?", "…?", "ok?", ",", "*", "👀", "🫥", "😐", "🙄"])


def foreign(source):
    rng = source.rng
    line = rng.choice(FOREIGN)
    pool = [text for text in line if haste.held_out(text) == source.held_out] or line
    text = rng.choice(pool)
    if rng.random() < 0.35:
        text = f"{text}{rng.choice([', ', ' ', '. ', '! '])}{rng.choice(pool)}"
    draw = rng.random()
    if draw < 0.3:
        text = text.lower()
    elif draw < 0.5:
        text = text[0].upper() + text[1:]
    if rng.random() < 0.3:
        text = text.rstrip("?.!？ ")
    if rng.random() < 0.12:
        text = text.split(" ", 1)[-1]
    return text or line[0]


_MAKERS = {"mash": _mash, "laugh": _laugh, "liked": _liked, "silent": _silent}


def _wording(source, name):
    """Returns a wording of the intent from the right side of the split, with its subjects."""
    rng = source.rng
    if name == "foreign":
        return foreign(source)
    asks = INTENTS[name][0]
    slot = asks[0].strip("{}") if len(asks) == 1 else None
    if slot in _MAKERS:
        return haste.drawn(source, lambda: _MAKERS[slot](rng))
    asks = OPEN.get(slot, asks)
    weights = [min(30, 1 + a.count("|")) ** 0.6 for a in asks]  # a wording with many alternatives has a larger weight
    return haste.drawn(source, lambda: wide.fill(rng, haste.expand(rng, rng.choices(asks, weights)[0])))


def canned_named(source, name):
    text = _wording(source, name)
    answers = INTENTS[name][1]
    if name not in _UNDRESSED:
        text = haste.hasty(source.rng, text)
    return Turn("visit/" + name, text, source.rng.choice(answers), lambda told: told.strip() in answers)


_NAMES = list(INTENTS)
_NAME_WEIGHTS = [_WEIGHTS.get(name, 1.4) for name in _NAMES]


def canned(source):
    return canned_named(source, source.rng.choices(_NAMES, _NAME_WEIGHTS)[0])


_TALKED = [name for name in _NAMES if name not in OPEN_INTENTS or name == "opinion"]
_MORE = {"talk/insult": 6, "talk/sad": 4, "about/privacy": 4, "bigger-model": 3, "about/can-do": 2, "opinion": 2, "how-works": 2, "about/server": 2, "talk/hello": 3,
         "about/compare": 3}
_TALKED_WEIGHTS = [_MORE.get(name, 1) for name in _TALKED]


def refused(source):
    """Returns one of the intents with open subjects."""
    return canned_named(source, source.rng.choices(OPEN_INTENTS, [_WEIGHTS.get(n, 2) for n in OPEN_INTENTS])[0])


def talked(source):
    """Returns one of the other intents."""
    return canned_named(source, source.rng.choices(_TALKED, _TALKED_WEIGHTS)[0])


# ---- facts -------------------------------------------------------------------------------------

_CAPITAL = ["[what is|whats|tell me|do you know|name|which city is|whats the name of|i want to know|what was|can you tell me] the capital [city |]of {x}[?|]", "capital of {x}[?| please|]", "{x} capital[?|]",
            "[what is|whats] {x}'s capital[?|]", "the capital [city |]of {x} is [what|?|]", "capital city of {x}[?|]", "[what|which] city is the capital of {x}[?|]", "the capital of {x}[?|]"]
_THING = {
    "colour": (["[what colo[u|]r|which colo[u|]r|whats the colo[u|]r|what colo[u|]r exactly] [is|has|of] {x}[?|]", "colo[u|]r of {x}[?|]", "{x} colo[u|]r[?|]", "[tell me|do you know] [what colo[u|]r {x} is|the colo[u|]r of {x}]"],
               lambda x, y: f"{x[0].upper()}{x[1:]} is {y}."),
    "legs": (["how many legs [does|do|has] [a|an|] {x} have[?|]", "[number|count] of legs of [a|] {x}[?|]", "[a|] {x} has how many legs[?|]", "[tell me|do you know] how many legs [a|] {x} has"],
             lambda x, y: f"{'An' if x[0] in 'aeiou' else 'A'} {x} has {y} legs."),
    "sound": (["what [sound|noise] does [a|an|the] {x} make[?|]", "what does [a|the] {x} say[?|]", "how does [a|the] {x} [sound|go][?|]"], lambda x, y: f"{'An' if x[0] in 'aeiou' else 'A'} {x} says {y}."),
    "opposite": (["[what is|whats|] the opposite of {x}[?|]", "opposite of {x}[?|]", "[what is|whats] the contrary of {x}[?|]", "antonym of {x}"], lambda x, y: f"The opposite of {x} is {y}."),
}
def capital_answer(country):
    known = {**words.CAPITALS, **words.MORE_CAPITALS}
    return f"The capital of {country} is {known[country]}." if country in known else turns.UNKNOWN_CAPITAL


def _country(rng):
    known = list(words.CAPITALS) + list(words.MORE_CAPITALS)
    if rng.random() < 0.62:
        return rng.choice(known)
    while True:
        country = wide.fill(rng, "{country}")
        if country not in known:
            return country


def capital(source):
    country = _country(source.rng)
    text = haste.expand(source.rng, source.rng.choice(_CAPITAL)).replace("{x}", country)
    return Turn("visit/capital", haste.hasty(source.rng, text), capital_answer(country))


def known_thing(source):
    rng = source.rng
    kind = rng.choice(list(_THING))
    pairs = {"colour": words.THING_COLOURS, "legs": words.LEGS, "sound": words.SOUNDS,
             "opposite": [p for p in words.OPPOSITES if sum(p[0] in q for q in words.OPPOSITES) == 1]}[kind]
    asked, told = rng.choice(pairs)
    asks, answer = _THING[kind]
    text = haste.expand(rng, rng.choice(asks)).replace("{x}", asked.removeprefix("a ").removeprefix("an ") if kind == "colour" and rng.random() < 0.2 else asked)
    return Turn("visit/" + kind, haste.hasty(rng, text), answer(asked, told))


def fact(source):
    rng, draw = source.rng, source.rng.random()
    if draw < 0.42:
        return capital(source)
    if draw < 0.60:
        return known_thing(source)
    name = rng.choice(list(FACTS))
    asks, answers = FACTS[name]
    text = haste.drawn(source, lambda: haste.expand(rng, rng.choice(asks)))
    return Turn("visit/fact/" + name, haste.hasty(rng, text), answers[0])


_AND = ["and [of|for|in|] {x}[?|]", "[what about|how about|and what about] {x}[?|]", "and {x}[?|]", "{x}[?|]", "and the [one|capital] of {x}[?|]", "same for {x}[?|]", "now {x}", "of {x}[?|]"]


def capitals(source):
    """Returns a question about a capital, and then "and of Peru?"."""
    rng = source.rng
    told = [capital(source)]
    for _ in range(rng.randint(1, 3)):
        country = _country(rng)
        told.append(Turn("visit/capital-next", haste.hasty(rng, haste.expand(rng, rng.choice(_AND)).replace("{x}", country), framed=False), capital_answer(country)))
    return told


def in_haste(source):
    """Returns a question of the earlier stages, typed in haste."""
    turn = source.rng.choices((turns.talk, turns.about, turns.refusal, turns.fact, turns.name_list, turns.number_fact), (5, 4, 3, 2, 1, 1))[0](source)
    return dataclasses.replace(turn, user=haste.hasty(source.rng, turn.user))


_LISTED = ["[name|list|give me|tell me|write|show me|i need|can you name|do you know|tell|say|could you list|please list|i want] {n} {g}[?| please|]", "{n} {g}[?| please|]", "{n} [different|nice|random|common] {g}[?|]",
           "[a|make a|write a|give me a] list of {n} {g}[?| please|]", "[which|what] are {n} {g}[?|]", "[name|list] [me|] {n} [kinds|names|types] of {g}"]


def listed(source):
    """Returns a list of two to seven things as text; the things of a group always have the same order."""
    rng = source.rng
    group = rng.choice(list(words.GROUPS))
    count = rng.choice([2, 3, 3, 3, 4, 4, 5, 5, 6, 7])
    items = words.GROUPS[group][:count]
    text = haste.expand(rng, rng.choice(_LISTED)).replace("{n}", rng.choice([str(count), wordsums.in_words(count)])).replace("{g}", group)
    answer = turns.join_words(items)
    return Turn("list/visit", haste.hasty(rng, text), answer[0].upper() + answer[1:] + ".")


# ---- jokes ---------------------------------------------------------------------------------------

JOKES = [  # (subject, joke); a further joke is always the next in the list
    ("candle", "What does a candle say to its friend? You light up my life!"),
    ("computer", "Why was the computer cold? It left its windows open!"),
    ("cat", "Why did the cat sit on the computer? To keep an eye on the mouse!"),
    ("maths", "Why was six afraid of seven? Because seven ate nine!"),
    ("dog", "What do you call a dog that does magic? A labracadabrador!"),
    ("programmer", "Why do programmers like the dark? Because light attracts bugs!"),
    ("cow", "What do you call a cow with no legs? Ground beef!"),
    ("ghost", "Why are ghosts bad at lying? Because you can see right through them!"),
    ("fish", "Why are fish so clever? Because they live in schools!"),
    ("bicycle", "Why did the bicycle fall over? Because it was two tired!"),
    ("banana", "Why did the banana go to the doctor? Because it did not peel well!"),
    ("tomato", "Why did the tomato turn red? Because it saw the salad dressing!"),
    ("skeleton", "Why do skeletons never fight? Because they have no guts!"),
    ("snowman", "What do snowmen eat for breakfast? Snowflakes!"),
    ("chicken", "Why did the chicken cross the road? To get to the other side!"),
    ("token", "Why did the token cross the context? To get to the other page!"),
    ("teacher", "Why did the teacher wear sunglasses? Because her class was so bright!"),
    ("bee", "What do you call a bee that comes from America? A USB!"),
]
_TOPICS = {"cat": "[cat|cats|kittens|a cat]", "computer": "[computers|a computer|computer|pcs|laptops]", "maths": "[maths|math|numbers|mathematics]", "dog": "[dogs|a dog|dog|puppies]",
           "programmer": "[programmers|coders|developers|coding|programming|it people|nerds]", "cow": "[cows|a cow|cow]", "ghost": "[ghosts|a ghost|halloween]", "fish": "[fish|fishes|a fish]",
           "bicycle": "[bikes|bicycles|cycling|a bike]", "banana": "[bananas|a banana|fruit]", "tomato": "[tomatoes|vegetables|salad]", "skeleton": "[skeletons|bones]",
           "snowman": "[snowmen|winter|snow|christmas]", "chicken": "[chickens|a chicken|hens]", "token": "[ai|tokens|language models|llms|chatbots|robots]", "teacher": "[teachers|school|a teacher]",
           "bee": "[bees|insects]", "candle": "[candles|wick|fire]"}
_JOKE_ABOUT = ["[tell me|tell|know|got|do you know|give me|have you got|say|make|i want] [a|any|some|one] joke[s|] [about|on|with] {x}[?| please|]", "joke about {x}[ please|]", "{x} joke[s|][ please|?|]", "[a|] joke [about|on] {x}"]
UNKNOWN_JOKE = "I know no joke about that. Just ask for a joke, and I tell one that I know."
_MORE_JOKES = ["another [one|joke|]", "[one|] more", "one more [joke|] [please|]", "[tell me|give me|i want|got] another [one|joke|]", "[haha|lol|good one|nice|ok|😂|hahaha|funny] [another one|one more|another|next|more]",
               "next [one|joke|]", "again", "[more jokes|more please|and another one|a different one|another pls|do another|one more time|any other jokes|a better one|got more|keep going|next please|tell me one more]"]


def joke_about(source):
    rng = source.rng
    name = rng.choice(list(_TOPICS))
    if rng.random() < 0.4:
        subject, joke = wide.fill(rng, rng.choice(["{brand}", "{country}", "{person}", "{topic}", "{job}s", "{food}", "{city}", "{machine}s"])), UNKNOWN_JOKE
    else:
        subject, joke = haste.expand(rng, _TOPICS[name]), dict(JOKES)[name]
    return Turn("visit/joke-about", haste.hasty(rng, haste.expand(rng, rng.choice(_JOKE_ABOUT)).replace("{x}", subject)), joke)


def jokes(source):
    """Returns a joke, and often further ones."""
    rng = source.rng
    if rng.random() < 0.25:
        return [joke_about(source)]
    index = rng.choice([0, 1, 3, 8, 10, 14, 15])
    told = [Turn("visit/joke", canned_named(source, "talk/joke").user, JOKES[index][1], lambda t: t.strip() in {j for _, j in JOKES})]
    for _ in range(rng.choice([0, 0, 1, 2, 3])):
        if rng.random() < 0.12:
            told.append(canned_named(source, "laugh"))
        index = (index + 1) % len(JOKES)
        text = haste.expand(rng, rng.choice(_MORE_JOKES)) if rng.random() < 0.8 else canned_named(source, "talk/joke").user
        told.append(Turn("visit/joke-next", haste.hasty(rng, text, framed=False), JOKES[index][1]))
    return told


# ---- two questions in one ------------------------------------------------------------------------

_JOINED = [" and ", " and ", "? and ", "? also ", ". ", "? ", ", and ", " and also ", "? and then ", " plus ", "? ok and ", " & "]
_SHORT = ["about/name", "talk/age", "about/cost", "about/licence", "about/offline", "about/size", "about/maker", "talk/how-are-you", "talk/human", "about/gpu", "about/privacy", "talk/live",
          "about/language-c", "about/english", "about/can-do", "no-key", "about/install", "about/phone", "about/browsers", "talk/fun-fact"]


def two(source):
    """Returns two questions in one message, with both answers."""
    rng = source.rng

    def one():
        draw = rng.random()
        if draw < 0.42:
            return canned_named(source, rng.choice(_SHORT))
        if draw < 0.56:
            return capital(source)
        if draw < 0.68:
            return wordsums.plain(source)
        if draw < 0.82:
            return Turn("visit/joke", canned_named(source, "talk/joke").user, rng.choice(JOKES[:4])[1])
        return canned_named(source, "talk/fun-fact")
    while True:
        first, second = one(), one()
        if first.kind != second.kind and first.answer != second.answer:
            break
    asked = first.user.rstrip("?.!") + rng.choice(_JOINED) + second.user
    if rng.random() < 0.25:
        asked = rng.choice(["hi! ", "hello ", "hey, ", "hi there, "]) + asked
    return Turn("visit/two", asked, f"{first.answer} {second.answer}")


def topic(source):
    """Returns a question about a technical term, typed in haste."""
    turn = turns.topic(source)
    return Turn("visit/" + turn.kind, haste.hasty(source.rng, turn.user), turn.answer)
