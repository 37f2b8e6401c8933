// Adapters (LoRA): a request's output and logits are the same alone and in a batch with requests
// that use different adapters or none; pages, sessions and saved states record their adapters;
// adapters are added and removed.
#include <stdio.h>

#include "adapter_rig.h"
#include "base/hash.h"
#include "shared_files.h"

static const ggml_type TYPES[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0};

static wick_config config_of(uint32_t batch_tokens, uint32_t threads) {
  wick_config config;
  wick_config_default(&config);
  config.batch_tokens = batch_tokens;
  config.threads = check_threads(threads);
  return config;
}

// ---- sets ----

// Bytes after the last use of a set are ignored.
TEST(sets_are_equal_if_all_their_uses_are_equal) {
  static model_adapter adapters[2];
  static const float scales[] = {1, -1.5f};
  uint64_t random = 5;
  uint32_t same = 0;
  for (int round = 0; round < 4000; round++) {
    adapter_set sets[2];
    for (int s = 0; s < 2; s++) {
      sets[s].count = (uint32_t)random_below(&random, 3) * (WICK_ADAPTERS_MAX / 2);
      for (uint32_t i = 0; i < WICK_ADAPTERS_MAX; i++) {
        const uint64_t drawn = random_below(&random, 40);
        sets[s].uses[i].adapter = &adapters[drawn == 0];
        sets[s].uses[i].scale = scales[drawn == 1];
      }
    }
    uint32_t common = 0;
    while (common < sets[0].count && sets[0].uses[common].adapter == sets[1].uses[common].adapter &&
           sets[0].uses[common].scale == sets[1].uses[common].scale) {
      common++;
    }
    const bool are_same = sets[0].count == sets[1].count && common == sets[0].count;
    CHECK(adapter_set_is_same(&sets[0], &sets[1]) == are_same);
    CHECK(adapter_set_is_same(&sets[0], &sets[0]));
    CHECK(!adapter_set_is_same(&sets[0], NULL));
    CHECK(!adapter_set_is_same(NULL, &sets[0]));
    same += are_same;
  }
  CHECK(adapter_set_is_same(NULL, NULL));
  CHECK(same > 500 && same < 3500);
}

// ---- results ----

enum { KINDS = 6 };

// Sets the adapters that a request of this kind uses; returns their number.
static uint32_t uses_of(uint32_t kind, const uint32_t ids[2], wick_adapter_use uses[2]) {
  switch (kind) {
    case 1:
      uses[0] = (wick_adapter_use){ids[0], 1};
      return 1;
    case 2:
      uses[0] = (wick_adapter_use){ids[0], 0.5f};
      return 1;
    case 3:
      uses[0] = (wick_adapter_use){ids[1], -1.5f};
      return 1;
    case 4:
      uses[0] = (wick_adapter_use){ids[0], 1}, uses[1] = (wick_adapter_use){ids[1], 2};
      return 2;
    case 5:
      uses[0] = (wick_adapter_use){ids[1], 2}, uses[1] = (wick_adapter_use){ids[0], 1};
      return 2;
    default:
      return 0;
  }
}

static void add_two(wick_engine *engine, const rig_adapter rigs[2], uint32_t ids[2]) {
  for (int i = 0; i < 2; i++) ids[i] = rig_add(engine, &rigs[i]);
}

// Runs each kind in a separate engine; the kind without adapters runs in an engine that has none.
static void ask_alone(const fixture_file *model, const rig_adapter rigs[2], rig_talk *alone) {
  const wick_config config = config_of(64, 1);
  for (uint32_t kind = 0; kind < KINDS; kind++) {
    wick_engine *engine = rig_engine(&config, model);
    uint32_t ids[2] = {0, 0};
    wick_adapter_use uses[2];
    if (kind != 0) add_two(engine, rigs, ids);
    rig_ask(engine, alone, 7, uses, uses_of(kind, ids, uses), true);
    rig_run(engine, alone);
    // request ids restart in each engine
    alone->asked[kind].id = UINT32_MAX;
    wick_engine_destroy(engine);
  }
}

static void check_together(const fixture_file *model, const rig_adapter rigs[2],
                           const rig_talk *alone, uint32_t batch_tokens, uint32_t threads) {
  const wick_config config = config_of(batch_tokens, threads);
  wick_engine *engine = rig_engine(&config, model);
  uint32_t ids[2];
  rig_talk talk = {.count = 0};
  add_two(engine, rigs, ids);
  for (uint32_t kind = 0; kind < KINDS; kind++) {
    wick_adapter_use uses[2];
    rig_ask(engine, &talk, 7, uses, uses_of(kind, ids, uses), true);
    for (uint32_t i = 0; i < kind * 5; i++) wick_step(engine, 0);
  }
  rig_run(engine, &talk);
  for (uint32_t kind = 0; kind < KINDS; kind++)
    rig_check_same(&alone->asked[kind], &talk.asked[kind]);
  rig_free(&talk);
  wick_engine_destroy(engine);
}

static void check_mixed(const fixture_file *model, const rig_adapter rigs[2]) {
  rig_talk alone = {.count = 0};
  ask_alone(model, rigs, &alone);
  for (uint32_t a = 0; a < KINDS; a++) {
    for (uint32_t b = 0; b < a; b++) {
      const bool is_same = a == 5 && b == 4;  // the order does not matter
      CHECK_EQ_INT(rig_differs(&alone.asked[a], &alone.asked[b]), !is_same);
    }
  }
  check_together(model, rigs, &alone, 64, 1);
  check_together(model, rigs, &alone, 5, 1);
  check_together(model, rigs, &alone, 100, 3);
  rig_free(&alone);
}

