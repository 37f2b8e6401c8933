// component/response_events.c — the events of a streamed response of /v1/responses, built from the
// pieces of a chat completion.
#include <stdio.h>
#include <string.h>

#include "response.h"

// ---- events ----

static void begin_event(json_writer *json, answer *to, const char *type) {
  buffer_put_text(&to->out, "event: ");
  buffer_put_text(&to->out, type);
  buffer_put_text(&to->out, "\ndata: ");
  json_begin(json, buffer_put, &to->out);
  json_open(json, NULL, '{');
  json_text(json, "type", type);
}

static void end_event(json_writer *json, answer *to) {
  json_u64(json, "sequence_number", to->response->sequence++);
  json_close(json, '{');
  buffer_put_text(&to->out, "\n\n");
}

static void emit_response(answer *to, const char *type, const char *status, const char *problem) {
  json_writer json;
  if (!to->is_streamed) return;
  begin_event(&json, to, type);
  response_put(&json, to, &to->out, "response", status, problem);
  end_event(&json, to);
}

static response_item *last_item(answer *to) {
  return to->response->count == 0 ? NULL : &to->response->items[to->response->count - 1];
}

static void emit_item(answer *to, const char *type) {
  json_writer json;
  if (!to->is_streamed) return;
  begin_event(&json, to, type);
  json_u64(&json, "output_index", to->response->count - 1);
  json_open(&json, "item", '{');
  response_put_item(&json, &to->out, last_item(to));
  json_close(&json, '{');
  end_event(&json, to);
}

// Writes the beginning that all events of an item share.
static void begin_of_item(json_writer *json, answer *to, const char *type) {
  begin_event(json, to, type);
  json_text(json, "item_id", last_item(to)->id);
  json_u64(json, "output_index", to->response->count - 1);
  if (last_item(to)->kind != ITEM_CALL) json_u64(json, "content_index", 0);
}

static void emit_part(answer *to, const char *type, bool has_text) {
  json_writer json;
  if (!to->is_streamed) return;
  begin_of_item(&json, to, type);
  response_put_part(&json, &to->out, "part", last_item(to), has_text);
  end_event(&json, to);
}

// Writes a piece of the open item's text or, with the key "text", all of it.
static void emit_text(answer *to, const char *end, const char *key, wick_text text,
                      const buffer *logprobs) {
  const bool is_message = last_item(to)->kind == ITEM_MESSAGE;
  char type[64];
  json_writer json;
  if (!to->is_streamed) return;
  snprintf(type, sizeof type, "response.%s_text.%s", is_message ? "output" : "reasoning", end);
  begin_of_item(&json, to, type);
  json_string(&json, key, text.bytes, text.size_bytes);
  if (is_message) {
    json_member(&json, "logprobs");
    buffer_put_text(&to->out, "[");
    buffer_put(&to->out, logprobs->bytes, logprobs->size_bytes);
    buffer_put_text(&to->out, "]");
  }
  end_event(&json, to);
}

static wick_text whole_of(const buffer *text) { return (wick_text){text->bytes, text->size_bytes}; }

static void emit_call(answer *to) {
  const response_item *item = last_item(to);
  json_writer json;
  if (!to->is_streamed) return;
  begin_of_item(&json, to, "response.function_call_arguments.done");
  json_string(&json, "name", item->name.bytes, item->name.size_bytes);
  json_string(&json, "arguments", item->text.bytes, item->text.size_bytes);
  end_event(&json, to);
}

// ---- items ----

// Ends the open item, if there is one.
static void close_item(answer *to, const char *status) {
  response_item *item = last_item(to);
  if (item == NULL || !item->is_open) return;
  item->is_open = false;
  item->status = status;
  if (item->kind == ITEM_CALL) {
    emit_call(to);
  } else {
    emit_text(to, "done", "text", whole_of(&item->text), &item->logprobs);
    emit_part(to, "response.content_part.done", true);
  }
  emit_item(to, "response.output_item.done");
}

