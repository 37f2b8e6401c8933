// component/response_input.c — converts the input of /v1/responses, a string or items, to messages
// of a conversation. Several items may become one message.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "response.h"
#include "shape.h"

// The input, and the messages that are being written. The last message is held back, because calls
// may still be added to it.
typedef struct conversation {
  const body *read;
  refusal *refused;
  char at[40];  // the place of the current item, for errors
  buffer *out;
  bool has_messages;
  const char *role;  // the role of the message that is held back; NULL: none
  wick_text id;      // the id of the call that the message answers; bytes NULL: none
  buffer content, calls, thoughts;
  buffer reasoning;  // of the current turn, until its message or call follows
} conversation;

static void flush(conversation *to) {
  if (to->role == NULL) return;
  if (to->has_messages) buffer_put_text(to->out, ",");
  to->has_messages = true;
  shape_put(to->out, "{'role':%s,'content':%b", to->role, &to->content);
  if (to->id.bytes != NULL) shape_put(to->out, ",'tool_call_id':%t", to->id);
  if (to->thoughts.size_bytes > 0) shape_put(to->out, ",'reasoning_content':%b", &to->thoughts);
  if (to->calls.size_bytes > 0) shape_put(to->out, ",'tool_calls':[%j]", &to->calls);
  buffer_put_text(to->out, "}");
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

static bool put_part(conversation *to, uint32_t part, const char *at, buffer *out) {
  const body *read = to->read;
  const uint32_t type = body_find(read, part, "type");
  const bool is_text = is_text_part(read, type);
  const bool is_refusal = body_is(read, type, "refusal");
  const uint32_t text = body_find(read, part, is_refusal ? "refusal" : "text");
  if ((is_text || is_refusal) && body_is_text(read, text)) {
    buffer_put(out, body_text(read, text).bytes, body_text(read, text).size_bytes);
    return true;
  }
  if (!body_is_text(read, type) || is_text) {
    return refuse_value(to->refused, at, "a part with a type and a text");
  }
  const wick_text kind = body_text(read, type);
  return refuse(to->refused, 400, "unsupported_value", at,
                "%s is of type %.*s: only text is supported", at,
                (int)(kind.size_bytes < 40 ? kind.size_bytes : 40), kind.bytes);
}

static bool put_text(conversation *to, uint32_t node, const char *at, buffer *out) {
  const body *read = to->read;
  if (body_is_text(read, node)) {
    buffer_put(out, body_text(read, node).bytes, body_text(read, node).size_bytes);
    return true;
  }
  if (body_node(read, node)->kind != JSON_ARRAY) {
    return refuse_value(to->refused, at, WORDS_CONTENT);
  }
  BODY_EACH(read, part, node) {
    const uint32_t index = body_node(read, part)->index;
    char here[REFUSAL_PARAM_BYTES];
    if (index > 0) buffer_put_text(out, "\n");
    snprintf(here, sizeof here, "%s[%u]", at, (unsigned)index);
    if (!put_part(to, part, here, out)) return false;
  }
  return true;
}

// ---- items ----

// Rejects a member of the current item that must be a string.
static bool refuse_member(const conversation *to, const char *name, bool is_missing) {
  char param[REFUSAL_PARAM_BYTES];
  snprintf(param, sizeof param, "%s.%s", to->at, name);
  if (!is_missing) return refuse_value(to->refused, param, WORDS_TEXT);
  return refuse(to->refused, 400, "invalid_value", param, "%s has no %s", to->at, name);
}

// Writes the text of a member of the current item.
static bool put_member_text(conversation *to, uint32_t item, const char *name, buffer *out) {
  char param[REFUSAL_PARAM_BYTES];
  snprintf(param, sizeof param, "%s.%s", to->at, name);
  return put_text(to, body_find(to->read, item, name), param, out);
}

static bool take_message(conversation *to, uint32_t item) {
  static const char *const ROLES[] = {"system", "developer", "user", "assistant"};
  const char *role = NULL;
  char param[REFUSAL_PARAM_BYTES];
  for (uint32_t i = 0; i < 4; i++) {
    if (body_is(to->read, body_find(to->read, item, "role"), ROLES[i])) role = ROLES[i];
  }
  snprintf(param, sizeof param, "%s.role", to->at);
  if (role == NULL) {
    return refuse_value(to->refused, param, "one of system, developer, user, assistant");
  }
  begin_message(to, role);
  return put_member_text(to, item, "content", &to->content);
}

static bool take_reasoning(conversation *to, uint32_t item) {
  const json_node *content = body_node(to->read, body_find(to->read, item, "content"));
  const bool has_content = content->kind == JSON_ARRAY && content->count > 0;
  if (!has_content && body_find(to->read, item, "summary") == 0) return true;
  return put_member_text(to, item, has_content ? "content" : "summary", &to->reasoning);
}

static wick_text member_text(const conversation *to, uint32_t item, const char *name) {
  return body_text(to->read, body_find(to->read, item, name));
}

// Adds a call of the current item to the assistant's message. `arguments` is JSON text.
static bool add_call(conversation *to, uint32_t item, wick_text name, wick_text arguments) {
  if (!is_assistant(to->role)) begin_message(to, "assistant");
  take_thoughts(to);
  shape_put(&to->calls, "%r{'id':%t,'type':'function','function':{'name':%t,'arguments':%t}}",
            to->calls.size_bytes > 0 ? "," : "", member_text(to, item, "call_id"), name, arguments);
  return true;
}

static bool take_call(conversation *to, uint32_t item) {
  return add_call(to, item, member_text(to, item, "name"), member_text(to, item, "arguments"));
}

// Adds a call whose arguments are an object: the text of the member `only`, or if it is NULL all
// members that describe the call.
static bool add_call_of(conversation *to, uint32_t item, wick_text name, const char *only) {
  static const char *const OTHERS[] = {"type", "id", "status", "call_id", "output"};
  buffer arguments = {0};
  json_writer json;
  json_begin(&json, buffer_put, &arguments);
  json_open(&json, NULL, '{');
  if (only != NULL) shape_put(&arguments, "'%r':%t", only, member_text(to, item, only));
  BODY_EACH(to->read, node, only == NULL ? item : 0) {
    const document_text key = body_node(to->read, node)->key;
    bool is_other = false;
    for (uint32_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
      is_other = is_other || text_is(key, OTHERS[i]);
    }
    if (is_other) continue;
    json_member(&json, (const char *)key.bytes);
    body_put_source(to->read, node, &arguments);
  }
  json_close(&json, '{');
  add_call(to, item, name, (wick_text){arguments.bytes, arguments.size_bytes});
  to->calls.has_failed = to->calls.has_failed || arguments.has_failed;
  buffer_free(&arguments);
  return true;
}

// Converts an earlier call of a custom tool. Such tools are left out, and their earlier calls
// become calls of a function with a string argument.
static bool take_custom_call(conversation *to, uint32_t item) {
  return add_call_of(to, item, member_text(to, item, "name"), "input");
}

static bool take_shell_call(conversation *to, uint32_t item) {
  static const wick_text NAME = {"local_shell", 11}, NONE = {"{}", 2};
  const uint32_t action = body_find(to->read, item, "action");
  return add_call(to, item, NAME, action == 0 ? NONE : body_source(to->read, action));
}

static bool take_output(conversation *to, uint32_t item) {
  if (body_find(to->read, item, "output") == 0) return refuse_member(to, "output", true);
  begin_message(to, "tool");
  to->id = member_text(to, item, "call_id");
  return put_member_text(to, item, "output", &to->content);
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

// Converts the output of a call of another tool: a string, or JSON.
static bool take_other_output(conversation *to, uint32_t item) {
  const body *read = to->read;
  const uint32_t call = body_find(read, item, "call_id"), output = body_find(read, item, "output");
  const uint32_t id = call != 0 ? call : body_find(read, item, "id");
  if (!body_is_text(read, id)) return refuse_member(to, "call_id", id == 0);
  const wick_text text =
      body_is_text(read, output) ? body_text(read, output) : body_source(read, output);
  begin_message(to, "tool");
  to->id = body_text(read, id);
  if (output == 0) buffer_put_text(&to->content, "null");
  if (output != 0) buffer_put(&to->content, text.bytes, text.size_bytes);
  return true;
}

// Converts calls of other tools and their outputs. If the client runs the tool, such as a shell,
// its calls become calls of functions. Tools that OpenAI's server runs have no call_id, and their
// items contain nothing that a model can read.
static bool take_other(conversation *to, uint32_t item) {
  static const char CALL[] = "_call", OUTPUT[] = "_output";
  const uint32_t kind = body_find(to->read, item, "type");
  wick_text type = body_text(to->read, kind);
  if (response_is_server_call(type, '\0')) {
    type.size_bytes -= sizeof CALL - 1;
    return !body_is_text(to->read, body_find(to->read, item, "call_id")) ||
           add_call_of(to, item, type, NULL);
  }
  const size_t end = sizeof OUTPUT - 1;
  const bool is_output =
      type.size_bytes > end && memcmp(type.bytes + type.size_bytes - end, OUTPUT, end) == 0;
  if (is_output) type.size_bytes -= end;
  const bool is_picture = body_is(to->read, kind, "computer_call_output");
  if (is_output && !is_picture && response_is_server_call(type, '\0')) {
    return take_other_output(to, item);
  }
  const wick_text source = body_source(to->read, kind);
  return refuse(to->refused, 400, "unsupported_value", to->at,
                "%s is of type %.*s, which is not supported", to->at,
                (int)(source.size_bytes < 40 ? source.size_bytes : 40), source.bytes);
}

static bool take_item(conversation *to, uint32_t item) {
  static const struct {
    const char *type;
    bool (*take)(conversation *, uint32_t);
    const char *texts[3];  // the members that must be strings
  } TAKERS[] = {{"message", take_message, {0}},
                {"reasoning", take_reasoning, {0}},
                {"function_call", take_call, {"call_id", "name", "arguments"}},
                {"function_call_output", take_output, {"call_id"}},
                {"custom_tool_call", take_custom_call, {"call_id", "name", "input"}},
                {"custom_tool_call_output", take_output, {"call_id"}},
                {"local_shell_call", take_shell_call, {"call_id"}}};
  const body *read = to->read;
  snprintf(to->at, sizeof to->at, "input[%u]", (unsigned)body_node(read, item)->index);
  if (body_node(read, item)->kind != JSON_OBJECT) {
    return refuse_value(to->refused, to->at, WORDS_OBJECT);
  }
  const uint32_t type = body_find(read, item, "type");
  if (type == 0) return take_message(to, item);
  for (uint32_t i = 0; i < sizeof TAKERS / sizeof TAKERS[0]; i++) {
    if (!body_is(read, type, TAKERS[i].type)) continue;
    for (uint32_t k = 0; k < 3 && TAKERS[i].texts[k] != NULL; k++) {
      const uint32_t text = body_find(read, item, TAKERS[i].texts[k]);
      if (!body_is_text(read, text)) return refuse_member(to, TAKERS[i].texts[k], text == 0);
    }
    return TAKERS[i].take(to, item);
  }
  return take_other(to, item);
}

// ---- the conversation ----

static bool take_input(conversation *to) {
  const uint32_t instructions = body_field(to->read, "instructions");
  const uint32_t input = body_field(to->read, "input");
  if (instructions != 0) {
    begin_message(to, "system");
    if (!put_text(to, instructions, "instructions", &to->content)) return false;
  }
  if (body_is_text(to->read, input)) {
    begin_message(to, "user");
    return put_text(to, input, "input", &to->content);
  }
  if (body_node(to->read, input)->kind != JSON_ARRAY || body_node(to->read, input)->count == 0) {
    return refuse_value(to->refused, "input", "a string or an array of at least one item");
  }
  BODY_EACH(to->read, item, input) {
    if (!take_item(to, item)) return false;
  }
  return true;
}

bool response_put_messages(buffer *out, const body *read, refusal *refused) {
  conversation made = {.read = read, .refused = refused, .out = out};
  const bool is_taken = take_input(&made);
  end_turn(&made);
  flush(&made);
  buffer *const held[] = {&made.content, &made.calls, &made.thoughts, &made.reasoning};
  for (size_t i = 0; i < sizeof held / sizeof *held; i++) {
    out->has_failed = out->has_failed || held[i]->has_failed;
    buffer_free(held[i]);
  }
  if (!is_taken || made.has_messages) return is_taken;
  return refuse(refused, 400, "invalid_value", "input", "input has no item that a model can read");
}
