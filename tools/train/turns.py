"""Single questions with answers: from text/, small facts, sums. A Turn also checks answers.

Each function takes a phrases.Source and returns a Turn. Conversations are made of turns in corpus.py.
"""

import dataclasses
import re

import phrases
import words


@dataclasses.dataclass
class Turn:
    kind: str  # family/intent, for the figures
    user: str
    answer: str
    accept: object = None  # callable(text) -> bool; None: exactly the answer
    accept_all: object = None  # callable(text) -> bool: whether every part of the request is met (stories)

    def right(self, text):
        return self.accept(text) if self.accept else text.strip() == self.answer


def canned(source, family, intents, weight=None):
    names = list(intents)
    name = source.rng.choices(names, weight)[0] if weight else source.rng.choice(names)
    return canned_intent(source, family, intents, name)


_SAME = {  # intents whose answers also fit each other's questions: "Who is Ada Brown?", "Are you sure about that?"
    "people": [phrases.REFUSALS["knowledge"][1]], "knowledge": [phrases.REFUSALS["people"][1]],
    "why": [phrases.ABOUT["wrong"][1]], "wrong": [phrases.TALK["why"][1]],
}


def canned_intent(source, family, intents, name):
    asks, answers = intents[name]
    user = phrases.asked(source, source.say(asks))
    right = sum(_SAME.get(name, []), answers)
    return Turn(f"{family}/{name}", user, source.rng.choice(answers), lambda text: text.strip() in right)


def talk(source):
    return canned(source, "talk", phrases.TALK)


def about(source):
    return canned(source, "about", phrases.ABOUT)


_REFUSAL_WEIGHTS = {"now": 3, "knowledge": 6, "people": 2}


def refusal(source):
    weights = [_REFUSAL_WEIGHTS.get(name, 1) for name in phrases.REFUSALS]
    return canned(source, "refusal", phrases.REFUSALS, weights)


def topic(source):
    name = source.rng.choice(list(phrases.TOPICS))
    return topic_named(source, name)


def topic_named(source, name):
    names, answers = phrases.TOPICS[name]
    way = source.rng.choice(names)
    plural = way.startswith("+")
    frame = source.template(phrases.FRAME_WAYS)
    if plural and "What does" in frame:
        frame = frame.replace("What does {topic} mean", "What are {topic}")
    text = frame.replace("{it}", "they" if plural else "it").replace("{be}", "are" if plural else "is")
    text = phrases.fill(source, text.replace("{topic}", way.lstrip("+")))
    if source.wide and not source.held_out and source.rng.random() < 0.2:
        text = phrases.shaken(source, text)
    user = phrases.as_typed(source, text[0].upper() + text[1:], keep_case=source.rng.random() < 0.7)
    return Turn(f"topic/{name}", user, answers[0])


# ---- small facts -------------------------------------------------------------------------------

OPPOSITE = ["What is the opposite of {x}?", "The opposite of {x}?", "Tell me the opposite of {x}.",
            "Which word is the opposite of {x}?", "Give me the opposite of {x}.",
            "What's the opposite of {x}?", "Opposite of {x}?", "Name the opposite of {x}.",
            "Do you know the opposite of {x}?", "What word means the opposite of {x}?",
            "Say the opposite of {x}.", "Can you tell me the opposite of {x}?"]
CAPITAL = ["What is the capital of {x}?", "Which city is the capital of {x}?", "Capital of {x}?",
           "Tell me the capital of {x}.", "Do you know the capital of {x}?",
           "What's the capital of {x}?", "Name the capital of {x}.", "The capital of {x}?",
           "What is {x}'s capital?", "What city is the capital of {x}?",
           "Can you tell me the capital of {x}?", "What is the capital city of {x}?"]
COLOUR = ["What colour is {x}?", "Which colour is {x}?", "What color is {x}?", "Tell me the colour of {x}.",
          "What is the colour of {x}?", "Which color is {x}?", "What is the color of {x}?",
          "Do you know the colour of {x}?", "What colour does {x} have?", "The colour of {x}?",
          "Of what colour is {x}?", "Can you tell me the colour of {x}?"]
SOUND = ["What sound does a {x} make?", "What does a {x} say?", "Which sound does a {x} make?",
         "How does a {x} sound?", "What noise does a {x} make?", "Which noise does a {x} make?",
         "What is the sound of a {x}?", "Tell me what a {x} says.", "What do {x}s say?",
         "Make the sound of a {x}.", "What sound do {x}s make?", "Do you know what sound a {x} makes?"]
