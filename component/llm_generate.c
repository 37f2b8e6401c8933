// component/llm_generate.c — a generation of wick:llm in progress: a request whose text is sent as
// a stream of strings and whose end is sent as a future.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "choice.h"
#include "llm.h"

// All functions that generate have the same types.
#define GENERATE "[method]model.generate"
LLM_IMPORT("[stream-new-0]" GENERATE) abi_ends text_create(void);
LLM_IMPORT("[async-lower][stream-write-0]" GENERATE)
int32_t text_write(abi_handle stream, const abi_list *pieces, size_t count);
LLM_IMPORT("[stream-cancel-write-0]" GENERATE) int32_t text_cancel(abi_handle stream);
LLM_IMPORT("[stream-drop-writable-0]" GENERATE) void text_drop(abi_handle stream);
LLM_IMPORT("[future-new-1]" GENERATE) abi_ends end_create(void);
LLM_IMPORT("[async-lower][future-write-1]" GENERATE)
int32_t end_write(abi_handle future, const llm_result *end);
LLM_IMPORT("[future-drop-writable-1]" GENERATE) void end_drop(abi_handle future);

typedef struct pieces {  // consecutive strings
  abi_list *list;
  uint32_t count, capacity;
} pieces;

struct llm_task {
  llm_model *model;
  llm_task *next;  // in the model's list
  uint32_t request, session;
  bool has_parts;       // whether the text is a reply to a conversation
  buffer deltas;        // the deltas of a piece of text
  llm_started waiting;  // waits for its media; `asked` is NULL once it is submitted
  bool closes_session;
  pieces queued, sending;
  uint32_t sent;  // the number of items of `sending` that have been sent
  bool is_writing, is_gone, is_cancelled, is_done, is_closing, end_waits, lacks_memory, is_broken;
  abi_handle set, text, end;
  llm_result ending;
  wick_error error;  // the error that the ending points to
};

// ---- pieces ----

static void clear(pieces *held) {
  for (uint32_t i = 0; i < held->count; i++) free(held->list[i].items);
  held->count = 0;
}

static bool add(pieces *to, const char *text, uint32_t size_bytes) {
  if (to->count == to->capacity) {
    const uint32_t capacity = to->capacity == 0 ? 16 : to->capacity * 2;
    abi_list *grown = realloc(to->list, capacity * sizeof *grown);
    if (grown == NULL) return false;
    to->list = grown;
    to->capacity = capacity;
  }
  char *copy = malloc(size_bytes);
  if (copy == NULL) return false;
  memcpy(copy, text, size_bytes);
  to->list[to->count++] = (abi_list){.items = copy, .count = size_bytes};
  return true;
}

// ---- the engine's events ----

static void fail(llm_task *of, wick_status status, wick_subject subject, const char *message,
                 size_t size_bytes) {
  of->error = (wick_error){.status = status, .subject = subject, .offset_bytes = WICK_NO_OFFSET};
  snprintf(of->error.message, sizeof of->error.message, "%.*s", (int)size_bytes, message);
  of->ending = (llm_result){.is_error = 1};
  llm_put_error(&of->ending.error, &of->error);
}

static void fail_by(llm_task *of, wick_status status, const char *message) {
  fail(of, status, WICK_SUBJECT_NONE, message, strlen(message));
}

static const char DROPPED[] = "The stream or the session was dropped before the text ended";

static void take_end(llm_task *of, const wick_event *event) {
  of->is_done = true;
  if (event->finish == WICK_FINISH_ERROR) {
    fail(of, (wick_status)event->status, (wick_subject)event->subject, wick_event_text(event),
         event->text_bytes);
  } else if (of->lacks_memory) {
    fail_by(of, WICK_E_NOMEM, "Out of memory for the text");
  } else if (of->is_broken) {
    of->ending = (llm_result){.is_error = 1};
    llm_put_error(&of->ending.error, &of->error);
  } else if (event->finish == WICK_FINISH_ABORT) {
    fail_by(of, WICK_E_ABORTED, DROPPED);
  } else {
    of->ending.ending = (llm_ending){
        .finish = event->finish == WICK_FINISH_LENGTH,
        .tokens_prompt = event->tokens_prompt,
        .tokens_cached = event->tokens_cached,
        .tokens_out = event->tokens_out,
    };
  }
}