TEST(each_request_in_a_mixed_batch_gives_the_same_result_as_alone) {
  fixture_file model = fixture_make(&FIXTURE_DEFAULT);
  const rig_adapter rigs[2] = {rig_usual(1, GGML_TYPE_F32, 4), rig_usual(2, GGML_TYPE_F16, 11)};
  check_mixed(&model, rigs);
  free(model.bytes);
}

TEST(mixed_batches_work_with_recurrent_layers) {
  static const fixture_hybrid *const HYBRIDS[] = {&FIXTURE_QWEN35, &FIXTURE_LFM2};
  static const char *const INPUTS[] = {"blk.0.attn_qkv.weight", "blk.0.shortconv.in_proj.weight"};
  static const uint64_t ROWS[] = {60, 108};
  for (int i = 0; i < 2; i++) {
    fixture_file model = fixture_make_hybrid(&FIXTURE_ODD, HYBRIDS[i]);
    rig_adapter rigs[2] = {rig_begin(3), rig_begin(4)};
    for (int k = 0; k < 2; k++) {
      rigs[k].architecture = HYBRIDS[i]->architecture;
      rig_pair(&rigs[k], INPUTS[i], GGML_TYPE_F32, 36, ROWS[i], 3);
      rig_pair(&rigs[k], "blk.1.attn_output.weight", GGML_TYPE_F32, 36, 36, 9);
      rig_pair(&rigs[k], "blk.2.ffn_up.weight", GGML_TYPE_F32, 36, 44, 8);
    }
    check_mixed(&model, rigs);
    free(model.bytes);
  }
}

// A mixture of 5 experts, 2 of them in use per token, and a shared expert.
static const fixture_experts EXPERTS = {
    .architecture = "qwen2moe", .count = 5, .used = 2, .shared_ffn = 32};
static const fixture_shape EXPERTS_SHAPE = {GGML_TYPE_F32, 64, 40, 4, 2, 2, 256, true, 0};

static rig_adapter rig_of_experts(uint64_t seed, ggml_type type, uint64_t rank) {
  rig_adapter rig = rig_begin(seed);
  rig.architecture = EXPERTS.architecture;
  rig_pairs(&rig, "blk.0.ffn_gate_exps.weight", type, 64, 40, rank, 5);
  rig_pairs(&rig, "blk.0.ffn_up_exps.weight", type, 64, 40, rank, 5);
  rig_pairs(&rig, "blk.1.ffn_down_exps.weight", type, 40, 64, rank, 5);
  rig_pairs(&rig, "blk.1.ffn_up_exps.weight", type, 64, 40, rank, 5);
  rig_pair(&rig, "blk.1.ffn_gate_inp.weight", type, 64, 5, rank);
  return rig;
}

TEST(mixed_batches_work_with_experts) {
  fixture_file model = fixture_make_experts(&EXPERTS_SHAPE, &EXPERTS);
  const rig_adapter rigs[2] = {rig_of_experts(5, GGML_TYPE_F32, 4),
                               rig_of_experts(6, GGML_TYPE_BF16, 9)};
  check_mixed(&model, rigs);
  free(model.bytes);
}

// ---- the embedding and the output ----

static uint32_t add_shared(wick_engine *engine, const char *name) {
  memory_file file = shared_read("vectors/reference-more/lora", name);
  uint32_t id = 0;
  CHECK_EQ_INT(wick_adapter_load_bytes(engine, file.bytes, file.size_bytes, &id, NULL), WICK_OK);
  file_free(&file);
  return id;
}

// More rows of logits than one round computes, with two different adapters of the output and with
// none.
TEST(mixed_batches_work_with_adapted_embedding_and_output) {
  enum { REQUESTS = 13 };
  if (check_shared("") == NULL) SKIP("no shared folder");
  memory_file file = shared_read("vectors/reference/models", "llama.gguf");
  fixture_file model = {.bytes = file.bytes, .size_bytes = file.size_bytes};
  rig_talk alone = {.count = 0}, talk = {.count = 0};
  for (int is_together = 0; is_together < 2; is_together++) {
    const wick_config config = config_of(is_together ? 100 : 64, 1);
    wick_engine *engine = rig_engine(&config, &model);
    const uint32_t ids[2] = {add_shared(engine, "llama.embd-output.gguf"),
                             add_shared(engine, "llama.attn-ffn.gguf")};
    for (uint32_t i = 0; i < REQUESTS; i++) {
      wick_adapter_use uses[2];
      const uint32_t count = uses_of(i % KINDS, ids, uses);
      rig_ask(engine, is_together ? &talk : &alone, 7 + i % 2, uses, count, false);
      if (!is_together) rig_run(engine, &alone);
    }
    if (is_together) rig_run(engine, &talk);
    wick_engine_destroy(engine);
  }
  for (uint32_t i = 0; i < REQUESTS; i++) rig_check_same(&alone.asked[i], &talk.asked[i]);
  CHECK(memcmp(alone.asked[0].tokens, alone.asked[6].tokens, sizeof alone.asked[0].tokens) == 0);
  CHECK(memcmp(alone.asked[0].tokens, alone.asked[2].tokens, sizeof alone.asked[0].tokens) != 0);
  file_free(&file);
}

