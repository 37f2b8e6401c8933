"""Short stories and poems on request: who, where, about what. Each has a plot of six sentences.

The story uses every requested word, if possible more than once.
"""

import phrases
import words
from turns import Turn

ASK = ["Tell me a story about {who}.", "Write a story about {who}.", "Tell me a [short|little] story about {who}.",
       "Write a [short|little] story about {who}.", "Can you tell me a story about {who}?",
       "A story about {who}, please.", "I want [to hear|] a story about {who}.", "Please tell me a story about {who}.",
       "Make up a story about {who}.", "Do you know a story about {who}?", "Give me a story about {who}.",
       "I would like [to hear|] a story about {who}.", "Tell a story with {who}.", "Write me a story about {who}.",
       "Could you tell [me|us] a story about {who}?", "Story about {who}", "Please write a [short|little|] story about {who}.",
       "Invent a [short|little|] story about {who}.", "Tell me a bedtime story about {who}.",
       "How about a story about {who}?", "Once upon a time there was {who}. Tell me the story.",
       "Tell my [child|daughter|son|friend] a story about {who}.", "Write a tale about {who}.",
       "Tell me a tale [of|about] {who}."]
ASK_MORE = [  # for the last stage of training
    "Tell us a tale about {who}.", "Write me a [short|] tale about {who}.", "A tale about {who}, please.",
    "Can you tell me a tale of {who}?", "I want to hear a tale about {who}.", "Tell a tale of {who}.",
    "Tell me the tale of {who}.", "Tell me a [nice|long|good] story about {who}.", "Write a [nice|good] story about {who}.",
    "Make a story about {who}.", "Invent a [nice|new] story about {who}.", "Invent a tale about {who}.",
    "I would love a story about {who}.", "I'd like a [short|] tale about {who}.", "Can I have a story about {who}?",
    "One story about {who}, please.", "Please, a [short|little] story about {who}.", "A [short|little] story about {who}",
    "Do you know a tale about {who}?", "Tell me what happened to {who}.", "Would you tell me a story about {who}?",
    "Write a story with {who} in it.", "Give us a [short|] story about {who}."]
ASK_ANY = ["Tell me a story.", "Write a story.", "Tell me a [short|little] story.", "Can you tell me a story?",
           "I want to hear a story.", "A story, please.", "Tell me another story.", "Another story, please.",
           "Do you know a story?", "Please tell me a story.", "One more story.", "Tell a story.", "Story time!"]
WITH = [" and {o}", " with {o}", " who finds {o}", " who has {o}", " and its {bare}"]

OPEN = ["Once upon a time there was {a} {trait} {hero} who lived {place}.",
        "Once there was {a} {trait} {hero} that lived {place}.",
        "There was once {a} {trait} {hero} who lived {place}."]
OPEN_NAME = ["Once upon a time there was {a} {trait} {kind} called {hero} who lived {place}.",
             "{hero} was {a} {trait} {kind} who lived {place}."]
