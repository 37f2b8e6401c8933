// model/media.h — images and recordings in a text: rows of embeddings in place of those of tokens.
// A row takes one position of a sequence, as a token does, and has a pseudo token that is a
// hash of its content. So whatever compares tokens (prefix cache, sessions, swap) compares contents
// too.
#ifndef WICK_MODEL_MEDIA_H
#define WICK_MODEL_MEDIA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "model/weights.h"

// An encoded image or recording, as a caller gives it.
typedef struct media_rows {
  const float *rows;        // [count, width]
  uint32_t count, width;    // width: media_width
  uint32_t grid_x, grid_y;  // of an image, where count is their product; 0: rows follow each other
  bool is_image;            // its rows may see later ones, where the model's layers do that
  uint64_t key[2];          // a hash of all that the rows depend on: content and encoder
} media_rows;

// The properties of rows, as they are saved, too.
typedef struct media_head {
  uint32_t count, width;
  uint32_t grid_x;     // 0: the rotary position grows by one a row, on all axes
  uint32_t positions;  // by how much it is greater after the rows
  uint32_t sees_all;   // 1: they see each other, before and after, and must be in one pass
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
  uint32_t first;  // position of its first row
} media_place;

// The spans of a text, in order.
typedef struct media_list {
  media_place *places;
  uint32_t count;
} media_list;

// Floats of a row: the embedding, and one more for each of the layers that add one.
uint32_t media_width(const loaded_model *model);
// The properties of the rows; their values are not read.
media_head media_head_of(const loaded_model *model, const media_rows *rows);
// Copies the rows. The caller is its first user. WICK_E_SHAPE, too, for a grid that is not that of
// the rows; WICK_E_NOMEM. Values that are not finite end a pass. Else as media_head_check.
wick_status media_span_create(memory_gate *memory, const loaded_model *model, uint32_t batch_tokens,
                              const media_rows *rows, media_span **out, wick_error *error);
// WICK_E_SHAPE: no rows, or of another width; WICK_E_FULL: more than a pass holds, of an image that
// is read in one.
wick_status media_head_check(const loaded_model *model, uint32_t batch_tokens,
                             const media_head *head, wick_error *error);
// With room for the rows, which are not filled in. WICK_E_NOMEM.
wick_status media_span_make(memory_gate *memory, const media_head *head, media_span **out,
                            wick_error *error);
void media_span_release(memory_gate *memory, media_span *span);
uint64_t media_rows_bytes(const media_head *head);
// The pseudo token of a row: below 0.
int32_t media_token(const media_head *head, uint32_t row);

// One more user of the span, whose place follows all others. WICK_E_NOMEM.
wick_status media_list_add(memory_gate *memory, media_list *list, media_span *span, uint32_t first,
                           wick_error *error);
// Adds the places of another list, `offset` positions further.
wick_status media_list_append(memory_gate *memory, media_list *list, const media_list *from,
                              uint32_t offset, wick_error *error);
// Keeps the places that begin before the position.
void media_list_cut(memory_gate *memory, media_list *list, uint32_t position);
void media_list_clear(memory_gate *memory, media_list *list);
// The place that has the position, or NULL. *turned (may be NULL): by how much a rotary position is
// less than the position, since grids of many rows have few.
const media_place *media_list_find(const media_list *list, uint32_t position, uint32_t *turned);

static inline uint32_t media_end(const media_place *place) {
  return place->first + place->span->is.count;
}

#endif
