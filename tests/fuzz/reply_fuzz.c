// Fuzzes reply parsing with any text in any format and in any pieces. Properties: pieces give the
// same events as the whole text; arguments of a completed call are JSON; the number of steps is
// linear; without a call, only white space and markers are removed, and nothing is added.
#include <stdint.h>
#include <string.h>

#include "platform/platform.h"
#include "reply/reply.h"
#include "reply/scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 1 << 16, TEXT_MAX = 8192, STEPS_PER_BYTE = 9 };

// All events as one string: a byte for each change of kind or call, then the text.
typedef struct run_result {
  uint8_t out[OUT_MAX];
  size_t count, arguments_at;
  reply_event_kind kind;
  uint32_t call;
  wick_status status;
} run_result;

static void add(run_result *result, const char *bytes, size_t size_bytes) {
  if (size_bytes > OUT_MAX - result->count) __builtin_trap();
  memcpy(result->out + result->count, bytes, size_bytes);
  result->count += size_bytes;
}

static void take(void *context, const reply_event *event) {
  run_result *result = context;
  const char mark = (char)('0' + event->kind);
  uint8_t first = 0;
  if (event->kind == REPLY_CALL_BEGINS && event->text_bytes == 0) __builtin_trap();
  if (event->kind != result->kind || event->kind == REPLY_CALL_BEGINS) {
    if (event->kind == REPLY_CALL_ENDS &&
        (result->kind != REPLY_CALL_ARGUMENTS ||
         !scan_holds(result->out + result->arguments_at, result->count - result->arguments_at,
                     &first) ||
         first != '{')) {
      __builtin_trap();
    }
    add(result, &mark, 1);
    result->arguments_at = result->count;
  }
  result->kind = event->kind;
  add(result, event->text, event->text_bytes);
  if (event->kind == REPLY_CALL_BEGINS) add(result, event->id, event->id_bytes);
}

static void run(memory_gate *memory, const reply_format *format, wick_text tools,
                const char *prompt, const uint8_t *text, size_t size, const uint8_t *cuts,
                size_t cut_count, run_result *result) {
  reply_parser *parser = NULL;
  wick_error error;
  memset(result, 0, sizeof *result);
  result->kind = REPLY_CALL_ENDS;
  const wick_text begun = {prompt, strlen(prompt)};
  if (reply_parser_create(memory, format, tools, begun, &parser, &error) != WICK_OK) {
    __builtin_trap();
  }
  size_t fed = 0;
  for (size_t i = 0; fed < size && result->status == WICK_OK; i++) {
    size_t piece = cut_count == 0 ? size : 1u + cuts[i % cut_count];
    if (piece > size - fed) piece = size - fed;
    result->status =
        reply_parser_feed(parser, (const char *)text + fed, piece, take, result, &error);
    fed += piece;
  }
  if (result->status == WICK_OK) result->status = reply_parser_end(parser, take, result, &error);
  if (reply_parser_steps(parser) > (uint64_t)STEPS_PER_BYTE * size) __builtin_trap();
  reply_parser_destroy(parser);
}

// Input: format, prompt, number of cuts, cuts, text.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char TOOLS[] =
      "[{\"name\":\"get\",\"parameters\":{\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{"
      "\"type\":"
      "\"integer\"}}}}]";
  static const char *const TEMPLATES[] = {
      "",         "<tool_call><parameter=", "<|message|>", "<arg_key>", "[TOOL_CALLS][ARGS]",
      "｜DSML｜", "<|tool_call>",           ">>>all"};
  static const char *const PROMPTS[] = {"", "<think>", "<|start|>assistant", ">>>"};
  static run_result whole, cut;
  if (size < 3) return 0;
  const char *family = TEMPLATES[data[0] % 8], *prompt = PROMPTS[data[1] % 4];
  size_t cut_count = data[2] % 8, at = 3;
  if (cut_count > size - at) cut_count = size - at;
  const uint8_t *cuts = data + at;
  at += cut_count;
  const size_t text_size = size - at < TEXT_MAX ? size - at : TEXT_MAX;

  memory_gate memory;
  const wick_text tools = {TOOLS, sizeof TOOLS - 1};
  memory_init(&memory, 0, platform_alloc, platform_free);
  const reply_format format = reply_format_find(family, strlen(family));
  run(&memory, &format, tools, prompt, data + at, text_size, cuts, 0, &whole);
  run(&memory, &format, tools, prompt, data + at, text_size, cuts, cut_count, &cut);
  if (whole.count != cut.count || whole.status != cut.status ||
      memcmp(whole.out, cut.out, whole.count) != 0) {
    __builtin_trap();
  }
  if (memory.blocks_now != 0) __builtin_trap();
  return 0;
}
