"""Answers many prompts at once with a KV cache in JAX: greedily, or sampled at a temperature from a seed.

`answers` takes prompts of any length; rows are padded on the right, and each continues from its last token.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

import corpus
import model

BATCH = 48


@functools.partial(jax.jit, static_argnames="room")
def _prefill(params, ids, lengths, room):
    """Returns caches [LAYERS][k, v] of [B, room, KV_HEADS, D] and the logits after each row's last token."""
    batch, tokens = ids.shape
    cos, sin = model.rope_tables(jnp.arange(tokens)[None])
    segments = jnp.zeros((batch, tokens), jnp.int32)
    x, caches = params["token_embd"][ids], []
    for index in range(model.LAYERS):
        def attention(q, k, v):
            pad = ((0, 0), (0, room - tokens), (0, 0), (0, 0))
            caches.append((jnp.pad(k, pad), jnp.pad(v, pad)))
            return model.attend_causal(q, k, v, segments, 256)
        x = model.layer(params, index, x, cos, sin, attention)
    last = jnp.take_along_axis(x, (lengths - 1)[:, None, None], axis=1)
    return caches, _logits(params, last)[:, 0]


@functools.partial(jax.jit, donate_argnames="caches")
def _step(params, caches, ids, positions):
    """Adds one token per row: ids and positions [B] -> caches, logits [B, VOCAB]."""
    room = caches[0][0].shape[1]
    cos, sin = model.rope_tables(positions[:, None])
    rows = jnp.arange(len(ids))
    allowed = (jnp.arange(room)[None] <= positions[:, None])[:, None]
    x, new_caches = params["token_embd"][ids][:, None], []
    for index in range(model.LAYERS):
        def attention(q, k, v):
            keys, values = caches[index]
            keys, values = keys.at[rows, positions].set(k[:, 0]), values.at[rows, positions].set(v[:, 0])
            new_caches.append((keys, values))
            return model.attend(q, keys, values, allowed)
        x = model.layer(params, index, x, cos, sin, attention)
    return new_caches, _logits(params, x)[:, 0]


def _logits(params, x):
    return model.linear(model.rms_norm(x, params["output_norm"]), params["token_embd"])


def _bucket(length):
    size = 32
    while size < length:
        size *= 2
    return size


@dataclasses.dataclass(frozen=True)
class Manner:
    """How a token is sampled: Wick's settings with the same names, in the same order. With only a temperature, all tokens are candidates."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0


def kept(logits, manner):
    """Returns logits [B, VOCAB] with -inf for tokens dropped by top-k, then top-p, then min-p; the most likely token always stays."""
    logits = np.asarray(logits, np.float64)
    order = np.argsort(-logits, axis=-1, kind="stable")
    ranked = np.take_along_axis(logits, order, axis=-1)
    stays = np.ones(ranked.shape, bool)
    if manner.top_k:
        stays[:, manner.top_k:] = False
    shares = np.where(stays, np.exp(ranked - ranked[:, :1]), 0.0)
    shares /= shares.sum(axis=-1, keepdims=True)
    stays &= np.cumsum(shares, axis=-1) - shares < manner.top_p
    stays &= shares >= manner.min_p * shares[:, :1]
    stays[:, 0] = True
    out = np.empty_like(logits)
    np.put_along_axis(out, order, np.where(stays, ranked, -np.inf), axis=-1)
    return out


def _choose(logits, manner, rng):
    if not manner.temperature:
        return np.asarray(jnp.argmax(logits, axis=-1))
    noise = rng.gumbel(size=logits.shape)
    return np.argmax(kept(logits, manner) / manner.temperature + noise, axis=-1)


def _batch_answers(params, prompts, stops, tokens_max, manner, rng):
    lengths = np.array([len(p) for p in prompts])
    tokens = _bucket(int(lengths.max()))
    ids = np.zeros((BATCH if len(prompts) > 4 else len(prompts), tokens), np.int32)
    for row, prompt in enumerate(prompts):
        ids[row, :len(prompt)] = prompt
    lengths = np.concatenate([lengths, np.ones(len(ids) - len(prompts), int)])
    caches, logits = _prefill(params, jnp.asarray(ids), jnp.asarray(lengths), room=tokens + tokens_max)
    out, done = [[] for _ in ids], np.arange(len(ids)) >= len(prompts)
    for offset in range(tokens_max):
        chosen = _choose(logits, manner, rng)
        done |= np.isin(chosen, stops)
        for row in np.flatnonzero(~done):
            out[row].append(int(chosen[row]))
        if done.all():
            break
        caches, logits = _step(params, caches, jnp.asarray(chosen), jnp.asarray(lengths + offset))
    return list(zip(out[:len(prompts)], done[:len(prompts)]))


def answers(params, tokenizer, prompts, tokens_max=160, manner=Manner(), seed=0, expected=None):
    """Returns [(text, ended)] for each prompt; `ended` is whether the model itself stopped.

    Tokens are sampled if the manner has a temperature above 0; otherwise the most likely token is used.
    A batch takes as long as its longest answer, so prompts are grouped by length, or by `expected`, which gives the
    answers' lengths in any unit.
    """
    stops = [tokenizer.token_to_id(t) for t in (corpus.IM_END, corpus.END_OF_TEXT)]
    encoded = [tokenizer.encode(p, add_special_tokens=False).ids for p in prompts]
    order = sorted(range(len(prompts)), key=lambda i: expected[i] if expected else _bucket(len(encoded[i])))
    out = [None] * len(prompts)
    rng = np.random.default_rng(seed)
    for start in range(0, len(order), BATCH):
        rows = order[start:start + BATCH]
        found = _batch_answers(params, [encoded[i] for i in rows], stops, tokens_max, manner, rng)
        for i, (ids, ended) in zip(rows, found):
            out[i] = (tokenizer.decode(ids, skip_special_tokens=False), bool(ended))
    return out
