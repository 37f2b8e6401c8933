"""Small arithmetic: sums of numbers below 100, differences, products of the small table, in many wordings.

The answer repeats the sum before its result, so that the result always follows `a + b =` regardless of the
question's wording. It adds tens and ones separately (`47 + 38 = 70 + 15 = 85`), so that no digit needs a
hidden carry. One in ten pairs of two-digit numbers (in either order) is held out.
"""

import random

import phrases
import words
from turns import Turn

PLUS = ["What is {a} + {b}?", "What is {a} plus {b}?", "{a} + {b}", "{a}+{b}=?", "How much is {a} + {b}?",
        "Add {a} and {b}.", "{a} plus {b}?", "Calculate {a} + {b}.", "{a} + {b} = ?",
        "What do you get when you add {a} and {b}?", "Please add {a} to {b}.", "What does {a} + {b} make?",
        "How much is {a} plus {b}?", "What is the sum of {a} and {b}?", "{a}+{b}", "Compute {a} plus {b}.",
        "Can you add {a} and {b}?", "Tell me what {a} plus {b} is.", "Can you compute {a} + {b}?",
        "Do you know what {a} + {b} is?", "The sum of {a} and {b}?", "What's {a}+{b}?",
        "What does {a} plus {b} make?", "Sum up {a} and {b}.", "{a} and {b} together?",
        "What is {a} and {b} together?", "What are {a} and {b} in total?", "Solve {a} + {b}.",
        "Please calculate {a} plus {b}.", "How much do {a} and {b} make?"]
MINUS = ["What is {a} - {b}?", "What is {a} minus {b}?", "{a} - {b}", "{a}-{b}=?", "How much is {a} - {b}?",
         "Subtract {b} from {a}.", "{a} minus {b}?", "Calculate {a} - {b}.", "{a} - {b} = ?",
         "Take {b} away from {a}.", "What is left when I take {b} from {a}?", "What does {a} - {b} make?",
         "How much is {a} minus {b}?", "What is the difference of {a} and {b}?", "{a}-{b}",
         "Compute {a} minus {b}.", "Can you subtract {b} from {a}?", "Tell me what {a} minus {b} is.",
         "Can you compute {a} - {b}?", "Solve {a} - {b}."]
TIMES = ["What is {a} times {b}?", "What is {a} * {b}?", "{a} * {b}", "{a}*{b}=?", "How much is {a} times {b}?",
         "Multiply {a} by {b}.", "{a} times {b}?", "Calculate {a} * {b}.", "{a} x {b}",
         "What is the product of {a} and {b}?", "Multiply {a} and {b}.", "What does {a} times {b} make?",
         "What is {a} x {b}?", "Compute {a} times {b}.", "{a}*{b}", "Can you multiply {a} and {b}?",
         "Tell me what {a} times {b} is.", "How much is {a} * {b}?", "Solve {a} * {b}.", "{a} * {b} = ?"]
GAIN = ["I have {a} {o}s and get {b} more. How many do I have?",
        "{name} has {a} {o}s and buys {b} more. How many {o}s does {name} have now?",
        "There are {a} {o}s on the table and {b} in the box. How many are there?",
        "I had {a} {o}s. Then I found {b} more. How many do I have now?",
        "{name} has {a} {o}s and {name2} has {b}. How many do they have together?",
        "If I have {a} {o}s and find {b} {o}s, how many do I have?",
        "You have {a} {o}s. I give you {b} more. How many do you have?",
        "We have {a} {o}s here and {b} {o}s there. How many is that?",
        "{name} found {a} {o}s on Monday and {b} on Tuesday. How many in total?",
        "I buy {a} {o}s today and {b} tomorrow. How many {o}s is that?",
        "A box holds {a} {o}s, another one holds {b}. How many {o}s are there?",
        "{name} has {a} {o}s and finds {b} more. How many {o}s is that?"]
LOSE = ["I have {a} {o}s and give away {b}. How many are left?",
        "{name} has {a} {o}s and loses {b}. How many {o}s are left?",
        "There are {a} {o}s. I take {b}. How many are left?",
        "I had {a} {o}s and sold {b}. How many do I have now?",
        "{name} has {a} {o}s and gives {b} to {name2}. How many does {name} have now?",
        "If I have {a} {o}s and lose {b} {o}s, how many are left?",
        "You have {a} {o}s and give me {b}. How many do you have left?",
        "{name} had {a} {o}s. {b} broke. How many are left?"]
