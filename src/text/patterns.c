// text/patterns.c — hand-written matchers for the parts of the regular expressions of
// tokenizer.ggml.pre, exact as llama.cpp runs them (src/unicode.cpp).
#include "text/patterns.h"

// All but white space, letters and numbers: [^\s\p{L}\p{N}]
enum { OTHERS = UNICODE_ANY & ~(UNICODE_SPACE | UNICODE_LETTER | UNICODE_NUMBER) };

// ---- parts of patterns ----

static size_t skip_class(const uint8_t *text, size_t at, size_t end, int classes) {
  for (;;) {
    const unicode_char c = unicode_at(text, at, end);
    if ((c.kind & classes) == 0) return at;
    at += c.size_bytes;
  }
}

static size_t skip_digits(const uint8_t *text, size_t at, size_t end, unsigned count_max) {
  for (unsigned count = 0; count < count_max; count++) {
    const unicode_char c = unicode_at(text, at, end);
    if (c.kind != UNICODE_NUMBER) break;
    at += c.size_bytes;
  }
  return at;
}

bool pattern_is_newline(unicode_char c) { return c.code == '\r' || c.code == '\n'; }

static size_t skip_any_of(const uint8_t *text, size_t at, size_t end, const char *set) {
  for (; at < end; at++) {
    const char *p = set;
    while (*p != '\0' && (uint8_t)*p != text[at]) p++;
    if (*p == '\0') break;
  }
  return at;
}

static char lower_ascii(uint8_t byte) {
  return (char)(byte >= 'A' && byte <= 'Z' ? byte + ('a' - 'A') : byte);
}

