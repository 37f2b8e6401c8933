"""Sums as worded by visitors: numbers in words, no spaces, "and 10 more?", small word problems.

The answers have the form of sums.py. Sums that are too hard for the model (large numbers, roots, percentages) all get the same refusal.
"""

import haste
import sums
import wide
import words
from turns import Turn

HARD_ANSWER = "That is too hard for me. I only do small sums with plus, minus and times."
_ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
         "nineteen").split()
_TENS = "x x twenty thirty forty fifty sixty seventy eighty ninety".split()
_ASK = ["[what is|whats|what does|calculate|compute|how much is|solve|tell me|can you calculate|work out|do you know|what do you get for|please calculate|"
        "i need|the result of|answer this|could you do|can you do|hey what is|quick math|result|ok now] {x}[?|?| make?| equal?| please| for me| =| = ?|]",
        "{x}", "{x}", "{x}", "{x}=", "{x} =", "{x}=?", "{x} = ?", "{x}?", "{x} is", "{x} equals", "{x} please", "{x} = what"]
_PLUS = ["{a} + {b}", "{a} + {b}", "{a}+{b}", "{a} plus {b}", "{a} and {b} together", "{a} added to {b}", "the sum of {a} and {b}", "{a} and {b} in total",
         "{a} more than {b}", "{a} +{b}", "{a} & {b} added", "{a} and {b} added up", "{a} and {b} summed", "{a} with {b} added", "the total of {a} and {b}",
         "{a} increased by {b}", "{a} and then {b} more", "{b} on top of {a}"]
_MINUS = ["{a} - {b}", "{a} - {b}", "{a}-{b}", "{a} minus {b}", "{a} take away {b}", "{b} less than {a}", "{b} subtracted from {a}", "the difference between {a} and {b}",
          "{a} without {b}", "{a} -{b}", "{a} \u2013 {b}", "{a} reduced by {b}", "{a} with {b} taken away", "{a} but {b} less", "the difference of {a} and {b}", "{a} less {b}"]
_TIMES = ["{a} * {b}", "{a}*{b}", "{a} x {b}", "{a}x{b}", "{a} times {b}", "{a} multiplied by {b}", "the product of {a} and {b}", "{a} \u00d7 {b}", "{a} X {b}", "{a} by {b} multiplied", "{a} lots of {b}", "{a} groups of {b}"]
_DIVIDE = ["{a} / {b}", "{a}/{b}", "{a} divided by {b}", "{a} : {b}", "{a} \u00f7 {b}", "{a} over {b}"]
_ORDERS = {"+": ["add {a} and {b}", "add {a} to {b}", "sum up {a} and {b}", "{a} plus {b} is what", "if i add {a} and {b} what do i get", "can you add {a} and {b}",
                 "put {a} and {b} together", "i have {a} and get {b}", "what happens when i add {b} to {a}",
                 "[how much|what] [do|does|would|will] {a} and {b} [make|give|come to|add up to][ together| in total|]", "{a} and {b} [make|makes|make what|is what|make how much]", "[what|how much] is {a} and {b}",
                 "[whats|what is|find|give me|i need] the [sum|total] of {a} and {b}", "[what do i get|what do you get|what comes out] [if|when] [i|you] add {a} and {b}", "how many are {a} and {b}",
                 "start with {a} and add {b}", "[take|i take] {a} and add {b}", "[please|] [add up|total|sum] {a} and {b}", "{b} more than {a} is"],
           "-": ["subtract {b} from {a}", "take {b} away from {a}", "take {b} from {a}", "what is left of {a} when i take {b}", "{a} minus {b} is what",
                 "reduce {a} by {b}", "can you subtract {b} from {a}",
                 "[what|how much] [remains|is left|stays|do i have left] [if|when] i take {b} from {a}", "start with {a} and take away {b}", "how much [more|bigger] is {a} than {b}",
                 "[whats|what is|find|give me] the difference [of|between] {a} and {b}", "{a} minus {b} makes", "how much less is {b} than {a}", "i have {a} and lose {b}"],
           "*": ["multiply {a} by {b}", "multiply {a} and {b}", "{a} times {b} is what", "can you multiply {a} with {b}",
                 "[how much|what] [does|do] {a} times {b} make", "[whats|what is|find|give me] the product of {a} and {b}", "multiply {a} with {b}", "{a} multiplied with {b}", "how many are {a} times {b}"]}
