// component/refusal.h — why a request is refused: an HTTP status and a message in OpenAI's format.
#ifndef WICK_COMPONENT_REFUSAL_H
#define WICK_COMPONENT_REFUSAL_H

#include <stdbool.h>
#include <stdint.h>

#include "buffer.h"
#include "wick.h"

enum { REFUSAL_PARAM_BYTES = 96 };

typedef struct refusal {
  uint16_t status;                  // 0: nothing was refused
  const char *code;                 // for programs
  char param[REFUSAL_PARAM_BYTES];  // the field of the body that is wrong; "": none
  char message[WICK_ERROR_MESSAGE_BYTES + REFUSAL_PARAM_BYTES];  // for people
} refusal;

// Keeps the first refusal. `param` NULL: no field. Always false.
bool refuse(refusal *out, uint16_t status, const char *code, const char *param, const char *format,
            ...) __attribute__((format(printf, 5, 6)));
// For a wrong value of the field `param`.
bool refuse_value(refusal *out, const char *param, const char *wanted);
// For an error of the engine. `text` is the field with the text to read, `format` the field that
// constrains the answer.
bool refuse_error(refusal *out, const wick_error *error, const char *text, const char *format);

// {error: {message, type, param, code}}
void refusal_write(const refusal *failure, buffer *out);

#endif
