// component/response_input.c — converts the input of /v1/responses, a string or items, to messages
// of a conversation. Several items may become one message.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "response.h"

// The messages that are being written. The last message is held back, because calls may still be
// added to it.
typedef struct conversation {
  json_writer json;
  buffer *out;
  const char *role;  // the role of the message that is held back; NULL: none
  wick_text id;      // the id of the call that the message answers; bytes NULL: none
  buffer content, calls, thoughts;
  buffer reasoning;  // of the current turn, until its message or call follows
} conversation;

static void flush(conversation *to) {
  if (to->role == NULL) return;
  json_open(&to->json, NULL, '{');
  json_text(&to->json, "role", to->role);
  json_string(&to->json, "content", to->content.bytes, to->content.size_bytes);
  if (to->id.bytes != NULL) {
    json_string(&to->json, "tool_call_id", to->id.bytes, to->id.size_bytes);
  }
  if (to->thoughts.size_bytes > 0) {
    json_string(&to->json, "reasoning_content", to->thoughts.bytes, to->thoughts.size_bytes);
  }
  if (to->calls.size_bytes > 0) {
    json_member(&to->json, "tool_calls");
    buffer_put_text(to->out, "[");
    buffer_put(to->out, to->calls.bytes, to->calls.size_bytes);
    buffer_put_text(to->out, "]");
  }
  json_close(&to->json, '{');
  to->role = NULL;
  to->id.bytes = NULL;
  buffer_clear(&to->content);
  buffer_clear(&to->calls);
  buffer_clear(&to->thoughts);
}

static bool is_assistant(const char *role) {
  return role != NULL && strcmp(role, "assistant") == 0;
}

static void take_thoughts(conversation *to) {
  if (to->reasoning.size_bytes == 0) return;
  if (to->thoughts.size_bytes > 0) buffer_put_text(&to->thoughts, "\n\n");
  buffer_put(&to->thoughts, to->reasoning.bytes, to->reasoning.size_bytes);
  buffer_clear(&to->reasoning);
}

// Ends a turn: adds its reasoning, even if the turn was cut off before any text.
static void end_turn(conversation *to) {
  if (to->reasoning.size_bytes == 0) return;
  if (!is_assistant(to->role) || to->calls.size_bytes == 0) {
    flush(to);
    to->role = "assistant";
  }
  take_thoughts(to);
}

static void begin_message(conversation *to, const char *role) {
  if (!is_assistant(role)) end_turn(to);
  flush(to);
  to->role = role;
  if (is_assistant(role)) take_thoughts(to);
}

// ---- texts: a string, or parts ----

static bool is_text_part(const body *read, uint32_t type) {
  static const char *const TYPES[] = {"input_text", "output_text", "text", "summary_text",
                                      "reasoning_text"};
  for (uint32_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++) {
    if (body_is(read, type, TYPES[i])) return true;
  }
  return false;
}

static bool put_part(buffer *out, const body *read, uint32_t part, const char *at,
                     refusal *refused) {
  const uint32_t type = body_find(read, part, "type");
  const bool is_text = is_text_part(read, type);
  const bool is_refusal = body_is(read, type, "refusal");
  const uint32_t text = body_find(read, part, is_refusal ? "refusal" : "text");
  if ((is_text || is_refusal) && body_node(read, text)->kind == JSON_STRING) {
    buffer_put(out, body_text(read, text).bytes, body_text(read, text).size_bytes);
    return true;
  }
  if (body_node(read, type)->kind != JSON_STRING || is_text) {
    return refuse(refused, 400, "invalid_value", at, "%s must be a part with a type and a text",
                  at);
  }
  const wick_text kind = body_text(read, type);
  return refuse(refused, 400, "unsupported_value", at, "%s is of type %.*s: only text is supported",
                at, (int)(kind.size_bytes < 40 ? kind.size_bytes : 40), kind.bytes);
}

