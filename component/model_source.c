// component/model_source.c — where the model's bytes are: in the component, at a URL, or in a
// preopened directory.
#include <stdlib.h>
#include <string.h>

#include "server.h"
#include "url_source.h"

// `wick embed-component` looks for the mark in the module's data, puts the file behind the memory
// that the module begins with, and writes here where it is.
static const volatile struct {
  char mark[24];
  uint32_t address, size_bytes;
} embedded = {"wick: the model's place", 0, 0};

void model_forget_bytes(void) {
  void *bytes = (void *)(uintptr_t)embedded.address;
  if (bytes != NULL) memset(bytes, 0, embedded.size_bytes);
}

static bool fail(refusal *refused, const wick_error *error) {
  return refuse(refused, 503, "model", NULL, "The model does not load: %s", error->message);
}

bool model_load(wick_engine *engine, refusal *refused) {
  wick_error error;
  if (embedded.size_bytes > 0) {
    const void *bytes = (const void *)(uintptr_t)embedded.address;
    return wick_load_bytes(engine, bytes, embedded.size_bytes, &error) == WICK_OK ||
           fail(refused, &error);
  }
  const char *url = getenv("WICK_MODEL_URL"), *path = getenv("WICK_MODEL");
  if (url != NULL) return url_load(engine, url, refused);
  if (path == NULL) path = "/models/model.gguf";
  return wick_load_file(engine, path, &error) == WICK_OK || fail(refused, &error);
}
