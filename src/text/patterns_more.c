// text/patterns_more.c — matchers for regular expressions of tokenizer.ggml.pre that differ in kind
// from GPT-2's and Llama's; the results are identical to llama.cpp's (src/unicode.cpp).
#include <string.h>

#include "text/pattern_parts.h"
#include "text/patterns.h"

// \s+$
bool pattern_find_last_spaces(const pretokenize_stage *stage, const stage_text *in,
                              text_span *match) {
  (void)stage;
  const uint8_t *text = in->bytes;
  const size_t at = in->at, end = in->end;
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

// [\p{P}\p{S}] as in the reference, whose list of ASCII symbols lacks the tilde.
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

// [ASCII punctuation][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[tail]*|
// \s*[\r\n]+|\s+(?!\S)|\s+ : the end of a match at `at`, or `at`.
static size_t match_signed_word(const pretokenize_stage *stage, const uint8_t *text, size_t at,
                                size_t end) {
  enum { LETTERS = UNICODE_LETTER | UNICODE_MARK };
  const unicode_char c = unicode_at(text, at, end);
  size_t after = at;
  if (c.code < 128 && (c.kind & (UNICODE_PUNCTUATION | UNICODE_SYMBOL)) != 0) {
    after = skip_ascii_letters(text, at + 1, end);
    if (after > at + 1) return after;
  }
  const bool leads = !pattern_is_newline(c) && c.kind != UNICODE_LETTER && !is_sign(c);
  const size_t begin = leads ? at + c.size_bytes : at;
  after = pattern_skip_class(text, begin, end, LETTERS);
  if (after > begin) return after;
  if (c.kind == UNICODE_MARK) return begin;
  const size_t signs = c.code == ' ' ? at + 1 : at;
  after = skip_signs(text, signs, end);
  if (after > signs) return pattern_skip_any_of(text, after, end, stage->tail);
  if (stage->cuts_newlines) {
    after = pattern_is_newline(c) ? at + 1 : at;
  } else {
    after = pattern_match_newlines(text, at, end);
  }
  return after > at ? after : pattern_match_spaces(text, at, end);
}

bool pattern_find_signed_word(const pretokenize_stage *stage, const stage_text *in,
                              text_span *match) {
  for (size_t at = in->at; at < in->end;) {
    const size_t after = match_signed_word(stage, in->bytes, at, in->end);
    if (after > at) {
      *match = (text_span){at, after};
      return true;
    }
    at += unicode_at(in->bytes, at, in->end).size_bytes;
  }
  return false;
}

// ---- numbers in groups of three, counted from the last one ----

typedef struct number_run {
  size_t begin;
  size_t first_end;  // end of the one or two numbers before the groups
  size_t end;
  size_t count;
} number_run;

// Finds the first run in text[at, end). Returns false if there is none.
static bool find_numbers(const stage_text *in, size_t at, bool (*contains)(unicode_char),
                         number_run *run) {
  unicode_char c = unicode_at(in->bytes, at, in->end);
  while (c.size_bytes > 0 && !contains(c)) {
    at += c.size_bytes;
    c = unicode_at(in->bytes, at, in->end);
  }
  *run = (number_run){.begin = at, .first_end = at};
  for (; c.size_bytes > 0 && contains(c); run->count++) {
    at += c.size_bytes;
    c = unicode_at(in->bytes, at, in->end);
  }
  run->end = at;
  for (size_t i = 0; i < run->count % 3; i++) {
    run->first_end += unicode_at(in->bytes, run->first_end, in->end).size_bytes;
  }
  return run->count > 0;
}

static size_t skip_three(const stage_text *in, size_t at) {
  for (size_t i = 0; i < 3; i++) at += unicode_at(in->bytes, at, in->end).size_bytes;
  return at;
}

// Groups numbers like llama.cpp for afmoe and tiny_aya: text before a number is kept with its first
// group. The memo is the end of a run whose first group was found.
bool pattern_find_number_group(const pretokenize_stage *stage, const stage_text *in,
                               text_span *match) {
  (void)stage;
  if (in->at < *in->memo) {
    *match = (text_span){in->at, skip_three(in, in->at)};
    return true;
  }
  number_run run;
  if (!find_numbers(in, in->at, pattern_is_number, &run)) return false;
  *in->memo = run.end;
  *match = (text_span){in->at, run.count % 3 != 0 ? run.first_end : skip_three(in, run.begin)};
  return true;
}

// (?=(\d{3})+(?!\d)) (superbpe) is empty: it cuts before each group. Text before a number is kept
// with its remainder, and text after it with its last group.
bool pattern_find_thousands(const pretokenize_stage *stage, const stage_text *in,
                            text_span *match) {
  (void)stage;
  size_t at = in->at;
  if (at < *in->memo) {
    at = skip_three(in, at);
    if (at < *in->memo) {
      *match = (text_span){in->at, at};
      return true;
    }
  }
  number_run run;
  for (; find_numbers(in, at, pattern_is_digit, &run); at = run.end) {
    if (run.count < 3) continue;
    *in->memo = run.end;
    if (run.first_end == in->at) return pattern_find_thousands(stage, in, match);
    *match = (text_span){in->at, run.first_end};
    return true;
  }
  return false;
}

// ---- chameleon ----

// <sentinel:[0-9]+>
bool pattern_find_sentinel(const pretokenize_stage *stage, const stage_text *in, text_span *match) {
  (void)stage;
  static const char HEAD[] = "<sentinel:";
  enum { HEAD_BYTES = sizeof HEAD - 1 };
  for (size_t at = in->at; in->end - at > HEAD_BYTES + 1; at++) {
    if (memcmp(in->bytes + at, HEAD, HEAD_BYTES) != 0) continue;
    const size_t digits = at + HEAD_BYTES;
    const size_t after = pattern_skip_any_of(in->bytes, digits, in->end, "0123456789");
    if (after == digits || after == in->end || in->bytes[after] != '>') continue;
    *match = (text_span){at, after + 1};
    return true;
  }
  return false;
}

// (IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z
bool pattern_find_image(const pretokenize_stage *stage, const stage_text *in, text_span *match) {
  (void)stage;
  enum { HEAD_BYTES = 6, LETTERS_MAX = 4 };
  for (size_t at = in->at; in->end - at > HEAD_BYTES + 1; at++) {
    if (memcmp(in->bytes + at, "IMGIMG", HEAD_BYTES) != 0) continue;
    const size_t letters = at + HEAD_BYTES;
    const size_t most = in->end - letters > LETTERS_MAX ? letters + LETTERS_MAX : in->end;
    const size_t after = pattern_skip_any_of(in->bytes, letters, most, "ABCDEFGHI");
    if (after == letters || after == in->end || in->bytes[after] != 'Z') continue;
    *match = (text_span){at, after + 1};
    return true;
  }
  return false;
}

// [\t\n]|    |  : a tab, a newline, four spaces or two
bool pattern_find_blanks(const pretokenize_stage *stage, const stage_text *in, text_span *match) {
  (void)stage;
  for (size_t at = in->at; at < in->end; at++) {
    const uint8_t byte = in->bytes[at];
    size_t after = byte == '\t' || byte == '\n' ? at + 1 : at;
    if (byte == ' ') {
      const size_t most = in->end - at > 4 ? at + 4 : in->end;
      after = pattern_skip_any_of(in->bytes, at, most, " ");
      after -= (after - at) % 2;
    }
    if (after == at) continue;
    *match = (text_span){at, after};
    return true;
  }
  return false;
}

// ---- youtu ----

// A run of one script:
// [가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+
bool pattern_find_script(const pretokenize_stage *stage, const stage_text *in, text_span *match) {
  (void)stage;
  unicode_char c;
  for (size_t at = in->at; at < in->end; at += c.size_bytes) {
    c = unicode_at(in->bytes, at, in->end);
    const unsigned script = pattern_script_of_youtu(c);
    if (script == 0) continue;
    *match = (text_span){at, at};
    for (; c.size_bytes > 0 && pattern_script_of_youtu(c) == script;
         c = unicode_at(in->bytes, match->end, in->end)) {
      match->end += c.size_bytes;
    }
    return true;
  }
  return false;
}
