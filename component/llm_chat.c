// component/llm_chat.c — a conversation of wick:llm: its prompt, the grammar of its reply, and what
// splits the reply.
#include <stdio.h>

#include "base/json.h"
#include "body.h"
#include "llm.h"

static bool has_tools(const body *read) {
  const uint32_t choice = body_find(read, BODY_ROOT, "tool_choice");
  const uint32_t tools = body_find(read, BODY_ROOT, "tools");
  return body_node(read, tools)->count > 0 && !body_is(read, choice, "none");
}

// The model may write anything: no call is requested.
static bool is_optional(const body *read) {
  const uint32_t choice = body_find(read, BODY_ROOT, "tool_choice");
  const uint32_t parallel = body_find(read, BODY_ROOT, "parallel_tool_calls");
  return (choice == 0 || body_is(read, choice, "auto")) &&
         (parallel == 0 || body_is_true(read, parallel));
}

// A member as the conversation has it, or else this value.
static void put_member(json_writer *json, const body *read, const char *name, const char *other) {
  const uint32_t node = body_find(read, BODY_ROOT, name);
  json_member(json, name);
  if (node == 0) buffer_put_text(json->context, other);
  if (node == 0) return;
  const wick_text source = body_source(read, node);
  buffer_put(json->context, source.bytes, source.size_bytes);
}

// The text of WICK_GRAMMAR_TOOLS, which also says how to read the reply.
static void put_wish(buffer *out, const body *read, const wick_grammar *content, wick_text ending) {
  json_writer json;
  json_begin(&json, buffer_put, out);
  json_open(&json, NULL, '{');
  if (has_tools(read)) {
    put_member(&json, read, "tools", "[]");
    put_member(&json, read, "tool_choice", "\"auto\"");
    put_member(&json, read, "parallel_tool_calls", "true");
  }
  json_bool(&json, "has_begun", false);
  if (content->kind != WICK_GRAMMAR_NONE) {
    json_open(&json, "content", '{');
    json_u64(&json, "kind", content->kind);
    json_string(&json, "text", content->text, content->text_bytes);
    json_close(&json, '{');
  }
  json_string(&json, "ending", ending.bytes, ending.size_bytes);
  json_close(&json, '{');
}

static wick_status lack_memory(wick_error *error) {
  *error = (wick_error){.status = WICK_E_NOMEM,
                        .offset_bytes = WICK_NO_OFFSET,
                        .message = "Out of memory for the conversation"};
  return WICK_E_NOMEM;
}

static wick_status take_reply(wick_engine *engine, const body *read, const wick_grammar *content,
                              llm_chat *out, wick_error *error) {
  bool has_reasoning, needs_special;
  const wick_text ending = wick_chat_ending(engine, &has_reasoning, &needs_special);
  const bool may_call = has_tools(read), is_limited = content->kind != WICK_GRAMMAR_NONE;
  put_wish(&out->wish, read, content, ending);
  if (out->wish.has_failed) return lack_memory(error);
  out->prints_special = may_call || needs_special;
  out->is_optional = is_optional(read) && !is_limited;
  if (may_call || (is_limited && has_reasoning)) {
    out->grammar = (wick_grammar){
        .kind = WICK_GRAMMAR_TOOLS, .text = out->wish.bytes, .text_bytes = out->wish.size_bytes};
  } else {
    out->grammar = *content;
  }
  return wick_reply_create(engine, out->wish.bytes, out->wish.size_bytes, ending.bytes,
                           ending.size_bytes, &out->reply, error);
}

static wick_status read_form(wick_engine *engine, const buffer *json, const wick_grammar *content,
                             llm_chat *out, wick_error *error) {
  body read;
  refusal refused = {0};
  wick_status status = WICK_E_FULL;
  if (body_read(&read, json->bytes, json->size_bytes - 1, &refused)) {
    status = take_reply(engine, &read, content, out, error);
  } else {
    *error = (wick_error){.status = status, .offset_bytes = WICK_NO_OFFSET};
    snprintf(error->message, sizeof error->message, "conversation: %s", refused.message);
  }
  body_end(&read);
  return status;
}

wick_status llm_chat_read(wick_engine *engine, abi_list conversation, const wick_grammar *content,
                          llm_chat *out, wick_error *error) {
  wick_chat chat;
  *out = (llm_chat){0};
  wick_chat_default(&chat);
  chat.json = conversation.items;
  chat.json_bytes = conversation.count;
  wick_status status = wick_chat_tokenize(engine, &chat, &out->tokens, &out->token_count, error);
  if (status != WICK_OK) return status;
  buffer json = {0};
  buffer_put(&json, conversation.items, conversation.count);
  buffer_put(&json, "", 1);
  status = json.has_failed ? lack_memory(error) : read_form(engine, &json, content, out, error);
  buffer_free(&json);
  if (status != WICK_OK) buffer_free(&out->wish);
  return status;
}
