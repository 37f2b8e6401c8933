// base/memory.c — the allocator. One cache line before each block contains the block's size.
#include "base/memory.h"

#include <string.h>

#include "base/checked.h"

enum { HEADER_BYTES = CACHE_LINE_BYTES };

static const uint64_t LIVE_MARK = 0x6b6369776b636977u;

typedef struct block_header {
  uint64_t total_bytes;  // including this header
  uint64_t mark;
} block_header;

static block_header *header_of(void *block) {
  return (block_header *)(void *)((uint8_t *)block - HEADER_BYTES);
}

void memory_init(memory_gate *memory, uint64_t budget_bytes, void *(*host_alloc)(size_t),
                 void (*host_free)(void *, size_t)) {
  memset(memory, 0, sizeof *memory);
  memory->budget_bytes = budget_bytes;
  memory->host_alloc = host_alloc;
  memory->host_free = host_free;
}

void memory_use_host(memory_gate *memory, const wick_host *host) {
  if (host != NULL && host->alloc != NULL) memory->host = host;
}

static void give_back(const memory_gate *memory, void *base, size_t size_bytes) {
  const wick_host *host = memory->host;
  if (host == NULL) {
    memory->host_free(base, size_bytes);
  } else {
    host->free(host->context, base, size_bytes);
  }
}

static uint8_t *take(const memory_gate *memory, size_t size_bytes) {
  const wick_host *host = memory->host;
  if (host == NULL) return memory->host_alloc(size_bytes);
  void *base = host->alloc(host->context, size_bytes);
  if (((uintptr_t)base & (CACHE_LINE_BYTES - 1)) == 0) return base;
  give_back(memory, base, size_bytes);
  return NULL;
}

void memory_use_reserve(memory_gate *memory, void *reserve, size_t size_bytes) {
  memory->reserve = reserve;
  memory->reserve_bytes = size_bytes;
  memory->reserve_used_bytes = 0;
}

void memory_end_reserve(memory_gate *memory) { memory_use_reserve(memory, NULL, 0); }

// Blocks are placed one after another; freed blocks are not reused.
static void *take_reserved(memory_gate *memory, size_t size_bytes) {
  const size_t left = memory->reserve_bytes - memory->reserve_used_bytes;
  if (size_bytes > left || align_size(size_bytes, CACHE_LINE_BYTES) + HEADER_BYTES > left) {
    return NULL;
  }
  uint8_t *base = memory->reserve + memory->reserve_used_bytes;
  block_header *header = (block_header *)(void *)base;
  header->total_bytes = align_size(size_bytes, CACHE_LINE_BYTES) + HEADER_BYTES;
  header->mark = LIVE_MARK;
  memory->reserve_used_bytes += (size_t)header->total_bytes;
  return base + HEADER_BYTES;
}

static bool is_reserved(const memory_gate *memory, const void *base) {
  const uintptr_t at = (uintptr_t)base, begin = (uintptr_t)memory->reserve;
  return memory->reserve != NULL && at >= begin && at - begin < memory->reserve_bytes;
}

static void *take_counted(memory_gate *memory, size_t size_bytes) {
  memory->calls++;
  if (memory->calls == memory->fail_at_call) return NULL;
  if (memory->fail_from_call != 0 && memory->calls >= memory->fail_from_call) return NULL;
  size_t total;
  if (!checked_add_size(size_bytes, HEADER_BYTES + CACHE_LINE_BYTES, &total)) return NULL;
  total = align_size(size_bytes, CACHE_LINE_BYTES) + HEADER_BYTES;
  if (memory->budget_bytes != 0 &&
      (total > memory->budget_bytes || memory->bytes_now > memory->budget_bytes - total)) {
    return NULL;
  }
  uint8_t *base = take(memory, total);
  if (base == NULL) return NULL;
  block_header *header = (block_header *)(void *)base;
  header->total_bytes = total;
  header->mark = LIVE_MARK;
  memory->bytes_now += total;
  memory->blocks_now++;
  if (memory->bytes_now > memory->bytes_peak) memory->bytes_peak = memory->bytes_now;
  return base + HEADER_BYTES;
}

void *memory_alloc(memory_gate *memory, size_t size_bytes) {
  void *block = memory->reserve != NULL ? take_reserved(memory, size_bytes)
                                        : take_counted(memory, size_bytes);
  if (block == NULL) memory->refused_bytes = size_bytes;
  return block;
}

void *memory_alloc_zeroed(memory_gate *memory, size_t size_bytes) {
  void *block = memory_alloc(memory, size_bytes);
  if (block != NULL) memset(block, 0, size_bytes);
  return block;
}

// Returns whether this host can address this many bytes; if not, the allocation fails.
static bool is_addressable(memory_gate *memory, uint64_t size_bytes, size_t *fitting_bytes) {
  if (checked_to_size(size_bytes, fitting_bytes)) return true;
  memory->refused_bytes = size_bytes;
  return false;
}

static uint64_t array_bytes(size_t count, size_t item_bytes) {
  uint64_t size_bytes;
  return checked_mul_u64(count, item_bytes, &size_bytes) ? size_bytes : UINT64_MAX;
}

void *memory_alloc_wide(memory_gate *memory, uint64_t size_bytes) {
  size_t fitting_bytes;
  if (!is_addressable(memory, size_bytes, &fitting_bytes)) return NULL;
  return memory_alloc(memory, fitting_bytes);
}

void *memory_alloc_array(memory_gate *memory, size_t count, size_t item_bytes) {
  return memory_alloc_wide(memory, array_bytes(count, item_bytes));
}

void *memory_resize(memory_gate *memory, void *block, size_t size_bytes) {
  if (block == NULL) return memory_alloc(memory, size_bytes);
  void *moved = memory_alloc(memory, size_bytes);
  if (moved == NULL) return NULL;
  const size_t held = (size_t)header_of(block)->total_bytes - HEADER_BYTES;
  memcpy(moved, block, held < size_bytes ? held : size_bytes);
  memory_free(memory, block);
  return moved;
}

void *memory_resize_array(memory_gate *memory, void *block, size_t count, size_t item_bytes) {
  size_t fitting_bytes;
  if (!is_addressable(memory, array_bytes(count, item_bytes), &fitting_bytes)) return NULL;
  return memory_resize(memory, block, fitting_bytes);
}

void memory_free(memory_gate *memory, void *block) {
  if (block == NULL) return;
  block_header *header = header_of(block);
  if (header->mark != LIVE_MARK) __builtin_trap();  // freed twice, or not from this allocator
  header->mark = 0;
  if (is_reserved(memory, header)) return;
  memory->bytes_now -= header->total_bytes;
  memory->blocks_now--;
  give_back(memory, header, (size_t)header->total_bytes);
}

wick_status memory_fail(const memory_gate *memory, wick_error *error, const char *what) {
  const unsigned long long wanted = memory->refused_bytes, used = memory->bytes_now;
  if (memory->budget_bytes == 0) {
    return fail_with(error, WICK_E_NOMEM, WICK_NO_OFFSET,
                     "out of memory: %llu bytes for %s (%llu in use)", wanted, what, used);
  }
  fail_with(error, WICK_E_NOMEM, WICK_NO_OFFSET,
            "out of memory: %llu bytes for %s (%llu in use, budget %llu)", wanted, what, used,
            (unsigned long long)memory->budget_bytes);
  uint64_t needed;
  if (!checked_add_u64(used, wanted, &needed)) needed = UINT64_MAX;
  return status_about(WICK_E_NOMEM, error, WICK_SUBJECT_MEMORY, needed, memory->budget_bytes);
}
