// Tests the blocks of each family: a block takes exactly the scratch memory that it has reserved,
// and its ops are measured: matrix products count the multiply-adds and bytes of the file's
// weights.
#include <stdio.h>

#include "fixture_model.h"
#include "model/blocks/padded_heads.h"
#include "model_builder.h"

enum { PROMPT = 150, ANSWER = 6, LAYERS = 3, BLOCKS_MAX = 2 * LAYERS };

// ---- scratch ----

// Wraps a block and watches the arena.
typedef struct watched_block {
  model_block_ops ops;
  const model_block_ops *real;
  const model_block *block;
  uint64_t most_bytes;  // taken by any run
} watched_block;

static watched_block watched[BLOCKS_MAX];
static uint32_t watched_count;
static uint64_t begin_bytes;  // taken before the first block

static wick_status run_watched(const model_block *block, model_pass *pass, wick_error *error) {
  watched_block *w = watched;
  while (w->block != block) w++;
  const uint64_t before = pass->arena.used_bytes;
  if (begin_bytes == 0) begin_bytes = before;
  CHECK_EQ_UINT(before, begin_bytes);  // the memory of the previous block was released
  pass->arena.peak_bytes = before;
  const wick_status status = w->real->run(block, pass, error);
  const uint64_t taken = pass->arena.peak_bytes - before;
  if (taken > w->most_bytes) w->most_bytes = taken;
  return status;
}

static void watch(model_block *block) {
  watched_block *w = &watched[watched_count++];
  *w = (watched_block){.real = block->ops, .block = block, .ops = *block->ops};
  w->ops.run = run_watched;
  block->ops = &w->ops;
}

// Checks that full batches take exactly what is reserved. The last layer's feed-forward only
// processes rows whose logits are needed.
static void check_scratch(const loaded_model *model, uint32_t batch_tokens, uint32_t threads) {
  for (uint32_t i = 0; i < watched_count; i++) {
    scratch_arena arena = {model->kernels, batch_tokens, threads, NULL, 64, 64};
    watched[i].real->reserve(watched[i].block, &arena);
    const uint64_t reserved = arena.peak_bytes - 64, most = watched[i].most_bytes;
    const bool is_right = i + 1 == watched_count ? most <= reserved : most == reserved;
    if (CHECK(is_right)) continue;
    printf("#   block %u: %s: takes %llu bytes, reserved %llu\n", i, watched[i].real->name,
           (unsigned long long)most, (unsigned long long)reserved);
  }
}

// ---- ops ----

typedef struct work {
  uint64_t macs, bytes;
} work;

// Counts the operands of one token except keys and values: all matrices, and only the experts in
// use.
static work work_of_weights(const loaded_model *model, uint32_t used) {
  work work = {0};
  for (uint32_t i = 0; i < model->binding_count; i++) {
    const weight_tensor *matrix = model->bindings[i].matrix;
    if (matrix == NULL || (matrix == &model->embedding && !model->is_tied)) continue;
    const uint32_t count = matrix->dims[2] > 1 ? used : 1;
    uint64_t bytes = 0;
    model->kernels->types[matrix->type].matrix_bytes(matrix->dims[1], matrix->dims[0], &bytes);
    work.macs += (uint64_t)count * matrix->dims[0] * matrix->dims[1];
    work.bytes += count * bytes;
  }
  return work;
}

static uint32_t layers_with_pages(const loaded_model *model) {
  uint32_t layers = 0;
  for (uint32_t i = 0; i < model->group_count; i++) layers += model->groups[i].layers;
  return layers;
}

static void check_rows(const op_record *record, uint32_t dispatches, uint64_t values) {
  CHECK_EQ_UINT(record->latency.dispatches, dispatches);
  CHECK_EQ_UINT(record->bytes, dispatches * values * sizeof(float));
}

