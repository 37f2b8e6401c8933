// reply/marks.h — finds the first of several strings in text that arrives byte by byte (Knuth,
// Morris and Pratt 1977, one automaton per string), in O(strings) per byte.
#ifndef WICK_REPLY_MARKS_H
#define WICK_REPLY_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MARK_BYTES_MAX = 48, MARKS_MAX = 80 };

typedef struct reply_mark {
  const char *text;
  uint8_t role, size_bytes, matched;
  uint8_t shorter[MARK_BYTES_MAX];  // [n]: the longest proper prefix of the string that is also a
                                    // suffix of its first n + 1 bytes
} reply_mark;

typedef struct reply_marks {
  reply_mark items[MARKS_MAX];
  uint32_t count;
  uint8_t pending;          // number of trailing bytes that may begin a string
  uint8_t firsts[256 / 8];  // bit set of first bytes
} reply_marks;

// Adds a string. Exceeding MARK_BYTES_MAX or MARKS_MAX is a programming error. A string that is
// already in the list is not added again.
void marks_add(reply_marks *marks, const char *text, uint8_t role);
void marks_restart(reply_marks *marks);
// Returns the longest string that ends with this byte, or NULL.
const reply_mark *marks_step(reply_marks *marks, uint8_t byte);

#endif
