// grammar/said.c — the types that a schema states explicitly.
#include "grammar/said.h"

#include <string.h>

enum { SCHEMA_DEPTH_MAX = 12, SCHEMAS_MAX = 200 };

static uint32_t first_of(const json_document *document, uint32_t node) {
  return node == 0 ? 0 : document_node(document, node)->first;
}

typedef struct type_search {
  const json_document *document;
  uint32_t root;  // for local references
  uint32_t visits;
} type_search;

static uint32_t type_of_name(document_text name) {
  static const struct {
    const char *name;
    uint32_t type;
  } TYPES[] = {{"string", SAID_STRING},   {"integer", SAID_NUMBER}, {"number", SAID_NUMBER},
               {"boolean", SAID_BOOLEAN}, {"null", SAID_NULL},      {"array", SAID_ARRAY},
               {"object", SAID_OBJECT}};
  for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++) {
    if (text_is(name, TYPES[i].name)) return TYPES[i].type;
  }
  return 0;
}

static uint32_t type_of_value(const json_node *value) {
  switch (value->kind) {
    case JSON_STRING:
      return SAID_STRING;
    case JSON_NUMBER:
      return SAID_NUMBER;
    case JSON_NULL:
      return SAID_NULL;
    case JSON_ARRAY:
      return SAID_ARRAY;
    case JSON_OBJECT:
      return SAID_OBJECT;
    default:
      return SAID_BOOLEAN;
  }
}

// Returns the node that "#/a/b" refers to; 0: none.
static uint32_t follow(const type_search *search, document_text reference) {
  if (reference.size_bytes < 2 || memcmp(reference.bytes, "#/", 2) != 0) return 0;
  uint32_t node = search->root, at = 2;
  while (at <= reference.size_bytes && node != 0) {
    uint32_t end = at;
    while (end < reference.size_bytes && reference.bytes[end] != '/') end++;
    const document_text key = {reference.bytes + at, end - at};
    node = document_member(search->document, node, key);
    at = end + 1;
  }
  return node;
}

static uint32_t types_of(type_search *search, uint32_t schema, uint32_t depth);

static uint32_t types_of_list(type_search *search, uint32_t list, uint32_t depth) {
  uint32_t types = 0;
  for (uint32_t at = first_of(search->document, list); at != 0;
       at = document_node(search->document, at)->next) {
    types |= types_of(search, at, depth);
  }
  return types;
}

static uint32_t types_of(type_search *search, uint32_t schema, uint32_t depth) {
  const json_document *document = search->document;
  if (schema == 0 || depth == SCHEMA_DEPTH_MAX || search->visits == SCHEMAS_MAX) return 0;
  search->visits++;
  uint32_t types = 0;
  const uint32_t type = document_find(document, schema, "type");
  if (document_node(document, type)->kind == JSON_STRING) {
    return type_of_name(document_node(document, type)->text);
  }
  for (uint32_t at = first_of(document, type); at != 0; at = document_node(document, at)->next) {
    types |= type_of_name(document_node(document, at)->text);
  }
  if (types != 0) return types;
  const uint32_t constant = document_find(document, schema, "const");
  if (constant != 0) return type_of_value(document_node(document, constant));
  const uint32_t choice = document_find(document, schema, "enum");
  for (uint32_t at = first_of(document, choice); at != 0; at = document_node(document, at)->next) {
    types |= type_of_value(document_node(document, at));
  }
  static const char *const LISTS[] = {"anyOf", "oneOf", "allOf"};
  for (size_t i = 0; i < 3; i++) {
    types |= types_of_list(search, document_find(document, schema, LISTS[i]), depth + 1);
  }
  const uint32_t reference = document_find(document, schema, "$ref");
  if (reference != 0) {
    types |= types_of(search, follow(search, document_node(document, reference)->text), depth + 1);
  }
  return types;
}

static uint32_t member_of(type_search *search, uint32_t schema, document_text member,
                          uint32_t depth) {
  static const char *const LISTS[] = {"anyOf", "oneOf", "allOf"};
  const json_document *document = search->document;
  if (schema == 0 || depth == SCHEMA_DEPTH_MAX || search->visits == SCHEMAS_MAX) return 0;
  search->visits++;
  const uint32_t properties = document_find(document, schema, "properties");
  uint32_t found = member.bytes == NULL ? document_find(document, schema, "items")
                                        : document_member(document, properties, member);
  for (size_t i = 0; i < 3 && found == 0; i++) {
    const uint32_t list = document_find(document, schema, LISTS[i]);
    for (uint32_t at = first_of(document, list); at != 0 && found == 0;
         at = document_node(document, at)->next) {
      found = member_of(search, at, member, depth + 1);
    }
  }
  const uint32_t reference = document_find(document, schema, "$ref");
  if (found != 0 || reference == 0) return found;
  return member_of(search, follow(search, document_node(document, reference)->text), member,
                   depth + 1);
}

uint32_t said_member(const json_document *document, uint32_t root, uint32_t schema,
                     document_text member) {
  type_search search = {.document = document, .root = root};
  return member_of(&search, schema, member, 0);
}

uint32_t said_types_of(const json_document *document, uint32_t root, uint32_t schema) {
  type_search search = {.document = document, .root = root};
  return types_of(&search, schema, 0);
}

uint32_t said_types(const json_document *document, uint32_t root, document_text member) {
  return said_types_of(document, root, said_member(document, root, root, member));
}
