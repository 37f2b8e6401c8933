"""Loads a GGUF file of the built-in model as arrays, with a plain numpy forward pass over it.

Shares no code with model.py, so that the two can be compared: this one computes one token at a time with the
rows in the order of the file, and rotates pairs (2i, 2i + 1) in place.
"""

import gguf
import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

import tokenizer as vocabulary


SHARPNESS_KEY = "wick.logit_scale"  # the factor by which the file's logits are larger than the trained ones; it is included in the final norm


class GgufModel:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.meta = {key: field.contents() for key, field in reader.fields.items() if not key.startswith("GGUF.")}
        self.tensors, self.types = {}, {}
        for tensor in reader.tensors:
            values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            shape = [int(n) for n in reversed(tensor.shape)]
            self.tensors[tensor.name] = np.asarray(values, np.float32).reshape(shape)
            self.types[tensor.name] = tensor.tensor_type.name

    def params(self):
        """Returns the arrays under the names that model.py uses."""
        return {name.removesuffix(".weight"): value for name, value in self.tensors.items()}

    def trained_params(self):
        """Returns the trained arrays, before export.py scaled the logits."""
        params = self.params()
        params["output_norm"] = params["output_norm"] / self.meta.get(SHARPNESS_KEY, 1.0)
        return params

    def tokenizer(self):
        """Builds the tokenizer from the metadata."""
        tokens = self.meta["tokenizer.ggml.tokens"]
        merges = [tuple(m.split(" ")) for m in self.meta["tokenizer.ggml.merges"]]
        bpe = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
        control = gguf.TokenType.CONTROL
        types = self.meta["tokenizer.ggml.token_type"]
        bpe.add_special_tokens([AddedToken(t, special=True) for t, kind in zip(tokens, types) if kind == control])
        bpe.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(vocabulary.QWEN2), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ])
        bpe.decoder = decoders.ByteLevel()
        return bpe


class Session:
    """One sequence, fed token by token in float64."""

    def __init__(self, gguf_model):
        self.w = {name: value.astype(np.float64) for name, value in gguf_model.tensors.items()}
        meta = gguf_model.meta
        self.layers = meta["llama.block_count"]
        self.heads, self.kv_heads = meta["llama.attention.head_count"], meta["llama.attention.head_count_kv"]
        self.dim = meta["llama.rope.dimension_count"]
        self.eps = meta["llama.attention.layer_norm_rms_epsilon"]
        self.frequency = meta["llama.rope.freq_base"] ** (-np.arange(0, self.dim, 2) / self.dim)
        self.keys = [[] for _ in range(self.layers)]
        self.values = [[] for _ in range(self.layers)]

    def _norm(self, x, name):
        return x / np.sqrt(np.mean(x * x) + self.eps) * self.w[name + ".weight"]

    def _turn(self, x, position):
        even, odd = x[:, 0::2], x[:, 1::2]
        c, s = np.cos(position * self.frequency), np.sin(position * self.frequency)
        out = np.empty_like(x)
        out[:, 0::2], out[:, 1::2] = even * c - odd * s, even * s + odd * c
        return out

    def _attention(self, x, index):
        at = f"blk.{index}."
        position = len(self.keys[index])
        q = self._turn((self.w[at + "attn_q.weight"] @ x).reshape(self.heads, self.dim), position)
        k = self._turn((self.w[at + "attn_k.weight"] @ x).reshape(self.kv_heads, self.dim), position)
        self.keys[index].append(k)
        self.values[index].append((self.w[at + "attn_v.weight"] @ x).reshape(self.kv_heads, self.dim))
        keys, values = np.array(self.keys[index]), np.array(self.values[index])
        mixed = []
        for head in range(self.heads):
            shared = head * self.kv_heads // self.heads
            scores = keys[:, shared] @ q[head] / np.sqrt(self.dim)
            weights = np.exp(scores - scores.max())
            mixed.append(weights / weights.sum() @ values[:, shared])
        return self.w[at + "attn_output.weight"] @ np.concatenate(mixed)

    def feed(self, token):
        """Returns logits [VOCAB] after one more token."""
        x = self.w["token_embd.weight"][token].copy()
        for index in range(self.layers):
            at = f"blk.{index}."
            x = x + self._attention(self._norm(x, at + "attn_norm"), index)
            normed = self._norm(x, at + "ffn_norm")
            gate = self.w[at + "ffn_gate.weight"] @ normed
            up = self.w[at + "ffn_up.weight"] @ normed
            x = x + self.w[at + "ffn_down.weight"] @ (gate / (1 + np.exp(-gate)) * up)
        return self.w["token_embd.weight"] @ self._norm(x, "output_norm")


def greedy(gguf_model, prompt_ids, stops, tokens_max):
    session, out = Session(gguf_model), []
    for token in prompt_ids:
        logits = session.feed(token)
    while len(out) < tokens_max:
        token = int(np.argmax(logits))
        if token in stops:
            break
        out.append(token)
        logits = session.feed(token)
    return out