_HARD = ["[what is|whats|calculate|] the [square root|cube root|root] of {n}", "[what is|whats|calculate|] [sqrt|root|log|sin|cos|ln] [{n}|({n})|of {n}]",
         "[what is|whats|calculate|how much is|] {p} [percent|%|per cent] [of|off] {n}", "{n} [squared|cubed|to the power of {s}|^{s}|^2|!|factorial|mod {s}]",
         "[a|my|the|one] {thing} costs [{n}|{n} dollars|{n} euros|${n}] [with|and there is|and i get] {p}% [off|discount|tax] [what do i pay|how much is it|what is the price|]",
         "[if|when] a [train|car|bike|plane|ship|runner] [goes|drives|runs|travels|moves at] {n} [km/h|mph|km per hour|miles an hour] how [far|long|many km] [does it get|does it go|is that|does it take] in {s} [hours|minutes|days]",
         "[what is|] the [average|mean|median|ratio] of {n}, {s} and {p}", "[solve|what is x in|find x] [{s}x + {p} = {n}|x + {s} = {n}|{s}x = {n}|x^2 = {n}]",
         "[what is|how much is|] {f} [plus|minus|times|of|+|-|*|/] [{n}|{f}|{s}]", "[the area of|area of|volume of|circumference of] a [circle|square|cube|room|triangle] with [side|radius|length] {n}",
         "[{s} workers|{s} men|{s} painters] need {p} [hours|days], how long do [{n} workers|{n} men|{n}] need", "[what is|calculate] the [derivative|integral] of [x^{s}|{s}x|sin x]",
         "[how many|what] [percent|%] [is|of {n} is] {s} [of {n}|]", "[i|she|he] [drives|drove|ran|walked] {n} km in {s} hours [how fast is that|what is the speed|]",
         "[a|the] [shirt|book|{thing}] is {p}% cheaper and cost {n} before [what is the new price|how much now|]", "how old is [sam|anna] if [she|he] is twice as old as [tom|kim] was {s} years ago",
         "[split|divide|share] {n} [dollars|euros|cookies] [between|among|by] {odd} [people|kids|friends] [how much each|]", "[interest|compound interest] on {n} at {s}% [for {s} years|]"]
_GAIN = ["i have {a} {t}s and [get|buy|find|win|pick|bake] {b} more[.|,] how many [{t}s |][do i have|is that|are there|have i got][ now| in total| together|]",
         "{m} has {a} {t}s and [gets|buys|finds|wins|is given] {b} more[.|,] how many [{t}s |]does [{m}|he|she] have[ now|]",
         "{m} has {a} {t}s and {k} has {b}[.|,] how many [{t}s |][do they have|have they|are there] [together|in total|]",
         "there are {a} {t}s [in the box|on the table|in a bag|in the room|on the bus] and {b} more [come|are added|arrive|outside][.|,] how many [{t}s |]are there[ now|]",
         "if i have {a} {t}s and [you give me|{m} gives me|i buy|i find] {b} [more|{t}s][,|] how many do i have",
         "[yesterday|on monday] i [ate|saw|read|found] {a} {t}s and [today|on tuesday] {b}[.|,] how many [is that|in total|together]",
         "a {t} costs {a} [dollars|euros|coins] and a [drink|pen|bag] costs {b}[.|,] what do both cost[ together|]"]