LEG = ["How many legs does a {x} have?", "How many legs has a {x}?", "How many legs do {x}s have?",
       "Tell me how many legs a {x} has.", "What number of legs does a {x} have?",
       "Do you know how many legs a {x} has?", "A {x} has how many legs?", "Count the legs of a {x}.",
       "How many legs are on a {x}?", "The number of legs of a {x}?"]
BABY = ["What is a baby {x} called?", "What do you call a baby {x}?", "What is a young {x} called?",
        "What's a baby {x} called?", "How do you call a young {x}?", "What is the name of a baby {x}?",
        "What is the word for a baby {x}?", "Tell me what a baby {x} is called.",
        "What do we call a young {x}?", "What is a little {x} called?"]
AFTER_DAY = ["Which day comes after {x}?", "What day comes after {x}?", "What comes after {x}?",
             "What is the day after {x}?", "Which day follows {x}?", "What day follows {x}?",
             "Tell me the day after {x}.", "What day is after {x}?", "Name the day that follows {x}."]
AFTER_MONTH = [t.replace("day", "month") for t in AFTER_DAY]
BEFORE_DAY = ["Which day comes before {x}?", "What day comes before {x}?", "What comes before {x}?",
              "What is the day before {x}?", "Which day is before {x}?", "What day is before {x}?",
              "Tell me the day before {x}.", "Name the day before {x}."]


OPPOSITE_MORE = ["Could you tell me the opposite of {x}?", "Can you say the opposite of {x}?", "What is the contrary of {x}?",
                 "Please tell me the opposite of {x}.", "What would be the opposite of {x}?", "What is opposite to {x}?"]
CAPITAL_MORE = ["What is the name of the capital of {x}?", "Which is the capital city of {x}?", "The capital city of {x}?",
                "Can you name the capital of {x}?", "Tell me the capital city of {x}.", "What city is {x}'s capital?",
                "Could you tell me the capital of {x}?", "Name the capital city of {x}."]
AFTER_MORE = ["Which day is next after {x}?", "What day do we have after {x}?", "The day after {x}?", "What follows {x}?",
              "Which day is after {x}?", "What is next after {x}?"]
_OPPOSITE_WAYS = phrases.ways(OPPOSITE, OPPOSITE_MORE)
_CAPITAL_WAYS = phrases.ways(CAPITAL, CAPITAL_MORE)
_AFTER_DAY_WAYS = phrases.ways(AFTER_DAY, AFTER_MORE)
_AFTER_MONTH_WAYS = phrases.ways(AFTER_MONTH, [t.replace("day", "month") for t in AFTER_MORE])


def _fact(source, kind, templates, subject, answer):
    return Turn(f"fact/{kind}", phrases.as_typed(source, source.say(templates, x=subject), True), answer)


def _opposite(source):
    pair = source.rng.choice(words.OPPOSITES)
    asked, told = pair if source.rng.random() < 0.5 else pair[::-1]
    if sum(asked in p for p in words.OPPOSITES) > 1:  # light, old: two answers; ask the other way
        asked, told = told, asked
    return _fact(source, "opposite", _OPPOSITE_WAYS, asked, f"The opposite of {asked} is {told}.")


UNKNOWN_CAPITAL = "I do not know that capital. I know only a few of them."


def _capital(source):
    if source.rng.random() < 0.2:
        country = source.rng.choice(words.UNKNOWN_COUNTRIES)
        return _fact(source, "capital", _CAPITAL_WAYS, country, UNKNOWN_CAPITAL)
    country = source.rng.choice(list(words.CAPITALS))
    return _fact(source, "capital", _CAPITAL_WAYS, country, f"The capital of {country} is {words.CAPITALS[country]}.")


def _colour(source):
    thing, colour = source.rng.choice(words.THING_COLOURS)
    return _fact(source, "colour", COLOUR, thing, f"{thing[0].upper()}{thing[1:]} is {colour}.")


def _sound(source):
    animal, sound = source.rng.choice(words.SOUNDS)
    article = "An" if animal[0] in "aeiou" else "A"
    turn = _fact(source, "sound", SOUND, animal, f"{article} {animal} says {sound}.")
    return dataclasses.replace(turn, user=_article(turn.user).replace("mouses", "mice").replace("sheeps", "sheep"))


