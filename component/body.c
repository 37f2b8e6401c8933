// component/body.c — parses a request's body as JSON.
#include "body.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "platform/platform.h"

// The same limit as in js/handler/request_body.js.
enum { NODES_MAX = 50000 };

static bool check_nodes(const body *read, refusal *refused) {
  uint32_t count = 0;
  for (uint32_t node = BODY_ROOT; node < read->document.nodes.count; node++) {
    const json_kind kind = body_node(read, node)->kind;
    count += kind == JSON_OBJECT || kind == JSON_ARRAY;
  }
  if (count <= NODES_MAX) return true;
  return refuse(refused, REFUSE_BODY_VALUES(NULL), (unsigned)NODES_MAX);
}

bool body_parse(body *read, const char *bytes, size_t size_bytes, refusal *refused) {
  memset(read, 0, sizeof *read);
  read->bytes = bytes;
  memory_init(&read->memory, 0, platform_alloc, platform_free);
  work_begin(&read->work, &read->memory);
  if (document_read(&read->work, (const uint8_t *)bytes, size_bytes, &read->document)) return true;
  const char *message = read->work.error.message;
  if (read->work.status == WICK_E_NOMEM) {
    return refuse(refused, 503, "nomem", NULL, "%s", message);
  }
  return refuse(refused, 400, "invalid_json", NULL, "The body is not JSON: %s", message);
}

bool body_read(body *read, const char *bytes, size_t size_bytes, refusal *refused) {
  if (!body_parse(read, bytes, size_bytes, refused)) return false;
  if (!check_nodes(read, refused)) return false;
  if (body_node(read, BODY_ROOT)->kind == JSON_OBJECT) return true;
  return refuse(refused, 400, "invalid_json", NULL, "The body must be a JSON object");
}

// Whether a list contains token ids, judging by its first item.
static bool are_tokens(const body *read, uint32_t node) {
  const uint32_t first = body_node(read, node)->first;
  return body_node(read, node)->kind == JSON_ARRAY && body_node(read, first)->kind == JSON_NUMBER;
}

bool body_check_lists(const body *read, uint32_t items_max, refusal *refused) {
  BODY_EACH(read, node, BODY_ROOT) {
    const json_node *list = body_node(read, node);
    if (list->kind != JSON_ARRAY || list->count <= items_max) continue;
    if (are_tokens(read, node)) continue;
    char name[REFUSAL_PARAM_BYTES];
    const int shown = list->key.size_bytes < 60 ? (int)list->key.size_bytes : 60;
    snprintf(name, sizeof name, "%.*s", shown, (const char *)list->key.bytes);
    return refuse(refused, REFUSE_LONG_LIST(name), name, (unsigned)items_max,
                  (unsigned)list->count);
  }
  return true;
}

void body_end(body *read) { work_end(&read->work); }

void *body_alloc(body *read, size_t count, size_t item_bytes, refusal *refused) {
  void *block = work_alloc(&read->work, count, item_bytes);
  if (block == NULL) refuse(refused, 503, "nomem", NULL, "%s", read->work.error.message);
  return block;
}

static uint32_t find_value(const body *read, uint32_t object, const char *name) {
  const uint32_t node = document_find(&read->document, object, name);
  return node == 0 || body_node(read, node)->kind == JSON_NULL ? 0 : node;
}

uint32_t body_find(const body *read, uint32_t object, const char *name) {
  uint32_t node = find_value(read, object, name);
  if (node != 0 || object != BODY_ROOT) return node;
#define OTHER_NAME(other, own) \
  if (node == 0 && strcmp(name, own) == 0) node = find_value(read, object, other);
  FIELD_ALIASES(OTHER_NAME)
#undef OTHER_NAME
  return node;
}

bool body_is_true(const body *read, uint32_t node) {
  return body_node(read, node)->kind == JSON_TRUE;
}

bool body_is(const body *read, uint32_t node, const char *text) {
  const json_node *found = body_node(read, node);
  return found->kind == JSON_STRING && text_is(found->text, text);
}

// Parses with strtod, because a JSON number is followed by a byte that ends strtod's parsing.
double body_number(const body *read, uint32_t node) {
  return strtod(read->bytes + body_node(read, node)->at, NULL);
}

wick_text body_text(const body *read, uint32_t node) {
  const document_text text = body_node(read, node)->text;
  return (wick_text){(const char *)text.bytes, text.size_bytes};
}

wick_text body_source(const body *read, uint32_t node) {
  const json_node *found = body_node(read, node);
  return (wick_text){read->bytes + found->at, found->end - found->at};
}

void body_put_source(const body *read, uint32_t node, buffer *out) {
  const wick_text source = body_source(read, node);
  buffer_put(out, source.bytes, source.size_bytes);
}
