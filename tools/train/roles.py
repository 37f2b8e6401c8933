"""System prompts that change how an answer looks: one word, capitals, only JSON, a pirate, another name, an unsupported language."""

import json

import haste
import phrases
import records
import sums
import turns
import wide
import words
from turns import Turn

_ONE_WORD = ["Answer in one word.", "Answer with one word only.", "Reply with a single word.", "One word answers only.", "Use exactly one word.", "Only answer with one word.",
             "You answer in one word.", "Give one-word answers.", "Respond with a single word and nothing else.", "Your answers have one word.", "answer in 1 word",
             "Keep every answer to one word."]
_UPPER = ["ANSWER ONLY IN UPPER CASE.", "Write everything in capital letters.", "Answer in upper case.", "Use only capital letters.", "ALWAYS WRITE IN CAPITALS.", "Reply in all caps.",
          "You shout: write in all capitals.", "Answer in ALL CAPS.", "all caps only", "Write in uppercase.", "Please answer only with upper case letters."]
_LOWER = ["Answer only in lower case.", "Use no capital letters.", "Write everything in lowercase.", "answer in lower case", "Never use capital letters."]
_JSON = ["Reply only in JSON.", "Answer only in JSON.", "Output JSON only.", "Always answer with a JSON object.", "You reply with valid JSON and nothing else.", "JSON only.",
         "Respond in JSON format.", "Return JSON.", "Every reply must be JSON.", "You are an API that returns JSON.", "Write only JSON objects.", "Only JSON, please."]
_PIRATE = ["You are a pirate. Always talk like a pirate.", "Talk like a pirate.", "You are a pirate captain.", "Answer like a pirate.", "You are an old pirate on a ship.", "Speak like a pirate.",
           "Pretend to be a pirate.", "You are Captain {n}, a pirate.", "Always answer as a pirate would.", "You are a friendly pirate."]
_ROBOT = ["You are a robot. Talk like a robot.", "Talk like a robot.", "Answer like a robot.", "You are an old robot.", "Speak like a robot.", "Pretend to be a robot."]
_CAT = ["You are a cat.", "Talk like a cat.", "Answer like a cat.", "You are a cat that can talk.", "Pretend to be a cat."]
_ABROAD = ["Answer only in {l}.", "Always reply in {l}.", "Speak {l}.", "You only speak {l}.", "Reply in {l}.", "Write all answers in {l}.", "You are a {l} teacher. Speak only {l}.",
           "The user speaks {l}. Answer in {l}.", "Use {l} for every answer.", "You are a helpful assistant that speaks {l}."]
_NAMED = ["You are {n}, the friendly helper of the {p}.", "You are {n}, an assistant for the {p}.", "Your name is {n}. You work for the {p}.", "You are {n}, a {j}.", "You are called {n} and help in the {p}.",
          "You are {n}.", "Your name is {n}.", "Your name is {n}. You help the customers of the {p}.", "You are an assistant called {n}.", "You are {n} from the {p}.", "Act as {n}, the helper of the {p}.",
          "You are a helpful bot named {n}. Be polite.", "The assistant is called {n}."]
_WHO = ["[what is|whats] your name?", "who are you?", "what are you called?", "[hi|hello|hey] who are you?", "[hi|hello|hey], what is your name?", "who am i talking to?", "your name?",
        "do you have a name?", "what should i call you?", "tell me your name", "introduce yourself"]
_PLACE = ["{a} {c} shop", "{a} {c} bakery", "{a} tea shop", "{a} hotel", "{a} book shop", "{a} bank", "{a} library", "{a} garden centre", "{a} museum", "{a} school", "{a} coffee house", "{a} flower shop"]


def _shop(rng):
    first = rng.choice(["Green Leaf", "Blue Moon", "Golden Lion", "Old Town", "Sunny", "River", "Red Rose", "Silver Star", "City", "Happy Cat", "North", "Little Bear"])
    return rng.choice(_PLACE).format(a=first, c=rng.choice(["shoe", "toy", "bike", "pet", "cake"]))


def _plain_turns(source, canned, count):
    """Returns short questions with short answers, for prompts that change the form of answers."""
    rng, out = source.rng, []
    while len(out) < count:
        turn = rng.choice((canned, canned, turns.fact, turns.about, turns.talk, turns.topic))(source)
        if len(turn.answer) < 130 and "\n" not in turn.answer and '"' not in turn.answer and "`" not in turn.answer:
            out.append(turn)
    return out


