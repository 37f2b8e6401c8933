// component/refusal.h — why a request is rejected: an HTTP status and a message in OpenAI's format.
#ifndef WICK_COMPONENT_REFUSAL_H
#define WICK_COMPONENT_REFUSAL_H

#include <stdbool.h>
#include <stdint.h>

#include "buffer.h"
#include "wick.h"

enum { REFUSAL_PARAM_BYTES = 96 };

typedef struct refusal {
  uint16_t status;                  // 0: not rejected
  const char *code;                 // machine-readable
  char param[REFUSAL_PARAM_BYTES];  // the invalid field of the body; "": none
  char message[WICK_ERROR_MESSAGE_BYTES + REFUSAL_PARAM_BYTES];  // human-readable
  uint64_t prompt_tokens;  // if the prompt exceeds the context; otherwise 0
  uint64_t context_tokens;
} refusal;

// Keeps the first refusal. `param` NULL: no field. Always returns false.
bool refuse(refusal *out, uint16_t status, const char *code, const char *param, const char *format,
            ...) __attribute__((format(printf, 5, 6)));
// Rejects a request because memory ran out. `what` NULL: "Out of memory" without " for WHAT".
bool refuse_memory(refusal *out, const char *what);
// Rejects an invalid value of the field `param`.
bool refuse_value(refusal *out, const char *param, const char *wanted);
// Rejects a request because of an error of the engine. `text` is the field with the input, `format`
// the field that constrains the output.
bool refuse_error(refusal *out, const wick_error *error, const char *text, const char *format);

// Writes {error: {message, type, param, code}}, with the sizes as in llama.cpp's server.
void refusal_write(const refusal *failure, buffer *out);

#endif
