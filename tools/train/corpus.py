"""Builds conversations from turns, with and without a system prompt, and packs them into rows for training.

All random choices come from one seeded generator, so a batch depends only on its number.
"""

import random

import numpy as np

import followups
import haste
import memory
import phrases
import records
import roles
import stories
import sums
import tales
import turns
import visit_records
import visits
import words
import wordsums
from turns import Turn

DEFAULT_SYSTEM = "You are Wick, a small and friendly assistant."
SYSTEMS = [  # system prompts that do not change answers
    "You are a helpful assistant.", "You are Wick.", "Be kind and short.", "You are a friendly chat model.",
    "Answer briefly.", "You are a small language model.", "You are Wick, a helpful assistant.",
    "You help people.", "Answer the user's questions.", "Be polite.", "You are a friendly assistant. Answer in short sentences.",
    "You are an assistant that runs in a browser.", "Keep your answers short.", "Be friendly and honest.",
    "You are a helpful AI assistant named Wick, made by the Wick project.", "You speak English.",
    "Today is a good day. Help the user.", "You are a tiny assistant. You say so when you do not know something.",
]
PERSONA = ["You are {x}.", "You are {x}, a friendly assistant.", "Your name is {x}.", "You are called {x}.",
           "You are a helpful assistant called {x}.", "Your name is {x}. Be friendly.", "You are an assistant named {x}.",
           "You are {x}, a small helper."]
TOLD_BY_SYSTEM = ["The user is called {x}.", "The user's name is {x}.", "You are talking to {x}.", "You help {x}.",
                  "The name of the user is {x}.", "You talk with {x}.", "You are Wick. The user's name is {x}."]
DECIDING_TOKENS, DECIDING_TOKENS_STORY, DECIDING_WEIGHT = 3, 24, 3.0  # a story's first sentence has the requested subject
EXACT_KINDS = ("visit/sum", "visit/problem", "visit/three", "visit/double", "visit/half", "visit/figures", "copy/", "number/", "back/", "list/", "visit/json", "json/", "memory/")
EXACT_TOKENS, EXACT_WEIGHT = 40, 2.0  # for answers in which a single wrong letter or digit matters
VISITED_SHARE = 0.8  # of the episodes of the last stage
IM_START, IM_END, END_OF_TEXT = "<|im_start|>", "<|im_end|>", "<|endoftext|>"


def render(system, told):
    """Renders ChatML like the model's template, up to and including the last answer."""
    text = f"{IM_START}system\n{system}{IM_END}\n" if system else ""
    for turn in told:
        text += f"{IM_START}user\n{turn.user}{IM_END}\n{IM_START}assistant\n{turn.answer}{IM_END}\n"
    return text


def prompt(system, told, question):
    return render(system, told) + f"{IM_START}user\n{question}{IM_END}\n{IM_START}assistant\n"


def _memory_episode(source, mind):
    rng = source.rng
    kind = mind.pick_kind()
    if rng.random() < 0.12:
        return [mind.ask(kind)]
    out = [mind.tell(kind)]
    if rng.random() < 0.25:
        out.append(rng.choice((turns.talk, turns.fact, turns.about))(source))
    if rng.random() < 0.6:
        out.append(mind.ask(kind))
    return out


def _story_episode(source):
    turn, hero = stories.story(source) if source.rng.random() < 0.8 else stories.any_story(source)
    return [turn, stories.who_was_it(source, hero)] if source.rng.random() < 0.3 else [turn]


def _riddle_episode(source):
    first = turns.canned_intent(source, "talk", phrases.TALK, "riddle")
    name = source.rng.choice(("riddle-answer", "riddle-unknown"))
    return [first, turns.canned_intent(source, "talk", phrases.TALK, name)]


def _arithmetic_episode(source, _mind):
    return [sums.arithmetic(source) for _ in range(source.rng.randint(1, 3))]


_EPISODES = [  # (weight in each stage, function that makes the turns of one episode)
    ((12, 16, 16, 20), lambda s, m: [turns.talk(s)]),
    ((15, 18, 18, 20), lambda s, m: [turns.about(s)]),
    ((9, 9, 8, 6), lambda s, m: [turns.topic(s)]),
    ((9, 9, 8, 8), lambda s, m: [turns.refusal(s)]),
    ((5, 6, 6, 6), lambda s, m: [turns.fact(s)]),
    ((21, 21, 21, 21), _arithmetic_episode),
    ((3, 3, 3, 3), lambda s, m: [turns.number_fact(s)]),
    ((3, 3, 3, 3), lambda s, m: [turns.name_list(s)]),
    ((3, 4, 12, 5), lambda s, m: [turns.repeat(s)]),
    ((8, 12, 26, 34), lambda s, m: [records.wish(s)]),
    ((1, 1, 1, 1), lambda s, m: [records.json_sum(s, *sums.addends(s))]),
    ((7, 6, 6, 5), lambda s, m: _story_episode(s)),
    ((2, 2, 2, 2), lambda s, m: [stories.poem(s)]),
    ((11, 13, 20, 16), lambda s, m: _memory_episode(s, m)),
    ((1, 1, 1, 1), lambda s, m: _riddle_episode(s)),
]


