"""The byte-level BPE vocabulary of exactly 1,024 tokens, trained on the model's own text.

It splits text like GGUF's pre-tokenizer `qwen2` (each digit is separate), so that any engine that
supports `tokenizer.ggml.pre = qwen2` produces the same tokens.
"""

import random

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

import corpus
import model
import phrases

QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL = [corpus.END_OF_TEXT, corpus.IM_START, corpus.IM_END]


def texts(count, seed):
    """Yields conversations without template tokens: the text that the vocabulary is trained on."""
    source = phrases.Source(random.Random(seed), by_parts=False, stage=0)
    for _ in range(count):
        system, told = corpus.conversation(source, lambda t: len(t) >= 6)
        yield "\n".join(([system] if system else []) + [part for t in told for part in (t.user, t.answer)])


def train(count=12000, seed=5):
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN2), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=model.VOCAB, special_tokens=SPECIAL, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    bpe.train_from_iterator(texts(count, seed), trainer)
    assert bpe.get_vocab_size() == model.VOCAB
    return bpe