// Compares adapters of every type with the same values in F32.
TEST(every_adapter_type_gives_the_results_of_f32) {
  fixture_file model = fixture_make(&FIXTURE_DEFAULT);
  const wick_config config = config_of(64, 1);
  wick_engine *engine = rig_engine(&config, &model);
  for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++) {
    const rig_adapter rig = rig_usual(9, TYPES[i], 32);
    rig_adapter plain = rig_usual(9, GGML_TYPE_F32, 32);
    plain.rounds = TYPES[i] == GGML_TYPE_Q8_0;
    const uint32_t ids[2] = {rig_add(engine, &rig), rig_add(engine, &plain)};
    rig_talk talk = {.count = 0};
    for (int k = 0; k < 2; k++) {
      const wick_adapter_use use = {ids[k], 1};
      rig_ask(engine, &talk, 5, &use, 1, true);
    }
    rig_ask(engine, &talk, 5, NULL, 0, true);
    rig_run(engine, &talk);
    CHECK(rig_differs(&talk.asked[0], &talk.asked[2]));
    if (TYPES[i] == GGML_TYPE_F32 || TYPES[i] == GGML_TYPE_Q8_0) {
      rig_check_same(&talk.asked[0], &talk.asked[1]);
    } else {
      float most = 0;
      for (uint32_t k = 0; k < FIXTURE_VOCAB; k++) {
        const float off = __builtin_fabsf(talk.asked[0].logits[k] - talk.asked[1].logits[k]);
        most = off > most ? off : most;
      }
      CHECK(most > 0 && most < 0.05f);
    }
    rig_free(&talk);
  }
  wick_engine_destroy(engine);
  free(model.bytes);
}

// y = W x + scale * alpha / rank * B A x: only the product of the factors matters.
TEST(scale_alpha_and_rank_combine_into_one_factor) {
  fixture_file model = fixture_make(&FIXTURE_DEFAULT);
  const wick_config config = config_of(64, 1);
  wick_engine *engine = rig_engine(&config, &model);
  rig_adapter rig = rig_usual(3, GGML_TYPE_F32, 4);
  rig.alpha = 8;
  const uint32_t doubled = rig_add(engine, &rig);
  rig.has_alpha = false;
  const uint32_t plain = rig_add(engine, &rig);
  rig.has_alpha = true;
  rig.alpha = 0;
  const uint32_t zero = rig_add(engine, &rig);
  const wick_adapter_use uses[] = {{doubled, 0.75f}, {plain, 1.5f}, {zero, 1.5f}, {doubled, 0}};
  rig_talk talk = {.count = 0};
  for (int i = 0; i < 4; i++) rig_ask(engine, &talk, 5, &uses[i], 1, true);
  rig_ask(engine, &talk, 5, NULL, 0, true);
  rig_run(engine, &talk);
  rig_check_same(&talk.asked[0], &talk.asked[1]);
  rig_check_same(&talk.asked[0], &talk.asked[2]);
  CHECK(rig_differs(&talk.asked[0], &talk.asked[3]));
  rig_check_same(&talk.asked[3], &talk.asked[4]);  // scale 0 disables it
  rig_free(&talk);
  wick_engine_destroy(engine);
  free(model.bytes);
}

// Adds factor * B A to W in the model's file, for each matrix of a stack.
static void merge(const fixture_file *model, const fixture_file *adapter, const char *name,
                  float factor) {
  char text[64];
  gguf_tensor w_is, a_is, b_is;
  float *w = fixture_floats(model, name, &w_is);
  text_format(text, sizeof text, "%s.lora_a", name);
  const float *a = fixture_floats(adapter, text, &a_is);
  text_format(text, sizeof text, "%s.lora_b", name);
  const float *b = fixture_floats(adapter, text, &b_is);
  REQUIRE(w != NULL && a != NULL && b != NULL);
  const uint64_t in = w_is.dims[0], rank = a_is.dims[1];
  for (uint64_t m = 0; m < w_is.dims[2]; m++, w += in * w_is.dims[1], a += in * rank) {
    for (uint64_t row = 0; row < w_is.dims[1]; row++, b += rank) {
      for (uint64_t r = 0; r < rank; r++) {
        for (uint64_t c = 0; c < in; c++) w[row * in + c] += factor * b[r] * a[r * in + c];
      }
    }
  }
}

// Returns the sum of the squared differences between logits.
static double distance(const rig_asked *a, const rig_asked *b) {
  double sum = 0;
  for (size_t i = 0; i < (size_t)RIG_PROMPT * FIXTURE_VOCAB; i++) {
    const double by = (double)a->logits[i] - (double)b->logits[i];
    sum += by * by;
  }
  return sum;
}

// An adapter of rank 4 gives the same logits as a model with the adapter merged into its weights.
static void check_merged(fixture_file model, const rig_adapter *rig) {
  const wick_config config = config_of(64, 1);
  wick_engine *engine = rig_engine(&config, &model);
  const wick_adapter_use use = {rig_add(engine, rig), 0.5f};
  rig_talk talk = {.count = 0}, merged_talk = {.count = 0};
  rig_ask(engine, &talk, 5, &use, 1, true);
  rig_ask(engine, &talk, 5, NULL, 0, true);
  rig_run(engine, &talk);
  wick_engine_destroy(engine);
  fixture_file adapter = rig_write(rig);
  for (uint32_t i = 0; i < rig->count; i += 2) {
    char name[GGUF_TENSOR_NAME_BYTES_MAX];
    const int bytes = (int)(strlen(rig->tensors[i].name) - strlen(".lora_a"));
    text_format(name, sizeof name, "%.*s", bytes, rig->tensors[i].name);
    merge(&model, &adapter, name, 0.5f * 6 / 4);
  }
  engine = rig_engine(&config, &model);
  rig_ask(engine, &merged_talk, 5, NULL, 0, true);
  rig_run(engine, &merged_talk);
  const double moved = distance(&talk.asked[0], &talk.asked[1]);
  const double off = distance(&talk.asked[0], &merged_talk.asked[0]);
  if (!CHECK(off < 1e-6 * moved)) printf("#   %g of %g\n", off, moved);
  rig_free(&talk);
  rig_free(&merged_talk);
  wick_engine_destroy(engine);
  free(adapter.bytes);
  free(model.bytes);
}

TEST(an_adapter_equals_its_product_added_to_the_weights) {
  const rig_adapter rig = rig_usual(3, GGML_TYPE_F32, 4);
  check_merged(fixture_make(&FIXTURE_DEFAULT), &rig);
}

