// web/exports.c — exports the engine as plain functions that JavaScript calls
// (js/wasm/native_engine.js is the only caller). An engine's handle is its address. Multiple
// results are returned in `numbers`, and errors in `last_error`. layout.h defines the records and
// the indexes into `numbers`.
#include <string.h>

#include "api/media_strips.h"
#include "layout.h"
#include "thread_web.h"
#include "web_heap.h"
#include "wick.h"

#define WEB_EXPORT(name) __attribute__((export_name(name)))

static wick_error last_error;
static uint64_t numbers[16];

// ---- The instance ----

extern uint8_t __heap_base;

// Starts the instance. Must be called first, on the engine's thread. The number of helpers
// determines where the heap begins.
WEB_EXPORT("start") void web_start(uint32_t helpers, uint32_t pages_max) {
  web_threads_expect(helpers);
  web_heap_start((uintptr_t)&__heap_base + helpers * WEB_HELPER_STACK_BYTES, pages_max);
}

// Memory for data that JavaScript passes in. It is not part of the engine's budget.
WEB_EXPORT("alloc") void *web_alloc(size_t size_bytes) { return web_heap_alloc(size_bytes); }
WEB_EXPORT("free") void web_free(void *block, size_t size_bytes) {
  web_heap_free(block, size_bytes);
}

WEB_EXPORT("error_address") const wick_error *web_error_address(void) { return &last_error; }
WEB_EXPORT("numbers_address") const uint64_t *web_numbers_address(void) { return numbers; }

// ---- Pages swapped to the host: offsets and sizes fit in 32 bits ----

// The host's functions return 0 on failure.
__attribute__((import_module("env"), import_name("swap_open"))) uint32_t
host_swap_open(uint32_t id, uint32_t size_bytes);
__attribute__((import_module("env"), import_name("swap_write"))) uint32_t
host_swap_write(uint32_t id, uint32_t offset_bytes, const void *bytes, size_t size_bytes);
__attribute__((import_module("env"), import_name("swap_read"))) uint32_t
host_swap_read(uint32_t id, uint32_t offset_bytes, void *bytes, size_t size_bytes);
__attribute__((import_module("env"), import_name("swap_drop"))) void host_swap_drop(uint32_t id);

static bool open_swap(void *context, uint32_t id, uint64_t size_bytes) {
  (void)context;
  return size_bytes <= UINT32_MAX && host_swap_open(id, (uint32_t)size_bytes) != 0;
}

static bool write_swap(void *context, uint32_t id, uint64_t offset_bytes, const void *bytes,
                       size_t size_bytes) {
  (void)context;
  return host_swap_write(id, (uint32_t)offset_bytes, bytes, size_bytes) != 0;
}

static bool read_swap(void *context, uint32_t id, uint64_t offset_bytes, void *bytes,
                      size_t size_bytes) {
  (void)context;
  return host_swap_read(id, (uint32_t)offset_bytes, bytes, size_bytes) != 0;
}

static void drop_swap(void *context, uint32_t id) {
  (void)context;
  host_swap_drop(id);
}

static const wick_swap_host SWAP_WHERE_IT_PAYS = {NULL,      open_swap, write_swap,
                                                  read_swap, drop_swap, false};
static const wick_swap_host SWAP_ALWAYS = {NULL, open_swap, write_swap, read_swap, drop_swap, true};

// ---- Tables that remain in the model's files ----

// The offset is a double, which is exact up to 2^53. Returns -1 if reading fails.
__attribute__((import_module("env"), import_name("read_table"))) size_t
host_read_table(uint32_t file, double offset_bytes, void *bytes, size_t size_bytes);

static size_t read_table(void *context, uint32_t file, uint64_t offset_bytes, void *bytes,
                         size_t size_bytes) {
  (void)context;
  return host_read_table(file, (double)offset_bytes, bytes, size_bytes);
}

static const wick_reader TABLES_READER = {.read = read_table};

// ---- The mmproj file, while it is loaded ----

// Returns SIZE_MAX if reading fails.
__attribute__((import_module("env"), import_name("read_media"))) size_t
host_read_media(double offset_bytes, void *bytes, size_t size_bytes);

