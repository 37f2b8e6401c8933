// grammar/document.h — a JSON document (RFC 8259), parsed once into a tree, for schemas.
#ifndef WICK_GRAMMAR_DOCUMENT_H
#define WICK_GRAMMAR_DOCUMENT_H

#include "grammar/work.h"

typedef enum json_kind {
  JSON_NULL,
  JSON_FALSE,
  JSON_TRUE,
  JSON_NUMBER,
  JSON_STRING,
  JSON_ARRAY,
  JSON_OBJECT
} json_kind;

typedef struct document_text {
  const uint8_t *bytes;
  uint32_t size_bytes;
} document_text;

// Nodes are numbered. 0 means no node, and behaves like null without members; 1 is the root.
typedef struct json_node {
  json_kind kind;
  uint32_t parent, first, next, count;  // children, and the next child of the same parent
  uint32_t index;                       // among its siblings
  size_t at, end;                       // in the source
  document_text key;                    // the decoded key of a member
  document_text text;                   // a decoded string, or the original text of a number
} json_node;

typedef struct json_document {
  struct {
    json_node *items;
    uint32_t count, capacity;
  } nodes;
  uint32_t *slots, slot_mask;  // hash table of members by object and name: a node, or 0
} json_document;

// Parses a document. WICK_E_ARG if it is invalid, with the position; WICK_E_FULL if it is nested
// too deeply. If several members have the same name, the last one counts, as in JSON.parse.
bool document_read(grammar_work *work, const uint8_t *source, size_t size_bytes,
                   json_document *out);

static inline const json_node *document_node(const json_document *document, uint32_t node) {
  return &document->nodes.items[node];
}
bool text_is(document_text text, const char *wanted);
bool text_is_same(document_text a, document_text b);
// Returns a member of an object; 0 if the object has no such member, or if the node is not an
// object.
uint32_t document_member(const json_document *document, uint32_t node, document_text name);
uint32_t document_find(const json_document *document, uint32_t node, const char *name);

#endif
