// grammar/said.h — the types that a schema states explicitly, ignoring combinations of keywords.
// Parsers of parameters between tags use them.
#ifndef WICK_GRAMMAR_SAID_H
#define WICK_GRAMMAR_SAID_H

#include "grammar/document.h"

// Bits of types; no bits: the schema does not state a type.
enum {
  SAID_STRING = 1,
  SAID_NUMBER = 2,
  SAID_BOOLEAN = 4,
  SAID_NULL = 8,
  SAID_ARRAY = 16,
  SAID_OBJECT = 32
};

// Returns the schema of a member of `schema` from its properties, or of its items if the member has
// no bytes; references and lists of schemas are followed. `root` is the root for local references.
// 0: none.
uint32_t said_member(const json_document *document, uint32_t root, uint32_t schema,
                     document_text member);
uint32_t said_types_of(const json_document *document, uint32_t root, uint32_t schema);
// Returns the types of a member of `root`.
uint32_t said_types(const json_document *document, uint32_t root, document_text member);

#endif
