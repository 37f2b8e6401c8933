// component/http_p2.c — wasi:http 0.2: one request at a time, answered before the call returns.
// The headers are sent when the work begins, because only writing the body shows that a client has
// disconnected. wit/p2.wit contains the types of the imports.
#include <stdlib.h>
#include <string.h>

#include "http_p2.h"
#include "platform/platform.h"
#include "server.h"

// ---- imports ----

typedef struct abi_permit {
  uint8_t is_error;
  union {
    uint64_t size_bytes;
    struct {
      uint8_t code;
      abi_handle handle;
    } error;
  };
} abi_permit;

ABI_IMPORT(HTTP, "[method]incoming-request.method")
void request_method(abi_handle request, abi_result *out);
ABI_IMPORT(HTTP, "[method]incoming-request.path-with-query")
void request_path(abi_handle request, abi_result *out);
ABI_IMPORT(HTTP, "[method]incoming-request.headers")
abi_handle request_headers(abi_handle request);
ABI_IMPORT(HTTP, "[method]incoming-request.consume")
void request_consume(abi_handle request, abi_result *out);
ABI_IMPORT(HTTP, "[resource-drop]incoming-request") void request_drop(abi_handle request);
ABI_IMPORT(HTTP, "[constructor]outgoing-response") abi_handle response_create(abi_handle fields);
ABI_IMPORT(HTTP, "[method]outgoing-response.set-status-code")
int32_t response_set_status(abi_handle response, int32_t status);
ABI_IMPORT(HTTP, "[method]outgoing-response.body")
void response_body(abi_handle response, abi_result *out);
// The flattened result: always a response; the remaining parameters belong to error codes.
ABI_IMPORT(HTTP, "[static]response-outparam.set")
void outparam_set(abi_handle outparam, int32_t is_error, abi_handle response, int32_t, int64_t,
                  int32_t, int32_t, int32_t, int32_t);
ABI_IMPORT(HTTP, "[method]outgoing-body.write")
void outgoing_body_write(abi_handle body, abi_result *out);
ABI_IMPORT(HTTP, "[resource-drop]outgoing-body") void outgoing_body_drop(abi_handle body);
ABI_IMPORT(HTTP, "[static]outgoing-body.finish")
void outgoing_body_finish(abi_handle body, int32_t has_trailers, abi_handle trailers,
                          abi_error_room *out);
ABI_IMPORT(STREAMS, "[method]input-stream.subscribe")
abi_handle input_subscribe(abi_handle stream);
ABI_IMPORT("wasi:clocks/monotonic-clock@0.2.0", "subscribe-duration")
abi_handle timer_create(int64_t ns);
// Waits until a pollable is ready, and returns a list of all pollables that are ready.
ABI_IMPORT(POLL, "poll") void poll_any(const abi_handle *all, size_t count, abi_list *out);
// Reads the bytes that have arrived, if any.
ABI_IMPORT(STREAMS, "[method]input-stream.read")
void input_take(abi_handle stream, int64_t size_bytes, abi_result *out);
ABI_IMPORT(STREAMS, "[method]output-stream.blocking-write-and-flush")
void output_write(abi_handle stream, const char *bytes, size_t size_bytes, abi_result *out);
// Returns a result with the number of bytes that may be written.
ABI_IMPORT(STREAMS, "[method]output-stream.check-write")
void output_check(abi_handle stream, abi_permit *out);
ABI_IMPORT(STREAMS, "[resource-drop]output-stream") void output_drop(abi_handle stream);

void handle(abi_handle request, abi_handle outparam)
    ABI_EXPORT("wasi:http/incoming-handler@0.2.0#handle");
void preload(void) ABI_EXPORT("preload");

static server here;

// ---- the request ----

// Waits for bytes or until `end_us`. Returns false if that time has already passed.
static bool await_bytes(abi_handle stream, uint64_t end_us) {
  const uint64_t now_us = platform_now_us();
  if (now_us >= end_us) return false;
  const abi_handle all[] = {input_subscribe(stream),
                            timer_create((int64_t)(end_us - now_us) * 1000)};
  abi_list ready;
  poll_any(all, 2, &ready);
  if (ready.count > 0) free(ready.items);
  pollable_drop(all[0]);
  pollable_drop(all[1]);
  return true;
}

