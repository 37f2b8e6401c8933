// media/layout.h — determines how an image is resized and cut into tiles for an encoder, based only
// on its size.
#ifndef WICK_MEDIA_LAYOUT_H
#define WICK_MEDIA_LAYOUT_H

#include "media/image.h"
#include "media/kinds.h"

enum { LAYOUT_TILES_MAX = 1024, LAYOUT_PINPOINTS_MAX = 256 };

// The settings in a file.
typedef struct layout_settings {
  const vision_kind *kind;
  uint32_t image_size, patch, merge;
  uint32_t longest;                 // edge in pixels; 0: not in the file
  uint32_t tiles_min, tiles_max;    // SIZING_CANDIDATES
  uint32_t pixels_min, pixels_max;  // SIZING_SMART; 0: no limit
  uint32_t pinpoints[LAYOUT_PINPOINTS_MAX][2];
  uint32_t pinpoint_count;
  uint32_t pictures_max;  // encoded tiles, including the overview; 0: no limit
  bool pads;  // pads Gemma 3's images and LFM2's tiles, like llama.cpp; otherwise they are
              // stretched
} layout_settings;

typedef struct image_layout {
  uint32_t columns, rows;  // of tiles; 0: only the overview
  image_frame tiles;       // of the image that is cut into tiles
  image_frame overview;
  bool overview_is_of_tiles;  // computed from the image that is cut into tiles
} image_layout;

// Plans the layout of an image of any size. WICK_E_ARG if it would have more than LAYOUT_TILES_MAX
// tiles or more than IMAGE_PIXELS_MAX pixels.
wick_status layout_plan(const layout_settings *settings, uint32_t width, uint32_t height,
                        image_layout *out, wick_error *error);

#endif
