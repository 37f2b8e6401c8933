// The engine's JSON reports about itself, field by field: each must equal the value that the other
// functions return.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "fixture_model.h"

static char text[262144];
static size_t text_bytes;

static void keep_text(void *context, const char *bytes, size_t size_bytes) {
  (void)context;
  if (text_bytes + size_bytes >= sizeof text) return;
  memcpy(text + text_bytes, bytes, size_bytes);
  text_bytes += size_bytes;
  text[text_bytes] = '\0';
}

static void no_text(void) { text_bytes = 0, text[0] = '\0'; }

// Checks that the report contains this part, given as a format.
#define CHECK_SAYS(...)                                                                       \
  do {                                                                                        \
    char part[1024];                                                                          \
    text_format(part, sizeof part, __VA_ARGS__);                                              \
    if (!CHECK(strstr(text, part) != NULL)) printf("#   %s\n#   is not in %s\n", part, text); \
  } while (0)

typedef unsigned long long u64;

// With a nonzero context, only the directory is read.
static wick_engine *open_with(const fixture_file *file, uint64_t budget_bytes, uint32_t context) {
  wick_config config;
  wick_config_default(&config);
  config.context_tokens = context;
  config.directory_only = context != 0;
  config.memory_bytes_max = budget_bytes;
  wick_engine *engine = NULL;
  wick_error error = {0};
  CHECK_EQ_INT(wick_engine_create(&config, &engine, &error), WICK_OK);
  if (engine != NULL && file != NULL) fixture_load(engine, file, 0, &error);
  return engine;
}

static const char *info_of(wick_engine *engine) {
  no_text();
  wick_info_json(engine, keep_text, NULL);
  return text;
}

static wick_engine *open_engine(const fixture_file *file, uint64_t budget_bytes) {
  return open_with(file, budget_bytes, 0);
}

TEST(the_report_describes_the_model_field_by_field) {
  const fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_engine *engine = open_engine(&file, 0);
  info_of(engine);
  CHECK_SAYS("{\"architecture\":\"llama\",\"name\":\"fixture\",");
  // embeddings, which are also the output; one layer's matrices and norms; the last norm
  const unsigned layer = 64 * 64 * 2 + 32 * 64 * 2 + 96 * 64 * 3 + 2 * 64;
  CHECK_SAYS(
      "\"shape\":{\"parameters\":%u,\"layers\":3,\"hidden\":64,\"heads\":4,\"kv_heads\":2,"
      "\"head_dim\":16,\"ffn\":96,\"vocab\":262,\"context_trained\":256}",
      262 * 64 + 3 * layer + 64);
  CHECK_SAYS(
      "\"tokenizer\":{\"model\":\"gpt2\",\"pre\":\"gpt-2\",\"vocab\":262,"
      "\"bos\":{\"id\":256,\"text\":\"<|endoftext|>\"},\"eos\":{\"id\":257,\"text\":\"<|end|>\"},"
      "\"ends\":[256,257],\"adds_bos\":false,\"adds_eos\":false},\"chat_template\":null");
  static const char GIVEN[] = "{{ messages[0].content }}";
  CHECK(wick_chat_set_template(engine, GIVEN, sizeof GIVEN - 1, NULL) == WICK_OK);
  info_of(engine);
  CHECK_SAYS("\"chat_template\":\"{{ messages[0].content }}\"");
  CHECK_SAYS("\"types\":{\"F32\":{\"tensors\":29,\"bytes\":%u}}", 4 * (262 * 64 + 3 * layer + 64));
  wick_engine_destroy(engine);
  free(file.bytes);
}

TEST(the_tensor_types_of_a_model_are_counted_separately) {
  fixture_shape shape = FIXTURE_DEFAULT;
  shape.type = GGML_TYPE_Q8_0;
  const fixture_file file = fixture_make(&shape);
  wick_engine *engine = open_engine(&file, 0);
  info_of(engine);
  // 34 bytes per 32 weights
  const unsigned codes = (262 * 64 + 3 * (64 * 64 * 2 + 32 * 64 * 2 + 96 * 64 * 3)) / 32 * 34;
  CHECK_SAYS(
      "\"types\":{\"F32\":{\"tensors\":7,\"bytes\":%u},\"Q8_0\":{\"tensors\":22,\"bytes\":%u}}",
      4 * 7 * 64, codes);
  wick_engine_destroy(engine);
  free(file.bytes);
}

