// text/wpm.c — WordPiece as used by BERT models: accents are removed, text is converted to lower
// case and split at white space, punctuation and Chinese characters; each word is split into the
// longest matching tokens, from left to right, or is unknown as a whole. Source: BERT (Devlin et
// al. 2018). Where llama.cpp differs (it keeps less of a Hangul decomposition and drops vowel
// signs), this code follows BERT.
#include <string.h>

#include "base/text.h"
#include "text/encode.h"

static const uint8_t WORD_MARK[3] = {0xe2, 0x96, 0x81};  // U+2581 begins the first token of a word
enum {
  WORD_MARK_BYTES = sizeof WORD_MARK,
  WORD_CHARACTERS_MAX = 100  // BERT's max_input_chars_per_word: a longer word is unknown
};

// Whether a character is in one of BERT's blocks of Chinese characters.
static bool is_chinese(uint32_t code) {
  return (code >= 0x4e00 && code <= 0x9fff) || (code >= 0x3400 && code <= 0x4dbf) ||
         (code >= 0x20000 && code <= 0x2a6df) || (code >= 0x2a700 && code <= 0x2b73f) ||
         (code >= 0x2b740 && code <= 0x2b81f) || (code >= 0x2b920 && code <= 0x2ceaf) ||
         (code >= 0xf900 && code <= 0xfaff) || (code >= 0x2f800 && code <= 0x2fa1f);
}

static bool stands_alone(uint32_t code, uint8_t kind) {
  return kind == UNICODE_PUNCTUATION || (code < 0x7f && kind == UNICODE_SYMBOL) || is_chinese(code);
}

static bool is_too_long(const uint8_t *word, size_t size_bytes) {
  size_t characters = 0;
  for (size_t i = 0; i < size_bytes; i++) characters += (word[i] & 0xc0) != 0x80;
  return characters > WORD_CHARACTERS_MAX;
}

// Adds the tokens of the word collected in state->copy, after the word marker.
static void put_word(encode_state *state, size_t *word_bytes) {
  const size_t size_bytes = *word_bytes;
  *word_bytes = WORD_MARK_BYTES;
  if (size_bytes == WORD_MARK_BYTES) return;
  const size_t count_before = state->sink.count;
  const bool is_unknown = is_too_long(state->copy + WORD_MARK_BYTES, size_bytes - WORD_MARK_BYTES);
  for (size_t at = 0; at < size_bytes && !is_unknown;) {
    size_t length;
    const int32_t id =
        vocabulary_find_longest(state->tokenizer, state->copy + at, size_bytes - at, &length);
    if (id == TOKEN_NONE) {  // the whole word is unknown
      state->sink.count = count_before;
      break;
    }
    sink_put(&state->sink, id);
    at += length;
  }
  if (state->sink.count == count_before && state->tokenizer->unknown != TOKEN_NONE) {
    sink_put(&state->sink, state->tokenizer->unknown);
  }
}

// The part of the text collected so far: the word after the marker in state->copy.
typedef struct wpm_word {
  encode_state *state;
  size_t size_bytes;
} wpm_word;

// Adds a code point of the text without accents.
static void add_character(wpm_word *word, uint32_t code) {
  const tokenizer *tokenizer = word->state->tokenizer;
  const uint8_t kind = unicode_class(code);
  if (tokenizer->strips_accents && kind == UNICODE_MARK && !unicode_is_spacing_mark(code)) return;
  const bool is_alone = stands_alone(code, kind);
  if (is_alone) put_word(word->state, &word->size_bytes);
  const uint32_t form = tokenizer->lowers_case ? unicode_lower(code) : code;
  word->size_bytes += utf8_encode(form, word->state->copy + word->size_bytes);
  // the only lower-case letter that has two code points
  if (code == 0x130 && tokenizer->lowers_case && !tokenizer->strips_accents) {
    word->size_bytes += utf8_encode(0x307, word->state->copy + word->size_bytes);
  }
  if (is_alone) put_word(word->state, &word->size_bytes);
}

// Whether a character is dropped. White space separates words; of the control characters, only \t,
// \n and \r are white space.
static bool is_dropped(uint32_t code, uint8_t kind) {
  const bool is_tab = code == '\t' || code == '\n' || code == '\r';
  const bool is_control = kind == UNICODE_CONTROL || code < 0x20 || code == 0x85;
  return (is_control && !is_tab) || code == 0xfffd;
}

wick_status wpm_encode(encode_state *state, const uint8_t *text, size_t size_bytes,
                       wick_error *error) {
  const tokenizer *tokenizer = state->tokenizer;
  // A character of 2 bytes may have a lower-case form of 3 bytes, and one of 3 bytes may become
  // three of 3 bytes.
  const wick_status status = encode_reserve(state, 3 * size_bytes + WORD_MARK_BYTES + 12, error);
  if (status != WICK_OK) return status;
  memcpy(state->copy, WORD_MARK, WORD_MARK_BYTES);
  wpm_word word = {state, WORD_MARK_BYTES};
  for (size_t at = 0; at < size_bytes;) {
    uint32_t code, tail[2];
    const int length = utf8_decode(text + at, size_bytes - at, &code);
    at += length > 0 ? (size_t)length : 1;
    if (length <= 0) continue;  // not a character: omitted
    const uint8_t kind = unicode_class(code);
    if (is_dropped(code, kind)) continue;
    if (kind == UNICODE_SPACE) {
      put_word(state, &word.size_bytes);
      continue;
    }
    add_character(&word, tokenizer->strips_accents ? unicode_base(code) : code);
    const size_t more = tokenizer->strips_accents ? unicode_tail(code, tail) : 0;
    for (size_t i = 0; i < more; i++) add_character(&word, tail[i]);
  }
  put_word(state, &word.size_bytes);
  return WICK_OK;
}
