// grammar/shelf.c — keeps compiled grammars.
#include "grammar/shelf.h"

#include <string.h>

#include "base/checked.h"
#include "base/hash.h"

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

// Copies the caller's strings into memory of the constraint.
static bool copy_texts(memory_gate *memory, const wick_grammar *wanted, constraint *made) {
  size_t size_bytes;
  made->wanted = *wanted;
  made->wanted.begun = NULL;  // each request has its own prefix
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

// Allocates the memory that every grammar needs in addition to its program.
static wick_status make_ready(grammar_shelf *shelf, memory_gate *memory, const tokenizer *tokens,
                              wick_error *error) {
  if (shelf->reserve == NULL) shelf->reserve = memory_alloc(memory, SHELF_RESERVE_BYTES);
  if (shelf->reserve == NULL) {
    return memory_fail(memory, error, "tokenizing");
  }
  return shelf->trie != NULL ? WICK_OK : trie_create(memory, tokens, &shelf->trie, error);
}

static constraint *begin_constraint(memory_gate *memory, const wick_grammar *wanted,
                                    wick_error *error) {
  constraint *made = memory_alloc_zeroed(memory, sizeof *made);
  if (made != NULL && copy_texts(memory, wanted, made)) return made;
  if (made != NULL) destroy(memory, made);
  memory_fail(memory, error, "a grammar's text");
  return NULL;
}

static bool is_refusal(wick_status status) {
  return status == WICK_E_ARG || status == WICK_E_UNSUPPORTED || status == WICK_E_FULL;
}

// Compiles the grammar and puts the constraint at the head of the list; if the grammar was
// rejected, the constraint has the error. WICK_E_BUSY: the slice has ended.
static wick_status compile(grammar_shelf *shelf, grammar_work *work, const tokenizer *tokens,
                           constraint *made, wick_error *error) {
  wick_status status = make_ready(shelf, work->memory, tokens, error);
  if (status != WICK_OK) return status;
  status = grammar_run(work, tokens, &made->wanted, &made->grammar, &made->refusal);
  if (status == WICK_OK) {
    status = mask_cache_create(work->memory, shelf->trie, &made->masks, error);
    if (status != WICK_OK) return status;
  } else if (!is_refusal(status)) {
    if (error != NULL) *error = made->refusal;
    return status;
  }
  made->used = ++shelf->clock;
  made->next = shelf->constraints;
  shelf->constraints = made;
  return WICK_OK;
}

// If there are more than `most` idle constraints (rejected ones with is_refused, otherwise the
// others), destroys the least recently used one. Otherwise returns false.
static bool drop_idle(grammar_shelf *shelf, memory_gate *memory, bool is_refused, uint32_t most) {
  constraint **oldest = NULL;
  uint32_t count = 0;
  for (constraint **link = &shelf->constraints; *link != NULL; link = &(*link)->next) {
    if ((*link)->users != 0 || ((*link)->grammar == NULL) != is_refused) continue;
    count++;
    if (oldest == NULL || (*link)->used < (*oldest)->used) oldest = link;
  }
  if (oldest == NULL || count <= most) return false;
  constraint *gone = *oldest;
  *oldest = gone->next;
  destroy(memory, gone);
  return true;
}

static constraint *find(const grammar_shelf *shelf, const wick_grammar *wanted) {
  constraint *found = shelf->constraints;
  while (found != NULL && !is_same(&found->wanted, wanted)) found = found->next;
  return found;
}

// Compiles a grammar without pauses.
static wick_status make(grammar_shelf *shelf, memory_gate *memory, const tokenizer *tokens,
                        const wick_grammar *wanted, wick_error *error) {
  constraint *made = begin_constraint(memory, wanted, error);
  if (made == NULL) return WICK_E_NOMEM;
  grammar_work work;
  work_begin(&work, memory);
  work_limit(&work, &shelf->limits, 0);
  const wick_status status = compile(shelf, &work, tokens, made, error);
  work_end(&work);
  if (status != WICK_OK) destroy(memory, made);
  return status;
}

wick_status shelf_take(grammar_shelf *shelf, memory_gate *memory, const tokenizer *tokens,
                       const wick_grammar *wanted, constraint **out, wick_error *error) {
  while (find(shelf, wanted) == NULL) {
    const wick_status status = make(shelf, memory, tokens, wanted, error);
    const bool may_fit = status == WICK_E_NOMEM &&
                         (drop_idle(shelf, memory, false, 0) || drop_idle(shelf, memory, true, 0));
    if (status != WICK_OK && !may_fit) return status;
  }
  constraint *found = find(shelf, wanted);
  if (found->grammar == NULL) {
    found->used = ++shelf->clock;
    const wick_status status = found->refusal.status;
    if (error != NULL) *error = found->refusal;
    drop_idle(shelf, memory, true, SHELF_REFUSED_MAX);
    return status;
  }
  found->users++;
  *out = found;
  return WICK_OK;
}

void shelf_give_back(grammar_shelf *shelf, memory_gate *memory, constraint *given) {
  given->users--;
  given->used = ++shelf->clock;
  drop_idle(shelf, memory, false, SHELF_IDLE_MAX);
}

// ---- in slices ----

static void end_job(memory_gate *memory, shelf_job **job) {
  if (*job == NULL) return;
  work_end(&(*job)->work);
  if ((*job)->made != NULL) destroy(memory, (*job)->made);
  memory_free(memory, *job);
  *job = NULL;
}

static void begin_job(grammar_shelf *shelf, memory_gate *memory, const wick_grammar *wanted,
                      shelf_job **job) {
  *job = memory_alloc_zeroed(memory, sizeof **job);
  if (*job == NULL) return;
  work_begin(&(*job)->work, memory);
  work_limit(&(*job)->work, &shelf->limits, SHELF_SLICE_STEPS);
  (*job)->made = begin_constraint(memory, wanted, NULL);
  if ((*job)->made == NULL) end_job(memory, job);
}

static uint64_t hash_of(const wick_grammar *wanted) {
  return hash_bytes(wanted->text, wanted->text_bytes, (uint64_t)wanted->kind);
}

static bool is_slow(const grammar_shelf *shelf, const wick_grammar *wanted) {
  const uint64_t hash = hash_of(wanted);
  for (uint32_t i = 0; i < SHELF_SLOW_MAX && i < shelf->slow_count; i++) {
    if (shelf->slow_ones[i] == hash) return true;
  }
  return false;
}

// Returns the job of a grammar, which is started if there is a free slot; NULL if the grammar must
// wait. A compilation that has not been continued for a long time is dropped.
static shelf_job **find_job(grammar_shelf *shelf, memory_gate *memory, const wick_grammar *wanted) {
  enum { GIVEN_UP = 200 };
  shelf_job **jobs[2] = {&shelf->quick, &shelf->slow};
  for (int i = 0; i < 2; i++) {
    if (*jobs[i] != NULL && is_same(&(*jobs[i])->made->wanted, wanted)) return jobs[i];
  }
  shelf_job **place = jobs[is_slow(shelf, wanted)];
  if (*place != NULL && shelf->clock - (*place)->used > GIVEN_UP) end_job(memory, place);
  if (*place != NULL) return NULL;
  begin_job(shelf, memory, wanted, place);
  return place;
}

// Moves a long compilation out of the way of later ones: it becomes the slow job, or waits for the
// slow job and starts over.
static void leave_quick(grammar_shelf *shelf, memory_gate *memory) {
  if (++shelf->quick->slices < SHELF_QUICK_SLICES) return;
  shelf->slow_ones[shelf->slow_count++ % SHELF_SLOW_MAX] = hash_of(&shelf->quick->made->wanted);
  if (shelf->slow != NULL) {
    end_job(memory, &shelf->quick);
  } else {
    shelf->slow = shelf->quick;
    shelf->quick = NULL;
  }
}

bool shelf_prepare(grammar_shelf *shelf, memory_gate *memory, const tokenizer *tokens,
                   const wick_grammar *wanted) {
  shelf->clock++;
  if (find(shelf, wanted) != NULL) return true;
  shelf_job **job = find_job(shelf, memory, wanted);
  if (job == NULL) return false;
  if (*job == NULL) return true;  // out of memory, which shelf_take reports
  (*job)->used = shelf->clock;
  const wick_status status = compile(shelf, &(*job)->work, tokens, (*job)->made, NULL);
  if (status == WICK_E_BUSY) {
    if (job == &shelf->quick) leave_quick(shelf, memory);
    return false;
  }
  if (status == WICK_OK) (*job)->made = NULL;  // the list owns the constraint now
  end_job(memory, job);
  drop_idle(shelf, memory, true, SHELF_REFUSED_MAX);
  return true;
}

void shelf_clear(grammar_shelf *shelf, memory_gate *memory) {
  // Without jobs, the grammar module may not be loaded (tools/build/split.mjs).
  if (shelf->quick != NULL) end_job(memory, &shelf->quick);
  if (shelf->slow != NULL) end_job(memory, &shelf->slow);
  while (shelf->constraints != NULL) {
    constraint *next = shelf->constraints->next;
    destroy(memory, shelf->constraints);
    shelf->constraints = next;
  }
  if (shelf->trie != NULL) trie_destroy(shelf->trie);
  memory_free(memory, shelf->reserve);
  shelf->reserve = NULL;
  shelf->trie = NULL;
}
