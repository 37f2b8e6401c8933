// component/fields.c — checks the fields of a request's body by tables and passes them to the
// engine.
#include "fields.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "platform/platform.h"

#define WHOLE_MAX 9007199254740991.0  // largest integer that JavaScript represents exactly

#define NUMBER_FIELD(field, name, is_float, least, most, by_default) \
  {name, (is_float) ? FIELD_NUMBER : FIELD_WHOLE, RANGE(least, most)},

#define FLAG_FIELD(member, name) {name, FIELD_BOOLEAN, NULL},

// A row in the field tables of base/options.h.
#define RANGE(min, max) ((const double[]){min, max})
#define ROW(name, kind, more) {name, kind, more},
#define TABLE(name, next, ...) \
  const field fields_##name[] = {__VA_ARGS__{NULL, FIELD_IGNORED, next}}

static TABLE(stream_options, NULL, FIELDS_STREAM_OPTIONS(ROW));
static TABLE(structured_outputs, NULL, FIELDS_STRUCTURED_OUTPUTS(ROW));
static TABLE(json_schema, NULL, FIELDS_JSON_SCHEMA(ROW));
static TABLE(response_stream, NULL, FIELDS_RESPONSE_STREAM(ROW));
static TABLE(reasoning, NULL, FIELDS_REASONING(ROW));
static TABLE(response_text, NULL, FIELDS_RESPONSE_TEXT(ROW));
TABLE(text_format, NULL, FIELDS_TEXT_FORMAT(ROW));
TABLE(object_format, NULL, FIELDS_OBJECT_FORMAT(ROW));
TABLE(schema_format, NULL, FIELDS_SCHEMA_FORMAT(ROW));
TABLE(response_format, NULL, FIELDS_RESPONSE_FORMAT(ROW));
TABLE(response_tool, NULL, FIELDS_RESPONSE_TOOL(ROW));
TABLE(message, NULL, FIELDS_MESSAGE(ROW) ROW("prefix", FIELD_MISSING, "false"));

static TABLE(every, NULL, FIELDS_EVERY(ROW));
static TABLE(text, fields_every,
             FIELDS_TEXT(ROW) SAMPLING_FIELDS(NUMBER_FIELD) FLAG_FIELDS(FLAG_FIELD));
#define CHAT_FIELDS                                      \
  FIELDS_CHAT_USED(ROW)                                  \
  FIELDS_CHAT_IDLE(ROW) /* only their kind is checked */ \
  ROW("continue_final_message", FIELD_MISSING, "false")  \
  ROW("add_generation_prompt", FIELD_MISSING, "true")
TABLE(chat, fields_text, CHAT_FIELDS);
TABLE(completion, fields_text, FIELDS_COMPLETION(ROW));
TABLE(responses, fields_text, FIELDS_RESPONSE(ROW));
TABLE(native, fields_text, FIELDS_NATIVE_COMPLETION(ROW) FIELDS_NATIVE(ROW));
TABLE(infill, fields_text, FIELDS_INFILL(ROW) FIELDS_NATIVE(ROW));
TABLE(embedding, fields_every, FIELDS_EMBEDDING(ROW));
TABLE(native_embedding, fields_every, FIELDS_NATIVE_EMBEDDING(ROW));
TABLE(rerank, fields_every, FIELDS_RERANK(ROW));
TABLE(tokenize, NULL, FIELDS_TOKENIZE(ROW));
TABLE(detokenize, NULL, FIELDS_DETOKENIZE(ROW));
TABLE(template, NULL, FIELDS_TEMPLATE(ROW));

static const field *find(const field *table, document_text name) {
  while (table != NULL) {
    if (table->name != NULL && text_is(name, table->name)) return table;
    table = table->name == NULL ? table->more : table + 1;
  }
  return NULL;
}

// Returns the field that has this name on another server, or NULL.
static const char *own_name(document_text name) {
#define OTHER_NAME(other, own) \
  if (text_is(name, other)) return own;
  FIELD_ALIASES(OTHER_NAME)
#undef OTHER_NAME
  return NULL;
}

// ---- checks ----

static bool is_in_range(const body *read, uint32_t node, const field *known) {
  const double value = body_number(read, node), *range = known->more;
  if (known->kind == FIELD_WHOLE && value != floor(value)) return false;
  return value >= range[0] && value <= range[1];
}

