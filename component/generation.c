// component/generation.c — the completions of an answer, from the queue to the last event.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "native.h"
#include "platform/platform.h"
#include "response.h"
#include "shape.h"

bool generation_prepare(answer *to, const answer_form *form, const wanted *asked,
                        uint32_t choice_count, refusal *refused) {
  char name[RANDOM_NAME_BYTES];
  random_name(name);
  if (form->id != NULL) snprintf(to->id, sizeof to->id, "%s-%s", form->id, name);
  to->form = form;
  to->details_form = form->details;
  to->created_s = (int64_t)time(NULL);
  to->is_streamed = asked->is_streamed;
  to->includes_usage = asked->includes_usage;
  to->has_logprobs = asked->request.sampling.logprob;
  to->alternatives = asked->request.sampling.logprobs;
  to->choices_a_prompt = asked->request.completions;
  for (uint32_t i = 0; i < asked->request.stop_count; i++) {
    const wick_text stop = {asked->request.stops[i], asked->request.stop_bytes[i]};
    shape_put(&to->stops, "%t", stop);
    buffer_put(&to->stops, "", 1);
  }
  if (to->stops.has_failed) return refuse_memory(refused, NULL);
  to->choices = calloc(choice_count, sizeof *to->choices);
  if (to->choices == NULL) return refuse_memory(refused, NULL);
  to->choice_count = choice_count;
  return true;
}

bool generation_submit(answer *to, uint32_t first, const wanted *asked, refusal *refused) {
  uint32_t id;
  wick_error error;
  if (wick_request_submit(to->of->engine, &asked->request, &id, &error) != WICK_OK) {
    return refuse_error(refused, &error, to->form->prompt, to->form->constraint);
  }
  for (uint32_t i = 0; i < asked->request.completions; i++) {
    to->choices[first + i].request = id + i;
    to->choices[first + i].is_open = true;
    to->choices[first + i].has_parts = asked->request.conversation != NULL;
    to->choices_open++;
  }
  return true;
}

// Writes the end of an answer whose choices have all ended.
static void finish(answer *to) {
  if (!to->sends_pieces) answer_give_json(to);
  to->is_done = true;
  void (*put)(answer *) = to->sends_pieces ? to->form->end : to->form->put_whole;
  if (put != NULL) put(to);
}

void generation_start(answer *to) {
  to->status = 200;
  to->content_type = "application/json";
  to->sends_pieces = to->is_streamed || (to->form == &form_response && to->has_logprobs);
  if (to->is_streamed) answer_give(to, "text/event-stream; charset=utf-8");
  if (to->is_streamed && to->form->begin != NULL) to->form->begin(to);
  if (to->choices_open == 0) finish(to);  // only echoes
}

// ---- events ----

void generation_cancel(answer *to) {
  for (uint32_t i = 0; i < to->choice_count; i++) {
    choice *one = &to->choices[i];
    if (one->is_open) wick_request_cancel(to->of->engine, one->request);
    if (one->is_echo_open) wick_request_cancel(to->of->engine, one->echo_request);
    one->is_open = one->is_echo_open = false;
  }
  to->choices_open = 0;
}

// Ends an answer with a failure. A cancellation would invalidate the events that are being handled,
// so the server cancels the rest later. An error is the last event of a stream, and the status of
// any other response.
static void fail(answer *to, const refusal *failure) {
  if (!to->has_head) {
    answer_refuse(to, failure);
    return;
  }
  to->is_done = true;
  to->refused = *failure;
  if (to->form->fail != NULL) {
    to->form->fail(to, failure->message);
    return;
  }
  buffer_put_text(&to->out, "data: ");
  refusal_write(failure, &to->out);
  buffer_put_text(&to->out, "\n\n");
}

static void stream_delta(void *context, choice *from, const delta *piece) {
  answer *to = context;
  to->form->put_delta(to, from, piece);
}

