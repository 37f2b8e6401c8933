// model/scratch.c — laying the buffers out.
#include "model/scratch.h"

#include <string.h>

#include "base/checked.h"

// Takes `count` floats at *offset; NULL while planning.
static float *take(void *block, uint64_t *offset, uint64_t count) {
  uint8_t *at = block == NULL ? NULL : (uint8_t *)block + *offset;
  *offset += (count * sizeof(float) + WICK_CACHE_LINE_BYTES - 1) / WICK_CACHE_LINE_BYTES *
             WICK_CACHE_LINE_BYTES;
  return (float *)(void *)at;
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

void scratch_plan(const wick_model_config *config, const wick_kernels *kernels,
                  uint32_t batch_tokens, uint32_t threads, model_scratch *scratch, void *block) {
  const uint32_t group = config->heads / config->kv_heads;
  const uint64_t rows = batch_tokens;
  memset(scratch, 0, sizeof *scratch);
  scratch->block = block;
  scratch->batch_tokens = batch_tokens;
  scratch->threads = threads;
  scratch->hidden_stride = scratch_line_floats(config->hidden);
  scratch->q_stride = scratch_line_floats(wick_q_dim(config));
  scratch->kv_stride = scratch_line_floats(wick_kv_dim(config));
  scratch->ffn_stride = scratch_line_floats(config->ffn);
  scratch->vocab_stride = scratch_line_floats(config->vocab);
  uint64_t at = 0;
  scratch->hidden = take(block, &at, rows * scratch->hidden_stride);
  scratch->normed = take(block, &at, rows * scratch->hidden_stride);
  uint64_t attention_end = at, ffn_end = at;
  scratch->q = take(block, &attention_end, rows * scratch->q_stride);
  scratch->k = take(block, &attention_end, rows * scratch->kv_stride);
  scratch->v = take(block, &attention_end, rows * scratch->kv_stride);
  scratch->attention = take(block, &attention_end, rows * scratch->q_stride);
  scratch->gate = take(block, &ffn_end, rows * scratch->ffn_stride);
  scratch->up = take(block, &ffn_end, rows * scratch->ffn_stride);
  at = larger(attention_end, ffn_end);
  uint32_t widest = config->hidden > config->ffn ? config->hidden : config->ffn;
  if (wick_q_dim(config) > widest) widest = wick_q_dim(config);
  // Rows whose length is no multiple of 32 have no quantised form; they take no room here.
  const uint64_t act_bytes = kernels->act_bytes(KERNEL_ACT_Q8, (widest + 31) / 32 * 32);
  scratch->act = (uint8_t *)take(block, &at, rows * ((act_bytes + 3) / sizeof(float)));
  scratch->cos_sin = take(block, &at, rows * config->rope_dims);
  const uint64_t logits_rows = smaller(batch_tokens, SCRATCH_LOGITS_ROWS);
  scratch->logits = take(block, &at, logits_rows * scratch->vocab_stride);
  // Rotated queries, one rotation of a shifted page, and two states: accumulators, maxima, sums.
  const uint32_t heads = smaller(batch_tokens, ATTENTION_TILE_TOKENS) * group;
  scratch->per_thread_stride = scratch_line_floats(heads * config->head_dim) +
                               scratch_line_floats(config->rope_dims) +
                               2 * scratch_state_floats(heads, config->head_dim);
  scratch->per_thread = take(block, &at, (uint64_t)threads * scratch->per_thread_stride);
  scratch->size_bytes = at;
}
