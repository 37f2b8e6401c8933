// schedule/event_types.h — the record that hosts read; part of the public interface (wick.h).
#ifndef WICK_SCHEDULE_EVENT_TYPES_H
#define WICK_SCHEDULE_EVENT_TYPES_H

#include <stdint.h>

typedef enum wick_event_kind {
  WICK_EVENT_TOKEN = 1,    // a sampled token and the text that can be shown now (may be empty)
  WICK_EVENT_PREFILL = 2,  // tokens_prompt of which tokens_cached (= done so far) are processed
  WICK_EVENT_DONE = 3      // the last one of a request; text: what was held back, or the error's
} wick_event_kind;

typedef enum wick_finish {
  WICK_FINISH_NONE = 0,
  WICK_FINISH_STOP = 1,    // end token or stop string
  WICK_FINISH_LENGTH = 2,  // max_tokens or context full
  WICK_FINISH_ABORT = 3,
  WICK_FINISH_ERROR = 4  // `status`; the text is the message
} wick_finish;

// Same layout on every host. After the struct: top_count pairs {int32 token, float logprob}, then
// text_bytes of UTF-8, then padding to a multiple of 8.
typedef struct wick_event {
  uint32_t size_bytes;  // of the whole record
  uint32_t request;
  uint32_t kind;  // wick_event_kind
  int32_t token;  // TOKEN_NONE when none
  float logprob;
  uint32_t top_count;
  uint32_t text_bytes;
  uint32_t finish;  // wick_finish, of DONE
  uint32_t status;  // wick_status, of DONE by error
  uint32_t tokens_prompt;
  uint32_t tokens_cached;  // PREFILL: processed so far; DONE: taken from a cache
  uint32_t tokens_out;
  double queue_ms, prefill_ms, decode_ms;  // of DONE
  double ttft_ms;                          // from submit to the first token
} wick_event;

#endif
