// library/dialog.c — a conversation that the library keeps: its messages, and a session with their
// tokens. It is part of the C library only.
#include <stdlib.h>
#include <string.h>

#include "api/insides.h"
#include "base/json.h"
#include "base/status.h"

enum { ROOM_BYTES_MIN = 1024 };

// A growable byte buffer.
typedef struct dialog_text {
  char *bytes;
  size_t size_bytes, room_bytes;
  bool is_lost;  // an allocation failed
} dialog_text;

struct wick_dialog {
  wick_engine *engine;
  uint32_t session;
  dialog_text json;   // BEGIN and the messages; END follows when it is submitted
  dialog_text reply;  // the content of the current reply
};

static const char BEGIN[] = "{\"messages\":[", END[] = "]}";

static void append(void *context, const char *bytes, size_t size_bytes) {
  dialog_text *text = context;
  if (size_bytes > text->room_bytes - text->size_bytes && !text->is_lost) {
    const size_t room_bytes = 2 * (text->size_bytes + size_bytes) + ROOM_BYTES_MIN;
    char *more = realloc(text->bytes, room_bytes);
    text->is_lost = more == NULL;
    if (more != NULL) text->bytes = more;
    if (more != NULL) text->room_bytes = room_bytes;
  }
  if (text->is_lost) return;
  memcpy(text->bytes + text->size_bytes, bytes, size_bytes);
  text->size_bytes += size_bytes;
}

static void add_message(dialog_text *json, const char *role, const char *bytes, size_t size_bytes) {
  json_writer writer;
  if (json->size_bytes > strlen(BEGIN)) append(json, ",", 1);
  json_begin(&writer, append, json);
  json_open(&writer, NULL, '{');
  json_text(&writer, "role", role);
  json_string(&writer, "content", bytes, size_bytes);
  json_close(&writer, '{');
}

static wick_status fail_memory(wick_error *error) {
  return fail_with(error, WICK_E_NOMEM, WICK_NO_OFFSET, "out of memory for the dialog's messages");
}

wick_status wick_dialog_create(wick_engine *engine, const char *system, wick_dialog **out,
                               wick_error *error) {
  wick_dialog *dialog = calloc(1, sizeof *dialog);
  *out = NULL;
  if (dialog == NULL) return fail_memory(error);
  dialog->engine = engine;
  append(&dialog->json, BEGIN, strlen(BEGIN));
  if (system != NULL) add_message(&dialog->json, "system", system, strlen(system));
  const wick_status status = dialog->json.is_lost
                                 ? fail_memory(error)
                                 : wick_session_create(engine, &dialog->session, error);
  if (status == WICK_OK) {
    *out = dialog;
  } else {
    wick_dialog_destroy(dialog);
  }
  return status;
}

void wick_dialog_destroy(wick_dialog *dialog) {
  if (dialog == NULL) return;
  if (dialog->session != 0) wick_session_close(dialog->engine, dialog->session, NULL);
  free(dialog->json.bytes);
  free(dialog->reply.bytes);
  free(dialog);
}

// Passes an event to the sink. Returns whether the reply should continue.
static bool take_part(wick_dialog *dialog, const wick_event *event, wick_reply_sink sink,
                      void *context) {
  const bool is_content = event->kind == WICK_EVENT_CONTENT;
  if (!is_content && event->kind != WICK_EVENT_REASONING) return true;
  const char *text = wick_event_text(event);
  if (is_content) append(&dialog->reply, text, event->text_bytes);
  return sink == NULL || sink(context, (wick_event_kind)event->kind, text, event->text_bytes);
}

// Returns the error in a request's last event.
static wick_status end_status(const wick_event *event, wick_error *error) {
  if (event->finish != WICK_FINISH_ERROR) return WICK_OK;
  fail_with(error, (wick_status)event->status, WICK_NO_OFFSET, "%.*s", (int)event->text_bytes,
            wick_event_text(event));
  if (error != NULL) error->subject = (wick_subject)event->subject;
  return (wick_status)event->status;
}

