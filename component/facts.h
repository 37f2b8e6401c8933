// component/facts.h — the engine's description of its model (wick_info_json) or of its state,
// parsed.
#ifndef WICK_COMPONENT_FACTS_H
#define WICK_COMPONENT_FACTS_H

#include "body.h"

typedef struct facts {
  buffer json;
  body read;
  bool is_read;
} facts;

// facts_end must be called in any case.
// Parses the JSON that the engine has written to `json`.
bool facts_parse(facts *of, refusal *refused);
bool facts_read(wick_engine *engine, facts *out, refusal *refused);
void facts_end(facts *held);
// Returns a member of `tokenizer`; 0: the model does not have it.
uint32_t facts_of_tokenizer(const facts *of, const char *name);
// Returns the id of a token {id, text}; WICK_TOKEN_NONE for node 0.
int32_t facts_token(const facts *of, uint32_t node);

#endif
