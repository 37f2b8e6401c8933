// Reads a JSON file in the shared folder into a document.
#ifndef WICK_TESTS_VECTORS_H
#define WICK_TESTS_VECTORS_H

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "grammar/document.h"
#include "platform/platform.h"

typedef struct vectors {
  memory_gate memory;
  grammar_work work;
  json_document document;
  uint8_t *source;
  size_t size_bytes;
} vectors;

// Opens a file. Returns false if there is no shared folder, or after a failed check.
static inline bool vectors_open(vectors *v, const char *name) {
  memset(v, 0, sizeof *v);
  const char *path = check_shared(name);
  if (path == NULL) return false;
  v->source = check_read_file(path, &v->size_bytes);
  memory_init(&v->memory, 0, platform_alloc, platform_free);
  work_begin(&v->work, &v->memory);
  return CHECK(v->source != NULL) &&
         CHECK(document_read(&v->work, v->source, v->size_bytes, &v->document));
}

static inline void vectors_close(vectors *v) {
  work_end(&v->work);
  free(v->source);
}

static inline const json_node *vectors_node(const vectors *v, uint32_t node) {
  return document_node(&v->document, node);
}

// Returns the text of a member, which is empty if the member is missing.
static inline document_text vectors_text(const vectors *v, uint32_t node, const char *name) {
  const document_text none = {0};
  const uint32_t found = document_find(&v->document, node, name);
  return found == 0 ? none : vectors_node(v, found)->text;
}

#endif
