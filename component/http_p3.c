// component/http_p3.c — wasi:http 0.3: requests are tasks of one instance and share its engine, its
// batch and its prefix cache. Each call returns the events to wait for (the callback ABI of
// CanonicalABI.md, "callback"). A task that has nothing to send lets the engine work for all tasks
// and yields. wit/p3.wit contains the types of the imports.
//
// The headers are sent when the generation begins: wasmtime passes more requests to an instance
// once the headers of the earlier requests have been sent. A later failure truncates the body.
#include <stdlib.h>

#define HTTP "wasi:http/types@0.3.0"
#include "http_fields.h"
#include "platform/platform.h"

#define BODY "[static]request.consume-body"
#define RESPONSE "[static]response.new"

// ---- imports ----

ABI_IMPORT(HTTP, "[method]request.get-method")
void request_method(abi_handle request, abi_result *out);
ABI_IMPORT(HTTP, "[method]request.get-path-with-query")
void request_path(abi_handle request, abi_result *out);
ABI_IMPORT(HTTP, "[method]request.get-headers") abi_handle request_headers(abi_handle request);
ABI_IMPORT(HTTP, "[method]response.set-status-code")
int32_t response_set_status(abi_handle response, int32_t status);

// The body's stream and its trailers; `failed` reports a failure to the host.
ABI_IMPORT(HTTP, BODY) void request_body(abi_handle request, abi_handle failed, abi_pair *out);
ABI_IMPORT(HTTP, "[future-new-0]" BODY) abi_ends failed_create(void);
ABI_IMPORT(HTTP, "[async-lower][future-write-0]" BODY)
int32_t failed_write(abi_handle future, const abi_error_room *value);
ABI_IMPORT(HTTP, "[future-drop-writable-0]" BODY) void failed_drop(abi_handle future);
ABI_IMPORT(HTTP, "[async-lower][stream-read-1]" BODY)
int32_t body_stream_read(abi_handle stream, char *bytes, size_t size_bytes);
ABI_IMPORT(HTTP, "[stream-cancel-read-1]" BODY) int32_t body_stream_cancel(abi_handle stream);
ABI_IMPORT(HTTP, "[stream-drop-readable-1]" BODY) void body_stream_drop(abi_handle stream);
ABI_IMPORT(HTTP, "[future-drop-readable-2]" BODY) void body_trailers_drop(abi_handle future);

// The response, and the result of sending it.
ABI_IMPORT(HTTP, RESPONSE)
void response_create(abi_handle fields, int32_t has_stream, abi_handle stream, abi_handle trailers,
                     abi_pair *out);
ABI_IMPORT(HTTP, "[stream-new-0]" RESPONSE) abi_ends stream_create(void);
ABI_IMPORT(HTTP, "[async-lower][stream-write-0]" RESPONSE)
int32_t stream_write(abi_handle stream, const char *bytes, size_t size_bytes);
ABI_IMPORT(HTTP, "[stream-cancel-write-0]" RESPONSE) int32_t stream_cancel(abi_handle stream);
ABI_IMPORT(HTTP, "[stream-drop-writable-0]" RESPONSE) void stream_drop(abi_handle stream);
ABI_IMPORT(HTTP, "[future-new-1]" RESPONSE) abi_ends trailers_create(void);
ABI_IMPORT(HTTP, "[async-lower][future-write-1]" RESPONSE)
int32_t trailers_write(abi_handle future, const abi_error_room *value);
ABI_IMPORT(HTTP, "[future-drop-writable-1]" RESPONSE) void trailers_drop(abi_handle future);
ABI_IMPORT(HTTP, "[future-drop-readable-2]" RESPONSE) void transmitted_drop(abi_handle future);

ABI_IMPORT("$root", "[waitable-set-poll]") int32_t set_poll(abi_handle set, int32_t event[2]);
ABI_IMPORT("$root", "[subtask-cancel]") int32_t subtask_cancel(abi_handle subtask);
ABI_IMPORT("wasi:clocks/monotonic-clock@0.3.0", "[async-lower]wait-for")
int32_t timer_begin(int64_t ns);

// The flattened result, as in http_p2.c.
ABI_IMPORT("[export]wasi:http/handler@0.3.0", "[task-return]handle")
void handle_return(int32_t is_error, abi_handle response, int32_t, int64_t, int32_t, int32_t,
                   int32_t, int32_t);

int32_t handle(abi_handle request) ABI_EXPORT("[async-lift]wasi:http/handler@0.3.0#handle");
int32_t handle_event(int32_t event, abi_handle waitable, int32_t code)
    ABI_EXPORT("[callback][async-lift]wasi:http/handler@0.3.0#handle");
void preload(void) ABI_EXPORT("preload");

// ---- a request ----

enum { PIECE_BYTES = 16384 };