static size_t read_media(void *context, uint32_t file, uint64_t offset_bytes, void *bytes,
                         size_t size_bytes) {
  (void)context, (void)file;
  return host_read_media((double)offset_bytes, bytes, size_bytes);
}

// ---- Engine ----

enum { WEB_NAME_BYTES_MAX = 63 };

WEB_EXPORT("engine_create") wick_engine *web_engine_create(const web_config *from) {
  wick_config config;
  wick_config_default(&config);
  config.memory_bytes_max =
      (uint64_t)from->memory_bytes_max_high << 32 | from->memory_bytes_max_low;
  config.threads = from->threads;
#define TAKE_NUMBER(field) config.field = from->field;
#define TAKE_ENGINE_FLAG(field) config.field = from->field != 0;
  WEB_CONFIG_NUMBERS(TAKE_NUMBER)
  WEB_CONFIG_FLAGS(TAKE_ENGINE_FLAG)
  config.k_type = (wick_kv_type)from->k_type;
  config.v_type = (wick_kv_type)from->v_type;
  config.timer_grain_us = from->timer_grain_us;
  config.choose_threads = from->choose_threads != 0;
  config.requests_max = WEB_REQUESTS_MAX;
  config.media_like_llama_cpp = from->media_like_llama_cpp != 0;
  if (from->swap != 0) config.swap = from->swap == 1 ? &SWAP_WHERE_IT_PAYS : &SWAP_ALWAYS;
  config.tables = (wick_tables)from->tables;
  config.tables_reader = &TABLES_READER;
  char pre_tokenizer[WEB_NAME_BYTES_MAX + 1] = "";
  if (from->pre_tokenizer_bytes > 0) {
    const uint32_t size_bytes = from->pre_tokenizer_bytes < WEB_NAME_BYTES_MAX
                                    ? from->pre_tokenizer_bytes
                                    : (uint32_t)WEB_NAME_BYTES_MAX;
    memcpy(pre_tokenizer, (const void *)(uintptr_t)from->pre_tokenizer, size_bytes);
    config.pre_tokenizer = pre_tokenizer;
  }
  wick_engine *engine = NULL;
  if (wick_engine_create(&config, &engine, &last_error) != WICK_OK) return NULL;
  wick_engine_compile_in_slices(engine);
  return engine;
}

WEB_EXPORT("engine_destroy") void web_engine_destroy(wick_engine *engine) {
  wick_engine_destroy(engine);
}

// Sets numbers[WEB_COUNTER_*].
WEB_EXPORT("engine_counters") void web_engine_counters(const wick_engine *engine) {
  wick_memory_state memory;
  wick_memory_get_state(engine, &memory);
  numbers[WEB_COUNTER_BUDGET_BYTES] = memory.budget_bytes;
  numbers[WEB_COUNTER_BYTES_NOW] = memory.bytes_now;
  numbers[WEB_COUNTER_BYTES_PEAK] = memory.bytes_peak;
  numbers[WEB_COUNTER_CALLS] = memory.calls;
  numbers[WEB_COUNTER_BLOCKS_NOW] = memory.blocks_now;
  numbers[WEB_COUNTER_THREADS] = wick_engine_threads(engine);
  numbers[WEB_COUNTER_THREADS_DECODE] = wick_engine_threads_used(engine, 1);
  numbers[WEB_COUNTER_THREADS_PREFILL] =
      wick_engine_threads_used(engine, wick_engine_config(engine)->batch_tokens);
  numbers[WEB_COUNTER_LIMIT_BYTES] = wick_engine_memory_limit(engine);
}

// ---- Loading ----

// Sets numbers[WEB_RANGE_*].
WEB_EXPORT("load_next_range") void web_load_next_range(const wick_engine *engine) {
  uint32_t file = 0;
  wick_load_next_range(engine, &file, &numbers[WEB_RANGE_OFFSET_BYTES],
                       &numbers[WEB_RANGE_SIZE_BYTES]);
  numbers[WEB_RANGE_FILE] = file;
}

