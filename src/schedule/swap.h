// schedule/swap.h — pages of requests that gave way, kept by the host (a file, OPFS) until they run
// again, where that costs less than reading their tokens once more. Both costs are measured: what a
// token of a prompt takes, and what a byte takes to be written.
#ifndef WICK_SCHEDULE_SWAP_H
#define WICK_SCHEDULE_SWAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "store/store.h"

typedef struct swap_costs {
  float read_us, read_rows;  // of passes with prompts in them, lately
  float byte_us;             // to write one; 0: not known
  uint32_t refusals;         // of the host, in a row
  uint32_t declined;         // decisions for reading again, in a row
} swap_costs;

// A pass with prompts in it took so long.
void swap_costs_took(swap_costs *costs, uint32_t rows, uint64_t pass_us);

// A request's record, if it has one.
typedef struct swap_record {
  uint64_t bytes;  // 0: there is none
  uint32_t tokens;
} swap_record;

typedef struct swap_parts {
  memory_gate *memory;
  seq_store *store;
  const wick_swap_host *host;
  uint64_t (*now_us)(void);
} swap_parts;

// Writes the pages of a sequence, which holds `count` tokens, where that costs less than to read
// `lost` of them again. False: it was tried and has failed.
bool swap_out(const swap_parts *parts, swap_costs *costs, uint32_t id, kv_seq_id sequence,
              const int32_t *tokens, uint32_t count, uint32_t lost, swap_record *record);
// Whether the record is worth more than the `cached` first tokens that need no reading anyway.
bool swap_is_worth(const swap_parts *parts, const swap_costs *costs, const swap_record *record,
                   uint32_t cached);
// Reads the record back into a new sequence, whose tokens must be the first of `tokens`. The record
// stays until swap_drop. Errors: those of store_load, WICK_E_CORRUPT.
wick_status swap_in(const swap_parts *parts, uint32_t id, const int32_t *tokens,
                    const swap_record *record, kv_seq_id *sequence);
void swap_drop(const swap_parts *parts, uint32_t id, swap_record *record);

#endif
