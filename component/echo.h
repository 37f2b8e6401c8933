// component/echo.h — the prompt before the choices of a completion.
#ifndef WICK_COMPONENT_ECHO_H
#define WICK_COMPONENT_ECHO_H

#include "server.h"

// Puts the prompt of `asked` before its choices, which begin with `first`. Of an answer with
// logprobs a request is queued for those of the prompt. False: refused.
bool echo_begin(const server *of, const wick_request *asked, answer *to, uint32_t first,
                refusal *refused);

#endif