PLOTS = {
    "lost": [["One morning {the} saw that the {object} was gone.", "One day {the} lost the {object}.",
              "One evening the {object} was lost, and {the} was sad."],
             ["{The} looked everywhere, behind every door and under every stone.",
              "{The} looked high and low but could not find it."],
             ["Then a {helper} came by and said: \"I will help you.\"",
              "A {helper} heard about it and wanted to help."],
             ["Together they searched until the sun went down.",
              "They searched together and did not give up."],
             ["At last they found the {object} {spot}.", "And there it was: the {object} lay {spot}."],
             ["{The} was happy, and from that day on the {helper} was a good friend.",
              "{The} thanked the {helper}, and they stayed friends for ever."]],
    "found": [["One day {the} found {an_object} {spot}.", "One morning {the} saw {an_object} {spot}."],
              ["It was no common {object}: it shone in the dark.", "The {object} was old and very beautiful."],
              ["\"Whose {object} is this?\" asked {the}.", "{The} wanted to know whose {object} it was."],
              ["A {helper} said: \"It is mine. I have looked for it for so long!\"",
               "Then a {helper} came and cried: \"That is my {object}!\""],
              ["{The} gave the {object} back at once.", "{The} smiled and gave it back."],
              ["The {helper} was so glad that they had a feast together.",
               "As a thank you the {helper} made a cake, and they ate it together."]],
    "storm": [["One night there was a great storm.", "One day a big storm came."],
              ["The wind blew so hard that all the lights went out.", "It rained and rained, and all was dark."],
              ["{The} was afraid, but then {the} thought of the {object}.",
               "{The} took the {object} and went out into the night."],
              ["With the {object}, {the} helped a {helper} that was lost in the rain.",
               "Outside a {helper} called for help, and {the} came with the {object}."],
              ["They sat together and waited until the storm was over.",
               "They stayed together until the morning came."],
              ["When the sun rose, {the} was not afraid any more.",
               "In the morning the sun shone, and {the} had a new friend."]],
    "wish": [["{The} had one wish: to have {an_object}.", "More than anything {the} wanted {an_object}."],
             ["So {the} asked everyone, but nobody had one.", "But nobody knew where to find one."],
             ["One day {the} met a {helper} that was hungry and shared some bread.",
              "One day {the} helped a {helper} that had hurt its foot."],
             ["\"You are kind,\" said the {helper}. \"Close your eyes!\"",
              "The {helper} said: \"For that I will make your wish come true.\""],
             ["And when {the} looked again, there was {an_object}.",
              "The next morning {an_object} stood before the door."],
             ["{The} jumped for joy and never forgot the {helper}.",
              "{The} was the happiest {word} of all."]],
    "learn": [["{The} wanted to learn something new: to play with the {object} like nobody else.",
               "Every day {the} practised with the {object}."],
              ["At first it did not work at all, and everyone laughed.", "It was hard, and some people laughed."],
              ["But {the} did not give up and tried again each day.", "{The} only smiled and tried once more."],
              ["A {helper} watched and said: \"You get better every day.\"",
               "Only a {helper} said: \"Go on, you can do it!\""],
              ["One day there was a big feast, and {the} showed what {the} could do with the {object}.",
               "Then came the great day, and {the} took the {object} and showed it to all."],
              ["Everyone clapped, and the {helper} clapped loudest of all.",
               "Nobody laughed any more, and {the} was very proud."]],
}
_ASK_WAYS = phrases.ways(ASK, ASK_MORE)
END = ["The end.", "And they lived happily ever after.", ""]
SPOTS = ["under an old tree", "behind a big stone", "in the tall grass", "at the side of the path", "in a small box",
         "under a bench"]
HELPERS = [a for a in words.ANIMALS if a[0] not in "aeiou" and len(a) < 7][:24]
KINDS = ["child", "farmer", "baker", "painter", "gardener", "teacher", "singer"]  # suitable for any name

POEM_ASK = ["Write a poem about {x}.", "Tell me a poem about {x}.", "Can you write a poem about {x}?",
            "A poem about {x}, please.", "Make a poem about {x}.", "Write a [short|little] poem about {x}.",
            "I want a poem about {x}.", "Please write a poem about {x}.", "Write me a poem about {x}.",
            "Give me a poem about {x}.", "Could you write a poem about {x}?", "I would like a poem about {x}.",
            "Poem about {x}"]
POEMS = ["The {x} is here, the {x} is near,\nit makes the day so bright and clear.\nAnd when the evening light is low,\nthe {x} will dream in golden glow.",
         "I saw a {x} one day in spring,\nit made my heart begin to sing.\nThe {x} was gone, the day was long,\nbut I still hum our little song."]


_POEM_WAYS = phrases.ways(POEM_ASK, [])


def article(noun):
    return ("an " if noun[0].lower() in "aeio" else "a ") + noun


