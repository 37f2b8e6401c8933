// component/http_values.h — reads the parts of a request that both versions of wasi:http report,
// and frees the memory that the host allocated for them.
#ifndef WICK_COMPONENT_HTTP_VALUES_H
#define WICK_COMPONENT_HTTP_VALUES_H

#include <string.h>

#include "abi.h"
#include "fetch.h"
#include "server.h"

// The function fields.get of either version of wasi:http.
typedef void (*header_getter)(abi_handle fields, const char *name, size_t name_bytes,
                              abi_list *values);
// Takes the method (a variant), the path without its query (an option), and the first value of each
// header.
void http_take(http_request *out, const abi_result *method, const abi_result *path,
               abi_handle fields, header_getter get);
// Takes the headers of a response to an outgoing request.
void http_take_answer(fetch_answer *out, abi_handle fields, header_getter get);
void http_free(http_request *taken);

#endif