TEST(the_report_contains_plan_runtime_and_load_state) {
  const fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_engine *engine = open_engine(&file, 100000000);
  wick_plan plan;
  REQUIRE(wick_memory_plan(engine, &plan, NULL) == WICK_OK);
  info_of(engine);
  CHECK_SAYS(
      "\"plan\":{\"context_tokens\":256,\"weights_bytes\":%llu,\"kv_bytes\":%llu,"
      "\"adapter_bytes\":%llu,\"scratch_bytes\":",
      (u64)plan.weights_bytes, (u64)plan.kv_bytes, (u64)plan.adapter_bytes);
  CHECK_SAYS("\"scratch_bytes\":%llu,\"directory_bytes\":%llu,\"tokenizer_bytes\":%llu,",
             (u64)plan.scratch_bytes, (u64)plan.directory_bytes, (u64)plan.tokenizer_bytes);
  CHECK_SAYS("\"total_bytes\":%llu,\"outside_bytes\":0,\"kv_page_bytes\":%llu",
             (u64)plan.total_bytes, (u64)plan.kv_page_bytes);
  CHECK_SAYS("\"error\":null");
  const memory_gate *memory = &engine->memory;
  CHECK_SAYS("\"memory\":{\"bytes_now\":%llu,\"bytes_peak\":%llu,\"budget_bytes\":100000000,",
             (u64)memory->bytes_now, (u64)memory->bytes_peak);
  CHECK_SAYS("\"limit_bytes\":%llu,\"calls\":%llu}", (u64)wick_engine_memory_limit(engine),
             (u64)memory->calls);
  CHECK_SAYS(
      "\"threads\":1,\"kernels\":\"%s\",\"k_type\":\"f16\",\"v_type\":\"f16\","
      "\"batch_tokens\":128",
      engine->kernels->name);
  wick_load_state state;
  wick_load_get_state(engine, &state);
  CHECK(state.bytes_wanted > 440000);
  CHECK_SAYS(
      "\"load\":{\"files\":1,\"bytes_wanted\":%llu,\"bytes_placed\":%llu,"
      "\"layers_ready\":3,\"complete\":true,\"fingerprint\":\"%llx\"}",
      (u64)state.bytes_wanted, (u64)state.bytes_wanted, (u64)state.fingerprint);
  wick_engine_destroy(engine);
  free(file.bytes);
}

TEST(before_loading_the_report_contains_only_the_runtime) {
  wick_engine *engine = open_engine(NULL, 0);
  info_of(engine);
  CHECK(strncmp(text, "{\"threads\":1,", 13) == 0);
  CHECK_SAYS("\"layers_ready\":0,\"complete\":false}");
  CHECK(strstr(text, "plan") == NULL && strstr(text, "fingerprint") == NULL);
  no_text();
  wick_inspect_json(engine, keep_text, NULL);
  CHECK(strncmp(text, "{\"info\":{\"threads\":1,", 21) == 0);
  no_text();
  wick_pages_json(engine, true, keep_text, NULL);
  CHECK_EQ_STR(text, "{}");
  no_text();
  wick_pages_find(engine, &(int32_t){1}, 1, keep_text, NULL);
  CHECK_EQ_STR(text, "[]");
  wick_engine_destroy(engine);
}

TEST(the_report_of_a_model_that_cannot_run_has_an_error_instead_of_a_plan) {
  const fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_engine *engine = open_with(&file, 0, 257);
  info_of(engine);
  CHECK_SAYS("\"shape\":null,");
  CHECK_SAYS(
      "\"plan\":null,\"error\":{\"status\":\"WICK_E_ARG\",\"message\":\"a context of 257 tokens: "
      "the "
      "model was trained on 256\",\"offset_bytes\":null}");
  wick_engine_destroy(engine);
  free(file.bytes);
}

TEST(the_report_lists_the_directory_item_by_item) {
  const fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_engine *engine = open_engine(&file, 0);
  no_text();
  wick_inspect_json(engine, keep_text, NULL);
  const gguf_directory *directory = engine_directory(engine);
  const u64 data = gguf_data_offset(directory);
  CHECK_SAYS(
      "{\"gguf\":{\"version\":3,\"alignment\":32,\"directory_bytes\":%llu,"
      "\"data_offset\":%llu},\"metadata\":[{\"key\":\"general.architecture\"",
      (u64)gguf_directory_bytes(directory), data);
  CHECK(data % 32 == 0);
  CHECK_SAYS("{\"key\":\"llama.block_count\",\"type\":\"u32\",\"value\":3},");
  CHECK_SAYS("rms_epsilon\",\"type\":\"f32\",\"value\":0.00001},");
  CHECK_SAYS(
      "tokens\",\"type\":\"array\",\"item_type\":\"string\",\"count\":262,\"first\":["
      "\"\xc4\x80\",\"\xc4\x81\",\"\xc4\x82\",\"\xc4\x83\",\"\xc4\x84\",\"\xc4\x85\","
      "\"\xc4\x86\",\"\xc4\x87\"]}");
  CHECK_SAYS("\"item_type\":\"i32\",\"count\":262,\"first\":[1,1,1,1,1,1,1,1]}");
  CHECK_SAYS("\"count\":4,\"first\":[\"t h\",\"h e\",\"i n\",\"e r\"]}");
  CHECK_SAYS(
      "\"tensors\":[{\"name\":\"token_embd.weight\",\"type\":\"F32\",\"shape\":[64,262],"
      "\"file\":0,\"offset_bytes\":%llu,\"size_bytes\":67072},"
      "{\"name\":\"blk.0.attn_norm.weight\",\"type\":\"F32\",\"shape\":[64],\"file\":0,"
      "\"offset_bytes\":%llu,\"size_bytes\":256},",
      data, data + 67072);
  CHECK_SAYS("\"size_bytes\":256}],\"info\":{\"architecture\":\"llama\",");
  wick_engine_destroy(engine);
  free(file.bytes);
}

