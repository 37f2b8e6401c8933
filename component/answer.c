// component/answer.c — writes response headers and bodies in OpenAI's format.
#include "answer.h"

#include <stdlib.h>
#include <string.h>

#include "native.h"
#include "response.h"

// ---- headers ----

void answer_give(answer *to, const char *content_type) {
  to->has_head = true;
  to->status = 200;
  to->content_type = content_type;
}

// Writes the headers of the Fetch standard's "CORS protocol".
static void put_cors(const answer *reply, header_sink sink, void *context) {
  if (reply->varies) sink(context, "vary", "Origin");
  if (reply->origin.size_bytes == 0) return;
  sink(context, "access-control-allow-origin", reply->origin.bytes);
  sink(context, "access-control-expose-headers", "Retry-After, X-Request-Id, X-Wick-Ignored");
  if (!reply->is_preflight) return;
  if (reply->asked_headers.size_bytes > 1) {
    sink(context, "access-control-allow-headers", reply->asked_headers.bytes);
  }
  sink(context, "access-control-allow-methods", reply->allow == NULL ? "" : reply->allow);
  sink(context, "access-control-max-age", "600");
}

void answer_put_headers(const answer *reply, header_sink sink, void *context) {
  if (reply->content_type != NULL) sink(context, "content-type", reply->content_type);
  if (reply->allow != NULL) sink(context, "allow", reply->allow);
  if (reply->status == 429 || reply->status == 503) sink(context, "retry-after", "1");
  if (reply->status == 401) sink(context, "www-authenticate", "Bearer");
  if (reply->is_streamed) sink(context, "cache-control", "no-cache");
  if (reply->is_streamed)
    sink(context, "x-accel-buffering", "no");  // otherwise nginx would buffer tokens
  if (reply->ignored.size_bytes > 1) sink(context, "x-wick-ignored", reply->ignored.bytes);
  sink(context, "x-request-id", reply->request_id);
  put_cors(reply, sink, context);
}

void answer_forget_body(answer *to) {
  if (to->asked == NULL) return;
  body_end(&to->asked->read);
  buffer_free(&to->asked->source);
  free(to->asked);
  to->asked = NULL;
}

void answer_refuse(answer *to, const refusal *why) {
  buffer_clear(&to->out);
  buffer_clear(&to->ignored);
  refusal_write(why, &to->out);
  answer_give(to, "application/json");
  to->status = why->status;
  to->refused = *why;
  to->is_streamed = false;
  to->is_done = true;
}

void answer_keep_alive(answer *to, uint64_t now_us, uint32_t silence_ms) {
  if (!to->is_streamed || !to->has_head || to->has_events || to->is_done) return;
  if (to->comment_us == 0) to->comment_us = now_us;
  if (now_us - to->comment_us < silence_ms * UINT64_C(1000)) return;
  to->comment_us = now_us;
  buffer_put_text(&to->out, ": waiting\n\n");
}

// ---- parts ----

#define DOTTED(major, minor, patch) #major "." #minor "." #patch
#define VERSION_TEXT(major, minor, patch) DOTTED(major, minor, patch)
// The value is the version, because responses of one version are the same for a given model and
// seed.
#define FINGERPRINT "wick-" VERSION_TEXT(WICK_VERSION_MAJOR, WICK_VERSION_MINOR, WICK_VERSION_PATCH)

static void open_head(json_writer *json, const server *of, const answer *to, const char *object) {
  json_open(json, NULL, '{');
  json_text(json, "id", to->id);
  json_text(json, "object", object);
  json_i64(json, "created", to->created_s);
  json_text(json, "model", of->model);
  json_text(json, "system_fingerprint", FINGERPRINT);
}

// Writes the concatenation of two lists, either of which may be empty.
static void put_list(buffer *out, const char *name, const buffer *first, const buffer *items) {
  buffer_put_text(out, name);
  buffer_put(out, first->bytes, first->size_bytes);
  if (first->size_bytes > 0 && items->size_bytes > 0) buffer_put_text(out, ",");
  buffer_put(out, items->bytes, items->size_bytes);
  buffer_put_text(out, "]");
}

static void put_logprobs(json_writer *json, answer *to, choice *from) {
  json_member(json, "logprobs");
  const details *own = &from->details;
  if (!to->has_logprobs) {
    buffer_put_text(&to->out, "null");
  } else if (to->kind == ANSWER_CHAT) {
    static const buffer NO_ECHO = {0};
    put_list(&to->out, "{\"content\":[", &NO_ECHO, &own->tokens);
    buffer_put_text(&to->out, ",\"refusal\":null}");
  } else {
    const uint32_t index = (uint32_t)(from - to->choices);
    const details *echo = &to->choices[index - index % to->choices_a_prompt].echo;
    put_list(&to->out, "{\"tokens\":[", &echo->tokens, &own->tokens);
    put_list(&to->out, ",\"token_logprobs\":[", &echo->logprobs, &own->logprobs);
    put_list(&to->out, ",\"top_logprobs\":[", &echo->tops, &own->tops);
    put_list(&to->out, ",\"text_offset\":[", &echo->offsets, &own->offsets);
    buffer_put_text(&to->out, "}");
  }
  details_clear(&from->details);
}

