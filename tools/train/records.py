"""JSON answers: facts of a sentence as an object, lists, judgements of mood, objects by wish.

Every answer is one line of JSON with `", "` and `": "` between its parts, as json.dumps writes it.
"""

import json

import phrases
import sums
import turns
import words
from turns import Turn

KEYS = ("name", "age", "city", "job", "hobby")
PERSON = [  # which facts a sentence tells is read off its slots
    "{name} is {age} years old and lives in {city}.",
    "My name is {name}, I am {age} and I live in {city}.",
    "{name} lives in {city} and is {age} years old.",
    "{name}, {age}, from {city}.",
    "I am {name}, {age} years old, from {city}.",
    "{name} is {age} and comes from {city}.",
    "{name} is a {job} from {city}.",
    "{name} works as a {job} in {city}.",
    "{name} is a {age} year old {job} from {city}.",
    "{name} ({age}) works in {city} as a {job}.",
    "{name} is {age} years old.",
    "This is {name}. {name} is {age} and lives in {city}.",
    "{name} lives in {city}.",
    "In {city} lives {name}, who is {age} years old.",
    "{name} from {city} is {age} years old and likes {hobby}.",
    "{name} is {age} and likes {hobby}.",
    "My friend {name} is {age} years old and lives in {city}.",
    "There is a {job} in {city} called {name}, aged {age}.",
    "{name} likes {hobby} and lives in {city}.",
    "Our {job} {name} is {age} and lives in {city}.",
    "{name} is a {job} and is {age} years old.",
    "I met {name} in {city}. {name} is {age}.",
    "Yesterday I met {name}, a {job} of {age}, in {city}.",
    "The {job} {name} lives in {city} and is {age} years old.",
    "Hello, I am {name} from {city}, {age} years old.",
]
EXTRACT_ALL = ["Extract the facts as JSON: {s}", "Turn this into JSON: {s}", "{s} Write this as JSON.",
               "Make JSON from this: {s}", "JSON please: {s}", "Convert this to JSON: {s}",
               "Write the facts as JSON: {s}", "Put this into JSON: {s}", "{s} Give me that as JSON.",
               "As JSON: {s}", "Read this and answer in JSON: {s}", "{s} Please turn this into JSON.",
               "Extract JSON from this text: {s}", "Give me JSON for this sentence: {s}",
               "{s} As JSON, please.", "Parse this into JSON: {s}", "Answer in JSON: {s}",
               "{s} Extract the facts as JSON."]
EXTRACT_KEYS = ["Extract {k} as JSON: {s}", "Give me {k} as JSON: {s}", "{s} Write {k} as JSON.",
                "Extract {k} from this sentence as JSON: {s}", "Find {k} and answer in JSON: {s}",
                "Return {k} as JSON: {s}", "Make JSON with {k}: {s}", "{s} Give me JSON with {k}.",
                "Which {k} are in this text? Answer in JSON. {s}", "JSON with {k}: {s}",
                "I need {k} as JSON. {s}", "Write JSON with {k}: {s}", "Get {k} from this text, as JSON: {s}",
                "Read this and give me {k} in JSON: {s}", "{s} Extract {k} as JSON.",
                "From this text, write {k} as JSON: {s}", "Answer with a JSON object of {k}: {s}",
                "{s} Return JSON with {k}."]
EXTRACT_SYSTEM = ["You extract data. Reply only with JSON with the keys {k}.", "Reply in JSON with the keys {k}.",
                  "Extract {k} from the text. Answer only in JSON.", "Answer only with a JSON object: {k}.",
                  "You turn sentences into JSON with {k}.", "Return JSON with the keys {k} and nothing else.",
                  "Read the text and return {k} as JSON."]
LIST_WAYS = ["{l} as JSON.", "{l} as a JSON list.", "{l} as a JSON array.", "{l} in JSON.", "{l} Answer in JSON.",
             "As JSON: {l}", "{l} Write them as JSON.", "{l} Use JSON.", "In JSON: {l}", "{l} Make it JSON.",
             "{l} I need JSON.", "{l} Please answer in JSON.", "JSON only: {l}"]
MAKE_LIST = ["Make a JSON list of {x}.", "Write a JSON list with {x}.", "Turn this into a JSON list: {x}",
             "Give me a JSON array of {x}.", "Make a JSON array with {x}.", "JSON list: {x}",
             "Write {x} as a JSON list.", "Put {x} into a JSON array.", "Convert to a JSON list: {x}",
             "I need a JSON list of {x}.", "Please write {x} as JSON.", "As a JSON list: {x}",
             "Make JSON of this list: {x}"]
