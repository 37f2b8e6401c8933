// reply/channels.c — messages with headers, as gpt-oss writes them (OpenAI's harmony format):
//   <|channel|>analysis<|message|>...<|end|>
//   <|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{...}
#include <string.h>

#include "reply/parser.h"

static void find(const reply_text *header, const char *mark, reply_text *out) {
  const size_t after = parser_find_last(header->bytes, header->size_bytes, mark);
  out->size_bytes = 0;
  for (size_t i = after; after != 0 && i < header->size_bytes; i++) {
    const uint8_t byte = (uint8_t)header->bytes[i];
    if (byte == '<' || json_is_space(byte) || !text_add(out, byte)) break;
  }
}

static void enter_body(reply_parser *p) {
  static const char PREFIX[] = "functions.";
  const size_t prefix_bytes = sizeof PREFIX - 1;
  reply_text channel;
  find(&p->header_text, "to=", &p->name);
  find(&p->header_text, "<|channel|>", &channel);
  p->base = p->at;
  p->trims = p->is_fresh = true;
  p->is_prose = false;
  const bool is_function =
      p->name.size_bytes > prefix_bytes && memcmp(p->name.bytes, PREFIX, prefix_bytes) == 0;
  if (is_function) {
    p->name.size_bytes -= (uint32_t)prefix_bytes;
    memmove(p->name.bytes, p->name.bytes + prefix_bytes, p->name.size_bytes);
  }
  p->id.size_bytes = 0;
  const bool is_spoken = p->name.size_bytes == 0 || text_is_equal(&p->name, "user") ||
                         text_is_equal(&p->name, "all") || text_is_equal(&p->name, "assistant");
  // A message to a tool that was not offered, such as the browser, counts as reasoning.
  const bool is_offered =
      p->tools != NULL && (is_function || tools_have(p->tools, p->name.bytes, p->name.size_bytes));
  if (is_spoken || !is_offered) {
    parser_enter_text(p, !is_spoken || text_is_equal(&channel, "analysis"));
    if (p->is_exact && !p->is_reasoning) p->trims = false;
  } else {
    p->is_reasoning = true;  // if the message is not JSON
    call_enter_named(p);
  }
}

// Whether the header ends with this byte.
static bool add(reply_parser *p, uint8_t byte, bool *is_full) {
  *is_full = !text_add(&p->header_text, byte);
  return marks_step(&p->header, byte) != NULL;
}

void channels_enter(reply_parser *p, const char *given, size_t size_bytes) {
  bool is_full = false, has_ended = false;
  p->place = PLACE_HEADER;
  p->header_text.size_bytes = 0;
  marks_restart(&p->header);
  for (size_t i = 0; i < size_bytes && !is_full && !has_ended; i++) {
    has_ended = add(p, (uint8_t)given[i], &is_full);
  }
  if (is_full) parser_enter_text(p, false);
  if (has_ended) enter_body(p);
}

void channels_step(reply_parser *p, uint8_t byte) {
  bool is_full = false;
  if (add(p, byte, &is_full)) {
    enter_body(p);
  } else if (is_full) {
    p->at--;
    p->is_reasoning = false;
    parser_give(p, p->at);
    parser_enter_text(p, false);
  }
}