static response_item *open_item(answer *to, item_kind kind) {
  close_item(to, "completed");
  response_item *item = response_add_item(to, kind, "in_progress");
  if (item != NULL) item->is_open = true;
  return item;
}

// Returns the open item of this kind, opening one if necessary; NULL: no memory.
static response_item *text_item(answer *to, item_kind kind) {
  response_item *item = last_item(to);
  if (item != NULL && item->is_open && item->kind == kind) return item;
  item = open_item(to, kind);
  if (item == NULL) return NULL;
  emit_item(to, "response.output_item.added");
  emit_part(to, "response.content_part.added", false);
  return item;
}

static void write_text(answer *to, item_kind kind, wick_text text, const buffer *logprobs) {
  response_item *item = text_item(to, kind);
  if (item == NULL || text.size_bytes == 0) return;
  buffer_put(&item->text, text.bytes, text.size_bytes);
  if (item->logprobs.size_bytes > 0 && logprobs->size_bytes > 0) {
    buffer_put_text(&item->logprobs, ",");
  }
  buffer_put(&item->logprobs, logprobs->bytes, logprobs->size_bytes);
  emit_text(to, "delta", "delta", text, logprobs);
}

static void write_call(answer *to, const delta *piece) {
  response_item *item = last_item(to);
  const bool is_open = item != NULL && item->is_open && item->kind == ITEM_CALL &&
                       to->response->call_index == piece->call_index;
  if (!is_open) {
    item = open_item(to, ITEM_CALL);
    if (item == NULL) return;
    to->response->call_index = piece->call_index;
    snprintf(item->call, sizeof item->call, "%s", piece->call_id);
    buffer_put(&item->name, piece->call_name.bytes, piece->call_name.size_bytes);
    emit_item(to, "response.output_item.added");
  }
  const wick_text more = piece->call_arguments;
  if (more.size_bytes == 0) return;
  buffer_put(&item->text, more.bytes, more.size_bytes);
  json_writer json;
  if (!to->is_streamed) return;
  begin_of_item(&json, to, "response.function_call_arguments.delta");
  json_string(&json, "delta", more.bytes, more.size_bytes);
  end_event(&json, to);
}

// ---- the stages of a response ----

void response_begin_stream(answer *to) {
  answer_give(to, "text/event-stream; charset=utf-8");
  emit_response(to, "response.created", "in_progress", NULL);
  emit_response(to, "response.in_progress", "in_progress", NULL);
}

void response_take_delta(answer *to, choice *from, const delta *piece) {
  static const buffer none;
  if (piece->reasoning.size_bytes > 0) write_text(to, ITEM_REASONING, piece->reasoning, &none);
  if (piece->content.size_bytes > 0) {
    write_text(to, ITEM_MESSAGE, piece->content, &from->details.tokens);
  }
  if (piece->is_call) write_call(to, piece);
  details_clear(&from->details);
}

// Reasoning and calls are followed by their tags, which do not belong to any text.
void response_take_silence(answer *to, choice *from) {
  const response_item *item = last_item(to);
  if (item != NULL && item->kind != ITEM_MESSAGE) details_clear(&from->details);
}

void response_end_stream(answer *to) {
  const choice *from = &to->choices[0];
  if (to->response->count == 0) text_item(to, ITEM_MESSAGE);
  if (to->response->count == 0) return;  // out of memory
  const bool has_called = from->has_called && from->finish[0] == 's';
  const bool is_broken = last_item(to)->kind == ITEM_CALL && !has_called;
  const char *status = response_status(to);
  close_item(to, is_broken ? "incomplete" : status);
  char type[32];
  snprintf(type, sizeof type, "response.%s", status);
  emit_response(to, type, status, NULL);
  if (to->is_streamed) return;
  json_writer json;
  json_begin(&json, buffer_put, &to->out);
  response_put(&json, to, &to->out, NULL, status, NULL);
  answer_give(to, "application/json");
}

void response_fail_stream(answer *to, const char *problem) {
  emit_response(to, "response.failed", "failed", problem);
}