static bool put_text(buffer *out, const body *read, uint32_t node, const char *at,
                     refusal *refused) {
  const json_node *found = body_node(read, node);
  if (found->kind == JSON_STRING) {
    buffer_put(out, body_text(read, node).bytes, body_text(read, node).size_bytes);
    return true;
  }
  if (found->kind != JSON_ARRAY) {
    return refuse_value(refused, at, WORDS_CONTENT);
  }
  for (uint32_t part = found->first; part != 0; part = body_node(read, part)->next) {
    char here[REFUSAL_PARAM_BYTES];
    if (part != found->first) buffer_put_text(out, "\n");
    snprintf(here, sizeof here, "%s[%u]", at, (unsigned)body_node(read, part)->index);
    if (!put_part(out, read, part, here, refused)) return false;
  }
  return true;
}

// ---- items ----

// Reads a member that is a string.
static bool has_text(const body *read, uint32_t item, const char *name, const char *at,
                     refusal *refused) {
  const uint32_t node = body_find(read, item, name);
  char param[REFUSAL_PARAM_BYTES];
  if (node != 0 && body_node(read, node)->kind == JSON_STRING) return true;
  snprintf(param, sizeof param, "%s.%s", at, name);
  if (node != 0) return refuse_value(refused, param, WORDS_TEXT);
  return refuse(refused, 400, "invalid_value", param, "%s has no %s", at, name);
}

static bool take_message(conversation *to, const body *read, uint32_t item, const char *at,
                         refusal *refused) {
  static const char *const ROLES[] = {"system", "developer", "user", "assistant"};
  const char *role = NULL;
  char param[REFUSAL_PARAM_BYTES];
  for (uint32_t i = 0; i < 4; i++) {
    if (body_is(read, body_find(read, item, "role"), ROLES[i])) role = ROLES[i];
  }
  snprintf(param, sizeof param, "%s.role", at);
  if (role == NULL) {
    return refuse_value(refused, param, "one of system, developer, user, assistant");
  }
  begin_message(to, role);
  snprintf(param, sizeof param, "%s.content", at);
  return put_text(&to->content, read, body_find(read, item, "content"), param, refused);
}

static bool take_reasoning(conversation *to, const body *read, uint32_t item, const char *at,
                           refusal *refused) {
  const uint32_t content = body_find(read, item, "content");
  const uint32_t summary = body_find(read, item, "summary");
  const json_node *found = body_node(read, content);
  const bool has_content = found->kind == JSON_ARRAY && found->count > 0;
  if (!has_content && summary == 0) return true;
  char param[REFUSAL_PARAM_BYTES];
  snprintf(param, sizeof param, "%s.%s", at, has_content ? "content" : "summary");
  return put_text(&to->reasoning, read, has_content ? content : summary, param, refused);
}

static void put_member(json_writer *json, const char *name, wick_text text) {
  json_string(json, name, text.bytes, text.size_bytes);
}

// Adds a call to the assistant's message. `arguments` is JSON text.
static void add_call(conversation *to, wick_text id, wick_text name, wick_text arguments) {
  if (!is_assistant(to->role)) begin_message(to, "assistant");
  take_thoughts(to);
  if (to->calls.size_bytes > 0) buffer_put_text(&to->calls, ",");
  json_writer json;
  json_begin(&json, buffer_put, &to->calls);
  json_open(&json, NULL, '{');
  put_member(&json, "id", id);
  json_text(&json, "type", "function");
  json_open(&json, "function", '{');
  put_member(&json, "name", name);
  put_member(&json, "arguments", arguments);
  json_close(&json, '{');
  json_close(&json, '{');
}

static wick_text member_text(const body *read, uint32_t item, const char *name) {
  return body_text(read, body_find(read, item, name));
}

static bool take_call(conversation *to, const body *read, uint32_t item, const char *at,
                      refusal *refused) {
  if (!has_text(read, item, "call_id", at, refused) || !has_text(read, item, "name", at, refused) ||
      !has_text(read, item, "arguments", at, refused)) {
    return false;
  }
  add_call(to, member_text(read, item, "call_id"), member_text(read, item, "name"),
           member_text(read, item, "arguments"));
  return true;
}

// Converts an earlier call of a custom tool. Such tools are left out, and their earlier calls
// become calls of a function with a string argument.
static bool take_custom_call(conversation *to, const body *read, uint32_t item, const char *at,
                             refusal *refused) {
  if (!has_text(read, item, "call_id", at, refused) || !has_text(read, item, "name", at, refused) ||
      !has_text(read, item, "input", at, refused)) {
    return false;
  }
  buffer arguments = {0};
  json_writer json;
  json_begin(&json, buffer_put, &arguments);
  json_open(&json, NULL, '{');
  put_member(&json, "input", member_text(read, item, "input"));
  json_close(&json, '{');
  add_call(to, member_text(read, item, "call_id"), member_text(read, item, "name"),
           (wick_text){arguments.bytes, arguments.size_bytes});
  to->calls.has_failed = to->calls.has_failed || arguments.has_failed;
  buffer_free(&arguments);
  return true;
}