TEST(an_adapter_of_experts_equals_its_product_added_to_each_expert) {
  const rig_adapter rig = rig_of_experts(3, GGML_TYPE_F32, 4);
  check_merged(fixture_make_experts(&EXPERTS_SHAPE, &EXPERTS), &rig);
}

TEST(decoding_with_adapters_allocates_nothing) {
  fixture_file model = fixture_make(&FIXTURE_DEFAULT);
  const wick_config config = config_of(64, 1);
  wick_engine *engine = rig_engine(&config, &model);
  const rig_adapter rig = rig_usual(3, GGML_TYPE_F32, 4);
  const wick_adapter_use use = {rig_add(engine, &rig), 1};
  rig_talk talk = {.count = 0};
  rig_ask(engine, &talk, 5, &use, 1, false);
  while (talk.asked[0].count == 0) {
    wick_step(engine, 0);
    fixture_take_all(engine, rig_take, &talk);
  }
  const uint64_t calls = engine->memory.calls;
  rig_run(engine, &talk);
  CHECK_EQ_UINT(talk.asked[0].count, RIG_ANSWER);
  CHECK_EQ_UINT(engine->memory.calls, calls);
  wick_engine_destroy(engine);
  free(model.bytes);
}

// The pages are sufficient for one request: the others are preempted repeatedly, and their tokens
// are recomputed with their own adapters.
TEST(preempted_requests_keep_their_adapters) {
  fixture_file model = fixture_make(&FIXTURE_DEFAULT);
  const rig_adapter rigs[2] = {rig_usual(1, GGML_TYPE_F32, 4), rig_usual(2, GGML_TYPE_F32, 8)};
  rig_talk alone = {.count = 0}, talk = {.count = 0};
  ask_alone(&model, rigs, &alone);
  wick_config config = config_of(24, 1);
  config.kv_tokens_max = 128;
  wick_engine *engine = rig_engine(&config, &model);
  uint32_t ids[2];
  wick_stats stats;
  add_two(engine, rigs, ids);
  for (uint32_t kind = 0; kind < KINDS; kind++) {
    wick_adapter_use uses[2];
    rig_ask(engine, &talk, 7, uses, uses_of(kind, ids, uses), false);
    for (int i = 0; i < 30; i++) wick_step(engine, 0);
  }
  rig_run(engine, &talk);
  wick_stats_get(engine, &stats);
  CHECK(stats.preempted > 0);
  for (uint32_t kind = 0; kind < KINDS; kind++)
    rig_check_same(&alone.asked[kind], &talk.asked[kind]);
  rig_free(&talk);
  rig_free(&alone);
  wick_engine_destroy(engine);
  free(model.bytes);
}

// The completions of a prompt continue from the first one's pages, with its adapters.
TEST(completions_share_their_adapters) {
  enum { COUNT = 3 };
  fixture_file model = fixture_make(&FIXTURE_DEFAULT);
  const wick_config config = config_of(64, 1);
  wick_engine *engine = rig_engine(&config, &model);
  const rig_adapter rig = rig_usual(3, GGML_TYPE_F32, 4);
  const wick_adapter_use use = {rig_add(engine, &rig), 1};
  rig_talk alone = {.count = 0}, talk = {.count = COUNT};
  rig_ask(engine, &alone, 5, &use, 1, false);
  rig_run(engine, &alone);
  int32_t prompt[RIG_PROMPT];
  uint64_t seed = 5;
  for (uint32_t i = 0; i < RIG_PROMPT; i++) prompt[i] = (int32_t)(random_u64(&seed) % 250);
  wick_request request = fixture_request(prompt, RIG_PROMPT, RIG_ANSWER);
  uint32_t id = 0;
  request.adapters = &use;
  request.adapter_count = 1;
  request.completions = COUNT;
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, NULL), WICK_OK);
  for (uint32_t i = 0; i < COUNT; i++) talk.asked[i].id = id + i;
  wick_adapter_info info;
  CHECK(wick_adapter_get(engine, 0, &info));
  CHECK_EQ_UINT(info.users, COUNT);
  rig_run(engine, &talk);
  for (uint32_t i = 0; i < COUNT; i++) rig_check_same(&alone.asked[0], &talk.asked[i]);
  wick_engine_destroy(engine);
  free(model.bytes);
}

// ---- tokens evaluated with adapters ----

static uint32_t ask_cached(wick_engine *engine, uint32_t id, float scale) {
  rig_talk talk = {.count = 0};
  const wick_adapter_use use = {id, scale};
  rig_ask(engine, &talk, 5, &use, id == 0 ? 0 : 1, false);
  rig_run(engine, &talk);
  return talk.asked[0].cached;
}

TEST(the_prefix_cache_separates_adapters_and_scales) {
  enum { WHOLE = 32 };  // tokens of RIG_PROMPT in full pages
  fixture_file model = fixture_make(&FIXTURE_DEFAULT);
  const wick_config config = config_of(64, 1);
  wick_engine *engine = rig_engine(&config, &model);
  const rig_adapter rig = rig_usual(1, GGML_TYPE_F32, 4), other = rig_usual(2, GGML_TYPE_F32, 4);
  const uint32_t first = rig_add(engine, &rig), second = rig_add(engine, &other);
  CHECK_EQ_UINT(ask_cached(engine, 0, 0), 0);
  CHECK_EQ_UINT(ask_cached(engine, 0, 0), WHOLE);
  CHECK_EQ_UINT(ask_cached(engine, first, 1), 0);
  CHECK_EQ_UINT(ask_cached(engine, first, 1), WHOLE);
  CHECK_EQ_UINT(ask_cached(engine, first, 0.5f), 0);
  CHECK_EQ_UINT(ask_cached(engine, second, 1), 0);
  CHECK_EQ_UINT(ask_cached(engine, second, 0), WHOLE);  // scale 0 disables it
  // the same file, loaded again, is the same adapter
  CHECK_EQ_INT(wick_adapter_remove(engine, first, NULL), WICK_OK);
  const uint32_t again = rig_add(engine, &rig);
  CHECK(again != first);
  CHECK_EQ_UINT(ask_cached(engine, again, 1), WHOLE);
  wick_engine_destroy(engine);
  free(model.bytes);
}

