// model/media.h — images and recordings in a prompt: rows of embeddings instead of token
// embeddings. A row has one position of a sequence, like a token, and a pseudo token that is a hash
// of its content. So all code that compares tokens (prefix cache, sessions, swap) also compares
// content.
#ifndef WICK_MODEL_MEDIA_H
#define WICK_MODEL_MEDIA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "model/weights.h"

// An encoded image or recording, as passed by the caller.
typedef struct media_rows {
  const float *rows;        // [count, width]
  uint32_t count, width;    // width: media_width
  uint32_t grid_x, grid_y;  // of an image, whose count is their product; 0: rows form a sequence
  bool is_image;            // its rows may attend to later rows, in models with such layers
  uint64_t key[2];          // a hash of everything that the rows depend on: content and encoder
} media_rows;

// The properties of rows, which are also stored in saved states.
typedef struct media_head {
  uint32_t count, width;
  uint32_t grid_x;     // 0: the rotary position increases by one per row on all axes
  uint32_t positions;  // how much the rotary position increases over the rows
  uint32_t sees_all;   // 1: rows attend in both directions, so they must be in one pass
  uint32_t zero;
  uint64_t key[2];
} media_head;
_Static_assert(sizeof(media_head) == 40, "no padding");

// A copy that requests and sessions share.
typedef struct media_span {
  uint32_t users;
  media_head is;
  float rows[];  // [count, width]
} media_span;
_Static_assert(offsetof(media_span, rows) == offsetof(media_span, is) + sizeof(media_head),
               "rows follow their head");

typedef struct media_place {
  media_span *span;
  uint32_t first;  // position of the span's first row
} media_place;

// The spans of a prompt, in order.
typedef struct media_list {
  media_place *places;
  uint32_t count;
} media_list;

// Returns the number of floats per row: the embedding, and one more embedding for each layer that
// adds one.
uint32_t media_width(const loaded_model *model);
// Returns the properties of the rows; does not read their values.
media_head media_head_of(const loaded_model *model, const media_rows *rows);
// Copies the rows. The caller becomes the first user. WICK_E_NOMEM, WICK_E_SHAPE if the grid does
// not match the rows, or an error of media_head_check. If values are not finite, the pass fails
// later.
wick_status media_span_create(memory_gate *memory, const loaded_model *model, uint32_t batch_tokens,
                              const media_rows *rows, media_span **out, wick_error *error);
// Checks rows. WICK_E_SHAPE: no rows, or rows of the wrong width; WICK_E_FULL: more rows than fit
// into a pass, for an image that must be processed in one pass.
wick_status media_head_check(const loaded_model *model, uint32_t batch_tokens,
                             const media_head *head, wick_error *error);
// Creates a span with room for the rows, without filling it. WICK_E_NOMEM.
wick_status media_span_make(memory_gate *memory, const media_head *head, media_span **out,
                            wick_error *error);
void media_span_release(memory_gate *memory, media_span *span);
uint64_t media_rows_bytes(const media_head *head);
// Returns the pseudo token of a row, which is negative.
int32_t media_token(const media_head *head, uint32_t row);

// Appends an entry for the span, and adds a user to the span. WICK_E_NOMEM.
wick_status media_list_add(memory_gate *memory, media_list *list, media_span *span, uint32_t first,
                           wick_error *error);
// Adds the entries of another list, moved by `offset` positions.
wick_status media_list_append(memory_gate *memory, media_list *list, const media_list *from,
                              uint32_t offset, wick_error *error);
// Keeps only the entries that begin before the position.
void media_list_cut(memory_gate *memory, media_list *list, uint32_t position);
void media_list_clear(memory_gate *memory, media_list *list);
// Returns the entry that contains the position, or NULL. *turned (may be NULL): the difference
// between the position and the rotary position, which is lower because a grid of many rows takes
// few rotary positions.
const media_place *media_list_find(const media_list *list, uint32_t position, uint32_t *turned);

static inline uint32_t media_end(const media_place *place) {
  return place->first + place->span->is.count;
}

#endif
