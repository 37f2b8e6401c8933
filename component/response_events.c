// component/response_events.c — the events of a streamed response of /v1/responses, built from the
// pieces of a chat completion.
#include <stdio.h>
#include <string.h>

#include "response.h"
#include "shape.h"

// ---- events ----

static void begin_event(answer *to, const char *type) {
  shape_put(&to->out, "event: %r\ndata: {'type':%s,", type, type);
}

static void end_event(answer *to) {
  shape_put(&to->out, ",'sequence_number':%u}\n\n", to->response->sequence++);
}

static void emit_response(answer *to, const char *type, const char *status, const char *problem) {
  if (!to->is_streamed) return;
  begin_event(to, type);
  shape_put(&to->out, "'response':");
  response_put(to, &to->out, status, problem);
  end_event(to);
}

static response_item *last_item(answer *to) {
  return to->response->count == 0 ? NULL : &to->response->items[to->response->count - 1];
}

static void emit_item(answer *to, const char *type) {
  if (!to->is_streamed) return;
  begin_event(to, type);
  shape_put(&to->out, "'output_index':%u,'item':", to->response->count - 1);
  response_put_item(&to->out, last_item(to));
  end_event(to);
}

// Writes the beginning that all events of an item share.
static void begin_of_item(answer *to, const char *type) {
  begin_event(to, type);
  shape_put(&to->out, "'item_id':%s,'output_index':%u,", last_item(to)->id,
            to->response->count - 1);
  if (last_item(to)->kind != ITEM_CALL) shape_put(&to->out, "'content_index':0,");
}

static void emit_part(answer *to, const char *type, bool has_text) {
  if (!to->is_streamed) return;
  begin_of_item(to, type);
  shape_put(&to->out, "'part':");
  response_put_part(&to->out, last_item(to), has_text);
  end_event(to);
}

// Writes a piece of the open item's text or, with the key "text", all of it.
static void emit_text(answer *to, const char *end, const char *key, wick_text text,
                      const buffer *logprobs) {
  const bool is_message = last_item(to)->kind == ITEM_MESSAGE;
  char type[64];
  if (!to->is_streamed) return;
  snprintf(type, sizeof type, "response.%s_text.%s", is_message ? "output" : "reasoning", end);
  begin_of_item(to, type);
  shape_put(&to->out, "'%r':%t", key, text);
  if (is_message) shape_put(&to->out, ",'logprobs':[%j]", logprobs);
  end_event(to);
}

static wick_text whole_of(const buffer *text) { return (wick_text){text->bytes, text->size_bytes}; }

static void emit_call(answer *to) {
  const response_item *item = last_item(to);
  if (!to->is_streamed) return;
  begin_of_item(to, "response.function_call_arguments.done");
  shape_put(&to->out, "'name':%b,'arguments':%b", &item->name, &item->text);
  end_event(to);
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
  if (!to->is_streamed) return;
  begin_of_item(to, "response.function_call_arguments.delta");
  shape_put(&to->out, "'delta':%t", more);
  end_event(to);
}

// ---- the stages of a response ----

static void begin_stream(answer *to) {
  emit_response(to, "response.created", "in_progress", NULL);
  emit_response(to, "response.in_progress", "in_progress", NULL);
}

static void take_delta(answer *to, choice *from, const delta *piece) {
  static const buffer none;
  if (piece->reasoning.size_bytes > 0) write_text(to, ITEM_REASONING, piece->reasoning, &none);
  if (piece->content.size_bytes > 0) {
    write_text(to, ITEM_MESSAGE, piece->content, &from->details.tokens);
  }
  if (piece->is_call) write_call(to, piece);
  details_clear(&from->details);
}

// Reasoning and calls are followed by their tags, which do not belong to any text.
static void take_silence(answer *to, choice *from) {
  const response_item *item = last_item(to);
  if (item != NULL && item->kind != ITEM_MESSAGE) details_clear(&from->details);
}

static void end_stream(answer *to) {
  if (to->response->count == 0) text_item(to, ITEM_MESSAGE);
  if (to->response->count == 0) return;  // out of memory
  const bool has_called = strcmp(choice_finish(&to->choices[0]), "tool_calls") == 0;
  const bool is_broken = last_item(to)->kind == ITEM_CALL && !has_called;
  const char *status = response_status(to);
  close_item(to, is_broken ? "incomplete" : status);
  char type[32];
  snprintf(type, sizeof type, "response.%s", status);
  emit_response(to, type, status, NULL);
  if (to->is_streamed) return;
  response_put(to, &to->out, status, NULL);
  answer_give(to, "application/json");
}

static void fail_stream(answer *to, const char *problem) {
  emit_response(to, "response.failed", "failed", problem);
}

// The end of the stream ends its only choice, too. Without `stream`, no events are written.
const answer_form form_response = {.id = "cmpl",
                                   .prompt = "input",
                                   .constraint = "text",
                                   .begin = begin_stream,
                                   .put_delta = take_delta,
                                   .put_silence = take_silence,
                                   .end = end_stream,
                                   .fail = fail_stream,
                                   .put_whole = response_put_whole};
