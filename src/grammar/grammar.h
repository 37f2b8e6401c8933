// grammar/grammar.h — constraints on text: compiled, and matched byte by
// byte. This room knows tokens (text/) and nothing of models, requests or logits.
//
// Begin reading at program.h (the compiled form), machine.h (how it runs), mask.h (tokens).
#ifndef WICK_GRAMMAR_GRAMMAR_H
#define WICK_GRAMMAR_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "grammar/gbnf.h"
#include "grammar/machine.h"
#include "text/tokenizer.h"

typedef struct grammar {
  memory_gate *memory;
  grammar_program program;
  machine *machine;
} grammar;

// Compiles; `tokens` may be NULL (then no token can be named). WICK_E_ARG (broken, with the place),
// WICK_E_UNSUPPORTED (cannot be honoured; named), WICK_E_FULL (too large), WICK_E_NOMEM.
wick_status grammar_create(memory_gate *memory, const tokenizer *tokens, const wick_grammar *wanted,
                           grammar **out, wick_error *error);
// The same with working memory of the caller's, which may be in slices: WICK_E_BUSY after a slice,
// and the next call continues. Afterwards, work_end.
wick_status grammar_run(grammar_work *work, const tokenizer *tokens, const wick_grammar *wanted,
                        grammar **out, wick_error *error);
// Builds the rules of what is wanted, and answers the one of a whole text; 0 after a failure.
uint32_t grammar_build(program_builder *builder, const tokenizer *tokens,
                       const wick_grammar *wanted, gbnf_names **names);
// The reply of a chat model that may call tools, in the form of the engine's chat template. The
// text is a JSON object of `tools`, `tool_choice` ("auto", "required", or {"function": {"name"}}),
// `parallel_tool_calls` in OpenAI's format, `ending`, the part of the prompt after the messages,
// `has_begun`: its end is content, and `content`: {"kind", "text"}, a grammar of the content after
// the reasoning. "auto": free until a call begins, or the content; else nothing but calls after the
// reasoning. Text that begins as a call has arguments of its schema, or WICK_E_UNSUPPORTED names
// what cannot be. print_special belongs to it, except for plain <think>.
#define GRAMMAR_REPLY ((wick_grammar_kind)5)
// Room reply has it (hold.c), which knows how models write calls.
uint32_t grammar_build_reply(program_builder *builder, const tokenizer *tokens,
                             const wick_grammar *wanted, gbnf_names **names);
void grammar_destroy(grammar *grammar);

// A place in a text. Copies are independent.
typedef struct grammar_matcher {
  grammar *grammar;  // NULL: none
  machine_mark mark;
} grammar_matcher;

void matcher_begin(grammar *grammar, grammar_matcher *matcher);
// After the text so far. WICK_E_ARG: no text begins so; there is no place then.
wick_status matcher_begin_behind(grammar *grammar, const wick_grammar *wanted,
                                 grammar_matcher *matcher, wick_error *error);
void matcher_copy(const grammar_matcher *from, grammar_matcher *to);
void matcher_end(grammar_matcher *matcher);
// False when the text cannot continue so; the place is then unchanged.
bool matcher_take_bytes(grammar_matcher *matcher, const uint8_t *bytes, size_t count);
// The same of a token: its bytes, or what the grammar says of the token itself.
bool matcher_take_token(grammar_matcher *matcher, const tokenizer *tokens, int32_t token,
                        uint8_t *scratch);
// The bytes that follow because nothing else may: up to `capacity`. Returns their number. The place
// stays.
size_t matcher_only_bytes(grammar_matcher *matcher, uint8_t *bytes, size_t capacity);
// The text may end here.
bool matcher_accepts(const grammar_matcher *matcher);
// It may continue.
bool matcher_continues(const grammar_matcher *matcher);
// It may do both, and ends unless the model itself continues it with what the grammar allows.
bool matcher_ends_turn(const grammar_matcher *matcher);

#endif
