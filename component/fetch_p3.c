// component/fetch_p3.c — outgoing HTTP with WASI 0.3. The reading task waits in waitable-set.wait,
// and the instance runs nothing else in the meantime. The types of the imports are in wit/p3.wit.
#include "fetch.h"

#include <string.h>

#define HTTP "wasi:http/types@0.3.0"
#include "http_fields.h"

#define CLIENT "wasi:http/client@0.3.0"
#define NEW "[static]request.new"
#define BODY "[static]response.consume-body"

ABI_IMPORT(HTTP, "[constructor]request-options") abi_handle options_create(void);
ABI_IMPORT(HTTP, "[method]request-options.set-connect-timeout")
void options_set_connect(abi_handle options, int32_t is_given, int64_t ns, abi_error_room *out);
ABI_IMPORT(HTTP, "[method]request-options.set-first-byte-timeout")
void options_set_first_byte(abi_handle options, int32_t is_given, int64_t ns, abi_error_room *out);
ABI_IMPORT(HTTP, "[method]request-options.set-between-bytes-timeout")
void options_set_between_bytes(abi_handle options, int32_t is_given, int64_t ns,
                               abi_error_room *out);

ABI_IMPORT(HTTP, NEW)
void request_new(abi_handle fields, int32_t has_stream, abi_handle stream, abi_handle trailers,
                 int32_t has_options, abi_handle options, abi_pair *out);
ABI_IMPORT(HTTP, "[future-new-1]" NEW) int64_t sent_trailers_create(void);
ABI_IMPORT(HTTP, "[async-lower][future-write-1]" NEW)
int32_t sent_trailers_write(abi_handle future, const abi_error_room *value);
ABI_IMPORT(HTTP, "[future-drop-writable-1]" NEW) void sent_trailers_drop(abi_handle future);
ABI_IMPORT(HTTP, "[future-drop-readable-2]" NEW) void sent_transmitted_drop(abi_handle future);
ABI_IMPORT(HTTP, "[method]request.set-scheme")
int32_t request_set_scheme(abi_handle request, int32_t is_given, int32_t scheme, const char *,
                           size_t);
ABI_IMPORT(HTTP, "[method]request.set-authority")
int32_t request_set_authority(abi_handle request, int32_t is_given, const char *text,
                              size_t size_bytes);
ABI_IMPORT(HTTP, "[method]request.set-path-with-query")
int32_t request_set_path(abi_handle request, int32_t is_given, const char *text, size_t size_bytes);
ABI_IMPORT(CLIENT, "[async-lower]send")
int32_t client_send(abi_handle request, abi_error_room *out);

ABI_IMPORT(HTTP, "[method]response.get-status-code") int32_t got_status(abi_handle response);
ABI_IMPORT(HTTP, "[method]response.get-headers") abi_handle got_headers(abi_handle response);
ABI_IMPORT(HTTP, BODY) void got_body(abi_handle response, abi_handle failed, abi_pair *out);
ABI_IMPORT(HTTP, "[future-new-0]" BODY) int64_t got_failed_create(void);
ABI_IMPORT(HTTP, "[async-lower][future-write-0]" BODY)
int32_t got_failed_write(abi_handle future, const abi_error_room *value);
ABI_IMPORT(HTTP, "[future-drop-writable-0]" BODY) void got_failed_drop(abi_handle future);
ABI_IMPORT(HTTP, "[async-lower][stream-read-1]" BODY)
int32_t got_stream_read(abi_handle stream, char *bytes, size_t size_bytes);
ABI_IMPORT(HTTP, "[stream-drop-readable-1]" BODY) void got_stream_drop(abi_handle stream);
ABI_IMPORT(HTTP, "[future-drop-readable-2]" BODY) void got_trailers_drop(abi_handle future);

ABI_IMPORT("$root", "[waitable-set-wait]") int32_t set_wait(abi_handle set, int32_t event[2]);

enum { SCHEME_HTTP = 0, SCHEME_HTTPS = 1 };

static const abi_error_room nothing;  // a result that is not an error, with no value