static bool take_shell_call(conversation *to, const body *read, uint32_t item, const char *at,
                            refusal *refused) {
  static const wick_text NAME = {"local_shell", 11}, NONE = {"{}", 2};
  if (!has_text(read, item, "call_id", at, refused)) return false;
  const uint32_t action = body_find(read, item, "action");
  add_call(to, member_text(read, item, "call_id"), NAME,
           action == 0 ? NONE : body_source(read, action));
  return true;
}

static bool take_output(conversation *to, const body *read, uint32_t item, const char *at,
                        refusal *refused) {
  char param[REFUSAL_PARAM_BYTES];
  const uint32_t output = body_find(read, item, "output");
  if (!has_text(read, item, "call_id", at, refused)) return false;
  snprintf(param, sizeof param, "%s.output", at);
  if (output == 0) return refuse(refused, 400, "invalid_value", param, "%s has no output", at);
  begin_message(to, "tool");
  to->id = member_text(read, item, "call_id");
  return put_text(&to->content, read, output, param, refused);
}

bool response_is_server_call(wick_text name, char end) {
  static const char CALL[] = "_call";
  const size_t call = sizeof CALL - 1;
  size_t size = 0;
  while (size < name.size_bytes && (name.bytes[size] == '_' || islower((uint8_t)name.bytes[size])))
    size++;
  const bool ends =
      end == '\0' ? size == name.size_bytes : size < name.size_bytes && name.bytes[size] == end;
  return ends && size > call && memcmp(name.bytes + size - call, CALL, call) == 0;
}

// Writes the members that describe a call of another tool as an object.
static void put_own_members(buffer *out, const body *read, uint32_t item) {
  static const char *const OTHERS[] = {"type", "id", "status", "call_id", "output"};
  json_writer json;
  json_begin(&json, buffer_put, out);
  json_open(&json, NULL, '{');
  for (uint32_t node = body_node(read, item)->first; node != 0;
       node = body_node(read, node)->next) {
    const document_text key = body_node(read, node)->key;
    bool is_other = false;
    for (uint32_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
      is_other = is_other || text_is(key, OTHERS[i]);
    }
    if (is_other) continue;
    const wick_text source = body_source(read, node);
    json_member(&json, (const char *)key.bytes);
    buffer_put(out, source.bytes, source.size_bytes);
  }
  json_close(&json, '{');
}

// Converts calls of other tools. If the client runs the tool, such as a shell, they become calls of
// functions. Tools that OpenAI's server runs have no call_id, and their items contain nothing that
// a model can read.
static void take_other_call(conversation *to, const body *read, uint32_t item, wick_text type) {
  const uint32_t id = body_find(read, item, "call_id");
  const wick_text name = {type.bytes, type.size_bytes - strlen("_call")};
  if (id == 0 || body_node(read, id)->kind != JSON_STRING) return;
  buffer arguments = {0};
  put_own_members(&arguments, read, item);
  add_call(to, body_text(read, id), name, (wick_text){arguments.bytes, arguments.size_bytes});
  to->calls.has_failed = to->calls.has_failed || arguments.has_failed;
  buffer_free(&arguments);
}

// Converts the output of a call of another tool: a string, or JSON.
static bool take_other_output(conversation *to, const body *read, uint32_t item, const char *at,
                              refusal *refused) {
  uint32_t id = body_find(read, item, "call_id");
  const uint32_t output = body_find(read, item, "output");
  if (id == 0) id = body_find(read, item, "id");
  if (id == 0) return has_text(read, item, "call_id", at, refused);
  if (body_node(read, id)->kind != JSON_STRING) {
    char param[REFUSAL_PARAM_BYTES];
    snprintf(param, sizeof param, "%s.call_id", at);
    return refuse_value(refused, param, WORDS_TEXT);
  }
  const bool is_text = body_node(read, output)->kind == JSON_STRING;
  const wick_text text = is_text ? body_text(read, output) : body_source(read, output);
  begin_message(to, "tool");
  to->id = body_text(read, id);
  if (output == 0) {
    buffer_put_text(&to->content, "null");
  } else {
    buffer_put(&to->content, text.bytes, text.size_bytes);
  }
  return true;
}

