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
  FIELD_TEXTS,    // a string or an array of strings
  FIELD_STRINGS,  // an array of strings
  FIELD_CHOICES,  // an array of at least one string
  FIELD_OBJECT,
  FIELD_MEMBERS,  // an object with the fields of the table `more`
  FIELD_TOKENS,   // a limit on tokens: -1 for no limit; 0 is also accepted if `more` is "0"
  FIELD_SCHEMA,   // a JSON schema, or its text
  FIELD_EFFORT,   // the amount of reasoning
  FIELD_MISSING,  // for a missing feature: only the JSON values in `more`, separated by '|'
  FIELD_UNKNOWN   // a field of the shared table that is unknown here
} field_kind;

typedef struct field {
  const char *name;
  field_kind kind;
  const void *more;  // for numbers: the minimum and the maximum (double)
} field;

// The last field of a table has no name; `more` is the table that continues it, or NULL.
extern const field fields_chat[], fields_completion[], fields_responses[], fields_native[],
    fields_infill[], fields_embedding[], fields_native_embedding[], fields_rerank[],
    fields_tokenize[], fields_detokenize[], fields_template[];
// of objects in fields
extern const field fields_message[], fields_text_format[], fields_object_format[],
    fields_schema_format[], fields_response_format[], fields_response_tool[];

// Whether all members of `object` are fields of the table with valid values. `prefix` precedes
// their names in errors: "" or "messages[0].".
bool fields_check(const body *read, uint32_t object, const field *table, const char *prefix,
                  refusal *refused);
// Like fields_check, but members that are not in the table are accepted.
bool fields_check_known(const body *read, uint32_t object, const field *table, const char *prefix,
                        refusal *refused);

// Returns a value of FIELD_TOKENS in the engine's form: 0 for no limit.
uint32_t fields_tokens(const body *read, uint32_t node);
// Reads the n_probs field of llama.cpp's server, which replaces the fields about logprobs. Returns
// false if the field does not request probabilities.
bool fields_take_probabilities(const body *read, wick_sampling *sampling);

// The engine's request that a body describes. Its memory belongs to the body.
typedef struct wanted {
  wick_request request;
  wick_reasoning reasoning;  // used if limits_reasoning is set
  bool limits_reasoning;
  wick_grammar grammar;  // of the request
  bool is_streamed, includes_usage;
} wanted;
// Applies the fields that fields_check accepted to a zeroed request. Without a seed, a random one
// is chosen. If `tenant` is NULL, only the request's own salt counts. At most one of grammar,
// regex, choices, json_schema and vLLM's equivalents is allowed, and none if the request already
// has a grammar. Components do not load adapters, so a request that selects one (lora) is rejected.
bool fields_take(body *read, const char *tenant, wanted *out, refusal *refused);
// Applies the field `logit_bias` in OpenAI's format.
bool fields_take_bias(body *read, wick_sampling *sampling, refusal *refused);

#endif
