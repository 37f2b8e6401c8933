// api/parts.h — a prompt of text, images and recordings. Internal: the public interface will take
// the same parts.
#ifndef WICK_API_PARTS_H
#define WICK_API_PARTS_H

#include "model/media.h"
#include "wick.h"

typedef struct prompt_part {
  const int32_t *tokens;  // text: [token_count]
  size_t token_count;
  const media_rows *media;  // if not NULL: an image or recording, without tokens
} prompt_part;

// Returns the number of floats in a row of an image or recording; 0 before the model's directory is
// complete.
uint32_t engine_media_width(const wick_engine *engine);
// Submits a request like wick_request_submit, but with the parts as its prompt; `request` has
// neither text nor tokens. The parts are copied. on_logits is called only for text positions.
// Returns the errors of wick_request_submit and media_span_create; WICK_E_ARG if there is a second
// prompt; WICK_E_FULL for an image that the model must process in one batch and that is longer than
// a batch.
wick_status engine_submit_parts(wick_engine *engine, const wick_request *request,
                                const prompt_part *parts, size_t count, uint32_t *id,
                                wick_error *error);

#endif
