"""The network of the built-in model in JAX: shapes, initial weights, forward pass, fake quantisation.

It follows the GGUF convention of the architecture `llama`: RMS norm before attention and before the
feed-forward part, SwiGLU, grouped-query attention, and rotary positions that rotate the neighbouring
pair (2i, 2i + 1) of a head (rope type NORM), so that the exported rows need no permutation.
Matrices are stored as in GGUF: [rows out, columns in].
Training state and text do not belong in this module.
"""

import jax
import jax.numpy as jnp
import numpy as np

HIDDEN = 256
LAYERS = 4
HEADS = 4
KV_HEADS = 2
HEAD_DIM = 64
FFN = 1024
VOCAB = 1024
CONTEXT = 4096
NORM_EPS = 1e-5
ROPE_THETA = 10000.0

MATRICES = {  # name -> (rows out, columns in)
    "attn_q": (HEADS * HEAD_DIM, HIDDEN),
    "attn_k": (KV_HEADS * HEAD_DIM, HIDDEN),
    "attn_v": (KV_HEADS * HEAD_DIM, HIDDEN),
    "attn_output": (HIDDEN, HEADS * HEAD_DIM),
    "ffn_gate": (FFN, HIDDEN),
    "ffn_up": (FFN, HIDDEN),
    "ffn_down": (HIDDEN, FFN),
}


def tensor_shapes():
    """Returns every tensor by its GGUF name without the `.weight` suffix, with its shape (rows first)."""
    shapes = {"token_embd": (VOCAB, HIDDEN), "output_norm": (HIDDEN,)}
    for index in range(LAYERS):
        for name, shape in MATRICES.items():
            shapes[f"blk.{index}.{name}"] = shape
        shapes[f"blk.{index}.attn_norm"] = (HIDDEN,)
        shapes[f"blk.{index}.ffn_norm"] = (HIDDEN,)
    return shapes


def is_layer_matrix(name):
    return name.rsplit(".", 1)[-1] in MATRICES


def init_params(seed):
    """Draws normal weights with deviation 1/sqrt(columns in); matrices that write to the residual start smaller."""
    rng = np.random.default_rng(seed)
    params = {}
    for name, shape in tensor_shapes().items():
        if len(shape) == 1:
            params[name] = np.ones(shape, np.float32)
            continue
        deviation = 0.02 if name == "token_embd" else shape[1] ** -0.5
        if name.endswith(("attn_output", "ffn_down")):
            deviation /= (2 * LAYERS) ** 0.5
        params[name] = rng.normal(0, deviation, shape).astype(np.float32)
    return {name: jnp.asarray(value) for name, value in params.items()}


def fake_q4_0(weight):
    """Rounds `weight` to Q4_0 (blocks of 32 columns), with a straight-through gradient."""
    blocks = weight.reshape(-1, 32)
    index = jnp.argmax(jnp.abs(blocks), axis=1, keepdims=True)
    extreme = jnp.take_along_axis(blocks, index, axis=1)
    scale = extreme / -8.0
    inverse = jnp.where(scale == 0, 0.0, 1.0 / jnp.where(scale == 0, 1.0, scale))
    codes = jnp.clip(jnp.floor(blocks * inverse + 8.5), 0, 15)
    kept = (codes - 8.0) * scale.astype(jnp.float16).astype(jnp.float32)
    return weight + jax.lax.stop_gradient(kept.reshape(weight.shape) - weight)


def fake_quantise(params):
    """Rounds layer matrices as in the Q4_0 file; embedding and norms are unchanged."""
    return {k: fake_q4_0(v) if is_layer_matrix(k) else v for k, v in params.items()}


def rms_norm(x, weight):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + NORM_EPS) * weight


def rope_tables(positions):
    """Returns cosines and sines, [..., HEAD_DIM / 2], of integer positions [...]."""
    inverse = ROPE_THETA ** (-np.arange(0, HEAD_DIM, 2, dtype=np.float32) / HEAD_DIM)
    angles = positions[..., None].astype(jnp.float32) * inverse
    return jnp.cos(angles), jnp.sin(angles)


def rope(x, cos, sin):
    """Rotates x [batch, tokens, heads, HEAD_DIM], whose rows are in the order of `halves`."""
    a, b = jnp.split(x, 2, axis=-1)
    cos, sin = cos[..., None, :], sin[..., None, :]
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


