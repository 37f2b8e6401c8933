// component/messages.c — see messages.h.
#include "messages.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "fields.h"

// ---- messages ----

static bool check_role(const body *read, uint32_t node, const char *name, refusal *refused) {
  static const char *const ROLES[] = {"system", "developer", "user", "assistant", "tool"};
  if (node == 0) return refuse(refused, 400, "invalid_value", name, "%s is missing", name);
  for (uint32_t i = 0; i < sizeof ROLES / sizeof ROLES[0]; i++) {
    if (body_is(read, node, ROLES[i])) return true;
  }
  if (body_is(read, node, "function")) {
    return refuse(refused, 400, "unsupported_parameter", name, "%s: function is not supported",
                  name);
  }
  return refuse_value(refused, name, WORDS_ROLE);
}

static bool check_content(const body *read, uint32_t node, const char *name, refusal *refused) {
  const json_node *content = body_node(read, node);
  if (content->kind == JSON_STRING) return true;
  if (content->kind != JSON_ARRAY) {
    return refuse_value(refused, name, WORDS_CONTENT);
  }
  return media_check_parts(read, node, name, refused);
}

static bool check_calls(const body *read, uint32_t node, const char *name, refusal *refused) {
  if (node == 0) return true;
  if (body_node(read, node)->kind != JSON_ARRAY) return refuse_value(refused, name, "an array");
  BODY_EACH(read, one, node) {
    const uint32_t function = body_find(read, one, "function");
    const uint32_t called = body_find(read, function, "name");
    const uint32_t arguments = body_find(read, function, "arguments");
    const json_kind kind = body_node(read, arguments)->kind;  // Ollama clients send objects
    const bool has_arguments = kind == JSON_STRING || kind == JSON_OBJECT;
    if (body_is_text(read, called) && has_arguments) continue;
    char at[REFUSAL_PARAM_BYTES];
    snprintf(at, sizeof at, "%s[%u]", name, (unsigned)body_node(read, one)->index);
    return refuse_value(refused, at, WORDS_CALL);
  }
  return true;
}

static bool check_message(const body *read, uint32_t node, refusal *refused) {
  char at[40], name[REFUSAL_PARAM_BYTES];
  snprintf(at, sizeof at, "messages[%u]", (unsigned)body_node(read, node)->index);
  if (body_node(read, node)->kind != JSON_OBJECT) return refuse_value(refused, at, WORDS_OBJECT);
  snprintf(name, sizeof name, "%s.", at);
  if (!fields_check_known(read, node, fields_message, name, refused)) return false;
  const uint32_t content = body_find(read, node, "content");
  const uint32_t calls = body_find(read, node, "tool_calls");
  snprintf(name, sizeof name, "%s.role", at);
  if (!check_role(read, body_find(read, node, "role"), name, refused)) return false;
  snprintf(name, sizeof name, "%s.tool_calls", at);
  if (!check_calls(read, calls, name, refused)) return false;
  snprintf(name, sizeof name, "%s.content", at);
  if (content != 0) return check_content(read, content, name, refused);
  // a reply with only reasoning or calls is sent back without content, and so is an empty result
  const uint32_t role = body_find(read, node, "role");
  return body_is(read, role, "assistant") || body_is(read, role, "tool") ||
         refuse(refused, 400, "invalid_value", name, "%s is missing", name);
}

bool messages_check(const body *read, refusal *refused) {
  const uint32_t list = body_field(read, "messages");
  if (list == 0) {
    return refuse(refused, REFUSE_MISSING("messages"), "messages");
  }
  if (body_node(read, list)->kind != JSON_ARRAY || body_node(read, list)->count == 0) {
    return refuse_value(refused, "messages", WORDS_MESSAGES);
  }
  BODY_EACH(read, node, list) {
    if (!check_message(read, node, refused)) return false;
  }
  return true;
}

// ---- tools ----

enum { TOOLS_MAX = 1024 };  // each tool is compared with all previous ones

static uint32_t name_of(const body *read, uint32_t tool) {
  return body_find(read, body_find(read, tool, "function"), "name");
}

static bool is_there_twice(const body *read, uint32_t list, uint32_t tool) {
  const document_text name = body_node(read, name_of(read, tool))->text;
  uint32_t before = body_node(read, list)->first;
  for (; before != tool; before = body_node(read, before)->next) {
    if (text_is_same(body_node(read, name_of(read, before))->text, name)) return true;
  }
  return false;
}