// Offsets and sizes are whole numbers below 2^53.
WEB_EXPORT("load_feed")
wick_status web_load_feed(wick_engine *engine, uint32_t file, double offset_bytes,
                          const void *bytes, size_t size_bytes) {
  return wick_load_feed(engine, file, (uint64_t)offset_bytes, bytes, size_bytes, &last_error);
}

WEB_EXPORT("load_end")
wick_status web_load_end(wick_engine *engine, uint32_t file, double size_bytes) {
  return wick_load_end(engine, file, (uint64_t)size_bytes, &last_error);
}

// Sets numbers[WEB_LOAD_*].
WEB_EXPORT("load_state") void web_load_state(const wick_engine *engine) {
  wick_load_state state;
  wick_load_get_state(engine, &state);
  numbers[WEB_LOAD_BYTES_WANTED] = state.bytes_wanted;
  numbers[WEB_LOAD_BYTES_PLACED] = state.bytes_placed;
  numbers[WEB_LOAD_FINGERPRINT] = state.fingerprint;
  numbers[WEB_LOAD_FILES] = state.files;
  numbers[WEB_LOAD_LAYERS_READY] = state.layers_ready;
  numbers[WEB_LOAD_IS_DIRECTORY_READY] = state.is_directory_ready;
  numbers[WEB_LOAD_IS_COMPLETE] = state.is_complete;
}

// ---- Adapters ----

// Returns the adapter's number, or 0 after a failure.
WEB_EXPORT("adapter_create") uint32_t web_adapter_create(wick_engine *engine) {
  uint32_t adapter = 0;
  return wick_adapter_create(engine, &adapter, &last_error) == WICK_OK ? adapter : 0;
}

// Offsets and sizes are whole numbers below 2^53.
WEB_EXPORT("adapter_feed")
wick_status web_adapter_feed(wick_engine *engine, uint32_t adapter, double offset_bytes,
                             const void *bytes, size_t size_bytes) {
  return wick_adapter_feed(engine, adapter, (uint64_t)offset_bytes, bytes, size_bytes, &last_error);
}

WEB_EXPORT("adapter_end")
wick_status web_adapter_end(wick_engine *engine, uint32_t adapter, double size_bytes) {
  return wick_adapter_end(engine, adapter, (uint64_t)size_bytes, &last_error);
}

WEB_EXPORT("adapter_remove")
wick_status web_adapter_remove(wick_engine *engine, uint32_t adapter) {
  return wick_adapter_remove(engine, adapter, &last_error);
}

// Describes the adapter at an index of the list in numbers[WEB_ADAPTER_*]; the id is 0 after the
// last adapter. Returns its alpha.
WEB_EXPORT("adapter_get") float web_adapter_get(const wick_engine *engine, uint32_t index) {
  wick_adapter_info info = {0};
  wick_adapter_get(engine, index, &info);
  numbers[WEB_ADAPTER_ID] = info.id;
  numbers[WEB_ADAPTER_TENSORS] = info.tensors;
  numbers[WEB_ADAPTER_RANK] = info.rank;
  numbers[WEB_ADAPTER_USERS] = info.users;
  numbers[WEB_ADAPTER_BYTES] = info.bytes;
  numbers[WEB_ADAPTER_IS_COMPLETE] = info.is_complete;
  return info.alpha;
}

// ---- The model ----

// A text buffer: text is truncated at its end, but `size_bytes` counts all of it.
typedef struct text_room {
  char *bytes;
  size_t capacity_bytes, size_bytes;
} text_room;

static void write_text(void *context, const char *bytes, size_t size_bytes) {
  text_room *room = context;
  if (room->size_bytes < room->capacity_bytes) {
    const size_t left = room->capacity_bytes - room->size_bytes;
    memcpy(room->bytes + room->size_bytes, bytes, size_bytes < left ? size_bytes : left);
  }
  room->size_bytes += size_bytes;
}

// Exports a function of wick.h that writes text, as much as fits. Returns its full size in bytes.
#define WEB_EXPORT_TEXT(name)                                                \
  WEB_EXPORT(#name)                                                          \
  size_t web_##name(wick_engine *engine, char *out, size_t capacity_bytes) { \
    text_room room = {out, capacity_bytes, 0};                               \
    wick_##name(engine, write_text, &room);                                  \
    return room.size_bytes;                                                  \
  }