static bool check_number(const body *read, uint32_t node, const field *known, const char *name,
                         refusal *refused) {
  if (body_node(read, node)->kind == JSON_NUMBER && is_in_range(read, node, known)) return true;
  char words[96];
  const char *kind = known->kind == FIELD_WHOLE ? "a whole number" : "a number";
  const double *range = known->more, min = range[0], max = range[1];
  if (max >= WHOLE_MAX || max == UINT32_MAX) {
    snprintf(words, sizeof words, "%s of at least %.16g", kind, min);
  } else {
    snprintf(words, sizeof words, "%s from %.16g to %.16g", kind, min, max);
  }
  return refuse_value(refused, name, min == -WHOLE_MAX ? WORDS_WHOLE : words);
}

// Whether a value is neutral. `idle` contains JSON values separated by '|'.
static bool is_idle(const char *idle, wick_text source) {
  while (idle != NULL && *idle != '\0') {
    const size_t size = strcspn(idle, "|");
    if (size == source.size_bytes && memcmp(idle, source.bytes, size) == 0) return true;
    idle += size + (idle[size] == '|');
  }
  return false;
}

static bool check_missing(const body *read, uint32_t node, const field *known, const char *name,
                          refusal *refused) {
  const wick_text source = body_source(read, node);
  if (is_idle(known->more, source)) return true;
  const int shown = source.size_bytes < 60 ? (int)source.size_bytes : 60;
  return refuse(refused, 400, "unsupported_parameter", name, "%s: %.*s is not supported", name,
                shown, source.bytes);
}

static bool is_effort(const body *read, uint32_t node) {
  static const char *const EFFORTS[] = {"none", "minimal", "low", "medium", "high", "xhigh", "max"};
  for (size_t i = 0; i < sizeof EFFORTS / sizeof *EFFORTS; i++) {
    if (body_is(read, node, EFFORTS[i])) return true;
  }
  return false;
}

static bool is_limit(const body *read, uint32_t node, bool may_be_0) {
  const double value = body_node(read, node)->kind == JSON_NUMBER ? body_number(read, node) : -2;
  return value == -1 || (value == 0 && may_be_0) ||
         (value >= 1 && value <= UINT32_MAX && value == floor(value));
}

static bool are_strings(const body *read, uint32_t list) {
  bool is_right = body_node(read, list)->kind == JSON_ARRAY;
  BODY_EACH(read, item, list) is_right = is_right && body_is_text(read, item);
  return is_right;
}

uint32_t fields_tokens(const body *read, uint32_t node) {
  const double value = body_number(read, node);
  return value < 0 ? 0 : (uint32_t)value;
}

static bool check_object(const body *read, uint32_t object, const field *members, const char *name,
                         refusal *refused) {
  char prefix[REFUSAL_PARAM_BYTES + 1];
  if (body_node(read, object)->kind != JSON_OBJECT) {
    return refuse_value(refused, name, WORDS_OBJECT);
  }
  snprintf(prefix, sizeof prefix, "%s.", name);
  return fields_check(read, object, members, prefix, refused);
}

static bool check_field(const body *read, uint32_t node, const field *known, const char *name,
                        refusal *refused) {
  const json_kind kind = body_node(read, node)->kind;
  switch (known->kind) {
    case FIELD_IGNORED:
      return true;
    case FIELD_BOOLEAN:
      return kind == JSON_TRUE || kind == JSON_FALSE || refuse_value(refused, name, WORDS_BOOLEAN);
    case FIELD_NUMBER:
    case FIELD_WHOLE:
      return check_number(read, node, known, name, refused);
    case FIELD_TEXT:
      return kind == JSON_STRING || refuse_value(refused, name, WORDS_TEXT);
    case FIELD_TEXTS:
      return kind == JSON_STRING || are_strings(read, node) ||
             refuse_value(refused, name, WORDS_TEXTS);
    case FIELD_STRINGS:
      return are_strings(read, node) || refuse_value(refused, name, WORDS_STRINGS);
    case FIELD_CHOICES:
      return (are_strings(read, node) && body_node(read, node)->count > 0) ||
             refuse_value(refused, name, WORDS_CHOICES);
    case FIELD_OBJECT:
      return kind == JSON_OBJECT || refuse_value(refused, name, WORDS_OBJECT);
    case FIELD_MEMBERS:
      return check_object(read, node, known->more, name, refused);
    case FIELD_TOKENS:
      return is_limit(read, node, known->more != NULL) || refuse_value(refused, name, WORDS_TOKENS);
    case FIELD_SCHEMA:
      return kind == JSON_OBJECT || kind == JSON_STRING ||
             refuse_value(refused, name, WORDS_SCHEMA);
    case FIELD_EFFORT:
      return is_effort(read, node) || refuse_value(refused, name, WORDS_EFFORT);
    case FIELD_MISSING:
      return check_missing(read, node, known, name, refused);
    case FIELD_UNKNOWN:
      break;
  }
  return false;
}

