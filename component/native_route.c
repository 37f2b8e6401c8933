// component/native_route.c — POST /completion and /infill of llama.cpp's server: continues each
// prompt once; the response has its tokens, timings and settings.
#include <math.h>

#include "infill.h"
#include "native.h"
#include "prompts.h"
#include "shape.h"

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
  const uint32_t given = body_field(read, "logit_bias");
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
static void put_number(buffer *out, const body *read, const char *name, double by_default) {
  const uint32_t node = body_field(read, name);
  if (node == 0) shape_put(out, "'%r':%f,", name, by_default);
  if (node != 0) shape_put(out, "'%r':%T,", name, body_source(read, node));
}

static void put_lists(buffer *out, const body *read) {
#define NAME(id, name, letter) ",'" name "'"
  static const char ALL[] = SAMPLERS(NAME);
#undef NAME
  const uint32_t samplers = body_field(read, "samplers"), stop = body_field(read, "stop");
  const wick_text stops = stop == 0 ? (wick_text){0} : body_source(read, stop);
  const bool is_list = body_node(read, stop)->kind == JSON_ARRAY;
  shape_put(out, is_list ? "'stop':%T," : "'stop':[%T],", stops);
  if (samplers != 0) {
    shape_put(out, "'samplers':%T", body_source(read, samplers));
    return;
  }
  shape_put(out, "'samplers':[");
  shape_put(out, ALL + 1);
  buffer_put_text(out, "]");
}

// Writes the biases of tokens, where -INFINITY becomes null. With ignore_eos, llama.cpp's server
// also lists the end tokens.
static bool put_biases(wick_engine *engine, buffer *out, const biases *given, bool has_ends,
                       refusal *refused) {
  facts model = {0};
  const bool is_read = !has_ends || facts_read(engine, &model, refused);
  const char *comma = "";
  shape_put(out, ",'logit_bias':[");
  for (uint32_t i = 0; i < given->count; i++, comma = ",") {
    shape_put(out, "%r{'token':%d,'bias':%f}", comma, given->list[i].token, given->sums[i]);
  }
  if (is_read && has_ends) {
    BODY_EACH(&model.read, end, facts_of_tokenizer(&model, "ends")) {
      shape_put(out, "%r{'token':%T,'bias':null}", comma, body_source(&model.read, end));
      comma = ",";
    }
  }
  buffer_put_text(out, "]}");
  facts_end(&model);
  return is_read;
}

static bool put_settings(wick_engine *engine, const body *read, const biases *given, buffer *out,
                         refusal *refused) {
  const uint32_t most = body_field(read, "max_tokens");
  buffer_put_text(out, "{");
#define NUMBER(field, name, is_float, least, most, by_default) \
  put_number(out, read, name, by_default);
  SAMPLING_FIELDS(NUMBER)
#undef NUMBER
#define FLAG(member, name) shape_put(out, "'" name "':%?,", body_flag(read, name));
  FLAG_FIELDS(FLAG)
#undef FLAG
  put_number(out, read, "thinking_budget_tokens", -1);
  put_number(out, read, "seed", -1);
  put_number(out, read, "max_tokens", -1);
  put_number(out, read, "n_probs", 0);
  shape_put(out, "'n_predict':%T,'stream':%?,",
            most == 0 ? (wick_text){"-1", 2} : body_source(read, most), body_flag(read, "stream"));
  put_lists(out, read);
  return put_biases(engine, out, given, body_flag(read, "ignore_eos"), refused);
}

// ---- the request ----

static void take_response_fields(const body *read, buffer *out) {
  const uint32_t list = body_field(read, "response_fields");
  if (body_node(read, list)->count == 0) return;
  buffer_put_text(out, "{\"fields\":");
  body_put_source(read, list, out);
  buffer_put(out, "}", 2);  // terminated
}

static bool take_fields(server *of, body *read, answer *to, wanted *asked, biases *given,
                        refusal *refused) {
  wick_sampling *sampling = &asked->request.sampling;
  if (!fields_take(read, to->tenant, asked, refused) ||
      !take_biases(of->engine, read, given, refused)) {
    return false;
  }
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
  return generation_submit(to, index, asked, refused);
}

static bool prepare(server *of, body *read, const wanted *asked, const biases *given,
                    uint32_t count, answer *to, refusal *refused) {
  if (!generation_prepare(to, &form_native, asked, count, refused) || !native_make(to, refused)) {
    return false;
  }
  native *held = to->native;
  const bool is_after = asked->request.sampling.logprobs_after;
  to->details_form = is_after ? DETAILS_PROBABILITIES : DETAILS_NATIVE;
  held->max_tokens = asked->request.max_tokens;
  held->returns_tokens = body_flag(read, "return_tokens");
  take_response_fields(read, &held->fields);
  return put_settings(of->engine, read, given, &held->settings, refused);
}

static bool begin(server *of, body *read, prompt *prompts, uint32_t count, answer *to,
                  refusal *refused) {
  wanted asked = {0};
  if (count > ANSWER_CHOICES_MAX) {
    return refuse(refused, REFUSE_PROMPTS("prompt"), (unsigned)ANSWER_CHOICES_MAX);
  }
  biases *given = body_alloc(read, 1, sizeof *given, refused);
  if (given == NULL || !take_fields(of, read, to, &asked, given, refused) ||
      !prepare(of, read, &asked, given, count, to, refused)) {
    return false;
  }
  for (uint32_t i = 0; i < count; i++) {
    if (!submit(of, read, &prompts[i], i, &asked, to, refused)) return false;
  }
  generation_start(to);
  return true;
}

bool native_begin(server *of, body *read, answer *to, refusal *refused) {
  const uint32_t given = body_field(read, "prompt");
  prompt *prompts;
  uint32_t count;
  if (given == 0) return refuse(refused, REFUSE_MISSING("prompt"), "prompt");
  return prompts_take(of->engine, read, given, "prompt", &prompts, &count, refused) &&
         begin(of, read, prompts, count, to, refused);
}

bool infill_begin(server *of, body *read, answer *to, refusal *refused) {
  prompt one = {0};
  return infill_take(of->engine, read, &one, refused) && begin(of, read, &one, 1, to, refused);
}
