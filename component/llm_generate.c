// component/llm_generate.c — `generate` of wick:llm, of a model and of a session: a request whose
// text is a stream of strings, and whose end is a future.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llm.h"

// The result, flattened: the ends to read from of stream and future, or an error's code, message,
// setting and offset.
typedef void returned(int32_t is_error, intptr_t stream_or_code, intptr_t future_or_message,
                      intptr_t message_bytes, intptr_t setting, intptr_t setting_bytes,
                      intptr_t has_offset, int64_t offset_bytes);

// A session's function has the same types.
#define GENERATE "[method]model.generate"
LLM_IMPORT("[stream-new-0]" GENERATE) abi_ends text_create(void);
LLM_IMPORT("[async-lower][stream-write-0]" GENERATE)
int32_t text_write(abi_handle stream, const abi_list *pieces, size_t count);
LLM_IMPORT("[stream-drop-writable-0]" GENERATE) void text_drop(abi_handle stream);
LLM_IMPORT("[future-new-1]" GENERATE) abi_ends end_create(void);
LLM_IMPORT("[async-lower][future-write-1]" GENERATE)
int32_t end_write(abi_handle future, const llm_result *end);
LLM_IMPORT("[future-drop-writable-1]" GENERATE) void end_drop(abi_handle future);
LLM_IMPORT("[task-return]" GENERATE) returned generate_return;
LLM_IMPORT("[task-return][method]session.generate") returned say_return;

typedef struct pieces {  // strings that follow each other
  abi_list *list;
  uint32_t count, capacity;
} pieces;