WEB_EXPORT_TEXT(info_json)
WEB_EXPORT_TEXT(inspect_json)
WEB_EXPORT_TEXT(stats_json)
// These return 0 unless the engine's config.metrics is set.
WEB_EXPORT_TEXT(metrics_json)
WEB_EXPORT_TEXT(metrics_prometheus)

WEB_EXPORT("metrics_reset") void web_metrics_reset(wick_engine *engine) {
  wick_metrics_reset(engine);
}

// Includes one letter for each page if `map` is not 0.
WEB_EXPORT("kv_json")
size_t web_kv_json(wick_engine *engine, char *out, size_t capacity_bytes, uint32_t map) {
  text_room room = {out, capacity_bytes, 0};
  wick_pages_json(engine, map != 0, write_text, &room);
  return room.size_bytes;
}

// Finds the cached pages of a prompt, the last one first.
WEB_EXPORT("kv_find")
size_t web_kv_find(wick_engine *engine, char *out, size_t capacity_bytes, const int32_t *tokens,
                   size_t count) {
  text_room room = {out, capacity_bytes, 0};
  wick_pages_find(engine, tokens, count, write_text, &room);
  return room.size_bytes;
}

// ---- Text ----

// Sets numbers[0] to the number of tokens; returns WICK_E_FULL if it exceeds `capacity`.
WEB_EXPORT("tokenize")
wick_status web_tokenize(wick_engine *engine, const char *text, size_t size_bytes, uint32_t flags,
                         int32_t *tokens, size_t capacity) {
  size_t count = 0;
  const wick_status status =
      wick_tokenize(engine, text, size_bytes, flags, tokens, capacity, &count, &last_error);
  numbers[0] = count;
  return status;
}

// Returns the buffer size that detokenize needs for `count` tokens; SIZE_MAX, for which every
// allocation fails, if it overflows.
WEB_EXPORT("detokenize_bytes_max")
size_t web_detokenize_bytes_max(wick_engine *engine, size_t count) {
  return wick_detokenize_bytes_max(engine, count);
}

// Writes the text of tokens. `whole`: the tokens start a text (SPM drops the added space). Sets
// numbers[0] to the number of bytes written.
WEB_EXPORT("detokenize")
wick_status web_detokenize(wick_engine *engine, const int32_t *tokens, size_t count, uint32_t whole,
                           uint32_t special, char *out) {
  size_t written = 0;
  const wick_status status =
      wick_detokenize(engine, tokens, count, whole != 0, special != 0, out, &written, &last_error);
  numbers[0] = written;
  return status;
}

// Returns the bytes of a token, which may be a control token, in numbers[WEB_ARRAY_*].
WEB_EXPORT("token_piece")
wick_status web_token_piece(wick_engine *engine, int32_t token, char *scratch) {
  wick_text text;
  const wick_status status = wick_token_bytes(engine, token, scratch, &text, &last_error);
  numbers[WEB_ARRAY_ADDRESS] = (uintptr_t)text.bytes;
  numbers[WEB_ARRAY_COUNT] = text.size_bytes;
  return status;
}

// ---- Conversations ----

WEB_EXPORT("chat_set_template")
wick_status web_chat_set_template(wick_engine *engine, const char *source, size_t source_bytes) {
  return wick_chat_set_template(engine, source, source_bytes, &last_error);
}

static wick_chat chat_of(const web_chat *from) {
  return (wick_chat){.json = (const char *)(uintptr_t)from->json,
                     .json_bytes = from->json_bytes,
                     .now_s = from->now_s,
                     .has_now = true,
                     .parse_special = from->parse_special != 0,
                     .prefix = (const char *)(uintptr_t)from->prefix,
                     .prefix_bytes = from->prefix_bytes};
}