// Reads the body. If it is too large, only its beginning is read.
static void read_stream(abi_handle stream, http_request *out) {
  enum { PIECE_BYTES = 65536, CLOSED = 1 };
  const uint64_t end_us = platform_now_us() + (uint64_t)here.settings.body_timeout_ms * 1000;
  buffer *body = &out->body;
  while (body->size_bytes <= here.settings.body_bytes_max && !body->has_failed) {
    out->is_body_late = !await_bytes(stream, end_us);
    if (out->is_body_late) return;
    abi_result piece;
    input_take(stream, PIECE_BYTES, &piece);
    if (is_failed(&piece)) {
      out->is_body_read = piece.error.code == CLOSED;
      return;
    }
    buffer_put(body, piece.list.items, piece.list.count);
    if (piece.list.count > 0) free(piece.list.items);
  }
  out->is_body_read = true;
}

static void read_body(abi_handle request, http_request *out) {
  abi_result body, stream;
  request_consume(request, &body);
  if (body.is_error) return;
  incoming_body_stream(body.handle, &stream);
  if (!stream.is_error) {
    read_stream(stream.handle, out);
    input_drop(stream.handle);
  }
  incoming_body_drop(body.handle);
}

// Reads and discards the body. A client may send its complete body before it reads the error. If
// the body were not read, the host would close the connection before that.
static void discard_body(abi_handle request) {
  http_request nobodys = {0};
  read_body(request, &nobodys);
  buffer_free(&nobodys.body);
}

static void read_head(abi_handle request, http_request *out) {
  abi_result method, path;
  memset(out, 0, sizeof *out);
  request_method(request, &method);
  request_path(request, &path);
  const abi_handle headers = request_headers(request);
  http_take(out, &method, &path, headers, fields_get);
  fields_drop(headers);
}

// ---- the response ----

// Sends the headers. Returns the body's handle, and its stream in *stream.
static abi_handle send_head(const answer *reply, abi_handle outparam, abi_handle *stream) {
  abi_handle fields = fields_create();
  answer_put_headers(reply, fields_add, &fields);
  const abi_handle response = response_create(fields);
  abi_result body, written;
  response_set_status(response, reply->status);
  response_body(response, &body);
  outparam_set(outparam, 0, response, 0, 0, 0, 0, 0, 0);
  outgoing_body_write(body.handle, &written);
  *stream = written.handle;
  return body.handle;
}

// Sends the bytes that are waiting. Returns false if the client has disconnected.
static bool send_piece(abi_handle stream, buffer *out) {
  enum { WRITE_BYTES_MAX = 4096 };  // the limit of one call in wasi:io
  for (size_t at = 0; at < out->size_bytes; at += WRITE_BYTES_MAX) {
    const size_t left = out->size_bytes - at;
    abi_result result;
    output_write(stream, out->bytes + at, left < WRITE_BYTES_MAX ? left : WRITE_BYTES_MAX, &result);
    if (is_failed(&result)) return false;
  }
  buffer_clear(out);
  return true;
}

// Checks periodically, while there is nothing to send, whether the client is still connected.
static bool is_there(abi_handle stream, uint64_t *looked_us) {
  const uint64_t now_us = platform_now_us();
  abi_permit permit;
  if (now_us - *looked_us < SERVER_LOOK_US) return true;
  *looked_us = now_us;
  output_check(stream, &permit);
  if (permit.is_error && permit.error.code == LAST_OPERATION_FAILED) {
    error_drop(permit.error.handle);
  }
  return !permit.is_error;
}

// Sends the body. Returns false if the answer failed after the headers were sent, so that the
// status does not show it.
static bool send_body(answer *reply, abi_handle stream) {
  const uint16_t sent = reply->status;
  uint64_t looked_us = platform_now_us();
  while (reply->status == sent && send_piece(stream, &reply->out) && !reply->is_done &&
         is_there(stream, &looked_us)) {
    server_step(&here);
  }
  return reply->status == sent;
}

void handle(abi_handle request, abi_handle outparam) {
  http_request asked;
  answer reply;
  server_open(&here);
  read_head(request, &asked);
  const bool is_wanted = server_begin(&here, &asked, &reply);
  if (is_wanted) {
    read_body(request, &asked);
    server_take_body(&here, &asked, &reply);
  }
  http_free(&asked);
  while (reply.status == 0) server_step(&here);
  abi_handle stream;
  const abi_handle body = send_head(&reply, outparam, &stream);
  const bool is_whole = send_body(&reply, stream);
  server_end(&here, &reply);
  while (server_has_cancelled(&here)) server_step(&here);
  output_drop(stream);
  abi_error_room room;
  if (is_whole) outgoing_body_finish(body, 0, 0, &room);
  if (!is_whole) outgoing_body_drop(body);
  if (!is_wanted) discard_body(request);
  request_drop(request);
}

void preload(void) { server_preload(&here); }