struct llm_task {
  llm_model *model;
  llm_task *next;  // of the model
  uint32_t request, session;
  bool closes_session;
  pieces queued, sending;
  uint32_t sent;  // of `sending`
  bool is_writing, is_gone, is_cancelled, is_done, is_closing, end_waits, lacks_memory;
  abi_handle set, text, end;
  llm_result ending;
  wick_error error;  // that the ending points to
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

static void take_end(llm_task *of, const wick_event *event) {
  of->is_done = true;
  if (event->finish == WICK_FINISH_ERROR) {
    fail(of, (wick_status)event->status, (wick_subject)event->subject, wick_event_text(event),
         event->text_bytes);
  } else if (of->lacks_memory) {
    fail_by(of, WICK_E_NOMEM, "Out of memory for the text");
  } else if (event->finish == WICK_FINISH_ABORT) {
    fail_by(of, WICK_E_ABORTED, "The stream or the session was dropped before the text ended");
  } else {
    of->ending.ending = (llm_ending){
        .finish = event->finish == WICK_FINISH_LENGTH,
        .tokens_prompt = event->tokens_prompt,
        .tokens_cached = event->tokens_cached,
        .tokens_out = event->tokens_out,
    };
  }
}

static void take(llm_task *of, const wick_event *event) {
  const bool is_done = event->kind == WICK_EVENT_DONE;
  if (!is_done && event->kind != WICK_EVENT_TOKEN) return;
  const bool is_text = event->text_bytes > 0 && !(is_done && event->finish == WICK_FINISH_ERROR);
  if (is_text && !of->is_gone && !add(&of->queued, wick_event_text(event), event->text_bytes)) {
    of->lacks_memory = true;
  }
  if (is_done) take_end(of, event);
}

void llm_model_work(llm_model *model) {
  enum { UNITS = 4 };
  wick_step_units(model->engine, UNITS);
  size_t size_bytes;
  const uint8_t *events = wick_events_take(model->engine, &size_bytes);
  const wick_event *event = NULL;
  while ((event = wick_event_next(events, size_bytes, event)) != NULL) {
    llm_task *to = model->generations;
    while (to != NULL && (to->is_done || to->request != event->request)) to = to->next;
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

// Sends the waiting text. False: it has not been taken yet, and until then the request is paused.
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
  if (mine->end_waits) return llm_wait(mine->set);
  set_join(mine->end, 0);
  end_drop(mine->end);
  set_drop(mine->set);
  clear(&mine->queued);
  clear(&mine->sending);
  free(mine->queued.list);
  free(mine->sending.list);
  llm_model_leave(mine->model);
  free(mine);
  return CODE_EXIT;
}

static int32_t go_on(llm_task *mine) {
  if (mine->is_closing) return close_task(mine);
  if ((!mine->is_cancelled || mine->is_done) && !send(mine)) return llm_wait(mine->set);
  if (mine->is_gone || mine->lacks_memory) cancel(mine);
  const bool has_more = mine->sent < mine->sending.count || mine->queued.count > 0;
  if (mine->is_done && (!has_more || mine->is_gone)) {
    begin_closing(mine);
    return close_task(mine);
  }
  if (!mine->is_done) llm_model_work(mine->model);
  return CODE_YIELD;
}

static int32_t go_on_by(int32_t event, abi_handle waitable, int32_t code) {
  llm_task *mine = context_get();
  if (event == EVENT_STREAM_WRITE && waitable == mine->text) have_written(mine, code);
  if (event == EVENT_FUTURE_WRITE && waitable == mine->end) mine->end_waits = false;
  return go_on(mine);
}

// ---- the request ----

typedef struct asked {  // the record `options`, flattened, and the prompt
  abi_list prompt;
  wick_sampling sampling;
  uint32_t max_tokens;
  bool has_control;
  abi_list stops;  // of strings
} asked;

static wick_status submit(llm_model *model, uint32_t session, const asked *what, uint32_t *id,
                          wick_error *error) {
  const uint32_t count = what->stops.count;
  const abi_list *stops = what->stops.items;
  const char **texts = calloc(count + 1, sizeof *texts);
  size_t *sizes = calloc(count + 1, sizeof *sizes);
  wick_status status = WICK_E_NOMEM;
  *error = (wick_error){.status = status,
                        .offset_bytes = WICK_NO_OFFSET,
                        .message = "Out of memory for the stop strings"};
  if (texts != NULL && sizes != NULL) {
    for (uint32_t i = 0; i < count; i++) texts[i] = stops[i].items, sizes[i] = stops[i].count;
    wick_request request;
    wick_request_default(&request);
    request.text = what->prompt.items;
    request.text_bytes = what->prompt.count;
    request.tokenize_flags =
        WICK_TOKENIZE_ADD_SPECIAL | (what->has_control ? WICK_TOKENIZE_PARSE_SPECIAL : 0u);
    request.session = session;
    request.max_tokens = what->max_tokens;
    request.sampling = what->sampling;
    request.stops = texts;
    request.stop_bytes = sizes;
    request.stop_count = count;
    status = wick_request_submit(model->engine, &request, id, error);
  }
  free(texts);
  free(sizes);
  return status;
}

static void return_error(returned *give, const wick_error *error) {
  llm_error told;
  llm_put_error(&told, error);
  give(1, told.code, (intptr_t)told.message.items, (intptr_t)told.message.count,
       (intptr_t)told.setting.items, (intptr_t)told.setting.count, told.has_offset,
       (int64_t)told.offset_bytes);
}

static int32_t begin(llm_model *model, uint32_t session, const asked *what, returned *give) {
  wick_error error;
  llm_task *mine = calloc(1, sizeof *mine);
  if (mine == NULL) abort();
  const wick_status status = submit(model, session, what, &mine->request, &error);
  llm_free(what->prompt);
  abi_free_lists(what->stops);
  if (status != WICK_OK) {
    free(mine);
    return_error(give, &error);
    return CODE_EXIT;
  }
  model->users++;
  mine->model = model;
  mine->session = session;
  mine->next = model->generations;
  model->generations = mine;
  mine->set = set_create();
  const abi_ends text = text_create(), end = end_create();
  mine->text = llm_writable_of(text);
  mine->end = llm_writable_of(end);
  set_join(mine->text, mine->set);
  set_join(mine->end, mine->set);
  context_set(mine);
  give(0, llm_readable_of(text), llm_readable_of(end), 0, 0, 0, 0, 0);
  return CODE_YIELD;
}

// ---- exports ----

// The flat options, as the canonical ABI gives them.
#define OPTIONS                                                                                \
  char *prompt, uint32_t prompt_bytes, uint32_t max_tokens, float temperature, uint32_t top_k, \
      float top_p, float min_p, float repeat_penalty, uint64_t seed, int32_t has_control,      \
      abi_list *stops, uint32_t stop_count
#define ASKED                                                                        \
  {                                                                                  \
    .prompt = {prompt, prompt_bytes},                                                \
    .sampling = sampling_of(temperature, top_k, top_p, min_p, repeat_penalty, seed), \
    .max_tokens = max_tokens, .has_control = has_control != 0, .stops = {            \
      stops,                                                                         \
      stop_count                                                                     \
    }                                                                                \
  }

static wick_sampling sampling_of(float temperature, uint32_t top_k, float top_p, float min_p,
                                 float repeat_penalty, uint64_t seed) {
  wick_request defaults;
  wick_request_default(&defaults);
  wick_sampling sampling = defaults.sampling;
  sampling.temperature = temperature;
  sampling.top_k = top_k;
  sampling.top_p = top_p;
  sampling.min_p = min_p;
  sampling.repeat_penalty = repeat_penalty;
  sampling.seed = seed;
  return sampling;
}

int32_t model_generate(llm_model *model, OPTIONS)
    ABI_EXPORT("[async-lift]" LLM_ENGINE "#[method]model.generate");
int32_t model_generate_event(int32_t event, abi_handle waitable, int32_t code)
    ABI_EXPORT("[callback][async-lift]" LLM_ENGINE "#[method]model.generate");
int32_t session_generate(llm_session *session, OPTIONS)
    ABI_EXPORT("[async-lift]" LLM_ENGINE "#[method]session.generate");
int32_t session_generate_event(int32_t event, abi_handle waitable, int32_t code)
    ABI_EXPORT("[callback][async-lift]" LLM_ENGINE "#[method]session.generate");

int32_t model_generate(llm_model *model, OPTIONS) {
  const asked what = ASKED;
  return begin(model, 0, &what, generate_return);
}

int32_t model_generate_event(int32_t event, abi_handle waitable, int32_t code) {
  return go_on_by(event, waitable, code);
}

int32_t session_generate(llm_session *session, OPTIONS) {
  const asked what = ASKED;
  return begin(session->model, session->id, &what, say_return);
}

int32_t session_generate_event(int32_t event, abi_handle waitable, int32_t code) {
  return go_on_by(event, waitable, code);
}
