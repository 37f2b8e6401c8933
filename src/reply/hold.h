// reply/hold.h — internals of the grammar of a reply: after the tag of a format, it allows only
// calls of the request's tools with arguments that satisfy their schemas; after the reasoning, the
// required content.
#ifndef WICK_REPLY_HOLD_H
#define WICK_REPLY_HOLD_H

#include "grammar/document.h"
#include "grammar/grammar.h"
#include "grammar/schema.h"
#include "reply/forms.h"
#include "reply/reply.h"
#include "reply/tools.h"

enum { HOLD_TOOLS_MAX = 1024, HOLD_FORMS_MAX = 64, HOLD_RULES_MAX = 2 + HOLD_FORMS_MAX };
static const uint32_t HOLD_NO_RULE = UINT32_MAX;

typedef struct hold_tool {
  document_text name;
  const uint8_t *schema;  // schema of its parameters, as JSON
  size_t schema_bytes;
  // The rules of its arguments, by style, or by format if formats have their own rules. 0: not
  // built yet; HOLD_NO_RULE: the format cannot represent them and does not need to.
  uint32_t rules[HOLD_RULES_MAX];
} hold_tool;

typedef struct hold {
  program_builder *builder;
  json_document document;
  const uint8_t *document_source;
  uint64_t forms, own;  // as in reply_format
  const reply_thought *thought;
  uint32_t wrappers;
  document_text ending;  // the template's text after the last message
  bool is_required, is_parallel;
  bool has_begun;     // the prompt contains the beginning of the content
  bool any_spelling;  // for content that is JSON
  uint32_t kind;      // the grammar of the content: a wick_grammar_kind, and its text
  document_text text;
  uint32_t content;  // the rule of the content; 0: any content
  hold_tool *tools;  // tools that may be called
  uint32_t tool_count;
  uint32_t gap, id, short_id, digits;  // rules
  size_t skip;                         // bytes that hold_put skips because they were already read
} hold;

// ---- hold.c ----

// Returns a member of the request; 0 if there is none.
static inline uint32_t hold_find(const hold *h, const char *name) {
  return document_find(&h->document, 1, name);
}
// Reads the request, and builds the rule of the content.
bool hold_read(hold *h, const tokenizer *tokens, const wick_grammar *grammar, gbnf_names **names);
// Whether the reply can contain calls in a format of REPLY_FORMS.
bool hold_uses(const hold *h, uint32_t form);
// Builds the rule of the reply; 0 after a failure.
uint32_t hold_build(hold *h);

// ---- hold_calls.c ----

// Adds a pattern and returns the state after it. `tool` supplies the name in the pattern, and
// `arguments` is the rule for the tool's arguments.
uint32_t hold_put(hold *h, uint32_t from, const char *pattern, const reply_form *form,
                  const hold_tool *tool, uint32_t arguments);
uint32_t hold_text(hold *h, uint32_t from, const char *text);
// Returns the rule for a tool's arguments in a format; 0: the format cannot represent them and
// does not need to.
uint32_t hold_arguments(hold *h, const reply_form *form, hold_tool *tool);
// Whether a format can represent calls to the tool.
bool hold_can_call(const reply_form *form, const hold_tool *tool);
// Adds the text after the tag of a format up to the end of its calls, between two states, without
// its first `skip` bytes. `only`: the first call must be of this tool; NULL: of any tool. Returns
// false if the format cannot represent the calls.
bool hold_calls(hold *h, const reply_form *form, size_t skip, hold_tool *only, uint32_t from,
                uint32_t to);

// Whether the reply must not end within the reasoning.
static inline bool hold_must_answer(const hold *h) { return h->is_required || h->content != 0; }

// ---- hold_content.c ----

// Builds the rule of the required content, if any.
bool hold_read_content(hold *h, const tokenizer *tokens, gbnf_names **names);
// Fails and returns false if a parser could mistake the content for tool calls.
bool hold_check_content(hold *h, const tokenizer *tokens);
static inline bool hold_is_json(const hold *h) { return h->kind == WICK_GRAMMAR_JSON_SCHEMA; }

// ---- hold_channels.c ----

// Adds the reply of gpt-oss, starting in the header that the template has begun.
bool hold_channels(hold *h, uint32_t from, uint32_t to);
static inline bool hold_has_channels(const hold *h) {
  bool has = false;
  for (uint32_t i = 0; i < REPLY_FORM_COUNT; i++) {
    has = has || ((h->own >> i & 1) != 0 && REPLY_FORMS[i].arguments == ARGUMENTS_CHANNELS);
  }
  return has;
}

#endif
