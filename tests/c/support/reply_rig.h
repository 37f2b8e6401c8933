// Helpers for reply tests: parse replies in pieces of any size and collect their events.
#ifndef WICK_TESTS_REPLY_RIG_H
#define WICK_TESTS_REPLY_RIG_H

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "check.h"
#include "platform/platform.h"
#include "reply/reply.h"

enum { RIG_TEXT_BYTES = 4096, RIG_CALLS = 8 };

typedef struct rig_text {
  char bytes[RIG_TEXT_BYTES];
  size_t size_bytes;  // of all text, including the part that did not fit
} rig_text;

typedef struct rig_call {
  rig_text name, id, arguments;
  bool has_ended;
} rig_call;

typedef struct reply_rig {
  memory_gate memory;
  reply_format format;
  wick_text tools;
  const char *prompt;  // the end of the rendered prompt
  bool has_begun;      // argument of reply_parser_limit, like `wanted`
  wick_grammar_kind wanted;
  rig_text content, reasoning;
  rig_call calls[RIG_CALLS];
  uint32_t call_count;
  bool is_valid;  // events arrived in order
  bool is_text;   // every piece was valid UTF-8
  wick_status status;
  wick_error error;
  uint64_t steps;
} reply_rig;

static inline void rig_add(rig_text *text, const char *bytes, size_t size_bytes) {
  for (size_t i = 0; i < size_bytes; i++, text->size_bytes++) {
    if (text->size_bytes < RIG_TEXT_BYTES - 1) text->bytes[text->size_bytes] = bytes[i];
  }
}

static inline bool rig_is_utf8(const char *bytes, size_t size_bytes) {
  for (size_t at = 0; at < size_bytes;) {
    uint32_t code = 0;
    const int count = utf8_decode((const uint8_t *)bytes + at, size_bytes - at, &code);
    if (count <= 0) return false;
    at += (size_t)count;
  }
  return true;
}

static inline void rig_take(void *context, const reply_event *event) {
  reply_rig *rig = context;
  if (!rig_is_utf8(event->text, event->text_bytes)) rig->is_text = false;
  if (event->kind == REPLY_CONTENT) rig_add(&rig->content, event->text, event->text_bytes);
  if (event->kind == REPLY_REASONING) rig_add(&rig->reasoning, event->text, event->text_bytes);
  if (event->kind < REPLY_CALL_BEGINS) return;
  const bool begins = event->kind == REPLY_CALL_BEGINS;
  if (begins) rig->call_count++;
  if (event->call + 1 != rig->call_count) rig->is_valid = false;
  if (event->call >= RIG_CALLS) return;
  rig_call *call = &rig->calls[event->call];
  if (call->has_ended) rig->is_valid = false;
  if (begins && event->text_bytes == 0) rig->is_valid = false;
  if (begins) rig_add(&call->name, event->text, event->text_bytes);
  if (begins) rig_add(&call->id, event->id, event->id_bytes);
  if (event->kind == REPLY_CALL_ARGUMENTS) {
    rig_add(&call->arguments, event->text, event->text_bytes);
  }
  if (event->kind == REPLY_CALL_ENDS) call->has_ended = true;
}

static inline wick_status rig_parser(reply_rig *rig, const char *prompt, reply_parser **out) {
  return reply_parser_create(&rig->memory, &rig->format, rig->tools,
                             (wick_text){prompt, strlen(prompt)}, out, &rig->error);
}

// Sets up the format of replies and the tools. `tools` is JSON, or NULL for no tools.
static inline void rig_open(reply_rig *rig, const char *template_text, size_t template_bytes,
                            const char *tools, size_t tools_bytes, const char *prompt) {
  memset(rig, 0, sizeof *rig);
  memory_init(&rig->memory, 0, platform_alloc, platform_free);
  rig->format = reply_format_find(template_text, template_bytes);
  rig->prompt = prompt;
  rig->tools = (wick_text){tools, tools_bytes};
  reply_parser *parser = NULL;
  rig->status = rig_parser(rig, prompt, &parser);
  reply_parser_destroy(parser);
}

static inline void rig_close(const reply_rig *rig) { CHECK_EQ_UINT(rig->memory.blocks_now, 0); }

// Parses a reply in a piece of `first` bytes and then pieces of `then` bytes (0: the rest).
static inline void rig_parse(reply_rig *rig, const char *text, size_t size_bytes, size_t first,
                             size_t then) {
  reply_parser *parser = NULL;
  memset(&rig->content, 0, sizeof rig->content);
  memset(&rig->reasoning, 0, sizeof rig->reasoning);
  memset(rig->calls, 0, sizeof rig->calls);
  rig->call_count = 0;
  rig->is_valid = rig->is_text = true;
  rig->status = rig_parser(rig, rig->prompt, &parser);
  if (rig->status != WICK_OK) return;
  reply_parser_limit(parser, rig->has_begun, rig->wanted);
  for (size_t at = 0, piece = first; at < size_bytes && rig->status == WICK_OK; piece = then) {
    if (piece == 0 || piece > size_bytes - at) piece = size_bytes - at;
    rig->status = reply_parser_feed(parser, text + at, piece, rig_take, rig, &rig->error);
    at += piece;
  }
  if (rig->status == WICK_OK) rig->status = reply_parser_end(parser, rig_take, rig, &rig->error);
  rig->steps = reply_parser_steps(parser);
  reply_parser_destroy(parser);
}

#endif
