// A slow JSON schema validator that follows the specification's wording for each keyword (drafts 4
// to 2020-12), for values with a few names, strings and numbers.
#ifndef WICK_TESTS_SCHEMA_JUDGE_H
#define WICK_TESTS_SCHEMA_JUDGE_H

#include "grammar/document.h"

// The patterns that schemas may have.
enum { JUDGE_PATTERNS = 5 };
extern const char *const JUDGE_PATTERN_TEXTS[JUDGE_PATTERNS];

typedef struct schema_judge {
  const json_document *schema, *values;
  uint32_t dialect;  // 4, 6, 7, 2019, 2020
} schema_judge;

// Whether a value (a node of `values`) satisfies the schema.
bool judge_value(const schema_judge *judge, uint32_t value);

#endif
