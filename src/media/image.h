// media/image.h — pictures as 8-bit RGB: resampling that equals Pillow's byte for byte, and fitting
// into a frame. It uses integer arithmetic, so every host computes the same bytes.
#ifndef WICK_MEDIA_IMAGE_H
#define WICK_MEDIA_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

// Limits of an input picture: each side, and all pixels.
enum { IMAGE_SIDE_MAX = 1 << 16, IMAGE_PIXELS_MAX = 1 << 28 };

typedef enum image_filter { IMAGE_BILINEAR, IMAGE_BICUBIC, IMAGE_LANCZOS } image_filter;

typedef struct image_view {
  const uint8_t *rgb;  // [height][width][3], rows stride_bytes apart
  uint32_t width, height;
  size_t stride_bytes;
} image_view;

// The size and position of a picture that is computed from another one.
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
// WICK_E_ARG unless the picture has pixels and is within the limits.
wick_status image_check(uint32_t width, uint32_t height, wick_error *error);

// A picture is resampled in passes of 8 bits, the horizontal one first. A picture that already has
// the size is copied.
typedef struct image_fitting image_fitting;
// Temporary memory in bytes for fitting a picture of a size.
uint64_t image_fit_bytes(uint32_t width, uint32_t height, const image_frame *frame);
// Begins to write out[frame.height][frame.width][3], which must stay valid until the end, from a
// picture of this size. WICK_E_NOMEM.
wick_status image_fit_begin(memory_gate *memory, uint32_t width, uint32_t height,
                            const image_frame *frame, uint8_t *out, image_fitting **fitting,
                            wick_error *error);
// Resamples the next rows of the picture, at most those that are left. WICK_E_NOMEM.
wick_status image_fit_feed(image_fitting *fitting, const uint8_t *rgb, size_t stride_bytes,
                           uint32_t rows, wick_error *error);
uint32_t image_fit_rows_left(const image_fitting *fitting);
// Computes whole rows of the picture, of about macs_max multiply-adds, after its last row has been
// fed. WICK_E_NOMEM.
wick_status image_fit_step(image_fitting *fitting, uint64_t macs_max, bool *is_done,
                           wick_error *error);
void image_fit_end(image_fitting *fitting);  // NULL is fine; cancels unfinished work

#endif
