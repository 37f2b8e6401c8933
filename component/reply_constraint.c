// component/reply_constraint.c — see reply_constraint.h.
#include "reply_constraint.h"

#include "base/json.h"

static void put_settings(json_writer *json, const body *read, uint32_t tools,
                         const wick_grammar *content) {
  if (tools != 0) json_member(json, "tools");
  if (tools != 0) body_put_source(read, tools, json->context);
  json_bool(json, "has_begun", false);
  if (content->kind == WICK_GRAMMAR_NONE) return;
  json_open(json, "content", '{');
  json_u64(json, "kind", content->kind);
  json_string(json, "text", content->text, content->text_bytes);
  json_close(json, '{');
}

void reply_put_settings(buffer *out, const body *read, uint32_t tools,
                        const wick_grammar *content) {
  json_writer json;
  json_begin(&json, buffer_put, out);
  json_open(&json, NULL, '{');
  put_settings(&json, read, tools, content);
  json_close(&json, '{');
}

// A member of the body, or this value.
static void put_member(json_writer *json, const body *read, const char *name, const char *other) {
  const uint32_t node = body_find(read, BODY_ROOT, name);
  json_member(json, name);
  if (node == 0) buffer_put_text(json->context, other);
  if (node != 0) body_put_source(read, node, json->context);
}

void reply_put_constraint(buffer *out, const body *read, uint32_t tools,
                          const wick_grammar *content, wick_text ending) {
  json_writer json;
  json_begin(&json, buffer_put, out);
  json_open(&json, NULL, '{');
  put_settings(&json, read, tools, content);
  if (tools != 0) put_member(&json, read, "tool_choice", "\"auto\"");
  if (tools != 0) put_member(&json, read, "parallel_tool_calls", "true");
  json_string(&json, "ending", ending.bytes, ending.size_bytes);
  json_close(&json, '{');
}

bool reply_is_optional(const body *read) {
  const uint32_t choice = body_find(read, BODY_ROOT, "tool_choice");
  const uint32_t parallel = body_find(read, BODY_ROOT, "parallel_tool_calls");
  return (choice == 0 || body_is(read, choice, "auto")) &&
         (parallel == 0 || body_is_true(read, parallel));
}
