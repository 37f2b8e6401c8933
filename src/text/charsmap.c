// text/charsmap.c — see charsmap.h. A unit of the double array has the byte that leads to it in
// bits 0..7, bit 8 set if it has a value, and the offset to its children in bits 10..30, times 256
// if bit 9 is set. A value is a unit with bit 31 set.
#include "text/charsmap.h"

#include <string.h>

static uint32_t read_u32(const uint8_t *bytes) {
  return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
         (uint32_t)bytes[3] << 24;
}

// Checks that the longest string is within the limit, and that the last string is terminated.
static bool are_strings(const uint8_t *bytes, size_t size_bytes) {
  size_t length = 0;
  for (size_t at = 0; at < size_bytes; at++) {
    length = bytes[at] != 0 ? length + 1 : 0;
    if (length > CHARSMAP_REPLACEMENT_BYTES_MAX) return false;
  }
  return length == 0;
}

wick_status charsmap_open(charsmap *map, const gguf_value *value, wick_error *error) {
  *map = (charsmap){0};
  if (value == NULL || value->count == 0) return WICK_OK;
  const bool is_bytes =
      value->type == GGUF_ARRAY && (value->item_type == GGUF_U8 || value->item_type == GGUF_I8);
  if (!is_bytes || value->count > UINT32_MAX) {
    return fail_with(error, WICK_E_FORMAT, value->offset_bytes,
                     "tokenizer.ggml.precompiled_charsmap is not an array of bytes");
  }
  const uint32_t size_bytes = (uint32_t)value->count;
  const uint32_t trie_bytes = size_bytes >= 4 ? read_u32(value->data) : 0;
  if (size_bytes < 4 || trie_bytes % 4 != 0 || trie_bytes > size_bytes - 4) {
    return fail_with(error, WICK_E_FORMAT, value->offset_bytes,
                     "tokenizer.ggml.precompiled_charsmap has %u bytes, but its trie has %u",
                     size_bytes, trie_bytes);
  }
  const uint8_t *strings = value->data + 4 + trie_bytes;
  const uint32_t string_bytes = size_bytes - 4 - trie_bytes;
  if (!are_strings(strings, string_bytes)) {
    return fail_with(error, WICK_E_FORMAT, value->offset_bytes,
                     "tokenizer.ggml.precompiled_charsmap has a replacement without an end or of "
                     "more than %d bytes",
                     CHARSMAP_REPLACEMENT_BYTES_MAX);
  }
  *map = (charsmap){.units = value->data + 4,
                    .unit_count = trie_bytes / 4,
                    .replacements = strings,
                    .replacement_bytes = string_bytes};
  return WICK_OK;
}

static uint32_t children_offset(uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); }

size_t charsmap_match(const charsmap *map, const uint8_t *text, size_t size_bytes,
                      const uint8_t **replacement, size_t *replacement_bytes) {
  if (map->unit_count == 0) return 0;
  const size_t most = size_bytes < CHARSMAP_KEY_BYTES_MAX ? size_bytes : CHARSMAP_KEY_BYTES_MAX;
  size_t matched = 0;
  uint32_t at = children_offset(read_u32(map->units));
  for (size_t i = 0; i < most && text[i] != 0; i++) {
    at ^= text[i];
    if (at >= map->unit_count) break;
    const uint32_t unit = read_u32(map->units + (size_t)at * 4);
    if ((unit & (1u << 31 | 0xff)) != text[i]) break;
    at ^= children_offset(unit);
    if (at >= map->unit_count) break;
    if ((unit & 1u << 8) == 0) continue;
    const uint32_t value = read_u32(map->units + (size_t)at * 4) & ~(1u << 31);
    if (value >= map->replacement_bytes) continue;
    matched = i + 1;
    *replacement = map->replacements + value;
  }
  if (matched > 0) *replacement_bytes = strlen((const char *)*replacement);
  return matched;
}
