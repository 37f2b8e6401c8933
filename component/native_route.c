// component/native_route.c — POST /completion and /infill of llama.cpp's server: continues each
// prompt once; the response has its tokens, timings and settings.
#include <math.h>
#include <string.h>

#include "infill.h"
#include "native.h"
#include "prompts.h"

static const field fields_completion[] = {FIELDS_NATIVE_COMPLETION(PLAIN_FIELD)
                                              FIELDS_NATIVE(PLAIN_FIELD)  // replaces shared fields
                                          {NULL, FIELD_IGNORED, 0, 0, NULL}};
static const field fields_infill[] = {
    FIELDS_INFILL(PLAIN_FIELD) FIELDS_NATIVE(PLAIN_FIELD){NULL, FIELD_IGNORED, 0, 0, NULL}};

// ---- logit biases ----

// The sums of the biases of each token.
typedef struct biases {
  wick_bias list[WICK_BIAS_MAX];
  double sums[WICK_BIAS_MAX];
  uint32_t count;
} biases;

static bool refuse_biases(refusal *refused) {
  return refuse_value(refused, "logit_bias", WORDS_NATIVE_BIAS);
}

static bool add_bias(biases *to, int32_t token, double bias, refusal *refused) {
  uint32_t at = 0;
  while (at < to->count && to->list[at].token != token) at++;
  if (at == WICK_BIAS_MAX) return refuse_biases(refused);
  if (at == to->count) to->sums[to->count++] = 0;
  to->sums[at] += bias;
  to->list[at] = (wick_bias){token, (float)to->sums[at]};
  return true;
}

static bool is_number(wick_text key) {
  for (size_t i = 0; i < key.size_bytes; i++) {
    if (key.bytes[i] < '0' || key.bytes[i] > '9') return false;
  }
  return key.size_bytes > 0;
}

// Adds the bias of a token id, or of each token of a string.
static bool add_key(wick_engine *engine, body *read, wick_text key, double bias, biases *to,
                    refusal *refused) {
  if (is_number(key)) {
    double id = 0;
    for (size_t i = 0; i < key.size_bytes; i++) id = id * 10 + (key.bytes[i] - '0');
    return id > INT32_MAX ? refuse_biases(refused) : add_bias(to, (int32_t)id, bias, refused);
  }
  const int32_t *tokens = NULL;
  size_t count;
  if (!prompts_tokenize(engine, read, key, WICK_TOKENIZE_PARSE_SPECIAL, &tokens, &count, refused)) {
    return false;
  }
  for (size_t i = 0; i < count; i++) {
    if (!add_bias(to, tokens[i], bias, refused)) return false;
  }
  return true;
}

// The value false forbids a token.
static bool take_value(const body *read, uint32_t node, double *bias) {
  const json_kind kind = body_node(read, node)->kind;
  *bias = kind == JSON_NUMBER ? body_number(read, node) : -(double)INFINITY;
  return kind == JSON_NUMBER || kind == JSON_FALSE;
}

static bool take_pair(wick_engine *engine, body *read, uint32_t pair, biases *to,
                      refusal *refused) {
  const json_node *found = body_node(read, pair);
  double bias;
  if (found->kind != JSON_ARRAY || found->count != 2) return refuse_biases(refused);
  const uint32_t key = found->first, value = body_node(read, key)->next;
  const json_kind kind = body_node(read, key)->kind;
  if (!take_value(read, value, &bias)) return refuse_biases(refused);
  if (kind == JSON_STRING) {
    return add_key(engine, read, body_text(read, key), bias, to, refused);
  }
  const double id = kind == JSON_NUMBER ? body_number(read, key) : -1;
  if (id < 0 || id > INT32_MAX || id != floor(id)) return refuse_biases(refused);
  return add_bias(to, (int32_t)id, bias, refused);
}

static bool take_biases(wick_engine *engine, body *read, biases *to, refusal *refused) {
  const uint32_t given = body_find(read, BODY_ROOT, "logit_bias");
  const json_node *found = body_node(read, given);
  if (given == 0) return true;
  const bool is_object = found->kind == JSON_OBJECT;
  if ((!is_object && found->kind != JSON_ARRAY) || found->count > WICK_BIAS_MAX) {
    return refuse_biases(refused);
  }
  for (uint32_t item = found->first; item != 0; item = body_node(read, item)->next) {
    const document_text key = body_node(read, item)->key;
    double bias;
    if (is_object && !take_value(read, item, &bias)) return refuse_biases(refused);
    const bool is_right =
        is_object ? add_key(engine, read, (wick_text){(const char *)key.bytes, key.size_bytes},
                            bias, to, refused)
                  : take_pair(engine, read, item, to, refused);
    if (!is_right) return false;
  }
  return true;
}

