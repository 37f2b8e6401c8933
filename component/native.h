// component/native.h — the response of /completion and /infill in the format of llama.cpp's server.
#ifndef WICK_COMPONENT_NATIVE_H
#define WICK_COMPONENT_NATIVE_H

#include "server.h"

struct native {
  buffer settings;  // the effective settings, as a JSON object
  buffer fields;    // the field response_fields, as terminated JSON; empty: the whole response
  bool returns_tokens;
  uint32_t max_tokens;  // 0: no limit
  buffer prompts[ANSWER_CHOICES_MAX];
  buffer tokens[ANSWER_CHOICES_MAX];   // of choices, as items of a JSON array
  bool has_lines[ANSWER_CHOICES_MAX];  // whether a choice has sent a line break
};

// Returns false if memory is full.
bool native_make(answer *to, refusal *refused);
void native_free(answer *to);
void native_take_token(answer *to, const choice *from, int32_t token);

#endif