MOOD_ASK = ["Classify the sentiment as JSON: {s}", "Is this positive or negative? Answer in JSON: {s}",
            "Give me the sentiment as JSON: {s}", "{s} What is the sentiment? Answer in JSON.",
            "Sentiment as JSON: {s}", "Classify this text, answer in JSON: {s}",
            "What is the sentiment of this? Use JSON. {s}", "Positive or negative? JSON please: {s}",
            "{s} Classify the sentiment as JSON.", "Return the sentiment as JSON: {s}",
            "Tell me the sentiment in JSON: {s}", "As JSON, what is the sentiment of this: {s}",
            "Write the sentiment of this sentence as JSON: {s}"]
MOOD_SYSTEM = ["Classify the sentiment of the text. Answer in JSON.",
               "You classify sentiment. Reply only with JSON with the key sentiment.",
               "Reply with the sentiment as JSON.", "Decide if the text is positive or negative. Use JSON.",
               "You rate texts as positive or negative and answer in JSON.",
               "Say in JSON whether a text is positive or negative.",
               "Return JSON with the sentiment of what the user writes."]
MOOD_SUBJECTS = ("film book song meal hotel service game food coffee room trip phone shop concert show story car soup "
                 "lesson holiday music bed app party").split()
MOOD = {
    "positive": ("good great wonderful lovely nice excellent fantastic perfect amazing superb beautiful brilliant".split(),
                 ["I love this {x}.", "I really enjoyed the {x}.", "The {x} was {a}.", "What a {a} {x}!",
                  "This {x} is {a}.", "I like the {x} very much.", "The {x} made me happy.", "A {a} {x}, thank you.",
                  "Best {x} ever!", "I am happy with this {x}.", "The {x} is {a}, I will come back.",
                  "It was a {a} {x}.", "Such a {a} {x}, I loved it."]),
    "negative": ("bad terrible awful boring poor horrible ugly disappointing dreadful cold broken dirty".split(),
                 ["I hate this {x}.", "I did not enjoy the {x}.", "The {x} was {a}.", "What a {a} {x}!",
                  "This {x} is {a}.", "I do not like the {x}.", "The {x} made me sad.", "A {a} {x}, never again.",
                  "Worst {x} ever!", "I am not happy with this {x}.", "The {x} is {a}, I want my money back.",
                  "It was a {a} {x}.", "Such a {a} {x}, I hated it."]),
}
OBJECT_KEYS = "title price count color size type id owner brand weight year pages shape label kind amount speed".split()
MAKE_OBJECT = ["Make a JSON object with {x}.", "Write a JSON object with {x}.", "Give me a JSON object: {x}",
               "Create JSON with {x}.", "Write {x} as JSON.", "Turn this into a JSON object: {x}",
               "JSON object with {x}.", "I need a JSON object with {x}.", "Make JSON: {x}",
               "Put {x} into a JSON object.", "Build a JSON object with {x}.", "Please make a JSON object with {x}.",
               "Return a JSON object with {x}."]
SUM_WAYS = ["What is {a} + {b}? Answer in JSON.", "{a} + {b} as JSON", "Add {a} and {b} and answer in JSON.",
            "Calculate {a} + {b}. Use JSON.", "As JSON: {a} + {b}", "What is {a} plus {b}? Answer in JSON.",
            "JSON please: what is {a} + {b}?"]
REPLY_SYSTEM = ["Reply only in JSON.", "Answer in JSON.", "Always answer in JSON.", "You answer with JSON only.",
                "Reply with a JSON object.", "All your answers are JSON.", "Write every answer as JSON.",
                "You are an API. Answer in JSON.", "Use JSON for every answer."]


def _json_turn(kind, user, value):
    """Right means: it parses and says the same (figures for `parses` alone are in evaluate.py)."""
    def accept(text):
        try:
            return json.loads(text) == value
        except ValueError:
            return False
    return Turn(kind, user, json.dumps(value), accept)


def person(source):
    """A sentence about somebody and the facts in it, in the order of KEYS."""
    template = source.template(PERSON)
    facts = {"name": source.name(), "age": source.rng.randint(5, 99), "city": source.city(),
             "job": source.word(words.JOBS), "hobby": source.word(words.HOBBIES)}
    told = {key: facts[key] for key in KEYS if "{" + key + "}" in template}
    return phrases.fill(source, template, facts), told


def _key_words(rng, keys):
    if rng.random() < 0.5:
        return turns.join_words(list(keys))
    return turns.join_words([f"the {key}" for key in keys])


def _some_keys(rng, told):
    keys = rng.sample(list(told), rng.randint(1, len(told)))
    return keys if rng.random() < 0.3 else [key for key in told if key in keys]


