// component/prompts.c — see prompts.h.
#include "prompts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"

static bool refuse_text(const char *name, refusal *refused) {
  return refuse_value(refused, name, WORDS_PROMPT);
}

static bool refuse_memory(refusal *refused) {
  return refuse(refused, 503, "nomem", NULL, "The prompt does not fit in memory");
}

// ---- tokens ----

bool prompts_tokenize(wick_engine *engine, body *read, wick_text text, uint32_t flags,
                      const int32_t **tokens, size_t *count, refusal *refused) {
  enum { SPECIAL_MAX = 8 };
  wick_error error;
  wick_status status = WICK_E_FULL;
  *tokens = NULL;
  *count = 0;
  // normalization may give a text more tokens than bytes
  for (size_t room = text.size_bytes + SPECIAL_MAX; status == WICK_E_FULL; room = *count) {
    int32_t *ids = body_alloc(read, room, sizeof *ids, refused);
    if (ids == NULL) return false;
    status = wick_tokenize(engine, text.bytes, text.size_bytes, flags, ids, room, count, &error);
    if (*count > 0) *tokens = ids;
  }
  return status == WICK_OK || refuse_error(refused, &error, "prompt", NULL);
}

bool prompts_put_text(wick_engine *engine, const int32_t *tokens, size_t count, buffer *out,
                      refusal *refused) {
  wick_error error;
  size_t size_bytes;
  char *text = malloc(wick_detokenize_bytes_max(engine, count));
  if (text == NULL) return refuse_memory(refused);
  const wick_status status =
      wick_detokenize(engine, tokens, count, true, true, text, &size_bytes, &error);
  if (status == WICK_OK) buffer_put(out, text, size_bytes);
  free(text);
  return status == WICK_OK || refuse_error(refused, &error, "prompt", NULL);
}

bool prompts_put(wick_engine *engine, const prompt *one, buffer *out, refusal *refused) {
  if (one->tokens != NULL) {
    return prompts_put_text(engine, one->tokens, one->token_count, out, refused);
  }
  buffer_put(out, one->text.bytes, one->text.size_bytes);
  return true;
}

// ---- mixes of strings and token ids ----

static bool take_id(const body *read, uint32_t node, int32_t *id) {
  const double value = body_node(read, node)->kind == JSON_NUMBER ? body_number(read, node) : 0.5;
  if (value != floor(value) || fabs(value) > INT32_MAX) return false;
  *id = (int32_t)value;
  return true;
}

// Returns whether an array contains at least one token id.
static bool has_id(const body *read, uint32_t list) {
  uint32_t item = body_node(read, list)->kind == JSON_ARRAY ? body_node(read, list)->first : 0;
  while (item != 0 && body_node(read, item)->kind != JSON_NUMBER) {
    item = body_node(read, item)->next;
  }
  return item != 0;
}

// Writes the tokens of an item to `ids` [capacity]. With a capacity of 0, only counts them.
static bool add_item(wick_engine *engine, const body *read, uint32_t item, const char *name,
                     int32_t *ids, size_t capacity, size_t *count, refusal *refused) {
  wick_error error;
  uint32_t flags = WICK_TOKENIZE_PARSE_SPECIAL;
  if (body_node(read, item)->kind != JSON_STRING) {
    int32_t id;
    if (!take_id(read, item, &id)) return refuse_text(name, refused);
    if (capacity > 0) ids[0] = id;
    *count = 1;
    return true;
  }
  const wick_text text = body_text(read, item);
  // a text at the beginning gets the special tokens that the model adds
  if (body_node(read, item)->index == 0) flags |= (uint32_t)WICK_TOKENIZE_ADD_SPECIAL;
  const wick_status status =
      wick_tokenize(engine, text.bytes, text.size_bytes, flags, ids, capacity, count, &error);
  return status == WICK_OK || (status == WICK_E_FULL && capacity == 0) ||
         refuse_error(refused, &error, name, NULL);
}

