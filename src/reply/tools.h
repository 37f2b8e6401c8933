// reply/tools.h — names and parameters of a request's tools.
#ifndef WICK_REPLY_TOOLS_H
#define WICK_REPLY_TOOLS_H

#include "grammar/document.h"
#include "grammar/said.h"
#include "reply/forms.h"
#include "reply/reply.h"

// Parses the tools of reply_parser_create; returns its errors.
typedef struct reply_tools reply_tools;
wick_status reply_tools_create(memory_gate *memory, wick_text json, reply_tools **out,
                               wick_error *error);
void reply_tools_destroy(reply_tools *tools);  // NULL does nothing
// Whether a tool's name begins with this string.
bool tools_begin(const reply_tools *tools, const char *text, size_t size_bytes);
bool tools_have(const reply_tools *tools, const char *name, size_t name_bytes);
// Returns the schema of a parameter, or of a member of `schema` (of its items if `key` is NULL). 0:
// none.
uint32_t tools_member(const reply_tools *tools, const char *name, size_t name_bytes,
                      uint32_t schema, const uint8_t *key, size_t key_bytes);
// Returns the types that the schema states, as SAID_* bits.
uint32_t tools_types_at(const reply_tools *tools, const char *name, size_t name_bytes,
                        uint32_t schema);

#endif
