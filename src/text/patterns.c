// text/patterns.c — hand-written matchers for the parts of the regular expressions of
// tokenizer.ggml.pre; the results are identical to llama.cpp's (src/unicode.cpp).
#include "text/patterns.h"

#include "text/pattern_parts.h"

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
bool pattern_find_gpt2_word(const pretokenize_stage *stage, const stage_text *in,
                            text_span *match) {
  const uint8_t *text = in->bytes;
  const size_t at = in->at, end = in->end;
  (void)stage;
  static const uint8_t RUNS[3] = {UNICODE_LETTER, UNICODE_NUMBER, PATTERN_OTHERS};
  size_t after = at + pattern_match_contraction(text, at, end, false);
  for (size_t i = 0; i < 3 && after == at; i++) {
    after = pattern_match_after_space(text, at, end, RUNS[i]);
  }
  if (after == at) after = pattern_match_spaces(text, at, end);
  *match = (text_span){at, after};
  return true;
}

// \s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|…|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1} (jais-2). The memo is
// the end of white space without newlines, so that a long run is not scanned again for each of its
// pieces.
static size_t match_halved_spaces(const stage_text *in) {
  enum { SPACES_MAX = 512 };
  size_t after = in->at;
  if (in->at >= *in->memo) {
    after = pattern_match_newlines(in->bytes, in->at, in->end);
    if (after > in->at) return after;
    *in->memo = pattern_skip_class(in->bytes, in->at, in->end, UNICODE_SPACE);
  }
  size_t ends[SPACES_MAX + 1];
  size_t count = 0;
  while (count <= SPACES_MAX && after < *in->memo) {
    after += unicode_at(in->bytes, after, in->end).size_bytes;
    ends[count++] = after;
  }
  if (count == 0) return in->at;
  // The last white space character belongs to the following text.
  if (after == *in->memo && after < in->end && count > 1) count--;
  size_t taken = SPACES_MAX;
  while (taken > count) taken /= 2;
  return ends[taken - 1];
}

// The common tail of the patterns of llama3, qwen2 and gpt-4o, after words of letters:
// \p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[tail]*|\s*[\r\n]+|\s+(?!\S)|\s+
static size_t match_rest(const pretokenize_stage *stage, const stage_text *in) {
  const uint8_t *text = in->bytes;
  const size_t at = in->at, end = in->end;
  size_t after = pattern_skip_digits(text, at, end, stage->digits_max);
  if (after > at) return after;
  const int letters = stage->marks_are_signs ? UNICODE_LETTER : stage->letters;
  after = pattern_match_after_space(text, at, end, PATTERN_OTHERS & ~letters);
  if (after > at) {
    const size_t tail_end = stage->has_short_tail && after < end ? after + 1 : end;
    return pattern_skip_any_of(text, after, tail_end, stage->tail);
  }
  if (stage->cuts_spaces) return match_halved_spaces(in);
  after = pattern_match_newlines(text, at, end);
  return after > at ? after : pattern_match_spaces(text, at, end);
}

