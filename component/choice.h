// component/choice.h — one completion of a request in progress: the parts of the model's output,
// and the data stored for a response that is not streamed.
#ifndef WICK_COMPONENT_CHOICE_H
#define WICK_COMPONENT_CHOICE_H

#include "base/json.h"
#include "body.h"
#include "wick.h"

enum { CALL_ID_BYTES = 48 };

// A part of a reply. Strings are valid only during the call that receives the delta.
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
// Writes the members of the delta in OpenAI's format.
void delta_write(json_writer *json, const delta *piece);

typedef struct call {
  char id[CALL_ID_BYTES];
  buffer name, arguments;
} call;

// The logprobs of tokens as items of JSON arrays. Chat completions use only `tokens`, whose items
// are objects.
typedef struct details {
  union {
    struct {
      buffer tokens, logprobs, tops, offsets;
    };
    buffer lists[4];
  };
  uint32_t text_units;  // UTF-16 units of all tokens so far: OpenAI's text_offset
} details;

// How `details` writes a token.
typedef enum details_form {
  DETAILS_CHAT,          // an object of chat completions
  DETAILS_TEXT,          // an item of each list of completions
  DETAILS_NATIVE,        // an object of llama.cpp's server
  DETAILS_PROBABILITIES  // the same with probabilities in place of their logarithms
} details_form;

typedef struct choice {
  uint32_t request;         // the engine's number
  bool is_open;             // whether the last event of the choice has not arrived yet
  bool has_called;          // whether the choice has called a tool and no call was malformed
  bool has_parts;           // whether the choice is a reply to a conversation, in parts; otherwise
                            // everything is content
  const wick_event *parts;  // the first part whose TOKEN or DONE event has not arrived
  // stored for a response that is not streamed
  buffer content, reasoning;
  call *calls;  // [call_count]
  uint32_t call_count, call_capacity;
  details details;
  // The echoed prompt: the logprobs of its tokens come from a separate request that generates the
  // tokens. They are stored with the first choice of the prompt.
  details echo;
  uint32_t echo_request, echo_left;  // the engine's number; the tokens still missing
  bool is_echo_open;
  // the end of the choice
  const char *finish;  // "stop", "length"; NULL: not ended
  uint32_t stop;       // 1 + the index of the stop string that ended the choice; 0: no stop string
  uint32_t tokens_prompt, tokens_cached;
  uint32_t tokens_out;  // before the end: the number of tokens that have arrived
  double queue_ms, prefill_ms, decode_ms, ttft_ms;
} choice;

typedef void (*delta_sink)(void *context, choice *from, const delta *piece);

// Emits the parts of the text of a TOKEN or DONE event.
void choice_read(choice *from, const wick_event *event, delta_sink sink, void *context);
// Adds a piece to the text of a response that is not streamed; a delta_sink without a context.
void choice_keep(void *nothing, choice *from, const delta *piece);
void choice_free(choice *from);
// Returns the finish reason of a choice that has ended.
static inline const char *choice_finish(const choice *ended) {
  return ended->has_called && ended->finish[0] == 's' ? "tool_calls" : ended->finish;
}

// Adds a token's logprobs and those of the first `alternatives` alternatives of the event.
void details_add(details *to, wick_engine *engine, const wick_event *event, uint32_t alternatives,
                 details_form form);
// Adds a token of a completion that has no logprob because no token precedes it.
void details_add_first(details *to, wick_engine *engine, int32_t token);
void details_clear(details *held);
// Returns the bytes of a token, which are stored in the engine or in `scratch`.
enum { TOKEN_BYTES_MAX = 1024 };
wick_text token_bytes(wick_engine *engine, int32_t token, char scratch[TOKEN_BYTES_MAX]);
// Returns the number of UTF-16 units of a token, as counted by text_offset.
uint32_t details_units(wick_engine *engine, int32_t token);

// Writes 25 random digits and lower-case letters, terminated.
enum { RANDOM_NAME_BYTES = 26 };
void random_name(char name[RANDOM_NAME_BYTES]);

#endif