// Returns the text in numbers[WEB_ARRAY_*].
WEB_EXPORT("chat_render")
wick_status web_chat_render(wick_engine *engine, const web_chat *from) {
  wick_chat_text text;
  const wick_chat chat = chat_of(from);
  const wick_status status = wick_chat_render(engine, &chat, &text, &last_error);
  numbers[WEB_ARRAY_ADDRESS] = (uintptr_t)text.text.bytes;
  numbers[WEB_ARRAY_COUNT] = text.text.size_bytes;
  return status;
}

// Returns the tokens in numbers[WEB_ARRAY_*].
WEB_EXPORT("chat_tokenize")
wick_status web_chat_tokenize(wick_engine *engine, const web_chat *from) {
  const int32_t *tokens;
  size_t count;
  const wick_chat chat = chat_of(from);
  const wick_status status = wick_chat_tokenize(engine, &chat, &tokens, &count, &last_error);
  numbers[WEB_ARRAY_ADDRESS] = (uintptr_t)tokens;
  numbers[WEB_ARRAY_COUNT] = count;
  return status;
}

// ---- Images and audio: these need the media module ----

enum { WEB_PIECE_BYTES = 65536 };

WEB_EXPORT("media_load") wick_status web_media_load(wick_engine *engine) {
  const wick_reader reader = {
      .read = read_media, .piece = web_heap_alloc(WEB_PIECE_BYTES), .piece_bytes = WEB_PIECE_BYTES};
  if (reader.piece == NULL) return WICK_E_NOMEM;
  const wick_status status = wick_media_load_from(engine, &reader, &last_error);
  web_heap_free(reader.piece, WEB_PIECE_BYTES);
  return status;
}

WEB_EXPORT("media_has") uint32_t web_media_has(wick_engine *engine, uint32_t kind) {
  return wick_media_has(engine, (wick_media_kind)kind);
}

// Adds an image, which is fed afterwards, or, if `height` is 0, a recording of `width` samples.
// Sets numbers[WEB_MEDIA_ID].
WEB_EXPORT("media_add")
wick_status web_media_add(wick_engine *engine, const float *samples, uint32_t width,
                          uint32_t height) {
  uint32_t media = 0;
  const wick_status status =
      height == 0 ? wick_media_add_audio(engine, samples, width, &media, &last_error)
                  : engine_media_begin_image(engine, width, height, &media, &last_error);
  numbers[WEB_MEDIA_ID] = media;
  return status;
}

WEB_EXPORT("media_feed")
wick_status web_media_feed(wick_engine *engine, uint32_t media, const uint8_t *rgb, uint32_t rows) {
  return engine_media_feed_image(engine, media, rgb, rows, &last_error);
}

// Sets numbers[WEB_MEDIA_*].
WEB_EXPORT("media_info") wick_status web_media_info(wick_engine *engine, uint32_t media) {
  wick_media_info info = {0};
  const wick_status status = wick_media_get_info(engine, media, &info, &last_error);
  numbers[WEB_MEDIA_TOKENS] = info.tokens;
  numbers[WEB_MEDIA_ROWS] = info.rows;
  numbers[WEB_MEDIA_TILES] = info.tiles;
  numbers[WEB_MEDIA_MACS] = info.macs;
  numbers[WEB_MEDIA_ROWS_BYTES] = info.rows_bytes;
  numbers[WEB_MEDIA_ENCODE_BYTES] = info.encode_bytes;
  numbers[WEB_MEDIA_IS_READY] = info.is_ready;
  return status;
}

// Sets numbers[WEB_MEDIA_IS_READY].
WEB_EXPORT("media_step")
wick_status web_media_step(wick_engine *engine, uint32_t media, uint32_t budget_us) {
  bool is_ready = false;
  const wick_status status = wick_media_step(engine, media, budget_us, &is_ready, &last_error);
  numbers[WEB_MEDIA_IS_READY] = is_ready;
  return status;
}

WEB_EXPORT("media_remove") void web_media_remove(wick_engine *engine, uint32_t media) {
  wick_media_remove(engine, media);
}