// ---- reports during work ----

static void pass_over(void *context, const wick_event *event, const uint8_t *after) {
  (void)context, (void)event, (void)after;
}

static void run_request(wick_engine *engine, const wick_request *request) {
  uint32_t id;
  wick_error error = {0};
  CHECK_EQ_INT(wick_request_submit(engine, request, &id, &error), WICK_OK);
  fixture_run(engine, pass_over, NULL);
}

TEST(the_report_follows_pages_and_counters) {
  const fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_engine *engine = open_engine(&file, 0);
  int32_t prompt[40];
  for (int i = 0; i < 40; i++) prompt[i] = i * 5 % 256;
  uint32_t session, child;
  REQUIRE(wick_session_create(engine, &session, NULL) == WICK_OK);
  wick_request request = fixture_request(prompt, 40, 6);
  request.session = session;
  run_request(engine, &request);
  REQUIRE(wick_session_fork(engine, session, &child, NULL) == WICK_OK);
  request.session = 0;
  run_request(engine, &request);
  no_text();
  wick_pages_json(engine, true, keep_text, NULL);
  const char *pages = strstr(text, "\"all\":");
  REQUIRE(pages != NULL);
  const uint32_t all = (uint32_t)strtoul(pages + 6, NULL, 10);
  // 3 layers of 2 heads of 16 halves, keys and values; the last generated token is not evaluated
  CHECK_SAYS("{\"page_tokens\":16,\"page_bytes\":6144,\"k_type\":\"f16\",\"v_type\":\"f16\",");
  CHECK_SAYS(
      "\"pages\":{\"all\":%u,\"free\":%u,\"available\":%u,\"shared\":3,\"cached\":0,"
      "\"used_max\":4},\"bytes\":{\"used\":%u,\"capacity\":%u}",
      all, all - 3, 4 * 256 / 16 - 3, 3 * 6144, all * 6144);
  CHECK_SAYS(
      "\"groups\":[{\"layers\":3,\"window_tokens\":0,\"page_bytes\":6144,\"pages\":{\"all\":%u,"
      "\"free\":%u},\"bytes\":{\"used\":%u,\"capacity\":%u}}],\"states\":null,",
      all, all - 3, 3 * 6144, all * 6144);
  CHECK_SAYS(
      "\"sequences\":2,\"forks\":1,\"cow_copies\":0,\"pages_allocated\":4,"
      "\"pages_freed\":1,\"nonfinite_values\":0,");
  CHECK_SAYS("\"fragmentation\":{\"holes\":0,\"largest_free_region\":%u,", all - 3);
  CHECK_SAYS("\"wasted_capacity\":3,\"ratio\":0,\"avg_tokens_per_page\":15}");
  CHECK_SAYS(
      "\"sessions\":2,\"prefix\":{\"entries\":2,\"capacity\":64,\"hits\":1,\"misses\":1,"
      "\"hit_ratio\":0.5,\"tokens_saved\":32,\"evictions\":0,\"pages_held\":2}");
  CHECK_SAYS("\"requests\":{\"running\":0,\"waiting\":0},\"map\":[\"sss.");
  no_text();
  wick_stats_json(engine, keep_text, NULL);
  CHECK_SAYS(
      "{\"requests\":{\"running\":0,\"waiting\":0,\"paused\":0,\"running_max\":1,"
      "\"waiting_max\":1,\"submitted\":2,\"refused\":0,\"stopped\":0,\"length\":2,"
      "\"aborted\":0,\"failed\":0,\"preempted\":0,\"swapped_out\":0,\"swapped_in\":0,"
      "\"swap_failed\":0}");
  CHECK_SAYS(
      "\"tokens\":{\"prompt\":48,\"cached\":32,\"recomputed\":0,\"out\":12,"
      "\"proposed\":0,\"accepted\":0}");
  CHECK_SAYS("\"passes\":12,\"rows\":58,\"draft_failed\":0}");
  CHECK_EQ_INT(wick_session_close(engine, session, NULL), WICK_OK);
  CHECK_EQ_INT(wick_session_close(engine, child, NULL), WICK_OK);
  no_text();
  wick_pages_json(engine, false, keep_text, NULL);
  CHECK_SAYS("\"shared\":0,\"cached\":2,");
  CHECK_SAYS("\"sequences\":0,");
  CHECK_SAYS("\"sessions\":0,");
  CHECK(strstr(text, "map") == NULL);
  no_text();
  wick_pages_json(engine, true, keep_text, NULL);
  CHECK_SAYS("\"map\":[\"cc.");
  // the whole pages of the common prefix, the last one first
  static const struct {
    size_t count;
    const char *pages;
  } asked[] = {{40, "[1,0]"}, {32, "[1,0]"}, {31, "[0]"}, {15, "[]"}, {0, "[]"}};
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
    no_text();
    wick_pages_find(engine, prompt, asked[i].count, keep_text, NULL);
    CHECK_EQ_STR(text, asked[i].pages);
  }
  prompt[0]++;
  no_text();
  wick_pages_find(engine, prompt, 40, keep_text, NULL);
  CHECK_EQ_STR(text, "[]");
  wick_engine_destroy(engine);
  free(file.bytes);
}

