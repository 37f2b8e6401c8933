// Some architectures compute the same function of the same tensors: renaming a file's architecture
// leaves its logits unchanged.
#include <stdio.h>

#include "base/text.h"
#include "fixture_model.h"
#include "model_builder.h"
#include "shared_files.h"

enum { PROMPT = 9, VOCAB_MAX = 512 };

typedef struct answer {
  wick_status status;
  float logits[PROMPT][VOCAB_MAX];
  uint32_t vocab;
} answer;

static void keep_logits(void *context, uint32_t position, const float *logits, uint32_t vocab) {
  answer *to = context;
  if (!CHECK(vocab <= VOCAB_MAX)) return;
  to->vocab = vocab;
  if (position < PROMPT) memcpy(to->logits[position], logits, vocab * sizeof *logits);
}

static void take_nothing(void *context, const wick_event *event, const uint8_t *after) {
  (void)context;
  (void)event;
  (void)after;
}

static void ask(const memory_file *built, answer *out) {
  static const int32_t TOKENS[PROMPT] = {1, 20, 30, 40, 20, 99, 7, 200, 31};
  const fixture_file file = {built->bytes, built->size_bytes, built->size_bytes};
  wick_config config;
  wick_config_default(&config);
  config.k_type = config.v_type = WICK_KV_F32;
  wick_engine *engine = NULL;
  wick_error error = {0};
  memset(out, 0, sizeof *out);
  REQUIRE(wick_engine_create(&config, &engine, &error) == WICK_OK);
  out->status = fixture_load(engine, &file, 0, &error);
  if (!CHECK_EQ_INT(out->status, WICK_OK)) printf("#   %s\n", error.message);
  if (out->status == WICK_OK) {
    wick_request request = fixture_request(TOKENS, PROMPT, 1);
    uint32_t id;
    request.on_logits = keep_logits;
    request.on_logits_context = out;
    CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_OK);
    fixture_run(engine, take_nothing, NULL);
  }
  wick_engine_destroy(engine);
}

// Uses the tensors of LLaMA and replaces the architecture name in the keys.
static void answer_as(const char *architecture, uint32_t layers, answer *out) {
  static model_builder model;
  const built_choice choice = {BUILT_SPM, BUILT_LLAMA, GGML_TYPE_F32, layers, 64};
  builder_init(&model, &choice);
  for (size_t k = 0; k < model.value_count; k++) {
    char *key = model.values[k].key, rest[BUILT_KEY_BYTES];
    if (strncmp(key, "llama.", 6) != 0) continue;
    text_format(rest, sizeof rest, "%s", key + 6);
    text_format(key, BUILT_KEY_BYTES, "%s.%s", architecture, rest);
  }
  builder_put_text(&model, "general.architecture", architecture);
  const memory_file built = builder_write(&model);
  builder_free(&model);
  ask(&built, out);
  free(built.bytes);
}

static answer one, other;

static bool is_same(void) {
  if (!CHECK(one.vocab > 0) || !CHECK_EQ_UINT(one.vocab, other.vocab)) return false;
  for (uint32_t i = 0; i < PROMPT; i++) {
    if (memcmp(one.logits[i], other.logits[i], one.vocab * sizeof(float)) != 0) return false;
  }
  return true;
}

// The groups differ in how positions are encoded.
static const struct {
  const char *group;
  uint32_t layers;
  const char *names[6];
} GROUPS[] = {
    {"llama", 2, {"baichuan", "internlm2", "xverse", "ernie4_5"}},  // rotates adjacent values
    {"exaone", 2, {"qwen2"}},                                       // rotates halves
    {"refact", 2, {0}},                                             // ALiBi
    {"refact", 40, {"baichuan"}},
    {"llama", 40, {"internlm2"}},
};
enum { GROUP_COUNT = sizeof GROUPS / sizeof *GROUPS };

TEST(equivalent_architectures_give_the_same_logits) {
  for (size_t i = 0; i < GROUP_COUNT; i++) {
    answer_as(GROUPS[i].group, GROUPS[i].layers, &one);
    for (size_t k = 0; GROUPS[i].names[k] != NULL; k++) {
      answer_as(GROUPS[i].names[k], GROUPS[i].layers, &other);
      if (!CHECK(is_same())) printf("#   %s and %s\n", GROUPS[i].group, GROUPS[i].names[k]);
    }
    for (size_t k = i + 1; k < GROUP_COUNT; k++) {
      if (GROUPS[k].layers != GROUPS[i].layers) continue;
      answer_as(GROUPS[k].group, GROUPS[k].layers, &other);
      if (!CHECK(!is_same())) printf("#   %s and %s\n", GROUPS[i].group, GROUPS[k].group);
    }
  }
}

