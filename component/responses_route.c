// component/responses_route.c — POST /v1/responses: text and tools, through a chat completion whose
// body is built here. Nothing is stored, so each request contains its whole conversation.
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "response.h"
#include "shape.h"

static const char LOGPROBS[] = "message.output_text.logprobs";

// ---- checks ----

static uint32_t format_of(const body *read) {
  return body_find(read, body_field(read, "text"), "format");
}

static bool check_format(const body *read, refusal *refused) {
  const uint32_t format = format_of(read), type = body_find(read, format, "type");
  if (format == 0) return true;
  const bool is_schema = body_is(read, type, "json_schema");
  if (!is_schema && !body_is(read, type, "text") && !body_is(read, type, "json_object")) {
    return refuse(refused, 400, "invalid_value", "text.format",
                  "text.format.type must be one of text, json_object, json_schema");
  }
  return fields_check(read, format, is_schema ? fields_response_format : fields_text_format,
                      "text.format.", refused);
}

static bool is_function(const body *read, uint32_t tool) {
  return body_is(read, body_find(read, tool, "type"), "function");
}

static bool check_tool(const body *read, uint32_t tool, refusal *refused) {
  char at[40], prefix[48];
  const uint32_t type = body_find(read, tool, "type"), name = body_find(read, tool, "name");
  snprintf(at, sizeof at, "tools[%u]", (unsigned)body_node(read, tool)->index);
  snprintf(prefix, sizeof prefix, "%s.", at);
  if (body_is_text(read, type) && !is_function(read, tool)) return true;
  if (!is_function(read, tool) || !body_is_text(read, name) ||
      body_text(read, name).size_bytes == 0) {
    return refuse_value(refused, at, "{\"type\": \"function\", \"name\", ...}");
  }
  return fields_check_known(read, tool, fields_response_tool, prefix, refused);
}

static bool check_tools(const body *read, refusal *refused) {
  const uint32_t list = body_field(read, "tools");
  if (list == 0) return true;
  if (body_node(read, list)->kind != JSON_ARRAY) return refuse_value(refused, "tools", "an array");
  BODY_EACH(read, tool, list) {
    if (!check_tool(read, tool, refused)) return false;
  }
  return true;
}

// Reports in a response header that tools that are not functions are left out.
static void report_ignored(const body *read, answer *to) {
  const uint32_t list = body_field(read, "tools");
  BODY_EACH(read, tool, list) {
    if (is_function(read, tool)) continue;
    char text[80];
    const wick_text type = body_text(read, body_find(read, tool, "type"));
    bool is_plain = type.size_bytes <= 40;
    for (size_t i = 0; i < type.size_bytes; i++) {
      is_plain = is_plain && type.bytes[i] > ' ' && type.bytes[i] <= '~';
    }
    snprintf(text, sizeof text, "%stools[%u]=%.*s", to->ignored.size_bytes > 0 ? ", " : "",
             (unsigned)body_node(read, tool)->index, is_plain ? (int)type.size_bytes : 1,
             is_plain ? type.bytes : "?");
    buffer_put_text(&to->ignored, text);
  }
  if (to->ignored.size_bytes > 0) buffer_put(&to->ignored, "", 1);
}

// Checks `include`. Its supported values need no action, except for logprobs: reasoning is returned
// in plain text, so clients do not need it encrypted, and tools of other types are left out, so the
// text does not contain parts of their calls.
static bool check_include(const body *read, bool *has_logprobs, refusal *refused) {
  const uint32_t list = body_field(read, "include");
  bool is_known = list == 0 || body_node(read, list)->kind == JSON_ARRAY;
  for (uint32_t one = is_known ? body_node(read, list)->first : 0; one != 0;
       one = body_node(read, one)->next) {
    const bool is_logprobs = body_is(read, one, LOGPROBS);
    *has_logprobs = *has_logprobs || is_logprobs;
    is_known = is_known && (is_logprobs || body_is(read, one, "reasoning.encrypted_content") ||
                            response_is_server_call(body_text(read, one), '.'));
  }
  return is_known ||
         refuse(refused, 400, "unsupported_parameter", "include",
                "include: only %s and reasoning.encrypted_content are supported", LOGPROBS);
}

static bool check_body(const body *read, bool *has_logprobs, refusal *refused) {
  const uint32_t top = body_field(read, "top_logprobs");
  if (!check_format(read, refused) || !check_tools(read, refused) ||
      !check_include(read, has_logprobs, refused)) {
    return false;
  }
  *has_logprobs = *has_logprobs || (top != 0 && body_number(read, top) > 0);
  return body_field(read, "input") != 0 || refuse(refused, REFUSE_MISSING("input"), "input");
}