static bool take_other(conversation *to, const body *read, uint32_t item, const char *at,
                       refusal *refused) {
  static const char OUTPUT[] = "_output";
  const uint32_t kind = body_find(read, item, "type");
  wick_text type = body_text(read, kind);
  if (response_is_server_call(type, '\0')) {
    take_other_call(to, read, item, type);
    return true;
  }
  const size_t end = sizeof OUTPUT - 1;
  const bool is_output =
      type.size_bytes > end && memcmp(type.bytes + type.size_bytes - end, OUTPUT, end) == 0;
  if (is_output) type.size_bytes -= end;
  const bool is_picture = body_is(read, kind, "computer_call_output");
  if (is_output && !is_picture && response_is_server_call(type, '\0')) {
    return take_other_output(to, read, item, at, refused);
  }
  const wick_text source = body_source(read, kind);
  return refuse(refused, 400, "unsupported_value", at, "%s is of type %.*s, which is not supported",
                at, (int)(source.size_bytes < 40 ? source.size_bytes : 40), source.bytes);
}

static bool take_item(conversation *to, const body *read, uint32_t item, refusal *refused) {
  static const struct {
    const char *type;
    bool (*take)(conversation *, const body *, uint32_t, const char *, refusal *);
  } TAKERS[] = {{"message", take_message},
                {"reasoning", take_reasoning},
                {"function_call", take_call},
                {"function_call_output", take_output},
                {"custom_tool_call", take_custom_call},
                {"custom_tool_call_output", take_output},
                {"local_shell_call", take_shell_call}};
  char at[REFUSAL_PARAM_BYTES];
  snprintf(at, sizeof at, "input[%u]", (unsigned)body_node(read, item)->index);
  if (body_node(read, item)->kind != JSON_OBJECT) return refuse_value(refused, at, WORDS_OBJECT);
  const uint32_t type = body_find(read, item, "type");
  if (type == 0) return take_message(to, read, item, at, refused);
  for (uint32_t i = 0; i < sizeof TAKERS / sizeof TAKERS[0]; i++) {
    if (body_is(read, type, TAKERS[i].type)) return TAKERS[i].take(to, read, item, at, refused);
  }
  return take_other(to, read, item, at, refused);
}

// ---- the conversation ----

static bool take_input(conversation *to, const body *read, refusal *refused) {
  const uint32_t instructions = body_find(read, BODY_ROOT, "instructions");
  const uint32_t input = body_find(read, BODY_ROOT, "input");
  const json_node *found = body_node(read, input);
  if (instructions != 0) {
    begin_message(to, "system");
    if (!put_text(&to->content, read, instructions, "instructions", refused)) return false;
  }
  if (found->kind == JSON_STRING) {
    begin_message(to, "user");
    return put_text(&to->content, read, input, "input", refused);
  }
  if (found->kind != JSON_ARRAY || found->count == 0) {
    return refuse_value(refused, "input", "a string or an array of at least one item");
  }
  for (uint32_t item = found->first; item != 0; item = body_node(read, item)->next) {
    if (!take_item(to, read, item, refused)) return false;
  }
  return true;
}

bool response_put_messages(buffer *out, const body *read, refusal *refused) {
  conversation made = {.out = out};
  const size_t begin_bytes = out->size_bytes;
  json_begin(&made.json, buffer_put, out);
  const bool is_taken = take_input(&made, read, refused);
  end_turn(&made);
  const bool has_messages = made.role != NULL || out->size_bytes > begin_bytes;
  flush(&made);
  out->has_failed = out->has_failed || made.content.has_failed || made.calls.has_failed ||
                    made.thoughts.has_failed || made.reasoning.has_failed;
  buffer_free(&made.content);
  buffer_free(&made.calls);
  buffer_free(&made.thoughts);
  buffer_free(&made.reasoning);
  if (!is_taken || has_messages) return is_taken;
  return refuse(refused, 400, "invalid_value", "input", "input has no item that a model can read");
}
