"""Trains the built-in model: python train.py --out DIR [--from MODEL.gguf]. See README.md for how long it takes.

Steps, lengths and seeds are constants, so a run can be repeated; a run that was stopped resumes from its last
checkpoint. `--from` starts with the weights and the vocabulary of a file, grown to the size in model.py, and trains only
the stage with visitors' questions. Layer matrices are trained with Muon (momentum, orthogonalized by a Newton-Schulz
iteration: https://kellerjordan.github.io/posts/muon/), the embedding and the norms with AdamW.
"""

import argparse
import os
import time

import jax
import jax.numpy as jnp
import numpy as np
from tokenizers import Tokenizer

import corpus
import ggufmodel
import model
import phrases
import tokenizer as vocabulary

SEED = 20
STEPS_TOTAL = 3620
STEPS_SHORT = 1400  # rows of 256 tokens; then rows of 512 and, every eighth step, one row of CONTEXT tokens
STEP_BY_PARTS = 800  # sums are in one step before it, which teaches magnitudes, and by tens and ones after it, which makes them exact
STEPS_STAGE = (1600, 1800, 3200)  # starts of the stages: the plainest wordings; more; many words to copy; all wordings and rare words
STEP_QUANTISED = 3480  # after this, every second step computes with weights rounded to Q4_0
LONG_EVERY = 8
RATES = ((0, 1 / 60), (59, 1.0), (900, 1.0), (1600, 0.4615), (2000, 0.35), (3200, 0.35), (3250, 0.45),
         (3300, 0.45), (3400, 0.352), (3620, 0.01))  # step, share of the full rate
CHECKPOINT_EVERY = 25
GROWN_STEPS, GROWN_DECAY, GROWN_WARM = 2400, 600, 25  # with --from: the rate rises, stays, and falls to nearly 0 in the last GROWN_DECAY steps
GROWN_RATE, GROWN_RATE_END = 0.6, 0.01  # shares of the full rate
AVERAGE_DECAY = 0.99  # of the running average of the weights, which is what export.py writes
KEEP_EVERY = 200  # with --from: a checkpoint before the fall of the rate is kept, so that a longer plan can continue from it
GROWN_LONG_EVERY = 24
RATE_MUON, RATE_ADAM = 0.02, 0.003
MOMENTUM, DECAY = 0.95, 0.02


def shape_of_step(step):
    """Returns (rows, tokens per row, share of arithmetic, sums by parts, stage); about 4,096 tokens per step."""
    by_parts, stage = step >= STEP_BY_PARTS, sum(step >= first for first in STEPS_STAGE)
    if step < STEPS_SHORT:
        return 16, 256, 1.5, by_parts, stage
    if step % LONG_EVERY == 0:
        return 1, model.CONTEXT, (1.0, 1.0, 0.6, 0.35)[stage], by_parts, stage
    return 8, 512, (1.0, 1.2, 0.6, 0.35)[stage], by_parts, stage


def shape_of_grown_step(step):
    rows, length = (1, model.CONTEXT) if step % GROWN_LONG_EVERY == GROWN_LONG_EVERY - 2 else (8, 512)
    return rows, length, 0.35, True, phrases.VISIT_STAGE