// 's|'t|'re|'ve|'m|'ll|'d: bytes of the one that begins at `at`, or 0.
static size_t match_contraction(const uint8_t *text, size_t at, size_t end, bool ignore_case) {
  if (end - at < 2 || text[at] != '\'') return 0;
  const char a = ignore_case ? lower_ascii(text[at + 1]) : (char)text[at + 1];
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  if (end - at < 3) return 0;
  const char b = ignore_case ? lower_ascii(text[at + 2]) : (char)text[at + 2];
  return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

// \s+(?!\S)|\s+ : white space but for the last one when something follows it.
static size_t match_spaces(const uint8_t *text, size_t at, size_t end) {
  size_t last = at, after = at;
  for (;;) {
    const unicode_char c = unicode_at(text, after, end);
    if (c.kind != UNICODE_SPACE) break;
    last = after;
    after += c.size_bytes;
  }
  return after < end && last > at ? last : after;
}

// \s*[\r\n]+ : white space up to its last newline; `at` when there is none.
static size_t match_newlines(const uint8_t *text, size_t at, size_t end) {
  size_t newline_end = at;
  for (;;) {
    const unicode_char c = unicode_at(text, at, end);
    if (c.kind != UNICODE_SPACE) return newline_end;
    at += c.size_bytes;
    if (pattern_is_newline(c)) newline_end = at;
  }
}

// ' ?' and then a run of classes: its end, or `at` when there is no run.
static size_t match_after_space(const uint8_t *text, size_t at, size_t end, int classes) {
  const size_t begin = at < end && text[at] == ' ' ? at + 1 : at;
  const size_t after = skip_class(text, begin, end, classes);
  return after > begin ? after : at;
}

// ---- whole patterns ----

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
bool pattern_find_gpt2_word(const pretokenize_stage *stage, const uint8_t *text, size_t at,
                            size_t end, text_span *match) {
  (void)stage;
  static const uint8_t RUNS[3] = {UNICODE_LETTER, UNICODE_NUMBER, OTHERS};
  size_t after = at + match_contraction(text, at, end, false);
  for (size_t i = 0; i < 3 && after == at; i++) {
    after = match_after_space(text, at, end, RUNS[i]);
  }
  if (after == at) after = match_spaces(text, at, end);
  *match = (text_span){at, after};
  return true;
}

// [^\r\n\p{L}\p{N}]? and then letters: its end, or `at`.
static size_t match_led_letters(const uint8_t *text, size_t at, size_t end, int letters) {
  const unicode_char c = unicode_at(text, at, end);
  if ((c.kind & letters) != 0) return skip_class(text, at, end, letters);
  if (pattern_is_newline(c) || c.kind == UNICODE_NUMBER) return at;
  const size_t begin = at + c.size_bytes;
  const size_t after = skip_class(text, begin, end, letters);
  return after > begin ? after : at;
}

// The end of what llama3, qwen2 and gpt-4o have in common, after words of letters:
// \p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[tail]*|\s*[\r\n]+|\s+(?!\S)|\s+
static size_t match_rest(const pretokenize_stage *stage, const uint8_t *text, size_t at,
                         size_t end) {
  size_t after = skip_digits(text, at, end, stage->digits_max);
  if (after > at) return after;
  after = match_after_space(text, at, end, OTHERS & ~stage->letters);
  if (after > at) return skip_any_of(text, after, end, stage->tail);
  after = match_newlines(text, at, end);
  return after > at ? after : match_spaces(text, at, end);
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[letters]+| and so on
bool pattern_find_word(const pretokenize_stage *stage, const uint8_t *text, size_t at, size_t end,
                       text_span *match) {
  size_t after = at;
  if (stage->has_contractions) after += match_contraction(text, at, end, true);
  if (after == at) after = match_led_letters(text, at, end, stage->letters);
  if (after == at) after = match_rest(stage, text, at, end);
  *match = (text_span){at, after};
  return true;
}

// The letters of a word in mixed case, [^a-z]*[^A-Z]+|[^a-z]+[^A-Z]* of them: capitals, then small
// letters; letters beyond ASCII are both. `at` when there are none.
static size_t match_cased_letters(const uint8_t *text, size_t at, size_t end) {
  size_t capitals_end = at, last_small_end = at;
  for (;;) {
    const unicode_char c = unicode_at(text, capitals_end, end);
    if (c.kind != UNICODE_LETTER || (c.code >= 'a' && c.code <= 'z')) break;
    capitals_end += c.size_bytes;
    if (c.code >= 128) last_small_end = capitals_end;
  }
  size_t after = capitals_end;
  for (;;) {
    const unicode_char c = unicode_at(text, after, end);
    if (c.kind != UNICODE_LETTER || (c.code >= 'A' && c.code <= 'Z')) break;
    after += c.size_bytes;
  }
  if (after > capitals_end) return after;
  // No small letter follows. The last capital that can also be a small one ends the word.
  return last_small_end > at ? last_small_end : capitals_end;
}

// [^\r\n\p{L}\p{N}]? and letters in mixed case, then maybe a contraction, or what remains
bool pattern_find_cased_word(const pretokenize_stage *stage, const uint8_t *text, size_t at,
                             size_t end, text_span *match) {
  const unicode_char c = unicode_at(text, at, end);
  const bool leads = c.kind != UNICODE_LETTER && c.kind != UNICODE_NUMBER && !pattern_is_newline(c);
  const size_t begin = leads ? at + c.size_bytes : at;
  size_t after = match_cased_letters(text, begin, end);
  if (after == begin) {
    after = match_rest(stage, text, at, end);
  } else if (stage->has_contractions) {
    after += match_contraction(text, after, end, true);
  }
  *match = (text_span){at, after};
  return true;
}

bool pattern_is_digit(unicode_char c) { return c.code >= '0' && c.code <= '9'; }
bool pattern_is_number(unicode_char c) { return c.kind == UNICODE_NUMBER; }
bool pattern_is_symbol_of_falcon(unicode_char c) {
  return c.kind == UNICODE_PUNCTUATION || (c.code < 128 && c.kind == UNICODE_SYMBOL);
}
bool pattern_is_symbol_of_default(unicode_char c) {
  return pattern_is_symbol_of_falcon(c) && c.code != '`';
}

// Characters of a set, count_min to count_max of them.
bool pattern_find_run(const pretokenize_stage *stage, const uint8_t *text, size_t at, size_t end,
                      text_span *match) {
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

// ---- DeepSeek ----

bool pattern_is_letter(unicode_char c) { return c.kind == UNICODE_LETTER; }
bool pattern_is_punctuation(unicode_char c) { return c.kind == UNICODE_PUNCTUATION; }

// [一-龥ࠀ-一가-퟿]
bool pattern_is_cjk_of_deepseek_coder(unicode_char c) {
  return c.kind != UNICODE_SPACE &&
         ((c.code >= 0x800 && c.code <= 0x9fa5) || (c.code >= 0xac00 && c.code <= 0xd7ff));
}

typedef struct code_range {
  uint32_t first;
  uint32_t last;
} code_range;

static bool is_in_ranges(uint32_t code, const code_range *ranges, size_t count) {
  size_t low = 0, high = count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (ranges[middle].last < code) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < count && ranges[low].first <= code;
}

// Letters with case, of an older Unicode, as deepseek-llm's pattern lists them.
bool pattern_is_letter_of_deepseek_llm(unicode_char c) {
  static const code_range RANGES[] = {
      {0x41, 0x5a},       {0x61, 0x7a},       {0xb5, 0xb5},       {0xc0, 0xd6},
      {0xd8, 0xf6},       {0xf8, 0x1ba},      {0x1bc, 0x1bf},     {0x1c4, 0x293},
      {0x295, 0x2af},     {0x370, 0x373},     {0x376, 0x377},     {0x37b, 0x37d},
      {0x37f, 0x37f},     {0x386, 0x386},     {0x388, 0x38a},     {0x38c, 0x38c},
      {0x38e, 0x3a1},     {0x3a3, 0x3f5},     {0x3f7, 0x481},     {0x48a, 0x52f},
      {0x531, 0x556},     {0x10a0, 0x10c5},   {0x13a0, 0x13f5},   {0x13f8, 0x13fd},
      {0x1c90, 0x1cba},   {0x1cbd, 0x1cbf},   {0x1d00, 0x1d2b},   {0x1d6b, 0x1d77},
      {0x1d79, 0x1d9a},   {0x1e00, 0x1f15},   {0x1f18, 0x1f1d},   {0x1f20, 0x1f45},
      {0x1f48, 0x1f4d},   {0x1f50, 0x1f57},   {0x1f59, 0x1f59},   {0x1f5b, 0x1f5b},
      {0x1f5d, 0x1f5d},   {0x1f5f, 0x1f7d},   {0x1f80, 0x1fb4},   {0x1fb6, 0x1fbc},
      {0x1fbe, 0x1fbe},   {0x1fc2, 0x1fc4},   {0x1fc6, 0x1fcc},   {0x1fd0, 0x1fd3},
      {0x1fd6, 0x1fdb},   {0x1fe0, 0x1fec},   {0x1ff2, 0x1ff4},   {0x1ff6, 0x1ffc},
      {0x2102, 0x2102},   {0x2107, 0x2107},   {0x210a, 0x2113},   {0x2115, 0x2115},
      {0x2119, 0x211d},   {0x2124, 0x2124},   {0x2126, 0x2126},   {0x2128, 0x2128},
      {0x212a, 0x212d},   {0x212f, 0x2134},   {0x2139, 0x2139},   {0x213c, 0x213f},
      {0x2145, 0x2149},   {0x214e, 0x214e},   {0x2183, 0x2184},   {0x2c00, 0x2c7b},
      {0x2c7e, 0x2ce4},   {0x2ceb, 0x2cee},   {0x2cf2, 0x2cf3},   {0xa640, 0xa66d},
      {0xa680, 0xa69b},   {0xa722, 0xa76f},   {0xa771, 0xa787},   {0xa78b, 0xa78e},
      {0xab70, 0xabbf},   {0xfb00, 0xfb06},   {0xfb13, 0xfb17},   {0xff21, 0xff3a},
      {0xff41, 0xff5a},   {0x10400, 0x1044f}, {0x104b0, 0x104d3}, {0x104d8, 0x104fb},
      {0x10c80, 0x10cb2}, {0x10cc0, 0x10cf2}, {0x118a0, 0x118df}, {0x1e900, 0x1e943}};
  return is_in_ranges(c.code, RANGES, sizeof RANGES / sizeof RANGES[0]);
}

// [!-/:-~！-／：-～‘-‟　-。]
bool pattern_is_sign_of_deepseek_llm(unicode_char c) {
  static const code_range RANGES[] = {{'!', '/'},       {':', '~'},       {0x2018, 0x201f},
                                      {0x3001, 0x3002}, {0xff01, 0xff0f}, {0xff1a, 0xff5e}};
  return is_in_ranges(c.code, RANGES, sizeof RANGES / sizeof RANGES[0]);
}

// \s+$
bool pattern_find_last_spaces(const pretokenize_stage *stage, const uint8_t *text, size_t at,
                              size_t end, text_span *match) {
  (void)stage;
  size_t begin = end;
  while (begin > at) {
    size_t before = begin - 1;
    while (before > at && (text[before] & 0xc0) == 0x80) before--;
    if (unicode_at(text, before, end).kind != UNICODE_SPACE) break;
    begin = before;
  }
  *match = (text_span){begin, end};
  return begin < end;
}

// [一-龥぀-ゟ゠-ヿ]
bool pattern_is_cjk_of_deepseek_v3(unicode_char c) {
  return (c.code >= 0x4e00 && c.code <= 0x9fa5) || (c.code >= 0x3040 && c.code <= 0x30ff);
}

// [\p{P}\p{S}] as the reference runs it: its list of ASCII symbols lacks the tilde.
static bool is_sign(unicode_char c) {
  return (c.kind & (UNICODE_PUNCTUATION | UNICODE_SYMBOL)) != 0 && c.code != '~';
}

static size_t skip_signs(const uint8_t *text, size_t at, size_t end) {
  for (;;) {
    const unicode_char c = unicode_at(text, at, end);
    if (c.size_bytes == 0 || !is_sign(c)) return at;
    at += c.size_bytes;
  }
}

static size_t skip_ascii_letters(const uint8_t *text, size_t at, size_t end) {
  while (at < end && (text[at] | 32) >= 'a' && (text[at] | 32) <= 'z') at++;
  return at;
}

// [ASCII punctuation][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|
// \s*[\r\n]+|\s+(?!\S)|\s+ : the end of a match at `at`, or `at`.
static size_t match_deepseek_v3(const uint8_t *text, size_t at, size_t end) {
  enum { LETTERS = UNICODE_LETTER | UNICODE_MARK };
  const unicode_char c = unicode_at(text, at, end);
  size_t after = at;
  if (c.code < 128 && (c.kind & (UNICODE_PUNCTUATION | UNICODE_SYMBOL)) != 0) {
    after = skip_ascii_letters(text, at + 1, end);
    if (after > at + 1) return after;
  }
  const bool leads = !pattern_is_newline(c) && c.kind != UNICODE_LETTER && !is_sign(c);
  const size_t begin = leads ? at + c.size_bytes : at;
  after = skip_class(text, begin, end, LETTERS);
  if (after > begin) return after;
  if (c.kind == UNICODE_MARK) return begin;
  const size_t signs = c.code == ' ' ? at + 1 : at;
  after = skip_signs(text, signs, end);
  if (after > signs) return skip_any_of(text, after, end, "\r\n");
  after = match_newlines(text, at, end);
  return after > at ? after : match_spaces(text, at, end);
}

bool pattern_find_deepseek_v3(const pretokenize_stage *stage, const uint8_t *text, size_t at,
                              size_t end, text_span *match) {
  (void)stage;
  while (at < end) {
    const size_t after = match_deepseek_v3(text, at, end);
    if (after > at) {
      *match = (text_span){at, after};
      return true;
    }
    at += unicode_at(text, at, end).size_bytes;
  }
  return false;
}

// ---- BLOOM ----

// [^(\s|.,!?…。，、।۔،)]
bool pattern_is_word_of_bloom(unicode_char c) {
  static const uint32_t BREAKS[] = {'(',    ')',    '|',    '.',    ',',   '!',   '?',
                                    0x2026, 0x3002, 0xff0c, 0x3001, 0x964, 0x6d4, 0x60c};
  for (size_t i = 0; i < sizeof BREAKS / sizeof BREAKS[0]; i++) {
    if (c.code == BREAKS[i]) return false;
  }
  return c.kind != UNICODE_SPACE;
}
