"""Computes numbers of an exact run (float64, numpy) over prompts of 300 tokens, for each float model of the
shared vectors. The prompts of those vectors have at most 40 tokens, which do not leave every window of
attention or reach the last buckets of T5.

    pip install numpy gguf
    python tools/long_prompts/generate.py ../shared/vectors > tests/engine/long_prompts.jsonl
"""

import glob
import json
import os
import sys

import gguf
import numpy as np

vectors = sys.argv[1]
sys.path.insert(0, os.path.join(vectors, "reference-more"))
import refnp  # noqa: E402
import refnp2  # noqa: E402

TOKENS = 300
NUMBERS = 8
ENCODERS = set(
    "bert nomic-bert nomic-bert-moe modern-bert jina-bert-v2 jina-bert-v3 t5encoder gemma-embedding".split()
)
# If the scores of two experts differ by less, rounding decides which one is used.
MARGIN_MIN = 2e-5


def tokens_of(count, vocab):
    return [3 + (31 * i * i + 17 * i) % (vocab - 3) for i in range(count)]


def is_float(path):
    try:
        types = {tensor.tensor_type.name for tensor in gguf.GGUFReader(path).tensors}
    except ValueError:  # a type that the library does not know
        return False
    return types <= {"F32", "F16", "BF16"}


def line_of(folder, module, path):
    """Returns a line of the file: its numbers are at equal distances in the last token's row."""
    model = module.Model(path, n_ctx=4096)
    vocab = model.t["token_embd.weight"].shape[0]
    count = min(TOKENS, model.g("context_length") or TOKENS)
    ids = tokens_of(count, vocab)
    is_encoder = model.g("pooling_type") is not None or model.a in ENCODERS
    with np.errstate(all="ignore"):
        rows = model.pooled(ids, 0) if is_encoder else model.logits(np.array(ids))
    if min((float(np.min(m)) for m in model.route_margin), default=1) < MARGIN_MIN:
        print("left out, because rounding chooses an expert:", path, file=sys.stderr)
        return None
    last = np.asarray(rows)[-1]
    picked = [round(float(last[k * len(last) // NUMBERS]), 5) for k in range(NUMBERS)]
    about = {"set": folder, "model": os.path.basename(path), "vocab": vocab, "tokens": count}
    return {**about, "encoder": is_encoder, "last": picked}


for folder, module in (("reference", refnp), ("reference-more", refnp2)):
    for path in sorted(glob.glob(os.path.join(vectors, folder, "models", "*.gguf"))):
        line = line_of(folder, module, path) if is_float(path) else None
        if line is not None:
            print(json.dumps(line))
