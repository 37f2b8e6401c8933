// media/kinds.h — the properties of each image encoder of mmproj files: a table with one row per
// projector type.
#ifndef WICK_MEDIA_KINDS_H
#define WICK_MEDIA_KINDS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/gguf.h"
#include "media/image.h"

// How an image is resized and cut (layout.c).
typedef enum vision_sizing {
  SIZING_SQUARE,      // image_size on both sides
  SIZING_SMART,       // near its own size, in whole merged patches
  SIZING_LONGEST,     // the longest edge is specified by the file
  SIZING_IDEFICS,     // longest edge, then tiles of image_size
  SIZING_LFM2,        // smart, or tiles of 512 pixels
  SIZING_CANDIDATES,  // the best grid among those with an allowed number of tiles
  SIZING_PINPOINTS,   // the best of the sizes that the file lists; a square without a list
  SIZING_SLICES       // MiniCPM: an overview and slices of about image_size
} vision_sizing;

// How the row in the position table is selected for a patch.
typedef enum vision_positions {
  POSITIONS_NONE,
  POSITIONS_FIXED,      // the row with the patch's index
  POSITIONS_ANTIALIAS,  // the square table resampled to the grid
  POSITIONS_CORNERS,    // like POSITIONS_ANTIALIAS, with aligned corners and linear interpolation
  POSITIONS_BICUBIC,
  POSITIONS_AXES,    // one table of columns and one of rows
  POSITIONS_BUCKETS  // the row at the same fraction of a 70 x 70 table
} vision_positions;

typedef enum vision_rotary {
  ROTARY_NONE,
  ROTARY_HALVES,      // pairs (j, j + d/2): rows, then columns
  ROTARY_QUARTERS,    // columns in the first half of a head, rows in the second
  ROTARY_NEIGHBOURS,  // pairs (2j, 2j + 1): rows, then columns
} vision_rotary;

typedef enum media_activation {
  ACTIVATION_FILE,  // specified by the file
  ACTIVATION_GELU_TANH,
  ACTIVATION_GELU_ERF,
  ACTIVATION_GELU_QUICK,  // x sigmoid(1.702 x)
  ACTIVATION_SILU
} media_activation;

// A step that is applied to the rows after the last layer.
typedef enum media_op {
  OP_END,
  OP_SHUFFLE,     // n x n patches joined in one row, channels innermost
  OP_GATHER,      // like OP_SHUFFLE, channels outermost; skipped if the following matrix is missing
  OP_POOL,        // the mean of n x n patches
  OP_LAYER_NORM,  // NAME.weight, NAME.bias
  OP_RMS_NORM,    // NAME.weight
  OP_UNIT_NORM,   // RMS norm without a weight, or with NAME.weight
  OP_LINEAR,      // NAME.weight, NAME.bias
  OP_LINEAR_TURNED,  // like OP_LINEAR, stored as [in][out]
  OP_ACTIVATION,
  OP_ROOT_OF_WIDTH,  // times sqrt(width)
  OP_STANDARDISE,    // (x - v.std_bias) * v.std_scale, if the file has them
  OP_STACK,          // k rows joined; an incomplete group is dropped
  OP_MEAN_OF_TWO,    // rows 2i and 2i + 1
  OP_SWIGLU,         // halves A, B: A silu(B)
  OP_GATED           // NAME.gate, NAME.up, NAME.down
} media_op;

typedef struct media_step {
  media_op op;
  const char *name;
  bool is_optional;
  bool is_unpublished;  // skipped unless following llama.cpp
  float epsilon;        // of a norm; 0: use the file's value
  media_activation activation;
} media_step;

// Rows of a list of steps, which ends with STEPS_END.
#define STEP(kind) {.op = OP_##kind}
#define STEP_LINEAR(tensor) {.op = OP_LINEAR, .name = (tensor)}
#define STEP_LAYER_NORM(tensor, least) {.op = OP_LAYER_NORM, .name = (tensor), .epsilon = (least)}
// A matrix, a function and another matrix.
#define STEPS_MLP(first, function, second)                                        \
  STEP_LINEAR(first), {.op = OP_ACTIVATION, .activation = ACTIVATION_##function}, \
      STEP_LINEAR(second)
#define STEPS_END {.op = OP_END}

typedef struct vision_kind {
  const char *name;  // value of clip.projector_type
  vision_sizing sizing;
  image_filter filter;
  vision_positions positions;
  vision_rotary rotary;
  bool has_rms_norms;
  bool norms_values;    // RMS norm on each head of the values
  bool has_unit_scale;  // attention scale 1 instead of 1 / sqrt(head width)
  bool may_swap;        // in old files, ffn_up and ffn_down are swapped
  bool has_windows;     // in some layers, patches attend within a window
  bool leaves_last;     // the last layer is not run unless the file specifies which layers are used
  bool drops_first_row;  // drops the first row instead of the class row
  bool stretches;        // SIZING_SQUARE, as published: does not keep the image's aspect ratio
  bool has_fixed_merge;  // ignores the file's merge size
  uint32_t merge;        // patches per side of an output row, unless the file specifies it
  uint32_t blocks_min, blocks_max;  // SIZING_SMART: in squares of merged patches; 0: no limit
  const media_step *steps;
  const char *before, *after;  // markers in the prompt, or NULL
} vision_kind;

// Returns the encoder with this name, or NULL for an unknown type.
const vision_kind *vision_kind_find(gguf_string name);

#endif