// Returns an engine whose session has evaluated 40 prompt tokens and generated 6, and writes the
// report of its pages.
static wick_engine *recorded_pages(const fixture_hybrid *hybrid) {
  fixture_file file = fixture_make_hybrid(&FIXTURE_ODD, hybrid);
  wick_engine *engine = open_engine(&file, 0);
  int32_t prompt[40];
  for (int i = 0; i < 40; i++) prompt[i] = i * 5 % 256;
  wick_request request = fixture_request(prompt, 40, 6);
  CHECK_EQ_INT(wick_session_create(engine, &request.session, NULL), WICK_OK);
  run_request(engine, &request);
  no_text();
  wick_pages_json(engine, false, keep_text, NULL);
  free(file.bytes);
  return engine;
}

TEST(the_report_lists_each_layer_group_and_its_pages) {
  // layers 0 and 2 see 21 tokens, layer 1 sees all; a head has 12 halves for keys and 12 for values
  wick_engine *engine = recorded_pages(&FIXTURE_GEMMA3);
  const kv_pool *windowed = store_group(engine->store, 0), *whole = store_group(engine->store, 1);
  CHECK_EQ_INT(store_group_count(engine->store), 2);
  CHECK_SAYS("\"groups\":[{\"layers\":2,\"window_tokens\":21,\"page_bytes\":1536,\"pages\":{");
  CHECK_SAYS("{\"layers\":1,\"window_tokens\":0,\"page_bytes\":768,\"pages\":{\"all\":%u,",
             kv_pool_pages(whole));
  CHECK_EQ_INT(kv_pool_pages(whole) - kv_pool_pages_free(whole), 3);
  const u64 used = 1536 * (kv_pool_pages(windowed) - kv_pool_pages_free(windowed)) + 3 * 768;
  CHECK_SAYS("\"bytes\":{\"used\":%llu,\"capacity\":%llu},\"groups\"", used,
             (u64)(1536 * kv_pool_pages(windowed) + 768 * kv_pool_pages(whole)));
  CHECK_SAYS("\"states\":null");
  wick_engine_destroy(engine);
}

TEST(the_report_contains_recurrent_states) {
  wick_engine *engine = recorded_pages(&FIXTURE_LFM2);
  // two layers of convolutions with two earlier rows of 36 floats each, in whole cache lines
  const u64 state_bytes = 2 * (2 * 36 * 4 + 32);
  const store_state_counts states = store_count_states(engine->store);
  CHECK(states.state_bytes == state_bytes);
  CHECK(states.slots > states.free && states.cached >= 1);
  CHECK_SAYS("\"states\":{\"state_bytes\":%llu,\"slots\":%u,\"free\":%u,\"cached\":%u}",
             state_bytes, states.slots, states.free, states.cached);
  CHECK_SAYS("\"bytes\":{\"used\":%llu,\"capacity\":%llu},\"groups\":[{\"layers\":1,",
             state_bytes * (states.slots - states.free) + 3 * 768,
             state_bytes * states.slots + 768 * kv_pool_pages(engine->kv));
  wick_engine_destroy(engine);
}
