// schedule/events.h — events are records in one buffer, which the host empties (wick.h).
#ifndef WICK_SCHEDULE_EVENTS_H
#define WICK_SCHEDULE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/memory.h"
#include "base/status.h"

typedef struct event_buffer {
  memory_gate *memory;
  uint8_t *bytes;
  size_t capacity_bytes, used_bytes;
  size_t text_bytes_max;  // maximum per record
} event_buffer;

// Creates a buffer for records with up to text_bytes_max bytes of text. Regardless of that size, an
// empty buffer holds at least `records` records.
wick_status events_create(memory_gate *memory, size_t text_bytes_max, uint32_t records,
                          event_buffer *events, wick_error *error);
void events_destroy(event_buffer *events);
size_t events_plan_bytes(size_t text_bytes_max, uint32_t records);
// Whether the buffer has space for `records` records of the largest kind, and for the parts of
// replies that usually accompany them.
bool events_have_room(const event_buffer *events, uint32_t records);
// Called before the record of a part is added: ensures space for it and `records` others.
// WICK_E_NOMEM.
wick_status events_make_room(event_buffer *events, uint32_t records);
// Appends a record and fills in its size_bytes, top_count and text_bytes. Text that exceeds the
// maximum is cut at a character boundary.
void events_put(event_buffer *events, const wick_event *event, const int32_t *top_tokens,
                const float *top_logprobs, uint32_t top_count, const char *text, size_t text_bytes);
const uint8_t *events_take(event_buffer *events, size_t *size_bytes);

#endif
