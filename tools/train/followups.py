"""Follow-up questions of visitors: about two facts in one sentence, a corrected name, "the story", or a fact from many turns ago."""

import haste
import memory
import stories
import tales
import visits
import words
from turns import Turn

_HI = ["[hi|hello|hey|yo|good morning|hi there|] [i am|my name is|this is|its|call me|im|name is] {x}", "[i am|my name is|call me] {x}", "{x} here", "[my name is|im] {x} [nice to meet you|btw|by the way|]", "people call me {x}", "you can call me {x}"]
_MY_NAME = ["[so|ok|hey|and|now|wait|] [what is|whats|do you know|do you remember|can you tell me|tell me|do you still know] my name [again|]", "who am i", "[what am i called|do you remember who i am|my name is|say my name|what did i say my name was|remember my name|whats my name again]"]
_WRONG = ["no[,|] [i said|it is|its|my name is|i am|im] {x}", "[sorry|oops|wait|no no|correction|no wait][,|] [i meant|its|my name is|i am|it is] {x}", "[actually|wait] [my name is|i am|its] {x}", "not {y}[,|] {x}", "[i am|im] not {y}[,|] [i am|im] {x}", "i meant {x}"]
_PET_KINDS = ["dog", "cat", "horse", "rabbit", "bird", "hamster", "parrot", "fish"]
_TWO = ["i live in {c} and [i have|have] a {p} [called|named] {x}", "i am from {c} and my {p} is [called|named] {x}", "i have a {p} [called|named] {x} and live in {c}", "my {p} is called {x} and we live in {c}", "[i am|my name is] {n} and my {p} is [called|named] {x}",
        "[i am|my name is] {n} and i live in {c}", "[i am|my name is] {n}, i live in {c} and i have a {p} called {x}", "i have a {p}, {x}, and we live in {c}"]
_PET = ["[what is|whats|do you remember|do you know|tell me] [my {p}'s name|my {p}s name|the name of my {p}|what my {p} is called] [again|]", "[how is|what is] my {p} called [again|]", "name of my {p}"]
_HOME = ["[where do i live|where am i from|what city do i live in|do you remember where i live|which city am i in|where is my home|tell me where i live] [again|]"]
_THINGS = {"colour": (["my favo[u|]rite colo[u|]r is {x}", "i like the colo[u|]r {x}", "{x} is my favo[u|]rite colo[u|]r"], ["[what is|whats|do you remember|do you know] my favo[u|]rite colo[u|]r", "[which|what] colo[u|]r do i like"], words.COLOURS),
           "food": (["my favo[u|]rite food is {x}", "i love {x}", "i like to eat {x}"], ["[what is|whats|do you remember|do you know] my favo[u|]rite food", "what do i like to eat"], words.FOODS),
           "job": (["i am a {x}", "i work as a {x}", "my job is {x}"], ["[what is|whats|do you remember|do you know] my job", "what do i [do for a living|work as]"], words.JOBS),
           "word": (["remember the word {x}", "the secret word is {x}", "the password is {x}", "please remember: {x}"], ["[what is|what was|whats|do you remember|tell me] the [word|secret word|password]", "which word did i tell you"], words.OBJECTS + words.ANIMALS),
           "age": (["i am {x} years old", "im {x}", "my age is {x}", "i turned {x} today"], ["how old am i", "[what is|whats|do you know|do you remember] my age"], [str(n) for n in range(6, 95)])}
_NOT_TOLD = {"name": (_MY_NAME, "You have not told me your name yet."), "city": (_HOME, "You have not told me where you live yet.")}


def _say(source, wordings, fixed=(), **slots):
    text = haste.expand(source.rng, source.rng.choice(wordings))
    for key, value in slots.items():
        text = text.replace("{" + key + "}", str(value))
    text = text[:1].upper() + text[1:]
    return haste.hasty(source.rng, text, fixed, framed=source.rng.random() < 0.3)


