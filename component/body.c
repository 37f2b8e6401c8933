// component/body.c — a request's body, read as JSON.
#include "body.h"

#include <stdlib.h>
#include <string.h>

#include "platform/platform.h"

bool body_read(body *read, const char *bytes, size_t size_bytes, refusal *refused) {
  memset(read, 0, sizeof *read);
  read->bytes = bytes;
  memory_init(&read->memory, 0, platform_alloc, platform_free);
  work_begin(&read->work, &read->memory);
  if (!document_read(&read->work, (const uint8_t *)bytes, size_bytes, &read->document)) {
    if (read->work.status == WICK_E_NOMEM) {
      return refuse(refused, 503, "nomem", NULL, "%s", read->work.error.message);
    }
    return refuse(refused, 400, "invalid_json", NULL, "The body is not JSON: %s",
                  read->work.error.message);
  }
  if (body_node(read, BODY_ROOT)->kind == JSON_OBJECT) return true;
  return refuse(refused, 400, "invalid_json", NULL, "The body must be a JSON object");
}

void body_end(body *read) { work_end(&read->work); }

void *body_alloc(body *read, size_t count, size_t item_bytes, refusal *refused) {
  void *block = work_alloc(&read->work, count, item_bytes);
  if (block == NULL) refuse(refused, 503, "nomem", NULL, "%s", read->work.error.message);
  return block;
}

uint32_t body_find(const body *read, uint32_t object, const char *name) {
  const uint32_t node = document_find(&read->document, object, name);
  return node == 0 || body_node(read, node)->kind == JSON_NULL ? 0 : node;
}

bool body_is_true(const body *read, uint32_t node) {
  return body_node(read, node)->kind == JSON_TRUE;
}

bool body_is(const body *read, uint32_t node, const char *text) {
  const json_node *found = body_node(read, node);
  return found->kind == JSON_STRING && text_is(found->text, text);
}

// A number of JSON ends before a byte that strtod does not read.
double body_number(const body *read, uint32_t node) {
  return strtod(read->bytes + body_node(read, node)->at, NULL);
}

wick_text body_source(const body *read, uint32_t node) {
  const json_node *found = body_node(read, node);
  return (wick_text){read->bytes + found->at, found->end - found->at};
}
