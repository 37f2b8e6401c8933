// cli/generation.c — the loop around wick_step.
#include "cli/generation.h"

#include <string.h>

enum { STEP_US = 10000 };  // the maximum time that text waits in the buffer

typedef struct generation_loop {
  wick_engine *engine;
  generation_on_token on_token;
  void *context;
  uint32_t request;
  generation *done;
  uint64_t calls_first;  // calls to the memory gate up to the first token
  uint32_t tokens;
  bool is_done;
  exit_code code;
} generation_loop;

const char *generation_finish_name(uint32_t finish) {
  static const char *const names[] = {"none", "stop", "length", "abort", "error"};
  return finish < sizeof names / sizeof names[0] ? names[finish] : "?";
}

exit_code generation_report_error(const char *what, const wick_event *end) {
  wick_error error = {.status = (wick_status)end->status, .offset_bytes = WICK_NO_OFFSET};
  const size_t room = sizeof error.message - 1;
  const size_t size = end->text_bytes < room ? end->text_bytes : room;
  memcpy(error.message, wick_event_text(end), size);
  return report_error(what, &error);
}

static void take_token(generation_loop *loop, const wick_event *event) {
  wick_memory_state memory;
  wick_memory_get_state(loop->engine, &memory);
  if (event->kind == WICK_EVENT_TOKEN && loop->tokens++ == 0) loop->calls_first = memory.calls;
  if (loop->tokens > 0) loop->done->decode_allocations = memory.calls - loop->calls_first;
  if (loop->on_token != NULL && !loop->on_token(loop->context, loop->engine, event)) {
    wick_request_cancel(loop->engine, loop->request);
  }
}

static void take_end(generation_loop *loop, const wick_event *event) {
  loop->is_done = true;
  loop->done->end = *event;
  if (event->finish == WICK_FINISH_ERROR) loop->code = generation_report_error("generation", event);
}

static void take_events(generation_loop *loop) {
  size_t size_bytes;
  const uint8_t *bytes = wick_events_take(loop->engine, &size_bytes);
  const wick_event *event = NULL;
  while (!loop->is_done && (event = wick_event_next(bytes, size_bytes, event)) != NULL) {
    const bool is_part = event->kind >= WICK_EVENT_CONTENT;
    if (is_part || event->kind == WICK_EVENT_TOKEN) take_token(loop, event);
    if (event->kind == WICK_EVENT_DONE) take_end(loop, event);
  }
}

exit_code generation_report_refusal(const wick_error *error) {
  if (error->subject != WICK_SUBJECT_GRAMMAR) return report_error("prompt", error);
  report_error("the grammar", error);
  return EXIT_USAGE;
}

static exit_code follow(generation_loop *loop, uint64_t step_us) {
  *loop->done = (generation){0};
  while (!loop->is_done) {
    const wick_step_result result = wick_step(loop->engine, step_us);
    take_events(loop);
    if (result == WICK_STEP_PROGRESS || loop->is_done) continue;
    report("the engine stopped before the request ended");
    return EXIT_INTERNAL;
  }
  return loop->code;
}

static exit_code run_loop(generation_loop *loop, const wick_request *request, uint64_t step_us) {
  wick_error error;
  if (wick_request_submit(loop->engine, request, &loop->request, &error) != WICK_OK) {
    return error.subject == WICK_SUBJECT_TEMPLATE ? report_error("chat", &error)
                                                  : generation_report_refusal(&error);
  }
  return follow(loop, step_us);
}

exit_code generation_run(wick_engine *engine, const wick_request *request,
                         generation_on_token on_token, void *context, generation *done) {
  generation_loop loop = {.engine = engine, .on_token = on_token, .context = context, .done = done};
  return run_loop(&loop, request, STEP_US);
}

exit_code generation_run_stepwise(wick_engine *engine, const wick_request *request,
                                  generation_on_token on_token, void *context, generation *done) {
  generation_loop loop = {.engine = engine, .on_token = on_token, .context = context, .done = done};
  return run_loop(&loop, request, 0);
}

exit_code generation_follow(wick_engine *engine, uint32_t request, generation_on_token on_token,
                            void *context, generation *done) {
  generation_loop loop = {
      .engine = engine, .on_token = on_token, .context = context, .request = request, .done = done};
  return follow(&loop, STEP_US);
}