// Adds a part of the reply, as JSON, to the list for the next piece of text.
static void take_part(llm_task *of, const wick_event *event) {
  const delta part = delta_of(event);
  if (of->is_broken || event->kind == WICK_EVENT_CALL_END) return;
  if (event->kind == WICK_EVENT_CALL_BROKEN) {
    of->is_broken = true;
    fail(of, (wick_status)event->status, WICK_SUBJECT_NONE, wick_event_text(event),
         event->text_bytes);
    return;
  }
  json_writer json;
  buffer_put_text(&of->deltas, of->deltas.size_bytes == 0 ? "[{" : ",{");
  json_begin(&json, buffer_put, &of->deltas);
  delta_write(&json, &part);
  buffer_put_text(&of->deltas, "}");
}

// Adds the text of a TOKEN or DONE event in the form in which it is sent.
static wick_text text_of(llm_task *of, const wick_event *event) {
  if (!of->has_parts) return (wick_text){wick_event_text(event), event->text_bytes};
  if (of->deltas.size_bytes > 0) buffer_put_text(&of->deltas, "]");
  of->lacks_memory |= of->deltas.has_failed;
  return (wick_text){of->deltas.bytes, of->deltas.has_failed ? 0 : of->deltas.size_bytes};
}

static void take(llm_task *of, const wick_event *event) {
  const bool is_done = event->kind == WICK_EVENT_DONE;
  if (event->kind >= WICK_EVENT_CONTENT) take_part(of, event);
  if (!is_done && event->kind != WICK_EVENT_TOKEN) return;
  const bool has_failed = is_done && event->finish == WICK_FINISH_ERROR;
  const wick_text text = text_of(of, event);
  if (!has_failed && text.size_bytes > 0 && !of->is_gone &&
      !add(&of->queued, text.bytes, (uint32_t)text.size_bytes)) {
    of->lacks_memory = true;
  }
  buffer_clear(&of->deltas);
  if (is_done) take_end(of, event);
}

// Does a unit of work for all generations of the model and passes the results to them.
static void work(llm_model *model) {
  enum { UNITS = 4 };
  wick_step_units(model->engine, UNITS);
  size_t size_bytes;
  const uint8_t *events = wick_events_take(model->engine, &size_bytes);
  const wick_event *event = NULL;
  while ((event = wick_event_next(events, size_bytes, event)) != NULL) {
    llm_task *to = model->generations;
    while (to != NULL &&
           (to->is_done || to->waiting.asked != NULL || to->request != event->request)) {
      to = to->next;
    }
    if (to != NULL) take(to, event);
  }
}

// ---- the stream ----

static void cancel(llm_task *mine) {
  if (mine->is_cancelled || mine->is_done) return;
  mine->is_cancelled = true;
  wick_request_pause(mine->model->engine, mine->request, false);
  wick_request_cancel(mine->model->engine, mine->request);
}

bool llm_close_after_request(const llm_session *session) {
  llm_task *on = session->model->generations;
  while (on != NULL && (on->is_done || on->session != session->id)) on = on->next;
  if (on == NULL) return false;
  on->closes_session = true;
  cancel(on);
  return true;
}

static void have_written(llm_task *mine, int32_t status) {
  mine->is_writing = false;
  mine->sent += (uint32_t)status >> STATE_BITS;
  mine->is_gone = (status & STATE_MASK) != STATE_COMPLETED;
  if (!mine->is_done) wick_request_pause(mine->model->engine, mine->request, false);
}

// Sends the waiting text. Returns false if it has not been read yet; until then, the request is
// paused.
static bool send(llm_task *mine) {
  if (mine->is_writing) return false;
  if (mine->sent == mine->sending.count) {
    const pieces sent = mine->sending;
    mine->sending = mine->queued;
    mine->queued = sent;
    clear(&mine->queued);
    mine->sent = 0;
  }
  const uint32_t left = mine->sending.count - mine->sent;
  if (left == 0 || mine->is_gone) return true;
  const int32_t status = text_write(mine->text, mine->sending.list + mine->sent, left);
  mine->is_writing = status == STATUS_BLOCKED;
  if (mine->is_writing && !mine->is_done && !mine->is_cancelled) {
    wick_request_pause(mine->model->engine, mine->request, true);
  }
  if (!mine->is_writing) have_written(mine, status);
  return !mine->is_writing;
}