// No tenant name can give the same salt as a tenant's adapters.
TEST(tenant_names_never_collide_with_adapters) {
  const adapter_marks marks = {1, {{7, 0.5f, 0}}};
  uint8_t name[32] = {0};
  memcpy(name + 16, &marks.of[0], 16);
  const cache_salt salt = adapter_salt((cache_salt){0}, &marks);
  CHECK(!salt_is_same(salt, salt_of(name, sizeof name)));
  CHECK(!salt_is_same(salt, adapter_salt((cache_salt){1, 0}, &marks)));
  CHECK(salt_is_same((cache_salt){1, 2}, adapter_salt((cache_salt){1, 2}, &(adapter_marks){0})));
}

typedef struct session_rig {
  fixture_file model;
  wick_engine *engine;
  uint32_t first, second, session;
  rig_talk talk;
} session_rig;

static void open_session(session_rig *s) {
  const wick_config config = config_of(64, 1);
  const rig_adapter rig = rig_usual(1, GGML_TYPE_F32, 4), other = rig_usual(2, GGML_TYPE_F32, 4);
  memset(s, 0, sizeof *s);
  s->model = fixture_make(&FIXTURE_DEFAULT);
  s->engine = rig_engine(&config, &s->model);
  s->first = rig_add(s->engine, &rig);
  s->second = rig_add(s->engine, &other);
  CHECK_EQ_INT(wick_session_create(s->engine, &s->session, NULL), WICK_OK);
}

static void close_session(session_rig *s) {
  wick_engine_destroy(s->engine);
  free(s->model.bytes);
}

// Continues the session with one adapter (0: none). Returns the status; *outcome is the result.
static wick_status go_on(session_rig *s, uint32_t session, uint32_t adapter, rig_asked *outcome) {
  static const int32_t MORE[] = {1, 2, 3, 4, 5};
  const wick_adapter_use use = {adapter, 1};
  wick_request request = fixture_request(MORE, 5, RIG_ANSWER);
  wick_error error = {0};
  request.session = session;
  request.adapters = &use;
  request.adapter_count = adapter == 0 ? 0 : 1;
  s->talk = (rig_talk){.count = 1};
  const wick_status status = wick_request_submit(s->engine, &request, &s->talk.asked[0].id, &error);
  if (status == WICK_OK) rig_run(s->engine, &s->talk);
  *outcome = s->talk.asked[0];
  return status;
}

// Checks that the same tokens, evaluated with the adapter in a fresh session, give the same result.
static void check_as_fresh(session_rig *s, uint32_t session, uint32_t adapter,
                           const rig_asked *outcome) {
  const int32_t *tokens;
  uint32_t count;
  const wick_adapter_use use = {adapter, 1};
  CHECK_EQ_INT(wick_session_tokens(s->engine, session, &tokens, &count, NULL), WICK_OK);
  wick_request request = fixture_request(tokens, count - outcome->count, outcome->count);
  request.adapters = &use;
  request.adapter_count = adapter == 0 ? 0 : 1;
  request.salt = "fresh";
  request.salt_bytes = 5;
  s->talk = (rig_talk){.count = 1};
  CHECK_EQ_INT(wick_request_submit(s->engine, &request, &s->talk.asked[0].id, NULL), WICK_OK);
  rig_run(s->engine, &s->talk);
  CHECK_EQ_UINT(s->talk.asked[0].count, outcome->count);
  CHECK_EQ_MEM(s->talk.asked[0].tokens, outcome->tokens, outcome->count * sizeof(int32_t));
}

TEST(a_session_is_recomputed_with_different_adapters) {
  session_rig s;
  rig_asked outcome;
  open_session(&s);
  const uint32_t turns[] = {0, s.first, s.first, s.second, 0};
  for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
    CHECK_EQ_INT(go_on(&s, s.session, turns[i], &outcome), WICK_OK);
    const bool is_same = i == 2;
    CHECK_EQ_INT(outcome.cached > 0, is_same);
    check_as_fresh(&s, s.session, turns[i], &outcome);
  }
  uint32_t child;
  CHECK_EQ_INT(go_on(&s, s.session, s.first, &outcome), WICK_OK);
  CHECK_EQ_INT(wick_session_fork(s.engine, s.session, &child, NULL), WICK_OK);
  CHECK_EQ_UINT(s.engine->sessions.items[1]->adapters.count, 1);
  CHECK_EQ_INT(go_on(&s, child, s.first, &outcome), WICK_OK);
  CHECK(outcome.cached > 0);
  check_as_fresh(&s, child, s.first, &outcome);
  close_session(&s);
}