static bool check_members(const body *read, uint32_t object, const field *table, const char *prefix,
                          bool may_have_others, refusal *refused) {
  BODY_EACH(read, node, object) {
    const json_node *member = body_node(read, node);
    char name[REFUSAL_PARAM_BYTES];
    const int shown = member->key.size_bytes < 60 ? (int)member->key.size_bytes : 60;
    snprintf(name, sizeof name, "%s%.*s", prefix, shown, (const char *)member->key.bytes);
    const char *own = object == BODY_ROOT ? own_name(member->key) : NULL;
    const document_text key = {(const uint8_t *)own, own == NULL ? 0 : (uint32_t)strlen(own)};
    const field *known = find(table, own == NULL ? member->key : key);
    if (known == NULL || known->kind == FIELD_UNKNOWN) {
      if (may_have_others) continue;
      return refuse(refused, REFUSE_UNKNOWN(name), name);
    }
    if (member->kind == JSON_NULL) continue;
    if (!check_field(read, node, known, name, refused)) return false;
    if (own == NULL || body_field(read, own) == node) continue;
    return refuse(refused, REFUSE_SAME_FIELD(name), name, own);
  }
  return true;
}

bool fields_check(const body *read, uint32_t object, const field *table, const char *prefix,
                  refusal *refused) {
  return check_members(read, object, table, prefix, false, refused);
}

bool fields_check_known(const body *read, uint32_t object, const field *table, const char *prefix,
                        refusal *refused) {
  return check_members(read, object, table, prefix, true, refused);
}

// ---- values ----

// Reads a string or an array of strings, and sets *count. `param` is the field's name.
static bool take_texts(body *read, uint32_t node, const char *param, document_text **texts,
                       uint32_t *count, refusal *refused) {
  const json_node *found = body_node(read, node);
  const bool is_list = found->kind == JSON_ARRAY;
  *count = is_list ? found->count : 1;
  *texts = body_alloc(read, *count + 1, sizeof **texts, refused);
  if (*texts == NULL) return false;
  uint32_t index = 0;
  for (uint32_t item = is_list ? found->first : node; item != 0;
       item = is_list ? body_node(read, item)->next : 0) {
    if (!body_is_text(read, item)) {
      return refuse_value(refused, param, WORDS_TEXTS);
    }
    (*texts)[index++] = body_node(read, item)->text;
  }
  return true;
}

// Converts a list of strings to the engine's form: pointers, and a parallel array of sizes.
static bool take_list(body *read, const char *name, const char *const **bytes, const size_t **sizes,
                      uint32_t *count, refusal *refused) {
  const uint32_t node = body_field(read, name);
  document_text *texts;
  if (node == 0) return true;
  if (!take_texts(read, node, name, &texts, count, refused)) return false;
  const char **pointers = body_alloc(read, *count + 1, sizeof *pointers, refused);
  size_t *lengths = body_alloc(read, *count + 1, sizeof *lengths, refused);
  if (pointers == NULL || lengths == NULL) return false;
  for (uint32_t i = 0; i < *count; i++) {
    pointers[i] = (const char *)texts[i].bytes;
    lengths[i] = texts[i].size_bytes;
  }
  *bytes = pointers;
  *sizes = lengths;
  return true;
}

static bool take_token(document_text key, int32_t *token) {
  uint32_t value = 0;
  for (uint32_t i = 0; i < key.size_bytes; i++) {
    if (key.bytes[i] < '0' || key.bytes[i] > '9' || value > INT32_MAX / 10) return false;
    value = value * 10 + (key.bytes[i] - '0');
  }
  *token = (int32_t)value;
  return key.size_bytes > 0 && value <= INT32_MAX;
}

bool fields_take_bias(body *read, wick_sampling *sampling, refusal *refused) {
  const uint32_t node = body_field(read, "logit_bias");
  if (node == 0) return true;
  wick_bias *list = body_alloc(read, body_node(read, node)->count + 1, sizeof *list, refused);
  if (list == NULL) return false;
  uint32_t count = 0;
  BODY_EACH(read, item, node) {
    if (!take_token(body_node(read, item)->key, &list[count].token) ||
        body_node(read, item)->kind != JSON_NUMBER) {
      return refuse_value(refused, "logit_bias", WORDS_LOGIT_BIAS);
    }
    list[count++].bias = (float)body_number(read, item);
  }
  sampling->bias = list;
  sampling->bias_count = count;
  return true;
}