typedef struct task {
  http_request asked;
  answer reply;
  bool has_begun, has_head;  // passed to the engine; headers sent
  bool is_reading, is_writing, is_gone;
  bool is_looking;     // whether an empty write is pending, which ends when the client reads it or
                       // disconnects
  uint64_t looked_us;  // the time of the last check
  bool has_failed;  // the answer failed after the headers were sent, so the status does not show it
  bool is_closing, trailers_wait, failed_waits;  // the host has not read these yet
  bool is_discarding;                            // whether the body is being read and discarded
  uint32_t read_bytes;
  buffer sending;  // the part of `reply` that is being written
  size_t sent_bytes;
  uint16_t status;  // the status that was sent
  bool is_timed;    // whether the body's timer has been started
  abi_handle set, reader, writer, failed, trailers, timer;
} task;

static server here;
static const abi_error_room nothing;  // a result that is not an error, with no value
// A result with the error internal-error without a message.
static const abi_error_room broken_off = {{1, 38}};

static void take_head(abi_handle request, http_request *out) {
  abi_result method, path;
  request_method(request, &method);
  request_path(request, &path);
  const abi_handle headers = request_headers(request);
  http_take(out, &method, &path, headers, fields_get);
  fields_drop(headers);
}

// ---- the body ----

static void end_timer(task *mine, bool is_over) {
  if (mine->timer == 0) return;
  set_join(mine->timer, 0);
  if (!is_over) subtask_cancel(mine->timer);
  subtask_drop(mine->timer);
  mine->timer = 0;
}

static void end_reading(task *mine) {
  end_timer(mine, false);
  set_join(mine->reader, 0);
  body_stream_drop(mine->reader);
  mine->reader = 0;
  mine->asked.is_body_read = true;
}

// Waits for the body. Its time limit begins with the first wait.
static void await_body(task *mine) {
  set_join(mine->reader, mine->set);
  if (mine->is_timed) return;
  mine->is_timed = true;
  mine->timer =
      (abi_handle)((uint32_t)timer_begin(here.settings.body_timeout_ms * INT64_C(1000000)) >>
                   STATE_BITS);
  if (mine->timer != 0) set_join(mine->timer, mine->set);
}

static void body_is_late(task *mine) {
  end_timer(mine, true);
  if (mine->reader == 0) return;
  if (mine->is_reading) {
    set_join(mine->reader, 0);
    body_stream_cancel(mine->reader);
    mine->is_reading = false;
  }
  mine->asked.is_body_late = true;
  end_reading(mine);
}

static void have_read(task *mine, int32_t status) {
  const uint32_t count = (uint32_t)status >> STATE_BITS;
  mine->is_reading = false;
  mine->read_bytes += count;
  if (!mine->is_discarding) buffer_grow(&mine->asked.body, count);
  const bool is_enough = mine->read_bytes > here.settings.body_bytes_max;
  if ((status & STATE_MASK) != STATE_COMPLETED || is_enough) end_reading(mine);
}

// Reads, or discards, the available bytes. Returns false if more will follow. A body that is not
// needed is discarded, because a client may send its complete body before it reads the error. If
// the body were not read, the host would close the connection before that.
static bool read_body(task *mine) {
  static char nobodys[PIECE_BYTES];
  while (mine->reader != 0) {
    if (mine->is_reading) return false;
    char *room = mine->is_discarding ? nobodys : buffer_reserve(&mine->asked.body, PIECE_BYTES);
    if (room == NULL) {
      end_reading(mine);
      break;
    }
    const int32_t status = body_stream_read(mine->reader, room, PIECE_BYTES);
    mine->is_reading = status == STATUS_BLOCKED;
    if (mine->is_reading) await_body(mine);
    if (!mine->is_reading) have_read(mine, status);
  }
  return true;
}

// ---- the response ----

static void send_head(task *mine) {
  abi_handle fields = fields_create();
  answer_put_headers(&mine->reply, fields_add, &fields);
  const abi_ends contents = stream_create(), trailers = trailers_create();
  abi_pair made;
  mine->writer = writable_of(contents);
  mine->trailers = writable_of(trailers);
  response_create(fields, 1, readable_of(contents), readable_of(trailers), &made);
  response_set_status(made.first, mine->reply.status);
  transmitted_drop(made.second);
  handle_return(0, made.first, 0, 0, 0, 0, 0, 0);
  mine->status = mine->reply.status;
  mine->has_head = true;
}

static void have_written(task *mine, int32_t status) {
  mine->is_writing = mine->is_looking = false;
  mine->sent_bytes += (uint32_t)status >> STATE_BITS;
  mine->is_gone = (status & STATE_MASK) != STATE_COMPLETED;
}

static void take_event(task *mine, int32_t event, abi_handle waitable, int32_t code) {
  if (event == EVENT_SUBTASK && waitable == mine->timer && code == SUBTASK_RETURNED)
    body_is_late(mine);
  if (event == EVENT_STREAM_READ && waitable == mine->reader) have_read(mine, code);
  if (event == EVENT_STREAM_WRITE && waitable == mine->writer) have_written(mine, code);
  if (event == EVENT_FUTURE_WRITE && waitable == mine->failed) mine->failed_waits = false;
  if (event == EVENT_FUTURE_WRITE && waitable == mine->trailers) mine->trailers_wait = false;
}

