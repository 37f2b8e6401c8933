// component/http_values.c — reads the parts of a request that both versions of wasi:http report.
#include "http_values.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void take_method(http_request *out, const abi_result *method) {
  static const char *const NAMES[] = {"GET",     "HEAD",    "POST",  "PUT",  "DELETE",
                                      "CONNECT", "OPTIONS", "TRACE", "PATCH"};
  enum { OTHER = sizeof NAMES / sizeof NAMES[0] };
  const bool is_other = method->is_error >= OTHER;
  snprintf(out->method, sizeof out->method, "%.*s", is_other ? (int)method->list.count : 16,
           is_other ? (const char *)method->list.items : NAMES[method->is_error]);
  if (is_other && method->list.count > 0) free(method->list.items);
}

// Joins repeated slashes: clients concatenate a base URL that ends with a slash and a path that
// begins with one.
static void join_slashes(char *path) {
  size_t size = 0;
  for (const char *from = path; *from != '\0'; from++) {
    if (*from != '/' || size == 0 || path[size - 1] != '/') path[size++] = *from;
  }
  if (size > 1 && path[size - 1] == '/') size--;
  path[size] = '\0';
}

static void take_path(http_request *out, const abi_result *path) {
  const bool is_given = path->is_error != 0;  // the second case of an option
  const char *text = is_given ? path->list.items : "/";
  size_t size = is_given ? path->list.count : 1;
  const char *query = memchr(text, '?', size);
  if (query != NULL) size = (size_t)(query - text);
  snprintf(out->path, sizeof out->path, "%.*s", (int)size, text);
  join_slashes(out->path);
  if (is_given && path->list.count > 0) free(path->list.items);
}

static abi_list header_of(abi_handle fields, header_getter get, const char *name) {
  abi_list values;
  get(fields, name, strlen(name), &values);
  return values;
}

static void take_first(char *out, size_t size_bytes, abi_list values) {
  const abi_list *first = values.items;
  snprintf(out, size_bytes, "%.*s", values.count > 0 ? (int)first->count : 0,
           values.count > 0 ? (const char *)first->items : "");
  abi_free_lists(values);
}

void http_take_answer(fetch_answer *out, abi_handle fields, header_getter get) {
  take_first(out->content_range, sizeof out->content_range,
             header_of(fields, get, "content-range"));
  take_first(out->etag, sizeof out->etag, header_of(fields, get, "etag"));
  take_first(out->location, sizeof out->location, header_of(fields, get, "location"));
}

// Copies the value in lower case.
static void take_word(char out[HTTP_VALUE_BYTES], abi_list values) {
  take_first(out, HTTP_VALUE_BYTES, values);
  for (char *at = out; *at != '\0'; at++) *at = (char)tolower((unsigned char)*at);
}

// Copies the value unchanged and terminates it.
static void take_text(buffer *out, abi_list values) {
  const abi_list *first = values.items;
  if (values.count > 0 && first->count > 0) buffer_put(out, first->items, first->count);
  buffer_put(out, "", 1);
  abi_free_lists(values);
}

static bool is_bearer(const buffer *authorization) {
  return authorization->size_bytes > 1 && strncasecmp(authorization->bytes, "bearer ", 7) == 0;
}

void http_take(http_request *out, const abi_result *method, const abi_result *path,
               abi_handle fields, header_getter get) {
  take_method(out, method);
  take_path(out, path);
  take_word(out->content_type, header_of(fields, get, "content-type"));
  take_word(out->content_encoding, header_of(fields, get, "content-encoding"));
  take_word(out->content_length, header_of(fields, get, "content-length"));
  take_text(&out->authorization, header_of(fields, get, "authorization"));
  if (!is_bearer(&out->authorization)) {  // the header belongs to a proxy, or is missing
    buffer_clear(&out->authorization);
    buffer_put_text(&out->authorization, "Bearer ");
    take_text(&out->authorization, header_of(fields, get, "x-api-key"));
  }
  take_text(&out->origin, header_of(fields, get, "origin"));
  take_text(&out->asked_headers, header_of(fields, get, "access-control-request-headers"));
}

void http_free(http_request *taken) {
  buffer_free(&taken->authorization);
  buffer_free(&taken->origin);
  buffer_free(&taken->asked_headers);
  buffer_free(&taken->body);
}
