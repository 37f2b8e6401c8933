// api/media_strips.h — adds a large image in parts, between steps of requests, so that these need
// not wait for resizing. Internal: wick_media_add_image takes whole images.
#ifndef WICK_API_MEDIA_STRIPS_H
#define WICK_API_MEDIA_STRIPS_H

#include "wick.h"

// Like wick_media_add_image, but the image's rows are fed afterwards. wick_media_step fails with
// WICK_E_NODATA until all rows have been fed. Each image gets a new number; content that is already
// stored is not encoded again.
wick_status engine_media_begin_image(wick_engine *engine, uint32_t width, uint32_t height,
                                     uint32_t *media, wick_error *error);
// Feeds the next rows, rgb[rows][width][3]. WICK_E_ARG (unknown number, more rows than are left),
// WICK_E_NOMEM, after which the image can only be removed.
wick_status engine_media_feed_image(wick_engine *engine, uint32_t media, const uint8_t *rgb,
                                    uint32_t rows, wick_error *error);

#endif