_LOSE = ["i have {a} {t}s and [eat|lose|give away|sell|break|drop|throw away|use] {b}[.|,] how many [{t}s |][are left|do i have left|do i have now|remain|have i got left|do i have]",
         "{m} has {a} {t}s and [gives {b} to {k}|loses {b}|eats {b}|sells {b}|breaks {b}][.|,] how many [{t}s |][does [{m}|he|she] have [now|left]|are left|remain|has [{m}|he|she] left]",
         "there are {a} {t}s [on the tree|in the box|on the table|in a bag|on the bus] and {b} [fall down|are taken|fly away|get off|are eaten|break][.|,] how many [are left|remain|are there now]",
         "if i have {a} {t}s and [you take|i lose|i give {m}|i eat] {b}[,|] how many [do i have left|are left|are there|do i have]",
         "i had {a} [dollars|euros|coins] and spent {b}[.|,] how much [is left|do i have|do i have left|money is left]",
         "{a} {t}s[,|] {b} [are gone|break|fly away][.|,] how many are left", "a [book|film|trip] has {a} [pages|minutes|miles] and i have done {b}[.|,] how many are left"]
_EACH = ["[there are|i have|i buy|we have] {a} [boxes|bags|packs|baskets] with {b} {t}s each[.|,] how many {t}s [is that|are there|do i have|in total]",
         "one {t} costs {b} [dollars|euros|coins][.|,] [what do|how much do|how much are] {a} {t}s cost", "{a} [kids|friends|children] get {b} {t}s each[.|,] how many {t}s [is that|do i need]",
         "[if|] a [cat has 4 legs[,|] how many legs do {a} cats|table has 4 legs[,|] how many legs do {a} tables|dog has 4 legs[,|] how many legs do {a} dogs] have"]


def in_words(number):
    """Returns 0 to 100 in words."""
    if number == 100:
        return "a hundred"
    if number < 20:
        return _ONES[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens] + ("-" + _ONES[ones] if ones else "")


def chain(source, sign, a, b):
    if sign == "+":
        return sums.plus_chain(source, a, b)
    if sign == "-":
        return sums.minus_chain(source, a, b)
    return f"{a} {sign} {b} = {a * b if sign == '*' else a // b}"


def _numbers(source, sign):
    rng = source.rng
    if sign == "*":
        return rng.randint(0 if rng.random() < 0.2 else 2, 10), rng.randint(0 if rng.random() < 0.2 else 2, 10)
    if sign == "/":
        b, c = rng.randint(1, 10), rng.randint(1, 10)
        return b * c, b
    while True:
        draw = rng.random()
        top_a, top_b = (20, 10) if draw < 0.3 else (100, 10) if draw < 0.45 else (10, 100) if draw < 0.5 else (100, 100)
        a, b = rng.randrange(top_a), rng.randrange(top_b)
        if sign == "-":
            return max(a, b), min(a, b)
        if sums.held_out_pair(a, b) == source.held_out or min(a, b) < 10:
            return a, b


def _seen_pair(source, top_a, top_b):
    """Returns two small numbers whose sum is not held out of training, unless the source requests held-out sums."""
    while True:
        a, b = source.rng.randint(1, top_a), source.rng.randint(1, top_b)
        if source.held_out or not sums.held_out_pair(a, b):
            return a, b


def _said(rng, number, spelled):
    return in_words(number) if spelled else str(number)


def plain(source):
    """Returns a sum in free wording: signs or words, figures or number words."""
    rng = source.rng
    sign = rng.choices("+-*/", (5, 4, 3, 1) if source.held_out else (5, 5, 4, 4))[0]
    a, b = _numbers(source, sign)
    spelled = rng.random() < (0.22 if source.held_out else 0.4)  # hard sums occur more often in training than in visitors' questions
    if sign in _ORDERS and rng.random() < 0.27:
        text = haste.expand(rng, rng.choice(_ORDERS[sign])) + rng.choice(["", "", "?"])
    else:
        form = rng.choice({"+": _PLUS, "-": _MINUS, "*": _TIMES, "/": _DIVIDE}[sign])
        text = haste.expand(rng, rng.choice(_ASK)).replace("{x}", form)
    text = text.replace("{a}", _said(rng, a, spelled)).replace("{b}", _said(rng, b, spelled and rng.random() < 0.9))
    return Turn("visit/sum", haste.hasty(rng, text), chain(source, sign, a, b) + ".")


