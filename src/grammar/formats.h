// grammar/formats.h — the formats of JSON Schema (2020-12, 7.3) as sets of strings.
#ifndef WICK_GRAMMAR_FORMATS_H
#define WICK_GRAMMAR_FORMATS_H

#include "grammar/dfa.h"
#include "grammar/document.h"

typedef enum format_kind {
  FORMAT_UNKNOWN,  // has no effect, as in the standard
  FORMAT_TEXTS,    // the set is *texts
  FORMAT_REFUSED,  // in the standard, but not supported
  FORMAT_INT32,    // numbers; from OpenAPI
  FORMAT_INT64,    // whole numbers; generated ones have fewer than 64 bits
} format_kind;

typedef enum format_level {
  FORMAT_AGREED,   // strings that all common validators accept
  FORMAT_EVERY,    // all strings that the format allows
  FORMAT_AT_MOST,  // all strings of FORMAT_EVERY, and possibly more
} format_level;

format_kind format_find(grammar_work *work, document_text name, format_level level,
                        const dfa **texts);

#endif
