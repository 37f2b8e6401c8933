// media/media.h — images and audio for language models. An mmproj file is opened for a text model.
// An image is planned from its size (tiles, rows, cost), prepared (resized and cut), and encoded
// chunk by chunk into rows that replace token embeddings. A recording and its spectra are processed
// in the same way.
#ifndef WICK_MEDIA_MEDIA_H
#define WICK_MEDIA_MEDIA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "format/gguf.h"
#include "kernels/kernels.h"
#include "media/image.h"
#include "thread/pool.h"

typedef struct media_model media_model;

// The text model that receives the rows.
typedef struct media_text {
  uint32_t width;            // of an embedding
  uint32_t deepstack_count;  // layers that add a part of a row of (1 + count) * width values
  bool has_axes;             // positions have rows and columns (M-RoPE)
  // For Gemma 3, and for Gemma 4 except E2B and E4B: rows of an image attend to each other in both
  // directions.
  bool sees_both_ways;
} media_text;

// Reads these properties from the metadata of a text model. WICK_E_FORMAT if keys are missing or
// invalid.
wick_status media_text_read(const gguf_directory *directory, media_text *out, wick_error *error);

// Reads `size_bytes` bytes of the mmproj file from an offset; returns false on failure.
typedef struct media_reader {
  bool (*read)(void *context, uint64_t offset_bytes, void *out, size_t size_bytes);
  void *context;
} media_reader;

typedef struct media_options {
  // Follow llama.cpp where it differs from the published model: the class row is the last row but
  // has the position of the first one, Gemma 4's encoder uses quick GELU, Gemma 3's images and
  // LFM2's tiles are padded instead of stretched, Voxtral's rows are averaged in pairs, an
  // incomplete group of Ultravox's rows is dropped, and silence is 2^-24 for Whisper.
  bool follows_llama_cpp;
  // Limits per image; 0: none. An image that would exceed them is cut into fewer tiles, then scaled
  // down.
  uint32_t max_tiles;         // tiles that are encoded, including the overview
  uint32_t max_image_tokens;  // rows
} media_options;

typedef enum media_kind { MEDIA_IMAGES, MEDIA_AUDIO } media_kind;

// Reports which encoders a file has. WICK_E_FORMAT if it has none.
wick_status media_find_encoders(const gguf_directory *directory, bool *has_images, bool *has_audio,
                                wick_error *error);

// Reads the weights of one kind of encoder. The directory is not needed afterwards. The error names
// the invalid key or tensor: WICK_E_FORMAT, WICK_E_SHAPE, WICK_E_NODATA (missing tensors),
// WICK_E_UNSUPPORTED (unknown projectors and types), WICK_E_TRUNCATED, WICK_E_NOMEM.
wick_status media_open(memory_gate *memory, const kernel_table *kernels,
                       const gguf_directory *directory, media_kind kind, const media_text *text,
                       const media_reader *reader, const media_options *options, media_model **out,
                       wick_error *error);
void media_close(media_model *model);  // NULL is allowed

// Memory requirements of an encoder.
typedef struct media_memory {
  uint64_t weight_bytes;
  // While the largest image is resized, and while the largest input is encoded, including its rows.
  uint64_t prepare_bytes, encode_bytes;
} media_memory;
// Computes the memory that an encoder will use, from the directory only, for inputs of at most
// rows_max rows. A text model of width 0 accepts any rows. Returns the same errors as media_open.
wick_status media_measure(memory_gate *memory, const kernel_table *kernels,
                          const gguf_directory *directory, media_kind kind, const media_text *text,
                          const media_options *options, uint32_t rows_max, uint32_t threads,
                          media_memory *out, wick_error *error);

// Returns the number of floats of a row: (1 + deepstack layers) * the text model's width.
uint32_t media_row_width(const media_model *model);
uint64_t media_weight_bytes(const media_model *model);
// Returns a value that changes if the encoder's weights, settings or options change.
uint64_t media_fingerprint(const media_model *model);

// ---- a plan ----

// A part of the prompt: text, or rows of an image.
typedef struct media_chunk {
  char text[48];       // NUL-terminated; special tokens in it are parsed
  bool is_text;        // otherwise rows
  bool is_one_token;   // the text is that of a single token in the vocabulary
  bool is_non_causal;  // the rows attend to each other
  bool is_audio;
  bool is_overview;       // of the whole image, otherwise of a tile
  uint32_t column, row;   // of the tile
  uint32_t rows;          // number of rows of the tile or overview
  uint32_t across, down;  // grid of the rows; additional rows separate its lines
  bool counts_rows;    // each row has the next position; otherwise a line and a column of the grid
  uint32_t positions;  // number of positions that the chunk takes in the prompt
  uint32_t width, height;  // of the encoded pixels; for audio, frames and bands
  uint64_t macs;           // of its encoding
} media_chunk;

