// Helpers for grammar tests: compile grammars without a model and match text byte by byte.
#ifndef WICK_TESTS_GRAMMAR_RIG_H
#define WICK_TESTS_GRAMMAR_RIG_H

#include <stdio.h>
#include <string.h>

#include "check.h"
#include "grammar/grammar.h"
#include "platform/platform.h"
#include "random.h"

typedef struct grammar_rig {
  memory_gate memory;
  grammar *grammar;
  wick_status status;
  wick_error error;
} grammar_rig;

// Compiles the grammar repeatedly, with a different allocation failing each time. (Sanitizer builds
// make one allocation for every piece: grammar/work.c.)
static inline void rig_try_without_memory(const grammar_rig *rig, const wick_grammar *wanted) {
  enum { TRIES = 3 };
  static uint64_t state = 9;
  const uint64_t calls = rig->memory.calls;
  for (uint64_t i = 0; i < (calls < TRIES ? calls : TRIES); i++) {
    memory_gate memory;
    grammar *made = NULL;
    wick_error error = {0};
    memory_init(&memory, 0, platform_alloc, platform_free);
    memory.fail_at_call = 1 + (calls <= TRIES ? i : random_below(&state, calls));
    CHECK_EQ_INT(grammar_create(&memory, NULL, wanted, &made, &error), WICK_E_NOMEM);
    CHECK_EQ_INT(error.status, WICK_E_NOMEM);
    CHECK(strncmp(error.message, "out of memory", 13) == 0 && made == NULL);
    CHECK_EQ_UINT(memory.blocks_now, 0);
  }
}

static inline void rig_compile(grammar_rig *rig, const wick_grammar *wanted) {
  memset(rig, 0, sizeof *rig);
  memory_init(&rig->memory, 0, platform_alloc, platform_free);
  rig->status = grammar_create(&rig->memory, NULL, wanted, &rig->grammar, &rig->error);
}

static inline void rig_open_text(grammar_rig *rig, wick_grammar_kind kind, const void *text,
                                 size_t size_bytes, bool any) {
  const wick_grammar wanted = {
      .kind = kind, .text = text, .text_bytes = size_bytes, .any_spelling = any};
  rig_compile(rig, &wanted);
  rig_try_without_memory(rig, &wanted);
}

static inline void rig_open(grammar_rig *rig, wick_grammar_kind kind, const char *text, bool any) {
  rig_open_text(rig, kind, text, strlen(text), any);
}

static inline void rig_close(grammar_rig *rig) {
  grammar_destroy(rig->grammar);
  CHECK_EQ_UINT(rig->memory.blocks_now, 0);
}

static inline bool rig_holds_bytes(grammar_rig *rig, const void *text, size_t size_bytes) {
  grammar_matcher matcher;
  matcher_begin(rig->grammar, &matcher);
  const bool fits = matcher_take_bytes(&matcher, text, size_bytes) && matcher_accepts(&matcher);
  matcher_end(&matcher);
  return fits;
}

static inline bool rig_holds(grammar_rig *rig, const char *text) {
  return rig_holds_bytes(rig, text, strlen(text));
}

#endif
