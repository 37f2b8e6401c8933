// schedule/thought.h — a limit on reasoning: once a reply has spent the allowed number of tokens on
// it, the end-of-reasoning tag is inserted as if it had been sampled (llama.cpp's
// --reasoning-budget).
#ifndef WICK_SCHEDULE_THOUGHT_H
#define WICK_SCHEDULE_THOUGHT_H

#include "base/memory.h"
#include "base/status.h"
#include "reply/reply.h"
#include "text/tokenizer.h"
#include "wick.h"

enum { THOUGHT_IDS_MAX = 16 };

typedef struct thought_close {
  int32_t ids[THOUGHT_IDS_MAX];
  size_t count;
} thought_close;

typedef struct thought {
  reply_parser *parser;  // parses the output
  uint32_t left;         // number of tokens left
  uint32_t late;         // tokens after the limit, while a character is incomplete
  bool was_closed;       // the limit has ended the reasoning once
  // The tokens that end the reasoning; the second list is for reasoning that resumes after that.
  thought_close closes[2];
} thought;

// Creates a limit on reasoning. WICK_E_UNSUPPORTED if the end-of-reasoning tag has more than
// THOUGHT_IDS_MAX tokens, WICK_E_NOMEM, or an error of tokenizer_encode.
wick_status thought_create(memory_gate *memory, tokenizer *tokens, const reply_format *format,
                           const wick_reasoning *wanted, thought **out, wick_error *error);
void thought_destroy(memory_gate *memory, thought *thought);  // NULL does nothing
// Processes the text of a token, which may be a control token. Nothing is allocated.
void thought_take(thought *thought, const uint8_t *bytes, size_t size_bytes);
// Whether the reasoning must end here.
bool thought_is_due(const thought *thought);

#endif
