// Fuzzes chat templates with any source and conversation. Properties: each call returns text or a
// typed error and frees everything; the spans cover the text, which is UTF-8; a second rendering
// gives the same result; time and memory are limited.
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "platform/platform.h"
#include "template/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_BYTES_MAX = 24 << 20, JSON_DEFAULT_COUNT = 3 };

static void require(bool condition) {
  if (!condition) __builtin_trap();
}

static const char *const CONVERSATIONS[JSON_DEFAULT_COUNT] = {
    "{\"messages\":[{\"role\":\"user\",\"content\":\"a<b>c\"}],\"x\":[1,2.5,null,true]}",
    "{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"assistant\",\"content\":"
    "null,"
    "\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}}]}],\"tools\":["
    "{}]}",
    "{\"messages\":[],\"d\":{\"b\":{\"c\":\"\xc3\xa9\"}}}"};

static void check_text(const template_text *text) {
  size_t end = 0;
  for (size_t i = 0; i < text->span_count; i++) {
    require(text->spans[i].end > end && text->spans[i].is_content <= 1);
    if (i > 0) require(text->spans[i].is_content != text->spans[i - 1].is_content);
    end = text->spans[i].end;
  }
  require(end == text->size_bytes);
  for (size_t at = 0; at < text->size_bytes;) {
    uint32_t code;
    const int bytes = utf8_decode((const uint8_t *)text->bytes + at, text->size_bytes - at, &code);
    require(bytes > 0);
    at += (size_t)bytes;
  }
}

static void check_error(wick_status status, const wick_error *error) {
  require(status != WICK_OK && status < WICK_STATUS_COUNT && error->status == status);
  require(error->message[0] != '\0');
}

static void render_twice(const chat_template *template, const template_input *input,
                         memory_gate *memory) {
  template_text first, second;
  wick_error error = {0};
  const wick_status status = template_render(template, input, &first, &error);
  if (status != WICK_OK) {
    check_error(status, &error);
    require(first.memory == NULL);
    return;
  }
  check_text(&first);
  require(template_render(template, input, &second, &error) == WICK_OK);
  require(first.size_bytes == second.size_bytes);
  require(memcmp(first.bytes, second.bytes, first.size_bytes) == 0);
  template_text_free(memory, &second);
  template_text_free(memory, &first);
}

// Input: a byte that chooses the kind of the rest (the source, or source, 0 and JSON) and the
// allocation that fails.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  memory_gate memory;
  chat_template *template = NULL;
  wick_error error = {0};
  if (size < 1) return 0;
  memory_init(&memory, MEMORY_BYTES_MAX, platform_alloc, platform_free);
  const uint8_t kind = data[0];
  const char *source = (const char *)data + 1;
  const char *json = CONVERSATIONS[kind % JSON_DEFAULT_COUNT];
  size_t source_bytes = size - 1, json_bytes = strlen(json);
  const char *border = memchr(source, '\0', source_bytes);
  if (border != NULL) {
    json = border + 1;
    json_bytes = source_bytes - (size_t)(json - source);
    source_bytes = (size_t)(border - source);
  }
  if (kind >= 192) memory.fail_at_call = 1u + kind % 32;
  const wick_status status = template_create(&memory, source, source_bytes, &template, &error);
  if (status != WICK_OK) {
    check_error(status, &error);
    require(template == NULL);
  } else {
    const template_input input = {.variables = json,
                                  .variables_bytes = json_bytes,
                                  .own = "{\"bos_token\":\"<s>\"}",
                                  .own_bytes = 19,
                                  .now_s = 1785542400,
                                  .has_now = kind % 2 == 0,
                                  .keeps_arguments = kind % 5 == 0};
    if (kind < 192) render_twice(template, &input, &memory);
    if (kind >= 192) {
      template_text text;
      if (template_render(template, &input, &text, &error) == WICK_OK) check_text(&text);
      template_text_free(&memory, &text);
    }
    template_destroy(template);
  }
  require(memory.blocks_now == 0);
  return 0;
}
