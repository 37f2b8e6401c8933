// The cache of encoded words: the slot of a word depends only on its bytes, not on the text around
// it.
#include "text/word_cache.h"

#include <string.h>

#include "check.h"
#include "platform/platform.h"

enum { LONGEST = 40, PIECE_BYTES = 1 << 16 };

TEST(the_slot_of_a_word_depends_only_on_its_bytes) {
  static const char WORD[LONGEST + 1] = "internationalisation-of-compatibilities";
  memory_gate memory;
  word_cache cache = {0};
  memory_init(&memory, 0, platform_alloc, platform_free);
  REQUIRE(CHECK(word_cache_begin(&cache, &memory, PIECE_BYTES) && cache.words != NULL));
  for (size_t size = 1; size < LONGEST; size++) {
    const cached_word *place = word_cache_place(&cache, (const uint8_t *)WORD, size);
    for (int around = 'a'; around < 'd'; around++) {
      uint8_t text[3 * LONGEST];
      memset(text, around, sizeof text);
      memcpy(text + LONGEST, WORD, size);
      CHECK(word_cache_place(&cache, text + LONGEST, size) == place);
    }
  }
  word_cache_free(&cache, &memory);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

// Words of any length that differ in one byte have different slots, with few exceptions, because
// only about 12 bits select a slot.
TEST(different_words_have_different_slots) {
  memory_gate memory;
  word_cache cache = {0};
  uint32_t same = 0, pairs = 0;
  memory_init(&memory, 0, platform_alloc, platform_free);
  REQUIRE(CHECK(word_cache_begin(&cache, &memory, PIECE_BYTES) && cache.words != NULL));
  for (size_t size = 1; size < 32; size++) {
    for (size_t at = 0; at < size; at++, pairs++) {
      uint8_t text[32], other[32];
      memset(text, 'a', sizeof text);
      memcpy(other, text, sizeof other);
      other[at] = 'b';
      same += word_cache_place(&cache, text, size) == word_cache_place(&cache, other, size);
    }
  }
  CHECK(same <= pairs / 20);
  word_cache_free(&cache, &memory);
}
