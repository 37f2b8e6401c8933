// reference/scratch_sizes.c — sizes of scratch buffers.
#include "reference/scratch_sizes.h"

static uint64_t padded(uint64_t count) { return (count + QK_K - 1) / QK_K * QK_K; }
static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

void scratch_plan(const scratch_dims *dims, scratch_plan_sizes *s) {
  const uint64_t q = (uint64_t)dims->heads * dims->head_dim;
  const uint64_t kv = (uint64_t)dims->kv_heads * dims->head_dim;
  *s = (scratch_plan_sizes){.hidden = dims->hidden,
                            .normed = dims->hidden,
                            .qkv = q + 2 * kv,
                            .q = q,
                            .k = kv,
                            .v = kv,
                            .attention = q,
                            .projected = dims->hidden,
                            .up = dims->is_gate_fused ? 2ull * dims->ffn : dims->ffn,
                            .gate = dims->ffn,
                            .down = dims->hidden,
                            .logits = dims->vocab,
                            .hidden_codes = padded(larger(q, dims->hidden)),
                            .ffn_codes = padded(dims->ffn)};
  s->hidden_scales = s->hidden_codes / QK_K;
  s->ffn_scales = s->ffn_codes / QK_K;
  const uint64_t stream = s->hidden + s->normed + s->projected + s->logits;
  s->separate_bytes = 4 * (stream + s->qkv + s->q + s->k + s->v + s->attention + s->up + s->gate +
                           s->down + s->hidden_scales + s->ffn_scales) +
                      s->hidden_codes + s->ffn_codes;
  const uint64_t halves = larger(s->qkv + s->attention, s->up + s->gate);
  const uint64_t codes =
      larger(s->hidden_codes + 4 * s->hidden_scales, s->ffn_codes + 4 * s->ffn_scales);
  s->arena_bytes = 4 * (stream + halves) + codes;
}

uint64_t scratch_expanded_bytes(const scratch_dims *dims, uint32_t ffn) {
  const uint64_t q = (uint64_t)dims->heads * dims->head_dim;
  const uint64_t kv = (uint64_t)dims->kv_heads * dims->head_dim;
  const uint64_t widest = larger(q, dims->hidden), blocks = (widest + 31) / 32;
  const uint64_t codes = padded(widest), ffn_codes = padded(ffn);
  const uint64_t floats = (q + 2 * kv) + q + 2ull * ffn + dims->hidden + q + dims->vocab + blocks +
                          codes / QK_K + ffn_codes / QK_K;
  return 4 * floats + 32 * blocks + codes + ffn_codes;
}