def _legs(source):
    animal, count = source.rng.choice(words.LEGS)
    article = "An" if animal[0] in "aeiou" else "A"
    turn = _fact(source, "legs", LEG, animal, f"{article} {animal} has {count} legs.")
    return dataclasses.replace(turn, user=_article(turn.user).replace("flys", "flies").replace("sheeps", "sheep"))


def _article(text):
    return re.sub(r"\b([aA]) (?=[aeio])", r"\1n ", text)


def _baby(source):
    animal, baby = source.rng.choice(words.BABIES)
    return _fact(source, "baby", BABY, animal, f"A baby {animal} is called a {baby}.")


def _calendar(source):
    rng = source.rng
    if rng.random() < 0.35:
        months = words.GROUPS["months"]
        i = rng.randrange(12)
        return _fact(source, "month", _AFTER_MONTH_WAYS, months[i], f"After {months[i]} comes {months[(i + 1) % 12]}.")
    days = words.GROUPS["weekdays"]
    i = rng.randrange(7)
    if rng.random() < 0.5:
        return _fact(source, "day", _AFTER_DAY_WAYS, days[i], f"After {days[i]} comes {days[(i + 1) % 7]}.")
    return _fact(source, "day", BEFORE_DAY, days[i], f"Before {days[i]} comes {days[i - 1]}.")


def fact(source):
    makers = (_opposite, _capital, _colour, _sound, _legs, _baby, _calendar)
    return source.rng.choices(makers, (3, 4, 2, 2, 2, 1, 3))[0](source)


# ---- lists, copies, counting ---------------------------------------------------------------------

NUMBER_WORDS = ["zero", "one", "two", "three", "four", "five", "six"]
LIST = ["Name {n} {g}.", "List {n} {g}.", "Give me {n} {g}.", "Tell me {n} {g}.", "Can you name {n} {g}?",
        "Tell me the names of {n} {g}.", "I need {n} {g}.", "Please list {n} {g}.", "Write down {n} {g}.",
        "Which {n} {g} do you know?", "Make a list of {n} {g}.", "I want {n} {g}.", "Show me {n} {g}.",
        "Please name {n} {g}.", "What are {n} {g}?", "{n} {g}, please.", "Can you list {n} {g}?",
        "Could you give me {n} {g}?"]


LIST_MORE = [  # for the last stage of training
    "Could you tell me {n} {g}?", "Could you name {n} {g}?", "Could you list {n} {g}?", "Can you give me {n} {g}?",
    "Can you tell me {n} {g}?", "I want to know {n} {g}.", "I want you to name {n} {g}.", "I would like {n} {g}.",
    "I want to have {n} {g}.", "Tell me the names of {n} different {g}.", "The names of {n} {g}, please.",
    "Give me the names of {n} {g}.", "Can you write down {n} {g}?", "Please give me {n} {g}.", "Please tell me {n} {g}.",
    "Could you write {n} {g}?", "Would you name {n} {g}?", "What {n} {g} do you know?", "Do you know {n} {g}?"]
_LIST_WAYS = phrases.ways(LIST, LIST_MORE)


def list_wish(source, shown, group):
    return source.say(_LIST_WAYS, n=shown, g=group)


def pick_list(source):
    """Returns (group, count, its members): any members at first; in the last stage the first ones, so that none occurs twice."""
    group = source.rng.choice(list(words.GROUPS))
    count = source.rng.randint(2, 5)
    members = words.GROUPS[group]
    return group, count, members[:count] if source.broad else source.rng.sample(members, count)


def join_words(items):
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def name_list(source):
    group, count, items = pick_list(source)
    shown = source.rng.choice([str(count), NUMBER_WORDS[count]])
    user = list_wish(source, shown, group)
    answer = join_words(items)

    def accept(text):
        named = re.split(r", | and ", text.strip().rstrip("."))
        known = {w.lower() for w in words.GROUPS[group]}
        return len(set(named)) == count == len(named) and all(w.lower() in known for w in named)

    user = phrases.as_typed(source, user[0].upper() + user[1:])
    return Turn("list/names", user, answer[0].upper() + answer[1:] + ".", accept)