// If other requests need the pages of an idle session, its tokens stay in the prefix cache.
// Requests without its adapter do not find them there.
TEST(pages_taken_from_a_session_keep_its_adapters) {
  fixture_file model = fixture_make(&FIXTURE_DEFAULT);
  rig_talk alone = {.count = 0}, talk = {.count = 0};
  const rig_adapter rigs[2] = {rig_usual(1, GGML_TYPE_F32, 4), rig_usual(2, GGML_TYPE_F32, 4)};
  ask_alone(&model, rigs, &alone);
  wick_config config = config_of(64, 1);
  config.kv_tokens_max = 128;
  wick_engine *engine = rig_engine(&config, &model);
  const wick_adapter_use use = {rig_add(engine, &rigs[0]), 1};
  uint32_t session, id;
  CHECK_EQ_INT(wick_session_create(engine, &session, NULL), WICK_OK);
  int32_t prompt[RIG_PROMPT], others[RIG_PROMPT];
  uint64_t seed = 7;
  for (uint32_t i = 0; i < RIG_PROMPT; i++) prompt[i] = (int32_t)(random_u64(&seed) % 250);
  for (uint32_t i = 0; i < RIG_PROMPT; i++) others[i] = (int32_t)(random_u64(&seed) % 250);
  wick_request request = fixture_request(prompt, RIG_PROMPT, 2);
  request.adapters = &use;
  request.adapter_count = 1;
  request.session = session;
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, NULL), WICK_OK);
  rig_run(engine, &talk);
  request = fixture_request(others, RIG_PROMPT, 70);
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, NULL), WICK_OK);
  rig_run(engine, &talk);
  CHECK_EQ_UINT(store_tokens(engine->store, engine->sessions.items[0]->sequence), 0);
  rig_ask(engine, &talk, 7, NULL, 0, false);
  rig_run(engine, &talk);
  CHECK_EQ_UINT(talk.asked[0].cached, 0);
  rig_check_same(&alone.asked[0], &talk.asked[0]);
  rig_free(&alone);
  wick_engine_destroy(engine);
  free(model.bytes);
}

TEST(a_session_that_dropped_tokens_keeps_its_adapters) {
  session_rig s;
  rig_asked outcome;
  open_session(&s);
  CHECK_EQ_INT(go_on(&s, s.session, s.first, &outcome), WICK_OK);
  CHECK_EQ_INT(go_on(&s, s.session, s.first, &outcome), WICK_OK);
  wick_request drop = fixture_request(NULL, 0, 0);
  drop.session = s.session;
  drop.prefill_only = true;
  drop.drop_first = 2;
  drop.drop_last = 6;
  s.talk = (rig_talk){.count = 1};
  CHECK_EQ_INT(wick_request_submit(s.engine, &drop, &s.talk.asked[0].id, NULL), WICK_OK);
  rig_run(s.engine, &s.talk);
  CHECK_EQ_UINT(s.talk.asked[0].finish, WICK_FINISH_LENGTH);
  CHECK_EQ_INT(go_on(&s, s.session, s.second, &outcome), WICK_E_MISMATCH);
  CHECK_EQ_INT(go_on(&s, s.session, 0, &outcome), WICK_E_MISMATCH);
  CHECK_EQ_INT(go_on(&s, s.session, s.first, &outcome), WICK_OK);
  CHECK(outcome.cached > 0);
  close_session(&s);
}

typedef struct saved_state {
  fixture_file file;
  size_t read_bytes;
} saved_state;

static bool write_saved(void *context, const void *bytes, size_t size_bytes) {
  return fixture_write(&((saved_state *)context)->file, bytes, size_bytes);
}

static bool read_saved(void *context, void *bytes, size_t size_bytes) {
  saved_state *saved = context;
  if (size_bytes > saved->file.size_bytes - saved->read_bytes) return false;
  memcpy(bytes, saved->file.bytes + saved->read_bytes, size_bytes);
  saved->read_bytes += size_bytes;
  return true;
}

static wick_status load_saved(wick_engine *engine, saved_state *saved, uint64_t size_bytes,
                              uint32_t *session, wick_error *error) {
  const wick_state_source source = {saved, read_saved, size_bytes};
  wick_state_loaded loaded;
  saved->read_bytes = 0;
  const wick_status status = wick_state_load(engine, &source, &loaded, error);
  *session = loaded.session;
  return status;
}

TEST(saved_sessions_record_their_adapters) {
  session_rig s;
  rig_asked outcome;
  saved_state saved = {.read_bytes = 0};
  const wick_state_sink sink = {&saved, write_saved};
  uint64_t size_bytes;
  uint32_t session;
  wick_error error = {0};
  open_session(&s);
  CHECK_EQ_INT(go_on(&s, s.session, s.first, &outcome), WICK_OK);
  CHECK_EQ_INT(wick_state_bytes(s.engine, s.session, &size_bytes, NULL), WICK_OK);
  CHECK_EQ_INT(wick_state_save(s.engine, s.session, &sink, NULL), WICK_OK);
  CHECK_EQ_UINT(size_bytes, saved.file.size_bytes);
  // with the same adapters the session continues, with different ones it is recomputed
  CHECK_EQ_INT(load_saved(s.engine, &saved, size_bytes, &session, &error), WICK_OK);
  CHECK_EQ_INT(go_on(&s, session, s.first, &outcome), WICK_OK);
  CHECK(outcome.cached > 0);
  check_as_fresh(&s, session, s.first, &outcome);
  CHECK_EQ_INT(load_saved(s.engine, &saved, size_bytes, &session, &error), WICK_OK);
  CHECK_EQ_INT(go_on(&s, session, s.second, &outcome), WICK_OK);
  CHECK_EQ_UINT(outcome.cached, 0);
  check_as_fresh(&s, session, s.second, &outcome);
  // damaged and truncated states are rejected
  for (size_t at = 0; at < 64; at++) {
    saved.file.bytes[at] ^= 0x40;
    CHECK(load_saved(s.engine, &saved, size_bytes, &session, &error) != WICK_OK);
    saved.file.bytes[at] ^= 0x40;
    CHECK(load_saved(s.engine, &saved, at, &session, &error) != WICK_OK);
  }
  // without its adapter the state is rejected because of the fingerprint
  CHECK_EQ_INT(wick_adapter_remove(s.engine, s.first, NULL), WICK_OK);
  CHECK_EQ_INT(load_saved(s.engine, &saved, size_bytes, &session, &error), WICK_E_MISMATCH);
  CHECK_EQ_INT(error.subject, WICK_SUBJECT_ADAPTERS);
  CHECK(strstr(error.message, "not loaded") != NULL);
  CHECK_EQ_UINT(s.engine->sessions.count, 3);
  free(saved.file.bytes);
  close_session(&s);
}

