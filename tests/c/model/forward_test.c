// Rows whose logits are needed: their bits are the same whichever other rows are needed. The last
// layer skips the other rows, so its time is not used to choose the number of threads.
#include "kv_rig.h"

enum { TOKENS = 24, BEFORE = 5, RUNS = 40 };

static const fixture_experts EXPERTS = {"qwen2moe", 4, 2, 32, false, NULL};

// Runs one pass over TOKENS tokens of two sequences with a common prefix; stores the logits of row
// i in rows[i].
static void read_wanted(kv_rig *rig, const bool *wanted, float *rows) {
  static const int32_t BEGINNING[BEFORE] = {7, 77, 17, 71, 1};
  static float unused[BEFORE * FIXTURE_VOCAB];
  model_input inputs[TOKENS];
  kv_seq_id seqs[2] = {rig_new(rig), KV_SEQ_NONE};
  if (!CHECK(rig_read(rig, seqs[0], BEGINNING, BEFORE, unused))) return;
  seqs[1] = rig_fork(rig, seqs[0]);
  const uint32_t first = TOKENS / 3;
  for (uint32_t i = 0; i < TOKENS; i++) {
    const uint32_t which = i >= first;
    const uint32_t position = BEFORE + (which == 0 ? i : i - first);
    inputs[i] =
        (model_input){(int32_t)(i * 37 % 250), position, seqs[which], wanted[i], NULL, 0, 0, NULL};
  }
  for (uint32_t s = 0; s < 2; s++) {
    const uint32_t count = s == 0 ? first : TOKENS - first;
    CHECK_EQ_INT(kv_seq_prepare_write(rig->pool, seqs[s], BEFORE, count, NULL, NULL), WICK_OK);
  }
  forward_begin(rig->forward, inputs, TOKENS);
  while (forward_next_layer(rig->forward) < rig->engine->model->config.layers) {
    if (!CHECK_EQ_INT(forward_layer(rig->forward, NULL), WICK_OK)) return;
  }
  uint32_t count = 0;
  for (uint32_t i = 0; i < TOKENS; i++) count += wanted[i];
  CHECK_EQ_UINT(forward_logits_count(rig->forward), count);
  for (uint32_t at = 0; at < count;) {
    const uint32_t computed = forward_logits_compute(rig->forward, at);
    for (uint32_t i = 0; i < computed; i++) {
      const uint32_t input = forward_logits_input(rig->forward, at + i);
      CHECK(wanted[input]);
      memcpy(rows + (size_t)input * FIXTURE_VOCAB, forward_logits(rig->forward, i),
             FIXTURE_VOCAB * sizeof *rows);
    }
    at += computed;
  }
  for (uint32_t s = 0; s < 2; s++) rig_free(rig, seqs[s]);
}

static void check_model(wick_engine *engine) {
  static float all[TOKENS * FIXTURE_VOCAB], some[TOKENS * FIXTURE_VOCAB];
  bool wanted[TOKENS];
  kv_rig rig;
  REQUIRE(engine != NULL && rig_open(&rig, engine, KERNEL_KV_F32, KERNEL_KV_F32));
  for (uint32_t i = 0; i < TOKENS; i++) wanted[i] = true;
  read_wanted(&rig, wanted, all);
  uint64_t random = 3;
  for (uint32_t run = 0; run < RUNS; run++) {
    const uint64_t every = 1 + random_below(&random, 8);
    for (uint32_t i = 0; i < TOKENS; i++) wanted[i] = random_below(&random, every) == 0;
    memset(some, 0, sizeof some);
    read_wanted(&rig, wanted, some);
    for (uint32_t i = 0; i < TOKENS; i++) {
      const size_t at = (size_t)i * FIXTURE_VOCAB;
      if (wanted[i]) CHECK_EQ_MEM(some + at, all + at, FIXTURE_VOCAB * sizeof *some);
    }
  }
  rig_close(&rig);
  wick_engine_destroy(engine);
}

TEST(requested_rows_do_not_depend_on_which_rows_are_requested) {
  check_model(rig_load());
  check_model(rig_load_experts(&EXPERTS));
}

#if WICK_THREADS
// All threads stay in use although one would be faster, because the last layer is not measured.
TEST(a_model_with_a_single_layer_keeps_all_threads) {
  enum { THREADS = 4, PASSES = 60 };
  static const fixture_shape SHAPE = {GGML_TYPE_F32, 64, 32, 4, 2, 1, 256, false, 0};
  static float logits[FIXTURE_VOCAB];
  fixture_file file = fixture_make(&SHAPE);
  wick_config config;
  wick_config_default(&config);
  config.threads = THREADS;
  wick_engine *engine = NULL;
  kv_rig rig;
  REQUIRE(CHECK_EQ_INT(wick_engine_create(&config, &engine, NULL), WICK_OK));
  REQUIRE(CHECK_EQ_INT(fixture_load(engine, &file, 0, NULL), WICK_OK));
  free(file.bytes);
  REQUIRE(rig_open(&rig, engine, KERNEL_KV_F32, KERNEL_KV_F32));
  forward_destroy(rig.forward);
  CHECK_EQ_INT(forward_create(engine->model, rig.store, engine->threads, THREADS, RIG_BATCH,
                              &rig.forward, NULL),
               WICK_OK);
  for (uint32_t i = 0; i < 1000000000 && wick_engine_threads(engine) < THREADS; i++) continue;
  REQUIRE(CHECK_EQ_UINT(wick_engine_threads(engine), THREADS));
  forward_choose_threads(rig.forward);
  const kv_seq_id seq = rig_new(&rig);
  for (int32_t i = 0; i < PASSES; i++) CHECK(rig_read(&rig, seq, &i, 1, logits));
  CHECK_EQ_UINT(forward_threads(rig.forward, 1), THREADS);
  rig_free(&rig, seq);
  rig_close(&rig);
  wick_engine_destroy(engine);
}
#endif