_NOT_TALES = _EPISODES[:11] + _EPISODES[13:]  # visitors' stories and poems come from tales.py
_VISITS = [  # (weight among visitors' questions, weight in training, function that makes the turns of one episode): the last stage
    (24, 24, lambda s: [visits.refused(s)]),
    (30, 30, lambda s: [visits.talked(s)]),
    (13, 13, lambda s: [visits.fact(s)]),
    (4, 4, lambda s: [visits.topic(s)]),
    (8, 8, lambda s: [visits.in_haste(s)]),
    (4, 10, lambda s: [turns.repeat(s)]),
    (0, 10, lambda s: [turns.copies(s)]),
    (0, 7, lambda s: [records.wish(s)]),
    (4, 4, lambda s: [visits.listed(s)]),
    (4, 4, lambda s: [turns.number_fact(s)]),
    (2, 2, visits.capitals),
    (4, 4, visits.jokes),
    (10, 10, lambda s: [visits.two(s)]),
    (60, 75, lambda s: [wordsums.wish(s)]),
    (2, 2, wordsums.follow_up),
    (11, 11, lambda s: [visit_records.wish(s)]),
    (6, 6, followups.story),
    (3, 5, lambda s: [tales.poem(s)]),
    (9, 9, followups.episode),
]


def _visit(source, trained):
    asked, practised, makers = zip(*_VISITS)
    return source.rng.choices(makers, practised if trained else asked)[0](source)


def _plain(source, mind, enough, practice, trained):
    """Adds episodes until `enough(turns)`; sometimes a later turn asks for facts from the user."""
    told = []
    visited = source.stage >= phrases.VISIT_STAGE
    weights = [stages[min(source.stage, len(stages) - 1)] * (practice if maker is _arithmetic_episode else 1)
               for stages, maker in (_NOT_TALES if visited else _EPISODES)]
    while not enough(told):
        if visited and source.rng.random() < VISITED_SHARE:
            told += _visit(source, trained)
            continue
        if mind.told and source.rng.random() < 0.12:
            told.append(mind.ask(source.rng.choice(list(mind.told))))
        maker = source.rng.choices(_NOT_TALES if visited else _EPISODES, weights)[0][1]
        told += maker(source, mind)
    return told


def _json_mode(source):
    rng = source.rng
    draw = rng.random()
    if draw < 0.4:
        return records.extract_by_system(source)
    if draw < 0.6:
        return records.mood_by_system(source)
    makers = (turns.talk, turns.about, turns.fact, turns.topic, turns.refusal)
    return records.reply_by_system(source, [rng.choice(makers)(source) for _ in range(rng.randint(1, 3))])


def _persona(source):
    name = source.name()
    user = phrases.as_typed(source, source.say(phrases.ABOUT["name"][0]))
    return source.say(PERSONA, x=name), Turn("persona/name", user, f"I am {name}, a very small language model.")


def conversation(source, enough, practice=1.0, trained=False):
    """Returns (system prompt or None, turns), with turns until `enough(turns)`; questions in text/kept_out.txt are left out.

    `practice` multiplies the share of arithmetic, which needs the most repetition. With `trained` the last stage has more of
    what is hard than visitors ask.
    """
    while True:
        system, told = _conversation(source, enough, practice, trained)
        if not any(haste.kept_out(turn.user) for turn in told):
            return system, told


