"""Prints random texts and their token ids in `tokenizers` and `sentencepiece`, as lines of JSON.

    .toolchain/text/bin/python tools/text/reference.py PRE-TYPES.json VOCABULARY.gguf SEED COUNT [PRE...]

The reference is built from the file's own tokens, scores and merges. Each PRE in turn replaces the file's
tokenizer.ggml.pre; its patterns are taken from PRE-TYPES.json, with the changes below. Prints COUNT lines
[text, ids] for each PRE. Needs the packages that tools/setup.sh text installs.
"""
import functools
import json
import re
import struct
import sys

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

from gguf import read_metadata
from texts import random_texts

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

# ---- patterns ----

HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ebef\U0002f800-\U0002fa1f"
CONTRACTIONS = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
# llama.cpp has special code for these: text before a number stays with its first group of digits.
NUMBERS = r"[^\p{N}]*\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))"
OWN = {
    r"\p{Han}+": "[" + HAN + r"]+|[^\r\n\p{L}\p{N}]?[\p{L}&&[^" + HAN + "]]+" + CONTRACTIONS
    + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"\p{AFMoE_digits}": NUMBERS,
    r"\d{1,3}(?=(?:\d{3})*\b)": NUMBERS,
    r"(?=(\d{3})+(?!\d))": r"(?=([0-9]{3})+(?![0-9]))",
    r"\s+$": r"\s+\z",
}
LETTERS_OF_CASE = re.compile(r"\\p\{L[utlmo]\}(?:\\p\{L[utlmo]\})*")


def pattern_of(published):
    """Changes a pattern to match llama.cpp's regex engine: one class of letters, no tilde in \\p{S}, separate white space."""
    if published in OWN:
        return OWN[published]
    pattern = LETTERS_OF_CASE.sub(lambda _: r"\p{L}", published)
    pattern = pattern.replace(r"\p{P}\p{S}", r"\p{P}[\p{S}&&[^~]]")
    for ranges in ("[一-龥ࠀ-一가-퟿]", "[!-/:-~！-／：-～‘-‟　-。]"):
        pattern = pattern.replace(ranges, "[" + ranges + r"&&[^\s]]")
    return pattern


def patterns_of(path, pre):
    with open(path, encoding="utf-8") as file:
        groups = json.load(file)["groups"]
    group = next(group for group in groups.values() if pre in group["names"])
    # the list has no patterns for the default
    published = group.get("patterns") or [
        r"[\p{P}\$\+<=>\^~\|]+",
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",
        r"\p{N}+",
        "[0-9][0-9][0-9]",
    ]
    return [pattern_of(pattern) for pattern in published]


# ---- references ----


def split_merge(text):
    at = text.index(" ", 1)
    return text[:at], text[at + 1 :]


class Pieces:
    def __init__(self, metadata):
        self.metadata = metadata
        self.texts = [text.decode("utf-8", "replace") for text in metadata["tokenizer.ggml.tokens"]]
        self.kinds = metadata.get("tokenizer.ggml.token_type") or [NORMAL] * len(self.texts)
        self.scores = metadata.get("tokenizer.ggml.scores") or [0.0] * len(self.texts)

    def get(self, name, otherwise=None):
        return self.metadata.get("tokenizer.ggml." + name, otherwise)

    @functools.cache
    def vocabulary(self):
        return {text: id for id, text in reversed(list(enumerate(self.texts)))}

    @functools.cache
    def merges(self):
        vocabulary = self.vocabulary()
        found = [split_merge(merge.decode()) for merge in self.get("merges")]
        return [(a, b) for a, b in found if a in vocabulary and b in vocabulary and a + b in vocabulary]


def splits(patterns):
    return [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]


def add_user_defined(tokenizer, pieces):
    texts = [text for text, kind in zip(pieces.texts, pieces.kinds) if kind == USER_DEFINED]
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in texts])


def byte_bpe(pieces, patterns, ignores_merges):
    model = models.BPE(pieces.vocabulary(), pieces.merges(), ignore_merges=ignores_merges)
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        splits(patterns) + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    add_user_defined(tokenizer, pieces)
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def character_bpe(pieces, patterns):
    unknown = pieces.texts[pieces.get("unknown_token_id", 0)]
    model = models.BPE(pieces.vocabulary(), pieces.merges(), byte_fallback=True, unk_token=unknown)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(splits(patterns))
    add_user_defined(tokenizer, pieces)
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def word_piece(pieces):
    vocabulary = {}
    for id, (text, kind) in enumerate(zip(pieces.texts, pieces.kinds)):
        plain = text[1:] if text.startswith("▁") else text if kind in (CONTROL, UNKNOWN) else "##" + text
        vocabulary.setdefault(plain, id)
    unknown = pieces.texts[pieces.get("unknown_token_id", 100)]
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=unknown, max_input_chars_per_word=10**6))
    tokenizer.normalizer = normalizers.BertNormalizer(strip_accents=True, lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


# Fields of sentencepiece_model.proto, written by hand: a tag, then the value.
def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, value):
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(int(value))


UNIGRAM, BPE = 1, 2


def sentence_piece(pieces, model_type):
    proto = bytearray()
    unknown = next(id for id, kind in enumerate(pieces.kinds) if kind == UNKNOWN)
    for id, (text, score, kind) in enumerate(zip(pieces.texts, pieces.scores, pieces.kinds)):
        kind = CONTROL if kind == UNKNOWN and id != unknown else kind  # only one is allowed
        proto += field(1, field(1, text.encode()) + field(2, float(score)) + field(3, kind))
    has_bytes = BYTE in pieces.kinds
    proto += field(2, field(3, model_type) + field(35, has_bytes) + field(40, unknown))
    charsmap = pieces.get("precompiled_charsmap", ())
    # without a setting in the file, llama.cpp uses SPM's default
    adds_space = pieces.get("add_space_prefix", model_type == BPE)
    merges_spaces = pieces.get("remove_extra_whitespaces", False)
    proto += field(
        3,
        field(2, bytes(c & 0xFF for c in charsmap)) + field(3, adds_space) + field(4, merges_spaces)
        + field(5, True),
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=bytes(proto))
    return processor.encode


IGNORES_MERGES = {
    "llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano",
    "minicpm5", "youtu", "tekken", "granite-embed-multi-97m", "glm4", "glm5", "chatglm-bpe",
}


def build(pieces, pre_types, pre):
    model = pieces.get("model").decode()
    if model == "bert":
        return word_piece(pieces)
    if model in ("t5", "llama"):
        return sentence_piece(pieces, UNIGRAM if model == "t5" else BPE)
    pre = pre or ("gemma4" if model == "gemma4" else pieces.get("pre").decode())
    patterns = patterns_of(pre_types, pre)
    if model == "gemma4":
        return character_bpe(pieces, patterns)
    return byte_bpe(pieces, patterns, pre in IGNORES_MERGES)


def main():
    pre_types, path, seed, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    pieces = Pieces(read_metadata(path))
    for number, pre in enumerate(sys.argv[5:] or [None]):
        encode = build(pieces, pre_types, pre)
        for text in random_texts(f"{seed} {number}", count):
            print(json.dumps([text, encode(text)]))


main()