static const char *finish_of(const choice *ended) {
  return ended->has_called && ended->finish[0] == 's' ? "tool_calls" : ended->finish;
}

const char *answer_stop_text(const answer *to, const choice *ended) {
  const char *text = to->stops.bytes;
  for (uint32_t i = 1; i < ended->stop; i++) text += strlen(text) + 1;
  return ended->stop == 0 ? NULL : text;
}

// Writes a choice's finish reason and, as in vLLM's server, the stop string.
static void put_finish(json_writer *json, answer *to, const choice *ended, const char *finish) {
  const char *text = answer_stop_text(to, ended);
  json_text(json, "finish_reason", finish);
  if (finish == NULL || text == NULL) return;
  json_member(json, "stop_reason");
  buffer_put_text(&to->out, text);
}

static void put_usage(json_writer *json, const answer *to) {
  uint64_t prompt = 0, cached = 0, out = 0;
  for (uint32_t i = 0; i < to->choice_count; i++) {
    out += to->choices[i].tokens_out;
    if (i % to->choices_a_prompt != 0) continue;  // the choices of a prompt share it
    prompt += to->choices[i].tokens_prompt;
    cached += to->choices[i].tokens_cached;
  }
  json_open(json, "usage", '{');
  json_u64(json, "prompt_tokens", prompt);
  json_u64(json, "completion_tokens", out);
  json_u64(json, "total_tokens", prompt + out);
  json_open(json, "prompt_tokens_details", '{');
  json_u64(json, "cached_tokens", cached);
  json_close(json, '{');
  json_close(json, '{');
}

static double per_second(uint32_t count, double ms) {
  return count > 0 && ms > 0 ? count * 1000.0 / ms : 0;
}

// Writes the timings of llama.cpp's server, from which its clients show the speed.
static void put_native_timings(json_writer *json, const choice *from) {
  const uint32_t read = from->tokens_prompt - from->tokens_cached, written = from->tokens_out;
  json_u64(json, "cache_n", from->tokens_cached);
  json_u64(json, "prompt_n", read);
  json_f64(json, "prompt_ms", from->prefill_ms);
  json_f64(json, "prompt_per_token_ms", read > 0 ? from->prefill_ms / read : 0);
  json_f64(json, "prompt_per_second", per_second(read, from->prefill_ms));
  json_u64(json, "predicted_n", written);
  json_f64(json, "predicted_ms", from->decode_ms);
  json_f64(json, "predicted_per_token_ms", written > 0 ? from->decode_ms / written : 0);
  json_f64(json, "predicted_per_second", per_second(written, from->decode_ms));
}

static void put_timings(json_writer *json, const answer *to, const choice *from) {
  if (to->kind != ANSWER_CHAT) return;
  json_open(json, "timings", '{');
  json_f64(json, "queueMs", from->queue_ms);
  json_f64(json, "prefillMs", from->prefill_ms);
  json_f64(json, "decodeMs", from->decode_ms);
  json_f64(json, "ttftMs", from->ttft_ms);
  const uint32_t read = from->tokens_prompt - from->tokens_cached;
  const uint32_t more = from->tokens_out > 0 ? from->tokens_out - 1 : 0;
  json_f64(json, "prefillTokensPerSecond", per_second(read, from->prefill_ms));
  json_f64(json, "decodeTokensPerSecond", per_second(more, from->decode_ms));
  if (to->choice_count == 1) put_native_timings(json, from);
  json_close(json, '{');
}

// ---- streams ----

static void begin_chunk(json_writer *json, const server *of, answer *to) {
  buffer_put_text(&to->out, "data: ");
  json_begin(json, buffer_put, &to->out);
  const bool is_chat = to->kind == ANSWER_CHAT;
  open_head(json, of, to, is_chat ? "chat.completion.chunk" : "text_completion");
  json_open(json, "choices", '[');
}

static void open_choice(json_writer *json, const answer *to, const choice *from) {
  json_open(json, NULL, '{');
  json_u64(json, "index", (uint64_t)(from - to->choices));
}

// Writes the rest of a chunk after the delta or the text.
static void end_chunk(json_writer *json, answer *to, choice *from, const char *finish) {
  put_logprobs(json, to, from);
  put_finish(json, to, from, finish);
  json_close(json, '{');
  json_close(json, '[');
  if (finish != NULL) put_timings(json, to, from);
  if (to->includes_usage)
    json_text(json, "usage", NULL);  // only the usage of the last chunk has numbers
  json_close(json, '{');
  buffer_put_text(&to->out, "\n\n");
}

void answer_begin_stream(const server *of, answer *to) {
  if (to->kind == ANSWER_RESPONSE) {
    response_begin_stream(to);
    return;
  }
  answer_give(to, "text/event-stream; charset=utf-8");
  const bool has_logprobs = to->has_logprobs;
  to->has_logprobs = false;
  for (uint32_t i = 0; to->kind == ANSWER_CHAT && i < to->choice_count; i++) {
    json_writer json;
    begin_chunk(&json, of, to);
    open_choice(&json, to, &to->choices[i]);
    json_open(&json, "delta", '{');
    json_text(&json, "role", "assistant");
    json_text(&json, "content", "");
    json_close(&json, '{');
    end_chunk(&json, to, &to->choices[i], NULL);
  }
  to->has_logprobs = has_logprobs;
}