// Returns the tokens in numbers[WEB_ARRAY_*].
WEB_EXPORT("media_tokenize")
wick_status web_media_tokenize(wick_engine *engine, const web_media_prompt *from) {
  const int32_t *tokens;
  size_t count;
  wick_chat chat;
  if (from->chat != 0) chat = chat_of((const web_chat *)(uintptr_t)from->chat);
  const wick_media_prompt prompt = {.chat = from->chat != 0 ? &chat : NULL,
                                    .text = (const char *)(uintptr_t)from->text,
                                    .text_bytes = from->text_bytes,
                                    .marker = (const char *)(uintptr_t)from->marker,
                                    .marker_bytes = from->marker_bytes,
                                    .media = (const uint32_t *)(uintptr_t)from->media,
                                    .media_count = from->media_count};
  const wick_status status = wick_media_tokenize(engine, &prompt, &tokens, &count, &last_error);
  numbers[WEB_ARRAY_ADDRESS] = (uintptr_t)tokens;
  numbers[WEB_ARRAY_COUNT] = count;
  return status;
}

// ---- Requests ----

typedef struct taken_request {
  wick_request request;
  wick_grammar grammar;
  wick_reasoning reasoning;
  wick_conversation conversation;
} taken_request;

static void take_conversation(const web_request *from, taken_request *to) {
  to->conversation = (wick_conversation){.chat = chat_of((const web_chat *)(uintptr_t)from->chat),
                                         .tool_choice = (const char *)(uintptr_t)from->tool_choice,
                                         .tool_choice_bytes = from->tool_choice_bytes,
                                         .one_call = from->one_call != 0,
                                         .is_grammar_whole = from->is_grammar_whole != 0};
  to->request.conversation = &to->conversation;
}

static void take_request(const web_request *from, taken_request *to) {
  wick_request *request = &to->request;
  wick_request_default(request);
  request->text = (const char *)(uintptr_t)from->text;
  request->text_bytes = from->text_bytes;
  request->tokens = from->token_count == 0 ? NULL : (const int32_t *)(uintptr_t)from->tokens;
  request->token_count = from->token_count;
  request->tokenize_flags = from->tokenize_flags;
  request->max_tokens = from->max_tokens;
  request->sampling = *(const wick_sampling *)(uintptr_t)from->sampling;
  request->stops = (const char *const *)(uintptr_t)from->stops;
  request->stop_bytes = (const size_t *)(uintptr_t)from->stop_bytes;
  request->stop_count = from->stop_count;
#define TAKE_FLAG(bit, member) request->member = (from->flags & 1U << (bit)) != 0;
  WEB_REQUEST_FLAGS(TAKE_FLAG)
#undef TAKE_FLAG
  request->session = from->session;
  request->salt = (const char *)(uintptr_t)from->salt;
  request->salt_bytes = from->salt_bytes;
  request->prefill_only = from->prefill_only != 0;
  request->drop_first = from->drop_first;
  request->drop_last = from->drop_last;
  request->priority = from->priority;
  request->passes_waited = from->passes_waited;
  request->completions = from->completions;
  request->no_speculation = from->speculation == 1;
  request->always_speculates = from->speculation == 2;
  request->forced = (const int32_t *)(uintptr_t)from->forced;
  request->forced_count = from->forced_count;
  to->grammar = (wick_grammar){.kind = (wick_grammar_kind)from->grammar_kind,
                               .text = (const char *)(uintptr_t)from->grammar,
                               .text_bytes = from->grammar_bytes,
                               .begun = (const char *)(uintptr_t)from->grammar_begun,
                               .begun_bytes = from->grammar_begun_bytes};
  if (to->grammar.kind != WICK_GRAMMAR_NONE) request->grammar = &to->grammar;
  to->reasoning = (wick_reasoning){.tokens_max = from->reasoning_tokens,
                                   .ending = (const char *)(uintptr_t)from->reasoning_ending,
                                   .ending_bytes = from->reasoning_ending_bytes};
  if (from->limits_reasoning != 0) request->reasoning = &to->reasoning;
  request->asks_host = from->asks_host != 0;
  request->adapters = (const wick_adapter_use *)(uintptr_t)from->adapters;
  request->adapter_count = from->adapter_count;
  if (from->chat != 0) take_conversation(from, to);
}

