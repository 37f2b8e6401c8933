// component/url_source.h — a model at a URL.
#ifndef WICK_COMPONENT_URL_SOURCE_H
#define WICK_COMPONENT_URL_SOURCE_H

#include "refusal.h"

// The code of an error that may not recur in a later request.
#define MODEL_SERVER "model_server"

// Checks the URL and the other environment variables that are needed to read it.
bool url_check(const char *name, const char *url, refusal *refused);
// Writes the model's name: the last part of the path, without .gguf.
void url_name(const char *url, char *out, size_t size_bytes);
typedef struct url_file {
  const char *name, *url;  // name and value of the variable
  wick_status (*load)(wick_engine *engine, const wick_reader *reader, wick_error *error);
} url_file;
// Reads a single file over HTTP, in ranges, and feeds it to the engine. Redirects are
// followed. A server that does not respond is tried three times. Returns false with the reason in
// *refused.
bool url_load(wick_engine *engine, const url_file *file, refusal *refused);

#endif
