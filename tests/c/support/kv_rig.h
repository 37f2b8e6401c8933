// The fixture model on separate pools: the engine's own forward pass evaluates the sequences of a
// pool, and the test may change the pool between passes.
#ifndef WICK_TESTS_KV_RIG_H
#define WICK_TESTS_KV_RIG_H

#include "consistency.h"
#include "fixture_model.h"

enum { RIG_BATCH = 96, RIG_PAGES = 64 };

// Two layers with four query heads and two KV heads, the smallest shape that covers all cases.
static const fixture_shape RIG_SHAPE = {GGML_TYPE_F32, 64, 32, 4, 2, 2, 256, false, 0};

typedef struct kv_rig {
  wick_engine *engine;  // only for its model and threads
  seq_store *store;
  kv_pool *pool;  // of the store
  forward_pass *forward;
} kv_rig;

static wick_engine *rig_load_experts(const fixture_experts *experts) {
  fixture_file file = fixture_make_experts(&RIG_SHAPE, experts);
  wick_config config;
  wick_config_default(&config);
  wick_engine *engine = NULL;
  wick_error error = {0};
  bool is_fine = CHECK_EQ_INT(wick_engine_create(&config, &engine, &error), WICK_OK);
  is_fine = is_fine && CHECK_EQ_INT(fixture_load(engine, &file, 0, &error), WICK_OK);
  free(file.bytes);
  return is_fine ? engine : NULL;
}

static wick_engine *rig_load(void) { return rig_load_experts(NULL); }

static bool rig_open(kv_rig *rig, wick_engine *engine, kernel_kv_type k_type,
                     kernel_kv_type v_type) {
  const loaded_model *model = engine->model;
  engine->model->has_open_pages = model->kernels->kv[k_type].k_encode != NULL;
  const kv_shape shape = {
      model->config.layers, model->config.kv_heads, model->config.head_dim, k_type, v_type, 0};
  wick_error error = {0};
  *rig = (kv_rig){.engine = engine};
  const store_config config = {.groups = {shape}, .group_count = 1, .pages_max = RIG_PAGES};
  if (!CHECK_EQ_INT(store_create(&engine->memory, model->kernels, &config, &rig->store, &error),
                    WICK_OK)) {
    return false;
  }
  rig->pool = store_pages(rig->store);
  return CHECK_EQ_INT(
      forward_create(model, rig->store, engine->threads, 1, RIG_BATCH, &rig->forward, &error),
      WICK_OK);
}

static void rig_close(kv_rig *rig) {
  CHECK_EQ_UINT(kv_pool_pages_free(rig->pool), kv_pool_pages(rig->pool));
  forward_destroy(rig->forward);
  store_destroy(rig->store);
}

static kv_seq_id rig_new(const kv_rig *rig) {
  kv_seq_id seq = KV_SEQ_NONE;
  CHECK_EQ_INT(kv_seq_new(rig->pool, 0, &seq, NULL, NULL), WICK_OK);
  return seq;
}

static kv_seq_id rig_fork(const kv_rig *rig, kv_seq_id seq) {
  kv_seq_id child = KV_SEQ_NONE;
  CHECK_EQ_INT(kv_seq_fork(rig->pool, seq, &child, NULL), WICK_OK);
  return child;
}

static void rig_free(const kv_rig *rig, kv_seq_id seq) {
  CHECK_EQ_INT(kv_seq_free(rig->pool, seq, NULL), WICK_OK);
}

// One sequence's part of a pass: tokens[0, count) are appended to the sequence, and their logits
// are written to rows [count][FIXTURE_VOCAB].
typedef struct rig_part {
  kv_seq_id seq;
  const int32_t *tokens;
  uint32_t count;
  float *rows;
} rig_part;

// Runs one pass over the parts, which have at most RIG_BATCH tokens in total.
static bool rig_pass(kv_rig *rig, const rig_part *parts, uint32_t part_count) {
  model_input inputs[RIG_BATCH];
  float *rows[RIG_BATCH];
  uint32_t count = 0;
  wick_error error = {0};
  for (uint32_t p = 0; p < part_count; p++) {
    const uint32_t at = kv_seq_tokens(rig->pool, parts[p].seq);
    const wick_status status =
        kv_seq_prepare_write(rig->pool, parts[p].seq, at, parts[p].count, NULL, &error);
    if (!CHECK_EQ_INT(status, WICK_OK)) return false;
    for (uint32_t i = 0; i < parts[p].count; i++, count++) {
      inputs[count] =
          (model_input){parts[p].tokens[i], at + i, parts[p].seq, true, NULL, 0, 0, NULL};
      rows[count] = parts[p].rows + (size_t)i * FIXTURE_VOCAB;
    }
  }
  forward_begin(rig->forward, inputs, count);
  while (forward_next_layer(rig->forward) < rig->engine->model->config.layers) {
    if (!CHECK_EQ_INT(forward_layer(rig->forward, &error), WICK_OK)) return false;
  }
  for (uint32_t first = 0; first < forward_logits_count(rig->forward);) {
    const uint32_t computed = forward_logits_compute(rig->forward, first);
    for (uint32_t i = 0; i < computed; i++) {
      memcpy(rows[forward_logits_input(rig->forward, first + i)], forward_logits(rig->forward, i),
             FIXTURE_VOCAB * sizeof(float));
    }
    first += computed;
  }
  for (uint32_t p = 0; p < part_count; p++) {
    CHECK_EQ_INT(kv_seq_append(rig->pool, parts[p].seq, parts[p].count, NULL), WICK_OK);
  }
  return CHECK_EQ_INT(kv_pool_check(rig->pool, &error), WICK_OK);
}

static bool rig_read(kv_rig *rig, kv_seq_id seq, const int32_t *tokens, uint32_t count,
                     float *rows) {
  const rig_part part = {seq, tokens, count, rows};
  return rig_pass(rig, &part, 1);
}

#endif