static bool take_samplers(body *read, wick_sampling *sampling, refusal *refused) {
  const uint32_t node = body_field(read, "samplers");
  document_text *names;
  uint32_t count = 0;
  if (node == 0) return true;
  if (!take_texts(read, node, "samplers", &names, &count, refused)) return false;
  char *letters = body_alloc(read, count + 1, 1, refused);
  if (letters == NULL) return false;
  for (uint32_t i = 0; i < count; i++) {
    letters[i] = sampler_letter((const char *)names[i].bytes, names[i].size_bytes);
    if (letters[i] != '\0') continue;
    return refuse_value(refused, "samplers", WORDS_SAMPLERS);
  }
  sampling->samplers = letters;
  return true;
}

static void take_numbers(const body *read, wick_sampling *sampling) {
  static const struct {
    const char *name;
    size_t at_bytes;
    bool is_float;
    double by_default;
  } NUMBERS[] = {
#define NUMBER(field, name, is_float, least, most, by_default) \
  {name, offsetof(wick_sampling, field), is_float, by_default},
      SAMPLING_FIELDS(NUMBER)
#undef NUMBER
  };
  for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++) {
    const uint32_t node = body_field(read, NUMBERS[i].name);
    const double value = node == 0 ? NUMBERS[i].by_default : body_number(read, node);
    char *place = (char *)sampling + NUMBERS[i].at_bytes;
    if (NUMBERS[i].is_float) {
      *(float *)(void *)place = (float)value;
    } else {
      *(uint32_t *)(void *)place = (uint32_t)(int64_t)value;  // -1 is WICK_LAST_CONTEXT
    }
  }
}

static uint64_t seed_of(const body *read) {
  const uint32_t node = body_field(read, "seed");
  if (node != 0 && body_number(read, node) != -1) return (uint64_t)(int64_t)body_number(read, node);
  uint64_t seed;
  platform_random(&seed, sizeof seed);
  return seed;
}

static bool take_stream(const body *read, wanted *out, refusal *refused) {
  const uint32_t node = body_field(read, "stream_options");
  out->is_streamed = body_flag(read, "stream");
  if (node == 0) return true;
  out->includes_usage = body_is_true(read, body_find(read, node, "include_usage"));
  return out->is_streamed || refuse(refused, REFUSE_NO_STREAM("stream_options"));
}

static void take_counts(const body *read, wanted *out) {
  wick_request *request = &out->request;
  const uint32_t n = body_field(read, "n");
  const uint32_t tokens = body_field(read, "max_tokens");
  const uint32_t budget = body_field(read, "thinking_budget_tokens");
  if (n != 0) request->completions = (uint32_t)body_number(read, n);
  if (tokens != 0) request->max_tokens = fields_tokens(read, tokens);
  out->limits_reasoning = budget != 0 && body_number(read, budget) >= 0;
  if (out->limits_reasoning) out->reasoning.tokens_max = (uint32_t)body_number(read, budget);
}

// Sets the request's salt. If a client has a key, its own salt is appended to the key's salt. All
// salts of keys have the same length, so salts of clients with different keys never collide.
static bool take_salt(body *read, const char *tenant, wick_request *request, refusal *refused) {
  const uint32_t node = body_field(read, "salt");
  const wick_text own = body_text(read, node);
  if (node != 0 && own.size_bytes == 0) {
    return refuse_value(refused, "salt", WORDS_SALT);
  }
  request->salt = tenant == NULL ? own.bytes : tenant;
  request->salt_bytes = tenant == NULL ? own.size_bytes : strlen(tenant);
  if (tenant == NULL || node == 0) return true;
  char *both = body_alloc(read, request->salt_bytes + 1 + own.size_bytes, 1, refused);
  if (both == NULL) return false;
  memcpy(both, tenant, request->salt_bytes);
  both[request->salt_bytes] = '/';
  memcpy(both + request->salt_bytes + 1, own.bytes, own.size_bytes);
  request->salt = both;
  request->salt_bytes += 1 + own.size_bytes;
  return true;
}

// A way to constrain the output: a field, or a member of vLLM's structured_outputs.
typedef struct text_form {
  const char *name;
  bool is_structured;
  uint32_t kind;
} text_form;

