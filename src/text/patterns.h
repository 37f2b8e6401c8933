// text/patterns.h — the patterns that stages of pretokenizers look for; patterns.c has each one's
// regular expression. Internal to text/.
#ifndef WICK_TEXT_PATTERNS_H
#define WICK_TEXT_PATTERNS_H

#include "text/pretokenize.h"

// ---- stage_find functions: the first match in text[at, end) ----

bool pattern_find_gpt2_word(const pretokenize_stage *stage, const uint8_t *text, size_t at,
                            size_t end, text_span *match);
bool pattern_find_word(const pretokenize_stage *stage, const uint8_t *text, size_t at, size_t end,
                       text_span *match);
bool pattern_find_cased_word(const pretokenize_stage *stage, const uint8_t *text, size_t at,
                             size_t end, text_span *match);
bool pattern_find_run(const pretokenize_stage *stage, const uint8_t *text, size_t at, size_t end,
                      text_span *match);
bool pattern_find_last_spaces(const pretokenize_stage *stage, const uint8_t *text, size_t at,
                              size_t end, text_span *match);
bool pattern_find_deepseek_v3(const pretokenize_stage *stage, const uint8_t *text, size_t at,
                              size_t end, text_span *match);

// ---- sets of characters, for pattern_find_run ----

bool pattern_is_newline(unicode_char c);
bool pattern_is_digit(unicode_char c);
bool pattern_is_number(unicode_char c);
bool pattern_is_symbol_of_falcon(unicode_char c);
bool pattern_is_symbol_of_default(unicode_char c);
bool pattern_is_letter(unicode_char c);
bool pattern_is_punctuation(unicode_char c);
bool pattern_is_cjk_of_deepseek_coder(unicode_char c);
bool pattern_is_letter_of_deepseek_llm(unicode_char c);
bool pattern_is_sign_of_deepseek_llm(unicode_char c);
bool pattern_is_cjk_of_deepseek_v3(unicode_char c);
bool pattern_is_word_of_bloom(unicode_char c);

#endif
