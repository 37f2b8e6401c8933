"""Trains the built-in model: python train.py --out DIR. See README.md for how long it takes.

Steps, lengths and seeds are constants, so a run can be repeated; a run that was stopped goes on from
its last checkpoint. Matrices of the layers are trained by Muon (momentum, made orthogonal by a
Newton-Schulz iteration: https://kellerjordan.github.io/posts/muon/), the embedding and the norms by AdamW.
"""

import argparse
import os
import time

import jax
import jax.numpy as jnp
import numpy as np
from tokenizers import Tokenizer

import corpus
import model
import tokenizer as vocabulary

SEED = 20
STEPS_TOTAL = 3620
STEPS_SHORT = 1400  # rows of 256 tokens; then rows of 512 and, every eighth step, one row of CONTEXT tokens
STEP_BY_PARTS = 800  # before it sums in one step, which teaches sizes; after it by tens and ones, which makes them right
STEPS_STAGE = (1600, 1800, 3200)  # the plainest wordings; then more; then much to copy; then all, and rare words
STEP_QUANTISED = 3480  # from here every second step computes with weights rounded to Q4_0
LONG_EVERY = 8
RATES = ((0, 1 / 60), (59, 1.0), (900, 1.0), (1600, 0.4615), (2000, 0.35), (3200, 0.35), (3250, 0.45),
         (3300, 0.45), (3400, 0.352), (3620, 0.01))  # step, share of the full rate
CHECKPOINT_EVERY = 50
RATE_MUON, RATE_ADAM = 0.02, 0.003
MOMENTUM, DECAY = 0.95, 0.02


def shape_of_step(step):
    """(rows, tokens in a row, share of arithmetic, sums by parts, stage); about 4,096 tokens a step."""
    by_parts, stage = step >= STEP_BY_PARTS, sum(step >= first for first in STEPS_STAGE)
    if step < STEPS_SHORT:
        return 16, 256, 1.5, by_parts, stage
    if step % LONG_EVERY == 0:
        return 1, model.CONTEXT, (1.0, 1.0, 0.6, 0.35)[stage], by_parts, stage
    return 8, 512, (1.0, 1.2, 0.6, 0.35)[stage], by_parts, stage


def rate_factor(step):
    return float(np.interp(step, *zip(*RATES)))


def orthogonal(matrix):
    """The nearest matrix with all singular values near 1 (quintic Newton-Schulz, five rounds)."""
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / (jnp.linalg.norm(x) + 1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x.T if tall else x


def update(params, state, grads, factor, count):
    """One optimizer step; `state` holds (first, second) moments by name."""
    new_params, new_state = {}, {}
    for name, value in params.items():
        grad, (first, second) = grads[name], state[name]
        if model.is_layer_matrix(name):
            first = MOMENTUM * first + grad
            step = orthogonal(grad + MOMENTUM * first) * max(1.0, value.shape[0] / value.shape[1]) ** 0.5
            rate = RATE_MUON * factor
            value = value * (1.0 - rate * DECAY) - rate * step
        else:
            first = 0.9 * first + 0.1 * grad
            second = 0.98 * second + 0.02 * grad * grad
            step = (first / (1 - 0.9**count)) / (jnp.sqrt(second / (1 - 0.98**count)) + 1e-8)
            value = value - RATE_ADAM * factor * step
        new_params[name], new_state[name] = value, (first, second)
    return new_params, new_state


def make_step(quantised):
    def objective(params, ids, segments, weights):
        used = model.fake_quantise(params) if quantised else params
        return model.loss(used, ids, segments, weights)

    @jax.jit
    def step(params, state, ids, segments, weights, factor, count):
        value, grads = jax.value_and_grad(objective)(params, ids, segments, weights)
        norm = jnp.sqrt(sum(jnp.sum(g * g) for g in grads.values()))
        grads = {k: g * jnp.minimum(1.0, 1.0 / (norm + 1e-6)) for k, g in grads.items()}
        params, state = update(params, state, grads, factor, count)
        return params, state, value

    return step


def save(path, params, state, step):
    arrays = {f"p:{k}": np.asarray(v) for k, v in params.items()}
    for name, (first, second) in state.items():
        arrays[f"m:{name}"], arrays[f"v:{name}"] = np.asarray(first), np.asarray(second)
    np.savez(path + ".tmp.npz", step=step, **arrays)
    os.replace(path + ".tmp.npz", path)


def load_params(path):
    with np.load(path) as arrays:
        return {k[2:]: jnp.asarray(arrays[k]) for k in arrays.files if k.startswith("p:")}


def start_or_resume(path):
    if not os.path.exists(path):
        params = model.init_params(SEED)
        empty = jnp.zeros(())
        state = {k: (jnp.zeros_like(v), empty if model.is_layer_matrix(k) else jnp.zeros_like(v))
                 for k, v in params.items()}
        return params, state, 0
    with np.load(path) as arrays:
        params = load_params(path)
        state = {k: (jnp.asarray(arrays[f"m:{k}"]), jnp.asarray(arrays[f"v:{k}"])) for k in params}
        return params, state, int(arrays["step"])


def get_tokenizer(folder):
    path = os.path.join(folder, "tokenizer.json")
    if not os.path.exists(path):
        vocabulary.train().save(path)
    return Tokenizer.from_file(path)


def run(folder):
    os.makedirs(folder, exist_ok=True)
    tokenizer = get_tokenizer(folder)
    checkpoint = os.path.join(folder, "checkpoint.npz")
    params, state, first = start_or_resume(checkpoint)
    steps = {False: make_step(False), True: make_step(True)}
    recent, started = [], time.time()
    for step in range(first, STEPS_TOTAL):
        rows, *manner = shape_of_step(step)
        batch = corpus.Rows(tokenizer, f"{SEED}/{step}", *manner).batch(rows)
        quantised = step >= STEP_QUANTISED and step % 2 == 1
        params, state, value = steps[quantised](
            params, state, *map(jnp.asarray, batch), rate_factor(step), step + 1.0)
        recent.append(float(value))
        if step % 20 == 19:
            print(f"step {step + 1}  loss {np.mean(recent):.4f}  {time.time() - started:.0f} s", flush=True)
            recent = []
        if (step + 1) % CHECKPOINT_EVERY == 0 or step + 1 == STEPS_TOTAL:
            save(checkpoint, params, state, step + 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, help="folder for tokenizer.json and checkpoint.npz")
    run(parser.parse_args().out)
