// component/infill.h — the prompt of /infill.
#ifndef WICK_COMPONENT_INFILL_H
#define WICK_COMPONENT_INFILL_H

#include "facts.h"
#include "prompts.h"

// Builds the fill-in-the-middle prompt of a checked body: the prefix and the suffix, marked by the
// model's tokens for them. Its tokens belong to the body.
bool infill_take(wick_engine *engine, body *read, prompt *out, refusal *refused);

#endif