// Returns the request's number (the first of several completions), or 0 if it was rejected or, with
// numbers[0] set, its grammar is still being compiled.
WEB_EXPORT("request_submit")
uint32_t web_request_submit(wick_engine *engine, const web_request *from) {
  taken_request taken;
  uint32_t id = 0;
  take_request(from, &taken);
  const wick_status status = wick_request_submit(engine, &taken.request, &id, &last_error);
  numbers[0] = status == WICK_E_BUSY && last_error.subject == WICK_SUBJECT_GRAMMAR;
  return status == WICK_OK ? id : 0;
}

WEB_EXPORT("request_cancel")
wick_status web_request_cancel(wick_engine *engine, uint32_t id) {
  return wick_request_cancel(engine, id);
}

// Returns the logits of a request that is waiting for its hook.
WEB_EXPORT("request_logits") wick_status web_request_logits(wick_engine *engine, uint32_t id) {
  wick_logits logits = {0};
  const wick_status status = wick_request_logits(engine, id, &logits);
  numbers[WEB_ASKED_LOGITS] = (uintptr_t)logits.values;
  numbers[WEB_ASKED_VOCAB] = logits.vocab;
  numbers[WEB_ASKED_TOKENS] = (uintptr_t)logits.tokens;
  numbers[WEB_ASKED_COUNT] = logits.token_count;
  return status;
}

WEB_EXPORT("request_go_on") wick_status web_request_go_on(wick_engine *engine, uint32_t id) {
  return wick_request_go_on(engine, id);
}

WEB_EXPORT("engine_set_draft")
wick_status web_engine_set_draft(wick_engine *engine, wick_engine *draft) {
  return wick_engine_set_draft(engine, draft, &last_error);
}

WEB_EXPORT("request_pause")
wick_status web_request_pause(wick_engine *engine, uint32_t id, uint32_t is_paused) {
  return wick_request_pause(engine, id, is_paused != 0);
}

WEB_EXPORT("step") wick_step_result web_step(wick_engine *engine, uint32_t budget_us) {
  return wick_step(engine, budget_us);
}

WEB_EXPORT("step_units") wick_step_result web_step_units(wick_engine *engine, uint32_t units) {
  return wick_step_units(engine, units);
}

// Returns the number of passes begun so far.
WEB_EXPORT("passes") double web_passes(const wick_engine *engine) {
  wick_stats stats;
  wick_stats_get(engine, &stats);
  return (double)stats.passes;
}

// Returns the address of the records. Sets numbers[0] to their size in bytes.
WEB_EXPORT("events_take") const uint8_t *web_events_take(wick_engine *engine) {
  size_t size_bytes = 0;
  const uint8_t *bytes = wick_events_take(engine, &size_bytes);
  numbers[0] = size_bytes;
  return bytes;
}

// ---- Embeddings ----

WEB_EXPORT("embed_begin") wick_status web_embed_begin(wick_engine *engine, const web_embed *from) {
  const wick_embed_request request = {
      .texts = (const wick_embed_text *)(uintptr_t)from->texts,
      .text_count = from->text_count,
      .pooling = (wick_pooling)from->pooling,
      .dimensions = from->dimensions,
      .normalizes = from->normalizes != 0,
      .truncates = from->truncates != 0,
      .adapters = (const wick_adapter_use *)(uintptr_t)from->adapters,
      .adapter_count = from->adapter_count};
  return wick_embed(engine, &request, &last_error);
}

// Sets numbers[0] to a wick_step_result.
WEB_EXPORT("embed_step") wick_status web_embed_step(wick_engine *engine, uint32_t budget_us) {
  wick_step_result result;
  const wick_status status = wick_embed_step(engine, budget_us, &result, &last_error);
  numbers[0] = result;
  return status;
}

// Returns the address of the floats. Sets numbers[WEB_VECTORS_*].
WEB_EXPORT("embed_get") const float *web_embed_get(const wick_engine *engine, uint32_t index) {
  wick_vectors vectors = {0};
  wick_embed_get(engine, index, &vectors);
  numbers[WEB_VECTORS_ROWS] = vectors.rows;
  numbers[WEB_VECTORS_WIDTH] = vectors.width;
  numbers[WEB_VECTORS_TOKENS] = vectors.tokens;
  return vectors.values;
}

