// reply/tools.h — what a request's tools say of names and parameters.
#ifndef WICK_REPLY_TOOLS_H
#define WICK_REPLY_TOOLS_H

#include "grammar/said.h"
#include "reply/reply.h"

bool tools_have(const reply_tools *tools, const char *name, size_t name_bytes);
// Of a parameter, SAID_* as bits.
uint32_t tools_types(const reply_tools *tools, const char *name, size_t name_bytes,
                     const uint8_t *key, size_t key_bytes);

#endif