def _conversation(source, enough, practice, trained):
    rng = source.rng
    mind = memory.Memory(source)
    if source.stage >= phrases.VISIT_STAGE:
        draw = rng.random()
        if draw < 0.14:
            return roles.dressed(source, visits.canned, trained) if rng.random() < 0.86 else roles.mood(source)
        if draw < 0.80:
            return DEFAULT_SYSTEM if draw < 0.66 else source.say(SYSTEMS) if draw < 0.72 else None, _plain(source, mind, enough, practice, trained)
    draw = rng.random() - (0.05 if source.stage >= 2 else 0.0)
    if draw < 0.07:
        return _json_mode(source)
    if draw < 0.10:
        system, first = _persona(source)
        told = _plain(source, mind, enough, practice, trained)
        told = [t for t in told if t.kind not in ("about/name", "about/kind", "about/name-meaning")]
        told.insert(rng.randint(0, min(2, len(told))), first)
        return system, told
    if draw < 0.14:
        mind.told["name"] = source.name()
        system = source.say(TOLD_BY_SYSTEM, x=mind.told["name"])
        told = [mind.ask("name")] if rng.random() < 0.6 else []
        return system, told + _plain(source, mind, enough, practice, trained)
    system = None
    if draw < 0.55:
        system = DEFAULT_SYSTEM
    elif draw < 0.70:
        system = source.say(SYSTEMS)
    return system, _plain(source, mind, enough, practice, trained)


class Rows:
    """Generates rows of token ids of one length from a seed, with several conversations in each."""

    def __init__(self, tokenizer, seed, length, practice=1.0, by_parts=True, stage=phrases.LAST_STAGE):
        self.encode = lambda text: tokenizer.encode(text, add_special_tokens=False).ids
        self.source = phrases.Source(random.Random(seed), by_parts=by_parts, stage=stage)
        self.length = length
        self.practice = practice
        self.user_weight = 0.05 if self.source.broad else 0.15  # rare words cannot be predicted
        self.start, self.end, self.stop = (tokenizer.token_to_id(t) for t in (IM_START, IM_END, END_OF_TEXT))

    def _document(self, room):
        """Returns (ids, weights) of one conversation of at most `room` tokens: whole turns, then an end token."""
        wanted = self.source.rng.randint(30, max(31, room))
        if self.source.stage >= phrases.VISIT_STAGE and room < 1024 and self.source.rng.random() < 0.6:
            wanted = 1  # most visitors' questions are the first of their conversation
        count = [0, 0]  # turns seen, characters: about three characters make a token

        def enough(told):
            for turn in told[count[0]:]:
                count[1] += len(turn.user) + len(turn.answer) + 30
            count[0] = len(told)
            return count[1] >= 2.6 * wanted
        system, told = conversation(self.source, enough, self.practice, trained=True)
        ids, weights = self._part(f"{IM_START}system\n{system}{IM_END}\n", 0.0) if system else ([], [])
        for turn in told:
            asked, asked_weights = self._part(f"{IM_START}user\n{turn.user}{IM_END}\n", self.user_weight)
            head, head_weights = self._part(f"{IM_START}assistant\n", 0.0)
            reply, reply_weights = self._part(f"{turn.answer}{IM_END}\n", 1.0)
            reply_weights[-1] = 0.0  # the engine stops at <|im_end|>
            if self.source.stage >= phrases.VISIT_STAGE:  # the first words determine the answer
                deciding = DECIDING_TOKENS_STORY if turn.kind == "visit/story" else DECIDING_TOKENS
                deciding = min(deciding, len(reply_weights) - 1)
                if turn.kind.startswith(EXACT_KINDS):
                    exact = min(EXACT_TOKENS, len(reply_weights) - 1)
                    reply_weights[:exact] = [EXACT_WEIGHT] * exact
                reply_weights[:deciding] = [DECIDING_WEIGHT] * deciding
            if len(ids) + len(asked) + len(head) + len(reply) + 1 > room:
                break
            ids += asked + head + reply
            weights += asked_weights + head_weights + reply_weights
        if not told or len(ids) + 1 > room or max(weights, default=0.0) < 1.0:
            return [], []  # no turn fits
        return ids + [self.stop], weights + [0.0]

    def _part(self, text, weight):
        ids = self.encode(text)
        return ids, [weight] * len(ids)

    def row(self):
        """Returns ids, segments and weights, each [length]; the unused rest of a row has weight 0."""
        ids, segments, weights, segment = [], [], [], 0
        while self.length - len(ids) > 24:
            room = self.length - len(ids)
            more, more_weights = self._document(room)
            if not more:
                if room < 60:
                    break
                continue
            ids += more
            weights += more_weights
            segments += [segment] * len(more)
            segment += 1
        rest = self.length - len(ids)
        return ids + [self.stop] * rest, segments + [segment] * rest, weights + [0.0] * rest

    def batch(self, count):
        rows = [self.row() for _ in range(count)]
        ids, segments, weights = (np.array(part) for part in zip(*rows))
        return ids.astype(np.int32), segments.astype(np.int32), weights.astype(np.float32)