WEB_EXPORT("embed_end") void web_embed_end(wick_engine *engine) { wick_embed_end(engine); }

// ---- Sessions ----

// Returns the session's number, or 0 after a failure.
WEB_EXPORT("session_create")
uint32_t web_session_create(wick_engine *engine, const char *salt, size_t salt_bytes) {
  uint32_t session = 0;
  const wick_status status =
      wick_session_create_salted(engine, salt, salt_bytes, &session, &last_error);
  return status == WICK_OK ? session : 0;
}

WEB_EXPORT("session_fork") uint32_t web_session_fork(wick_engine *engine, uint32_t session) {
  uint32_t child = 0;
  return wick_session_fork(engine, session, &child, &last_error) == WICK_OK ? child : 0;
}

WEB_EXPORT("session_truncate")
wick_status web_session_truncate(wick_engine *engine, uint32_t session, uint32_t tokens) {
  return wick_session_truncate(engine, session, tokens, &last_error);
}

WEB_EXPORT("session_drop")
wick_status web_session_drop(wick_engine *engine, uint32_t session, uint32_t first, uint32_t last) {
  return wick_session_drop(engine, session, first, last, &last_error);
}

WEB_EXPORT("session_close")
wick_status web_session_close(wick_engine *engine, uint32_t session) {
  return wick_session_close(engine, session, &last_error);
}

// Returns the tokens in numbers[WEB_ARRAY_*].
WEB_EXPORT("session_tokens")
wick_status web_session_tokens(const wick_engine *engine, uint32_t session) {
  const int32_t *tokens = NULL;
  uint32_t count = 0;
  const wick_status status = wick_session_tokens(engine, session, &tokens, &count, &last_error);
  numbers[WEB_ARRAY_ADDRESS] = (uintptr_t)tokens;
  numbers[WEB_ARRAY_COUNT] = count;
  return status;
}

// ---- Saved state: bytes are passed directly between the engine and the host ----

// Both functions return 0 if the host reports a failure.
__attribute__((import_module("env"), import_name("state_write"))) uint32_t
host_state_write(const void *bytes, size_t size_bytes);
__attribute__((import_module("env"), import_name("state_read"))) uint32_t
host_state_read(void *bytes, size_t size_bytes);

static bool write_state(void *context, const void *bytes, size_t size_bytes) {
  (void)context;
  return host_state_write(bytes, size_bytes) != 0;
}

static bool read_state(void *context, void *bytes, size_t size_bytes) {
  (void)context;
  return host_state_read(bytes, size_bytes) != 0;
}

// Saves a session, or the prefix cache (0). k_type, v_type: KV types of the saved session; -1: the
// engine's own types. Sets numbers[0] to the size in bytes.
WEB_EXPORT("state_bytes")
wick_status web_state_bytes(const wick_engine *engine, uint32_t session, int32_t k_type,
                            int32_t v_type) {
  if (k_type < 0) return wick_state_bytes(engine, session, &numbers[0], &last_error);
  return wick_session_packed_bytes(engine, session, (wick_kv_type)k_type, (wick_kv_type)v_type,
                                   &numbers[0], &last_error);
}

WEB_EXPORT("state_save")
wick_status web_state_save(wick_engine *engine, uint32_t session, int32_t k_type, int32_t v_type) {
  const wick_state_sink sink = {NULL, write_state};
  if (k_type < 0) return wick_state_save(engine, session, &sink, &last_error);
  return wick_session_save_packed(engine, session, (wick_kv_type)k_type, (wick_kv_type)v_type,
                                  &sink, &last_error);
}

// Sets numbers[WEB_STATE_*]; session 0: a prefix cache was loaded.
WEB_EXPORT("state_load") wick_status web_state_load(wick_engine *engine, double size_bytes) {
  const wick_state_source source = {NULL, read_state, (uint64_t)size_bytes};
  wick_state_loaded loaded = {0};
  const wick_status status = wick_state_load(engine, &source, &loaded, &last_error);
  numbers[WEB_STATE_SESSION] = loaded.session;
  numbers[WEB_STATE_ENTRIES] = loaded.entries;
  return status;
}
