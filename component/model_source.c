// component/model_source.c — finds the bytes of the model (in the component, at a URL, or in a
// preopened directory) and of the mmproj file.
#include <stdlib.h>
#include <string.h>

#include "server.h"
#include "url_source.h"

// `wick embed-component` searches the module's data for this marker, puts the file after the
// module's initial memory, and writes the file's position here.
static const volatile struct {
  char mark[24];
  uint32_t address, size_bytes;
} embedded = {"wick: the model's place", 0, 0};

void model_forget_bytes(void) {
  void *bytes = (void *)(uintptr_t)embedded.address;
  if (bytes != NULL) memset(bytes, 0, embedded.size_bytes);
}

const char *model_url(void) { return embedded.size_bytes > 0 ? NULL : getenv("WICK_MODEL_URL"); }

static const char *path_of_model(void) {
  const char *path = getenv("WICK_MODEL");
  return path == NULL ? "/models/model.gguf" : path;
}

void model_put_source(buffer *out) {
  const char *url = model_url();
  if (url != NULL) buffer_put(out, url, strcspn(url, "?#"));
  if (url == NULL) buffer_put_text(out, embedded.size_bytes > 0 ? "embedded" : path_of_model());
}

static bool fail(refusal *refused, const wick_error *error) {
  return refuse(refused, 503, "model", NULL, "The model could not be loaded: %s", error->message);
}

bool model_load(wick_engine *engine, refusal *refused) {
  wick_error error;
  if (embedded.size_bytes > 0) {
    const void *bytes = (const void *)(uintptr_t)embedded.address;
    return wick_load_bytes(engine, bytes, embedded.size_bytes, &error) == WICK_OK ||
           fail(refused, &error);
  }
  const char *url = model_url();
  if (url != NULL)
    return url_load(engine, &(url_file){"WICK_MODEL_URL", url, wick_load_from}, refused);
  return wick_load_file(engine, path_of_model(), &error) == WICK_OK || fail(refused, &error);
}

// ---- the mmproj file ----

const char *mmproj_url(void) { return getenv("WICK_MMPROJ_URL"); }

bool mmproj_is_given(void) { return getenv("WICK_MMPROJ") != NULL || mmproj_url() != NULL; }

bool mmproj_load(wick_engine *engine, refusal *refused) {
  wick_error error;
  const char *url = mmproj_url(), *path = getenv("WICK_MMPROJ");
  if (url != NULL) {
    return url_load(engine, &(url_file){"WICK_MMPROJ_URL", url, wick_media_load_from}, refused);
  }
  return path == NULL || wick_media_load_file(engine, path, &error) == WICK_OK ||
         refuse(refused, 503, "model", NULL, "The mmproj file could not be loaded: %s",
                error.message);
}
