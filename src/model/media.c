// model/media.c — see media.h.
#include "model/media.h"

#include <string.h>

#include "base/hash.h"
#include "model/pass.h"

static const char WHAT[] = "an image or recording";

uint32_t media_width(const loaded_model *model) {
  return (1 + model->config.deepstack_layers) * model->config.hidden;
}

// ---- Spans ----

uint64_t media_rows_bytes(const media_head *head) {
  return (uint64_t)head->count * head->width * sizeof(float);
}

wick_status media_head_check(const loaded_model *model, uint32_t batch_tokens,
                             const media_head *head, wick_error *error) {
  const uint32_t width = media_width(model);
  if (head->count == 0 || head->width != width) {
    return fail_with(error, WICK_E_SHAPE, WICK_NO_OFFSET,
                     "%u media rows of %u values, but the text model takes %u", head->count,
                     head->width, width);
  }
  if (head->sees_all == 0 || head->count <= batch_tokens) return WICK_OK;
  fail_with(error, WICK_E_FULL, WICK_NO_OFFSET,
            "an image of %u tokens must fit in one batch, but the limit is %u (batchTokens)",
            head->count, batch_tokens);
  return status_about(WICK_E_FULL, error, WICK_SUBJECT_BATCH, head->count, batch_tokens);
}

wick_status media_span_make(memory_gate *memory, const media_head *head, media_span **out,
                            wick_error *error) {
  const uint64_t bytes = media_rows_bytes(head);
  *out = bytes > SIZE_MAX / 2 ? NULL : memory_alloc(memory, sizeof **out + (size_t)bytes);
  if (*out == NULL) return memory_fail(memory, error, WHAT);
  (*out)->users = 1;
  (*out)->is = *head;
  return WICK_OK;
}

media_head media_head_of(const loaded_model *model, const media_rows *rows) {
  const uint32_t side = rows->grid_x > rows->grid_y ? rows->grid_x : rows->grid_y;
  const bool is_grid = model->has_axes && rows->grid_x != 0 && rows->grid_y != 0;
  return (media_head){.count = rows->count,
                      .width = rows->width,
                      .grid_x = is_grid ? rows->grid_x : 0,
                      .positions = is_grid ? side : rows->count,
                      .sees_all = rows->is_image && model->media_sees_all,
                      .key = {rows->key[0], rows->key[1]}};
}

wick_status media_span_create(memory_gate *memory, const loaded_model *model, uint32_t batch_tokens,
                              const media_rows *rows, media_span **out, wick_error *error) {
  const uint64_t grid = (uint64_t)rows->grid_x * rows->grid_y;
  const media_head head = media_head_of(model, rows);
  *out = NULL;
  wick_status status = media_head_check(model, batch_tokens, &head, error);
  if (status == WICK_OK && grid != 0 && grid != rows->count) {
    status = fail_with(error, WICK_E_SHAPE, WICK_NO_OFFSET,
                       "%u media rows do not form a grid of %u by %u", rows->count, rows->grid_x,
                       rows->grid_y);
  }
  if (status == WICK_OK) status = media_span_make(memory, &head, out, error);
  if (*out != NULL) memcpy((*out)->rows, rows->rows, (size_t)media_rows_bytes(&head));
  return status;
}

void media_span_release(memory_gate *memory, media_span *span) {
  if (span != NULL && --span->users == 0) memory_free(memory, span);
}

// Computes a row's token. Each token has 30 bits of a different hash, so five rows have more bits
// than the key.
int32_t media_token(const media_head *head, uint32_t row) {
  const uint64_t hash = hash_bytes(head, sizeof *head, row);
  return (int32_t)(0x80000000u | (uint32_t)(hash & 0x3fffffffu));
}

void input_rope_table(const model_rope *rope, const model_input *input, int32_t delta,
                      float *cos_sin) {
  const media_place *media = input->media;
  const int64_t at = (int64_t)input->position - input->turned + delta;
  int64_t axes[4] = {at, at, at, media == NULL ? 0 : at};
  if (media != NULL && media->span->is.grid_x != 0) {
    const uint32_t row = input->position - media->first, width = media->span->is.grid_x;
    axes[0] = at - row;
    axes[1] = axes[0] + row / width;
    axes[2] = axes[0] + row % width;
    axes[3] = 0;
  }
  rope_table(rope, axes, cos_sin);
}

// ---- Lists ----

wick_status media_list_add(memory_gate *memory, media_list *list, media_span *span, uint32_t first,
                           wick_error *error) {
  media_place *places =
      memory_resize_array(memory, list->places, list->count + 1, sizeof *list->places);
  if (places == NULL) return memory_fail(memory, error, WHAT);
  list->places = places;
  list->places[list->count++] = (media_place){span, first};
  span->users++;
  return WICK_OK;
}

wick_status media_list_append(memory_gate *memory, media_list *list, const media_list *from,
                              uint32_t offset, wick_error *error) {
  wick_status status = WICK_OK;
  for (uint32_t i = 0; i < from->count && status == WICK_OK; i++) {
    const media_place *place = &from->places[i];
    status = media_list_add(memory, list, place->span, place->first + offset, error);
  }
  return status;
}

void media_list_cut(memory_gate *memory, media_list *list, uint32_t position) {
  while (list->count != 0 && list->places[list->count - 1].first >= position) {
    media_span_release(memory, list->places[--list->count].span);
  }
}

void media_list_clear(memory_gate *memory, media_list *list) {
  media_list_cut(memory, list, 0);
  memory_free(memory, list->places);
  *list = (media_list){0};
}

const media_place *media_list_find(const media_list *list, uint32_t position, uint32_t *turned) {
  uint32_t less = 0;
  const media_place *found = NULL;
  for (uint32_t i = 0; i < list->count && list->places[i].first <= position; i++) {
    const media_place *place = &list->places[i];
    if (position < media_end(place)) {
      found = place;
    } else {
      less += place->span->is.count - place->span->is.positions;
    }
  }
  if (turned != NULL) *turned = less;
  return found;
}
