// reply/tools.c — names and types of tools.
#include "reply/tools.h"

#include <string.h>

#include "grammar/document.h"
#include "grammar/said.h"

struct reply_tools {
  memory_gate *memory;
  grammar_work work;
  json_document document;
};

enum { LIST = 1 };  // the node of all tools

static uint32_t function_of(const json_document *document, uint32_t tool) {
  const uint32_t function = document_find(document, tool, "function");
  return function == 0 ? tool : function;
}

static document_text name_of(const json_document *document, uint32_t tool) {
  const uint32_t name = document_find(document, function_of(document, tool), "name");
  return document_node(document, name)->text;
}

enum { TOOLS_COMPARED_MAX = 1024 };

// Returns the first tool with the same name as an earlier tool; 0: none.
static uint32_t find_twin(const json_document *document) {
  uint32_t compared = 0;
  for (uint32_t at = document_node(document, LIST)->first; at != 0 && compared < TOOLS_COMPARED_MAX;
       at = document_node(document, at)->next, compared++) {
    const document_text name = name_of(document, at);
    for (uint32_t before = document_node(document, LIST)->first; before != at;
         before = document_node(document, before)->next) {
      if (name.size_bytes > 0 && text_is_same(name_of(document, before), name)) return at;
    }
  }
  return 0;
}

static wick_status check_tools(const json_document *document, wick_error *error) {
  const json_node *list = document_node(document, LIST);
  if (list->kind != JSON_ARRAY) return fail_with(error, WICK_E_ARG, 0, "tools must be an array");
  for (uint32_t at = list->first; at != 0; at = document_node(document, at)->next) {
    const uint32_t name = document_find(document, function_of(document, at), "name");
    const json_node *node = document_node(document, name);
    if (name == 0 || node->kind != JSON_STRING || node->text.size_bytes == 0 ||
        node->text.size_bytes > REPLY_NAME_BYTES_MAX) {
      return fail_with(error, WICK_E_ARG, document_node(document, at)->at,
                       "tool %u: its name must be a string of 1 to %d bytes",
                       document_node(document, at)->index, REPLY_NAME_BYTES_MAX);
    }
  }
  const uint32_t twin = find_twin(document);
  if (twin == 0) return WICK_OK;
  return fail_with(error, WICK_E_ARG, document_node(document, twin)->at,
                   "tool %u: its name is not unique", document_node(document, twin)->index);
}

wick_status reply_tools_create(memory_gate *memory, wick_text json, reply_tools **out,
                               wick_error *error) {
  reply_tools *tools = memory_alloc_zeroed(memory, sizeof *tools);
  if (tools == NULL) return memory_fail(memory, error, "tools");
  tools->memory = memory;
  work_begin(&tools->work, memory);
  wick_status status = WICK_OK;
  const uint8_t *bytes = (const uint8_t *)json.bytes;
  if (!document_read(&tools->work, bytes, json.size_bytes, &tools->document)) {
    status = fail_with(error, tools->work.status, tools->work.error.offset_bytes, "tools: %s",
                       tools->work.error.message);
  } else {
    status = check_tools(&tools->document, error);
  }
  if (status != WICK_OK) {
    reply_tools_destroy(tools);
    return status_about(status, error, WICK_SUBJECT_TOOLS, 0, 0);
  }
  *out = tools;
  return WICK_OK;
}

void reply_tools_destroy(reply_tools *tools) {
  if (tools == NULL) return;
  work_end(&tools->work);
  memory_free(tools->memory, tools);
}

// Returns the function object with a name; 0: none.
static uint32_t find_tool(const reply_tools *tools, const char *name, size_t name_bytes) {
  const json_document *document = &tools->document;
  const document_text wanted = {(const uint8_t *)name, (uint32_t)name_bytes};
  for (uint32_t at = document_node(document, LIST)->first; at != 0;
       at = document_node(document, at)->next) {
    const uint32_t function = function_of(document, at);
    const uint32_t node = document_find(document, function, "name");
    if (text_is_same(document_node(document, node)->text, wanted)) return function;
  }
  return 0;
}

bool tools_begin(const reply_tools *tools, const char *text, size_t size_bytes) {
  for (uint32_t at = tools == NULL ? 0 : document_node(&tools->document, LIST)->first; at != 0;
       at = document_node(&tools->document, at)->next) {
    const document_text name = name_of(&tools->document, at);
    if (name.size_bytes >= size_bytes && memcmp(name.bytes, text, size_bytes) == 0) return true;
  }
  return false;
}

bool tools_have(const reply_tools *tools, const char *name, size_t name_bytes) {
  return find_tool(tools, name, name_bytes) != 0;
}

uint32_t tools_member(const reply_tools *tools, const char *name, size_t name_bytes,
                      uint32_t schema, const uint8_t *key, size_t key_bytes) {
  const json_document *document = &tools->document;
  const uint32_t tool = find_tool(tools, name, name_bytes);
  const uint32_t root = document_find(document, tool, "parameters");
  return said_member(document, root, schema == 0 ? root : schema,
                     (document_text){key, (uint32_t)key_bytes});
}

uint32_t tools_types_at(const reply_tools *tools, const char *name, size_t name_bytes,
                        uint32_t schema) {
  const json_document *document = &tools->document;
  const uint32_t tool = find_tool(tools, name, name_bytes);
  return said_types_of(document, document_find(document, tool, "parameters"), schema);
}
