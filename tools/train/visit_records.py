"""JSON as requested by visitors: "json of: ...", in lower case, with an e-mail address, one field, a review, a list."""

import json

import haste
import records
import roles
import turns
import words
from turns import Turn

_ALL = ["json of: {s}", "json: {s}", "[make|as|to|into|give me|write|create|turn into|convert to|parse to|output|i need] json: {s}", "{s} [as json|to json|in json|-> json|json please|into json|as json please]",
        "[turn|convert|make|put|parse|change|transform] this [into|to|in] [json|a json object]: {s}", "[json|a json object] [from|for|of] [this|the following|this text|this line|the text]: {s}",
        "[extract|get|pull|take] [the|all|] [data|facts|info|details|everything] [as|in|to|into] json: {s}", "can you [make|write|give me] [json|a json] [of|from|with|out of] [this|that|]: {s}"]
_KEYS = ["[extract|get|give me|find|return|i need|pull|tell me|pick|only|write] {k} as json: {s}", "[extract|get|give me|find|return|what are|read] {k} [in|as] json[.|:] {s}", "{k} as json: {s}", "json with {k}: {s}", "{s} [give me|extract|only|return|i need] {k} [as|in] json",
         "[what is|whats|what are|what] {k}? [answer in json|answer as json|in json|as json|json please|reply in json][.|:] {s}", "[what|which] {k}? json[.|:] {s}", "from this text extract {k} as json: {s}"]
_SUBJECTS = ["{name}", "{name}", "my [friend|colleague|neighbour|boss|sister|brother|teacher|cousin|uncle|aunt] {name}", "our [new|] {job} {name}", "mr {name}", "this is {name}, {name}", "the {job} {name}"]
_PARTS = {"age": ["is {age}", "is {age} years old", "turned {age} [last week|today|yesterday|in may|]", "is now {age}", "just became {age}", "will be {age} soon"],
          "city": ["lives in {city}", "is from {city}", "has moved to {city}", "moved to {city} [last year|]", "comes from {city}", "now lives in {city}", "stays in {city}", "works in {city}"],
          "job": ["is a {job}", "works as a {job}", "became a {job}"], "hobby": ["likes {hobby}", "loves {hobby}", "enjoys {hobby}"]}
_ROWS = ["{name}, {age}, {city}", "{name}, {age}, lives in {city}", "{name} ({age}), {city}", "{name} {age} {city}", "{name}, {age}", "{name} from {city}, {age}", "name {name}, age {age}", "name is {name}, age is {age}, city is {city}",
         "{name}, {job}, {city}", "{name}, {age} years, from {city}", "name: {name}, city: {city}", "{name} / {age} / {city}"]
_MAIL = ["please write to {m} for [tickets|help|details|a quote]", "my [email|mail|address] is {m}", "contact {m} [for more|today|]", "you can reach {name} at {m}", "send it to {m}", "mail me: {m}",
         "questions? {m}", "{name} has the address {m}", "for [tickets|orders] ask {m}", "reply to {m} [by friday|]", "{m} is my email"]
_LIST = ["[give me|make|write|list|name|create|i want|i need|output|show me|return|generate] [a|] [json|json array|json list|json array of|list in json of|json list with|json array with|json list of] [with|of|] {n} {g}[ please|]", "[list|name|give me|tell me|write] {n} {g} [as json|in json|as a json list|as a json array|json|in json please|as json please]",
         "{n} {g} [as|in] json", "json [array|list] [of|with] {n} {g}", "[a|] json array: {n} {g}", "{n} {g} json"]
_MOOD = ["[is|was] this [review|text|comment|message|sentence|feedback] [positive or negative|negative or positive|good or bad], [answer|reply|respond|say it] [as|in|with] json: {s}", "[sentiment|mood|classify|positive or negative] [as|in] json: {s}",
         "[classify|judge|rate|analyse|analyze] [this|the sentiment|this review|the review|the mood] [as|in] json: {s}", "json sentiment: {s}", "{s} [sentiment as json|positive or negative? json|sentiment in json]", "[what is the|whats the] [sentiment|mood]? [json|as json|in json][:|] {s}"]
_OBJECT = ["[make|create|write|give me|build|generate|return|i need] [a|an|] [json|json object|object in json] [with|where|of|from|having] {x}", "json [object|] [with|:] {x}", "{x} [as|in|to] json", "[put|turn|convert] {x} [into|to] [json|a json object]"]


