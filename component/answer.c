// component/answer.c — writes response headers and bodies in OpenAI's format.
#include "answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server.h"
#include "shape.h"

// ---- headers ----

void answer_give(answer *to, const char *content_type) {
  to->has_head = true;
  to->status = 200;
  to->content_type = content_type;
}

bool answer_give_json(answer *to) {
  answer_give(to, "application/json");
  to->is_done = true;
  return true;
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

void answer_enqueue(answer **queue, answer *to) {
  while (*queue != NULL) queue = &(*queue)->next_waiting;
  *queue = to;
}

bool answer_dequeue(answer **queue, answer *to) {
  while (*queue != NULL && *queue != to) queue = &(*queue)->next_waiting;
  if (*queue == NULL) return false;
  *queue = to->next_waiting;
  to->next_waiting = NULL;
  return true;
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

static void open_head(answer *to, const char *object) {
  shape_put(&to->out,
            "{'id':%s,'object':%s,'created':%D,'model':%s,'system_fingerprint':%s,'choices':[",
            to->id, object, to->created_s, to->of->model, FINGERPRINT);
}

// Writes the concatenation of two lists, either of which may be empty.
static void put_list(buffer *out, const char *name, const buffer *first, const buffer *items) {
  buffer_put_text(out, name);
  buffer_put(out, first->bytes, first->size_bytes);
  if (first->size_bytes > 0 && items->size_bytes > 0) buffer_put_text(out, ",");
  buffer_put(out, items->bytes, items->size_bytes);
  buffer_put_text(out, "]");
}

static void put_logprobs(answer *to, choice *from) {
  const details *own = &from->details;
  if (!to->has_logprobs) {
    shape_put(&to->out, ",'logprobs':null");
  } else if (to->form == &form_chat) {
    shape_put(&to->out, ",'logprobs':{'content':[%j],'refusal':null}", &own->tokens);
  } else {
    const uint32_t index = (uint32_t)(from - to->choices);
    const details *echo = &to->choices[index - index % to->choices_a_prompt].echo;
    put_list(&to->out, ",\"logprobs\":{\"tokens\":[", &echo->tokens, &own->tokens);
    put_list(&to->out, ",\"token_logprobs\":[", &echo->logprobs, &own->logprobs);
    put_list(&to->out, ",\"top_logprobs\":[", &echo->tops, &own->tops);
    put_list(&to->out, ",\"text_offset\":[", &echo->offsets, &own->offsets);
    buffer_put_text(&to->out, "}");
  }
  details_clear(&from->details);
}

const char *answer_stop_text(const answer *to, const choice *ended) {
  const char *text = to->stops.bytes;
  for (uint32_t i = 1; i < ended->stop; i++) text += strlen(text) + 1;
  return ended->stop == 0 ? NULL : text;
}

// Writes a choice's finish reason and, as in vLLM's server, the stop string.
static void put_finish(answer *to, const choice *ended, const char *finish) {
  const char *text = answer_stop_text(to, ended);
  shape_put(&to->out, ",'finish_reason':%s", finish);
  if (finish != NULL && text != NULL) shape_put(&to->out, ",'stop_reason':%r", text);
}

token_usage answer_usage(const answer *of) {
  token_usage sum = {0};
  for (uint32_t i = 0; i < of->choice_count; i++) {
    sum.out += of->choices[i].tokens_out;
    if (i % of->choices_a_prompt != 0) continue;
    sum.prompt += of->choices[i].tokens_prompt;
    sum.cached += of->choices[i].tokens_cached;
  }
  return sum;
}

static void put_usage(answer *to) {
  const token_usage sum = answer_usage(to);
  shape_put(&to->out,
            ",'usage':{'prompt_tokens':%U,'completion_tokens':%U,'total_tokens':%U,"
            "'prompt_tokens_details':{'cached_tokens':%U}}",
            sum.prompt, sum.out, sum.prompt + sum.out, sum.cached);
}

static double per_second(uint32_t count, double ms) {
  return count > 0 && ms > 0 ? count * 1000.0 / ms : 0;
}

void answer_put_timings(buffer *out, const choice *from) {
  const uint32_t read = from->tokens_prompt - from->tokens_cached, written = from->tokens_out;
  shape_put(out,
            "'cache_n':%u,'prompt_n':%u,'prompt_ms':%f,'prompt_per_token_ms':%f,"
            "'prompt_per_second':%f,'predicted_n':%u,'predicted_ms':%f,"
            "'predicted_per_token_ms':%f,'predicted_per_second':%f",
            from->tokens_cached, read, from->prefill_ms, read > 0 ? from->prefill_ms / read : 0.0,
            per_second(read, from->prefill_ms), written, from->decode_ms,
            written > 0 ? from->decode_ms / written : 0.0, per_second(written, from->decode_ms));
}

static void put_timings(answer *to, const choice *from) {
  if (to->form != &form_chat) return;
  const uint32_t read = from->tokens_prompt - from->tokens_cached;
  const uint32_t more = from->tokens_out > 0 ? from->tokens_out - 1 : 0;
  shape_put(&to->out,
            ",'timings':{'queueMs':%f,'prefillMs':%f,'decodeMs':%f,'ttftMs':%f,"
            "'prefillTokensPerSecond':%f,'decodeTokensPerSecond':%f",
            from->queue_ms, from->prefill_ms, from->decode_ms, from->ttft_ms,
            per_second(read, from->prefill_ms), per_second(more, from->decode_ms));
  if (to->choice_count == 1) {
    buffer_put_text(&to->out, ",");
    answer_put_timings(&to->out, from);
  }
  buffer_put_text(&to->out, "}");
}

// ---- streams ----

static void begin_chunk(answer *to) {
  buffer_put_text(&to->out, "data: ");
  open_head(to, to->form == &form_chat ? "chat.completion.chunk" : "text_completion");
}

// Writes the rest of a chunk after the delta or the text. Only the usage of the last chunk has
// numbers.
static void end_chunk(answer *to, choice *from, const char *finish) {
  put_logprobs(to, from);
  put_finish(to, from, finish);
  buffer_put_text(&to->out, "}]");
  if (finish != NULL) put_timings(to, from);
  if (to->includes_usage) shape_put(&to->out, ",'usage':null");
  buffer_put_text(&to->out, "}\n\n");
}

static uint32_t index_of(const answer *to, const choice *from) {
  return (uint32_t)(from - to->choices);
}

static void begin_stream(answer *to) {
  const bool has_logprobs = to->has_logprobs;
  to->has_logprobs = false;
  for (uint32_t i = 0; to->form == &form_chat && i < to->choice_count; i++) {
    begin_chunk(to);
    shape_put(&to->out, "{'index':%u,'delta':{'role':'assistant','content':''}", i);
    end_chunk(to, &to->choices[i], NULL);
  }
  to->has_logprobs = has_logprobs;
}

static void put_delta(answer *to, choice *from, const delta *piece) {
  begin_chunk(to);
  if (to->form == &form_text) {
    shape_put(&to->out, "{'index':%u,'text':%t", index_of(to, from), piece->content);
  } else {
    json_writer json;
    shape_put(&to->out, "{'index':%u,'delta':{", index_of(to, from));
    json_begin(&json, buffer_put, &to->out);
    delta_write(&json, piece);
    buffer_put_text(&to->out, "}");
  }
  end_chunk(to, from, NULL);
}

static void put_silence(answer *to, choice *from) {
  const delta none = {.is_call = false};
  if (to->has_logprobs && from->details.tokens.size_bytes > 0) put_delta(to, from, &none);
}

static void put_end(answer *to, choice *from) {
  const bool has_logprobs = to->has_logprobs;
  const char *empty = to->form == &form_text ? "'text':''" : "'delta':{}";
  to->has_logprobs = false;
  begin_chunk(to);
  shape_put(&to->out, "{'index':%u,", index_of(to, from));
  shape_put(&to->out, empty);
  end_chunk(to, from, choice_finish(from));
  to->has_logprobs = has_logprobs;
}

static void end_stream(answer *to) {
  if (to->includes_usage) {
    begin_chunk(to);
    buffer_put_text(&to->out, "]");
    put_usage(to);
    if (to->choice_count == 1) put_timings(to, &to->choices[0]);
    buffer_put_text(&to->out, "}\n\n");
  }
  buffer_put_text(&to->out, "data: [DONE]\n\n");
}

// ---- responses that are not streamed ----

static void put_message(buffer *out, const choice *from) {
  shape_put(out, "'message':{'role':'assistant','content':%b,'refusal':null", &from->content);
  if (from->reasoning.size_bytes > 0) shape_put(out, ",'reasoning_content':%b", &from->reasoning);
  for (uint32_t i = 0; i < from->call_count; i++) {
    const call *one = &from->calls[i];
    shape_put(out, i == 0 ? ",'tool_calls':[" : ",");
    shape_put(out, "{'id':%s,'type':'function','function':{'name':%b,'arguments':%b}}", one->id,
              &one->name, &one->arguments);
  }
  buffer_put_text(out, from->call_count > 0 ? "]}" : "}");
}

static void put_whole(answer *to) {
  const bool is_chat = to->form == &form_chat;
  open_head(to, is_chat ? "chat.completion" : "text_completion");
  for (uint32_t i = 0; i < to->choice_count; i++) {
    choice *from = &to->choices[i];
    shape_put(&to->out, "%r{'index':%u,", i > 0 ? "," : "", i);
    if (is_chat) put_message(&to->out, from);
    if (!is_chat) shape_put(&to->out, "'text':%b", &from->content);
    put_logprobs(to, from);
    put_finish(to, from, choice_finish(from));
    buffer_put_text(&to->out, "}");
  }
  buffer_put_text(&to->out, "]");
  put_usage(to);
  put_timings(to, &to->choices[0]);
  buffer_put_text(&to->out, "}");
}

#define STREAM                                                                                   \
  .begin = begin_stream, .put_delta = put_delta, .put_silence = put_silence, .put_end = put_end, \
  .end = end_stream, .put_whole = put_whole
const answer_form form_chat = {.id = "chatcmpl",
                               .prompt = "messages",
                               .constraint = "response_format",
                               .details = DETAILS_CHAT,
                               STREAM};
const answer_form form_text = {
    .id = "cmpl", .prompt = "prompt", .constraint = "grammar", .details = DETAILS_TEXT, STREAM};
