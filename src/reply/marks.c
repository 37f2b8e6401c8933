// reply/marks.c — strings found in a stream.
#include "reply/marks.h"

#include <string.h>

void marks_add(reply_marks *marks, const char *text, uint8_t role) {
  const size_t size = strlen(text);
  for (uint32_t i = 0; i < marks->count; i++) {
    if (marks->items[i].size_bytes == size && memcmp(marks->items[i].text, text, size) == 0) return;
  }
  if (size == 0 || size > MARK_BYTES_MAX || marks->count == MARKS_MAX) return;
  reply_mark *mark = &marks->items[marks->count++];
  *mark = (reply_mark){.text = text, .role = role, .size_bytes = (uint8_t)size};
  for (size_t at = 1, length = 0; at < size; at++) {
    while (length > 0 && text[at] != text[length]) length = mark->shorter[length - 1];
    if (text[at] == text[length]) length++;
    mark->shorter[at] = (uint8_t)length;
  }
  const uint8_t first = (uint8_t)text[0];
  marks->firsts[first / 8] |= (uint8_t)(1u << first % 8);
}

void marks_restart(reply_marks *marks) {
  for (uint32_t i = 0; i < marks->count; i++) marks->items[i].matched = 0;
  marks->pending = 0;
}

const reply_mark *marks_step(reply_marks *marks, uint8_t byte) {
  if (marks->pending == 0 && (marks->firsts[byte / 8] >> byte % 8 & 1) == 0) return NULL;
  const reply_mark *found = NULL;
  marks->pending = 0;
  for (uint32_t i = 0; i < marks->count; i++) {
    reply_mark *mark = &marks->items[i];
    uint8_t length = mark->matched;
    while (length > 0 && (uint8_t)mark->text[length] != byte) length = mark->shorter[length - 1];
    if ((uint8_t)mark->text[length] == byte) length++;
    if (length == mark->size_bytes) {
      if (found == NULL || mark->size_bytes > found->size_bytes) found = mark;
      length = mark->shorter[length - 1];
    }
    mark->matched = length;
    if (length > marks->pending) marks->pending = length;
  }
  return found;
}