// ---- saved sessions with a correct checksum and invalid adapters ----

enum { SAVED_TAIL_AT = 12, SAVED_COUNT_AT = 32, SAVED_MARKS_AT = 40, SAVED_SCALE_AT = 48 };

static uint32_t saved_tail(const saved_state *saved) {
  uint32_t tail;
  memcpy(&tail, saved->file.bytes + SAVED_TAIL_AT, sizeof tail);
  return tail;
}

// Writes the checksum of the head, of `count` adapters and of the tokens that have no page.
static void sum_saved(saved_state *saved, uint64_t count) {
  const size_t tail_at = SAVED_MARKS_AT + (size_t)count * 16, tail_bytes = saved_tail(saved) * 4u;
  uint64_t sum = hash_bytes(saved->file.bytes, SAVED_COUNT_AT, 0);
  sum = hash_bytes(saved->file.bytes + SAVED_COUNT_AT, 8, sum);
  sum = hash_bytes(saved->file.bytes + SAVED_MARKS_AT, (size_t)count * 16, sum);
  sum = hash_bytes(saved->file.bytes + tail_at, tail_bytes, sum);
  memcpy(saved->file.bytes + tail_at + tail_bytes, &sum, sizeof sum);
}

static void refuse_saved(wick_engine *engine, saved_state *saved, const char *message) {
  wick_error error = {0};
  uint32_t session;
  CHECK_EQ_INT(load_saved(engine, saved, saved->file.size_bytes, &session, &error), WICK_E_CORRUPT);
  CHECK_EQ_INT(error.status, WICK_E_CORRUPT);
  CHECK_EQ_UINT(error.offset_bytes, SAVED_COUNT_AT);
  CHECK_EQ_STR(error.message, message);
}

TEST(invalid_adapters_are_rejected_despite_a_correct_checksum) {
  session_rig s;
  rig_asked outcome;
  saved_state saved = {.read_bytes = 0};
  const wick_state_sink sink = {&saved, write_saved};
  open_session(&s);
  CHECK_EQ_INT(go_on(&s, s.session, s.first, &outcome), WICK_OK);
  CHECK_EQ_INT(wick_state_save(s.engine, s.session, &sink, NULL), WICK_OK);
  const uint32_t sessions = s.engine->sessions.count;
  uint8_t *kept = malloc(saved.file.size_bytes);
  REQUIRE(kept != NULL);
  memcpy(kept, saved.file.bytes, saved.file.size_bytes);
  sum_saved(&saved, 1);
  CHECK_EQ_MEM(saved.file.bytes, kept, saved.file.size_bytes);  // the layout is as assumed
  const float scales[] = {0, -0.0f, f32_of_bits(0x7fc00000), f32_of_bits(0xff800000)};
  for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
    memcpy(saved.file.bytes + SAVED_SCALE_AT, &scales[i], sizeof *scales);
    sum_saved(&saved, 1);
    refuse_saved(s.engine, &saved, "an adapter's scale is invalid");
  }
  memcpy(saved.file.bytes, kept, saved.file.size_bytes);
  const uint64_t counts[] = {0, WICK_ADAPTERS_MAX + 1, UINT64_MAX};
  const char *messages[] = {"the saved session has 0 adapters", "the saved session has 9 adapters",
                            "the saved session has 18446744073709551615 adapters"};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    memcpy(saved.file.bytes + SAVED_COUNT_AT, &counts[i], sizeof *counts);
    refuse_saved(s.engine, &saved, messages[i]);
  }
  CHECK_EQ_UINT(s.engine->sessions.count, sessions);
  free(kept);
  free(saved.file.bytes);
  close_session(&s);
}

// ---- adding and removing ----

TEST(an_adapter_in_use_cannot_be_removed) {
  fixture_file model = fixture_make(&FIXTURE_DEFAULT);
  const wick_config config = config_of(64, 1);
  wick_engine *engine = rig_engine(&config, &model);
  wick_memory_state before, after;
  wick_plan plan_before, plan;
  wick_adapter_info info;
  wick_error error = {0};
  wick_memory_get_state(engine, &before);
  wick_memory_plan(engine, &plan_before, NULL);
  CHECK(!wick_adapter_get(engine, 0, &info));
  const rig_adapter rig = rig_usual(1, GGML_TYPE_F32, 4), other = rig_usual(2, GGML_TYPE_F32, 5);
  const wick_adapter_use use = {rig_add(engine, &rig), 1};
  const uint32_t second = rig_add(engine, &other);
  CHECK(wick_adapter_get(engine, 0, &info));
  CHECK_EQ_UINT(info.id, use.adapter);
  CHECK_EQ_UINT(info.tensors, 7);
  CHECK_EQ_UINT(info.rank, 4);
  CHECK_EQ_F32(info.alpha, 6);
  CHECK(info.is_complete);
  const uint64_t bytes = info.bytes;
  CHECK(wick_adapter_get(engine, 1, &info));
  CHECK(!wick_adapter_get(engine, 2, &info));
  CHECK_EQ_UINT(info.id, second);
  wick_memory_plan(engine, &plan, NULL);
  CHECK_EQ_UINT(plan.adapter_bytes, bytes + info.bytes);
  CHECK_EQ_UINT(plan.total_bytes, plan_before.total_bytes + plan.adapter_bytes);
  wick_memory_get_state(engine, &after);
  CHECK(after.bytes_now - before.bytes_now >= plan.adapter_bytes);
  rig_talk talk = {.count = 0};
  const rig_asked *asked = rig_ask(engine, &talk, 5, &use, 1, false);
  CHECK(wick_adapter_get(engine, 0, &info));
  CHECK_EQ_UINT(info.users, 1);
  CHECK_EQ_INT(wick_adapter_remove(engine, use.adapter, &error), WICK_E_BUSY);
  CHECK_EQ_INT(error.subject, WICK_SUBJECT_ADAPTERS);
  CHECK_EQ_INT(wick_adapter_remove(engine, second, NULL), WICK_OK);
  CHECK_EQ_INT(wick_request_cancel(engine, asked->id), WICK_OK);
  rig_run(engine, &talk);
  CHECK_EQ_INT(wick_adapter_remove(engine, use.adapter, NULL), WICK_OK);
  CHECK_EQ_INT(wick_adapter_remove(engine, use.adapter, NULL), WICK_E_ARG);
  wick_memory_get_state(engine, &after);
  CHECK_EQ_UINT(after.blocks_now, before.blocks_now);
  CHECK_EQ_UINT(after.bytes_now, before.bytes_now);
  wick_engine_destroy(engine);
  free(model.bytes);
}

