// text/patterns.h — the patterns that stages of pretokenizers look for; their regular expressions
// are in patterns.c and patterns_more.c. Internal to text/.
#ifndef WICK_TEXT_PATTERNS_H
#define WICK_TEXT_PATTERNS_H

#include "text/pretokenize.h"

stage_find pattern_find_gpt2_word, pattern_find_word, pattern_find_cased_word,
    pattern_find_ended_word, pattern_find_kimi_word, pattern_find_phrase, pattern_find_signed_word,
    pattern_find_run, pattern_find_last_spaces, pattern_find_number_group, pattern_find_thousands,
    pattern_find_sentinel, pattern_find_image, pattern_find_blanks, pattern_find_script;

// Sets of characters (pattern_sets.c), for pattern_find_run.
typedef bool pattern_set(unicode_char c);
pattern_set pattern_is_newline, pattern_is_of_line, pattern_is_no_space, pattern_is_digit,
    pattern_is_number, pattern_is_symbol_of_falcon, pattern_is_symbol_of_default, pattern_is_letter,
    pattern_is_punctuation, pattern_is_han, pattern_is_cjk_of_deepseek_coder,
    pattern_is_letter_of_deepseek_llm, pattern_is_sign_of_deepseek_llm,
    pattern_is_cjk_of_deepseek_v3, pattern_is_asian_of_afmoe, pattern_is_word_of_bloom;
// Returns which of youtu's four sets contains a character; 0: none.
unsigned pattern_script_of_youtu(unicode_char c);

#endif