// Checks periodically, while there is nothing to send, whether the client is still connected.
static void look(task *mine) {
  int32_t event[2];
  if (mine->is_looking) {
    const int32_t kind = set_poll(mine->set, event);
    take_event(mine, kind, event[0], event[1]);
    return;
  }
  const uint64_t now_us = platform_now_us();
  if (now_us - mine->looked_us < SERVER_LOOK_US) return;
  mine->looked_us = now_us;
  const int32_t status = stream_write(mine->writer, "", 0);
  mine->is_looking = status == STATUS_BLOCKED;
  if (mine->is_looking) set_join(mine->writer, mine->set);
  if (!mine->is_looking) have_written(mine, status);
}

static void end_looking(task *mine) {
  if (!mine->is_looking) return;
  mine->is_looking = false;
  set_join(mine->writer, 0);
  mine->is_gone = (stream_cancel(mine->writer) & STATE_MASK) == STATE_DROPPED;
}

// Writes the waiting bytes. Returns false if the host has not read them yet.
static bool write_body(task *mine) {
  if (mine->is_writing) return false;
  if (mine->sent_bytes == mine->sending.size_bytes) {
    const buffer sent = mine->sending;
    mine->sending = mine->reply.out;
    mine->reply.out = sent;
    buffer_clear(&mine->reply.out);
    mine->sent_bytes = 0;
  }
  const size_t left = mine->sending.size_bytes - mine->sent_bytes;
  if (left > 0) end_looking(mine);
  if (left == 0 || mine->is_gone) return true;
  const int32_t status = stream_write(mine->writer, mine->sending.bytes + mine->sent_bytes, left);
  mine->is_writing = status == STATUS_BLOCKED;
  if (mine->is_writing) set_join(mine->writer, mine->set);
  if (!mine->is_writing) have_written(mine, status);
  return !mine->is_writing;
}

// ---- the end ----

// Does a unit of work for all tasks.
static int32_t work(void) {
  server_step(&here);
  return CODE_YIELD;
}

static void begin_closing(task *mine) {
  server_end(&here, &mine->reply);
  end_looking(mine);
  set_join(mine->writer, 0);
  stream_drop(mine->writer);
  mine->is_closing = true;
  const abi_error_room *end = mine->has_failed ? &broken_off : &nothing;
  mine->trailers_wait = trailers_write(mine->trailers, end) == STATUS_BLOCKED;
  if (mine->trailers_wait) set_join(mine->trailers, mine->set);
}

static int32_t close_task(task *mine) {
  const bool is_read = read_body(mine);
  if (server_has_cancelled(&here))
    return work();  // there may be no other task left to end these requests
  if (!is_read || mine->trailers_wait || mine->failed_waits) return wait_for(mine->set);
  set_join(mine->trailers, 0);
  set_join(mine->failed, 0);
  trailers_drop(mine->trailers);
  failed_drop(mine->failed);
  set_drop(mine->set);
  buffer_free(&mine->sending);
  free(mine);
  return CODE_EXIT;
}

static int32_t go_on(task *mine) {
  if (mine->is_closing) return close_task(mine);
  if (!mine->has_begun) {
    if (!read_body(mine)) return wait_for(mine->set);
    server_take_body(&here, &mine->asked, &mine->reply);
    http_free(&mine->asked);
    mine->has_begun = true;
  }
  if (!mine->has_head && mine->reply.status == 0) return work();
  if (!mine->has_head) send_head(mine);
  if (mine->reply.status != mine->status) {
    mine->has_failed = true;
    begin_closing(mine);
    return close_task(mine);
  }
  if (!write_body(mine)) return wait_for(mine->set);
  if (mine->sent_bytes == mine->sending.size_bytes) look(mine);
  const bool has_more =
      mine->sent_bytes < mine->sending.size_bytes || mine->reply.out.size_bytes > 0;
  if (mine->is_gone || (mine->reply.is_done && !has_more)) {
    begin_closing(mine);
    return close_task(mine);
  }
  return has_more ? CODE_YIELD : work();
}

int32_t handle(abi_handle request) {
  server_open(&here);
  task *mine = calloc(1, sizeof *mine);
  if (mine == NULL) abort();
  take_head(request, &mine->asked);
  mine->set = set_create();
  const abi_ends failed = failed_create();
  abi_pair body;
  request_body(request, readable_of(failed), &body);
  body_trailers_drop(body.second);
  mine->reader = body.first;
  mine->failed = writable_of(failed);
  mine->failed_waits = failed_write(mine->failed, &nothing) == STATUS_BLOCKED;
  if (mine->failed_waits) set_join(mine->failed, mine->set);
  context_set(mine);
  mine->has_begun = !server_begin(&here, &mine->asked, &mine->reply);
  mine->is_discarding = mine->has_begun;
  if (mine->has_begun) http_free(&mine->asked);
  return go_on(mine);
}

int32_t handle_event(int32_t event, abi_handle waitable, int32_t code) {
  task *mine = context_get();
  take_event(mine, event, waitable, code);
  return go_on(mine);
}

void preload(void) { server_preload(&here); }