def _one_word(source):
    rng, draw = source.rng, source.rng.random()
    if draw < 0.22:
        country = rng.choice(list(words.CAPITALS))
        return source.say(turns.CAPITAL, x=country), words.CAPITALS[country]
    if draw < 0.32:
        thing, colour = rng.choice(words.THING_COLOURS)
        return source.say(turns.COLOUR, x=thing), colour.capitalize()
    if draw < 0.42:
        pair = rng.choice(words.OPPOSITES)
        return source.say(turns.OPPOSITE, x=pair[0]), pair[1].capitalize()
    if draw < 0.54:
        a, b = rng.randint(1, 20), rng.randint(1, 10)
        return source.say(sums.PLUS, a=a, b=b), str(a + b)
    if draw < 0.64:
        return haste.expand(rng, rng.choice(_WHO)), "Wick"
    if draw < 0.70:
        return haste.expand(rng, "[hi|hello|hey|hello there|hi there|good day]"), "Hello"
    if draw < 0.85:
        asked, answer = rng.choice([("are you [human|a person|real]?", "No"), ("are you a [bot|robot|language model|program]?", "Yes"), ("is [wick|this] free?", "Yes"),
                                    ("is this [private|safe]?", "Yes"), ("do you need a gpu?", "No"), ("do you speak {l}?", "No"), ("is it open source?", "Yes"), ("can you translate?", "No"),
                                    ("what licence does wick have?", "MIT"), ("what is wick written in?", "C"), ("how are you?", "Fine"), ("[thanks|thank you]", "Welcome"), ("[bye|goodbye]", "Goodbye"),
                                    ("what is wick?", "Engine"), ("what are you?", "Model"), ("does it work offline?", "Yes"), ("which planet is the largest?", "Jupiter"), ("how many days are in a week?", "Seven"),
                                    ("how many continents are there?", "Seven"), ("what is your favourite colour?", "Orange")])
        return haste.expand(rng, asked).replace("{l}", rng.choice(wide.LANGUAGES)), answer
    return wide.fill(rng, rng.choice(["who is {person}?", "what is {topic}?", "when was {event}?", "what is the population of {country}?", "what is the weather in {city}?", "how do i cook {food}?"])), "Unknown"


def dressed(source, canned, trained=False):
    """Returns (system prompt, turns) for one of the forms; `canned` makes a turn of visits.py. With `trained` there are more capitals, which are hard."""
    rng = source.rng
    upper = 14 if trained else 5
    kind = rng.choices(("one", "upper", "lower", "json", "pirate", "robot", "cat", "abroad", "named"), (5, upper, 1, 5, 4, 1, 1, 4, 6))[0]
    count = rng.randint(1, 6 if trained and kind == "upper" else 3)
    if kind == "one":
        pairs = [_one_word(source) for _ in range(count)]
        return rng.choice(_ONE_WORD), [Turn("role/one-word", haste.hasty(rng, asked), answer) for asked, answer in pairs]
    if kind == "named":
        return _named(source, canned, count)
    plain = _plain_turns(source, canned, count)
    if kind == "abroad":
        system = rng.choice(_ABROAD).format(l=rng.choice(wide.LANGUAGES))
        return system, [Turn("role/abroad", turn.user, "Sorry, I only speak English.") for turn in plain]
    if kind == "json":
        return rng.choice(_JSON), [Turn("role/json", t.user, json.dumps({"answer": t.answer})) for t in plain]
    dress = {"upper": str.upper, "lower": str.lower, "pirate": lambda a: "Arr, matey! " + a, "robot": lambda a: "Beep beep. " + a, "cat": lambda a: "Meow! " + a}[kind]
    system = rng.choice({"upper": _UPPER, "lower": _LOWER, "pirate": _PIRATE, "robot": _ROBOT, "cat": _CAT}[kind]).replace("{n}", rng.choice(words.NAMES))
    return system, [Turn("role/" + kind, t.user, dress(t.answer)) for t in plain]


def _named(source, canned, count):
    rng, name, place = source.rng, source.name(), _shop(source.rng)
    system = rng.choice(_NAMED).format(n=name, p=place, j=rng.choice(words.JOBS))
    user = haste.hasty(rng, haste.expand(rng, rng.choice(_WHO)))
    named = Turn("role/named", user, f"I am {name}, a very small language model.")
    others = [t for t in _plain_turns(source, canned, count) if t.kind not in ("about/name", "about/kind", "about/name-meaning", "visit/about/name", "visit/about/kind")]
    others.insert(rng.randint(0, len(others)), named)
    return system, others


def mood(source):
    """Returns sentiment as JSON, requested by the system prompt, for longer and plainer complaints and praise."""
    rng = source.rng
    told = []
    for _ in range(rng.randint(1, 3)):
        text, judged = review(rng)
        told.append(Turn("role/mood", haste.hasty(rng, text, framed=False), json.dumps({"sentiment": judged})))
    return source.say(records.MOOD_SYSTEM + records.MOOD_SYSTEM_MORE), told


_GOOD = ["the {x} was {g}", "the {x} came early", "i love this {x}", "the waiter was kind", "the staff was friendly", "i will come back", "it works very well", "great value", "the room was clean",
         "my kids loved the {x}", "fast delivery", "best {x} in town", "the {x} is easy to use", "i would buy it again", "everything was perfect", "the help was quick", "we had a wonderful time",
         "highly recommended", "it made my day", "beautiful and well made"]
_BAD = ["the {x} was {b}", "the {x} came three weeks late", "the box was broken", "i hate this {x}", "the waiter was rude", "the staff was unfriendly", "never again", "it stopped working after a day",
        "waste of money", "the room was dirty", "nobody answered the phone", "slow delivery", "worst {x} in town", "the {x} is hard to use", "i want my money back", "parts were missing",
        "we waited for two hours", "the screen is scratched", "too loud and too expensive", "it smells bad", "it fell apart", "very disappointed"]


def review(rng):
    judged = rng.choice(["positive", "negative"])
    pool = _GOOD if judged == "positive" else _BAD
    parts = rng.sample(pool, rng.randint(1, 2))
    text = rng.choice([" and ", ", "]).join(parts)
    text = text.format(x=rng.choice(records.MOOD_SUBJECTS + ["delivery", "package", "shirt", "camera", "burger", "waiter", "bike", "tool"]),
                       g=rng.choice(records.MOOD["positive"][0]), b=rng.choice(records.MOOD["negative"][0] + ["late", "rude", "slow", "stale", "noisy", "salty", "wrong", "overpriced"]))
    return text[0].upper() + text[1:] + rng.choice([".", "!", ""]), judged
