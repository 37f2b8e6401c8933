// template/arena.c — blocks that double in size up to a limit, and pieces of them.
#include "template/arena.h"

#include <string.h>

#include "base/checked.h"

// With the address sanitizer, each piece is a separate block, so that accesses beyond its end are
// detected, and each allocation may fail.
#if defined(__has_feature) && __has_feature(address_sanitizer)
enum { BLOCK_BYTES_MIN = 0, BLOCK_BYTES_MAX = 0 };
#else
enum { BLOCK_BYTES_MIN = 4096, BLOCK_BYTES_MAX = 1 << 20 };
#endif
enum { PIECE_ALIGNMENT = 8 };

struct jinja_arena_block {
  jinja_arena_block *older;
  size_t size_bytes;
};

void jinja_arena_init(jinja_arena *arena, memory_gate *memory, size_t limit_bytes) {
  *arena = (jinja_arena){.memory = memory, .limit_bytes = limit_bytes};
}

void jinja_arena_free(jinja_arena *arena) {
  while (arena->blocks != NULL) {
    jinja_arena_block *older = arena->blocks->older;
    memory_free(arena->memory, arena->blocks);
    arena->blocks = older;
  }
  jinja_arena_init(arena, arena->memory, arena->limit_bytes);
}

static bool add_block(jinja_arena *arena, size_t piece_bytes) {
  size_t size_bytes = arena->held_bytes;
  if (size_bytes < BLOCK_BYTES_MIN) size_bytes = BLOCK_BYTES_MIN;
  if (size_bytes > BLOCK_BYTES_MAX) size_bytes = BLOCK_BYTES_MAX;
  const size_t left_bytes = arena->limit_bytes - arena->held_bytes;
  size_t needed_bytes;
  if (!checked_add_size(piece_bytes, sizeof(jinja_arena_block), &needed_bytes) ||
      needed_bytes > left_bytes) {
    arena->is_over = true;
    return false;
  }
  if (size_bytes < needed_bytes) size_bytes = needed_bytes;
  if (size_bytes > left_bytes) size_bytes = left_bytes;
  jinja_arena_block *block = memory_alloc(arena->memory, size_bytes);
  if (block == NULL) return false;
  *block = (jinja_arena_block){arena->blocks, size_bytes};
  arena->blocks = block;
  arena->held_bytes += size_bytes;
  arena->at = (char *)(block + 1);
  arena->end = (char *)block + size_bytes;
  return true;
}

static size_t room_of(const jinja_arena *arena) { return (size_t)(arena->end - arena->at); }

void *jinja_arena_take(jinja_arena *arena, size_t size_bytes) {
  if (size_bytes > SIZE_MAX - PIECE_ALIGNMENT) {
    arena->is_over = true;
    return NULL;
  }
  const size_t taken_bytes = align_size(size_bytes, PIECE_ALIGNMENT);
  if (taken_bytes > room_of(arena) && !add_block(arena, taken_bytes)) return NULL;
  void *piece = arena->at;
  arena->at += taken_bytes;
  return piece;
}

void *jinja_arena_extend(jinja_arena *arena, void *piece, size_t old_bytes, size_t new_bytes) {
  const size_t old_taken = align_size(old_bytes, PIECE_ALIGNMENT);
  if (piece != NULL && (char *)piece + old_taken == arena->at &&
      new_bytes <= old_taken + room_of(arena)) {
    const size_t added = align_size(new_bytes, PIECE_ALIGNMENT) - old_taken;
    if (added <= room_of(arena)) {
      arena->at += added;
      return piece;
    }
  }
  void *moved = jinja_arena_take(arena, new_bytes);
  if (moved != NULL && piece != NULL) memcpy(moved, piece, old_bytes);
  return moved;
}
