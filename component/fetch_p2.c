// component/fetch_p2.c — outgoing HTTP with WASI 0.2. wit/p2.wit contains the types of the imports.
#include "fetch.h"

#include <stdlib.h>
#include <string.h>

#include "http_p2.h"

ABI_IMPORT(HTTP, "[constructor]outgoing-request") abi_handle outgoing_create(abi_handle fields);
// Flattened options; the scheme's third case has a string.
ABI_IMPORT(HTTP, "[method]outgoing-request.set-scheme")
int32_t outgoing_set_scheme(abi_handle request, int32_t is_given, int32_t scheme, const char *,
                            size_t);
ABI_IMPORT(HTTP, "[method]outgoing-request.set-authority")
int32_t outgoing_set_authority(abi_handle request, int32_t is_given, const char *text,
                               size_t size_bytes);
ABI_IMPORT(HTTP, "[method]outgoing-request.set-path-with-query")
int32_t outgoing_set_path(abi_handle request, int32_t is_given, const char *text,
                          size_t size_bytes);
ABI_IMPORT(HTTP, "[constructor]request-options") abi_handle options_create(void);
ABI_IMPORT(HTTP, "[method]request-options.set-connect-timeout")
int32_t options_set_connect(abi_handle options, int32_t is_given, int64_t ns);
ABI_IMPORT(HTTP, "[method]request-options.set-first-byte-timeout")
int32_t options_set_first_byte(abi_handle options, int32_t is_given, int64_t ns);
ABI_IMPORT(HTTP, "[method]request-options.set-between-bytes-timeout")
int32_t options_set_between_bytes(abi_handle options, int32_t is_given, int64_t ns);
ABI_IMPORT("wasi:http/outgoing-handler@0.2.0", "handle")
void outgoing_send(abi_handle request, int32_t has_options, abi_handle options,
                   abi_error_room *out);
ABI_IMPORT(HTTP, "[method]future-incoming-response.subscribe")
abi_handle future_subscribe(abi_handle future);
ABI_IMPORT(HTTP, "[method]future-incoming-response.get")
void future_get(abi_handle future, uint64_t out[8]);
ABI_IMPORT(HTTP, "[resource-drop]future-incoming-response") void future_drop(abi_handle future);
ABI_IMPORT(POLL, "[method]pollable.block") void pollable_block(abi_handle pollable);
ABI_IMPORT(HTTP, "[method]incoming-response.status") int32_t incoming_status(abi_handle response);
ABI_IMPORT(HTTP, "[method]incoming-response.headers")
abi_handle incoming_headers(abi_handle response);
ABI_IMPORT(HTTP, "[method]incoming-response.consume")
void incoming_consume(abi_handle response, abi_result *out);
ABI_IMPORT(HTTP, "[resource-drop]incoming-response") void incoming_drop(abi_handle response);
ABI_IMPORT(STREAMS, "[method]input-stream.blocking-read")
void input_read(abi_handle stream, int64_t size_bytes, abi_result *out);

enum { SCHEME_HTTP = 0, SCHEME_HTTPS = 1 };

static bool make_request(const fetch_url *url, const char *range, abi_handle *request) {
  abi_handle fields = fields_create();
  fields_add(&fields, "range", range);
  *request = outgoing_create(fields);
  const int32_t failed =
      outgoing_set_scheme(*request, 1, url->is_https ? SCHEME_HTTPS : SCHEME_HTTP, NULL, 0) |
      outgoing_set_authority(*request, 1, url->authority, strlen(url->authority)) |
      outgoing_set_path(*request, 1, url->path, strlen(url->path));
  return failed == 0;
}

// Creates the options with the timeouts. A host that does not support a timeout uses its default.
static abi_handle make_options(uint32_t timeout_ms) {
  const int64_t ns = (int64_t)timeout_ms * 1000000;
  const abi_handle options = options_create();
  options_set_connect(options, 1, ns);
  options_set_first_byte(options, 1, ns);
  options_set_between_bytes(options, 1, ns);
  return options;
}

// Waits for the response; returns 0 if the request fails.
static abi_handle await_response(abi_handle request, abi_handle options) {
  abi_error_room sent;
  uint64_t got[8];  // option<result<result<handle, error-code>>>
  outgoing_send(request, 1, options, &sent);
  if ((uint8_t)sent.words[0] != 0) return 0;
  const abi_handle future = (abi_handle)sent.words[1];
  const abi_handle ready = future_subscribe(future);
  pollable_block(ready);
  pollable_drop(ready);
  future_get(future, got);
  future_drop(future);
  const bool has_come = (uint8_t)got[0] == 1 && (uint8_t)got[1] == 0 && (uint8_t)got[2] == 0;
  return has_come ? (abi_handle)got[3] : 0;
}

static bool read_stream(abi_handle stream, uint64_t end_us, char *bytes, size_t size_bytes,
                        size_t *count) {
  enum { PIECE_BYTES = 65536 };
  while (*count < size_bytes) {
    if (platform_now_us() > end_us) return false;
    const size_t left = size_bytes - *count;
    abi_result piece;
    input_read(stream, left < PIECE_BYTES ? (int64_t)left : PIECE_BYTES, &piece);
    if (is_failed(&piece)) return piece.error.code != LAST_OPERATION_FAILED;
    if (piece.list.count == 0) continue;
    memcpy(bytes + *count, piece.list.items, piece.list.count);
    *count += piece.list.count;
    free(piece.list.items);
  }
  return true;
}

static bool read_body(abi_handle response, uint64_t end_us, char *bytes, size_t size_bytes,
                      size_t *count) {
  abi_result body, stream;
  bool is_whole = false;
  incoming_consume(response, &body);
  if (body.is_error) return false;
  incoming_body_stream(body.handle, &stream);
  if (!stream.is_error) {
    is_whole = read_stream(stream.handle, end_us, bytes, size_bytes, count);
    input_drop(stream.handle);
  }
  incoming_body_drop(body.handle);
  return is_whole;
}

bool fetch_get(const fetch_url *url, const char *range, void *bytes, size_t size_bytes,
               size_t *count, fetch_answer *out) {
  abi_handle request;
  *count = 0;
  // an invalid request is sent unchanged; the host rejects it
  make_request(url, range, &request);
  const abi_handle response = await_response(request, make_options(url->timeout_ms));
  if (response == 0) return false;
  out->status = (uint16_t)incoming_status(response);
  const abi_handle headers = incoming_headers(response);
  http_take_answer(out, headers, fields_get);
  fields_drop(headers);
  const bool is_whole = read_body(response, fetch_end_us(url), bytes, size_bytes, count);
  incoming_drop(response);
  return is_whole;
}