static bool take_mix(wick_engine *engine, body *read, uint32_t list, const char *name, prompt *out,
                     refusal *refused) {
  size_t capacity = 0, count = 0;
  const uint32_t first = body_node(read, list)->first;
  for (uint32_t item = first; item != 0; item = body_node(read, item)->next) {
    if (!add_item(engine, read, item, name, NULL, 0, &count, refused)) return false;
    capacity += count;
  }
  int32_t *ids = body_alloc(read, capacity, sizeof *ids, refused);
  if (ids == NULL) return false;
  *out = (prompt){.tokens = ids};
  for (uint32_t item = first; item != 0; item = body_node(read, item)->next) {
    if (!add_item(engine, read, item, name, ids + out->token_count, capacity - out->token_count,
                  &count, refused)) {
      return false;
    }
    out->token_count += count;
  }
  return true;
}

// ---- objects with a text ----

// Joins the text parts of a message's content.
static bool take_content(body *read, uint32_t content, const char *name, prompt *out,
                         refusal *refused) {
  size_t size_bytes = 0;
  for (uint32_t part = body_node(read, content)->first; part != 0;
       part = body_node(read, part)->next) {
    const uint32_t text = body_find(read, part, "text");
    if (!body_is(read, body_find(read, part, "type"), "text") ||
        body_node(read, text)->kind != JSON_STRING) {
      return refuse_text(name, refused);
    }
    size_bytes += body_text(read, text).size_bytes;
  }
  char *joined = body_alloc(read, size_bytes + 1, 1, refused);
  if (joined == NULL) return false;
  out->text = (wick_text){joined, size_bytes};
  for (uint32_t part = body_node(read, content)->first; part != 0;
       part = body_node(read, part)->next) {
    const wick_text text = body_text(read, body_find(read, part, "text"));
    memcpy(joined, text.bytes, text.size_bytes);
    joined += text.size_bytes;
  }
  return true;
}

static bool take_object(body *read, uint32_t node, const char *name, prompt *out,
                        refusal *refused) {
  const uint32_t text = body_find(read, node, "prompt_string");
  const uint32_t media = body_find(read, node, "multimodal_data");
  const uint32_t content = body_find(read, node, "content");
  if (strcmp(name, "input") == 0 && body_node(read, content)->kind == JSON_ARRAY) {
    return take_content(read, content, name, out, refused);
  }
  if (body_node(read, text)->kind != JSON_STRING) return refuse_text(name, refused);
  out->text = body_text(read, text);
  if (media == 0 ||
      (body_node(read, media)->kind == JSON_ARRAY && body_node(read, media)->count == 0)) {
    return true;
  }
  char at[REFUSAL_PARAM_BYTES];
  snprintf(at, sizeof at, "%s.multimodal_data", name);
  return refuse(refused, 400, "unsupported_parameter", at, "%s: images are not supported", at);
}

// ---- texts ----

static bool is_one(const body *read, uint32_t node) {
  const json_kind kind = body_node(read, node)->kind;
  return kind == JSON_STRING || kind == JSON_OBJECT || has_id(read, node);
}

static bool take_one(wick_engine *engine, body *read, uint32_t node, const char *name, prompt *out,
                     refusal *refused) {
  const json_kind kind = body_node(read, node)->kind;
  if (kind == JSON_OBJECT) return take_object(read, node, name, out, refused);
  if (kind != JSON_STRING && !has_id(read, node)) return refuse_text(name, refused);
  if (kind != JSON_STRING) return take_mix(engine, read, node, name, out, refused);
  out->text = body_text(read, node);
  return true;
}

bool prompts_take(wick_engine *engine, body *read, uint32_t node, const char *name,
                  prompt **prompts, uint32_t *count, refusal *refused) {
  const bool is_only = is_one(read, node);
  const json_node *list = body_node(read, node);
  if (!is_only && (list->kind != JSON_ARRAY || list->count == 0)) {
    return refuse_text(name, refused);
  }
  *count = is_only ? 1 : list->count;
  *prompts = body_alloc(read, *count, sizeof **prompts, refused);
  if (*prompts == NULL) return false;
  if (is_only) return take_one(engine, read, node, name, *prompts, refused);
  prompt *to = *prompts;
  for (uint32_t item = list->first; item != 0; item = body_node(read, item)->next) {
    if (!take_one(engine, read, item, name, to++, refused)) return false;
  }
  return true;
}
