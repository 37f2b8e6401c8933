// reply/hold_channels.c — replies of gpt-oss, as messages with headers (OpenAI's harmony format):
//   <|channel|>analysis<|message|>...<|end|><|start|>assistant
//   <|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{...}
#include "reply/hold.h"

#include <string.h>

#include "grammar/free.h"

static const char ENDING[] = "<|start|>assistant";

static bool ends_with(document_text text, const char *wanted) {
  const size_t count = strlen(wanted);
  return text.size_bytes >= count &&
         memcmp(text.bytes + text.size_bytes - count, wanted, count) == 0;
}

// Adds the text of a message that calls no tool. The next message begins after it; at `to`, the
// reply may end within the text.
static void put_body(hold *h, uint32_t from, uint32_t again, uint32_t to) {
  const uint32_t after = program_place(h->builder), nowhere = program_place(h->builder);
  const free_mark marks[] = {{(const uint8_t *)"<|end|>", 7, after},
                             {(const uint8_t *)"<|start|>", 9, nowhere},
                             {(const uint8_t *)"<|channel|>", 11, nowhere}};
  free_build(h->builder, from, (free_text){.marks = marks, .mark_count = 3, .end = to});
  program_skip(h->builder, hold_text(h, after, ENDING), again);
  if (to != 0) program_skip(h->builder, after, to);
}

static uint32_t put_header(hold *h, uint32_t from, const char *channel) {
  return hold_text(h, hold_text(h, hold_text(h, from, "<|channel|>"), channel), "<|message|>");
}

// Adds a header that contains a tool's name, in the role or after the channel.
static bool put_calls(hold *h, uint32_t from, uint32_t to) {
  static const reply_form JSON = {.open = "", .arguments = ARGUMENTS_JSON};
  static const char *const HEADERS[][2] = {{"<|channel|>commentary to=functions.", ""},
                                           {" to=functions.", "<|channel|>commentary"}};
  bool can = false;
  for (uint32_t i = 0; i < h->tool_count; i++) {
    hold_tool *tool = &h->tools[i];
    const uint32_t arguments = hold_arguments(h, &JSON, tool), body = program_place(h->builder);
    if (arguments == 0) continue;
    for (uint32_t k = 0; k < 2; k++) {
      uint32_t at = hold_put(h, from, HEADERS[k][0], &JSON, tool, 0);
      at = hold_put(h, at, PATTERN_NAME, &JSON, tool, 0);
      at = hold_text(h, at, HEADERS[k][1]);
      program_skip(h->builder, at, body);
      program_skip(h->builder, hold_text(h, at, " <|constrain|>json"), body);
      program_skip(h->builder, hold_text(h, at, " json"), body);  // as in the template
    }
    const uint32_t start = hold_text(h, body, "<|message|>");
    program_call(h->builder, start, arguments, to);
    can = true;
  }
  return can;
}

bool hold_channels(hold *h, uint32_t from, uint32_t to) {
  const bool is_limited = h->content != 0 && !h->is_required;
  const bool is_known = h->has_begun || ends_with(h->ending, ENDING);
  if (is_limited && (h->has_begun || !is_known)) {
    program_call(h->builder, from, h->content, to);
    return is_known || h->tools == NULL;
  }
  if (!is_known) return false;
  const uint32_t header = program_place(h->builder), called = program_place(h->builder);
  const uint32_t end = h->is_required ? 0 : to;
  if (h->has_begun) {
    put_body(h, from, header, end);
  } else {
    program_skip(h->builder, from, header);
  }
  put_body(h, put_header(h, header, "analysis"), header, is_limited ? 0 : end);
  if (!is_limited) put_body(h, put_header(h, header, "commentary"), header, end);
  if (!h->is_required) {
    const uint32_t body = put_header(h, header, "final");
    if (is_limited) {
      program_call(h->builder, body, h->content, to);
    } else {
      put_body(h, body, header, end);
    }
  }
  if (h->tools == NULL) return true;
  if (!put_calls(h, header, called)) return false;
  program_skip(h->builder, called, to);
  if (!h->is_parallel) return true;
  // If the tag after a call does not end the reply, another call may follow.
  const uint32_t next = program_place(h->builder);
  program_skip(h->builder, hold_text(h, called, "<|call|>"), next);
  program_skip(h->builder, hold_text(h, called, "<|end|>"), next);
  program_skip(h->builder, next, to);
  const uint32_t again = hold_text(h, next, ENDING);
  if (h->is_required) {
    put_calls(h, again, called);
  } else {
    program_skip(h->builder, again, header);
  }
  return true;
}