def _dump(kind, source, text, value, fixed):
    user = haste.hasty(source.rng, text, fixed, framed=source.rng.random() < 0.4)

    def accept(told):
        try:
            return json.loads(told) == value
        except ValueError:
            return False
    return Turn("visit/" + kind, user, json.dumps(value, ensure_ascii=False), accept)


def _person(source):
    rng = source.rng
    facts = {"name": source.name(), "age": rng.randint(5, 95), "city": source.city(), "job": source.odd(0.15) or rng.choice(words.JOBS + words.MORE_JOBS), "hobby": rng.choice(words.HOBBIES)}
    if rng.random() < 0.35:
        template = rng.choice(_ROWS)
    else:
        parts = rng.sample(list(_PARTS), rng.randint(1, 2))
        said = [haste.expand(rng, rng.choice(_PARTS[part])) for part in parts]
        template = haste.expand(rng, rng.choice(_SUBJECTS)) + " " + " and ".join(said)
    told = {key: facts[key] for key in records.KEYS if "{" + key + "}" in template}
    for key, value in facts.items():
        template = template.replace("{" + key + "}", str(value))
    return template[0].upper() + template[1:] + rng.choice([".", "", ""]), told


def person(source):
    sentence, told = _person(source)
    rng = source.rng
    if rng.random() < 0.5:
        text = haste.expand(rng, rng.choice(_ALL)).replace("{s}", sentence)
        return _dump("json-person", source, text, told, told.values())
    keys = [k for k in told if rng.random() < 0.6] or [rng.choice(list(told))]
    shown = turns.join_words([rng.choice([k, k, "the " + k]) for k in keys])
    text = haste.expand(rng, rng.choice(_KEYS)).replace("{s}", sentence).replace("{k}", shown)
    return _dump("json-keys", source, text, {k: told[k] for k in keys}, told.values())


def mail(source):
    rng = source.rng
    first, word = rng.choice(words.NAMES).lower(), rng.choice(words._COPIED).lower()
    address = rng.choice([f"{first}@{word}.com", f"{first}.{word}@mail.com", f"info@{word}.org", f"{first[0]}.{word}@{rng.choice(words._COPIED).lower()}.net", f"{first}{rng.randint(1, 99)}@{word}.de",
                          f"{first}.{rng.choice(words.NAMES).lower()}@mail.io", f"{word}@post.io"])
    sentence = haste.expand(rng, rng.choice(_MAIL)).replace("{m}", address).replace("{name}", rng.choice(words.NAMES))
    text = haste.expand(rng, rng.choice(_KEYS)).replace("{s}", sentence).replace("{k}", rng.choice(["the email", "email", "the mail address", "the email address"]))
    return _dump("json-mail", source, text, {"email": address}, [sentence])


def listed(source):
    rng = source.rng
    group, count, items = turns.pick_list(source)
    shown = rng.choice([str(count), turns.NUMBER_WORDS[count]])
    text = haste.expand(rng, rng.choice(_LIST)).replace("{n}", shown).replace("{g}", group)
    return _dump("json-list", source, text, items, ())


def mood(source):
    sentence, judged = roles.review(source.rng) if source.rng.random() < 0.75 else records.mood_sentence(source)
    return _dump("json-mood", source, haste.expand(source.rng, source.rng.choice(_MOOD)).replace("{s}", sentence), {"sentiment": judged}, ())


def made(source):
    rng = source.rng
    keys, value, shown = rng.sample(records.OBJECT_KEYS, rng.randint(1, 3)), {}, []
    for key in keys:
        if rng.random() < 0.45:
            value[key] = rng.randint(0, 999)
            shown.append(rng.choice([f"{key} {value[key]}", f"{key} = {value[key]}", f"{key}: {value[key]}", f"the {key} {value[key]}"]))
        else:
            word = rng.choice(words._COPIED + words.COLOURS + words.ANIMALS + words.CITIES + words.NAMES)
            value[key] = rng.choice([word, word.capitalize()])
            shown.append(rng.choice([f'{key} "{value[key]}"', f'{key} = "{value[key]}"', f"{key}: {value[key]}", f"{key} {value[key]}"]))
    text = haste.expand(rng, rng.choice(_OBJECT)).replace("{x}", turns.join_words(shown) if rng.random() < 0.7 else ", ".join(shown))
    return _dump("json-object", source, text, value, [str(v) for v in value.values()])


def wish(source):
    return source.rng.choices((person, mail, listed, mood, made), (10, 2, 4, 4, 5))[0](source)