def _between(source, most):
    """Returns other turns in between."""
    out = []
    for _ in range(source.rng.randint(0, most)):
        turn = source.rng.choice((visits.talked, visits.talked, visits.refused, visits.fact))(source)
        if len(turn.answer) < 160:
            out.append(turn)
    return out


def _tell_name(source, name):
    return Turn("back/tell-name", _say(source, _HI, [name], x=name), f"Nice to meet you, {name}!")


def _ask_name(source, name):
    return Turn("back/name", _say(source, _MY_NAME), f"Your name is {name}.")


def named(source):
    """Returns a name, up to eleven other turns, and a question about the name; sometimes the name is corrected."""
    rng, name = source.rng, source.name()
    told = [_tell_name(source, name)] + (_between(source, 1) if rng.random() < 0.2 else [])
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
        old, name = name, source.name()
        told.append(Turn("back/corrected", _say(source, _WRONG, [name, old], x=name, y=old), f"Nice to meet you, {name}!"))
    told += _between(source, rng.choice([0, 1, 2, 3, 6, 11]))
    return told + [_ask_name(source, name)]


def two_facts(source):
    rng = source.rng
    name, city, pet, kind = source.name(), source.city(), source.name(), rng.choice(_PET_KINDS)
    wording = rng.choice(_TWO)
    told = [Turn("back/tell-two", _say(source, [wording], [name, city, pet], n=name, c=city, x=pet, p=kind), "Thank you for telling me. I will remember it.")]
    told += _between(source, rng.choice([0, 0, 1, 2, 5]))
    asks = []
    if "{x}" in wording:
        asks.append(Turn("back/pet", _say(source, _PET, p=kind), f"Your {kind} is called {pet}."))
    if "{c}" in wording:
        asks.append(Turn("back/city", _say(source, _HOME), f"You live in {city}."))
    if "{n}" in wording:
        asks.append(_ask_name(source, name))
    return told + rng.sample(asks, rng.randint(1, len(asks)))


def thing(source):
    rng, kind = source.rng, source.rng.choice(list(_THINGS))
    tells, asks, values = _THINGS[kind]
    value = (source.odd(0.2) if kind in ("word", "job") else None) or rng.choice(values)
    shown = value[:1].upper() + value[1:]
    fix = (lambda t: t.replace(" a a", " an a").replace(" a e", " an e"))
    told = [Turn("back/tell-" + kind, fix(_say(source, tells, [value], x=value)), fix(memory.ACK[kind].format(x=value, X=shown)))]
    told += _between(source, rng.choice([0, 1, 2, 4, 9]))
    return told + [Turn("back/" + kind, _say(source, asks), fix(memory.REPLY[kind].format(x=value)))]


def not_told(source):
    asks, answer = _NOT_TOLD[source.rng.choice(list(_NOT_TOLD))]
    return _between(source, 1) + [Turn("back/not-told", _say(source, asks), answer)]


def story(source):
    """Returns a story, and a question about its subject or a request for another story."""
    rng = source.rng
    turn, hero = tales.story(source)
    told, draw = [turn], rng.random()
    if draw < 0.3:
        named_hero = hero[0].isupper()
        text = haste.hasty(rng, rng.choice(stories.WHO_ASK + ["what was the story about", "who was it about", "what was that about", "who was in that story"]))
        told.append(Turn("back/story-who", text, f"It was about {hero if named_hero else stories.article(hero)}."))
    elif draw < 0.4:
        told.append(tales.story(source)[0])
    elif draw < 0.47:
        told.append(Turn("back/longer", haste.hasty(rng, rng.choice(["make it longer", "longer please", "continue the story", "and then?", "what happened next", "make the story longer", "write more", "a longer version"])),
                         "That is too much for me. I can tell a short story or answer a short question."))
    return told


def episode(source):
    return source.rng.choices((named, two_facts, thing, not_told), (6, 4, 4, 2))[0](source)