// Checks decoding: ANSWER - 1 passes of one token, at positions PROMPT and above.
static void check_ops(const wick_engine *engine, const built_choice *choice, uint32_t used) {
  static const op_kind PRODUCTS[] = {OP_QKV,   OP_ATTN_OUTPUT, OP_GATE_UP, OP_DOWN,
                                     OP_ROUTE, OP_EXPERTS,     OP_LOGITS};
  const loaded_model *model = engine->model;
  const op_record *decode = engine->ops->records[PASS_DECODE];
  const uint32_t passes = ANSWER - 1, pages = layers_with_pages(model);
  const uint32_t hidden = model->config.hidden, layers = choice->layers;
  const work wanted = work_of_weights(model, used);
  const bool has_experts = used != 0;
  work found = {0};
  for (size_t i = 0; i < sizeof PRODUCTS / sizeof *PRODUCTS; i++) {
    found.macs += decode[PRODUCTS[i]].macs;
    found.bytes += decode[PRODUCTS[i]].bytes;
  }
  if (has_experts) {  // adding up their results also counts as an experts op
    found.bytes -= (uint64_t)passes * layers * hidden * (used + 1) * sizeof(float);
  }
  CHECK_EQ_UINT(found.macs, passes * wanted.macs);
  CHECK_EQ_UINT(found.bytes, passes * wanted.bytes);
  uint64_t positions = 0;
  for (uint32_t i = 0; i < passes; i++) positions += PROMPT + i + 1;
  const uint64_t width = (uint64_t)model->config.heads * model->config.head_dim;
  CHECK_EQ_UINT(decode[OP_ATTENTION].macs, 2 * positions * width * pages);
  CHECK_EQ_UINT(decode[OP_ATTENTION].latency.dispatches, passes * pages);
  CHECK_EQ_UINT(decode[OP_KV_STORE].latency.dispatches, passes * pages);
  CHECK_EQ_UINT(decode[OP_ATTENTION].bytes * passes, decode[OP_KV_STORE].bytes * positions);
  check_rows(&decode[OP_EMBED], passes, hidden);
  check_rows(&decode[OP_NORM], passes * (2 * layers + 1), 2ull * hidden);
  // Mamba has three input projections
  const uint32_t further = choice->family == BUILT_JAMBA ? 2 * (layers - pages) : 0;
  CHECK_EQ_UINT(decode[OP_QKV].latency.dispatches, passes * (layers + further));
  CHECK_EQ_UINT(decode[OP_ATTN_OUTPUT].latency.dispatches, passes * layers);
  CHECK_EQ_UINT(decode[OP_LOGITS].latency.dispatches, passes);
  CHECK_EQ_UINT(decode[OP_EXPERTS].latency.dispatches, has_experts ? 3 * passes * layers : 0);
  CHECK_EQ_UINT(decode[OP_ROUTE].latency.dispatches, has_experts ? passes * layers : 0);
  if (has_experts) return;
  check_rows(&decode[OP_SILU], passes * layers, 3ull * model->config.ffn);
  CHECK_EQ_UINT(decode[OP_GATE_UP].latency.dispatches, passes * layers);
  CHECK_EQ_UINT(decode[OP_DOWN].latency.dispatches, passes * layers);
}

// ---- in an engine ----

static void take_none(void *context, const wick_event *event, const uint8_t *after) {
  (void)context;
  (void)event;
  (void)after;
}

static void check_family(const built_choice *choice, uint32_t batch_tokens, uint32_t threads) {
  static model_builder built;
  builder_init(&built, choice);
  const memory_file written = builder_write(&built);
  builder_free(&built);
  const fixture_file file = {written.bytes, written.size_bytes, written.size_bytes};
  wick_config config;
  wick_config_default(&config);
  config.metrics = true;
  config.batch_tokens = batch_tokens;
  config.threads = check_threads(threads);
  wick_engine *engine = NULL;
  wick_error error = {0};
  REQUIRE(wick_engine_create(&config, &engine, &error) == WICK_OK);
  REQUIRE(fixture_load(engine, &file, 0, &error) == WICK_OK);
  watched_count = 0;
  begin_bytes = 0;
  for (uint32_t i = 0; i < choice->layers; i++) {
    watch(engine->model->layers[i].mixer);
    watch(engine->model->layers[i].feed_forward);
  }
  int32_t prompt[PROMPT];
  for (int i = 0; i < PROMPT; i++) prompt[i] = 1 + i * 5 % 200;
  const wick_request request = fixture_request(prompt, PROMPT, ANSWER);
  uint32_t id, used = 0;
  REQUIRE(wick_request_submit(engine, &request, &id, &error) == WICK_OK);
  fixture_run(engine, take_none, NULL);
  check_scratch(engine->model, batch_tokens, config.threads);
  const bool has_experts =
      choice->family == BUILT_LLAMA_EXPERTS || choice->family == BUILT_QWEN3MOE;
  if (has_experts) used = 2;
  check_ops(engine, choice, used);
  wick_engine_destroy(engine);
  free(written.bytes);
}

TEST(each_block_takes_its_reserved_scratch_and_measures_its_ops) {
  static const ggml_type TYPES[] = {GGML_TYPE_F32, GGML_TYPE_Q8_0};
  for (int family = 0; family < BUILT_FAMILIES; family++) {
    for (uint32_t i = 0; i < 2; i++) {
      const built_choice choice = {BUILT_SPM, (built_family)family, TYPES[i], LAYERS, 256};
      check_family(&choice, 16, 1 + i);
      check_family(&choice, 64, 1);
    }
  }
}

// For heads of each width, the padding is 0, nothing else is written, and unpadding restores the
// values.
TEST(heads_are_padded_to_a_multiple_of_four_and_unpadded) {
  enum { HEADS = 3, WIDEST = 9, ROOM = HEADS * 12 + 1 };
  for (uint32_t dim = 1; dim <= WIDEST; dim++) {
    float from[HEADS * WIDEST], padded[ROOM], back[HEADS * WIDEST + 1];
    const uint32_t wide = padded_dim(dim);
    CHECK_EQ_UINT(wide % 4, 0);
    CHECK(wide >= dim && wide < dim + 4);
    for (uint32_t i = 0; i < HEADS * WIDEST; i++) from[i] = 1 + (float)i;
    for (uint32_t i = 0; i < ROOM; i++) padded[i] = -1;
    heads_pad(from, HEADS, dim, padded);
    for (uint32_t i = 0; i < HEADS * wide; i++) {
      CHECK(padded[i] == (i % wide < dim ? from[i / wide * dim + i % wide] : 0));
    }
    CHECK(padded[HEADS * wide] == -1);
    back[HEADS * dim] = -1;
    heads_unpad(padded, HEADS, dim, back);
    CHECK(memcmp(back, from, HEADS * dim * sizeof(float)) == 0);
    CHECK(back[HEADS * dim] == -1);
  }
}