REPEAT = ["Say {x}.", "Repeat after me: {x}", "Repeat: {x}", "Say: {x}", "Can you say {x}?", "Write {x}.",
          "Repeat the words {x}", "Please say {x}", "Please repeat {x}", "Say the words {x}",
          "Just say {x}", "Repeat this: {x}", "Copy this: {x}", "Write this: {x}"]


REPEAT_MORE = ["Write: {x}", "Write the words {x}.", "Write the word {x}.", "Write down {x}", "Please write {x}.", "Now write {x}",
               "Write just {x}", "Can you write {x}?", "Can you repeat this: {x}", "Please repeat this: {x}"]
_REPEAT_WAYS = phrases.ways(REPEAT, REPEAT_MORE)


def repeat(source):
    rng = source.rng
    pool = words.ANIMALS + words.OBJECTS + words.COLOURS + words.JOBS + words.TRAITS
    said = " ".join(words.pseudo_word(rng) if rng.random() < 0.3 else source.odd(0.4) or source.word(pool)
                    for _ in range(rng.randint(1, 5)))
    return Turn("copy/repeat", source.say(_REPEAT_WAYS, x=said), said)


def copies(source):
    """Returns several words that are in no list, for dense practice of copying letter by letter."""
    rng = source.rng
    said = " ".join(words.pseudo_word(rng) if rng.random() < 0.5 else words.odd_word(rng) for _ in range(rng.randint(2, 9)))
    return Turn("copy/practice", source.say(_REPEAT_WAYS, x=said), said)


COUNT = ["Count from {a} to {b}.", "Count {a} to {b}.", "Can you count from {a} to {b}?",
         "Please count from {a} to {b}.", "Count up from {a} to {b}.", "Count from {a} up to {b}.",
         "List the numbers from {a} to {b}.", "Say the numbers from {a} to {b}."]
NEXT = ["What comes after {a}?", "Which number comes after {a}?", "What number follows {a}?",
        "What is the number after {a}?", "Which number follows {a}?", "What is the next number after {a}?",
        "Tell me the number after {a}."]
PARITY = ["Is {a} odd or even?", "Is {a} even or odd?", "Is {a} an even number?", "Is {a} an odd number?",
          "Is {a} even?", "Is {a} odd?", "Tell me if {a} is odd or even."]
LARGER = ["Which is larger, {a} or {b}?", "Which number is larger: {a} or {b}?", "Is {a} larger than {b}?",
          "What is larger, {a} or {b}?", "Which is bigger, {a} or {b}?", "What is bigger, {a} or {b}?",
          "Which number is bigger, {a} or {b}?", "Is {a} bigger than {b}?", "Which one is larger, {a} or {b}?",
          "{a} or {b}, which is larger?"]


COUNT_MORE = ["Count up from {a} up to {b}.", "Please count up from {a} to {b}.", "Can you count up from {a} to {b}?",
              "Count for me from {a} to {b}.", "Count from {a} on up to {b}."]
LARGER_MORE = ["What is the bigger number, {a} or {b}?", "Tell me which is bigger, {a} or {b}.", "Which one is bigger, {a} or {b}?",
               "What number is bigger, {a} or {b}?", "What is more, {a} or {b}?", "{a} or {b}, which is bigger?"]
_COUNT_WAYS = phrases.ways(COUNT, COUNT_MORE)
_LARGER_WAYS = phrases.ways(LARGER, LARGER_MORE)


def number_fact(source):
    rng = source.rng
    draw = rng.random()
    if draw < 0.3:
        a = rng.randint(1, 12)
        b = a + rng.randint(2, 9)
        answer = ", ".join(str(n) for n in range(a, b + 1)) + "."
        return Turn("number/count", phrases.as_typed(source, source.say(_COUNT_WAYS, a=a, b=b)), answer)
    if draw < 0.5:
        a = rng.randint(0, 98)
        return Turn("number/next", phrases.as_typed(source, source.say(NEXT, a=a)), f"After {a} comes {a + 1}.")
    if draw < 0.7:
        a = rng.randint(0, 99)
        answer = f"{a} is {'odd' if a % 2 else 'even'}."
        return Turn("number/parity", phrases.as_typed(source, source.say(PARITY, a=a)), answer)
    a, b = rng.sample(range(100), 2)
    answer = f"{max(a, b)} is larger than {min(a, b)}."
    return Turn("number/larger", phrases.as_typed(source, source.say(_LARGER_WAYS, a=a, b=b)), answer)
