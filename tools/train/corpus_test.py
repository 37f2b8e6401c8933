"""Laws of the generated text: python -m unittest corpus_test (in this folder). Takes a few seconds."""

import collections
import json
import random
import re
import unittest

import jinja2

import corpus
import export
import memory
import phrases
import records
import stories
import sums
import tokenizer as vocabulary
import turns
import words

ROOMS = (turns, sums, records, memory, stories, phrases)  # modules whose lists of wordings are checked
ASK_LISTS = [turns.COLOUR, turns.SOUND, turns.LEG, sums.PLUS, sums.MINUS, sums.TIMES]
_COMMON = set("""the a an is are am was were be been do does did you i me my your we us our it its this that these
    what which who whom how why when where can could will would should may must to of in on at for with from by and
    or not no have has had please tell say know so very really there here some any one as if about up now
    today too then just still""".split())


def all_asks():
    """Every Asks of the modules, also those in dictionaries and tuples."""
    open_values = [value for room in ROOMS for value in vars(room).values()]
    while open_values:
        value = open_values.pop()
        if isinstance(value, phrases.Asks):
            yield value
        elif isinstance(value, dict):
            open_values += value.values()
        elif isinstance(value, tuple):
            open_values += value


def words_of(templates):
    texts = " ".join(text for template in templates for text in phrases.variants(template))
    return set(re.findall(r"[a-z0-9'-]+", re.sub(r"\{\w+\}", " ", texts)))


class Split(unittest.TestCase):
    def test_no_way_to_ask_is_in_two_intents(self):
        owners = collections.defaultdict(set)
        for intents in (phrases.ABOUT, phrases.TALK, phrases.REFUSALS):
            for name, (asks, _) in intents.items():
                for text in (v for ask in asks.trained + asks.held_out for v in phrases.variants(ask)):
                    owners[text].add(name)
        self.assertEqual({t: o for t, o in owners.items() if len(o) > 1}, {})

    def test_held_out_templates_are_never_trained(self):
        pairs = [(phrases.split(templates, False), phrases.split(templates, True)) for templates in ASK_LISTS]
        asks_found = list(all_asks())
        self.assertGreater(len(asks_found), 120)
        pairs += [(asks.trained, asks.held_out) for asks in asks_found]
        for trained, held_out in pairs:
            seen = {v.rstrip("?") for t in trained for v in phrases.variants(t)}
            self.assertEqual(seen & {v.rstrip("?") for t in held_out for v in phrases.variants(t)}, set())

    def test_nearly_every_intent_has_ways_to_ask_held_out(self):
        asks = [asks for group in (phrases.ABOUT, phrases.TALK, phrases.REFUSALS) for asks, _ in group.values()]
        self.assertGreater(sum(bool(a.held_out) for a in asks), 0.9 * len(asks))

    def test_telling_words_of_held_out_ways_occur_in_trained_ones_of_their_intent(self):
        for group in (phrases.ABOUT, phrases.TALK, phrases.REFUSALS):
            for name, (asks, _) in group.items():
                for template in asks.held_out:
                    telling = words_of([template]) - _COMMON
                    self.assertLessEqual(telling, words_of(asks.trained), (name, template))

    def test_held_out_pairs_are_a_tenth_and_never_added_in_training(self):
        self.assertAlmostEqual(len(sums.HELD_OUT_PAIRS) / len(sums._PAIRS), 0.1, places=2)
        source = phrases.Source(random.Random(1))
        for _ in range(3000):
            for a, b in re.findall(r"(\d+) \+ (\d+)", sums.arithmetic(source).answer):
                a, b = int(a), int(b)
                self.assertFalse(sums.held_out_pair(a, b) and not sums.seen_as_part(a, b), (a, b))

    def test_held_out_words_stay_out(self):
        source = phrases.Source(random.Random(2))
        held = set(words.part(words.NAMES, True))
        self.assertFalse(any(source.name() in held for _ in range(5000)))
        held = {word for group in (words.JOBS, words.FOODS, words.HOBBIES, words.ANIMALS, words.HEROES, words.OBJECTS)
                for word in words.part(group, True)}
        self.assertFalse(any(words.odd_word(source.rng) in held for _ in range(20000)))


class Answers(unittest.TestCase):
    def test_every_answer_is_right_by_its_own_judgement(self):
        for held_out in (False, True):
            source = phrases.Source(random.Random(3), held_out)
            for _ in range(300):
                _, told = corpus.conversation(source, lambda t: len(t) >= 5)
                for turn in told:
                    self.assertTrue(turn.right(turn.answer), turn)
                    self.assertFalse(re.search(r"\{\w+\}(?!`)", turn.user), turn.user)

    def test_json_answers_parse(self):
        source = phrases.Source(random.Random(4))
        for _ in range(500):
            json.loads(records.wish(source).answer)


class Vocabulary(unittest.TestCase):
    def test_tokens_come_back_as_text_and_digits_stand_alone(self):
        bpe = vocabulary.train(count=600)
        for text in ("Hello, Wick!", "What is 47 + 38?", '{"name": "Anna"}', "caf\u00e9 \u2013 \U0001f642\n\n  x\ty"):
            self.assertEqual(bpe.decode(bpe.encode(text).ids, skip_special_tokens=False), text)
        self.assertEqual(bpe.encode("1234").tokens, list("1234"))
        self.assertEqual(len(bpe.encode(corpus.IM_START + "user").ids), 1 + len(bpe.encode("user").ids))

    def test_a_batch_is_a_function_of_its_seed(self):
        bpe = vocabulary.train(count=600)
        first, again = (corpus.Rows(bpe, "7/1", 256).batch(2) for _ in range(2))
        for left, right in zip(first, again):
            self.assertTrue((left == right).all())


class Template(unittest.TestCase):
    def test_the_template_of_the_file_writes_what_was_trained(self):
        template = jinja2.Environment().from_string(export.CHAT_TEMPLATE)
        turn = turns.Turn("test", "Hello", "Hi!\nHow are you?")
        asked = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": turn.answer},
                 {"role": "user", "content": "Well."}]
        rendered = template.render(messages=asked, add_generation_prompt=True)
        self.assertEqual(rendered, corpus.prompt(corpus.DEFAULT_SYSTEM, [turn], "Well."))
        told = [{"role": "system", "content": "Be kind."}, *asked[:2]]
        self.assertEqual(template.render(messages=told), corpus.render("Be kind.", [turn]))


if __name__ == "__main__":
    unittest.main()
