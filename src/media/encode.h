// media/encode.h — the state of an encoding: rows of patches, their order and positions, and
// buffers of known size (media.h).
#ifndef WICK_MEDIA_ENCODE_H
#define WICK_MEDIA_ENCODE_H

#include "media/sound.h"
#include "media/weights.h"
#include "model/arena.h"
#include "model/pass.h"

// Rows that go through a product or a feed-forward together, which bounds their buffers.
enum { ENCODE_BLOCK_ROWS = 256 };
// Multiply-adds of a slice, during which the thread does nothing else: 20 ms on one core, 45 ms on
// a slow one with F16 weights and plain vectors.
enum { ENCODE_SLICE_MACS = 1 << 29 };

// The places of a picture's patches among the rows.
typedef struct patch_grid {
  uint32_t across, down, window;  // patches
  uint32_t patches, rows;         // rows include the class row, which is the last one
  uint32_t windows;
  uint32_t *row_of;       // [down][across]
  uint32_t *y, *x;        // [patches] by row
  model_input *whole;     // [rows], the input of attention: one text,
  model_input *windowed;  // or a text for each window
} patch_grid;

struct media_encoding {
  const media_model *model;
  thread_pool *threads;
  scratch_arena arena;
  image_view pixels;
  media_chunk chunk;
  float *out;  // [chunk.rows][media_row_width]
  // A step runs in slices, and each slice runs it from its beginning: pieces of work that are done
  // are skipped, and so are all pieces from the first one on for which the slice has no room. A
  // step writes only within pieces, or after all of them.
  uint64_t slice_macs_max, slice_macs;
  uint32_t pieces, pieces_done;  // of the step
  bool is_paused;                // the step continues in another slice
  uint32_t layer;                // that runs next
  bool has_begun;
  uint32_t deepstacks, features;  // so far
  patch_grid grid;
  uint32_t stride, qkv_stride, attended_stride;  // floats
  float *hidden, *normed, *qkv, *attended;       // [rows]
  float *wide, *gate, *copy;                     // [ENCODE_BLOCK_ROWS] rows of the widest kind
  float *feature_rows;                           // [rows][features * width] or NULL
  float *cos_sin;                                // [patches][head_dim] or NULL
  float *ping, *pong;                            // rows of the projector
  float *per_thread;
  sound_recording recording;  // of audio, and the computing of its spectrum
  sound_job *sound_job;       // NULL: an image
  float *spectrum;            // [bands][frames]
  float *maps[2], *relative;  // rows between convolutions, and of relative positions
  uint32_t wide_stride, per_thread_stride, projector_floats, feature_stride;
  uint8_t *act, *pages;
};

// The number of patches on each side of the square that becomes one row.
static inline uint32_t encode_patches_a_side(const media_model *model) {
  return model->reduction != NULL ? 4 : model->merge;
}
// Begins a piece of the step's work. Returns false if it must not be done in this slice.
bool encode_takes(media_encoding *encoding, uint64_t macs);
// Multiply-adds of a picture of `across` x `down` patches, or of a piece of a recording: all
// products but those of an audio encoder's first convolutions and of a Q-Former.
uint64_t encode_macs(const media_model *model, uint32_t across, uint32_t down);
// Memory of an encoding.
uint64_t encode_bytes(const media_model *model, const media_chunk *chunk, uint32_t threads);

// ---- rows.c ----

// A job for each row in parallel; `thread` numbers the scratch.
typedef struct row_job row_job;
struct row_job {
  media_encoding *encoding;
  void (*run)(const row_job *job, uint32_t row, uint32_t thread);
  float *rows;
  const float *from;
  size_t stride, from_stride;
  const media_norm *norm;
  const float *scale, *post, *after;
  float epsilon;
  uint32_t width;
  uint32_t first;  // set by rows_run: of the piece
  uint64_t macs;   // of a row; 0: it is one of `width` values
  bool is_rms;
  media_activation activation;
  const void *more;
};
void rows_run(const row_job *job, uint32_t count);
// y[t] = x[t] W^T + bias, within the clamps.
void rows_multiply(media_encoding *encoding, const media_linear *linear, const float *x,
                   size_t x_stride, uint32_t count, float *y, size_t y_stride);
// to[t] = norm(from[t])
void rows_norm(media_encoding *encoding, const media_norm *norm, bool is_rms, float epsilon,
               uint32_t width, const float *from, size_t from_stride, float *to, size_t stride,
               uint32_t count);
// rows[t] = activation(rows[t]) * factors[t]; factors may be NULL.
void rows_activate(media_encoding *encoding, media_activation activation, float *rows,
                   const float *factors, size_t stride, uint32_t width, uint32_t count);
// y[t] = down(activation(gate x[t]) * up x[t]), or down(activation(up x[t]))
void rows_feed_forward(media_encoding *encoding, const media_feed_forward *ffn,
                       media_activation activation, const float *x, size_t x_stride, uint32_t count,
                       float *y, size_t y_stride);

// ---- patches.c ----

void grid_measure(const media_model *model, const media_chunk *chunk, patch_grid *grid);
void grid_take(patch_grid *grid, scratch_arena *arena);
void grid_fill(patch_grid *grid);
// hidden = patches + positions, and the angles of the rotation.
wick_status patches_embed(media_encoding *encoding, wick_error *error);

// ---- project.c ----

// Applies the steps to rows [patches of a grid][width] and writes rows that are `out_stride` floats
// apart. The grid defines the place of a patch's row.
void project(media_encoding *encoding, const media_projector *projector, const float *from,
             size_t from_stride, uint32_t merge, float *out, size_t out_stride);
// Rows after a step, at least.
uint64_t project_rows(const media_model *model, const media_bound_step *bound, uint32_t merge,
                      uint64_t rows);
// Floats of ping and pong each.
uint64_t project_floats(const media_projector *projector, uint32_t patches, uint32_t merge);

#endif
