// component/llm_chat.c — a conversation of wick:llm: its prompt, the grammar of its reply, and what
// splits the reply.
#include <stdio.h>
#include <string.h>

#include "llm.h"
#include "reply_constraint.h"

// The tools that the reply may call; 0: none.
static uint32_t tools_of(const body *read) {
  const uint32_t choice = body_find(read, BODY_ROOT, "tool_choice");
  const uint32_t tools = body_find(read, BODY_ROOT, "tools");
  return body_node(read, tools)->count > 0 && !body_is(read, choice, "none") ? tools : 0;
}

static wick_status take_reply(wick_engine *engine, const body *read, const wick_grammar *content,
                              llm_chat *out, wick_error *error) {
  bool has_reasoning, needs_special;
  const wick_text ending = wick_chat_ending(engine, &has_reasoning, &needs_special);
  const uint32_t tools = tools_of(read);
  const bool may_call = tools != 0, is_limited = content->kind != WICK_GRAMMAR_NONE;
  reply_put_constraint(&out->wish, read, tools, content, ending);
  if (out->wish.has_failed) return llm_lack_memory("the conversation", error);
  out->prints_special = may_call || needs_special;
  out->is_optional = reply_is_optional(read) && !is_limited;
  if (may_call || (is_limited && has_reasoning)) {
    out->grammar = (wick_grammar){
        .kind = WICK_GRAMMAR_TOOLS, .text = out->wish.bytes, .text_bytes = out->wish.size_bytes};
  } else {
    out->grammar = *content;
  }
  return wick_reply_create(engine, out->wish.bytes, out->wish.size_bytes, ending.bytes,
                           ending.size_bytes, &out->reply, error);
}

wick_status llm_refuse(const refusal *refused, wick_error *error) {
  static const struct {
    const char *code;
    wick_status status;
  } CODES[] = {{"nomem", WICK_E_NOMEM},
               {"unsupported_value", WICK_E_UNSUPPORTED},
               {"context_length_exceeded", WICK_E_FULL}};
  wick_status status = refused->status >= 500 ? WICK_E_FORMAT : WICK_E_ARG;
  for (size_t i = 0; i < sizeof CODES / sizeof *CODES; i++) {
    if (strcmp(refused->code, CODES[i].code) == 0) status = CODES[i].status;
  }
  *error = (wick_error){.status = status, .offset_bytes = WICK_NO_OFFSET};
  snprintf(error->message, sizeof error->message, "conversation: %.*s",
           (int)sizeof error->message - 16, refused->message);
  return status;
}

bool llm_chat_copy(abi_list conversation, buffer *out, wick_error *error) {
  buffer_put(out, conversation.items, conversation.count);
  buffer_put(out, "", 1);
  if (out->has_failed) llm_lack_memory("the conversation", error);
  return !out->has_failed;
}

static wick_status read_form(wick_engine *engine, const buffer *json, const wick_grammar *content,
                             llm_chat *out, wick_error *error) {
  body read;
  refusal refused = {0};
  const wick_status status = body_read(&read, json->bytes, json->size_bytes - 1, &refused)
                                 ? take_reply(engine, &read, content, out, error)
                                 : llm_refuse(&refused, error);
  body_end(&read);
  return status;
}

static wick_status tokenize(wick_engine *engine, abi_list conversation, const media_set *media,
                            wick_request *request, wick_error *error) {
  wick_chat chat;
  if (media->count > 0) return llm_media_tokenize(engine, conversation, media, request, error);
  wick_chat_default(&chat);
  chat.json = conversation.items;
  chat.json_bytes = conversation.count;
  return wick_chat_tokenize(engine, &chat, &request->tokens, &request->token_count, error);
}

wick_status llm_chat_read(wick_engine *engine, abi_list conversation, const media_set *media,
                          const wick_grammar *content, wick_request *request, llm_chat *out,
                          wick_error *error) {
  buffer json = {0};
  *out = (llm_chat){0};
  wick_status status = tokenize(engine, conversation, media, request, error);
  if (status != WICK_OK) return status;
  status = llm_chat_copy(conversation, &json, error) ? read_form(engine, &json, content, out, error)
                                                     : WICK_E_NOMEM;
  buffer_free(&json);
  if (status != WICK_OK) buffer_free(&out->wish);
  return status;
}