// Returns the attention window of each layer group if the file's window is `window`.
static uint32_t windows_with(const memory_file *file, uint32_t window, uint32_t *windows) {
  static const char KEY[] = "smallthinker.attention.sliding_window";
  const size_t value_at = sizeof KEY - 1 + sizeof(uint32_t);  // after the key and its type
  size_t at = 0;
  while (at + value_at < file->size_bytes && memcmp(file->bytes + at, KEY, sizeof KEY - 1) != 0) {
    at++;
  }
  if (!CHECK(at + value_at < file->size_bytes)) return 0;
  memcpy(file->bytes + at + value_at, &window, sizeof window);
  const fixture_file loaded = {file->bytes, file->size_bytes, file->size_bytes};
  wick_config config;
  wick_config_default(&config);
  wick_engine *engine = NULL;
  if (!CHECK_EQ_INT(wick_engine_create(&config, &engine, NULL), WICK_OK)) return 0;
  CHECK_EQ_INT(fixture_load(engine, &loaded, 0, NULL), WICK_OK);
  const uint32_t count = store_group_count(engine->store);
  for (uint32_t i = 0; i < count && i < 2; i++) {
    windows[i] = kv_pool_layout(store_group(engine->store, i))->shape.window;
  }
  wick_engine_destroy(engine);
  return count;
}

// The size of the file's window is ignored: any size except 0 enables a window of a fixed size.
TEST(smallthinker_has_a_fixed_window_or_none) {
  if (check_shared("vectors/reference-more/models/smallthinker.gguf") == NULL) {
    SKIP("no shared folder");
  }
  memory_file file = shared_read("vectors/reference-more/models", "smallthinker.gguf");
  REQUIRE(file.bytes != NULL);
  uint32_t windows[2] = {7, 7};
  CHECK_EQ_UINT(windows_with(&file, 0, windows), 1);
  CHECK_EQ_UINT(windows[0], 0);
  for (uint32_t window = 1; window < 4; window++) {
    CHECK_EQ_UINT(windows_with(&file, window, windows), 2);
    CHECK_EQ_UINT(windows[0] + windows[1], 4096);
    CHECK(windows[0] == 0 || windows[1] == 0);
  }
  file_free(&file);
}

// Gives the layers' width as one number, or as an array of equal or different numbers.
TEST(an_array_of_equal_widths_counts_as_one_width) {
  for (int32_t off = 0; off < 2; off++) {
    static model_builder model;
    const built_choice choice = {BUILT_SPM, BUILT_LLAMA, GGML_TYPE_F32, 2, 64};
    uint32_t width = 0;
    builder_init(&model, &choice);
    const built_value *number = builder_find(&model, "llama.feed_forward_length");
    REQUIRE(number != NULL);
    memcpy(&width, number->data.bytes, sizeof width);
    if (off == 0) {
      const memory_file plain = builder_write(&model);
      ask(&plain, &one);
      free(plain.bytes);
    }
    builder_remove(&model, "llama.feed_forward_length");
    built_value *list = builder_put(&model, "llama.feed_forward_length", GGUF_ARRAY);
    list->item_type = GGUF_I32;
    const int32_t widths[] = {(int32_t)width, (int32_t)width + off};
    value_set_data(list, widths, sizeof widths);
    list->count = 2;
    const memory_file listed = builder_write(&model);
    builder_free(&model);
    if (off == 0) {
      ask(&listed, &other);
      CHECK(is_same());
    } else {
      wick_config config;
      wick_engine *engine = NULL;
      wick_error error = {0};
      wick_config_default(&config);
      REQUIRE(wick_engine_create(&config, &engine, &error) == WICK_OK);
      CHECK_EQ_INT(wick_load_bytes(engine, listed.bytes, listed.size_bytes, &error),
                   WICK_E_UNSUPPORTED);
      CHECK(strstr(error.message, "feed_forward_length") != NULL);
      wick_engine_destroy(engine);
    }
    free(listed.bytes);
  }
}
