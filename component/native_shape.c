// component/native_shape.c — see native.h.
#include "native.h"

#include <stdlib.h>
#include <string.h>

bool native_make(answer *to, refusal *refused) {
  to->native = calloc(1, sizeof *to->native);
  return to->native != NULL || refuse(refused, 503, "nomem", NULL, "Out of memory");
}

void native_free(answer *to) {
  native *held = to->native;
  if (held == NULL) return;
  for (uint32_t i = 0; i < ANSWER_CHOICES_MAX; i++) {
    buffer_free(&held->prompts[i]);
    buffer_free(&held->tokens[i]);
  }
  buffer_free(&held->settings);
  buffer_free(&held->fields);
  free(held);
  to->native = NULL;
}

static uint32_t index_of(const answer *to, const choice *from) {
  return (uint32_t)(from - to->choices);
}

void native_take_token(answer *to, const choice *from, int32_t token) {
  buffer *list = &to->native->tokens[index_of(to, from)];
  json_writer json;
  json_begin(&json, buffer_put, list);
  json.needs_comma = list->size_bytes > 0;
  json_i64(&json, NULL, token);
  to->out.has_failed = to->out.has_failed || list->has_failed;
}

// ---- parts ----

static void put_array(json_writer *json, buffer *out, const char *name, const buffer *items) {
  json_open(json, name, '[');
  buffer_put(out, items->bytes, items->size_bytes);
  json_close(json, '[');
}

static void put_probabilities(json_writer *json, buffer *out, const answer *to, choice *from) {
  if (to->has_logprobs) {
    put_array(json, out, "completion_probabilities", &from->details.tokens);
  }
  details_clear(&from->details);
}

static double share(double whole, double parts) {
  return parts > 0 && whole > 0 ? whole / parts : 0;
}

static void put_timings(json_writer *json, const choice *from) {
  const uint32_t read = from->tokens_prompt - from->tokens_cached, written = from->tokens_out;
  json_open(json, "timings", '{');
  json_u64(json, "cache_n", from->tokens_cached);
  json_u64(json, "prompt_n", read);
  json_f64(json, "prompt_ms", from->prefill_ms);
  json_f64(json, "prompt_per_token_ms", share(from->prefill_ms, read));
  json_f64(json, "prompt_per_second", share(read * 1000.0, from->prefill_ms));
  json_u64(json, "predicted_n", written);
  json_f64(json, "predicted_ms", from->decode_ms);
  json_f64(json, "predicted_per_token_ms", share(from->decode_ms, written));
  json_f64(json, "predicted_per_second", share(written * 1000.0, from->decode_ms));
  json_close(json, '{');
}

static void put_stop(json_writer *json, const answer *to, buffer *out, const choice *from) {
  const char *word = answer_stop_text(to, from);
  const bool is_cut = from->finish[0] == 'l';
  json_text(json, "stop_type", is_cut ? "limit" : word == NULL ? "eos" : "word");
  json_member(json, "stopping_word");
  buffer_put_text(out, word == NULL ? "\"\"" : word);
}

static bool has_line(wick_text text) {
  return text.size_bytes > 0 && memchr(text.bytes, '\n', text.size_bytes) != NULL;
}

// Writes the response for a choice that has ended.
static void put_ended(const server *of, answer *to, choice *from, wick_text content, buffer *out) {
  native *held = to->native;
  json_writer json;
  const uint32_t index = index_of(to, from);
  buffer *tokens = &held->tokens[index];
  const bool has_tokens = tokens->size_bytes > 0;
  const bool is_full = held->max_tokens == 0 || from->tokens_out < held->max_tokens;
  if (!to->is_streamed && !held->returns_tokens) buffer_clear(tokens);
  json_begin(&json, buffer_put, out);
  json_open(&json, NULL, '{');
  json_u64(&json, "index", index);
  json_string(&json, "content", content.bytes, content.size_bytes);
  put_array(&json, out, "tokens", tokens);
  json_i64(&json, "id_slot", -1);
  json_bool(&json, "stop", true);
  json_text(&json, "model", of->model);
  json_u64(&json, "tokens_predicted", from->tokens_out);
  json_u64(&json, "tokens_evaluated", from->tokens_prompt);
  json_member(&json, "generation_settings");
  buffer_put(out, held->settings.bytes, held->settings.size_bytes);
  json_string(&json, "prompt", held->prompts[index].bytes, held->prompts[index].size_bytes);
  json_bool(&json, "has_new_line", held->has_lines[index] || has_line(content));
  json_bool(&json, "truncated", from->finish[0] == 'l' && is_full);
  put_stop(&json, to, out, from);
  json_u64(&json, "tokens_cached", from->tokens_cached);
  put_timings(&json, from);
  if (!to->is_streamed || has_tokens) put_probabilities(&json, out, to, from);
  json_close(&json, '{');
}

