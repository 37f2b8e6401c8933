// media/image.h — images as 8-bit RGB: resampling that matches Pillow byte for byte, and fitting
// into a frame. It uses integer arithmetic, so every host computes the same bytes.
#ifndef WICK_MEDIA_IMAGE_H
#define WICK_MEDIA_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

// Limits of an input image: each side, and the number of pixels.
enum { IMAGE_SIDE_MAX = 1 << 16, IMAGE_PIXELS_MAX = 1 << 28 };

typedef enum image_filter { IMAGE_BILINEAR, IMAGE_BICUBIC, IMAGE_LANCZOS } image_filter;

typedef struct image_view {
  const uint8_t *rgb;  // [height][width][3], rows stride_bytes apart
  uint32_t width, height;
  size_t stride_bytes;
} image_view;

// The size and position of an image that is computed from another image.
typedef struct image_frame {
  uint32_t width, height;
  uint32_t via_width, via_height;  // not 0: resampled to this size first
  image_filter filter;
  bool keeps_aspect;  // fills the rest with `colour`; otherwise stretches
  uint8_t colour[3];
} image_frame;

static inline image_view image_whole(const uint8_t *rgb, uint32_t width, uint32_t height) {
  return (image_view){rgb, width, height, (size_t)width * 3};
}
// Fails with WICK_E_ARG unless the image has pixels and is within the limits.
wick_status image_check(uint32_t width, uint32_t height, wick_error *error);

// An image is resampled in passes of 8 bits, the horizontal pass first. An image that already has
// the right size is copied.
typedef struct image_fitting image_fitting;
// Returns the number of bytes of temporary memory that fitting an image of this size needs.
uint64_t image_fit_bytes(uint32_t width, uint32_t height, const image_frame *frame);
// Begins to resample an image of this size into out[frame.height][frame.width][3], which must stay
// valid until the end. WICK_E_NOMEM.
wick_status image_fit_begin(memory_gate *memory, uint32_t width, uint32_t height,
                            const image_frame *frame, uint8_t *out, image_fitting **fitting,
                            wick_error *error);
// Resamples the next rows of the image; `rows` must not exceed the rows that are left.
// WICK_E_NOMEM.
wick_status image_fit_feed(image_fitting *fitting, const uint8_t *rgb, size_t stride_bytes,
                           uint32_t rows, wick_error *error);
uint32_t image_fit_rows_left(const image_fitting *fitting);
// Computes whole rows, with about macs_max multiply-adds, after the image's last row has been fed.
// WICK_E_NOMEM.
wick_status image_fit_step(image_fitting *fitting, uint64_t macs_max, bool *is_done,
                           wick_error *error);
void image_fit_end(image_fitting *fitting);  // NULL is allowed; cancels unfinished work

#endif
