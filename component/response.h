// component/response.h — the response of /v1/responses: a chat completion in the form of output
// items. Each item is opened, written and closed before the next one.
#ifndef WICK_COMPONENT_RESPONSE_H
#define WICK_COMPONENT_RESPONSE_H

#include "server.h"

typedef enum item_kind { ITEM_MESSAGE, ITEM_REASONING, ITEM_CALL } item_kind;

typedef struct response_item {
  item_kind kind;
  char id[RANDOM_NAME_BYTES + 4];
  const char *status;     // "in_progress", "completed", "incomplete"
  bool is_open;           // whether its text is not complete yet
  buffer text, logprobs;  // for a call: its arguments; items of a JSON array
  buffer name;            // the name of a call
  char call[CALL_ID_BYTES];
} response_item;

struct response {
  buffer head;           // constant members of the object, without brackets
  response_item *items;  // [count]; the last one may be open
  uint32_t count, capacity;
  uint32_t call_index;  // of the open call
  uint32_t sequence;    // of the next event
};

// ---- the object (response_shape.c) ----

// Begins a response with the members of a checked body that responses repeat. Returns false if
// memory is full.
bool response_make(answer *to, const body *read, refusal *refused);
void response_free(answer *to);
// Adds an item. If memory is full, returns NULL, and the response body reports the error.
response_item *response_add_item(answer *to, item_kind kind, const char *status);
void response_put_item(buffer *out, const response_item *item);
// Writes a part of an item's content, with all of its text or without it.
void response_put_part(buffer *out, const response_item *item, bool has_text);
// Writes the response object. `status` is "in_progress", "failed", or the result of
// response_status; `problem` describes a failure.
void response_put(const answer *of, buffer *out, const char *status, const char *problem);
// Returns how the processed completion ended: "completed" or "incomplete".
const char *response_status(const answer *of);
// Writes the body of a response that is not streamed.
void response_put_whole(answer *to);

// ---- the input (response_input.c) ----

// Writes the messages of a checked body as items of a JSON array.
bool response_put_messages(buffer *out, const body *read, refusal *refused);
// Whether a name such as "web_search_call", up to `end` ('\0': up to its own end), belongs to a
// call that OpenAI's server executes.
bool response_is_server_call(wick_text name, char end);

#endif
