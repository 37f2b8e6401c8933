// grammar/said.h — the types that a schema says plainly, without a look at what its keywords mean
// together: what a reader of marked parameters goes by.
#ifndef WICK_GRAMMAR_SAID_H
#define WICK_GRAMMAR_SAID_H

#include "grammar/document.h"

// As bits; none: it does not say.
enum {
  SAID_STRING = 1,
  SAID_NUMBER = 2,
  SAID_BOOLEAN = 4,
  SAID_NULL = 8,
  SAID_ARRAY = 16,
  SAID_OBJECT = 32
};

// Of a member that `schema`, the root of its local references, has among its properties.
uint32_t said_types(const json_document *document, uint32_t schema, document_text member);

#endif