// ---- the task ----

static void begin_closing(llm_task *mine) {
  llm_task **link = &mine->model->generations;
  while (*link != mine) link = &(*link)->next;
  *link = mine->next;
  if (mine->closes_session) wick_session_close(mine->model->engine, mine->session, NULL);
  set_join(mine->text, 0);
  text_drop(mine->text);
  mine->is_closing = true;
  mine->end_waits = end_write(mine->end, &mine->ending) == STATUS_BLOCKED;
}

static int32_t close_task(llm_task *mine) {
  if (mine->end_waits) return wait_for(mine->set);
  set_join(mine->end, 0);
  end_drop(mine->end);
  set_drop(mine->set);
  clear(&mine->queued);
  clear(&mine->sending);
  free(mine->queued.list);
  free(mine->sending.list);
  buffer_free(&mine->deltas);
  llm_model_leave(mine->model);
  free(mine);
  return CODE_EXIT;
}

// Checks for a reader with an empty write, because its event would not arrive between yields.
static bool has_reader(const llm_task *mine) {
  int32_t status = text_write(mine->text, mine->sending.list, 0);
  if (status == STATUS_BLOCKED) {
    set_join(mine->text, 0);
    status = text_cancel(mine->text);
    set_join(mine->text, mine->set);
  }
  return (status & STATE_MASK) != STATE_DROPPED;
}

// Runs a slice of the encoder, or submits the request once everything is encoded.
static int32_t encode(llm_task *mine) {
  wick_error error;
  bool is_ready = false;
  llm_started *waiting = &mine->waiting;
  if (!has_reader(mine)) {
    llm_request_drop(waiting);
    mine->is_gone = mine->is_done = true;
    fail_by(mine, WICK_E_ABORTED, DROPPED);
    return CODE_YIELD;
  }
  wick_status status = llm_media_step(mine->model->engine, &waiting->media, &is_ready, &error);
  if (status == WICK_OK && !is_ready) return CODE_YIELD;
  if (status == WICK_OK) {
    status = llm_request_submit(waiting, &error);
    mine->request = waiting->request;
  } else {
    llm_request_drop(waiting);
  }
  if (status == WICK_OK) return CODE_YIELD;
  mine->is_done = true;
  fail(mine, status, error.subject, error.message, strlen(error.message));
  return CODE_YIELD;
}

static int32_t go_on(llm_task *mine) {
  if (mine->is_closing) return close_task(mine);
  if (mine->waiting.asked != NULL) return encode(mine);
  if ((!mine->is_cancelled || mine->is_done) && !send(mine)) return wait_for(mine->set);
  if (mine->is_gone || mine->lacks_memory || mine->is_broken) cancel(mine);
  const bool has_more = mine->sent < mine->sending.count || mine->queued.count > 0;
  if (mine->is_done && (!has_more || mine->is_gone)) {
    begin_closing(mine);
    return close_task(mine);
  }
  if (!mine->is_done) work(mine->model);
  return CODE_YIELD;
}

int32_t llm_generation_event(int32_t event, abi_handle waitable, int32_t code) {
  llm_task *mine = context_get();
  if (event == EVENT_STREAM_WRITE && waitable == mine->text) have_written(mine, code);
  if (event == EVENT_FUTURE_WRITE && waitable == mine->end) mine->end_waits = false;
  return go_on(mine);
}

int32_t llm_generation_begin(const llm_started *started, llm_returned *give) {
  llm_task *mine = calloc(1, sizeof *mine);
  if (mine == NULL) abort();
  llm_model *model = started->model;
  model->users++;
  mine->model = model;
  mine->session = started->session;
  mine->request = started->request;
  mine->has_parts = started->has_parts;
  mine->waiting = *started;
  mine->next = model->generations;
  model->generations = mine;
  mine->set = set_create();
  const abi_ends text = text_create(), end = end_create();
  mine->text = writable_of(text);
  mine->end = writable_of(end);
  set_join(mine->text, mine->set);
  set_join(mine->end, mine->set);
  context_set(mine);
  give(0, readable_of(text), readable_of(end), 0, 0, 0, 0, 0);
  return CODE_YIELD;
}
