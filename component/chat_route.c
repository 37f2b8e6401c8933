// component/chat_route.c — POST /v1/chat/completions: checks fields, messages and tools, and builds
// the engine's conversation and request.
#include "chat_route.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "media_jobs.h"
#include "server.h"

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

static bool have_tool(const body *read, uint32_t list, document_text name) {
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

// ---- the fields ----

// Sets *list to the tools that may be called; 0 if no tool may be called.
static bool take_tools(const body *read, uint32_t *list, refusal *refused) {
  const uint32_t tools = body_field(read, "tools");
  const uint32_t choice = body_field(read, "tool_choice");
  const uint32_t named = body_find(read, body_find(read, choice, "function"), "name");
  if (!messages_check_tools(read, tools, refused)) return false;
  const bool has_tools = body_node(read, tools)->count > 0;
  const bool is_named =
      body_is(read, body_find(read, choice, "type"), "function") && body_is_text(read, named);
  const bool is_none = body_is(read, choice, "none"),
             is_required = body_is(read, choice, "required");
  if (choice != 0 && !is_named && !is_none && !is_required && !body_is(read, choice, "auto")) {
    return refuse_value(refused, "tool_choice", WORDS_TOOL_CHOICE);
  }
  if (is_named && !have_tool(read, tools, body_node(read, named)->text)) {
    return refuse(refused, 400, "invalid_value", "tool_choice",
                  "tool_choice: no tool has this name");
  }
  if (is_required && !has_tools) {
    return refuse(refused, 400, "invalid_value", "tool_choice", "tool_choice needs tools");
  }
  *list = has_tools && !is_none ? tools : 0;
  return true;
}

// Checks the field that turns reasoning on and off at Z.ai, Moonshot and DeepSeek.
static bool check_thinking(const body *read, refusal *refused) {
  const uint32_t thinking = body_field(read, "thinking");
  const uint32_t type = body_find(read, thinking, "type");
  return thinking == 0 || body_is(read, type, "enabled") || body_is(read, type, "disabled") ||
         refuse_value(refused, "thinking", WORDS_THINKING);
}

static const media_set *media_of(const answer *to) {
  return to->media == NULL ? NULL : &to->media->set;
}

// ---- constraints on the output ----

static const field *fields_of_format(const body *read, uint32_t type) {
  if (body_is(read, type, "text")) return fields_text_format;
  if (body_is(read, type, "json_object")) return fields_object_format;
  return body_is(read, type, "json_schema") ? fields_schema_format : NULL;
}

static bool take_format(const body *read, wick_grammar *grammar, refusal *refused) {
  const uint32_t format = body_field(read, "response_format");
  const field *fields = fields_of_format(read, body_find(read, format, "type"));
  if (format == 0) return true;
  if (fields == NULL) {
    return refuse(refused, 400, "unsupported_value", "response_format",
                  "response_format.type must be one of text, json_object, json_schema");
  }
  if (!fields_check(read, format, fields, "response_format.", refused)) return false;
  if (fields == fields_text_format) return true;
  const bool is_schema = fields == fields_schema_format;
  const uint32_t asked = is_schema ? body_find(read, format, "json_schema") : format;
  const uint32_t schema = body_find(read, asked, "schema");
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
  buffer json;           // the object that the template reads
} conversation;

static bool take_fields(body *read, const char *tenant, conversation *chat, refusal *refused) {
  if (!messages_check(read, refused) || !check_thinking(read, refused) ||
      !take_tools(read, &chat->tools, refused) ||
      !take_format(read, &chat->asked.grammar, refused) ||
      !fields_take(read, tenant, &chat->asked, refused) ||
      !fields_take_bias(read, &chat->asked.request.sampling, refused)) {
    return false;
  }
  wick_request *request = &chat->asked.request;
  const uint32_t tokens = body_field(read, "max_completion_tokens");
  const uint32_t top = body_field(read, "top_logprobs");
  request->sampling.logprob = body_flag(read, "logprobs");
  if (top == 0) fields_take_probabilities(read, &request->sampling);
  if (tokens != 0) request->max_tokens = fields_tokens(read, tokens);
  if (top == 0) return true;
  request->sampling.logprobs = (uint32_t)body_number(read, top);
  return request->sampling.logprobs == 0 || request->sampling.logprob ||
         refuse(refused, REFUSE_NO_LOGPROBS("top_logprobs"));
}

// Writes the object that the template reads.
static bool take_json(const body *read, const media_set *media, media_form form, conversation *chat,
                      refusal *refused) {
  buffer_clear(&chat->json);
  messages_put(&chat->json, read, chat->tools, media, form);
  chat->of.chat.json = chat->json.bytes;
  chat->of.chat.json_bytes = chat->json.size_bytes;
  return !chat->json.has_failed || refuse_memory(refused, "the messages");
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
  const uint32_t choice = body_field(read, "tool_choice");
  const uint32_t parallel = body_field(read, "parallel_tool_calls");
  wick_text wanted = {"\"auto\"", strlen("\"auto\"")};
  if (choice != 0) wanted = body_source(read, choice);
  chat->of = (wick_conversation){.chat = {.now_s = (int64_t)time(NULL),
                                          .has_now = true,
                                          .parse_special = body_flag(read, "parseSpecial")},
                                 .tool_choice = wanted.bytes,
                                 .tool_choice_bytes = wanted.size_bytes,
                                 .one_call = parallel != 0 && !body_is_true(read, parallel)};
  request->conversation = &chat->of;
  if (chat->asked.limits_reasoning) request->reasoning = &chat->asked.reasoning;
  return media == NULL ? take_json(read, NULL, MEDIA_AS_TEXTS, chat, refused)
                       : take_media(of, read, media, chat, refused);
}

bool chat_begin_as(server *of, body *read, const answer_form *form, answer *to, refusal *refused) {
  conversation chat = {0};
  const uint32_t messages = body_field(read, "messages");
  const bool is_first = to->media == NULL;  // otherwise the media are already encoded
  bool has_begun = take_fields(read, to->tenant, &chat, refused) &&
                   (!is_first || media_take(of, read, messages, to, refused)) &&
                   take_conversation(of, read, media_of(to), &chat, refused);
  const bool waits = has_begun && is_first && to->media != NULL;
  if (waits) {
    media_wait(of, to);
  } else if (has_begun) {
    has_begun =
        generation_prepare(to, form, &chat.asked, chat.asked.request.completions, refused) &&
        generation_submit(to, 0, &chat.asked, refused);
  }
  buffer_free(&chat.json);
  if (has_begun && !waits) generation_start(to);
  return has_begun;
}

bool chat_begin(server *of, body *read, answer *to, refusal *refused) {
  return chat_begin_as(of, read, &form_chat, to, refused);
}
