// api/media_items.h — images and recordings of an engine, which are planned, then encoded into rows
// that requests share. Internal to media.c and media_prompt.c.
#ifndef WICK_API_MEDIA_ITEMS_H
#define WICK_API_MEDIA_ITEMS_H

#include "api/insides.h"
#include "media/media.h"
#include "media/prompt.h"

typedef struct media_item {
  uint32_t id;
  uint32_t users;  // calls of wick_media_add_* minus calls of wick_media_remove
  media_kind kind;
  uint64_t key;   // hash of the content; for an image, of the rows that have been fed
  uint64_t turn;  // number of its last use
  media_plan plan;
  uint32_t width, height,
      fed;           // for an image: its size in pixels, and the number of rows that have been fed
  uint8_t *pixels;   // for an image that is not resized yet: [height][width][3]
  uint32_t resized;  // number of resized rows of `pixels`
  media_prepared prepared;   // until it is encoded
  float *samples;            // for a recording, until it is prepared
  bool is_prepared;          // the image is resized, or everything that the spectra need is known
  media_encoding *encoding;  // encoding of chunk `done`, or NULL
  uint32_t done;             // number of finished chunks of the plan
  media_head *heads;         // [plan.count], for chunks that are rows
  media_span **spans;        // [plan.count]; NULL until they are encoded
  int32_t *tokens;           // [token_count], including those of rows
  uint32_t token_count;
} media_item;

typedef struct media_items {
  engine_media base;
  media_text text;
  media_model *encoders[2];  // by media_kind; NULL: the file has none
  media_item **list;
  uint32_t count;
  uint32_t last_id;
  uint64_t turns;
  int32_t *prompt;  // the result of the last wick_media_tokenize
} media_items;

// `base` must be the first member because of this cast.
static inline media_items *items_of(const wick_engine *engine) {
  return (media_items *)(void *)engine->media;
}
static inline bool media_item_is_ready(const media_item *item) {
  return item->done == item->plan.count;
}
media_item *media_item_find(const wick_engine *engine, uint32_t id);  // NULL: unknown
// Sets item->heads, tokens and token_count from its plan and key. WICK_E_NOMEM, WICK_E_UNSUPPORTED
// (a delimiter is not in the vocabulary), WICK_E_FULL.
wick_status media_item_make_tokens(const wick_engine *engine, media_item *item, wick_error *error);
// Sets the key of an item with complete content, and the tokens of its rows, which are derived from
// the key.
void media_item_set_key(const wick_engine *engine, media_item *item, uint64_t key);
// Implements engine_media.find.
wick_status media_items_find_rows(wick_engine *engine, const wick_request *request, media_list *out,
                                  wick_error *error);

#endif
