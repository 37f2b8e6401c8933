// Reads files and cases of vectors/vision for image and audio tests.
#ifndef WICK_TESTS_MEDIA_VECTORS_H
#define WICK_TESTS_MEDIA_VECTORS_H

#include "base/text.h"
#include "vectors.h"

static inline uint8_t *media_read_file(document_text name, size_t *size_bytes) {
  char path[256];
  text_format(path, sizeof path, "vectors/vision/%.*s", (int)name.size_bytes, name.bytes);
  return check_read_file(check_shared(path), size_bytes);
}

static inline double vectors_number(const vectors *v, uint32_t node) {
  char text[32];
  const document_text from = vectors_node(v, node)->text;
  text_format(text, sizeof text, "%.*s", (int)from.size_bytes, from.bytes);
  return strtod(text, NULL);
}

// Returns the number in a member, or 0 if the member is missing.
static inline double vectors_member_number(const vectors *v, uint32_t node, const char *name) {
  const uint32_t found = document_find(&v->document, node, name);
  return found == 0 ? 0 : vectors_number(v, found);
}

#endif