static const text_form FORMS[] = {{"grammar", false, WICK_GRAMMAR_GBNF},
                                  {"json_schema", false, WICK_GRAMMAR_JSON_SCHEMA},
                                  {"regex", false, WICK_GRAMMAR_REGEX},
                                  {"choices", false, WICK_GRAMMAR_CHOICE},
                                  {"grammar", true, WICK_GRAMMAR_GBNF},
                                  {"regex", true, WICK_GRAMMAR_REGEX},
                                  {"choice", true, WICK_GRAMMAR_CHOICE},
                                  {"json", true, WICK_GRAMMAR_JSON_SCHEMA},
                                  {"json_object", true, WICK_GRAMMAR_JSON_SCHEMA}};

static wick_grammar grammar_of(const body *read, uint32_t node, uint32_t kind) {
  static const char ANY[] = "{\"type\":\"object\"}";
  const bool is_text = body_is_text(read, node);
  const bool is_flag = body_node(read, node)->kind == JSON_TRUE;
  const wick_text text = is_text ? body_text(read, node) : body_source(read, node);
  return (wick_grammar){.kind = kind,
                        .text = is_flag ? ANY : text.bytes,
                        .text_bytes = is_flag ? sizeof ANY - 1 : text.size_bytes};
}

static bool take_grammar(const body *read, wick_grammar *out, refusal *refused) {
  const uint32_t structured = body_field(read, "structured_outputs");
  const char *first = NULL;
  for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++) {
    const bool is_structured = FORMS[i].is_structured;
    const uint32_t node = body_find(read, is_structured ? structured : BODY_ROOT, FORMS[i].name);
    if (node == 0 || body_node(read, node)->kind == JSON_FALSE) continue;
    const char *name = is_structured ? "structured_outputs" : FORMS[i].name;
    if (out->kind != WICK_GRAMMAR_NONE) {
      if (first != NULL) name = first;
      return refuse(refused, 400, "invalid_value", name,
                    "%s: a request may have only one of grammar, regex, choices, json_schema and "
                    "response_format",
                    name);
    }
    first = name;
    *out = grammar_of(read, node, FORMS[i].kind);
  }
  return true;
}

bool fields_take_probabilities(const body *read, wick_sampling *sampling) {
  const uint32_t count = body_field(read, "n_probs");
  if (count == 0 || body_number(read, count) == 0) return false;
  sampling->logprob = true;
  sampling->logprobs = (uint32_t)body_number(read, count);
  return true;
}

static bool check_adapters(const body *read, refusal *refused) {
  const uint32_t list = body_field(read, "lora");
  if (list == 0) return true;
  if (body_node(read, list)->kind != JSON_ARRAY) return refuse_value(refused, "lora", WORDS_LORA);
  BODY_EACH(read, one, list) {
    const uint32_t id = body_find(read, one, "id"), scale = body_find(read, one, "scale");
    const double number = body_node(read, id)->kind == JSON_NUMBER ? body_number(read, id) : -1;
    const uint32_t known = 1 + (scale != 0);
    if (number < 0 || number != floor(number) || body_node(read, one)->count != known ||
        (scale != 0 && body_node(read, scale)->kind != JSON_NUMBER)) {
      return refuse_value(refused, "lora", WORDS_LORA);
    }
  }
  return body_node(read, list)->count == 0 || refuse(refused, 400, "invalid_value", "lora[0].id",
                                                     "lora[0].id: the server has no adapters");
}

bool fields_take(body *read, const char *tenant, wanted *out, refusal *refused) {
  wick_request_default(&out->request);
  wick_sampling *sampling = &out->request.sampling;
  sampling->seed = seed_of(read);
  out->request.completions = 1;
#define TAKE_FLAG(member, name) out->request.member = body_flag(read, name);
  FLAG_FIELDS(TAKE_FLAG)
#undef TAKE_FLAG
  take_numbers(read, sampling);
  take_counts(read, out);
  if (!check_adapters(read, refused) || !take_grammar(read, &out->grammar, refused)) return false;
  if (out->grammar.kind != WICK_GRAMMAR_NONE) out->request.grammar = &out->grammar;
  return take_stream(read, out, refused) && take_salt(read, tenant, &out->request, refused) &&
         take_samplers(read, sampling, refused) &&
         take_list(read, "stop", &out->request.stops, &out->request.stop_bytes,
                   &out->request.stop_count, refused) &&
         take_list(read, "dry_sequence_breakers", &sampling->dry_sequence_breakers,
                   &sampling->dry_breaker_bytes, &sampling->dry_breaker_count, refused);
}
