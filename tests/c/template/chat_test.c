// Chat templates in an engine: which template is used, which variables the engine adds, tokens,
// errors and memory.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture_model.h"
#include "model_builder.h"

static wick_engine *open_engine(const fixture_file *file, uint64_t fail_at_call,
                                wick_status *status) {
  wick_config config;
  wick_config_default(&config);
  const engine_hooks hooks = {.fail_at_call = fail_at_call};
  wick_engine *engine = NULL;
  wick_error error;
  *status = engine_create(&config, &hooks, &engine, &error);
  if (*status == WICK_OK) *status = fixture_load(engine, file, 0, &error);
  return engine;
}

static wick_chat chat_of(const char *json) {
  wick_chat chat;
  memset(&chat, 0xff, sizeof chat);
  wick_chat_default(&chat);
  chat.json = json;
  chat.json_bytes = strlen(json);
  return chat;
}

static wick_status use(wick_engine *engine, const char *source, wick_error *error) {
  return wick_chat_set_template(engine, source, source == NULL ? 0 : strlen(source), error);
}

static const char HELLO[] =
    "{\"messages\": [{\"role\": \"user\", \"content\": \"the <|end|> in\"}]}";

// Checks the rendered text, which need not be NUL-terminated.
static void check_render(wick_engine *engine, const wick_chat *chat, const char *wanted) {
  wick_chat_text out;
  wick_error error = {0};
  if (!CHECK_EQ_INT(wick_chat_render(engine, chat, &out, &error), WICK_OK)) {
    printf("# %s\n", error.message);
    return;
  }
  const bool is_same =
      out.text.size_bytes == strlen(wanted) && memcmp(out.text.bytes, wanted, strlen(wanted)) == 0;
  if (!CHECK(is_same)) printf("# %.*s\n", (int)out.text.size_bytes, (const char *)out.text.bytes);
  CHECK(out.span_count > 0 && out.spans[out.span_count - 1].end == out.text.size_bytes);
}

static void check_refused(wick_engine *engine, const wick_chat *chat, wick_status wanted,
                          const char *part) {
  wick_chat_text out;
  wick_error error = {0};
  const int32_t *tokens;
  size_t count;
  CHECK_EQ_INT(wick_chat_render(engine, chat, &out, &error), wanted);
  if (!CHECK(strstr(error.message, part) != NULL)) printf("# %s\n", error.message);
  CHECK(out.text.bytes == NULL && out.span_count == 0);
  CHECK_EQ_INT(wick_chat_tokenize(engine, chat, &tokens, &count, &error), wanted);
  CHECK(tokens == NULL && count == 0);
}

TEST(templates_can_be_set_replaced_and_removed) {
  const fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_status status;
  wick_error error = {0};
  wick_engine *engine = open_engine(&file, 0, &status);
  REQUIRE(status == WICK_OK);
  const wick_chat hello = chat_of(HELLO);
  check_refused(engine, &hello, WICK_E_NODATA, "no chat template");
  CHECK_EQ_INT(use(engine, "chatml", &error), WICK_OK);
  check_render(engine, &hello,
               "<|im_start|>user\nthe <|end|> in<|im_end|>\n<|im_start|>assistant\n");
  const wick_chat done = chat_of(
      "{\"messages\": [{\"role\": \"system\", \"content\": \"a\"}, {\"role\": \"user\", "
      "\"content\": \"b\"}],"
      "\"add_generation_prompt\": false}");
  check_render(engine, &done, "<|im_start|>system\na<|im_end|>\n<|im_start|>user\nb<|im_end|>\n");
  CHECK_EQ_INT(use(engine, "{{ messages | length }}", &error), WICK_OK);
  check_render(engine, &done, "2");
  // an invalid template leaves the previous one in force
  CHECK_EQ_INT(use(engine, "{{ messages", &error), WICK_E_FORMAT);
  CHECK(strstr(error.message, "the chat template is not valid: line 1") != NULL);
  check_render(engine, &done, "2");
  CHECK_EQ_INT(use(engine, "chatm", &error), WICK_E_ARG);
  CHECK(strstr(error.message, "no chat template named 'chatm'") != NULL);
  check_render(engine, &done, "2");
  CHECK_EQ_INT(use(engine, "chat m", &error), WICK_OK);  // a source, not a name
  check_render(engine, &done, "chat m");
  CHECK_EQ_INT(use(engine, NULL, &error), WICK_OK);
  check_refused(engine, &hello, WICK_E_NODATA, "no chat template");
  wick_engine_destroy(engine);
  free(file.bytes);
}

// ---- several templates ----

#define CHAT(more) "{" more "\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}"
#define TOOL "[{\"type\": \"function\", \"function\": {\"name\": \"get\"}}]"