// Returns the size of the contraction at a position, if the pattern has contractions.
static size_t match_own_contraction(const pretokenize_stage *stage, const uint8_t *text, size_t at,
                                    size_t end) {
  return stage->has_contractions ? pattern_match_contraction(text, at, end, true) : 0;
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[letters]+| and so on
bool pattern_find_word(const pretokenize_stage *stage, const stage_text *in, text_span *match) {
  const uint8_t *text = in->bytes;
  const size_t at = in->at, end = in->end;
  size_t after = at + match_own_contraction(stage, text, at, end);
  if (after == at) after = pattern_match_led_letters(text, at, end, stage->letters);
  if (after == at) after = match_rest(stage, in);
  *match = (text_span){at, after};
  return true;
}

// Letters in mixed case. Letters beyond ASCII are both capital and small.
typedef struct cased_letters {
  size_t small_end;     // end of [^a-z]*[^A-Z]+, or its beginning if it is empty
  size_t capitals_end;  // end of [^a-z]+[^A-Z]*, used if the first one does not match
} cased_letters;

static cased_letters match_cased_letters(const uint8_t *text, size_t at, size_t end, int letters) {
  size_t capitals_end = at, last_small_end = at;
  for (;;) {
    const unicode_char c = unicode_at(text, capitals_end, end);
    if ((c.kind & letters) == 0 || (c.code >= 'a' && c.code <= 'z')) break;
    capitals_end += c.size_bytes;
    if (c.code >= 128) last_small_end = capitals_end;
  }
  size_t after = capitals_end;
  for (;;) {
    const unicode_char c = unicode_at(text, after, end);
    if ((c.kind & letters) == 0 || (c.code >= 'A' && c.code <= 'Z')) break;
    after += c.size_bytes;
  }
  // Without a small letter after it, the last capital that can also be a small letter ends the
  // word.
  return (cased_letters){after > capitals_end ? after : last_small_end, capitals_end};
}

// [^\r\n\p{L}\p{N}]? and letters in mixed case, then an optional contraction, or the rest of the
// pattern
bool pattern_find_cased_word(const pretokenize_stage *stage, const stage_text *in,
                             text_span *match) {
  const uint8_t *text = in->bytes;
  const size_t at = in->at, end = in->end;
  const unicode_char c = unicode_at(text, at, end);
  const bool leads = (c.kind & (UNICODE_LETTER | UNICODE_NUMBER)) == 0 && !pattern_is_newline(c);
  const size_t begin = leads ? at + c.size_bytes : at;
  const cased_letters letters = match_cased_letters(text, begin, end, stage->letters);
  size_t after;
  if (letters.small_end > begin) {
    after = letters.small_end;
  } else if (leads && (c.kind & stage->letters) != 0) {
    // a mark before capitals is a separate word, because it also counts as a small letter
    *match = (text_span){at, begin + match_own_contraction(stage, text, begin, end)};
    return true;
  } else {
    after = letters.capitals_end;
  }
  if (after == begin) {
    after = match_rest(stage, in);
  } else {
    after += match_own_contraction(stage, text, after, end);
  }
  *match = (text_span){at, after};
  return true;
}

// [^\r\n\p{L}\p{N}]?[letters]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|... Patterns with \p{Lu}, \p{Ll} and
// similar ones are of this kind, because the reference treats all of these as \p{L}.
bool pattern_find_ended_word(const pretokenize_stage *stage, const stage_text *in,
                             text_span *match) {
  size_t after = pattern_match_led_letters(in->bytes, in->at, in->end, stage->letters);
  if (after > in->at) {
    after += match_own_contraction(stage, in->bytes, after, in->end);
  } else {
    after = match_rest(stage, in);
  }
  *match = (text_span){in->at, after};
  return true;
}

// Finds count_min to count_max characters of a set.
bool pattern_find_run(const pretokenize_stage *stage, const stage_text *in, text_span *match) {
  const uint8_t *text = in->bytes;
  const size_t end = in->end;
  size_t at = in->at;
  while (at < end) {
    const unicode_char first = unicode_at(text, at, end);
    size_t after = at;
    const bool is_taken =
        stage->takes_space ? first.kind == UNICODE_SPACE : stage->takes_blank && first.code == ' ';
    if (is_taken) after += first.size_bytes;
    unsigned count = 0;
    while (stage->count_max == 0 || count < stage->count_max) {
      const unicode_char c = unicode_at(text, after, end);
      if (c.size_bytes == 0 || !stage->contains(c)) break;
      after += c.size_bytes;
      count++;
    }
    if (count >= stage->count_min) {
      *match = (text_span){at, after};
      return true;
    }
    at += first.size_bytes;
  }
  return false;
}

// \p{Han}+|[^\r\n\p{L}\p{N}]?[letters but Han]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?| and so on (kimi-k2)
static size_t skip_letters_but_han(const uint8_t *text, size_t at, size_t end) {
  for (;;) {
    const unicode_char c = unicode_at(text, at, end);
    if (c.kind != UNICODE_LETTER || pattern_is_han(c)) return at;
    at += c.size_bytes;
  }
}

bool pattern_find_kimi_word(const pretokenize_stage *stage, const stage_text *in,
                            text_span *match) {
  const uint8_t *text = in->bytes;
  const size_t at = in->at, end = in->end;
  const unicode_char c = unicode_at(text, at, end);
  size_t after = at;
  for (unicode_char h = c; h.size_bytes > 0 && pattern_is_han(h);
       h = unicode_at(text, after, end)) {
    after += h.size_bytes;
  }
  if (after == at) {
    const bool leads = (c.kind & (UNICODE_LETTER | UNICODE_NUMBER)) == 0 && !pattern_is_newline(c);
    const size_t begin = leads ? at + c.size_bytes : at;
    after = skip_letters_but_han(text, begin, end);
    if (after > begin) {
      after += match_own_contraction(stage, text, after, end);
    } else {
      after = match_rest(stage, in);
    }
  }
  *match = (text_span){at, after};
  return true;
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}|
//  ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+ (exaone-moe): a word may have single spaces.
bool pattern_find_phrase(const pretokenize_stage *stage, const stage_text *in, text_span *match) {
  const uint8_t *text = in->bytes;
  const size_t at = in->at, end = in->end;
  size_t after = at + match_own_contraction(stage, text, at, end);
  if (after == at) {
    after = pattern_match_led_letters(text, at, end, UNICODE_LETTER);
    bool goes_on = after > at;
    while (goes_on) {
      after = pattern_skip_class(text, after, end, UNICODE_LETTER | UNICODE_MARK);
      goes_on = after < end && text[after] == ' ' &&
                unicode_at(text, after + 1, end).kind == UNICODE_LETTER;
      if (goes_on) after++;
    }
  }
  *match = (text_span){at, after > at ? after : match_rest(stage, in)};
  return true;
}