// ---- the effective settings ----

// Writes a field of the body unchanged, or the default.
static void put_number(json_writer *json, buffer *out, const body *read, const char *name,
                       double by_default) {
  const uint32_t node = body_find(read, BODY_ROOT, name);
  if (node == 0) {
    json_f64(json, name, by_default);
  } else {
    json_member(json, name);
    body_put_source(read, node, out);
  }
}

static void put_lists(json_writer *json, buffer *out, const body *read) {
  const uint32_t samplers = body_find(read, BODY_ROOT, "samplers");
  const uint32_t stop = body_find(read, BODY_ROOT, "stop");
  const bool is_one = body_node(read, stop)->kind == JSON_STRING;
  if (samplers != 0) {
    json_member(json, "samplers");
    body_put_source(read, samplers, out);
  } else {
    json_open(json, "samplers", '[');
#define NAME(id, name, letter) json_text(json, NULL, name);
    SAMPLERS(NAME)
#undef NAME
    json_close(json, '[');
  }
  json_member(json, "stop");
  if (is_one || stop == 0) buffer_put_text(out, "[");
  if (stop != 0) body_put_source(read, stop, out);
  if (is_one || stop == 0) buffer_put_text(out, "]");
}

static void put_bias(json_writer *json, int32_t token, double bias) {
  json_open(json, NULL, '{');
  json_i64(json, "token", token);
  json_f64(json, "bias", bias);  // null for -INFINITY
  json_close(json, '{');
}

// With ignore_eos, llama.cpp's server also lists the end tokens.
static bool put_biases(wick_engine *engine, json_writer *json, const biases *given, bool has_ends,
                       refusal *refused) {
  facts model = {0};
  const bool is_read = !has_ends || facts_read(engine, &model, refused);
  json_open(json, "logit_bias", '[');
  for (uint32_t i = 0; i < given->count; i++) put_bias(json, given->list[i].token, given->sums[i]);
  if (is_read && has_ends) {
    const uint32_t ends = facts_of_tokenizer(&model, "ends");
    for (uint32_t end = body_node(&model.read, ends)->first; end != 0;
         end = body_node(&model.read, end)->next) {
      put_bias(json, (int32_t)body_number(&model.read, end), -(double)INFINITY);
    }
  }
  json_close(json, '[');
  facts_end(&model);
  return is_read;
}

static bool put_settings(wick_engine *engine, const body *read, const biases *given, buffer *out,
                         refusal *refused) {
  json_writer json;
  json_begin(&json, buffer_put, out);
  json_open(&json, NULL, '{');
#define NUMBER(field, name, is_float, least, most, by_default) \
  put_number(&json, out, read, name, by_default);
  SAMPLING_FIELDS(NUMBER)
#undef NUMBER
#define FLAG(member, name) \
  json_bool(&json, name, body_is_true(read, body_find(read, BODY_ROOT, name)));
  FLAG_FIELDS(FLAG)
#undef FLAG
  put_number(&json, out, read, "thinking_budget_tokens", -1);
  put_number(&json, out, read, "seed", -1);
  put_number(&json, out, read, "max_tokens", -1);
  const uint32_t most = body_find(read, BODY_ROOT, "max_tokens");
  json_member(&json, "n_predict");
  if (most == 0) buffer_put_text(out, "-1");
  if (most != 0) body_put_source(read, most, out);
  put_number(&json, out, read, "n_probs", 0);
  json_bool(&json, "stream", body_is_true(read, body_find(read, BODY_ROOT, "stream")));
  put_lists(&json, out, read);
  const bool has_ends = body_is_true(read, body_find(read, BODY_ROOT, "ignore_eos"));
  const bool is_put = put_biases(engine, &json, given, has_ends, refused);
  json_close(&json, '{');
  return is_put;
}

// ---- the request ----

static bool take_response_fields(const body *read, buffer *out, refusal *refused) {
  const uint32_t list = body_find(read, BODY_ROOT, "response_fields");
  bool is_right = list == 0 || body_node(read, list)->kind == JSON_ARRAY;
  for (uint32_t item = body_node(read, list)->first; item != 0;
       item = body_node(read, item)->next) {
    is_right = is_right && body_node(read, item)->kind == JSON_STRING;
  }
  if (!is_right) return refuse_value(refused, "response_fields", WORDS_STRINGS);
  if (body_node(read, list)->count == 0) return true;
  buffer_put_text(out, "{\"fields\":");
  body_put_source(read, list, out);
  buffer_put(out, "}", 2);  // terminated
  return true;
}

