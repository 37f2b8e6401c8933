// component/http_p2.h — imports of WASI 0.2 that incoming and outgoing HTTP share.
#ifndef WICK_COMPONENT_HTTP_P2_H
#define WICK_COMPONENT_HTTP_P2_H

#define HTTP "wasi:http/types@0.2.0"
#define STREAMS "wasi:io/streams@0.2.0"
#define POLL "wasi:io/poll@0.2.0"

#include "http_fields.h"

ABI_IMPORT(HTTP, "[method]incoming-body.stream")
void incoming_body_stream(abi_handle body, abi_result *out);
ABI_IMPORT(HTTP, "[resource-drop]incoming-body") void incoming_body_drop(abi_handle body);
ABI_IMPORT(POLL, "[resource-drop]pollable") void pollable_drop(abi_handle pollable);
ABI_IMPORT(STREAMS, "[resource-drop]input-stream") void input_drop(abi_handle stream);
ABI_IMPORT("wasi:io/error@0.2.0", "[resource-drop]error") void error_drop(abi_handle error);

enum { LAST_OPERATION_FAILED = 0 };  // otherwise the stream is closed

// Whether an operation on a stream failed. Frees the error.
static inline bool is_failed(const abi_result *result) {
  if (result->is_error && result->error.code == LAST_OPERATION_FAILED) {
    error_drop(result->error.handle);
  }
  return result->is_error;
}

#endif
