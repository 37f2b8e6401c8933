// component/http_values.c — what both versions of wasi:http tell of a request.
#include "http_values.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void http_take_method(http_request *out, const abi_result *method) {
  static const char *const NAMES[] = {"GET",     "HEAD",    "POST",  "PUT",  "DELETE",
                                      "CONNECT", "OPTIONS", "TRACE", "PATCH"};
  enum { OTHER = sizeof NAMES / sizeof NAMES[0] };
  const bool is_other = method->is_error >= OTHER;
  snprintf(out->method, sizeof out->method, "%.*s", is_other ? (int)method->list.count : 16,
           is_other ? (const char *)method->list.items : NAMES[method->is_error]);
  if (is_other && method->list.count > 0) free(method->list.items);
}

void http_take_path(http_request *out, const abi_result *path) {
  const bool is_given = path->is_error != 0;  // the second case of an option
  const char *text = is_given ? path->list.items : "/";
  size_t size = is_given ? path->list.count : 1;
  const char *query = memchr(text, '?', size);
  if (query != NULL) size = (size_t)(query - text);
  snprintf(out->path, sizeof out->path, "%.*s", (int)size, text);
  if (is_given && path->list.count > 0) free(path->list.items);
}

void http_take_header(char value[HTTP_VALUE_BYTES], abi_list values) {
  const abi_list *first = values.items;
  snprintf(value, HTTP_VALUE_BYTES, "%.*s", values.count > 0 ? (int)first->count : 0,
           values.count > 0 ? (const char *)first->items : "");
  for (char *at = value; *at != '\0'; at++) *at = (char)tolower((unsigned char)*at);
  abi_free_lists(values);
}
