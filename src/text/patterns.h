// text/patterns.h — the patterns that stages of pretokenizers look for; their regular expressions
// are in patterns.c and patterns_more.c. Internal to text/.
#ifndef WICK_TEXT_PATTERNS_H
#define WICK_TEXT_PATTERNS_H

#include "text/pretokenize.h"

// ---- stage_find functions ----

bool pattern_find_gpt2_word(const pretokenize_stage *stage, const stage_text *in, text_span *match);
bool pattern_find_word(const pretokenize_stage *stage, const stage_text *in, text_span *match);
bool pattern_find_cased_word(const pretokenize_stage *stage, const stage_text *in,
                             text_span *match);
bool pattern_find_ended_word(const pretokenize_stage *stage, const stage_text *in,
                             text_span *match);
bool pattern_find_kimi_word(const pretokenize_stage *stage, const stage_text *in, text_span *match);
bool pattern_find_phrase(const pretokenize_stage *stage, const stage_text *in, text_span *match);
bool pattern_find_signed_word(const pretokenize_stage *stage, const stage_text *in,
                              text_span *match);
bool pattern_find_run(const pretokenize_stage *stage, const stage_text *in, text_span *match);
bool pattern_find_last_spaces(const pretokenize_stage *stage, const stage_text *in,
                              text_span *match);
bool pattern_find_number_group(const pretokenize_stage *stage, const stage_text *in,
                               text_span *match);
bool pattern_find_thousands(const pretokenize_stage *stage, const stage_text *in, text_span *match);
bool pattern_find_sentinel(const pretokenize_stage *stage, const stage_text *in, text_span *match);
bool pattern_find_image(const pretokenize_stage *stage, const stage_text *in, text_span *match);
bool pattern_find_blanks(const pretokenize_stage *stage, const stage_text *in, text_span *match);
bool pattern_find_script(const pretokenize_stage *stage, const stage_text *in, text_span *match);

// ---- sets of characters (pattern_sets.c), for pattern_find_run ----

bool pattern_is_newline(unicode_char c);
bool pattern_is_of_line(unicode_char c);
bool pattern_is_no_space(unicode_char c);
bool pattern_is_digit(unicode_char c);
bool pattern_is_number(unicode_char c);
bool pattern_is_symbol_of_falcon(unicode_char c);
bool pattern_is_symbol_of_default(unicode_char c);
bool pattern_is_letter(unicode_char c);
bool pattern_is_punctuation(unicode_char c);
bool pattern_is_han(unicode_char c);
bool pattern_is_cjk_of_deepseek_coder(unicode_char c);
bool pattern_is_letter_of_deepseek_llm(unicode_char c);
bool pattern_is_sign_of_deepseek_llm(unicode_char c);
bool pattern_is_cjk_of_deepseek_v3(unicode_char c);
bool pattern_is_asian_of_afmoe(unicode_char c);
bool pattern_is_word_of_bloom(unicode_char c);
// Returns which of youtu's four sets contains a character; 0: none.
unsigned pattern_script_of_youtu(unicode_char c);

#endif
