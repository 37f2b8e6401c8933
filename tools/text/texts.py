"""Generates random texts to tokenise: many scripts, numbers, white space, punctuation, accents, source code."""
import random
import unicodedata

# Real sentences, so that the texts contain words from vocabularies.
SENTENCES = """\
The quick brown fox jumps over the lazy dog, doesn't it? I'm sure they've seen it; we'll know at 12:30.
Wenn der Müller größere Säcke trägt, ärgert sich der Esel über 1.234,56 Euro.
Où est passé l'été ? Ça va très bien, merci beaucoup !
El niño comió piñas en la mañana; ¿qué más quería?
Съешь ещё этих мягких французских булок, да выпей чаю.
Η γρήγορη καφέ αλεπού πηδάει πάνω από το τεμπέλικο σκυλί.
敏捷的棕色狐狸跳过了懒狗，共有三十六只。
いろはにほへと ちりぬるを、カタカナとひらがな。
다람쥐 헌 쳇바퀴에 타고파. 안녕하세요?
الثعلب البني السريع يقفز فوق الكلب الكسول ١٢٣٤.
השועל החום המהיר קופץ מעל הכלב העצלן.
तेज़ भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है १२३।
দ্রুত বাদামী শিয়াল অলস কুকুরের উপর লাফ দেয়।
เร็ว สุนัขจิ้งจอกสีน้ำตาล กระโดดข้าม
የፈጣኑ ቡናማ ቀበሮ ሰነፉን ውሻ ዘለለ።
Nhanh như chớp, con cáo nâu nhảy qua con chó lười biếng.
Příliš žluťoučký kůň úpěl ďábelské ódy.
int main(void) { for (int i = 0; i < 10; i++) printf("%d\\n", i * 2 + 0x1f); return 0; }
def f(x, *args, **kw): return [y ** 2 for y in x if y != None]  # comment
SELECT name, COUNT(*) FROM users WHERE id >= 100 GROUP BY name; -- 42
https://example.com/a/b?c=d&e=%20f#g user@mail.org C:\\Users\\x ~/.config $HOME
I'VE SEEN HE'LL DON'T we'RE Hello世界 camelCaseWord HTTPServer iPhone12Pro
""".splitlines()

RANGES = [
    (0x20, 0x7E, 30), (0xA1, 0xFF, 6), (0x100, 0x17F, 4), (0x300, 0x345, 4), (0x391, 0x3C9, 4),
    (0x410, 0x44F, 4), (0x5D0, 0x5EA, 2), (0x621, 0x64A, 3), (0x660, 0x669, 1), (0x905, 0x939, 3),
    (0x93E, 0x94D, 2), (0x985, 0x9B9, 2), (0xB85, 0xBB9, 1), (0xE01, 0xE3A, 2), (0xE40, 0xE4E, 2),
    (0x10D0, 0x10F0, 1), (0x1200, 0x1248, 1), (0x1780, 0x17B3, 1), (0x1E00, 0x1EFF, 2),
    (0x2010, 0x2027, 3), (0x2030, 0x205E, 2), (0x2070, 0x208E, 1), (0x20A0, 0x20B5, 1),
    (0x2100, 0x2138, 2), (0x2150, 0x2188, 1), (0x2190, 0x21FF, 1), (0x2200, 0x22FF, 1),
    (0x2460, 0x24FF, 1), (0x2600, 0x26FF, 1), (0x3001, 0x3030, 2), (0x3041, 0x3096, 4),
    (0x30A1, 0x30FC, 4), (0x3105, 0x3129, 1), (0x3131, 0x318E, 1), (0x4E00, 0x9FA5, 8), (0xA4D0, 0xA4FD, 1),
    (0xA640, 0xA66D, 1), (0xAC00, 0xD7A3, 5), (0xF900, 0xFA2D, 1), (0xFB00, 0xFB06, 1), (0xFE30, 0xFE4F, 1),
    (0xFF01, 0xFF5E, 3), (0xFF65, 0xFF9F, 1), (0x1D400, 0x1D454, 1), (0x1F300, 0x1F5FF, 2),
    (0x1F600, 0x1F64F, 3), (0x20000, 0x2A6D6, 1),
]
WEIGHTS = [weight for _, _, weight in RANGES]
SPACES = [" ", " ", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n ", "\u00a0", "\u3000", "        "]


def character(rng):
    while True:
        first, last, _ = rng.choices(RANGES, WEIGHTS)[0]
        c = chr(rng.randint(first, last))
        if unicodedata.category(c) not in ("Cn", "Co", "Cs") and c != "\u2581":
            return c


def part(rng):
    kind = rng.randrange(9)
    if kind < 2:
        words = rng.choice(SENTENCES).split(" ")
        begin = rng.randrange(len(words))
        return " ".join(words[begin : begin + rng.randint(1, 6)])
    if kind == 2:
        sentence = rng.choice(SENTENCES)
        begin = rng.randrange(len(sentence))
        return sentence[begin : begin + rng.randint(1, 12)]
    if kind == 3:
        return rng.choice(SPACES)
    if kind == 4:
        return "".join(rng.choice("0123456789") for _ in range(rng.randint(1, 8)))
    if kind == 5:
        return "".join(rng.choice("!?.,;:'\"()[]{}<>/\\|@#$%^&*-_+=~`") for _ in range(rng.randint(1, 4)))
    if kind == 6:
        return character(rng) * rng.randint(1, 4)
    return "".join(character(rng) for _ in range(rng.randint(1, 8)))


def random_text(rng):
    """Makes a text of one character to about 30 words."""
    joint = rng.choice(["", "", " "])
    return joint.join(part(rng) for _ in range(rng.randint(1, 10)))


def random_texts(seed, count):
    rng = random.Random(seed)
    return [random_text(rng) for _ in range(count)]