class Plan:
    """The parameters of each step: its batch, its share of the full rate, whether it rounds the weights."""

    def __init__(self, grown, steps=None, decay=None, rate=None):
        self.grown = grown
        self.grown_rate = rate or GROWN_RATE
        self.steps = steps or (GROWN_STEPS if grown else STEPS_TOTAL)
        self.decay = decay or min(GROWN_DECAY, self.steps // 2)

    def shape(self, step):
        return shape_of_grown_step(step) if self.grown else shape_of_step(step)

    def rate(self, step):
        if not self.grown:
            return float(np.interp(step, *zip(*RATES)))
        fall = np.interp(step, (self.steps - self.decay, self.steps), (self.grown_rate, GROWN_RATE_END))
        return float(fall * min(1.0, (step + 1) / GROWN_WARM))

    def keeps(self, step):
        """Returns whether the checkpoint after `step` steps is kept in addition to later ones."""
        return self.grown and step % KEEP_EVERY == 0 and step <= self.steps - self.decay

    def rounds(self, step):
        return step % 2 == 1 and step >= (self.steps - 100 if self.grown else STEP_QUANTISED)


def orthogonal(matrix):
    """Returns the nearest matrix with all singular values near 1 (quintic Newton-Schulz, five rounds)."""
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / (jnp.linalg.norm(x) + 1e-7)
    for _ in range(5):
        gram = model.product(x, x.T)
        x = 3.4445 * x + model.product(-4.7750 * gram + 2.0315 * model.product(gram, gram), x)
    return x.T if tall else x


def update(params, state, grads, factor, count):
    """Performs one optimizer step; `state` has (first, second) moments by name."""
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
    def step(params, state, averages, ids, segments, weights, factor, count):
        value, grads = jax.value_and_grad(objective)(params, ids, segments, weights)
        norm = jnp.sqrt(sum(jnp.sum(g * g) for g in grads.values()))
        grads = {k: g * jnp.minimum(1.0, 1.0 / (norm + 1e-6)) for k, g in grads.items()}
        params, state = update(params, state, grads, factor, count)
        averages = {k: AVERAGE_DECAY * a + (1.0 - AVERAGE_DECAY) * params[k] for k, a in averages.items()}
        return params, state, averages, value

    return step


def save(path, params, state, averages, step):
    arrays = {f"p:{k}": np.asarray(v) for k, v in params.items()}
    arrays.update({f"a:{k}": np.asarray(v) for k, v in averages.items()})
    for name, (first, second) in state.items():
        arrays[f"m:{name}"], arrays[f"v:{name}"] = np.asarray(first), np.asarray(second)
    np.savez(path + ".tmp.npz", step=step, **arrays)
    os.replace(path + ".tmp.npz", path)


def load_params(path, averaged=True):
    """Loads the weights of a checkpoint: their running average, if the file has one."""
    with np.load(path) as arrays:
        mark = "a:" if averaged and any(k.startswith("a:") for k in arrays.files) else "p:"
        return {k[2:]: jnp.asarray(arrays[k]) for k in arrays.files if k.startswith(mark)}


def grown(loaded):
    """Loads the weights of a file in the shapes of model.py: new rows of ffn_gate and ffn_up are random, new columns of ffn_down are
    zero, so that the first step computes the same as the file."""
    params = dict(model.init_params(SEED))
    for name, value in loaded.trained_params().items():
        full = np.array(params[name]) if name.split(".")[-1] in ("ffn_gate", "ffn_up") else np.zeros(params[name].shape, np.float32)
        full[tuple(slice(0, n) for n in value.shape)] = value
        params[name] = jnp.asarray(full)
    return params


def start_or_resume(path, loaded=None):
    if not os.path.exists(path):
        params = grown(loaded) if loaded else model.init_params(SEED)
        empty = jnp.zeros(())
        state = {k: (jnp.zeros_like(v), empty if model.is_layer_matrix(k) else jnp.zeros_like(v))
                 for k, v in params.items()}
        return params, state, params, 0
    with np.load(path) as arrays:
        params = load_params(path, averaged=False)
        state = {k: (jnp.asarray(arrays[f"m:{k}"]), jnp.asarray(arrays[f"v:{k}"])) for k in params}
        return params, state, load_params(path), int(arrays["step"])


def get_tokenizer(folder, loaded=None):
    path = os.path.join(folder, "tokenizer.json")
    if not os.path.exists(path):
        (loaded.tokenizer() if loaded else vocabulary.train()).save(path)
    return Tokenizer.from_file(path)


def run(folder, source=None, steps_total=None, decay=None, rate=None):
    os.makedirs(folder, exist_ok=True)
    jax.config.update("jax_compilation_cache_dir", os.path.join(folder, "compiled"))  # a resumed run does not have to compile for minutes again
    loaded = ggufmodel.GgufModel(source) if source else None
    tokenizer = get_tokenizer(folder, loaded)
    checkpoint = os.path.join(folder, "checkpoint.npz")
    params, state, averages, first = start_or_resume(checkpoint, loaded)
    plan = Plan(bool(source), steps_total, decay, rate)
    steps = {False: make_step(False), True: make_step(True)}
    recent, started = [], time.time()
    for step in range(first, plan.steps):
        rows, *manner = plan.shape(step)
        batch = corpus.Rows(tokenizer, f"{SEED}/{step}", *manner).batch(rows)
        params, state, averages, value = steps[plan.rounds(step)](
            params, state, averages, *map(jnp.asarray, batch), plan.rate(step), step + 1.0)
        recent.append(float(value))
        if step % 20 == 19:
            print(f"step {step + 1}  loss {np.mean(recent):.4f}  {time.time() - started:.0f} s", flush=True)
            recent = []
        if (step + 1) % CHECKPOINT_EVERY == 0 or step + 1 == plan.steps:
            save(checkpoint, params, state, averages, step + 1)
        if plan.keeps(step + 1):
            save(os.path.join(folder, f"kept-{step + 1}.npz"), params, state, averages, step + 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, help="folder for tokenizer.json and checkpoint.npz")
    parser.add_argument("--from", dest="source", help="start with the weights of this GGUF file")
    parser.add_argument("--steps", type=int, help="total number of steps, instead of the usual number")
    parser.add_argument("--decay", type=int, help="with --from: the number of steps at the end in which the rate falls to nearly 0")
    parser.add_argument("--rate", type=float, help="with --from: the share of the full rate before that fall")
    args = parser.parse_args()
    run(args.out, args.source, args.steps, args.decay, args.rate)
