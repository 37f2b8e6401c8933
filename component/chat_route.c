// component/chat_route.c — POST /v1/chat/completions: checks fields and messages, and builds the
// engine's request.
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "media_jobs.h"
#include "server.h"

static const field fields_chat[] = {FIELDS_CHAT_USED(PLAIN_FIELD)
                                        FIELDS_CHAT_IDLE(PLAIN_FIELD)  // only their kind is checked
                                    {"messages", FIELD_IGNORED, 0, 0, NULL},
                                    {"top_logprobs", FIELD_WHOLE, 0, WICK_LOGPROBS_MAX, NULL},
                                    {"n_probs", FIELD_WHOLE, 0, WICK_LOGPROBS_MAX, NULL},
                                    {"continue_final_message", FIELD_MISSING, 0, 0, "false"},
                                    {"add_generation_prompt", FIELD_MISSING, 0, 0, "true"},
                                    {"reasoning_effort", FIELD_EFFORT, 0, 0, NULL},
                                    {"thinking", FIELD_IGNORED, 0, 0, NULL},
                                    {"response_format", FIELD_OBJECT, 0, 0, NULL},
                                    {"tools", FIELD_IGNORED, 0, 0, NULL},
                                    {"tool_choice", FIELD_IGNORED, 0, 0, NULL},
                                    {"lora", FIELD_IGNORED, 0, 0, NULL},
                                    {NULL, FIELD_IGNORED, 0, 0, NULL}};

// Other members are accepted, because clients store additional members in their messages and send
// them.
static const field fields_message[] = {{"role", FIELD_TEXT, 0, 0, NULL},
                                       {"tool_call_id", FIELD_TEXT, 0, 0, NULL},
                                       {"reasoning_content", FIELD_TEXT, 0, 0, NULL},
                                       {"reasoning", FIELD_TEXT, 0, 0, NULL},
                                       {"refusal", FIELD_TEXT, 0, 0, NULL},
                                       {"function_call", FIELD_MISSING, 0, 0, "{}"},
                                       {"audio", FIELD_MISSING, 0, 0, "{}"},
                                       {"prefix", FIELD_MISSING, 0, 0, "false"},
                                       {NULL, FIELD_IGNORED, 0, 0, NULL}};

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
  return refuse_value(refused, name, "one of system, developer, user, assistant, tool");
}

static bool check_content(const body *read, uint32_t node, const char *name, refusal *refused) {
  const json_node *content = body_node(read, node);
  if (content->kind == JSON_STRING) return true;
  if (content->kind != JSON_ARRAY) {
    return refuse_value(refused, name, "a string or an array of parts");
  }
  return media_check_parts(read, node, name, refused);
}

static bool check_calls(const body *read, uint32_t node, const char *name, refusal *refused) {
  if (node == 0) return true;
  if (body_node(read, node)->kind != JSON_ARRAY) return refuse_value(refused, name, "an array");
  for (uint32_t one = body_node(read, node)->first; one != 0; one = body_node(read, one)->next) {
    const uint32_t function = body_find(read, one, "function");
    const uint32_t called = body_find(read, function, "name");
    const uint32_t arguments = body_find(read, function, "arguments");
    const json_kind kind = body_node(read, arguments)->kind;  // Ollama clients send objects
    const bool has_arguments = kind == JSON_STRING || kind == JSON_OBJECT;
    if (body_node(read, called)->kind == JSON_STRING && has_arguments) continue;
    char at[REFUSAL_PARAM_BYTES];
    snprintf(at, sizeof at, "%s[%u]", name, (unsigned)body_node(read, one)->index);
    return refuse_value(refused, at, "{\"id\", \"function\": {\"name\", \"arguments\": a string}}");
  }
  return true;
}

