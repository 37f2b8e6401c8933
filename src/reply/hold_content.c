// reply/hold_content.c — constrains a reply's content after the reasoning.
#include <string.h>

#include "grammar/numbers.h"
#include "reply/hold.h"

static wick_grammar grammar_of(const hold *h) {
  return (wick_grammar){.kind = (wick_grammar_kind)h->kind,
                        .text = (const char *)h->text.bytes,
                        .text_bytes = h->text.size_bytes,
                        .any_spelling = h->any_spelling && hold_is_json(h)};
}

bool hold_read_content(hold *h, const tokenizer *tokens, gbnf_names **names) {
  const json_document *document = &h->document;
  const uint32_t content = hold_find(h, "content");
  if (content == 0) return true;
  h->kind = numbers_count(document_node(document, document_find(document, content, "kind"))->text);
  h->text = document_node(document, document_find(document, content, "text"))->text;
  if (h->kind == GRAMMAR_REPLY) h->kind = WICK_GRAMMAR_NONE;  // content is not a reply
  const wick_grammar how = grammar_of(h);
  h->content = grammar_build(h->builder, tokens, &how, names);
  return work_is_ok(h->builder->work);
}

// ---- content that a parser could mistake for something else ----

static void check_beginning(hold *h, grammar *content, const char *text, size_t size_bytes) {
  grammar_matcher matcher;
  matcher_begin(content, &matcher);
  if (size_bytes > 0 && matcher_take_bytes(&matcher, (const uint8_t *)text, size_bytes)) {
    work_fail(h->builder->work, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
              "the content may begin as reasoning or a call: %.*s", (int)size_bytes, text);
  }
  matcher_end(&matcher);
}

static void check_mark(hold *h, grammar *content, const char *mark) {
  check_beginning(h, content, mark, strlen(mark));
}

static void check_form(hold *h, grammar *content, const reply_form *form) {
  check_mark(h, content, form->open);
  for (uint32_t i = 0; i < h->tool_count && (form->flags & FORM_BARE) != 0; i++) {
    const document_text name = h->tools[i].name;
    char text[REPLY_BEGINNING_BYTES];
    const size_t size = reply_call_beginning(form, (const char *)name.bytes, name.size_bytes, text);
    check_beginning(h, content, text, size);
  }
}

bool hold_check_content(hold *h, const tokenizer *tokens) {
  const wick_grammar how = grammar_of(h);
  const bool is_free = h->content == 0 || h->is_required;
  uint64_t forms = h->tools != NULL || hold_has_channels(h) ? h->own : 0;
  bool has_bare = false;
  grammar *alone;
  for (uint32_t i = 0; i < REPLY_FORM_COUNT; i++) {
    has_bare = has_bare || ((forms >> i & 1) != 0 && (REPLY_FORMS[i].flags & FORM_BARE) != 0);
  }
  if (is_free || (hold_is_json(h) && !has_bare)) return true;
  if (grammar_create(h->builder->work->memory, tokens, &how, &alone, NULL) != WICK_OK) return true;
  check_mark(h, alone, h->thought->open);
  check_mark(h, alone, h->thought->close);
  for (uint32_t i = 0; i < REPLY_FORM_COUNT; i++) {
    if ((forms >> i & 1) != 0) check_form(h, alone, &REPLY_FORMS[i]);
  }
  for (uint32_t i = 0; i < REPLY_WRAPPER_COUNT; i++) {
    if ((h->wrappers >> i & 1) != 0) check_mark(h, alone, REPLY_WRAPPERS[i].mark);
  }
  grammar_destroy(alone);
  return work_is_ok(h->builder->work);
}
