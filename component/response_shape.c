// component/response_shape.c — the object of /v1/responses, and the items of its output.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "response.h"

// ---- members that stay the same in all events ----

// Writes a member of the body unchanged, or `other` if it is missing.
static void put_own(json_writer *json, buffer *out, const body *read, const char *name,
                    const char *other) {
  const uint32_t node = body_find(read, BODY_ROOT, name);
  json_member(json, name);
  if (node == 0) buffer_put_text(out, other);
  if (node != 0) buffer_put(out, body_source(read, node).bytes, body_source(read, node).size_bytes);
}

static void put_text_format(json_writer *json, buffer *out, const body *read) {
  const uint32_t format = body_find(read, body_find(read, BODY_ROOT, "text"), "format");
  json_open(json, "text", '{');
  json_member(json, "format");
  if (format == 0) buffer_put_text(out, "{\"type\":\"text\"}");
  if (format != 0) {
    buffer_put(out, body_source(read, format).bytes, body_source(read, format).size_bytes);
  }
  json_close(json, '{');
}

static void put_head(buffer *out, const server *of, const body *read) {
  char name[RANDOM_NAME_BYTES], id[RANDOM_NAME_BYTES + 5];
  random_name(name);
  snprintf(id, sizeof id, "resp_%s", name);
  json_writer json;
  json_begin(&json, buffer_put, out);
  json_text(&json, "id", id);
  json_text(&json, "object", "response");
  json_i64(&json, "created_at", (int64_t)time(NULL));
  json_text(&json, "model", of->model);
  json_bool(&json, "background", false);
  put_own(&json, out, read, "instructions", "null");
  put_own(&json, out, read, "max_output_tokens", "null");
  put_own(&json, out, read, "metadata", "{}");
  put_own(&json, out, read, "parallel_tool_calls", "true");
  json_text(&json, "previous_response_id", NULL);
  json_member(&json, "reasoning");
  buffer_put_text(out, "{\"effort\":null,\"summary\":null}");
  json_bool(&json, "store", false);  // responses are not stored
  put_own(&json, out, read, "temperature", "null");
  put_text_format(&json, out, read);
  put_own(&json, out, read, "tool_choice", "\"auto\"");
  put_own(&json, out, read, "tools", "[]");
  put_own(&json, out, read, "top_logprobs", "0");
  put_own(&json, out, read, "top_p", "null");
  json_text(&json, "truncation", "disabled");
  put_own(&json, out, read, "user", "null");
}

bool response_make(const server *of, answer *to, const body *read, refusal *refused) {
  to->response = calloc(1, sizeof *to->response);
  if (to->response != NULL) put_head(&to->response->head, of, read);
  return (to->response != NULL && !to->response->head.has_failed) ||
         refuse(refused, 503, "nomem", NULL, "Out of memory");
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

void response_put_part(json_writer *json, buffer *out, const char *key, const response_item *item,
                       bool has_text) {
  json_open(json, key, '{');
  json_text(json, "type", item->kind == ITEM_MESSAGE ? "output_text" : "reasoning_text");
  json_string(json, "text", item->text.bytes, has_text ? item->text.size_bytes : 0);
  if (item->kind == ITEM_MESSAGE) {
    json_member(json, "annotations");
    buffer_put_text(out, "[]");
    json_member(json, "logprobs");
    buffer_put_text(out, "[");
    if (has_text) buffer_put(out, item->logprobs.bytes, item->logprobs.size_bytes);
    buffer_put_text(out, "]");
  }
  json_close(json, '{');
}

void response_put_item(json_writer *json, buffer *out, const response_item *item) {
  static const char *const TYPES[] = {"message", "reasoning", "function_call"};
  const size_t shown = item->is_open ? 0 : item->text.size_bytes;
  json_text(json, "type", TYPES[item->kind]);
  json_text(json, "id", item->id);
  json_text(json, "status", item->status);
  if (item->kind == ITEM_CALL) {
    json_text(json, "call_id", item->call);
    json_string(json, "name", item->name.bytes, item->name.size_bytes);
    json_string(json, "arguments", item->text.bytes, shown);
    return;
  }
  if (item->kind == ITEM_MESSAGE) json_text(json, "role", "assistant");
  if (item->kind == ITEM_REASONING) json_member(json, "summary");
  if (item->kind == ITEM_REASONING) buffer_put_text(out, "[]");
  json_open(json, "content", '[');
  if (!item->is_open) response_put_part(json, out, NULL, item, true);
  json_close(json, '[');
}

// ---- the object ----

static void put_usage(json_writer *json, const choice *from) {
  json_open(json, "usage", '{');
  json_u64(json, "input_tokens", from->tokens_prompt);
  json_open(json, "input_tokens_details", '{');
  json_u64(json, "cached_tokens", from->tokens_cached);
  json_close(json, '{');
  json_u64(json, "output_tokens", from->tokens_out);
  json_open(json, "output_tokens_details", '{');
  json_u64(json, "reasoning_tokens", 0);
  json_close(json, '{');
  json_u64(json, "total_tokens", (uint64_t)from->tokens_prompt + from->tokens_out);
  json_close(json, '{');
}

static void put_error(json_writer *json, const char *problem) {
  json_open(json, "error", '{');
  json_text(json, "code", "server_error");
  json_text(json, "message", problem);
  json_close(json, '{');
}

void response_put(json_writer *json, const answer *of, buffer *out, const char *key,
                  const char *status, const char *problem) {
  const response *held = of->response;
  const bool has_failed = status[0] == 'f', is_cut = strcmp(status, "incomplete") == 0;
  const bool has_ended = is_cut || status[0] == 'c';
  json_open(json, key, '{');
  buffer_put(out, held->head.bytes, held->head.size_bytes);
  json->needs_comma = true;
  json_text(json, "status", status);
  if (has_failed) put_error(json, problem);
  if (!has_failed) json_text(json, "error", NULL);
  if (is_cut) json_open(json, "incomplete_details", '{');
  if (is_cut) json_text(json, "reason", "max_output_tokens");
  if (is_cut) json_close(json, '{');
  if (!is_cut) json_text(json, "incomplete_details", NULL);
  json_open(json, "output", '[');
  for (uint32_t i = 0; i < held->count; i++) {
    json_open(json, NULL, '{');
    response_put_item(json, out, &held->items[i]);
    json_close(json, '{');
  }
  json_close(json, '[');
  if (has_ended) put_usage(json, &of->choices[0]);
  if (!has_ended) json_text(json, "usage", NULL);
  json_close(json, '{');
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
  json_writer json;
  json_begin(&json, buffer_put, &to->out);
  response_put(&json, to, &to->out, NULL, response_status(to), NULL);
}
