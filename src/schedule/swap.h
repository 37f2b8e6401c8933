// schedule/swap.h — the host may keep the pages of preempted requests (in a file, in OPFS) until
// they run again. The scheduler uses this if it costs less than recomputing the tokens. Both costs
// are measured: the prefill time per token, and the time to write a byte.
#ifndef WICK_SCHEDULE_SWAP_H
#define WICK_SCHEDULE_SWAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "store/store.h"

typedef struct swap_costs {
  float read_us, read_rows;  // time and rows of recent passes with prompts
  float byte_us;             // time to write a byte; 0: unknown
  uint32_t refusals;         // consecutive failures of the host
  uint32_t declined;         // consecutive decisions to recompute
} swap_costs;

// Records the time of a pass with prompts.
void swap_costs_took(swap_costs *costs, uint32_t rows, uint64_t pass_us);

// The record of a request.
typedef struct swap_record {
  uint64_t bytes;  // 0: there is no record
  uint32_t tokens;
} swap_record;

typedef struct swap_parts {
  memory_gate *memory;
  seq_store *store;
  const wick_swap_host *host;
  uint64_t (*now_us)(void);
} swap_parts;

// Writes the pages of a sequence of `count` tokens if that costs less than recomputing `lost` of
// the tokens. Returns false if writing was tried and failed.
bool swap_out(const swap_parts *parts, swap_costs *costs, uint32_t id, kv_seq_id sequence,
              const int32_t *tokens, uint32_t count, uint32_t lost, swap_record *record);
// Whether reading the record costs less than recomputing its tokens except the first `cached`,
// which are in the prefix cache.
bool swap_is_worth(const swap_parts *parts, const swap_costs *costs, const swap_record *record,
                   uint32_t cached);
// Reads the record into a new sequence, whose tokens must be the first of `tokens`. The record is
// kept until swap_drop. Returns the errors of store_load, and WICK_E_CORRUPT.
wick_status swap_in(const swap_parts *parts, uint32_t id, const int32_t *tokens,
                    const swap_record *record, kv_seq_id *sequence);
void swap_drop(const swap_parts *parts, uint32_t id, swap_record *record);

#endif
