// text/pretokenize.h — cuts a text into words; byte-level BPE merges only within a word. Each of
// llama.cpp's patterns is a list of stages. A stage cuts each piece of the stage before it into its
// matches and the gaps between them. Internal to text/.
#ifndef WICK_TEXT_PRETOKENIZE_H
#define WICK_TEXT_PRETOKENIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/gguf.h"
#include "text/unicode.h"

enum { STAGES_MAX = 6 };

typedef struct text_span {
  size_t begin;
  size_t end;
} text_span;

struct pretokenize_stage;

// The first match of a stage's pattern in text[at, end). False: there is none.
typedef bool (*stage_find)(const struct pretokenize_stage *stage, const uint8_t *text, size_t at,
                           size_t end, text_span *match);

typedef struct pretokenize_stage {
  stage_find find;
  bool (*contains)(unicode_char c);  // pattern_find_run: the characters of the run
  uint8_t count_min;                 // pattern_find_run: characters of a run, 0 for max: any number
  uint8_t count_max;
  bool takes_space;       // pattern_find_run: one white space before the run belongs to it
  bool takes_blank;       // ... or one U+0020
  bool has_contractions;  // pattern_find_word: 's 't 're 've 'm 'll 'd in any case
  uint8_t digits_max;     // pattern_find_word, pattern_find_cased_word: digits of a number
  uint8_t letters;        // pattern_find_word: classes of letters
  const char *tail;       // ... characters that may follow punctuation
} pretokenize_stage;

typedef struct pretokenizer {
  const char *name;  // value of tokenizer.ggml.pre
  const pretokenize_stage *stages;
  uint8_t stage_count;
  bool ignores_merges;  // a word that is a token needs no merging
  bool adds_bos;        // unless the file says otherwise
} pretokenizer;

// By the value of tokenizer.ggml.pre; NULL when it is not built in.
const pretokenizer *pretokenizer_find(gguf_string name);

// Walks over the words of a text.
typedef struct word_cursor {
  const pretokenizer *pretokenizer;
  const uint8_t *text;          // valid UTF-8
  text_span open[STAGES_MAX];   // text that each stage has not cut yet
  text_span match[STAGES_MAX];  // a match that was found; the gap before it was returned first
} word_cursor;

void word_cursor_init(word_cursor *cursor, const pretokenizer *pretokenizer, const uint8_t *text,
                      size_t size_bytes);
// The next word, never empty; false at the end. O(bytes) for all words together.
bool word_cursor_next(word_cursor *cursor, text_span *word);

#endif