static bool check_function(const body *read, uint32_t tool, const char *at, refusal *refused) {
  static const struct {
    const char *name;
    json_kind kind;
    const char *words;
  } MEMBERS[] = {{"parameters", JSON_OBJECT, "an object"},
                 {"description", JSON_STRING, "a string"}};
  for (size_t i = 0; i < sizeof MEMBERS / sizeof *MEMBERS; i++) {
    const uint32_t found = body_find(read, body_find(read, tool, "function"), MEMBERS[i].name);
    if (found == 0 || body_node(read, found)->kind == MEMBERS[i].kind) continue;
    char name[REFUSAL_PARAM_BYTES];
    snprintf(name, sizeof name, "%s.function.%s", at, MEMBERS[i].name);
    return refuse_value(refused, name, MEMBERS[i].words);
  }
  return true;
}

bool messages_check_tools(const body *read, uint32_t list, refusal *refused) {
  if (list == 0) return true;
  if (body_node(read, list)->kind != JSON_ARRAY || body_node(read, list)->count > TOOLS_MAX) {
    return refuse_value(refused, "tools", "an array of at most 1024 tools");
  }
  BODY_EACH(read, tool, list) {
    const uint32_t name = name_of(read, tool);
    char at[40];
    snprintf(at, sizeof at, "tools[%u]", (unsigned)body_node(read, tool)->index);
    if (body_is(read, body_find(read, tool, "type"), "function") && body_is_text(read, name) &&
        body_node(read, name)->text.size_bytes > 0) {
      if (!check_function(read, tool, at, refused)) return false;
      if (!is_there_twice(read, list, tool)) continue;
      return refuse(refused, 400, "invalid_value", "tools", "tools: two tools have the same name");
    }
    return refuse_value(refused, at, WORDS_TOOL);
  }
  return true;
}

bool messages_have_tool(const body *read, uint32_t list, document_text name) {
  BODY_EACH(read, tool, list) {
    if (text_is_same(body_node(read, name_of(read, tool))->text, name)) return true;
  }
  return false;
}

// ---- the object that the template reads ----

// Writes the reasoning switch under both names that templates use; members of chat_template_kwargs
// take precedence.
static void put_thinking(json_writer *json, const body *read, uint32_t more) {
  static const char *const NAMES[] = {"enable_thinking", "thinking"};
  const uint32_t given = body_field(read, NAMES[0]);
  const uint32_t other = body_field(read, NAMES[1]);
  if (given == 0 && other == 0) return;
  const bool is_on = given != 0 ? body_is_true(read, given)
                                : body_is(read, body_find(read, other, "type"), "enabled");
  for (uint32_t i = 0; i < 2; i++) {
    if (body_find(read, more, NAMES[i]) == 0) json_bool(json, NAMES[i], is_on);
  }
}

void messages_put(buffer *out, const body *read, uint32_t tools, const media_set *media,
                  media_form form) {
  json_writer json;
  const uint32_t more = body_field(read, "chat_template_kwargs");
  const uint32_t effort = body_field(read, "reasoning_effort");
  json_begin(&json, buffer_put, out);
  json_open(&json, NULL, '{');
  if (effort != 0 && body_find(read, more, "reasoning_effort") == 0) {
    json_member(&json, "reasoning_effort");
    body_put_source(read, effort, out);
  }
  put_thinking(&json, read, more);
  BODY_EACH(read, node, more) {
    const json_node *member = body_node(read, node);
    if (text_is(member->key, "messages") || text_is(member->key, "tools")) continue;
    json_member(&json, (const char *)member->key.bytes);
    body_put_source(read, node, out);
  }
  const uint32_t begins = body_field(read, "add_generation_prompt");
  if (begins != 0) json_bool(&json, "add_generation_prompt", body_is_true(read, begins));
  if (tools != 0) json_member(&json, "tools");
  if (tools != 0) body_put_source(read, tools, out);
  const uint32_t messages = body_field(read, "messages");
  if (media != NULL) {
    media_put_messages(&json, out, read, messages, media->marker, form);
  } else {
    json_member(&json, "messages");
    body_put_source(read, messages, out);
  }
  json_close(&json, '{');
}
