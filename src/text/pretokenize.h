// text/pretokenize.h — splits text into words; byte-level BPE merges only within a word. Each of
// llama.cpp's patterns is a list of stages. A stage splits each piece of the previous stage into
// its matches and the gaps between them. Internal to text/.
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

// The range in which a stage looks for its pattern: bytes[at, end).
typedef struct stage_text {
  const uint8_t *bytes;
  size_t at;
  size_t end;
  size_t *memo;  // kept for the stage between calls, initially 0
} stage_text;

struct pretokenize_stage;

// Finds the first match of a stage's pattern. Returns false if there is none.
typedef bool stage_find(const struct pretokenize_stage *stage, const stage_text *in,
                        text_span *match);

typedef struct pretokenize_stage {
  stage_find *find;
  bool (*contains)(unicode_char c);  // pattern_find_run: the characters of the run
  uint8_t count_min;  // pattern_find_run: number of characters of a run; max 0: any number
  uint8_t count_max;
  bool takes_space;  // pattern_find_run: one white space character before the run belongs to it
  bool takes_blank;  // ... or one U+0020
  bool has_contractions;  // words: 's 't 're 've 'm 'll 'd in upper or lower case
  bool marks_are_signs;   // ... marks without a preceding letter count as punctuation
  bool cuts_spaces;       // ... white space is split into powers of two
  bool cuts_newlines;     // ... each newline is separate
  bool has_short_tail;    // ... at most one character of the tail
  uint8_t digits_max;     // ... maximum number of digits per number
  uint8_t letters;        // ... classes of letters
  const char *tail;       // ... characters that may follow punctuation
} pretokenize_stage;

typedef struct pretokenizer {
  const char *names;  // values of tokenizer.ggml.pre, separated by spaces
  const pretokenize_stage *stages;
  uint8_t stage_count;
  bool ignores_merges;  // a word that is a token needs no merging
  bool adds_bos;        // unless the file specifies otherwise
  bool is_raw;          // words are merged from characters, not from bytes
  bool marks_spaces;    // ... a space is written as U+2581
  bool keeps_newlines;  // ... a run of newlines that is a token needs no merging; bos is always
                        // added
} pretokenizer;

// Finds a pretokenizer by the value of tokenizer.ggml.pre; NULL if it is not built in.
const pretokenizer *pretokenizer_find(gguf_string name);

// Walks over the words of the text.
typedef struct word_cursor {
  const pretokenizer *pretokenizer;
  const uint8_t *text;          // valid UTF-8
  text_span open[STAGES_MAX];   // text that each stage has not split yet
  text_span match[STAGES_MAX];  // a match whose preceding gap was returned first
  size_t memo[STAGES_MAX];
} word_cursor;

void word_cursor_init(word_cursor *cursor, const pretokenizer *pretokenizer, const uint8_t *text,
                      size_t size_bytes);
// Gets the next word, which is never empty; false at the end. O(bytes) for all words together.
bool word_cursor_next(word_cursor *cursor, text_span *word);

#endif
