// reply/tools.c — names and types of tools.
#include "reply/tools.h"

#include <string.h>

#include "grammar/document.h"

enum { SCHEMA_DEPTH_MAX = 12, SCHEMAS_MAX = 200 };

struct reply_tools {
  memory_gate *memory;
  grammar_work work;
  json_document document;
};

static uint32_t first_of(const json_document *document, uint32_t node) {
  return node == 0 ? 0 : document_node(document, node)->first;
}

static uint32_t function_of(const json_document *document, uint32_t tool) {
  const uint32_t function = document_find(document, tool, "function");
  return function == 0 ? tool : function;
}

static wick_status check_tools(const json_document *document, wick_error *error) {
  if (document_node(document, 1)->kind != JSON_ARRAY) {
    return fail_with(error, WICK_E_ARG, 0, "tools are an array");
  }
  for (uint32_t at = first_of(document, 1); at != 0; at = document_node(document, at)->next) {
    const uint32_t name = document_find(document, function_of(document, at), "name");
    const json_node *node = document_node(document, name);
    if (name == 0 || node->kind != JSON_STRING || node->text.size_bytes == 0 ||
        node->text.size_bytes > REPLY_NAME_BYTES_MAX) {
      return fail_with(error, WICK_E_ARG, document_node(document, at)->at,
                       "tool %u: its name is a string of 1 to %d bytes",
                       document_node(document, at)->index, REPLY_NAME_BYTES_MAX);
    }
  }
  return WICK_OK;
}

wick_status reply_tools_create(memory_gate *memory, const char *json, size_t size_bytes,
                               reply_tools **out, wick_error *error) {
  reply_tools *tools = memory_alloc_zeroed(memory, sizeof *tools);
  if (tools == NULL) return memory_fail(memory, error, "tools", sizeof *tools);
  tools->memory = memory;
  work_begin(&tools->work, memory);
  wick_status status = WICK_OK;
  if (!document_read(&tools->work, (const uint8_t *)json, size_bytes, &tools->document)) {
    status = fail_with(error, tools->work.status, tools->work.error.offset_bytes, "tools: %s",
                       tools->work.error.message);
  } else {
    status = check_tools(&tools->document, error);
  }
  if (status != WICK_OK) {
    reply_tools_destroy(tools);
    return status;
  }
  *out = tools;
  return WICK_OK;
}

void reply_tools_destroy(reply_tools *tools) {
  if (tools == NULL) return;
  work_end(&tools->work);
  memory_free(tools->memory, tools);
}

// The function object of a name; 0: there is none.
static uint32_t find_tool(const reply_tools *tools, const char *name, size_t name_bytes) {
  const json_document *document = &tools->document;
  const document_text wanted = {(const uint8_t *)name, (uint32_t)name_bytes};
  for (uint32_t at = first_of(document, 1); at != 0; at = document_node(document, at)->next) {
    const uint32_t function = function_of(document, at);
    const uint32_t node = document_find(document, function, "name");
    if (text_is_same(document_node(document, node)->text, wanted)) return function;
  }
  return 0;
}

bool tools_have(const reply_tools *tools, const char *name, size_t name_bytes) {
  return find_tool(tools, name, name_bytes) != 0;
}

// ---- types of a schema ----

typedef struct type_search {
  const json_document *document;
  uint32_t root;  // of local references
  uint32_t visits;
} type_search;

static uint32_t type_of_name(document_text name) {
  static const struct {
    const char *name;
    uint32_t type;
  } TYPES[] = {{"string", TYPE_STRING},   {"integer", TYPE_NUMBER}, {"number", TYPE_NUMBER},
               {"boolean", TYPE_BOOLEAN}, {"null", TYPE_NULL},      {"array", TYPE_ARRAY},
               {"object", TYPE_OBJECT}};
  for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++) {
    if (text_is(name, TYPES[i].name)) return TYPES[i].type;
  }
  return 0;
}

static uint32_t type_of_value(const json_node *value) {
  switch (value->kind) {
    case JSON_STRING:
      return TYPE_STRING;
    case JSON_NUMBER:
      return TYPE_NUMBER;
    case JSON_NULL:
      return TYPE_NULL;
    case JSON_ARRAY:
      return TYPE_ARRAY;
    case JSON_OBJECT:
      return TYPE_OBJECT;
    default:
      return TYPE_BOOLEAN;
  }
}

// The node that "#/a/b" names; 0: none.
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
  if (schema == 0 || depth == SCHEMA_DEPTH_MAX || search->visits++ == SCHEMAS_MAX) return 0;
  if (document_node(document, schema)->kind != JSON_OBJECT) return 0;
  uint32_t types = 0;
  const uint32_t type = document_find(document, schema, "type");
  if (type != 0 && document_node(document, type)->kind == JSON_STRING) {
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

uint32_t tools_types(const reply_tools *tools, const char *name, size_t name_bytes,
                     const uint8_t *key, size_t key_bytes) {
  const uint32_t tool = find_tool(tools, name, name_bytes);
  if (tool == 0) return 0;
  type_search search = {.document = &tools->document};
  search.root = document_find(&tools->document, tool, "parameters");
  const uint32_t properties = document_find(&tools->document, search.root, "properties");
  const document_text wanted = {key, (uint32_t)key_bytes};
  return types_of(&search, document_member(&tools->document, properties, wanted), 0);
}
