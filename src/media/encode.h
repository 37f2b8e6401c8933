// media/encode.h — the state of an encoding: rows of patches, their order and positions, and
// buffers whose sizes are known (media.h).
#ifndef WICK_MEDIA_ENCODE_H
#define WICK_MEDIA_ENCODE_H

#include "media/sound.h"
#include "media/weights.h"
#include "model/arena.h"
#include "model/pass.h"

// Rows that are multiplied or pass through a feed-forward together, which limits the size of their
// buffers.
enum { ENCODE_BLOCK_ROWS = 256 };
// Multiply-adds of a slice, during which the thread does nothing else: 20 ms on one core, 45 ms on
// a slow core with F16 weights and plain SIMD.
enum { ENCODE_SLICE_MACS = 1 << 29 };

// The position of an image's patches among the rows.
typedef struct patch_grid {
  uint32_t across, down, window;  // patches
  uint32_t patches, rows;         // rows include the class row, which is the last one
  uint32_t windows;
  uint32_t *row_of;       // [down][across]
  uint32_t *y, *x;        // [patches] by row
  model_input *whole;     // [rows]: the input of attention as one sequence
  model_input *windowed;  // [rows]: the input of attention with one sequence per window
} patch_grid;

struct media_encoding {
  const media_model *model;
  thread_pool *threads;
  scratch_arena arena;
  image_view pixels;
  media_chunk chunk;
  float *out;  // [chunk.rows][media_row_width]
  // A step runs in slices. Each slice starts the step from its beginning and skips the pieces of
  // work that are already done. When a piece does not fit into the slice, it and all later pieces
  // are also skipped. A step writes only within pieces, or after all of them.
  uint64_t slice_macs_max, slice_macs;
  uint32_t pieces, pieces_done;  // of the step
  bool is_paused;                // the step continues in another slice
  uint32_t layer;                // layer that runs next
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
  sound_recording recording;  // of audio, with the computation of its spectrum
  sound_job *sound_job;       // NULL: an image
  float *spectrum;            // [bands][frames]
  float *maps[2], *relative;  // rows between convolutions, and of relative positions
  uint32_t wide_stride, per_thread_stride, feature_stride;
  uint8_t *act, *pages;
};

// Returns the number of patches on each side of the square that becomes one row.
static inline uint32_t encode_patches_a_side(const media_model *model) {
  return model->reduction != NULL ? 4 : model->merge;
}
// Begins a piece of the step's work. Returns false if it must be skipped in this slice.
bool encode_takes(media_encoding *encoding, uint64_t macs);
// Returns the number of multiply-adds of an image of `across` x `down` patches, or of a piece of a
// recording: all matrix products except those of an audio encoder's first convolutions and of a
// Q-Former.
uint64_t encode_macs(const media_model *model, uint32_t across, uint32_t down);
// Returns the memory of an encoding.
uint64_t encode_bytes(const media_model *model, const media_chunk *chunk, uint32_t threads);

// ---- rows.c ----

// A job that runs in parallel for each row.
typedef struct row_job row_job;
struct row_job {
  media_encoding *encoding;
  void (*run)(const row_job *job, uint32_t row);
  float *rows;
  const float *from;
  size_t stride, from_stride;
  const media_norm *norm;
  const float *scale, *post, *after;
  float epsilon;
  uint32_t width;
  uint32_t first;   // first row of the piece, set by rows_run
  uint32_t thread;  // index of the scratch buffer, set for each call
  uint64_t macs;    // per row; 0: a cost for `width` values
  bool is_rms;
  media_activation activation;
  const void *more;
};
void rows_run(const row_job *job, uint32_t count);
// Computes y[t] = x[t] W^T + bias, within the clamps.
void rows_multiply(media_encoding *encoding, const media_linear *linear, const float *x,
                   size_t x_stride, uint32_t count, float *y, size_t y_stride);
// Computes to[t] = norm(from[t]).
void rows_norm(media_encoding *encoding, const media_norm *norm, bool is_rms, float epsilon,
               uint32_t width, const float *from, size_t from_stride, float *to, size_t stride,
               uint32_t count);
// Computes rows[t] = activation(rows[t]) * factors[t]; factors may be NULL.
void rows_activate(media_encoding *encoding, media_activation activation, float *rows,
                   const float *factors, size_t stride, uint32_t width, uint32_t count);
// Computes y[t] = down(activation(gate x[t]) * up x[t]), or down(activation(up x[t])).
void rows_feed_forward(media_encoding *encoding, const media_feed_forward *ffn,
                       media_activation activation, const float *x, size_t x_stride, uint32_t count,
                       float *y, size_t y_stride);

// ---- patches.c ----

void grid_measure(const media_model *model, const media_chunk *chunk, patch_grid *grid);
void grid_take(patch_grid *grid, scratch_arena *arena);
void grid_fill(patch_grid *grid);
// Computes hidden = patches + positions, and the angles of the rotation.
void patches_embed(media_encoding *encoding);

// ---- project.c ----

// Applies the steps to rows [patches of a grid][width] and writes rows that are `out_stride` floats
// apart. The grid defines which row belongs to a patch.
void project(media_encoding *encoding, const media_projector *projector, const float *from,
             size_t from_stride, uint32_t merge, float *out, size_t out_stride);
// Returns the number of rows after a step.
uint64_t project_rows(const media_model *model, const media_bound_step *bound, uint32_t merge,
                      uint64_t rows);
// Returns the number of floats of ping and of pong.
uint64_t project_floats(const media_projector *projector, uint32_t patches, uint32_t merge);

#endif
