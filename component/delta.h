// component/delta.h — a part of a reply: an event of the engine, or JSON in OpenAI's format.
#ifndef WICK_COMPONENT_DELTA_H
#define WICK_COMPONENT_DELTA_H

#include "base/json.h"
#include "wick.h"

enum { CALL_ID_BYTES = 48 };

// Strings are valid only during the call that receives the
// delta.
typedef struct delta {
  wick_text content, reasoning;  // bytes NULL: absent
  bool is_call;
  uint32_t call_index;
  char call_id[CALL_ID_BYTES];  // empty: the model did not provide an id
  wick_text call_name;          // bytes NULL for a later piece of the arguments
  wick_text call_arguments;
  bool breaks_calls;  // calls from call_index on are invalid; content is their text
} delta;

delta delta_of(const wick_event *event);
// Writes the members of the delta.
void delta_write(json_writer *json, const delta *piece);

#endif
