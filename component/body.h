// component/body.h — a request's body: a JSON object that is parsed once, and functions that read
// its fields.
#ifndef WICK_COMPONENT_BODY_H
#define WICK_COMPONENT_BODY_H

#include "buffer.h"
#include "grammar/document.h"
#include "refusal.h"

enum { BODY_ROOT = 1 };

// Strings of the body's fields are valid until body_end.
typedef struct body {
  const char *bytes;  // terminated
  memory_gate memory;
  grammar_work work;
  json_document document;
} body;

// Parses a body. bytes [size_bytes] must be terminated and outlive the body. Returns false if they
// are not a JSON object. body_end must be called in any case.
bool body_read(body *read, const char *bytes, size_t size_bytes, refusal *refused);
// Parses JSON of any size that the server has written, as body_read does.
bool body_parse(body *read, const char *bytes, size_t size_bytes, refusal *refused);
// Checks that no field of the body has more than items_max items. Processing items delays other
// requests. A list of numbers counts as one item, because it contains the tokens of one input.
bool body_check_lists(const body *read, uint32_t items_max, refusal *refused);
void body_end(body *read);
// Returns zeroed memory that is valid until body_end, or NULL and a refusal if memory is full.
void *body_alloc(body *read, size_t count, size_t item_bytes, refusal *refused);

static inline const json_node *body_node(const body *read, uint32_t node) {
  return document_node(&read->document, node);
}
// Loops over the items of an array or the members of an object.
#define BODY_EACH(read, item, list)                               \
  for (uint32_t item = body_node(read, list)->first; (item) != 0; \
       (item) = body_node(read, item)->next)
// Returns a member of an object; 0 if it is missing or null. A field of the body may also have
// another server's name (FIELD_ALIASES).
uint32_t body_find(const body *read, uint32_t object, const char *name);
static inline uint32_t body_field(const body *read, const char *name) {  // of the body
  return body_find(read, BODY_ROOT, name);
}
bool body_is_true(const body *read, uint32_t node);
static inline bool body_flag(const body *read, const char *name) {
  return body_is_true(read, body_field(read, name));
}
static inline bool body_is_text(const body *read, uint32_t node) {
  return body_node(read, node)->kind == JSON_STRING;
}
bool body_is(const body *read, uint32_t node, const char *text);  // whether the node is this string
// Returns the value of a number.
double body_number(const body *read, uint32_t node);
wick_text body_text(const body *read, uint32_t node);  // the text of a string
// Returns the JSON text of a node as written in the body.
wick_text body_source(const body *read, uint32_t node);
void body_put_source(const body *read, uint32_t node, buffer *out);

#endif