TEST(requests_with_invalid_adapter_choices_are_rejected) {
  fixture_file model = fixture_make(&FIXTURE_DEFAULT);
  const wick_config config = config_of(64, 1);
  wick_engine *engine = rig_engine(&config, &model);
  const rig_adapter rig = rig_usual(1, GGML_TYPE_F32, 4);
  const uint32_t id = rig_add(engine, &rig);
  uint32_t loading = 0, request_id;
  CHECK_EQ_INT(wick_adapter_create(engine, &loading, NULL), WICK_OK);
  const float not_a_number = f32_of_bits(0x7fc00000), infinite = f32_of_bits(0x7f800000);
  const struct {
    wick_adapter_use uses[WICK_ADAPTERS_MAX + 1];
    uint32_t count;
    wick_status status;
  } WRONG[] = {{{{99, 1}}, 1, WICK_E_ARG},
               {{{0, 1}}, 1, WICK_E_ARG},
               {{{id, not_a_number}}, 1, WICK_E_ARG},
               {{{id, infinite}}, 1, WICK_E_ARG},
               {{{id, 1}, {id, 1}}, 2, WICK_E_ARG},
               {{{id, 0}, {id, 0}}, 2, WICK_E_ARG},
               {{{loading, 1}}, 1, WICK_E_NODATA},
               {{{0, 0}}, WICK_ADAPTERS_MAX + 1, WICK_E_ARG}};
  const int32_t prompt[] = {1, 2};
  for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
    wick_request request = fixture_request(prompt, 2, 1);
    wick_embed_text text = {.tokens = prompt, .token_count = 2};
    wick_embed_request embed = {.texts = &text, .text_count = 1};
    wick_error error = {0};
    request.adapters = embed.adapters = WRONG[i].uses;
    request.adapter_count = embed.adapter_count = WRONG[i].count;
    CHECK_EQ_INT(wick_request_submit(engine, &request, &request_id, &error), WRONG[i].status);
    CHECK_EQ_INT(error.subject, WICK_SUBJECT_ADAPTERS);
    CHECK_EQ_STR(wick_subject_name(error.subject), "adapters");
    CHECK_EQ_INT(wick_embed(engine, &embed, NULL), WRONG[i].status);
  }
  wick_adapter_info info;
  CHECK(wick_adapter_get(engine, 0, &info));
  CHECK_EQ_UINT(info.users, 0);
  wick_engine_destroy(engine);  // one adapter is still loading
  free(model.bytes);
}

// ---- embeddings ----

static void embed(wick_engine *engine, const wick_adapter_use *uses, uint32_t count,
                  float vector[64]) {
  const int32_t prompt[] = {1, 2, 3, 4, 5, 6};
  const wick_embed_text text = {.tokens = prompt, .token_count = 6};
  const wick_embed_request request = {.texts = &text,
                                      .text_count = 1,
                                      .pooling = WICK_POOLING_MEAN,
                                      .adapters = uses,
                                      .adapter_count = count};
  wick_step_result result = WICK_STEP_PROGRESS;
  wick_vectors vectors = {0};
  CHECK_EQ_INT(wick_embed(engine, &request, NULL), WICK_OK);
  if (count != 0) CHECK_EQ_INT(wick_adapter_remove(engine, uses->adapter, NULL), WICK_E_BUSY);
  while (result == WICK_STEP_PROGRESS) {
    CHECK_EQ_INT(wick_embed_step(engine, 0, &result, NULL), WICK_OK);
  }
  CHECK(wick_embed_get(engine, 0, &vectors));
  memcpy(vector, vectors.values, 64 * sizeof *vector);
  wick_embed_end(engine);
}

TEST(embeddings_use_adapters) {
  fixture_file model = fixture_make(&FIXTURE_DEFAULT);
  const wick_config config = config_of(4, 1), other = config_of(64, 2);
  float plain[64], first[64], again[64], without[64];
  wick_engine *engine = rig_engine(&config, &model), *bigger = rig_engine(&other, &model);
  embed(engine, NULL, 0, plain);
  const rig_adapter rig = rig_usual(1, GGML_TYPE_F32, 4);
  const wick_adapter_use use = {rig_add(engine, &rig), 1};
  const wick_adapter_use same = {rig_add(bigger, &rig), 1};
  embed(engine, &use, 1, first);
  embed(bigger, &same, 1, again);
  embed(engine, NULL, 0, without);
  CHECK(plain[0] != first[0] && plain[63] != first[63]);
  CHECK_EQ_MEM(first, again, sizeof first);
  CHECK_EQ_MEM(plain, without, sizeof plain);
  CHECK_EQ_INT(wick_adapter_remove(engine, use.adapter, NULL), WICK_OK);
  wick_engine_destroy(engine);
  wick_engine_destroy(bigger);
  free(model.bytes);
}
