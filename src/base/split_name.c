// base/split_name.c — the names of a split model's files.
#include "base/split_name.h"

#include <string.h>

enum { FILES_MAX = 99999, DIGITS = 5 };

bool split_name(const char *first, uint32_t file, char *name, size_t name_bytes) {
  static const char pattern[] = "-00001-of-#####.gguf";
  const size_t first_bytes = strlen(first), pattern_bytes = sizeof pattern - 1;
  if (first_bytes >= name_bytes) return false;
  memcpy(name, first, first_bytes + 1);
  if (file == 0) return true;
  if (file >= FILES_MAX || first_bytes < pattern_bytes) return false;
  char *tail = name + first_bytes - pattern_bytes;
  for (size_t i = 0; i < pattern_bytes; i++) {
    const bool is_digit = tail[i] >= '0' && tail[i] <= '9';
    if (pattern[i] == '#' ? !is_digit : pattern[i] != tail[i]) return false;
  }
  uint32_t left = file + 1;
  for (int i = DIGITS; i > 0; i--, left /= 10) tail[i] = (char)('0' + left % 10);
  return true;
}