// ---- response_fields ----

// Returns the member of the response that a name such as "generation_settings/n_predict" denotes.
static uint32_t find_path(const body *shape, wick_text path) {
  const char *at = path.bytes, *end = path.bytes + path.size_bytes;
  for (uint32_t node = BODY_ROOT; node != 0;) {
    const char *slash = memchr(at, '/', (size_t)(end - at));
    const char *stop = slash == NULL ? end : slash;
    const document_text name = {(const uint8_t *)at, (uint32_t)(stop - at)};
    node = document_member(&shape->document, node, name);
    if (slash == NULL) return node;
    at = slash + 1;
  }
  return 0;
}

static bool put_picked(const buffer *whole, const buffer *names, buffer *out) {
  body shape = {0}, list = {0};
  refusal refused = {0};
  json_writer json;
  const bool is_read = body_parse(&shape, whole->bytes, whole->size_bytes - 1, &refused) &&
                       body_parse(&list, names->bytes, names->size_bytes - 1, &refused);
  json_begin(&json, buffer_put, out);
  json_open(&json, NULL, '{');
  const uint32_t fields = is_read ? body_find(&list, BODY_ROOT, "fields") : 0;
  for (uint32_t item = is_read ? body_node(&list, fields)->first : 0; item != 0;
       item = body_node(&list, item)->next) {
    const wick_text name = body_text(&list, item);
    const uint32_t found = find_path(&shape, name);
    if (found == 0) continue;
    json_string(&json, NULL, name.bytes, name.size_bytes);
    buffer_put_text(out, ":");
    body_put_source(&shape, found, out);
  }
  json_close(&json, '{');
  if (shape.bytes != NULL) body_end(&shape);
  if (list.bytes != NULL) body_end(&list);
  return is_read;
}

// Writes the requested members of the response for a choice that has ended.
static void put_end(const server *of, answer *to, choice *from, wick_text content) {
  buffer whole = {0};
  if (to->native->fields.size_bytes == 0) {
    put_ended(of, to, from, content, &to->out);
    return;
  }
  put_ended(of, to, from, content, &whole);
  buffer_put(&whole, "", 1);
  if (whole.has_failed || !put_picked(&whole, &to->native->fields, &to->out)) {
    to->out.has_failed = true;
  }
  buffer_free(&whole);
}

// ---- streams ----

void native_put_delta(answer *to, choice *from, wick_text text) {
  native *held = to->native;
  json_writer json;
  const uint32_t index = index_of(to, from);
  held->has_lines[index] = held->has_lines[index] || has_line(text);
  buffer_put_text(&to->out, "data: ");
  json_begin(&json, buffer_put, &to->out);
  json_open(&json, NULL, '{');
  json_u64(&json, "index", index);
  json_string(&json, "content", text.bytes, text.size_bytes);
  put_array(&json, &to->out, "tokens", &held->tokens[index]);
  json_bool(&json, "stop", false);
  json_i64(&json, "id_slot", -1);
  put_probabilities(&json, &to->out, to, from);
  json_close(&json, '{');
  buffer_put_text(&to->out, "\n\n");
  buffer_clear(&held->tokens[index]);
}

void native_put_end(const server *of, answer *to, choice *from) {
  buffer_put_text(&to->out, "data: ");
  put_end(of, to, from, (wick_text){"", 0});
  buffer_put_text(&to->out, "\n\n");
}

// ---- responses that are not streamed ----

void native_put_whole(const server *of, answer *to) {
  const bool is_list = to->choice_count > 1;
  if (is_list) buffer_put_text(&to->out, "[");
  for (uint32_t i = 0; i < to->choice_count; i++) {
    choice *from = &to->choices[i];
    if (i > 0) buffer_put_text(&to->out, ",");
    put_end(of, to, from, (wick_text){from->content.bytes, from->content.size_bytes});
  }
  if (is_list) buffer_put_text(&to->out, "]");
}
