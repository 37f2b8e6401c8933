// component/http_values.h — what both versions of wasi:http tell of a request. What the host gave
// is freed.
#ifndef WICK_COMPONENT_HTTP_VALUES_H
#define WICK_COMPONENT_HTTP_VALUES_H

#include "abi.h"
#include "server.h"

void http_take_method(http_request *out, const abi_result *method);  // a variant
void http_take_path(http_request *out, const abi_result *path);      // an option; without its query
// The first of the values, in lower case.
void http_take_header(char value[HTTP_VALUE_BYTES], abi_list values);

#endif