def many(source):
    """Returns several sums in one message, in figures or words, for dense practice in reading numbers and signs."""
    rng, asked, told = source.rng, [], []
    spelled = rng.random() < 0.6
    for _ in range(rng.randint(2, 7)):
        sign = rng.choices("+-*/", (5, 5, 3, 2))[0]
        a, b = _numbers(source, sign)
        form = rng.choice({"+": _PLUS[:4], "-": _MINUS[:5], "*": _TIMES[:6], "/": _DIVIDE[:4]}[sign])
        asked.append(form.replace("{a}", _said(rng, a, spelled)).replace("{b}", _said(rng, b, spelled)))
        told.append(chain(source, sign, a, b))
    text = rng.choice(["calculate: ", "solve these: ", "what is ", "", "", "do these: "]) + ", ".join(asked)
    return Turn("visit/sums", haste.hasty(rng, text, framed=False), "\n".join(told))


def figures(source):
    """Converts number words to figures."""
    rng = source.rng
    numbers = [rng.randint(0, 100) for _ in range(rng.randint(1, 6))]
    text = rng.choice(["write in figures: ", "in figures: ", "as numbers: ", "in digits: ", "write as numbers: ", "which numbers are "]) + ", ".join(in_words(n) for n in numbers)
    return Turn("visit/figures", haste.hasty(rng, text, framed=False), ", ".join(map(str, numbers)) + ".")


def double_half(source):
    rng = source.rng
    n = rng.randint(1, 49)
    if n >= 10 and sums.held_out_pair(n, n) and not source.held_out:
        n -= n // 10 * 10
    if rng.random() < 0.5:
        text = haste.expand(rng, "[what is|whats|how much is|] [half of|a half of|the half of|50% of] {n}[?|]").replace("{n}", str(2 * n))
        return Turn("visit/half", haste.hasty(rng, text), f"Half of {2 * n} is {n}.")
    text = haste.expand(rng, "[what is|whats|how much is|] [double|twice|two times|the double of] {n}[?|]").replace("{n}", str(n))
    return Turn("visit/double", haste.hasty(rng, text), f"{n} + {n} = " + sums.plus_chain(source, n, n).split(" = ", 1)[1] + ".")


def three(source):
    rng = source.rng
    (a, b), c = _seen_pair(source, 20, 20), rng.randint(1, 9)
    text = haste.expand(rng, rng.choice(_ASK)).replace("{x}", rng.choice([f"{a} + {b} + {c}", f"{a}+{b}+{c}", f"{a} plus {b} plus {c}"]))
    return Turn("visit/three", haste.hasty(rng, text), f"{a} + {b} = {a + b}, {a + b} + {c} = {a + b + c}.")


def _thing(rng):
    return rng.choice(words.OBJECTS + words.ANIMALS + words.TREE_NOUNS + "cookie marble sticker coin card pen egg sweet dollar photo stamp shell nut".split())


def problem(source):
    rng = source.rng
    sign = rng.choices("+-*", (4, 5, 2))[0]
    a, b = _numbers(source, sign)
    if rng.random() < 0.5 and sign != "*":
        a, b = _seen_pair(source, 30, 20)
        a, b = (max(a, b), min(a, b)) if sign == "-" else (a, b)
    text = haste.expand(rng, rng.choice({"+": _GAIN, "-": _LOSE, "*": _EACH}[sign]))
    if sign == "*" and "4 legs" in text:
        b = 4
    spelled = rng.random() < 0.12
    shown = _said(rng, b, spelled or (b == 1 and rng.random() < 0.6))
    text = text.replace("{a}", _said(rng, a, spelled)).replace("{b}", shown)
    text = text.replace("{t}", _thing(rng)).replace("{m}", rng.choice(words.NAMES)).replace("{k}", rng.choice(words.NAMES))
    text = text[0].upper() + text[1:] + rng.choice(["?", "?", ""])
    return Turn("visit/problem", haste.hasty(rng, text), f"{chain(source, sign, a, b)}. The answer is {chain(source, sign, a, b).split()[-1]}.")