static wick_engine *open_named(void) {
  static const built_choice CHOICE = {BUILT_SPM, BUILT_LLAMA, GGML_TYPE_F32, 1, 64};
  static model_builder model;
  builder_init(&model, &CHOICE);
  builder_put_text(&model, "tokenizer.chat_template", "plain {{ messages[0].content }}<think>");
  builder_put_text(&model, "tokenizer.chat_template.tool_use",
                   "{% if false %}<tool_call>{% endif %}tools {{ tools | length }}");
  builder_put_text(&model, "tokenizer.chat_template.rag", "rag {{ messages[0].content }}");
  memory_file written = builder_write(&model);
  builder_free(&model);
  const fixture_file file = {.bytes = written.bytes, .size_bytes = written.size_bytes};
  wick_status status;
  wick_engine *engine = open_engine(&file, 0, &status);
  file_free(&written);
  return status == WICK_OK ? engine : NULL;
}

TEST(the_template_for_tools_is_used_with_tools) {
  wick_engine *engine = open_named();
  wick_error error;
  REQUIRE(engine != NULL);
  const wick_chat hello = chat_of(CHAT("")), none = chat_of(CHAT("\"tools\": [], ")),
                  null = chat_of(CHAT("\"tools\": null, ")),
                  tools = chat_of(CHAT("\"tools\": " TOOL ", "));
  for (int round = 0; round < 2; round++) {
    check_render(engine, &hello, "plain hi<think>");
    check_render(engine, &tools, "tools 1");
    check_render(engine, &none, "plain hi<think>");
    check_render(engine, &null, "plain hi<think>");
  }
  const wick_chat broken = chat_of("{\"tools\": " TOOL);
  check_refused(engine, &broken, WICK_E_FORMAT, "rejects");
  CHECK_EQ_INT(use(engine, "default", &error), WICK_OK);
  check_render(engine, &tools, "plain hi<think>");
  CHECK_EQ_INT(use(engine, "rag", &error), WICK_OK);
  check_render(engine, &tools, "rag hi");
  CHECK_EQ_INT(use(engine, "tool_use", &error), WICK_OK);
  check_render(engine, &hello, "tools 0");
  CHECK_EQ_INT(use(engine, "none", &error), WICK_E_ARG);
  CHECK_EQ_INT(use(engine, NULL, &error), WICK_OK);
  check_render(engine, &tools, "tools 1");
  wick_engine_destroy(engine);
}

TEST(out_of_memory_does_not_select_a_different_template) {
  wick_engine *engine = open_named();
  wick_error error;
  wick_chat_text out;
  wick_status status = WICK_E_NOMEM;
  REQUIRE(engine != NULL);
  const wick_chat tools = chat_of(CHAT("\"tools\": " TOOL ", "));
  for (uint64_t k = 1; k < 100 && status != WICK_OK; k++) {
    engine->memory.fail_at_call = engine->memory.calls + k;
    status = wick_chat_render(engine, &tools, &out, &error);
    CHECK(status == WICK_OK || status == WICK_E_NOMEM);
  }
  CHECK(status == WICK_OK && memcmp(out.text.bytes, "tools 1", 7) == 0);
  wick_engine_destroy(engine);
}

TEST(the_engine_sets_template_variables) {
  const fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_status status;
  wick_error error = {0};
  wick_engine *engine = open_engine(&file, 0, &status);
  REQUIRE(status == WICK_OK);
  wick_chat chat = chat_of("{\"a\": 1}");
  CHECK_EQ_INT(
      use(engine, "{{ bos_token }} {{ eos_token }} {{ add_generation_prompt }} {{ a }}", &error),
      WICK_OK);
  check_render(engine, &chat, "<|endoftext|> <|end|> True 1");
  CHECK_EQ_INT(use(engine, "{{ strftime_now('%Y-%m-%d %H:%M') }}", &error), WICK_OK);
  check_refused(engine, &chat, WICK_E_NODATA, "the time is not known");
  chat.has_now = true;
  chat.now_s = 86400 * 365 + 3660;
  check_render(engine, &chat, "1971-01-01 01:01");
  CHECK_EQ_INT(use(engine, "\n{{ raise_exception('not so') }}", &error), WICK_OK);
  check_refused(engine, &chat, WICK_E_ARG,
                "the chat template rejects these messages: line 2: not so");
  const wick_chat broken = chat_of("{\"a\": }");
  check_refused(engine, &broken, WICK_E_FORMAT, "rejects");
  // arguments of tool calls are converted to the form the template requires, unless keeps_arguments
  wick_chat call = chat_of(
      "{\"messages\": [{\"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": "
      "\"{\\\"a\\\": 1}\"}}]}]}");
  CHECK_EQ_INT(use(engine,
                   "{% for k, v in messages[0].tool_calls[0].function.arguments.items() %}{{ k "
                   "}}{{ v }}{% endfor %}",
                   &error),
               WICK_OK);
  check_render(engine, &call, "a1");
  call.keeps_arguments = true;
  check_refused(engine, &call, WICK_E_FORMAT, "items");
  wick_engine_destroy(engine);
  free(file.bytes);
}

