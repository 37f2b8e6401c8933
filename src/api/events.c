// api/events.c — reads the fields of event records.
#include <string.h>

#include "wick.h"

enum { PAIR_BYTES = 8 };

const wick_event *wick_event_next(const uint8_t *events, size_t size_bytes,
                                  const wick_event *event) {
  const uint8_t *next = event == NULL ? events : (const uint8_t *)event + event->size_bytes;
  if (events == NULL || (size_t)(next - events) >= size_bytes) return NULL;
  return (const wick_event *)(const void *)next;
}

const char *wick_event_text(const wick_event *event) {
  return (const char *)(event + 1) + (size_t)event->top_count * PAIR_BYTES;
}

wick_logprob wick_event_top(const wick_event *event, uint32_t index) {
  wick_logprob top;
  _Static_assert(sizeof top == PAIR_BYTES, "the pairs of a record");
  memcpy(&top, (const uint8_t *)(event + 1) + (size_t)index * PAIR_BYTES, sizeof top);
  return top;
}
