// schedule/swap.c — measures costs, writes records and reads them back. Records have the format of
// kv/state.h, with the request's id as the salt, so the record of a different request is rejected.
#include "schedule/swap.h"

#include <string.h>

enum {
  PAGES_TO_TRY = 4,  // the first measurement has at least this many pages
  ROWS_REMEMBERED = 1024,
  REFUSALS_MAX = 8,  // after this many failures, the host is no longer used
  // After this many decisions not to write, measures again: the disk may have been busy.
  DECLINED_MAX = 32
};

// ---- Costs ----

void swap_costs_took(swap_costs *costs, uint32_t rows, uint64_t pass_us) {
  if (costs->read_rows >= (float)ROWS_REMEMBERED) {
    costs->read_rows *= 0.5f;
    costs->read_us *= 0.5f;
  }
  costs->read_rows += (float)rows;
  costs->read_us += (float)pass_us;
}

static float reading_us(const swap_costs *costs, uint32_t tokens) {
  if (costs->read_rows == 0.0f) return 0.0f;
  return costs->read_us / costs->read_rows * (float)tokens;
}

static bool pays(const swap_parts *parts, swap_costs *costs, uint32_t tokens, uint64_t bytes) {
  if (costs->refusals >= REFUSALS_MAX) return false;
  if (parts->host->always) return true;
  const bool is_long = tokens >= PAGES_TO_TRY * KERNEL_PAGE_TOKENS;
  if (costs->byte_us == 0.0f) return is_long;
  if (2.0f * (float)bytes * costs->byte_us < reading_us(costs, tokens)) return true;
  return is_long && ++costs->declined > DECLINED_MAX;
}

static void byte_took(swap_costs *costs, uint64_t bytes, uint64_t took_us) {
  const float us = (float)(took_us == 0 ? 1 : took_us) / (float)bytes;
  costs->byte_us += (us - costs->byte_us) * (costs->byte_us == 0.0f ? 1.0f : 0.25f);
  costs->refusals = costs->declined = 0;
}

bool swap_is_worth(const swap_parts *parts, const swap_costs *costs, const swap_record *record,
                   uint32_t cached) {
  if (record->bytes == 0 || cached >= record->tokens) return false;
  if (parts->host->always) return true;
  return (float)record->bytes * costs->byte_us < reading_us(costs, record->tokens - cached);
}

// ---- Records ----

typedef struct swap_stream {
  const wick_swap_host *host;
  uint32_t id;
  uint64_t offset_bytes;
} swap_stream;

static bool write_piece(void *context, const void *bytes, size_t size_bytes) {
  swap_stream *stream = context;
  const uint64_t offset_bytes = stream->offset_bytes;
  stream->offset_bytes += size_bytes;
  return stream->host->write(stream->host->context, stream->id, offset_bytes, bytes, size_bytes);
}

static bool read_piece(void *context, void *bytes, size_t size_bytes) {
  swap_stream *stream = context;
  const uint64_t offset_bytes = stream->offset_bytes;
  stream->offset_bytes += size_bytes;
  return stream->host->read(stream->host->context, stream->id, offset_bytes, bytes, size_bytes);
}

bool swap_out(const swap_parts *parts, swap_costs *costs, uint32_t id, kv_seq_id sequence,
              const int32_t *tokens, uint32_t count, uint32_t lost, swap_record *record) {
  const wick_swap_host *host = parts->host;
  uint64_t bytes;
  if (host == NULL || count == 0) return true;
  if (store_record_bytes(parts->store, sequence, NULL, &bytes, NULL) != WICK_OK) return true;
  if (!pays(parts, costs, lost, bytes)) return true;
  const uint64_t start_us = parts->now_us();
  if (!host->open(host->context, id, bytes)) {
    costs->refusals++;
    return false;
  }
  swap_stream stream = {host, id, 0};
  const wick_state_sink sink = {&stream, write_piece};
  *record = (swap_record){bytes, count};
  if (store_save(parts->store, id, sequence, tokens, NULL, &sink, NULL) != WICK_OK) {
    costs->refusals++;
    swap_drop(parts, id, record);
    return false;
  }
  byte_took(costs, bytes, parts->now_us() - start_us);
  return true;
}

wick_status swap_in(const swap_parts *parts, uint32_t id, const int32_t *tokens,
                    const swap_record *record, kv_seq_id *sequence) {
  swap_stream stream = {parts->host, id, 0};
  const wick_state_source source = {&stream, read_piece, record->bytes};
  state_reader reader;
  wick_status status = store_load_begin(parts->store, id, &source, &reader, NULL);
  if (status != WICK_OK) return status;
  if (reader.tokens != record->tokens) return WICK_E_CORRUPT;
  const size_t tokens_bytes = record->tokens * sizeof *tokens;
  int32_t *read = memory_alloc(parts->memory, tokens_bytes);
  if (read == NULL) return WICK_E_NOMEM;
  status = store_load(parts->store, &reader, read, sequence, NULL);
  if (status == WICK_OK && memcmp(read, tokens, tokens_bytes) != 0) {
    store_free(parts->store, *sequence);
    status = WICK_E_CORRUPT;
  }
  memory_free(parts->memory, read);
  return status;
}

void swap_drop(const swap_parts *parts, uint32_t id, swap_record *record) {
  if (record->bytes == 0) return;
  *record = (swap_record){0};
  parts->host->drop(parts->host->context, id);
}