// ---- the body of the chat completion ----

typedef struct chat_body {
  const body *read;
  buffer out;
  json_writer json;
} chat_body;

static void put_source(chat_body *to, const char *name, uint32_t node) {
  json_member(&to->json, name);
  body_put_source(to->read, node, &to->out);
}

// Whether the table does not have a field with this name.
static bool is_other(const field *table, document_text name) {
  for (; table->name != NULL; table++) {
    if (text_is(name, table->name)) return false;
  }
  return true;
}

// Writes the members of an object that are in a table, except its type.
static void put_members(chat_body *to, const char *name, uint32_t object, const field *known) {
  json_open(&to->json, name, '{');
  BODY_EACH(to->read, node, object) {
    const json_node *member = body_node(to->read, node);
    if (text_is(member->key, "type") || member->kind == JSON_NULL) continue;
    if (is_other(known, member->key)) continue;
    put_source(to, (const char *)member->key.bytes, node);
  }
  json_close(&to->json, '{');
}

// Writes the fields that chat completions have under the same name.
static void put_same(chat_body *to) {
  BODY_EACH(to->read, node, BODY_ROOT) {
    const document_text name = body_node(to->read, node)->key;
    if (is_other(fields_responses, name) || text_is(name, "parallel_tool_calls") ||
        text_is(name, "chat_template_kwargs")) {
      put_source(to, (const char *)name.bytes, node);
    }
  }
}

static void put_renamed(chat_body *to, const char *name, const char *chat_name) {
  const uint32_t node = body_field(to->read, name);
  if (node != 0) put_source(to, chat_name, node);
}

static void put_tools(chat_body *to) {
  const uint32_t list = body_field(to->read, "tools");
  if (body_node(to->read, list)->count == 0) return;
  json_open(&to->json, "tools", '[');
  BODY_EACH(to->read, tool, list) {
    if (!is_function(to->read, tool)) continue;
    json_open(&to->json, NULL, '{');
    json_text(&to->json, "type", "function");
    put_members(to, "function", tool, fields_response_tool);
    json_close(&to->json, '{');
  }
  json_close(&to->json, '[');
}

static void put_tool_choice(chat_body *to) {
  const uint32_t choice = body_field(to->read, "tool_choice");
  const uint32_t name = body_find(to->read, choice, "name");
  if (choice == 0) return;
  if (!body_is(to->read, body_find(to->read, choice, "type"), "function") ||
      !body_is_text(to->read, name)) {
    put_source(to, "tool_choice", choice);
    return;
  }
  json_member(&to->json, "tool_choice");
  shape_put(&to->out, "{'type':'function','function':{'name':%T}}", body_source(to->read, name));
}

static void put_format(chat_body *to) {
  const uint32_t format = format_of(to->read);
  if (format == 0) return;
  json_open(&to->json, "response_format", '{');
  put_source(to, "type", body_find(to->read, format, "type"));
  if (body_is(to->read, body_find(to->read, format, "type"), "json_schema")) {
    put_members(to, "json_schema", format, fields_response_format);
  }
  json_close(&to->json, '{');
}

static bool make_body(chat_body *to, bool has_logprobs, refusal *refused) {
  json_begin(&to->json, buffer_put, &to->out);
  json_open(&to->json, NULL, '{');
  put_same(to);
  json_open(&to->json, "messages", '[');
  if (!response_put_messages(&to->out, to->read, refused)) return false;
  json_close(&to->json, '[');
  put_renamed(to, "max_output_tokens", "max_completion_tokens");
  const uint32_t effort = body_find(to->read, body_field(to->read, "reasoning"), "effort");
  if (effort != 0) put_source(to, "reasoning_effort", effort);
  put_tools(to);
  put_tool_choice(to);
  put_format(to);
  if (has_logprobs) {
    json_bool(&to->json, "logprobs", true);
    put_renamed(to, "top_logprobs", "top_logprobs");
  }
  json_close(&to->json, '{');
  buffer_put(&to->out, "", 1);
  return !to->out.has_failed || refuse_memory(refused, NULL);
}

bool responses_begin(server *of, body *read, answer *to, refusal *refused) {
  chat_body made = {.read = read};
  bool has_logprobs = false;
  bool has_begun = check_body(read, &has_logprobs, refused) && response_make(to, read, refused) &&
                   make_body(&made, has_logprobs, refused);
  if (has_begun) {
    body chat;
    report_ignored(read, to);
    has_begun = body_read(&chat, made.out.bytes, made.out.size_bytes - 1, refused) &&
                chat_begin_as(of, &chat, &form_response, to, refused);
    body_end(&chat);
  }
  buffer_free(&made.out);
  return has_begun;
}
