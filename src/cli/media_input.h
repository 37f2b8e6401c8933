// cli/media_input.h — the images and recordings of a prompt, encoded for a text model.
#ifndef WICK_CLI_MEDIA_INPUT_H
#define WICK_CLI_MEDIA_INPUT_H

#include "cli/media.h"
#include "media/prompt.h"

typedef struct media_item {
  media_kind kind;
  uint64_t key;            // hash of the pixels or samples
  const media_part *part;  // valid until its rows are computed
  media_plan plan;
  media_prepared prepared;
  bool is_prepared;
  float *rows;  // [plan.rows, width] once they are computed
} media_item;

typedef struct media_input {
  const char *model, *mmproj;
  memory_gate memory;
  gguf_file text_file, mmproj_file;
  media_text text;
  tokenizer *tokenizer;
  media_model *encoders[2];  // by media_kind; NULL: the file has none, or the encoder is closed
  uint32_t width;            // values per row; 0 without images and recordings
  uint64_t fingerprints[2];
  thread_pool *pool;
  uint32_t threads;
  media_parts parts;
  media_item *items;  // images and recordings
  uint32_t item_count;
  media_prompt prompt;
} media_input;

typedef struct media_input_files {
  const char *model, *mmproj;
  const char *pre_tokenizer;  // or NULL
  uint32_t threads;
  media_options options;
} media_input_files;

// Opens the vocabulary of a text model and the encoders of its mmproj file. Functions that return
// an exit code report errors.
exit_code media_input_open(media_input *input, const media_input_files *files);
void media_input_close(media_input *input);  // may be all zeros
// Plans the images and recordings of input->parts, and builds input->prompt from all parts.
exit_code media_input_plan(media_input *input);
// Resizes an image, or computes the spectra of a recording, unless that is already done.
wick_status media_input_prepare(media_input *input, media_item *item, wick_error *error);
// Computes all rows. Then frees the encoders, the prepared data, and the parts.
exit_code media_input_encode(media_input *input);
// Returns the rows of a chunk of the item's plan.
const float *media_input_rows(const media_input *input, const media_item *item, uint32_t chunk);

#endif
