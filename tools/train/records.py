"""JSON answers: facts in a sentence as an object, lists, sentiment, objects on request.

Every answer is one line of JSON with `", "` and `": "` between its parts, as json.dumps writes it.
"""

import json

import phrases
import sums
import turns
import words
from turns import Turn

KEYS = ("name", "age", "city", "job", "hobby")
PERSON = [  # the slots of a sentence determine its facts
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


# More wordings for the last stage of training, in which sentences about people are composed of
# parts.
_SUBJECTS = ["{name}", "{name}", "My name is {name} and this person", "This is {name}, who", "My friend {name}", "The {job} {name}",
             "Our {job} {name}", "A {job} called {name}", "There is a {job} called {name} who", "{name} the {job}",
             "I know {name}, a {job}, who", "My brother {name}", "A woman called {name}", "I met {name} today, who"]
_AGED = ["is {age}", "is {age} years old", "is now {age}", "is {age} years of age", "turned {age} today", "is aged {age}"]
_LIVING = ["lives in {city}", "comes from {city}", "is from {city}", "has a house in {city}", "came here from {city}",
           "stays in {city}"]
_DOING = ["works as a {job}", "is a {job}", "has a job as {job}"]
_LIKING = ["likes {hobby}", "loves {hobby}", "enjoys {hobby}"]
PERSON_MORE = ["{name} comes from {city}.", "{name}, aged {age}, comes from {city}.", "{name} is {age}, from {city}.",
               "I come from {city}, I am {age} and my name is {name}.", "Here is {name}. {name} comes from {city} and is {age}.",
               "This is {name} from {city}. {name} is {age}.", "There is {name} in {city}, a {job}.",
               "In {city} there is a {job} called {name}.", "There is a {job} called {name}, aged {age}.",
               "We have a {job} in {city}, {name}, aged {age}.", "The {job} in {city} is called {name} and is {age}.",
               "The {job} {name} is {age} years old.", "The {job} {name} comes from {city}."]
EXTRACT_ALL_MORE = ["Extract all facts as JSON: {s}", "{s} Extract JSON from this.", "{s} Extract everything as JSON.",
                    "{s} Please write this as JSON.", "{s} Turn this into JSON.", "{s} Please make JSON of this.",
                    "{s} Convert this to JSON.", "Please convert this to JSON: {s}", "Convert the sentence to JSON: {s}",
                    "{s} Write the facts as JSON.", "Please extract the facts as JSON: {s}", "Facts as JSON: {s}",
                    "{s} Give the facts as JSON.", "Convert into JSON: {s}", "{s} Facts in JSON, please."]
EXTRACT_KEYS_MORE = ["Return JSON with {k}: {s}", "Return only {k} as JSON: {s}", "{s} Return {k} as JSON.",
                     "Return {k} in JSON: {s}", "Write {k} as JSON: {s}", "Write {k} in JSON. {s}", "{s} Only {k}, as JSON.",
                     "{s} JSON with {k}, please.", "Please give me JSON with {k}: {s}", "Tell me {k} as JSON: {s}",
                     "{s} Tell me {k} in JSON.", "Please return {k} as JSON: {s}", "{s} Write JSON with {k}.",
                     "{s} I need JSON with {k}.", "Only {k} as JSON: {s}", "What is {k}? Answer in JSON. {s}"]
EXTRACT_SYSTEM_MORE = ["Return a JSON object with the keys {k}.", "Return JSON with {k} and nothing else.",
                       "Write JSON with the keys {k} and nothing else.", "Return {k} of the text as JSON.",
                       "Reply with JSON that has the keys {k}.", "You return JSON with the keys {k}.",
                       "The user writes a sentence. Return JSON with {k}.", "Answer with JSON: the keys are {k}.",
                       "You extract {k} and return JSON only.", "For each text return JSON with the keys {k}."]
LIST_WAYS_MORE = ["{l} Answer with JSON, please.", "{l} Please use JSON.", "{l} Please answer with a JSON list.", "JSON: {l}",
                  "{l} Reply in JSON.", "{l} Give me JSON.", "Answer in JSON: {l}", "{l} Please make it JSON.", "As a JSON list: {l}"]
MAKE_LIST_MORE = ["JSON array: {x}", "List as JSON: {x}", "A JSON list: {x}", "A JSON list of {x}, please.", "As JSON list: {x}",
                  "As a JSON array: {x}", "As a list in JSON: {x}", "Write as a JSON list: {x}", "Make JSON: {x}",
                  "Give me a JSON list: {x}", "Please make a JSON list of {x}.", "Make a JSON array: {x}", "To a JSON list: {x}"]
MOOD_ASK_MORE = ["Classify this as positive or negative, in JSON: {s}", "Classify this sentence as JSON: {s}",
                 "Classify the mood of this text, answer in JSON: {s}", "Classify this, answer in JSON: {s}",
                 "Please classify this text in JSON: {s}", "{s} Classify this text and answer in JSON.",
                 "In JSON, what is the sentiment of this text: {s}", "As JSON: what is the sentiment here? {s}",
                 "What is the sentiment of this, as JSON: {s}", "Is this text positive or negative? JSON: {s}",
                 "Judge this text in JSON: {s}", "{s} Positive or negative? Use JSON.", "Classify, and use JSON: {s}"]
MOOD_MORE = {
    "positive": ["I do like the {x}.", "We liked the {x} a lot.", "I liked this {x}.", "It was {a}, this {x}.", "The {x} is {a}.",
                 "I think the {x} is {a}.", "The {x} was so {a}, thank you.", "That was a {a} {x}.", "I would buy this {x} again.",
                 "We loved the {x}.", "I am very happy with the {x}.", "So {a}! I love the {x}."],
    "negative": ["I do not like this {x} at all.", "We did not like the {x}.", "I did not like this {x}.", "It was {a}, this {x}.",
                 "The {x} is {a}.", "I don't like the {x} much.", "I think the {x} is {a}.", "The {x} was so {a}, no thank you.",
                 "That was a {a} {x}.", "I do not like your {x}.", "I would never buy this {x} again.", "We hated the {x}.",
                 "I do not want this {x}.", "I am not at all happy with the {x}.", "I do not love this {x}.", "So {a}! I hate the {x}."],
}
MOOD_SYSTEM_MORE = ["Return the sentiment as JSON.", "Classify each text as positive or negative, in JSON.",
                    "Say whether the text is positive or negative. Answer in JSON.", "Judge the sentiment. Reply in JSON.",
                    "You judge if a text is positive or negative and reply with JSON."]
MAKE_OBJECT_MORE = ["JSON object: {x}", "Turn this into an object in JSON: {x}", "Turn {x} into a JSON object.",
                    "Make this a JSON object: {x}", "Please make JSON with {x}.", "Please write a JSON object with {x}.",
                    "Please give me a JSON object with {x}.", "Make an object with {x} in JSON.", "Convert {x} into a JSON object.",
                    "Make this into a JSON object: {x}", "Create a JSON object with {x}."]
_PERSON_WAYS = phrases.ways(PERSON, PERSON_MORE)
_EXTRACT_ALL_WAYS = phrases.ways(EXTRACT_ALL, EXTRACT_ALL_MORE)
_EXTRACT_KEYS_WAYS = phrases.ways(EXTRACT_KEYS, EXTRACT_KEYS_MORE)
_EXTRACT_SYSTEM_WAYS = phrases.ways(EXTRACT_SYSTEM, EXTRACT_SYSTEM_MORE)
_LIST_WAYS = phrases.ways(LIST_WAYS, LIST_WAYS_MORE)
_MAKE_LIST_WAYS = phrases.ways(MAKE_LIST, MAKE_LIST_MORE)
_MOOD_ASK_WAYS = phrases.ways(MOOD_ASK, MOOD_ASK_MORE)
_MOOD_WAYS = {mood: (adjectives, phrases.ways(templates, MOOD_MORE[mood])) for mood, (adjectives, templates) in MOOD.items()}
_MOOD_SYSTEM_WAYS = phrases.ways(MOOD_SYSTEM, MOOD_SYSTEM_MORE)
_MAKE_OBJECT_WAYS = phrases.ways(MAKE_OBJECT, MAKE_OBJECT_MORE)


def _json_turn(kind, user, value):
    """Accepts an answer if it parses to the same value (evaluate.py has separate figures for `parses`)."""
    def accept(text):
        try:
            return json.loads(text) == value
        except ValueError:
            return False
    return Turn(kind, user, json.dumps(value), accept)


def _composed_person(rng):
    """Makes a template with one to three facts about somebody in any order."""
    subject = rng.choice(_SUBJECTS)
    open_parts = [_AGED, _LIVING, _LIKING] + ([] if "{job}" in subject else [_DOING])
    told = [rng.choice(part) for part in rng.sample(open_parts, rng.randint(1, 2))]
    return f"{subject} {' and '.join(told)}."


def person(source):
    """Returns a sentence about somebody and its facts, in the order of KEYS."""
    template = _composed_person(source.rng) if source.broad and not source.held_out and source.rng.random() < 0.4 \
        else source.template(_PERSON_WAYS)
    facts = {"name": source.name(), "age": source.rng.randint(5, 99), "city": source.city(),
             "job": source.odd(0.4) or source.word(words.JOBS), "hobby": source.odd(0.3) or source.word(words.HOBBIES)}
    told = {key: facts[key] for key in KEYS if "{" + key + "}" in template}
    return phrases.fill(source, template, facts), told


def _key_words(rng, keys):
    if rng.random() < 0.5:
        return turns.join_words(list(keys))
    return turns.join_words([f"the {key}" for key in keys])


def _some_keys(rng, told, broad):
    """Selects some of the facts, in the order of KEYS; at most two in the last stage of training."""
    most = 2 if broad else len(told)
    keys = rng.sample(list(told), rng.randint(1, min(most, len(told))))
    return keys if not broad and rng.random() < 0.3 else [key for key in told if key in keys]


def extract(source):
    sentence, told = person(source)
    if source.rng.random() < 0.5:
        return _json_turn("json/extract", source.say(_EXTRACT_ALL_WAYS, s=sentence), told)
    keys = _some_keys(source.rng, told, source.broad)
    user = source.say(_EXTRACT_KEYS_WAYS, s=sentence, k=_key_words(source.rng, keys))
    return _json_turn("json/extract-keys", user, {key: told[key] for key in keys})


def extract_by_system(source):
    """Returns (system prompt, list of turns), where only the system prompt requests JSON."""
    rng = source.rng
    people = [person(source) for _ in range(rng.randint(1, 3))]
    shared = [key for key in KEYS if all(key in told for _, told in people)]
    keys = _some_keys(rng, dict.fromkeys(shared), source.broad)
    system = source.say(_EXTRACT_SYSTEM_WAYS, k=_key_words(rng, keys))
    return system, [_json_turn("json/extract-system", sentence, {key: told[key] for key in keys})
                    for sentence, told in people]


def list_of_kind(source):
    group, count, items = turns.pick_list(source)
    shown = source.rng.choice([str(count), turns.NUMBER_WORDS[count]])
    ask = turns.list_wish(source, shown, group)
    way = source.template(_LIST_WAYS)
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
    items = [words.pseudo_word(source.rng) if source.rng.random() < 0.15 else source.odd(0.4) or source.word(pool)
             for _ in range(source.rng.randint(2, 4 if source.broad else 5))]
    shown = turns.join_words(items) if source.rng.random() < 0.7 else ", ".join(items)
    return _json_turn("json/make-list", source.say(_MAKE_LIST_WAYS, x=shown), items)


def mood_sentence(source):
    mood = source.rng.choice(list(MOOD))
    adjectives, templates = _MOOD_WAYS[mood]
    # An unknown adjective does not reveal the mood, so all of them occur in the last stage and in held-out
    # questions.
    adjective = source.rng.choice(adjectives) if source.broad else source.word(adjectives)
    text = source.say(templates, x=source.rng.choice(MOOD_SUBJECTS), a=adjective)
    return text.replace(" a a", " an a").replace(" a e", " an e").replace("A a", "An a").replace("A e", "An e"), mood


def mood(source):
    sentence, judged = mood_sentence(source)
    return _json_turn("json/sentiment", source.say(_MOOD_ASK_WAYS, s=sentence), {"sentiment": judged})


def mood_by_system(source):
    judged = [mood_sentence(source) for _ in range(source.rng.randint(1, 3))]
    return source.say(_MOOD_SYSTEM_WAYS), [_json_turn("json/sentiment-system", text, {"sentiment": m}) for text, m in judged]


def make_object(source):
    rng = source.rng
    keys = rng.sample(OBJECT_KEYS, rng.randint(1, 2 if source.broad else 3))
    value, shown = {}, []
    for key in keys:
        if rng.random() < 0.45:
            value[key] = rng.randint(0, 999)
            shown.append(rng.choice([f"{key} {value[key]}", f"the {key} {value[key]}", f"{key} = {value[key]}"]))
        else:
            value[key] = " ".join(source.odd(0.4) or source.word(words.COLOURS + words.ANIMALS + words.OBJECTS)
                                  for _ in range(1 if source.broad else rng.randint(1, 2)))
            shown.append(rng.choice([f'{key} "{value[key]}"', f'the {key} "{value[key]}"', f"{key} = {value[key]}"]))
    return _json_turn("json/object", source.say(_MAKE_OBJECT_WAYS, x=turns.join_words(shown)), value)


def json_sum(source, a, b):
    user = source.say(SUM_WAYS, a=a, b=b)
    return _json_turn("json/sum", user, {"sum": sums.plus_chain(source, a, b).rsplit(" = ", 1)[0], "result": a + b})


def reply_by_system(source, plain_turns):
    """Returns turns of any kind, whose answers are wrapped in {"answer": ...} because the system prompt requests it."""
    wrapped = [_json_turn("json/answer", turn.user, {"answer": turn.answer})
               for turn in plain_turns if "\n" not in turn.answer and '"' not in turn.answer]
    return source.say(REPLY_SYSTEM), wrapped


def wish(source):
    """Returns one JSON turn in which the user states the request."""
    return source.rng.choices((extract, list_of_kind, make_list, mood, make_object), (6, 3, 3, 3, 3))[0](source)
