// template/arena.h — memory of a template or of one rendering: allocated piece by piece, freed as a
// whole, with a limit on the total.
#ifndef WICK_TEMPLATE_ARENA_H
#define WICK_TEMPLATE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

typedef struct jinja_arena_block jinja_arena_block;

typedef struct jinja_arena {
  memory_gate *memory;
  jinja_arena_block *blocks;  // newest first
  char *at, *end;             // free part of the newest block
  size_t held_bytes;          // total size of all blocks
  size_t limit_bytes;
  bool is_over;  // an allocation failed because of the limit, not because of the host
} jinja_arena;

void jinja_arena_init(jinja_arena *arena, memory_gate *memory, size_t limit_bytes);
void jinja_arena_free(jinja_arena *arena);
// Returns 8-byte aligned memory that is not zeroed; NULL if the limit is exceeded or the host is
// out of memory. O(1).
void *jinja_arena_take(jinja_arena *arena, size_t size_bytes);
// Enlarges a piece and keeps its contents. The newest piece grows in place. For any other piece,
// the old memory remains in use until everything is freed. Returns NULL in the same cases as
// jinja_arena_take; the old piece is then unchanged.
void *jinja_arena_extend(jinja_arena *arena, void *piece, size_t old_bytes, size_t new_bytes);

#endif
