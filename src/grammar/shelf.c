// grammar/shelf.c — keeps compiled grammars.
#include "grammar/shelf.h"

#include <string.h>

#include "base/checked.h"

static bool is_same_text(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
  return a_bytes == b_bytes && (a_bytes == 0 || memcmp(a, b, a_bytes) == 0);
}

static bool is_same(const wick_grammar *a, const wick_grammar *b) {
  return a->kind == b->kind && a->any_spelling == b->any_spelling &&
         is_same_text(a->text, a->text_bytes, b->text, b->text_bytes) &&
         is_same_text(a->trigger, a->trigger_bytes, b->trigger, b->trigger_bytes) &&
         is_same_text(a->marker, a->marker_bytes, b->marker, b->marker_bytes);
}

static void copy_text(char **to, const char **text, size_t size_bytes) {
  if (size_bytes != 0) memcpy(*to, *text, size_bytes);
  *text = *to;
  *to += size_bytes;
}

// The caller's texts into memory of the constraint's own.
static bool copy_texts(memory_gate *memory, const wick_grammar *wanted, constraint *made) {
  size_t size_bytes;
  made->wanted = *wanted;
  made->wanted.begun = NULL;  // it is each request's own
  made->wanted.begun_bytes = 0;
  if (!checked_add_size(wanted->text_bytes, wanted->trigger_bytes, &size_bytes) ||
      !checked_add_size(size_bytes, wanted->marker_bytes, &size_bytes)) {
    return false;
  }
  char *to = made->texts = memory_alloc(memory, size_bytes);
  if (to == NULL) return false;
  copy_text(&to, &made->wanted.text, wanted->text_bytes);
  copy_text(&to, &made->wanted.trigger, wanted->trigger_bytes);
  copy_text(&to, &made->wanted.marker, wanted->marker_bytes);
  return true;
}

static void destroy(memory_gate *memory, constraint *constraint) {
  mask_cache_destroy(constraint->masks);
  grammar_destroy(constraint->grammar);
  memory_free(memory, constraint->texts);
  memory_free(memory, constraint);
}

static wick_status fill(grammar_shelf *shelf, memory_gate *memory, const tokenizer *tokens,
                        const wick_grammar *wanted, constraint *made, wick_error *error) {
  wick_status status = WICK_OK;
  if (shelf->reserve == NULL) shelf->reserve = memory_alloc(memory, SHELF_RESERVE_BYTES);
  if (shelf->reserve == NULL) {
    return memory_fail(memory, error, "tokenizing");
  }
  if (shelf->trie == NULL) status = trie_create(memory, tokens, &shelf->trie, error);
  if (status == WICK_OK) status = grammar_create(memory, tokens, wanted, &made->grammar, error);
  if (status == WICK_OK) status = mask_cache_create(memory, shelf->trie, &made->masks, error);
  if (status == WICK_OK && !copy_texts(memory, wanted, made)) {
    status = memory_fail(memory, error, "a grammar's text");
  }
  return status;
}

// Puts one more in front of the list; NULL: `status` says why not.
static constraint *make(grammar_shelf *shelf, memory_gate *memory, const tokenizer *tokens,
                        const wick_grammar *wanted, wick_status *status, wick_error *error) {
  constraint *made = memory_alloc_zeroed(memory, sizeof *made);
  if (made == NULL) {
    *status = memory_fail(memory, error, "a grammar");
    return NULL;
  }
  *status = fill(shelf, memory, tokens, wanted, made, error);
  if (*status != WICK_OK) {
    destroy(memory, made);
    return NULL;
  }
  made->next = shelf->constraints;
  shelf->constraints = made;
  return made;
}

// Destroys the idle one that was used first when there are more than `most`. False: there are not.
static bool drop_idle(grammar_shelf *shelf, memory_gate *memory, uint32_t most) {
  constraint **oldest = NULL;
  uint32_t count = 0;
  for (constraint **link = &shelf->constraints; *link != NULL; link = &(*link)->next) {
    if ((*link)->users != 0) continue;
    count++;
    if (oldest == NULL || (*link)->used < (*oldest)->used) oldest = link;
  }
  if (oldest == NULL || count <= most) return false;
  constraint *gone = *oldest;
  *oldest = gone->next;
  destroy(memory, gone);
  return true;
}

wick_status shelf_take(grammar_shelf *shelf, memory_gate *memory, const tokenizer *tokens,
                       const wick_grammar *wanted, constraint **out, wick_error *error) {
  constraint *found = shelf->constraints;
  while (found != NULL && !is_same(&found->wanted, wanted)) found = found->next;
  while (found == NULL) {
    wick_status status;
    found = make(shelf, memory, tokens, wanted, &status, error);
    const bool may_fit = status == WICK_E_NOMEM && drop_idle(shelf, memory, 0);
    if (status != WICK_OK && !may_fit) return status;
  }
  found->users++;
  *out = found;
  return WICK_OK;
}

void shelf_give_back(grammar_shelf *shelf, memory_gate *memory, constraint *given) {
  given->users--;
  given->used = ++shelf->clock;
  drop_idle(shelf, memory, SHELF_IDLE_MAX);
}

void shelf_clear(grammar_shelf *shelf, memory_gate *memory) {
  while (shelf->constraints != NULL) {
    constraint *next = shelf->constraints->next;
    destroy(memory, shelf->constraints);
    shelf->constraints = next;
  }
  // Where there was no grammar, the module of grammars may not be there (tools/build/split.mjs).
  if (shelf->trie != NULL) trie_destroy(shelf->trie);
  memory_free(memory, shelf->reserve);
  shelf->reserve = NULL;
  shelf->trie = NULL;
}