def halves(weight):
    """Reorders rows of q or k with each head's even rows first: the pairs (2i, 2i + 1) become (i, i + 32).

    Queries times keys stay the same, and a CPU turns two halves far faster than neighbours.
    """
    heads = weight.reshape(-1, HEAD_DIM // 2, 2, weight.shape[1])
    return heads.transpose(0, 2, 1, 3).reshape(weight.shape)


def attend(q, k, v, allowed):
    """q [B, T, HEADS, D], k and v [B, S, KV_HEADS, D], allowed [B, T, S] -> [B, T, HEADS * D]."""
    batch, tokens = q.shape[:2]
    group = HEADS // KV_HEADS
    # One matrix product per kv head: the query heads that share it are stacked.
    q = q.reshape(batch, tokens, KV_HEADS, group, HEAD_DIM).transpose(0, 2, 3, 1, 4)
    k, v = k.transpose(0, 2, 1, 3), v.transpose(0, 2, 1, 3)
    scores = jnp.einsum("bkgtd,bksd->bkgts", q * HEAD_DIM**-0.5, k)
    scores = jnp.where(allowed[:, None, None], scores, -1e9)
    mixed = jnp.einsum("bkgts,bksd->bkgtd", jax.nn.softmax(scores, axis=-1), v)
    return mixed.transpose(0, 3, 1, 2, 4).reshape(batch, tokens, HEADS * HEAD_DIM)


def attend_causal(q, k, v, segments, block):
    """Computes causal attention within each segment, `block` queries at a time, so that no later key is read."""
    tokens = q.shape[1]
    parts = []
    for start in range(0, tokens, block):
        end = min(start + block, tokens)
        allowed = segments[:, start:end, None] == segments[:, None, :end]
        ahead = jnp.arange(start, end)[:, None] >= jnp.arange(end)[None]
        parts.append(attend(q[:, start:end], k[:, :end], v[:, :end], allowed & ahead))
    return jnp.concatenate(parts, axis=1)


def product(a, b):
    """Multiplies a [n, m] by b [m, k], with factors rounded to bfloat16 and sums in float32; twice as fast on CPUs that support it."""
    return jnp.matmul(a.astype(jnp.bfloat16), b.astype(jnp.bfloat16), preferred_element_type=jnp.float32)


@jax.custom_vjp
def rounded_linear(flat, weight):
    """Multiplies flat [n, columns] by weight [rows, columns], with both gradients, using `product`."""
    return product(flat, weight.T)


rounded_linear.defvjp(lambda flat, weight: (product(flat, weight.T), (flat, weight)),
                      lambda kept, grad: (product(grad, kept[1]), product(grad.T, kept[0])))


def linear(x, weight, rounded=False):
    """Multiplies x [..., columns] by weight [rows, columns] as one flat product, whose gradient is much faster on a CPU."""
    flat = x.reshape(-1, x.shape[-1])
    flat = rounded_linear(flat, weight) if rounded else flat @ weight.T
    return flat.reshape(*x.shape[:-1], weight.shape[0])


def layer(params, index, x, cos, sin, attention, rounded=False):
    """Computes one block on x [B, T, HIDDEN]; `attention(q, k, v)` receives q and k with their positions applied. `rounded` as in `linear`."""
    batch, tokens = x.shape[:2]
    w = {name: params[f"blk.{index}.{name}"] for name in (*MATRICES, "attn_norm", "ffn_norm")}
    normed = rms_norm(x, w["attn_norm"])
    q = linear(normed, halves(w["attn_q"]), rounded).reshape(batch, tokens, HEADS, HEAD_DIM)
    k = linear(normed, halves(w["attn_k"]), rounded).reshape(batch, tokens, KV_HEADS, HEAD_DIM)
    v = linear(normed, w["attn_v"], rounded).reshape(batch, tokens, KV_HEADS, HEAD_DIM)
    mixed = attention(rope(q, cos, sin), rope(k, cos, sin), v)
    x = x + linear(mixed, w["attn_output"], rounded)
    normed = rms_norm(x, w["ffn_norm"])
    gated = jax.nn.silu(linear(normed, w["ffn_gate"], rounded)) * linear(normed, w["ffn_up"], rounded)
    return x + linear(gated, w["ffn_down"], rounded)


def forward(params, ids, segments, block=128):
    """Returns logits [B, T, VOCAB] of token ids [B, T]; a token attends only to the past of its own segment."""
    cos, sin = rope_tables(jnp.arange(ids.shape[1])[None])
    # A product with one-hot rows: its gradient is a product, too; the gradient of a lookup is a slow scatter.
    x = jax.nn.one_hot(ids, VOCAB, dtype=jnp.float32).reshape(-1, VOCAB) @ params["token_embd"]
    x = x.reshape(*ids.shape, HIDDEN)
    for index in range(LAYERS):
        x = layer(params, index, x, cos, sin,
                  lambda q, k, v: attend_causal(q, k, v, segments, block), rounded=True)
    return linear(rms_norm(x, params["output_norm"]), params["token_embd"], rounded=True)


def loss(params, ids, segments, weights):
    """Returns the mean cross entropy of the next token; `weights` [B, T] belong to the predicted tokens."""
    logits = forward(params, ids[:, :-1], segments[:, :-1])
    targets = ids[:, 1:]
    picked = jnp.sum(logits * jax.nn.one_hot(targets, VOCAB, dtype=jnp.float32), axis=-1)
    nll = jax.nn.logsumexp(logits, axis=-1) - picked
    weights = weights[:, 1:]
    return jnp.sum(nll * weights) / jnp.sum(weights)