static void end_choice(choice *ended, const wick_event *event) {
  ended->is_open = false;
  ended->finish = event->finish == WICK_FINISH_LENGTH ? "length" : "stop";
  ended->stop = event->stop;
  ended->tokens_prompt = event->tokens_prompt;
  ended->tokens_cached = event->tokens_cached;
  ended->tokens_out = event->tokens_out;
  ended->queue_ms = event->queue_ms;
  ended->prefill_ms = event->prefill_ms;
  ended->decode_ms = event->decode_ms;
  ended->ttft_ms = event->ttft_ms;
}

static bool fail_by(answer *to, const wick_event *event) {
  refusal failure = {0};
  wick_error error = {.status = (wick_status)event->status,
                      .subject = (wick_subject)event->subject};
  snprintf(error.message, sizeof error.message, "%.*s", (int)event->text_bytes,
           wick_event_text(event));
  refuse_error(&failure, &error, NULL, NULL);
  fail(to, &failure);
  return true;
}

static void take_piece(answer *to, choice *from, const wick_event *event) {
  const bool is_done = event->kind == WICK_EVENT_DONE;
  const bool has_token = event->kind == WICK_EVENT_TOKEN && event->token >= 0;
  if (to->first_us == 0) to->first_us = platform_now_us();
  if (has_token) from->tokens_out++;
  if (has_token && to->has_logprobs) {
    details_add(&from->details, to->of->engine, event, to->alternatives, to->details_form);
  }
  if (has_token && to->native != NULL) native_take_token(to, from, event->token);
  if (is_done) end_choice(from, event);
  choice_read(from, event, to->sends_pieces ? stream_delta : choice_keep, to);
  if (to->sends_pieces && to->form->put_silence != NULL) to->form->put_silence(to, from);
  if (is_done) to->choices_open--;
  if (is_done && to->sends_pieces && to->form->put_end != NULL) to->form->put_end(to, from);
  if (to->out.has_failed || from->content.has_failed) {
    refusal failure = {0};
    refuse_memory(&failure, "the answer");
    fail(to, &failure);
  } else if (to->choices_open == 0) {
    finish(to);
  }
}

static void take_echo(answer *to, choice *from, const wick_event *event) {
  refusal refused = {0};
  if (event->kind == WICK_EVENT_TOKEN && event->token >= 0) {
    details_add(&from->echo, to->of->engine, event, to->alternatives, DETAILS_TEXT);
    from->echo_left--;
  }
  if (event->kind != WICK_EVENT_DONE) return;
  from->is_echo_open = false;
  to->choices_open--;
  if (from->echo_left > 0) {
    refuse(&refused, 400, "context_length_exceeded", "prompt",
           "prompt does not fit in the context: %u tokens too many", from->echo_left);
    fail(to, &refused);
  } else if (to->choices_open == 0) {
    finish(to);
  }
}

bool generation_take(answer *to, const wick_event *event) {
  for (uint32_t i = 0; i < to->choice_count; i++) {
    choice *from = &to->choices[i];
    const bool is_echo = from->is_echo_open && from->echo_request == event->request;
    if (!is_echo && (!from->is_open || from->request != event->request)) continue;
    if (to->is_done) return true;
    if (event->kind != WICK_EVENT_PREFILL) to->has_events = true;
    const bool is_done = event->kind == WICK_EVENT_DONE;
    if (is_done && event->finish == WICK_FINISH_ERROR) return fail_by(to, event);
    if (is_echo) {
      take_echo(to, from, event);
      return true;
    }
    if (event->kind >= WICK_EVENT_CONTENT && from->parts == NULL) from->parts = event;
    if (is_done || event->kind == WICK_EVENT_TOKEN) take_piece(to, from, event);
    return true;
  }
  return false;
}

void generation_free(answer *to) {
  generation_cancel(to);
  for (uint32_t i = 0; i < to->choice_count; i++) choice_free(&to->choices[i]);
  free(to->choices);
  to->choices = NULL;
  to->choice_count = 0;
  response_free(to);
  native_free(to);
  answer_forget_body(to);
  buffer_free(&to->origin);
  buffer_free(&to->asked_headers);
  buffer_free(&to->ignored);
  buffer_free(&to->stops);
  buffer_free(&to->out);
}