// Reports why the request cannot continue: the model is incomplete, or it waits for the
// caller.
static wick_status stuck_status(wick_step_result result, wick_error *error) {
  if (result == WICK_STEP_WAIT_BYTES) {
    return fail_with(error, WICK_E_NODATA, WICK_NO_OFFSET, "the model is not completely loaded");
  }
  if (result != WICK_STEP_IDLE) return WICK_OK;
  return fail_with(
      error, WICK_E_ARG, WICK_NO_OFFSET,
      "dialog: the request is paused or waits for its host. Submit a conversation instead");
}

// Runs the engine until the request has ended. Events left by other requests are dropped.
static wick_status run(wick_dialog *dialog, uint32_t id, wick_reply_sink sink, void *context,
                       wick_error *error) {
  wick_status status = WICK_OK;
  for (bool continues = true;;) {
    const wick_step_result result = wick_step(dialog->engine, 10000);
    size_t size_bytes;
    const uint8_t *events = wick_events_take(dialog->engine, &size_bytes);
    const wick_event *event = NULL;
    while ((event = wick_event_next(events, size_bytes, event)) != NULL) {
      if (event->request != id) continue;
      if (event->kind == WICK_EVENT_DONE)
        return status == WICK_OK ? end_status(event, error) : status;
      if (continues) continues = take_part(dialog, event, sink, context);
    }
    if (status == WICK_OK && continues) status = stuck_status(result, error);
    if (!continues || status != WICK_OK) wick_request_cancel(dialog->engine, id);
  }
}

// Submits a request for a reply to the messages.
static wick_status submit(wick_dialog *dialog, const wick_request *settings, uint32_t *id,
                          wick_error *error) {
  dialog_text *json = &dialog->json;
  append(json, END, strlen(END));
  if (json->is_lost) return WICK_E_NOMEM;
  const wick_conversation conversation = {
      .chat = {.json = json->bytes, .json_bytes = json->size_bytes}};
  wick_request request;
  wick_request_default(&request);
  if (settings != NULL) request = *settings;
  request.session = dialog->session;
  request.conversation = &conversation;
  const wick_status status = wick_request_submit(dialog->engine, &request, id, error);
  json->size_bytes -= strlen(END);
  return status;
}

// Rejects a reply while other requests run, because they would lose their events, and while a sink
// of the dialog runs, because its reply would lose them, too.
static wick_status check_idle(const wick_engine *engine, wick_error *error) {
  wick_stats stats;
  wick_stats_get(engine, &stats);
  uint32_t others = stats.running + stats.waiting + stats.paused;
  if (engine->is_in_dialog && others == 0)
    others = 1;  // the request has ended, but its events are being read
  if (others == 0) return WICK_OK;
  return fail_with(error, WICK_E_BUSY, WICK_NO_OFFSET,
                   "a dialog cannot ask while the engine has other requests (%u): submit "
                   "conversations instead",
                   (unsigned)others);
}

wick_status wick_dialog_ask(wick_dialog *dialog, const char *question, const wick_request *settings,
                            wick_reply_sink sink, void *context, wick_error *error) {
  dialog_text *json = &dialog->json, *reply = &dialog->reply;
  const size_t kept_bytes = json->size_bytes;
  uint32_t id;
  wick_status status = check_idle(dialog->engine, error);
  if (status != WICK_OK) return status;
  reply->size_bytes = 0;
  add_message(json, "user", question, strlen(question));
  status = submit(dialog, settings, &id, error);
  dialog->engine->is_in_dialog = true;
  if (status == WICK_OK) status = run(dialog, id, sink, context, error);
  dialog->engine->is_in_dialog = false;
  if (status == WICK_OK) add_message(json, "assistant", reply->bytes, reply->size_bytes);
  if (json->is_lost || reply->is_lost) status = fail_memory(error);
  if (status != WICK_OK) json->size_bytes = kept_bytes;
  json->is_lost = reply->is_lost = false;
  return status;
}