def extract(source):
    sentence, told = person(source)
    if source.rng.random() < 0.5:
        return _json_turn("json/extract", source.say(EXTRACT_ALL, s=sentence), told)
    keys = _some_keys(source.rng, told)
    user = source.say(EXTRACT_KEYS, s=sentence, k=_key_words(source.rng, keys))
    return _json_turn("json/extract-keys", user, {key: told[key] for key in keys})


def extract_by_system(source):
    """(system prompt, list of turns): the wish for JSON stands in the system prompt alone."""
    rng = source.rng
    people = [person(source) for _ in range(rng.randint(1, 3))]
    shared = [key for key in KEYS if all(key in told for _, told in people)]
    keys = _some_keys(rng, dict.fromkeys(shared))
    system = source.say(EXTRACT_SYSTEM, k=_key_words(rng, keys))
    return system, [_json_turn("json/extract-system", sentence, {key: told[key] for key in keys})
                    for sentence, told in people]


def list_of_kind(source):
    group, count, items = turns.pick_list(source)
    shown = source.rng.choice([str(count), turns.NUMBER_WORDS[count]])
    ask = source.say(turns.LIST, n=shown, g=group)
    way = source.template(LIST_WAYS)
    if way.startswith("{l} as") or way.startswith("{l} in"):
        ask = ask.rstrip(".?")
    elif "{l}" == way[-3:]:
        ask = ask[0].lower() + ask[1:]
    turn = _json_turn("json/list", way.replace("{l}", ask[0].upper() + ask[1:] if way[0] == "{" else ask), items)

    def accept(text):
        try:
            named = json.loads(text)
        except ValueError:
            return False
        return (isinstance(named, list) and len(named) == len(set(map(str, named))) == count
                and all(str(n).lower() in {w.lower() for w in words.GROUPS[group]} for n in named))

    turn.accept = accept
    return turn


def make_list(source):
    pool = words.ANIMALS + words.OBJECTS + words.COLOURS + words.NAMES + words.CITIES
    items = [words.pseudo_word(source.rng) if source.rng.random() < 0.15 else source.word(pool)
             for _ in range(source.rng.randint(2, 5))]
    shown = turns.join_words(items) if source.rng.random() < 0.7 else ", ".join(items)
    return _json_turn("json/make-list", source.say(MAKE_LIST, x=shown), items)


def mood_sentence(source):
    mood = source.rng.choice(list(MOOD))
    adjectives, templates = MOOD[mood]
    text = source.say(templates, x=source.rng.choice(MOOD_SUBJECTS), a=source.word(adjectives))
    return text.replace(" a a", " an a").replace(" a e", " an e").replace("A a", "An a").replace("A e", "An e"), mood


def mood(source):
    sentence, judged = mood_sentence(source)
    return _json_turn("json/sentiment", source.say(MOOD_ASK, s=sentence), {"sentiment": judged})


def mood_by_system(source):
    judged = [mood_sentence(source) for _ in range(source.rng.randint(1, 3))]
    return source.say(MOOD_SYSTEM), [_json_turn("json/sentiment-system", text, {"sentiment": m}) for text, m in judged]


def make_object(source):
    rng = source.rng
    keys = rng.sample(OBJECT_KEYS, rng.randint(1, 3))
    value, shown = {}, []
    for key in keys:
        if rng.random() < 0.45:
            value[key] = rng.randint(0, 999)
            shown.append(rng.choice([f"{key} {value[key]}", f"the {key} {value[key]}", f"{key} = {value[key]}"]))
        else:
            value[key] = " ".join(source.word(words.COLOURS + words.ANIMALS + words.OBJECTS)
                                  for _ in range(rng.randint(1, 2)))
            shown.append(rng.choice([f'{key} "{value[key]}"', f'the {key} "{value[key]}"', f"{key} = {value[key]}"]))
    return _json_turn("json/object", source.say(MAKE_OBJECT, x=turns.join_words(shown)), value)


def json_sum(source, a, b):
    user = source.say(SUM_WAYS, a=a, b=b)
    return _json_turn("json/sum", user, {"sum": sums.plus_chain(source, a, b).rsplit(" = ", 1)[0], "result": a + b})


def reply_by_system(source, plain_turns):
    """Turns of any kind, whose answers go into {"answer": ...} because the system prompt says so."""
    wrapped = [_json_turn("json/answer", turn.user, {"answer": turn.answer})
               for turn in plain_turns if "\n" not in turn.answer and '"' not in turn.answer]
    return source.say(REPLY_SYSTEM), wrapped


def wish(source):
    """One JSON turn in which the user says what he wants."""
    return source.rng.choices((extract, list_of_kind, make_list, mood, make_object), (6, 3, 3, 3, 3))[0](source)