void answer_put_delta(const server *of, answer *to, choice *from, const delta *piece) {
  if (to->kind == ANSWER_RESPONSE) {
    response_take_delta(to, from, piece);
    return;
  }
  if (to->kind == ANSWER_NATIVE) {
    native_put_delta(to, from, piece->content);
    return;
  }
  json_writer json;
  begin_chunk(&json, of, to);
  open_choice(&json, to, from);
  if (to->kind == ANSWER_TEXT) {
    json_string(&json, "text", piece->content.bytes, piece->content.size_bytes);
  } else {
    json_open(&json, "delta", '{');
    delta_write(&json, piece);
    json_close(&json, '{');
  }
  end_chunk(&json, to, from, NULL);
}

void answer_put_logprobs(const server *of, answer *to, choice *from) {
  const delta none = {.is_call = false};
  if (to->kind == ANSWER_RESPONSE) {
    response_take_silence(to, from);
  } else if (to->kind != ANSWER_NATIVE && to->has_logprobs && from->details.tokens.size_bytes > 0) {
    answer_put_delta(of, to, from, &none);
  }
}

void answer_put_end(const server *of, answer *to, choice *from) {
  if (to->kind == ANSWER_RESPONSE) return;  // answer_end_stream writes it
  if (to->kind == ANSWER_NATIVE) {
    native_put_end(of, to, from);
    return;
  }
  json_writer json;
  const bool has_logprobs = to->has_logprobs;
  to->has_logprobs = false;
  begin_chunk(&json, of, to);
  open_choice(&json, to, from);
  if (to->kind == ANSWER_TEXT) {
    json_text(&json, "text", "");
  } else {
    json_open(&json, "delta", '{');
    json_close(&json, '{');
  }
  end_chunk(&json, to, from, finish_of(from));
  to->has_logprobs = has_logprobs;
}

void answer_end_stream(const server *of, answer *to) {
  to->is_done = true;
  if (to->kind == ANSWER_RESPONSE) {
    response_end_stream(to);
    return;
  }
  if (to->kind == ANSWER_NATIVE) return;  // no [DONE] follows
  if (to->includes_usage) {
    json_writer json;
    begin_chunk(&json, of, to);
    json_close(&json, '[');
    put_usage(&json, to);
    if (to->choice_count == 1) put_timings(&json, to, &to->choices[0]);
    json_close(&json, '{');
    buffer_put_text(&to->out, "\n\n");
  }
  buffer_put_text(&to->out, "data: [DONE]\n\n");
}

// ---- responses that are not streamed ----

static void put_message(json_writer *json, const choice *from) {
  json_open(json, "message", '{');
  json_text(json, "role", "assistant");
  json_string(json, "content", from->content.bytes, from->content.size_bytes);
  json_text(json, "refusal", NULL);
  if (from->reasoning.size_bytes > 0) {
    json_string(json, "reasoning_content", from->reasoning.bytes, from->reasoning.size_bytes);
  }
  if (from->call_count > 0) json_open(json, "tool_calls", '[');
  for (uint32_t i = 0; i < from->call_count; i++) {
    const call *one = &from->calls[i];
    json_open(json, NULL, '{');
    json_text(json, "id", one->id);
    json_text(json, "type", "function");
    json_open(json, "function", '{');
    json_string(json, "name", one->name.bytes, one->name.size_bytes);
    json_string(json, "arguments", one->arguments.bytes, one->arguments.size_bytes);
    json_close(json, '{');
    json_close(json, '{');
  }
  if (from->call_count > 0) json_close(json, '[');
  json_close(json, '{');
}

void answer_put_whole(const server *of, answer *to) {
  answer_give(to, "application/json");
  to->is_done = true;
  if (to->kind == ANSWER_RESPONSE) {
    response_put_whole(to);
    return;
  }
  if (to->kind == ANSWER_NATIVE) {
    native_put_whole(of, to);
    return;
  }
  json_writer json;
  const bool is_chat = to->kind == ANSWER_CHAT;
  json_begin(&json, buffer_put, &to->out);
  open_head(&json, of, to, is_chat ? "chat.completion" : "text_completion");
  json_open(&json, "choices", '[');
  for (uint32_t i = 0; i < to->choice_count; i++) {
    choice *from = &to->choices[i];
    open_choice(&json, to, from);
    if (is_chat) put_message(&json, from);
    if (!is_chat) json_string(&json, "text", from->content.bytes, from->content.size_bytes);
    put_logprobs(&json, to, from);
    put_finish(&json, to, from, finish_of(from));
    json_close(&json, '{');
  }
  json_close(&json, '[');
  put_usage(&json, to);
  put_timings(&json, to, &to->choices[0]);
  json_close(&json, '{');
}
