// reply/tools.h — what a request's tools say of names and parameters.
#ifndef WICK_REPLY_TOOLS_H
#define WICK_REPLY_TOOLS_H

#include "reply/reply.h"

// Types that a schema allows, as bits; none: it does not say.
enum {
  TYPE_STRING = 1,
  TYPE_NUMBER = 2,
  TYPE_BOOLEAN = 4,
  TYPE_NULL = 8,
  TYPE_ARRAY = 16,
  TYPE_OBJECT = 32
};

bool tools_have(const reply_tools *tools, const char *name, size_t name_bytes);
uint32_t tools_types(const reply_tools *tools, const char *name, size_t name_bytes,
                     const uint8_t *key, size_t key_bytes);

#endif
