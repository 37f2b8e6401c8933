// api/constraint.c — standalone grammars that check strings, with or without an engine.
#include <string.h>

#include "api/insides.h"
#include "base/json.h"
#include "grammar/document.h"
#include "grammar/grammar.h"
#include "grammar/numbers.h"
#include "platform/platform.h"

struct wick_constraint {
  memory_gate own;      // without an engine
  memory_gate *memory;  // the engine's gate, or `own`
  wick_engine *engine;  // NULL: none
  grammar *grammar;
  grammar_matcher start;  // after the text so far
  uint8_t *piece;         // a token's bytes; NULL without an engine
};

wick_status wick_constraint_create(wick_engine *engine, const wick_grammar *wanted,
                                   wick_constraint **out, wick_error *error) {
  memory_gate own;
  *out = NULL;
  memory_init(&own, 0, platform_alloc, platform_free);
  if (engine != NULL && engine->tokenizer == NULL) return wick_tokenizer_status(engine, error);
  memory_gate *memory = engine == NULL ? &own : &engine->memory;
  wick_constraint *made = memory_alloc_zeroed(memory, sizeof *made);
  if (made == NULL) return memory_fail(memory, error, "a grammar");
  made->own = own;
  made->engine = engine;
  made->memory = engine == NULL ? &made->own : &engine->memory;
  const tokenizer *tokens = engine == NULL ? NULL : engine->tokenizer;
  wick_status status = grammar_create(made->memory, tokens, wanted, &made->grammar, error);
  if (status == WICK_OK) {
    status = matcher_begin_after(made->grammar, wanted, &made->start, error);
  }
  if (status == WICK_OK && tokens != NULL) {
    const size_t piece_bytes = tokenizer_piece_bytes_max(tokens);
    made->piece = memory_alloc(made->memory, piece_bytes);
    if (made->piece == NULL) status = memory_fail(made->memory, error, "a token");
  }
  if (status != WICK_OK) {
    wick_constraint_destroy(made);
    return status;
  }
  *out = made;
  return WICK_OK;
}

void wick_constraint_destroy(wick_constraint *constraint) {
  if (constraint == NULL) return;
  matcher_end(&constraint->start);
  grammar_destroy(constraint->grammar);
  memory_free(constraint->memory, constraint->piece);
  memory_gate own = constraint->own;
  memory_free(constraint->engine == NULL ? &own : constraint->memory, constraint);
}

// ---- checking ----

static bool take_tokens(wick_constraint *constraint, grammar_matcher *matcher,
                        const int32_t *tokens, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (!matcher_take_token(matcher, constraint->engine->tokenizer, tokens[i], constraint->piece)) {
      return false;
    }
  }
  return true;
}

static bool take_ids(wick_constraint *constraint, grammar_matcher *matcher,
                     const json_document *document, const json_node *list) {
  for (uint32_t child = list->first; child != 0;) {
    const json_node *item = document_node(document, child);
    const uint32_t id = item->kind == JSON_NUMBER ? numbers_count(item->text) : UINT32_MAX;
    if (id >= tokenizer_vocab(constraint->engine->tokenizer)) return false;
    const int32_t token = (int32_t)id;
    if (!take_tokens(constraint, matcher, &token, 1)) return false;
    child = item->next;
  }
  return true;
}

static bool take_text(wick_constraint *constraint, grammar_matcher *matcher, grammar_work *work,
                      document_text text) {
  if (constraint->engine == NULL) return matcher_take_bytes(matcher, text.bytes, text.size_bytes);
  size_t count = 0;
  int32_t *tokens = work_alloc(work, text.size_bytes + 8, sizeof *tokens);
  if (tokens == NULL) return false;
  const wick_status status =
      tokenizer_encode(constraint->engine->tokenizer, (const char *)text.bytes, text.size_bytes, 0,
                       tokens, text.size_bytes + 8, &count, &work->error);
  if (status != WICK_OK) work->status = status;
  return status == WICK_OK && take_tokens(constraint, matcher, tokens, count);
}

static void check_item(wick_constraint *constraint, grammar_work *work,
                       const json_document *document, const json_node *item, json_writer *json) {
  grammar_matcher matcher;
  bool fits = false;
  matcher_copy(&constraint->start, &matcher);
  if (item->kind == JSON_STRING) {
    fits = take_text(constraint, &matcher, work, item->text);
  } else if (item->kind == JSON_ARRAY && constraint->engine != NULL) {
    fits = take_ids(constraint, &matcher, document, item);
  } else {
    work_fail(work, WICK_E_ARG, item->at, "item %u is not a string", item->index);
  }
  // the item may match: only the limit on positions stopped it
  if (!fits && machine_is_full(matcher.grammar->machine)) {
    work_fail(work, WICK_E_UNSUPPORTED, item->at, "item %u: grammar state exceeds %d positions",
              item->index, (int)MACHINE_PLACES_MAX);
  }
  json_bool(json, NULL, fits && matcher_accepts(&matcher));
  matcher_end(&matcher);
}

wick_status wick_constraint_check(wick_constraint *constraint, const char *texts, size_t text_bytes,
                                  wick_text_sink sink, void *context, wick_error *error) {
  grammar_work work;
  json_document document;
  json_writer json;
  work_begin(&work, constraint->memory);
  json_begin(&json, sink, context);
  if (document_read(&work, (const uint8_t *)texts, text_bytes, &document)) {
    const json_node *list = document_node(&document, 1);
    if (list->kind != JSON_ARRAY) work_fail(&work, WICK_E_ARG, 0, "a JSON array is expected");
    json_open(&json, NULL, '[');
    for (uint32_t child = list->first; child != 0 && work_is_ok(&work);) {
      check_item(constraint, &work, &document, document_node(&document, child), &json);
      child = document_node(&document, child)->next;
    }
    json_close(&json, ']');
  }
  const wick_status status = work.status;
  if (status != WICK_OK && error != NULL) *error = work.error;
  work_end(&work);
  return status;
}
