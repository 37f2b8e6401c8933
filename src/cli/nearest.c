// cli/nearest.c — the edit distance of two words: each extra, missing or wrong letter, and each
// pair of swapped letters, counts 1.
#include "cli/nearest.h"

#include <stdbool.h>
#include <string.h>

enum { NAME_BYTES_MAX = 32, SHORT_BYTES = 5, STEM_BYTES = 4 };

static uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }

// Computes the optimal string alignment distance; three rows of its table are enough.
static uint32_t count_mistakes(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
  uint32_t rows[3][NAME_BYTES_MAX + 1];
  for (uint32_t j = 0; j <= b_bytes; j++) rows[0][j] = j;
  for (size_t i = 1; i <= a_bytes; i++) {
    uint32_t *row = rows[i % 3];
    const uint32_t *above = rows[(i + 2) % 3], *above_that = rows[(i + 1) % 3];
    row[0] = (uint32_t)i;
    for (size_t j = 1; j <= b_bytes; j++) {
      const uint32_t wrong = above[j - 1] + (a[i - 1] != b[j - 1]);
      row[j] = min_u32(wrong, min_u32(above[j], row[j - 1]) + 1);
      const bool is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swapped) row[j] = min_u32(row[j], above_that[j - 2] + 1);
    }
  }
  return rows[a_bytes % 3][b_bytes];
}

nearest nearest_begin(const char *given, size_t given_bytes) {
  return (nearest){.given = given, .given_bytes = given_bytes, .distance = UINT32_MAX};
}

void nearest_offer(nearest *found, const char *name) {
  const size_t name_bytes = strlen(name);
  const size_t common_bytes = name_bytes < found->given_bytes ? name_bytes : found->given_bytes;
  if (common_bytes < 3 || name_bytes > NAME_BYTES_MAX || found->given_bytes > NAME_BYTES_MAX)
    return;
  uint32_t distance = count_mistakes(found->given, found->given_bytes, name, name_bytes);
  const uint32_t distance_max = name_bytes <= SHORT_BYTES ? 1 : 2;
  if (distance > distance_max) {
    // one word is a prefix of the other: --temperature, --freq
    if (common_bytes <= STEM_BYTES || memcmp(found->given, name, common_bytes) != 0) return;
    distance = distance_max + 1;
  }
  if (distance >= found->distance) return;
  found->name = name;
  found->distance = distance;
}
