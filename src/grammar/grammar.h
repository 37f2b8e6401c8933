// grammar/grammar.h — constraints on text: compiled, and matched byte by byte. This folder depends
// on tokens (text/), but not on models, requests or logits.
//
// Start reading at program.h (the compiled form), machine.h (how it runs) and mask.h (tokens).
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

// Compiles a grammar. If `tokens` is NULL, it cannot refer to tokens. WICK_E_ARG (invalid, with the
// position), WICK_E_UNSUPPORTED (the message names the feature), WICK_E_FULL (too large),
// WICK_E_NOMEM.
wick_status grammar_create(memory_gate *memory, const tokenizer *tokens, const wick_grammar *wanted,
                           grammar **out, wick_error *error);
// Like grammar_create, in slices and with the caller's working memory: returns WICK_E_BUSY after a
// slice, and the next call continues. Call work_end afterwards.
wick_status grammar_run(grammar_work *work, const tokenizer *tokens, const wick_grammar *wanted,
                        grammar **out, wick_error *error);
// Builds the rules of a grammar. Returns the rule for the whole text; 0 after a failure.
uint32_t grammar_build(program_builder *builder, const tokenizer *tokens,
                       const wick_grammar *wanted, gbnf_names **names);
// A grammar for the reply of a chat model that may call tools, in the format of the engine's chat
// template. Its source is a JSON object:
//   tools, tool_choice ("auto", "required", or {"function": {"name"}}), parallel_tool_calls: as in
//     OpenAI's API
//   ending: the part of the prompt after the messages
//   has_begun: whether the end of `ending` is content
//   content: {"kind", "text"}, a grammar for the content after the reasoning
// With "auto", the text is free until a call or the content begins; otherwise only calls follow the
// reasoning. If the reply begins as a call, its arguments match the schema. A schema with an
// unsupported keyword is rejected with WICK_E_UNSUPPORTED, which names the keyword. The request
// needs print_special, unless the tags are a plain <think>.
#define GRAMMAR_REPLY ((wick_grammar_kind)5)
// Defined in reply/hold.c, next to the call formats.
uint32_t grammar_build_reply(program_builder *builder, const tokenizer *tokens,
                             const wick_grammar *wanted, gbnf_names **names);
void grammar_destroy(grammar *grammar);

// A position in the text. Copies are independent.
typedef struct grammar_matcher {
  grammar *grammar;  // NULL: none
  machine_mark mark;
} grammar_matcher;

void matcher_begin(grammar *grammar, grammar_matcher *matcher);
// Starts after a prefix. WICK_E_ARG if the prefix does not match; the matcher is then unusable.
wick_status matcher_begin_after(grammar *grammar, const wick_grammar *wanted,
                                grammar_matcher *matcher, wick_error *error);
void matcher_copy(const grammar_matcher *from, grammar_matcher *to);
void matcher_end(grammar_matcher *matcher);
// Advances the position past these bytes. Returns false, and leaves the position unchanged, if the
// text cannot continue with them.
bool matcher_take_bytes(grammar_matcher *matcher, const uint8_t *bytes, size_t count);
// Like matcher_take_bytes, for a token: its bytes, or the token itself if the grammar refers to it.
bool matcher_take_token(grammar_matcher *matcher, const tokenizer *tokens, int32_t token,
                        uint8_t *scratch);
// Writes the bytes that must follow, up to `capacity`, and returns their number. The position does
// not change.
size_t matcher_only_bytes(grammar_matcher *matcher, uint8_t *bytes, size_t capacity);
// Whether the text may end here.
bool matcher_accepts(const grammar_matcher *matcher);
// Whether the text may continue.
bool matcher_continues(const grammar_matcher *matcher);
// Whether the text may either end or continue; it ends unless the model continues it as the grammar
// allows.
bool matcher_ends_turn(const grammar_matcher *matcher);

#endif
