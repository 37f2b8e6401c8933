// component/native_shape.c — see native.h.
#include "native.h"

#include <stdlib.h>
#include <string.h>

#include "shape.h"

bool native_make(answer *to, refusal *refused) {
  to->native = calloc(1, sizeof *to->native);
  return to->native != NULL || refuse_memory(refused, NULL);
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
  shape_put(list, list->size_bytes > 0 ? ",%d" : "%d", token);
  to->out.has_failed = to->out.has_failed || list->has_failed;
}

// ---- parts ----

static void put_probabilities(buffer *out, const answer *to, choice *from) {
  if (to->has_logprobs) {
    shape_put(out, ",'completion_probabilities':[%j]", &from->details.tokens);
  }
  details_clear(&from->details);
}

static bool has_line(wick_text text) {
  return text.size_bytes > 0 && memchr(text.bytes, '\n', text.size_bytes) != NULL;
}

// Writes the response for a choice that has ended.
static void put_ended(answer *to, choice *from, wick_text content, buffer *out) {
  native *held = to->native;
  const uint32_t index = index_of(to, from);
  buffer *tokens = &held->tokens[index];
  const bool has_tokens = tokens->size_bytes > 0;
  const bool is_full = held->max_tokens == 0 || from->tokens_out < held->max_tokens;
  const bool is_cut = from->finish[0] == 'l';
  const char *word = answer_stop_text(to, from);
  const char *stop_type = is_cut ? "limit" : word == NULL ? "eos" : "word";
  if (!to->is_streamed && !held->returns_tokens) buffer_clear(tokens);
  shape_put(out,
            "{'index':%u,'content':%t,'tokens':[%j],'id_slot':-1,'stop':true,'model':%s,"
            "'tokens_predicted':%u,'tokens_evaluated':%u,'generation_settings':%j,'prompt':%b,"
            "'has_new_line':%?,'truncated':%?,'stop_type':%s,'stopping_word':%r,"
            "'tokens_cached':%u,'timings':{",
            index, content, tokens, to->of->model, from->tokens_out, from->tokens_prompt,
            &held->settings, &held->prompts[index], held->has_lines[index] || has_line(content),
            is_cut && is_full, stop_type, word == NULL ? "\"\"" : word, from->tokens_cached);
  answer_put_timings(out, from);
  buffer_put_text(out, "}");
  if (!to->is_streamed || has_tokens) put_probabilities(out, to, from);
  buffer_put_text(out, "}");
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
  const char *comma = "";
  const bool is_read = body_parse(&shape, whole->bytes, whole->size_bytes - 1, &refused) &&
                       body_parse(&list, names->bytes, names->size_bytes - 1, &refused);
  buffer_put_text(out, "{");
  const uint32_t fields = is_read ? body_field(&list, "fields") : 0;
  for (uint32_t item = is_read ? body_node(&list, fields)->first : 0; item != 0;
       item = body_node(&list, item)->next) {
    const wick_text name = body_text(&list, item);
    const uint32_t found = find_path(&shape, name);
    if (found == 0) continue;
    shape_put(out, "%r%t:%T", comma, name, body_source(&shape, found));
    comma = ",";
  }
  buffer_put_text(out, "}");
  if (shape.bytes != NULL) body_end(&shape);
  if (list.bytes != NULL) body_end(&list);
  return is_read;
}

// Writes the requested members of the response for a choice that has ended.
static void put_picked_end(answer *to, choice *from, wick_text content) {
  buffer whole = {0};
  if (to->native->fields.size_bytes == 0) {
    put_ended(to, from, content, &to->out);
    return;
  }
  put_ended(to, from, content, &whole);
  buffer_put(&whole, "", 1);
  if (whole.has_failed || !put_picked(&whole, &to->native->fields, &to->out)) {
    to->out.has_failed = true;
  }
  buffer_free(&whole);
}

// ---- streams ----

static void put_delta(answer *to, choice *from, const delta *piece) {
  const wick_text text = piece->content;
  native *held = to->native;
  const uint32_t index = index_of(to, from);
  held->has_lines[index] = held->has_lines[index] || has_line(text);
  shape_put(&to->out, "data: {'index':%u,'content':%t,'tokens':[%j],'stop':false,'id_slot':-1",
            index, text, &held->tokens[index]);
  put_probabilities(&to->out, to, from);
  buffer_put_text(&to->out, "}\n\n");
  buffer_clear(&held->tokens[index]);
}

static void put_end(answer *to, choice *from) {
  buffer_put_text(&to->out, "data: ");
  put_picked_end(to, from, (wick_text){"", 0});
  buffer_put_text(&to->out, "\n\n");
}

// ---- responses that are not streamed ----

static void put_whole(answer *to) {
  const bool is_list = to->choice_count > 1;
  if (is_list) buffer_put_text(&to->out, "[");
  for (uint32_t i = 0; i < to->choice_count; i++) {
    choice *from = &to->choices[i];
    if (i > 0) buffer_put_text(&to->out, ",");
    put_picked_end(to, from, (wick_text){from->content.bytes, from->content.size_bytes});
  }
  if (is_list) buffer_put_text(&to->out, "]");
}

// No [DONE] follows a stream.
const answer_form form_native = {.prompt = "prompt",
                                 .constraint = "grammar",
                                 .put_delta = put_delta,
                                 .put_end = put_end,
                                 .put_whole = put_whole};
