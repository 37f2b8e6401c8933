// component/response_shape.c — the object of /v1/responses, and the items of its output.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "response.h"
#include "shape.h"

// ---- members that stay the same in all events ----

// Returns the JSON of a member; `other` if it is missing.
static wick_text own(const body *read, uint32_t node, const char *other) {
  return node == 0 ? (wick_text){other, strlen(other)} : body_source(read, node);
}

static void put_head(buffer *out, const server *of, const body *read) {
  char name[RANDOM_NAME_BYTES];
  random_name(name);
#define OWN(name, other) own(read, body_field(read, name), other)
  shape_put(out,
            "'id':'resp_%r','object':'response','created_at':%D,'model':%s,'background':false,"
            "'instructions':%T,'max_output_tokens':%T,'metadata':%T,'parallel_tool_calls':%T,"
            "'previous_response_id':null,'reasoning':{'effort':null,'summary':null},"
            "'store':false,'temperature':%T,'text':{'format':%T},'tool_choice':%T,'tools':%T,"
            "'top_logprobs':%T,'top_p':%T,'truncation':'disabled','user':%T",
            name, (int64_t)time(NULL), of->model, OWN("instructions", "null"),
            OWN("max_output_tokens", "null"), OWN("metadata", "{}"),
            OWN("parallel_tool_calls", "true"), OWN("temperature", "null"),
            own(read, body_find(read, body_field(read, "text"), "format"), "{\"type\":\"text\"}"),
            OWN("tool_choice", "\"auto\""), OWN("tools", "[]"), OWN("top_logprobs", "0"),
            OWN("top_p", "null"), OWN("user", "null"));
#undef OWN
}

bool response_make(answer *to, const body *read, refusal *refused) {
  to->response = calloc(1, sizeof *to->response);
  if (to->response != NULL) put_head(&to->response->head, to->of, read);
  return (to->response != NULL && !to->response->head.has_failed) || refuse_memory(refused, NULL);
}

void response_free(answer *to) {
  response *held = to->response;
  if (held == NULL) return;
  for (uint32_t i = 0; i < held->count; i++) {
    buffer_free(&held->items[i].text);
    buffer_free(&held->items[i].logprobs);
    buffer_free(&held->items[i].name);
  }
  free(held->items);
  buffer_free(&held->head);
  free(held);
  to->response = NULL;
}

// ---- items ----

response_item *response_add_item(answer *to, item_kind kind, const char *status) {
  static const char *const PREFIXES[] = {"msg", "rs", "fc"};
  enum { ITEMS_MIN = 4 };
  response *held = to->response;
  if (held->count == held->capacity) {
    const uint32_t capacity = held->capacity == 0 ? ITEMS_MIN : 2 * held->capacity;
    response_item *grown = realloc(held->items, capacity * sizeof *grown);
    if (grown == NULL) {
      to->out.has_failed = true;
      return NULL;
    }
    held->items = grown;
    held->capacity = capacity;
  }
  response_item *item = &held->items[held->count++];
  char name[RANDOM_NAME_BYTES];
  random_name(name);
  *item = (response_item){.kind = kind, .status = status};
  snprintf(item->id, sizeof item->id, "%s_%s", PREFIXES[kind], name);
  return item;
}

void response_put_part(buffer *out, const response_item *item, bool has_text) {
  static const buffer NOTHING = {0};
  const buffer *text = has_text ? &item->text : &NOTHING;
  if (item->kind == ITEM_REASONING) {
    shape_put(out, "{'type':'reasoning_text','text':%b}", text);
  } else {
    shape_put(out, "{'type':'output_text','text':%b,'annotations':[],'logprobs':[%j]}", text,
              has_text ? &item->logprobs : &NOTHING);
  }
}

void response_put_item(buffer *out, const response_item *item) {
  static const char *const TYPES[] = {"message", "reasoning", "function_call"};
  static const buffer NOTHING = {0};
  shape_put(out, "{'type':%s,'id':%s,'status':%s,", TYPES[item->kind], item->id, item->status);
  if (item->kind == ITEM_CALL) {
    shape_put(out, "'call_id':%s,'name':%b,'arguments':%b}", item->call, &item->name,
              item->is_open ? &NOTHING : &item->text);
    return;
  }
  shape_put(out, item->kind == ITEM_MESSAGE ? "'role':'assistant','content':["
                                            : "'summary':[],'content':[");
  if (!item->is_open) response_put_part(out, item, true);
  buffer_put_text(out, "]}");
}

// ---- the object ----

void response_put(const answer *of, buffer *out, const char *status, const char *problem) {
  const response *held = of->response;
  const choice *from = &of->choices[0];
  const bool is_cut = strcmp(status, "incomplete") == 0;
  shape_put(out, "{%j,'status':%s,", &held->head, status);
  if (status[0] == 'f') shape_put(out, "'error':{'code':'server_error','message':%s},", problem);
  if (status[0] != 'f') shape_put(out, "'error':null,");
  shape_put(out, "'incomplete_details':%r,'output':[",
            is_cut ? "{\"reason\":\"max_output_tokens\"}" : "null");
  for (uint32_t i = 0; i < held->count; i++) {
    if (i > 0) buffer_put_text(out, ",");
    response_put_item(out, &held->items[i]);
  }
  if (!is_cut && status[0] != 'c') {
    shape_put(out, "],'usage':null}");
    return;
  }
  shape_put(out,
            "],'usage':{'input_tokens':%u,'input_tokens_details':{'cached_tokens':%u},"
            "'output_tokens':%u,'output_tokens_details':{'reasoning_tokens':0},"
            "'total_tokens':%U}}",
            from->tokens_prompt, from->tokens_cached, from->tokens_out,
            (uint64_t)from->tokens_prompt + from->tokens_out);
}

const char *response_status(const answer *of) {
  return of->choices[0].finish[0] == 'l' ? "incomplete" : "completed";
}

// ---- the object of a whole completion ----

static void add_text(answer *to, item_kind kind, const buffer *text, const char *status) {
  response_item *item = response_add_item(to, kind, status);
  if (item != NULL) buffer_put(&item->text, text->bytes, text->size_bytes);
}

static void add_call(answer *to, const call *made) {
  response_item *item = response_add_item(to, ITEM_CALL, "completed");
  if (item == NULL) return;
  snprintf(item->call, sizeof item->call, "%s", made->id);
  buffer_put(&item->name, made->name.bytes, made->name.size_bytes);
  buffer_put(&item->text, made->arguments.bytes, made->arguments.size_bytes);
}

void response_put_whole(answer *to) {
  const choice *from = &to->choices[0];
  const bool has_calls = from->call_count > 0;
  if (from->reasoning.size_bytes > 0) {
    add_text(to, ITEM_REASONING, &from->reasoning, "completed");
  }
  if (from->content.size_bytes > 0 || !has_calls) {
    add_text(to, ITEM_MESSAGE, &from->content, has_calls ? "completed" : response_status(to));
  }
  for (uint32_t i = 0; i < from->call_count; i++) add_call(to, &from->calls[i]);
  response_put(to, &to->out, response_status(to), NULL);
}