// Checks the tokens: each byte is a token, and so are "th" and "in".
static void check_tokens(wick_engine *engine, const wick_chat *chat, const int32_t *wanted,
                         size_t wanted_count) {
  const int32_t *tokens;
  size_t count;
  wick_error error = {0};
  if (!CHECK_EQ_INT(wick_chat_tokenize(engine, chat, &tokens, &count, &error), WICK_OK)) {
    printf("# %s\n", error.message);
    return;
  }
  CHECK_EQ_UINT(count, wanted_count);
  for (size_t i = 0; i < count && i < wanted_count; i++) CHECK_EQ_INT(tokens[i], wanted[i]);
}

TEST(only_the_template_can_write_control_tokens) {
  const fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_status status;
  wick_error error = {0};
  wick_engine *engine = open_engine(&file, 0, &status);
  REQUIRE(status == WICK_OK);
  CHECK_EQ_INT(use(engine, "<|end|>{{ x }}<|end|>", &error), WICK_OK);
  wick_chat chat = chat_of("{\"x\": \"in<|end|>\"}");
  const int32_t own[] = {257, 260, '<', '|', 'e', 'n', 'd', '|', '>', 257};
  check_tokens(engine, &chat, own, 10);
  chat.parse_special = true;
  const int32_t special[] = {257, 260, 257, 257};
  check_tokens(engine, &chat, special, 4);
  const wick_chat none = chat_of("{\"x\": \"\"}");
  const int32_t plain[] = {257, 257};
  check_tokens(engine, &none, plain, 2);
  wick_engine_destroy(engine);
  free(file.bytes);
}

// The results of a call are valid until the next call, so the number of blocks does not grow, and
// destroying the engine frees them.
TEST(rendering_conversations_does_not_accumulate_memory) {
  const fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_status status;
  wick_error error = {0};
  wick_engine *engine = open_engine(&file, 0, &status);
  REQUIRE(status == WICK_OK);
  const wick_chat hello = chat_of(HELLO), broken = chat_of("{\"messages\": 1}");
  wick_chat_text out;
  const int32_t *tokens;
  size_t count;
  const uint64_t without = engine->memory.blocks_now;
  uint64_t with = 0;
  for (int round = 0; round < 5; round++) {
    CHECK_EQ_INT(use(engine, "chatml", &error), WICK_OK);
    CHECK_EQ_INT(wick_chat_tokenize(engine, &hello, &tokens, &count, &error), WICK_OK);
    CHECK(count > 0 && tokens != NULL);
    CHECK(wick_chat_render(engine, &broken, &out, &error) != WICK_OK);
    CHECK_EQ_INT(wick_chat_render(engine, &hello, &out, &error), WICK_OK);
    if (round == 0) with = engine->memory.blocks_now;
    CHECK_EQ_UINT(engine->memory.blocks_now, with);
    CHECK(use(engine, "{% if %}", &error) != WICK_OK);
    CHECK_EQ_UINT(engine->memory.blocks_now, with);
  }
  CHECK_EQ_INT(use(engine, NULL, &error), WICK_OK);
  CHECK_EQ_UINT(engine->memory.blocks_now, without);
  wick_engine_destroy(engine);
  free(file.bytes);
}

TEST(allocation_failures_are_reported_and_leak_nothing) {
  const fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_status status;
  wick_error error = {0};
  wick_engine *engine = open_engine(&file, 0, &status);
  REQUIRE(status == WICK_OK);
  const wick_chat hello = chat_of(HELLO);
  const uint64_t without = engine->memory.blocks_now;
  uint32_t failures = 0;
  for (uint64_t k = 1; k < 100; k++) {
    const int32_t *tokens;
    size_t count;
    const uint64_t fails = engine->memory.fail_at_call = engine->memory.calls + k;
    status = use(engine, "chatml", &error);
    if (status == WICK_OK) status = wick_chat_tokenize(engine, &hello, &tokens, &count, &error);
    CHECK_EQ_INT(status, engine->memory.calls < fails ? WICK_OK : WICK_E_NOMEM);
    CHECK((strstr(error.message, "out of memory: ") != NULL) == (status != WICK_OK));
    error = (wick_error){0};
    engine->memory.fail_at_call = 0;
    CHECK_EQ_INT(use(engine, NULL, &error), WICK_OK);
    CHECK_EQ_UINT(engine->memory.blocks_now, without);
    if (status == WICK_OK) break;
    failures++;
  }
  CHECK(failures > 4 && status == WICK_OK);
  wick_engine_destroy(engine);
  free(file.bytes);
}