typedef struct media_plan {
  media_chunk *chunks;
  uint32_t count;
  uint32_t rows, tiles;      // of all chunks
  uint64_t macs;             // of all chunks
  uint64_t prepare_bytes;    // memory until media_prepared_free
  uint64_t resize_bytes;     // additional memory while it is prepared
  uint64_t encode_bytes;     // memory while a chunk is encoded with one thread
  struct image_plan *image;  // how the image is cut; NULL for audio
  uint64_t samples;          // of audio
} media_plan;

// Plans the chunks of an image and their cost, based only on its size. WICK_E_ARG for a size beyond
// the limits (image.h, layout.h) or one that the encoder cannot make small enough for
// max_image_tokens, WICK_E_NOMEM.
wick_status media_plan_image(const media_model *model, uint32_t width, uint32_t height,
                             media_plan *out, wick_error *error);
void media_plan_free(memory_gate *memory, media_plan *plan);  // zeros are allowed

// The resized tiles and overview of an image.
typedef struct media_prepared {
  image_fitting *fittings[2];  // of the tiles and of the overview while they are resized
  uint8_t *tiles, *overview;   // NULL: none
  const float *samples;        // of audio; owned by the caller
  double maximum;              // of its spectra
  uint64_t heard;              // frames that `maximum` covers so far
} media_prepared;

// Begins to resample an image of the planned size. Its rows must then be fed in order.
// WICK_E_NOMEM. If this function or one of the next two functions fails, *out is empty.
wick_status media_begin_image(const media_model *model, const media_plan *plan, media_prepared *out,
                              wick_error *error);
wick_status media_feed_image(const media_model *model, media_prepared *prepared, const uint8_t *rgb,
                             size_t stride_bytes, uint32_t rows, wick_error *error);
// Continues to resize for a few milliseconds, after the last row has been fed.
wick_status media_resize(const media_model *model, const media_plan *plan, media_prepared *prepared,
                         bool *is_done, wick_error *error);
// Performs all steps from media_begin_image to media_resize. WICK_E_NOMEM.
wick_status media_prepare(const media_model *model, const media_plan *plan, image_view image,
                          media_prepared *out, wick_error *error);
void media_prepared_free(memory_gate *memory, media_prepared *prepared);  // zeros are allowed
// Returns the pixels that a chunk encodes.
image_view media_chunk_pixels(const media_plan *plan, const media_prepared *prepared,
                              uint32_t chunk);
// Returns the key of an image in a cache, together with media_fingerprint: a hash of its pixels and
// size.
uint64_t media_hash_pixels(image_view image);
// Hash an image in parts: first its size, then its rows in order.
uint64_t media_hash_size(uint32_t width, uint32_t height);
uint64_t media_hash_rows(image_view rows, uint64_t hash);

// ---- audio ----

// Plans the chunks of a recording of 16 kHz samples. WICK_E_ARG if it has no samples or is longer
// than SOUND_SECONDS_MAX (sound.h).
wick_status media_plan_audio(const media_model *model, uint64_t samples, media_plan *out,
                             wick_error *error);
// Analyses a recording of the planned length, which must stay valid until its chunks are encoded: a
// chunk's spectrum is computed when its encoding begins. WICK_E_NOMEM.
wick_status media_prepare_audio(const media_model *model, const media_plan *plan,
                                const float *samples, media_prepared *out, wick_error *error);
// media_prepare_audio in slices: media_begin_audio, then media_listen until *is_done. WICK_E_NOMEM.
void media_begin_audio(const float *samples, media_prepared *out);
wick_status media_listen(const media_model *model, const media_plan *plan, media_prepared *prepared,
                         bool *is_done, wick_error *error);
// Computes out[chunk.height][chunk.width], bands by frames. WICK_E_NOMEM.
wick_status media_chunk_spectrum(const media_model *model, const media_plan *plan,
                                 const media_prepared *prepared, uint32_t chunk, float *out,
                                 wick_error *error);
uint64_t media_hash_samples(const float *samples, uint64_t count);

// ---- encoding ----

typedef struct media_encoding media_encoding;

// Begins to encode a chunk of rows. `rows` [chunk.rows][media_row_width] must stay valid until the
// end. WICK_E_NOMEM.
wick_status media_encode_begin(const media_model *model, const media_plan *plan,
                               const media_prepared *prepared, uint32_t chunk, thread_pool *threads,
                               uint32_t thread_count, float *rows, media_encoding **out,
                               wick_error *error);
// Computes part of a layer, or of the steps before or after the layers, which takes a few
// milliseconds on one core. *is_done: the rows are complete. The result is bit-identical for any
// number of threads. WICK_E_NONFINITE if the results are not finite.
wick_status media_encode_step(media_encoding *encoding, bool *is_done, wick_error *error);
void media_encode_end(media_encoding *encoding);  // NULL is allowed; cancels unfinished work

#endif