def _hero(source):
    """Returns (the hero as named in the story, the plain word, whether it is a proper name)."""
    if source.rng.random() < 0.25:
        return source.name(), None
    return None, source.odd(0.3) or source.word(words.ANIMALS + words.HEROES)


def tell(source, name, noun, trait, place, thing):
    rng = source.rng
    kind = rng.choice(KINDS)
    helper = rng.choice([h for h in HELPERS if h not in (noun, thing)])
    the = name or f"the {noun}"
    slots = {"hero": name or noun, "a": article(trait).split(" ")[0], "trait": trait, "kind": kind, "place": place,
             "object": thing, "an_object": article(thing), "the": the, "The": the[0].upper() + the[1:],
             "helper": helper, "spot": rng.choice(SPOTS), "word": noun or kind}
    beats = [rng.choice(OPEN_NAME if name else OPEN)]
    beats += [rng.choice(beat) for beat in PLOTS[rng.choice(list(PLOTS))]] + [rng.choice(END)]
    return " ".join(beat.format(**slots) for beat in beats).strip()


def story(source):
    rng = source.rng
    name, noun = _hero(source)
    trait, thing = source.odd(0.15) or source.word(words.TRAITS), source.odd(0.25) or source.word(words.OBJECTS)
    place = source.word(words.PLACES)
    wanted = [name or noun]
    who = name
    if noun:
        asked_trait = rng.random() < 0.35
        who = article(f"{trait} {noun}" if asked_trait else noun)
        wanted += [trait] if asked_trait else []
    if rng.random() < 0.35:
        who += rng.choice(WITH).format(o=article(thing), bare=thing)
        wanted.append(thing)
    if rng.random() < 0.25:
        who += " " + place
        wanted.append(place)
    user = phrases.as_typed(source, source.say(_ASK_WAYS, who=who), keep_case=bool(name))

    def told(text, parts):
        whole = len(text.split()) > 30 and text[-1] in '.!"'
        return whole and all(part.lower() in text.lower() for part in parts)
    turn = Turn("story/about", user, tell(source, name, noun, trait, place, thing), lambda text: told(text, wanted[:1]))
    turn.accept_all = lambda text: told(text, wanted)
    return turn, name or noun


def any_story(source):
    name, noun = _hero(source)
    text = tell(source, name, noun, source.word(words.TRAITS), source.word(words.PLACES), source.word(words.OBJECTS))
    user = phrases.as_typed(source, source.say(ASK_ANY))
    return Turn("story/any", user, text, lambda told: len(told.split()) > 30), name or noun


POEM_ANY = ["Write a poem.", "Can you write a poem?", "Tell me a poem.", "A poem, please.", "Write me a poem.",
            "Please write a poem.", "I want to hear a poem.", "Do you know a poem?"]


def poem(source):
    subject = source.odd(0.25) or source.word(words.ANIMALS + words.OBJECTS + ["moon", "sun", "sea", "rain", "wind", "night", "tree"])
    shown = source.rng.choice([f"the {subject}", article(subject), f"my {subject}"])
    asked = source.rng.random() < 0.85
    user = phrases.as_typed(source, source.say(POEM_ASK, x=shown) if asked else source.say(POEM_ANY))
    return Turn("story/poem", user, source.rng.choice(POEMS).replace("{x}", subject),
                lambda text: (subject in text or not asked) and text.count("\n") == 3)


WHO_ASK = ["Who was the story about?", "What was the story about?", "Who was in the story?", "Who was the hero?",
           "Who is the hero of the story?", "Who was the hero of the story?", "Who did you tell me about?",
           "What was your story about?", "Who was it about?"]


def who_was_it(source, hero):
    named = hero[0].isupper()
    answer = f"It was about {hero}." if named else f"It was about {article(hero)}."
    return Turn("story/who", phrases.as_typed(source, source.say(WHO_ASK)), answer)