// Returns the code of the next event of this waitable.
static int32_t await(abi_handle waitable) {
  int32_t event[2];
  const abi_handle set = set_create();
  set_join(waitable, set);
  set_wait(set, event);
  set_join(waitable, 0);
  set_drop(set);
  return event[1];
}

// Creates the options with the timeouts. A host that does not support a timeout uses its default.
static abi_handle make_options(uint32_t timeout_ms) {
  abi_error_room ignored;
  const int64_t ns = (int64_t)timeout_ms * 1000000;
  const abi_handle options = options_create();
  options_set_connect(options, 1, ns, &ignored);
  options_set_first_byte(options, 1, ns, &ignored);
  options_set_between_bytes(options, 1, ns, &ignored);
  return options;
}

// Sets *transmitted to the future with the result of sending the request.
static abi_handle make_request(const fetch_url *url, const char *range, abi_handle trailers,
                               abi_handle *transmitted) {
  abi_pair made;
  abi_handle fields = fields_create();
  fields_add(&fields, "range", range);
  request_new(fields, 0, 0, trailers, 1, make_options(url->timeout_ms), &made);
  *transmitted = made.second;
  // the host itself rejects invalid values
  request_set_scheme(made.first, 1, url->is_https ? SCHEME_HTTPS : SCHEME_HTTP, NULL, 0);
  request_set_authority(made.first, 1, url->authority, strlen(url->authority));
  request_set_path(made.first, 1, url->path, strlen(url->path));
  return made.first;
}

// Waits for the response; returns 0 if the request fails.
static abi_handle await_response(const fetch_url *url, const char *range, abi_handle *transmitted) {
  abi_error_room got;
  const int64_t ends = sent_trailers_create();
  const abi_handle trailers = writable_of(ends);
  const abi_handle request = make_request(url, range, readable_of(ends), transmitted);
  // the host may read the (empty) trailers before it sends the request
  const bool trailers_wait = sent_trailers_write(trailers, &nothing) == STATUS_BLOCKED;
  const int32_t status = client_send(request, &got);
  const abi_handle subtask = (abi_handle)((uint32_t)status >> STATE_BITS);
  int32_t state = status & STATE_MASK;
  while (state != SUBTASK_RETURNED) state = await(subtask);
  if (subtask != 0) subtask_drop(subtask);
  if (trailers_wait) await(trailers);
  sent_trailers_drop(trailers);
  return (uint8_t)got.words[0] == 0 ? (abi_handle)got.words[1] : 0;
}

static void read_stream(abi_handle stream, uint64_t end_us, char *bytes, size_t size_bytes,
                        size_t *count) {
  while (*count < size_bytes && platform_now_us() <= end_us) {
    int32_t status = got_stream_read(stream, bytes + *count, size_bytes - *count);
    if (status == STATUS_BLOCKED) status = await(stream);
    *count += (uint32_t)status >> STATE_BITS;
    if ((status & STATE_MASK) != STATE_COMPLETED) return;
  }
}

bool fetch_get(const fetch_url *url, const char *range, void *bytes, size_t size_bytes,
               size_t *count, fetch_answer *out) {
  *count = 0;
  abi_handle transmitted;
  const abi_handle response = await_response(url, range, &transmitted);
  if (response == 0) {
    sent_transmitted_drop(transmitted);
    return false;
  }
  out->status = (uint16_t)got_status(response);
  const abi_handle headers = got_headers(response);
  http_take_answer(out, headers, fields_get);
  fields_drop(headers);
  const int64_t ends = got_failed_create();
  const abi_handle failed = writable_of(ends);
  abi_pair body;
  got_body(response, readable_of(ends), &body);
  read_stream(body.first, fetch_end_us(url), bytes, size_bytes, count);
  const bool failed_waits = got_failed_write(failed, &nothing) == STATUS_BLOCKED;
  got_stream_drop(body.first);
  got_trailers_drop(body.second);
  if (failed_waits) await(failed);
  sent_transmitted_drop(transmitted);
  got_failed_drop(failed);
  return true;
}
