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

// ---- tokens ----

// Makes room for this many more tokens.
static bool reserve(body *read, token_list *to, size_t count, refusal *refused) {
  if (to->ids != NULL && to->capacity - to->count >= count) return true;
  const size_t capacity = 2 * to->count + count;
  int32_t *ids = body_alloc(read, capacity, sizeof *ids, refused);
  if (ids == NULL) return false;
  if (to->ids != NULL) memcpy(ids, to->ids, to->count * sizeof *ids);
  to->ids = ids;
  to->capacity = capacity;
  return true;
}

bool prompts_add_text(wick_engine *engine, body *read, wick_text text, uint32_t flags,
                      token_list *to, refusal *refused) {
  enum { SPECIAL_MAX = 8 };
  wick_error error;
  size_t count = 0;
  wick_status status = WICK_E_FULL;
  // normalization may give a text more tokens than bytes
  for (size_t room = text.size_bytes + SPECIAL_MAX; status == WICK_E_FULL; room = count) {
    if (!reserve(read, to, room, refused)) return false;
    status = wick_tokenize(engine, text.bytes, text.size_bytes, flags, to->ids + to->count,
                           to->capacity - to->count, &count, &error);
  }
  to->count += status == WICK_OK ? count : 0;
  return status == WICK_OK || refuse_error(refused, &error, to->name, NULL);
}

bool prompts_add_id(body *read, int32_t id, token_list *to, refusal *refused) {
  if (!reserve(read, to, 1, refused)) return false;
  to->ids[to->count++] = id;
  return true;
}

bool prompts_tokenize(wick_engine *engine, body *read, wick_text text, uint32_t flags,
                      const int32_t **tokens, size_t *count, refusal *refused) {
  token_list list = {.name = "prompt"};
  const bool is_right = prompts_add_text(engine, read, text, flags, &list, refused);
  *tokens = list.count > 0 ? list.ids : NULL;
  *count = list.count;
  return is_right;
}

bool prompts_put_text(wick_engine *engine, const int32_t *tokens, size_t count, buffer *out,
                      refusal *refused) {
  wick_error error;
  size_t size_bytes;
  char *text = malloc(wick_detokenize_bytes_max(engine, count));
  if (text == NULL) {
    return refuse(refused, 503, "nomem", NULL, "The prompt does not fit in memory");
  }
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

static bool take_mix(wick_engine *engine, body *read, uint32_t list, const char *name, prompt *out,
                     refusal *refused) {
  token_list tokens = {.name = name};
  BODY_EACH(read, item, list) {
    int32_t id;
    // a text at the beginning gets the special tokens that the model adds
    const uint32_t adds = body_node(read, item)->index == 0 ? WICK_TOKENIZE_ADD_SPECIAL : 0u;
    const uint32_t flags = WICK_TOKENIZE_PARSE_SPECIAL | adds;
    if (body_is_text(read, item)) {
      if (!prompts_add_text(engine, read, body_text(read, item), flags, &tokens, refused)) {
        return false;
      }
    } else if (!take_id(read, item, &id)) {
      return refuse_text(name, refused);
    } else if (!prompts_add_id(read, id, &tokens, refused)) {
      return false;
    }
  }
  *out = (prompt){.tokens = tokens.ids, .token_count = tokens.count};
  return true;
}

// ---- objects with a text ----

// Joins the text parts of a message's content.
static bool take_content(body *read, uint32_t content, const char *name, prompt *out,
                         refusal *refused) {
  size_t size_bytes = 0;
  BODY_EACH(read, part, content) {
    const uint32_t text = body_find(read, part, "text");
    if (!body_is(read, body_find(read, part, "type"), "text") || !body_is_text(read, text)) {
      return refuse_text(name, refused);
    }
    size_bytes += body_text(read, text).size_bytes;
  }
  char *joined = body_alloc(read, size_bytes + 1, 1, refused);
  if (joined == NULL) return false;
  out->text = (wick_text){joined, size_bytes};
  BODY_EACH(read, part, content) {
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
  if (!body_is_text(read, text)) return refuse_text(name, refused);
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
