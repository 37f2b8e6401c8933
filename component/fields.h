// component/fields.h — the fields of a request's body. A field that is unknown or requests a
// missing feature is rejected with an error that names it, because ignoring it would change the
// output.
#ifndef WICK_COMPONENT_FIELDS_H
#define WICK_COMPONENT_FIELDS_H

#include "base/options.h"
#include "body.h"

typedef enum field_kind {
  FIELD_IGNORED,  // concerns only OpenAI's service, or is checked where it is used
  FIELD_BOOLEAN,
  FIELD_NUMBER,
  FIELD_WHOLE,
  FIELD_TEXT,
  FIELD_TEXTS,  // a string or an array of strings
  FIELD_OBJECT,
  FIELD_TOKENS,   // a limit on tokens: -1 for no limit; 0 is also accepted if `idle` is "0"
  FIELD_SCHEMA,   // a JSON schema, or its text
  FIELD_EFFORT,   // the amount of reasoning
  FIELD_MISSING,  // for a missing feature: only `idle` is accepted
  FIELD_UNKNOWN   // a field of the shared table that is unknown here
} field_kind;

typedef struct field {
  const char *name;
  field_kind kind;
  double min, max;   // for numbers
  const char *idle;  // neutral JSON values separated by '|'; NULL: only null
} field;

// A row in the field tables of base/options.h.
#define PLAIN_FIELD(name, kind, min, max, idle) {name, kind, min, max, idle},

// The last field of a table has no name.
typedef struct field_tables {
  const field *own, *shared;  // `shared` NULL: only `own`
  const char *prefix;         // of field names in error messages, "" or "messages[0]."
} field_tables;
// Whether all members of `object` are fields of the tables with valid values.
bool fields_check(const body *read, uint32_t object, const field_tables *tables, refusal *refused);
// Like fields_check, but members that are not in a table are accepted.
bool fields_check_known(const body *read, uint32_t object, const field_tables *tables,
                        refusal *refused);

// Returns a value of FIELD_TOKENS in the engine's form: 0 for no limit.
uint32_t fields_tokens(const body *read, uint32_t node);
// Reads the fields grammar, regex, choices and json_schema, and vLLM's equivalents. At most one of
// them is allowed, and none if `out` already has a grammar.
bool fields_take_grammar(body *read, wick_grammar *out, refusal *refused);

// Reads the n_probs field of llama.cpp's server, which replaces the fields about logprobs. Returns
// false if the field does not request probabilities.
bool fields_take_probabilities(const body *read, wick_sampling *sampling);

// The fields that chat completions and completions share.
extern const field fields_common[];

// The engine's request that a body describes. Its memory belongs to the body.
typedef struct wanted {
  wick_request request;
  wick_reasoning reasoning;  // used if limits_reasoning is set
  bool limits_reasoning;
  bool is_streamed, includes_usage;
} wanted;
// Applies the fields that fields_check accepted. Without a seed, a random one is chosen. If
// `tenant` is NULL, only the request's own salt counts.
bool fields_take(body *read, const char *tenant, wanted *out, refusal *refused);
// Applies the field `logit_bias` in OpenAI's format.
bool fields_take_bias(body *read, wick_sampling *sampling, refusal *refused);
// Checks the `lora` field of llama.cpp's server. Components do not load adapters, so a request that
// selects one is rejected.
bool fields_check_adapters(const body *read, refusal *refused);
// Reads a string or an array of strings, and sets *count. `param` is the field's name.
bool fields_take_texts(body *read, uint32_t node, const char *param, document_text **texts,
                       uint32_t *count, refusal *refused);

#endif