static bool check_message(const body *read, uint32_t node, refusal *refused) {
  char at[40], name[REFUSAL_PARAM_BYTES];
  snprintf(at, sizeof at, "messages[%u]", (unsigned)body_node(read, node)->index);
  if (body_node(read, node)->kind != JSON_OBJECT) return refuse_value(refused, at, "an object");
  snprintf(name, sizeof name, "%s.", at);
  const field_tables tables = {fields_message, NULL, name};
  if (!fields_check_known(read, node, &tables, refused)) return false;
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

static bool check_messages(const body *read, refusal *refused) {
  const uint32_t list = body_find(read, BODY_ROOT, "messages");
  if (list == 0) {
    return refuse(refused, 400, "missing_required_parameter", "messages", "messages is missing");
  }
  if (body_node(read, list)->kind != JSON_ARRAY || body_node(read, list)->count == 0) {
    return refuse_value(refused, "messages", "an array of at least one message");
  }
  for (uint32_t node = body_node(read, list)->first; node != 0;
       node = body_node(read, node)->next) {
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

static bool check_tools(const body *read, uint32_t list, refusal *refused) {
  if (list == 0) return true;
  if (body_node(read, list)->kind != JSON_ARRAY || body_node(read, list)->count > TOOLS_MAX) {
    return refuse_value(refused, "tools", "an array of at most 1024 tools");
  }
  for (uint32_t tool = body_node(read, list)->first; tool != 0;
       tool = body_node(read, tool)->next) {
    const uint32_t name = name_of(read, tool);
    char at[40];
    snprintf(at, sizeof at, "tools[%u]", (unsigned)body_node(read, tool)->index);
    if (body_is(read, body_find(read, tool, "type"), "function") &&
        body_node(read, name)->kind == JSON_STRING && body_node(read, name)->text.size_bytes > 0) {
      if (!check_function(read, tool, at, refused)) return false;
      if (!is_there_twice(read, list, tool)) continue;
      return refuse(refused, 400, "invalid_value", "tools", "tools: two tools have the same name");
    }
    return refuse_value(refused, at, "{\"type\": \"function\", \"function\": {\"name\", ...}}");
  }
  return true;
}

static bool has_tool(const body *read, uint32_t list, document_text name) {
  for (uint32_t tool = body_node(read, list)->first; tool != 0;
       tool = body_node(read, tool)->next) {
    if (text_is_same(body_node(read, name_of(read, tool))->text, name)) return true;
  }
  return false;
}

// Sets *list to the tools that may be called; 0 if no tool may be called.
static bool take_tools(const body *read, uint32_t *list, refusal *refused) {
  const uint32_t tools = body_find(read, BODY_ROOT, "tools");
  const uint32_t choice = body_find(read, BODY_ROOT, "tool_choice");
  const uint32_t named = body_find(read, body_find(read, choice, "function"), "name");
  if (!check_tools(read, tools, refused)) return false;
  const bool has_tools = body_node(read, tools)->count > 0;
  const bool is_named = body_is(read, body_find(read, choice, "type"), "function") &&
                        body_node(read, named)->kind == JSON_STRING;
  const bool is_none = body_is(read, choice, "none"),
             is_required = body_is(read, choice, "required");
  if (choice != 0 && !is_named && !is_none && !is_required && !body_is(read, choice, "auto")) {
    return refuse_value(
        refused, "tool_choice",
        "none, auto, required or {\"type\": \"function\", \"function\": {\"name\"}}");
  }
  if (is_named && !has_tool(read, tools, body_node(read, named)->text)) {
    return refuse(refused, 400, "invalid_value", "tool_choice",
                  "tool_choice: no tool has this name");
  }
  if (is_required && !has_tools) {
    return refuse(refused, 400, "invalid_value", "tool_choice", "tool_choice needs tools");
  }
  *list = has_tools && !is_none ? tools : 0;
  return true;
}

// ---- the prompt ----

// Checks the field that turns reasoning on and off at Z.ai, Moonshot and DeepSeek.
static bool check_thinking(const body *read, refusal *refused) {
  const uint32_t thinking = body_find(read, BODY_ROOT, "thinking");
  const uint32_t type = body_find(read, thinking, "type");
  return thinking == 0 || body_is(read, type, "enabled") || body_is(read, type, "disabled") ||
         refuse_value(refused, "thinking", "an object with the type enabled or disabled");
}

// Writes the reasoning switch under both names that templates use; members of chat_template_kwargs
// take precedence.
static void put_thinking(json_writer *json, const body *read, uint32_t more) {
  static const char *const NAMES[] = {"enable_thinking", "thinking"};
  const uint32_t given = body_find(read, BODY_ROOT, NAMES[0]);
  const uint32_t other = body_find(read, BODY_ROOT, NAMES[1]);
  if (given == 0 && other == 0) return;
  const bool is_on = given != 0 ? body_is_true(read, given)
                                : body_is(read, body_find(read, other, "type"), "enabled");
  for (uint32_t i = 0; i < 2; i++) {
    if (body_find(read, more, NAMES[i]) == 0) json_bool(json, NAMES[i], is_on);
  }
}

static const media_set *media_of(const answer *to) {
  return to->media == NULL ? NULL : &to->media->set;
}

// Writes the object that the template reads. `media` NULL: messages contain only text.
static void put_conversation(buffer *out, const body *read, uint32_t tools, const media_set *media,
                             media_form form) {
  json_writer json;
  const uint32_t more = body_find(read, BODY_ROOT, "chat_template_kwargs");
  const uint32_t effort = body_find(read, BODY_ROOT, "reasoning_effort");
  json_begin(&json, buffer_put, out);
  json_open(&json, NULL, '{');
  if (effort != 0 && body_find(read, more, "reasoning_effort") == 0) {
    json_member(&json, "reasoning_effort");
    body_put_source(read, effort, out);
  }
  put_thinking(&json, read, more);
  for (uint32_t node = body_node(read, more)->first; node != 0;
       node = body_node(read, node)->next) {
    const json_node *member = body_node(read, node);
    if (text_is(member->key, "messages") || text_is(member->key, "tools")) continue;
    json_member(&json, (const char *)member->key.bytes);
    body_put_source(read, node, out);
  }
  if (tools != 0) json_member(&json, "tools");
  if (tools != 0) body_put_source(read, tools, out);
  const uint32_t messages = body_find(read, BODY_ROOT, "messages");
  if (media != NULL) {
    media_put_messages(&json, out, read, messages, media->marker, form);
  } else {
    json_member(&json, "messages");
    body_put_source(read, messages, out);
  }
  json_close(&json, '{');
}

// ---- constraints on the output ----

static const field fields_text_format[] = {{"type", FIELD_IGNORED, 0, 0, NULL},
                                           {NULL, FIELD_IGNORED, 0, 0, NULL}};
// llama.cpp's clients send the schema in the `schema` field.
static const field fields_object_format[] = {{"type", FIELD_IGNORED, 0, 0, NULL},
                                             {"schema", FIELD_OBJECT, 0, 0, NULL},
                                             {NULL, FIELD_IGNORED, 0, 0, NULL}};
static const field fields_schema_format[] = {{"type", FIELD_IGNORED, 0, 0, NULL},
                                             {"json_schema", FIELD_OBJECT, 0, 0, NULL},
                                             {NULL, FIELD_IGNORED, 0, 0, NULL}};
static const field fields_schema[] = {{"name", FIELD_TEXT, 0, 0, NULL},
                                      {"schema", FIELD_OBJECT, 0, 0, NULL},
                                      {"strict", FIELD_BOOLEAN, 0, 0, NULL},
                                      {"description", FIELD_TEXT, 0, 0, NULL},
                                      {NULL, FIELD_IGNORED, 0, 0, NULL}};

static const field *fields_of_format(const body *read, uint32_t type) {
  if (body_is(read, type, "text")) return fields_text_format;
  if (body_is(read, type, "json_object")) return fields_object_format;
  return body_is(read, type, "json_schema") ? fields_schema_format : NULL;
}

static bool take_format(const body *read, wick_grammar *grammar, refusal *refused) {
  const uint32_t format = body_find(read, BODY_ROOT, "response_format");
  const field_tables tables = {fields_of_format(read, body_find(read, format, "type")), NULL,
                               "response_format."};
  if (format == 0) return true;
  if (tables.own == NULL) {
    return refuse(refused, 400, "unsupported_value", "response_format",
                  "response_format.type must be one of text, json_object, json_schema");
  }
  if (!fields_check(read, format, &tables, refused)) return false;
  if (tables.own == fields_text_format) return true;
  const bool is_schema = tables.own == fields_schema_format;
  const uint32_t asked = is_schema ? body_find(read, format, "json_schema") : format;
  const uint32_t schema = body_find(read, asked, "schema");
  const field_tables own = {fields_schema, NULL, "response_format.json_schema."};
  if (is_schema && !fields_check(read, asked, &own, refused)) return false;
  if (is_schema && schema == 0) {
    return refuse_value(refused, "response_format",
                        "a format whose json_schema.schema is an object");
  }
  static const char ANY[] = "{\"type\":\"object\"}";
  const wick_text source =
      schema == 0 ? (wick_text){ANY, sizeof ANY - 1} : body_source(read, schema);
  grammar->kind = WICK_GRAMMAR_JSON_SCHEMA;
  grammar->text = source.bytes;
  grammar->text_bytes = source.size_bytes;
  return true;
}

// ---- the answer ----

typedef struct conversation {
  wanted asked;
  wick_conversation of;  // of the request
  uint32_t tools;        // the tools that may be called; 0: none
  wick_grammar grammar;  // of the content
  buffer json;           // the object that the template reads
} conversation;

static bool take_fields(body *read, const char *tenant, conversation *chat, refusal *refused) {
  const field_tables tables = {fields_chat, fields_common, ""};
  if (!fields_check(read, BODY_ROOT, &tables, refused) || !check_messages(read, refused) ||
      !check_thinking(read, refused) || !fields_take(read, tenant, &chat->asked, refused) ||
      !fields_check_adapters(read, refused) || !take_tools(read, &chat->tools, refused) ||
      !take_format(read, &chat->grammar, refused) ||
      !fields_take_grammar(read, &chat->grammar, refused)) {
    return false;
  }
  wick_request *request = &chat->asked.request;
  const uint32_t tokens = body_find(read, BODY_ROOT, "max_completion_tokens");
  const uint32_t top = body_find(read, BODY_ROOT, "top_logprobs");
  request->sampling.logprob = body_is_true(read, body_find(read, BODY_ROOT, "logprobs"));
  if (top == 0) fields_take_probabilities(read, &request->sampling);
  if (tokens != 0) request->max_tokens = fields_tokens(read, tokens);
  if (top == 0) return true;
  request->sampling.logprobs = (uint32_t)body_number(read, top);
  return request->sampling.logprobs == 0 || request->sampling.logprob ||
         refuse(refused, 400, "invalid_value", "top_logprobs", "top_logprobs needs logprobs: true");
}

// Writes the object that the template reads.
static bool take_json(const body *read, const media_set *media, media_form form, conversation *chat,
                      refusal *refused) {
  buffer_clear(&chat->json);
  put_conversation(&chat->json, read, chat->tools, media, form);
  chat->of.chat.json = chat->json.bytes;
  chat->of.chat.json_bytes = chat->json.size_bytes;
  return !chat->json.has_failed ||
         refuse(refused, 503, "nomem", NULL, "Out of memory for the messages");
}

// Rejects a prompt that exceeds the context before its images are encoded.
static bool check_context(const server *of, const wick_request *request, refusal *refused) {
  wick_plan plan;
  wick_error error;
  if (wick_memory_plan(of->engine, &plan, &error) != WICK_OK ||
      request->token_count <= plan.context_tokens) {
    return true;
  }
  return refuse(refused, 400, "context_length_exceeded", "messages",
                "prompt has %zu tokens with its images and recordings, limit is %u",
                request->token_count, (unsigned)plan.context_tokens);
}

// Sets the prompt's tokens, using the form in which the template writes each marker exactly once.
static bool take_media(const server *of, const body *read, const media_set *media,
                       conversation *chat, refusal *refused) {
  wick_request *request = &chat->asked.request;
  wick_error error;
  wick_status status = WICK_OK;
  for (int form = MEDIA_AS_TEXTS; form <= MEDIA_AS_LISTS; form++) {
    if (!take_json(read, media, (media_form)form, chat, refused)) return false;
    status = media_tokenize(of->engine, &chat->of.chat, media, request, &error);
    if (!media_is_other_form(status, &error)) break;
  }
  if (status == WICK_OK) return check_context(of, request, refused);
  if (status == WICK_E_ARG) error.subject = WICK_SUBJECT_TEMPLATE;
  return refuse_error(refused, &error, "messages", NULL);
}

// Builds the engine's conversation from the body.
static bool take_conversation(const server *of, const body *read, const media_set *media,
                              conversation *chat, refusal *refused) {
  wick_request *request = &chat->asked.request;
  const uint32_t choice = body_find(read, BODY_ROOT, "tool_choice");
  const uint32_t parallel = body_find(read, BODY_ROOT, "parallel_tool_calls");
  wick_text wanted = {"\"auto\"", strlen("\"auto\"")};
  if (choice != 0) wanted = body_source(read, choice);
  chat->of = (wick_conversation){
      .chat = {.now_s = (int64_t)time(NULL),
               .has_now = true,
               .parse_special = body_is_true(read, body_find(read, BODY_ROOT, "parseSpecial"))},
      .tool_choice = wanted.bytes,
      .tool_choice_bytes = wanted.size_bytes,
      .one_call = parallel != 0 && !body_is_true(read, parallel)};
  request->conversation = &chat->of;
  if (chat->asked.limits_reasoning) request->reasoning = &chat->asked.reasoning;
  if (chat->grammar.kind != WICK_GRAMMAR_NONE) request->grammar = &chat->grammar;
  return media == NULL ? take_json(read, NULL, MEDIA_AS_TEXTS, chat, refused)
                       : take_media(of, read, media, chat, refused);
}

bool chat_begin_as(server *of, body *read, answer_kind kind, answer *to, refusal *refused) {
  conversation chat = {0};
  const uint32_t messages = body_find(read, BODY_ROOT, "messages");
  const bool is_first = to->media == NULL;  // otherwise the media are already encoded
  bool has_begun = take_fields(read, to->tenant, &chat, refused) &&
                   (!is_first || media_take(of, read, messages, to, refused)) &&
                   take_conversation(of, read, media_of(to), &chat, refused);
  const bool waits = has_begun && is_first && to->media != NULL;
  if (waits) {
    media_wait(of, to);
  } else if (has_begun) {
    has_begun =
        generation_prepare(to, kind, &chat.asked, chat.asked.request.completions, refused) &&
        generation_submit(of, to, 0, &chat.asked, refused);
  }
  buffer_free(&chat.json);
  if (has_begun && !waits) generation_start(of, to);
  return has_begun;
}

bool chat_begin(server *of, body *read, answer *to, refusal *refused) {
  return chat_begin_as(of, read, ANSWER_CHAT, to, refused);
}
