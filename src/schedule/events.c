// schedule/events.c — the buffer of records, and the functions of wick.h that read them.
#include "schedule/events.h"

#include <string.h>

#include "base/checked.h"
#include "sample/sampler.h"

enum { EVENT_ROOM_BYTES = 32 * 1024, PARTS_ROOM_BYTES = 8 * 1024, TOP_PAIR_BYTES = 8 };

_Static_assert(sizeof(wick_event) == 80, "hosts read events at fixed offsets");

static size_t record_bytes_max(size_t text_bytes_max) {
  return align_size(sizeof(wick_event) + WICK_LOGPROBS_MAX * TOP_PAIR_BYTES + text_bytes_max, 8);
}

size_t events_plan_bytes(size_t text_bytes_max, uint32_t records) {
  const size_t room = EVENT_ROOM_BYTES + 8 * record_bytes_max(text_bytes_max);
  const size_t needed = records * record_bytes_max(text_bytes_max);
  return (room > needed ? room : needed) + PARTS_ROOM_BYTES;
}

wick_status events_create(memory_gate *memory, size_t text_bytes_max, uint32_t records,
                          event_buffer *events, wick_error *error) {
  *events = (event_buffer){.memory = memory,
                           .capacity_bytes = events_plan_bytes(text_bytes_max, records),
                           .text_bytes_max = text_bytes_max};
  events->bytes = memory_alloc(memory, events->capacity_bytes);
  if (events->bytes == NULL) {
    return memory_fail(memory, error, "the event buffer");
  }
  return WICK_OK;
}

void events_destroy(event_buffer *events) {
  if (events->memory != NULL) memory_free(events->memory, events->bytes);
  *events = (event_buffer){0};
}

bool events_have_room(const event_buffer *events, uint32_t records) {
  const size_t needed = records * record_bytes_max(events->text_bytes_max) + PARTS_ROOM_BYTES;
  return events->capacity_bytes - events->used_bytes >= needed;
}

wick_status events_make_room(event_buffer *events, uint32_t records) {
  const size_t needed = (records + 1) * record_bytes_max(events->text_bytes_max);
  if (events->capacity_bytes - events->used_bytes >= needed) return WICK_OK;
  const size_t more = 2 * events->capacity_bytes;
  uint8_t *bytes = memory_resize(events->memory, events->bytes, more);
  if (bytes == NULL) return WICK_E_NOMEM;
  events->bytes = bytes;
  events->capacity_bytes = more;
  return WICK_OK;
}

static size_t cut_at_character(const char *text, size_t size_bytes, size_t most) {
  if (size_bytes <= most) return size_bytes;
  while (most > 0 && ((uint8_t)text[most] & 0xc0) == 0x80) most--;
  return most;
}

void events_put(event_buffer *events, const wick_event *event, const int32_t *top_tokens,
                const float *top_logprobs, uint32_t top_count, const char *text,
                size_t text_bytes) {
  uint8_t *at = events->bytes + events->used_bytes;
  wick_event record = *event;
  text_bytes = cut_at_character(text, text_bytes, events->text_bytes_max);
  record.top_count = top_count;
  record.text_bytes = (uint32_t)text_bytes;
  const size_t used = sizeof record + top_count * TOP_PAIR_BYTES + text_bytes;
  record.size_bytes = (uint32_t)align_size(used, 8);
  memcpy(at, &record, sizeof record);
  uint8_t *pairs = at + sizeof record;
  for (uint32_t i = 0; i < top_count; i++) {
    memcpy(pairs + i * TOP_PAIR_BYTES, &top_tokens[i], 4);
    memcpy(pairs + i * TOP_PAIR_BYTES + 4, &top_logprobs[i], 4);
  }
  if (text_bytes != 0) memcpy(pairs + top_count * TOP_PAIR_BYTES, text, text_bytes);
  memset(at + used, 0, record.size_bytes - used);
  events->used_bytes += record.size_bytes;
}

const uint8_t *events_take(event_buffer *events, size_t *size_bytes) {
  *size_bytes = events->used_bytes;
  events->used_bytes = 0;
  return events->bytes;
}

// ---- reading records ----

const wick_event *wick_event_next(const uint8_t *events, size_t size_bytes,
                                  const wick_event *event) {
  const uint8_t *next = event == NULL ? events : (const uint8_t *)event + event->size_bytes;
  if (events == NULL || (size_t)(next - events) >= size_bytes) return NULL;
  return (const wick_event *)(const void *)next;
}

const char *wick_event_text(const wick_event *event) {
  return (const char *)(event + 1) + (size_t)event->top_count * TOP_PAIR_BYTES;
}

wick_logprob wick_event_top(const wick_event *event, uint32_t index) {
  wick_logprob top;
  _Static_assert(sizeof top == TOP_PAIR_BYTES, "the pairs of a record");
  memcpy(&top, (const uint8_t *)(event + 1) + (size_t)index * TOP_PAIR_BYTES, sizeof top);
  return top;
}
