// schedule/healing.c — resampling of the end of a prompt.
#include "schedule/healing.h"

#include <string.h>

#include "base/text.h"

healing healing_find(const tokenizer *tokenizer, const int32_t *tokens, uint32_t count,
                     uint8_t *scratch) {
  healing found = {0};
  for (uint32_t taken = 1; taken <= HEALING_TOKENS_MAX && taken < count; taken++) {
    const uint8_t *piece;
    const size_t size = tokenizer_piece(tokenizer, tokens[count - taken], false, scratch, &piece);
    if (size == 0 || size > HEALING_BYTES_MAX - found.text_bytes) break;
    memmove(found.text + size, found.text, found.text_bytes);
    memcpy(found.text, piece, size);
    found.text_bytes += size;
    if (!utf8_is_valid(found.text, found.text_bytes)) continue;
    found.tokens = taken;
    return found;
  }
  return (healing){0};
}