TOO_BIG = ["What is {a} + {b}?", "{a} + {b}", "What is {a} times {b}?", "{a} * {b}", "How much is {a} - {b}?",
           "Calculate {a} * {b}.", "What is {a} divided by {b}?", "What is the sum of {a} and {b}?",
           "{a} / {b}", "Add {a} and {b}.", "What is the square root of {a}?", "Multiply {a} by {b}."]
_PAIRS = [(a, b) for a in range(10, 100) for b in range(a, 100)]
HELD_OUT_PAIRS = frozenset(random.Random(1024).sample(_PAIRS, len(_PAIRS) // 10))
BIG_ANSWER = "That is too big for me. I only do small sums with numbers below 100."


def held_out_pair(a, b):
    """Selects one in ten unordered pairs of two-digit numbers, by a fixed seed."""
    return (min(a, b), max(a, b)) in HELD_OUT_PAIRS


def seen_as_part(a, b):
    """Returns whether a + b may occur in the middle of another sum's answer, like 70 + 15."""
    low, high = min(a, b), max(a, b)
    return (low <= 18 and high % 10 == 0) or (high <= 18 and low % 10 == 0)


def plus_chain(source, a, b):
    tens, ones = a - a % 10 + b - b % 10, a % 10 + b % 10
    parts = f"{tens} + {ones} = " if tens and source.by_parts else ""
    return f"{a} + {b} = {parts}{a + b}"


def minus_chain(source, a, b):
    tens, ones = b - b % 10, b % 10
    parts = f"{a - tens} - {ones} = " if tens and ones and source.by_parts else ""
    return f"{a} - {b} = {parts}{a - b}"


def addends(source):
    rng = source.rng
    while True:
        if source.held_out or rng.random() < 0.86:
            a, b = rng.randint(10, 99), rng.randint(10, 99)
        else:
            a, b = rng.randint(0, 99), rng.randint(0, 9)
            if rng.random() < 0.5:
                a, b = b, a
        if held_out_pair(a, b) == source.held_out:
            return a, b


def add_turn(source, a, b):
    user = phrases.as_typed(source, source.say(PLUS, a=a, b=b))
    return Turn("sum/plus", user, plus_chain(source, a, b) + ".")


def _story_turn(source, templates, kind, a, b, chain):
    first, second = source.name(), source.name()
    thing = source.rng.choice([o for o in words.OBJECTS if o[-1] not in "hyfsx"])
    user = source.say(templates, a=a, b=b, o=thing, name=first, name2=second)
    return Turn(kind, user, f"{chain}. That makes {chain.split()[-1]} {thing}s.")


def plus(source):
    a, b = addends(source)
    if source.rng.random() < 0.12:
        return _story_turn(source, GAIN, "sum/story", a, b, plus_chain(source, a, b))
    return add_turn(source, a, b)


def minus(source):
    rng = source.rng
    a = rng.randint(1, 99) if rng.random() < 0.7 else rng.randint(1, 20)
    b = rng.randint(0, a)
    if rng.random() < 0.12:
        return _story_turn(source, LOSE, "minus/story", a, b, minus_chain(source, a, b))
    user = phrases.as_typed(source, source.say(MINUS, a=a, b=b))
    return Turn("minus/plain", user, minus_chain(source, a, b) + ".")


def times(source):
    a, b = source.rng.randint(0, 10), source.rng.randint(0, 10)
    user = phrases.as_typed(source, source.say(TIMES, a=a, b=b))
    return Turn("times/plain", user, f"{a} * {b} = {a * b}.")


def too_big(source):
    rng = source.rng
    a = rng.randint(100, 9999) if rng.random() < 0.8 else rng.randint(10000, 9999999)
    b = rng.randint(101, 9999)
    return Turn("sum/too-big", phrases.as_typed(source, source.say(TOO_BIG, a=a, b=b)), BIG_ANSWER)


def many(source):
    """Returns several sums in one question, for dense practice."""
    pairs = [addends(source) for _ in range(source.rng.randint(2, 12))]
    asked = ", ".join(f"{a} + {b}" for a, b in pairs)
    user = source.rng.choice(["Calculate: ", "Solve these: ", "Add up: ", "What is ", ""]) + asked
    return Turn("sum/many", user, "\n".join(plus_chain(source, a, b) for a, b in pairs))


def arithmetic(source):
    weights = (40, 24, 20, 4, 12) if source.broad else (50, 18, 10, 4, 18)
    return source.rng.choices((plus, minus, times, too_big, many), weights)[0](source)