def beyond(source):
    """Returns a sum that the model refuses: too large, or unsupported."""
    rng = source.rng
    if rng.random() < 0.5:
        a = rng.randint(100, 9999) if rng.random() < 0.75 else rng.randint(10000, 9999999)
        b = rng.randint(11, 9999) if rng.random() < 0.7 else rng.randint(2, 99)
        if rng.random() < 0.3:
            a, b = b, a
        text = haste.expand(rng, rng.choice(_ASK)).replace("{x}", rng.choice(_PLUS + _MINUS[:5] + _TIMES + _DIVIDE)).format(a=a, b=b)
        return Turn("visit/too-big", haste.hasty(rng, text), sums.BIG_ANSWER)
    if rng.random() < 0.45:
        a, b = rng.randint(11, 99), rng.choice([rng.randint(11, 99), rng.randint(2, 9)])  # beyond the small table
        form = rng.choice(_TIMES)
        if rng.random() < 0.3:
            a, b = b, a
        if rng.random() < 0.3:
            a, b = rng.randint(11, 99), rng.choice([3, 4, 6, 7, 8, 9])
            a = a * b + 1
            a, form = min(a, 99), rng.choice(_DIVIDE)
            if a % b == 0:
                a -= 1
        spelled = rng.random() < 0.2
        text = haste.expand(rng, rng.choice(_ASK)).replace("{x}", form).format(a=_said(rng, a, spelled), b=_said(rng, b, spelled))
    else:
        text = haste.expand(rng, rng.choice(_HARD))
        slots = {"n": rng.choice([rng.randint(2, 99), rng.randint(100, 999)]), "p": rng.randint(1, 99), "s": rng.randint(2, 12), "thing": _thing(rng),
                 "f": rng.choice(["0.5", "1.5", "3.14", "1/2", "3/4", "2.75", "-3", "2/3", "0.1"]), "odd": rng.choice([3, 4, 6, 7, 9])}
        for key, value in slots.items():
            text = text.replace("{" + key + "}", str(value))
    return Turn("visit/too-hard", haste.hasty(rng, text), HARD_ANSWER)


_NEXT = {"+": ["and {b} more?", "plus {b}?", "and plus {b}", "+ {b}", "add {b} to that", "now add {b}", "and if i add {b}?", "and another {b}", "{b} more"],
         "-": ["minus {b}?", "and minus {b}", "- {b}", "take away {b}", "now subtract {b}", "and {b} less?", "less {b}", "and without {b}"]}


def follow_up(source):
    """Returns a sum, and one or two more that continue with its result."""
    rng = source.rng
    while True:
        a, b = rng.randint(1, 60), rng.randint(1, 40)
        if not sums.held_out_pair(a, b):
            break
    text = haste.expand(rng, rng.choice(_ASK)).replace("{x}", rng.choice(_PLUS)).format(a=a, b=b)
    told, value = [Turn("visit/sum", haste.hasty(rng, text, framed=False), chain(source, "+", a, b) + ".")], a + b
    for _ in range(rng.randint(1, 2)):
        sign = rng.choice("+-") if value > 20 else "+"
        b = rng.randint(1, min(99, value) if sign == "-" else max(2, min(40, 180 - value)))
        told.append(Turn("visit/sum-next", haste.hasty(rng, rng.choice(_NEXT[sign]).format(b=b)), chain(source, sign, value, b) + "."))
        value = value + b if sign == "+" else value - b
        if value > 99:
            break
    return told


def wish(source):
    return source.rng.choices((plain, problem, beyond, double_half, three, many, figures), (15, 8, 5, 1.5, 1, 5, 0.7))[0](source)