static bool take_fields(server *of, body *read, answer *to, wanted *asked, wick_grammar *grammar,
                        biases *given, refusal *refused) {
  wick_sampling *sampling = &asked->request.sampling;
  if (!fields_take(read, to->tenant, asked, refused) || !fields_check_adapters(read, refused) ||
      !fields_take_grammar(read, grammar, refused) ||
      !take_biases(of->engine, read, given, refused)) {
    return false;
  }
  if (grammar->kind != WICK_GRAMMAR_NONE) asked->request.grammar = grammar;
  sampling->bias = given->list;
  sampling->bias_count = given->count;
  fields_take_probabilities(read, sampling);
  return true;
}

static bool submit(server *of, body *read, prompt *one, uint32_t index, wanted *asked, answer *to,
                   refusal *refused) {
  wick_request *request = &asked->request;
  buffer *text = &to->native->prompts[index];
  const uint32_t flags = WICK_TOKENIZE_PARSE_SPECIAL | WICK_TOKENIZE_ADD_SPECIAL;
  if (one->tokens == NULL && !prompts_tokenize(of->engine, read, one->text, flags, &one->tokens,
                                               &one->token_count, refused)) {
    return false;
  }
  if (!prompts_put_text(of->engine, one->tokens, one->token_count, text, refused)) return false;
  request->tokens = one->tokens;  // NULL: an empty text, which the engine rejects
  request->token_count = one->token_count;
  request->text = one->text.bytes;
  request->text_bytes = one->text.size_bytes;
  if (asked->limits_reasoning) {
    asked->reasoning.ending = text->bytes;
    asked->reasoning.ending_bytes = text->size_bytes;
    request->reasoning = &asked->reasoning;
  }
  return generation_submit(of, to, index, asked, refused);
}

static bool prepare(server *of, body *read, const wanted *asked, const biases *given,
                    uint32_t count, answer *to, refusal *refused) {
  if (!generation_prepare(to, ANSWER_NATIVE, asked, count, refused) || !native_make(to, refused)) {
    return false;
  }
  native *held = to->native;
  const bool is_after = asked->request.sampling.logprobs_after;
  to->details_form = is_after ? DETAILS_PROBABILITIES : DETAILS_NATIVE;
  held->max_tokens = asked->request.max_tokens;
  held->returns_tokens = body_is_true(read, body_find(read, BODY_ROOT, "return_tokens"));
  return take_response_fields(read, &held->fields, refused) &&
         put_settings(of->engine, read, given, &held->settings, refused);
}

static bool begin(server *of, body *read, prompt *prompts, uint32_t count, answer *to,
                  refusal *refused) {
  wanted asked;
  wick_grammar grammar = {0};
  if (count > ANSWER_CHOICES_MAX) {
    return refuse(refused, REFUSE_PROMPTS("prompt"), (unsigned)ANSWER_CHOICES_MAX);
  }
  biases *given = body_alloc(read, 1, sizeof *given, refused);
  if (given == NULL || !take_fields(of, read, to, &asked, &grammar, given, refused) ||
      !prepare(of, read, &asked, given, count, to, refused)) {
    return false;
  }
  for (uint32_t i = 0; i < count; i++) {
    if (!submit(of, read, &prompts[i], i, &asked, to, refused)) return false;
  }
  generation_start(of, to);
  return true;
}

bool native_begin(server *of, body *read, answer *to, refusal *refused) {
  const field_tables tables = {fields_completion, fields_common, ""};
  const uint32_t given = body_find(read, BODY_ROOT, "prompt");
  prompt *prompts;
  uint32_t count;
  if (!fields_check(read, BODY_ROOT, &tables, refused)) return false;
  if (given == 0) {
    return refuse(refused, REFUSE_MISSING("prompt"), "prompt");
  }
  return prompts_take(of->engine, read, given, "prompt", &prompts, &count, refused) &&
         begin(of, read, prompts, count, to, refused);
}

bool infill_begin(server *of, body *read, answer *to, refusal *refused) {
  const field_tables tables = {fields_infill, fields_common, ""};
  prompt one = {0};
  return fields_check(read, BODY_ROOT, &tables, refused) &&
         infill_take(of->engine, read, &one, refused) && begin(of, read, &one, 1, to, refused);
}
