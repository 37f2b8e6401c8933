// component/echo.h — the prompt before the choices of a completion.
#ifndef WICK_COMPONENT_ECHO_H
#define WICK_COMPONENT_ECHO_H

#include "server.h"

// Puts the prompt of `asked` before its choices, which begin with `first`. With logprobs, queues a
// request for the logprobs of the prompt. Returns false if the request was rejected.
bool echo_begin(const wick_request *asked, answer *to, uint32_t first, refusal *refused);

#endif
