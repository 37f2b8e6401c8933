// wick.h — the public interface of Wick, an engine for GGUF language models, for C and C++
// programs. It includes no other header of the engine, and a program needs no other.
//
//   wick_config config;
//   wick_engine *engine;
//   wick_error error;
//   wick_config_default(&config);
//   if (wick_engine_create(&config, &engine, &error) != WICK_OK) ...
//   if (wick_load_bytes(engine, file, file_bytes, &error) != WICK_OK) ...
//
//   wick_request request;
//   wick_request_default(&request);
//   request.text = "Once upon a time", request.text_bytes = 16, request.max_tokens = 64;
//   uint32_t id;
//   if (wick_request_submit(engine, &request, &id, &error) != WICK_OK) ...
//   wick_step_result result;
//   do {
//     result = wick_step(engine, 10000);
//     size_t size_bytes;
//     const uint8_t *events = wick_events_take(engine, &size_bytes);
//     const wick_event *event = NULL;
//     while ((event = wick_event_next(events, size_bytes, event)) != NULL)
//       fwrite(wick_event_text(event), 1, event->text_bytes, stdout);
//   } while (result != WICK_STEP_IDLE);
//   wick_engine_destroy(engine);
//
// Threads: only one thread at a time may call an engine. Engines share nothing. A callback must not
// call the engine that called it, and a forked child must not call its parent's engines. Work is
// done in wick_load_feed, which copies, and wick_step, which exceeds its budget by at most the time
// of one layer.
//
// Lifetimes: arguments are copied unless a comment says otherwise, so they may be freed when the
// call returns. Returned pointers belong to the engine; each comment says how long they are valid,
// at most until wick_engine_destroy. The caller destroys the engines and constraints that it has
// created, and frees nothing else. wick_engine_destroy frees all memory used by the engine.
//
// Errors: a call that can fail returns a wick_status and, unless the pointer is NULL, fills in the
// caller's wick_error. A failed call changes nothing unless its comment says otherwise. Passing
// NULL for an engine, an out parameter, a path or data of nonzero size is a programming error that
// is not checked.
//
// Memory: all allocations go through one gate that enforces config.memory_bytes_max. Decoding
// allocates nothing.
//
// Numbers: offsets in files and sizes of files are uint64_t, token ids int32_t, positions and
// numbers of tokens uint32_t. Text is UTF-8 with a length and is not NUL-terminated.
//
// Structs: initialize a struct with the function that fills in its defaults (wick_request_default,
// ...) if it has one, otherwise with zeros. A wick_config of zeros means the defaults. `reserved`
// is space for later fields and must be 0; a struct keeps its size as long as libwick.so keeps its
// name.
#ifndef WICK_H
#define WICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The prefix of every function declaration. WICK_SHARED (defined by wick-shared.pc) means that
// libwick.so is linked: code with hidden visibility then finds the functions there. A build of the
// library may define WICK_API itself.
#ifndef WICK_API
#if defined(WICK_SHARED) && defined(__GNUC__)
#define WICK_API __attribute__((visibility("default")))
#else
#define WICK_API
#endif
#endif

// ---- Version ----

#define WICK_VERSION_MAJOR 0
#define WICK_VERSION_MINOR 1
#define WICK_VERSION_PATCH 0
// Increases with every version: 1.2.3 is 10203.
#define WICK_VERSION (WICK_VERSION_MAJOR * 10000 + WICK_VERSION_MINOR * 100 + WICK_VERSION_PATCH)

// Returns the WICK_VERSION of the linked library.
WICK_API uint32_t wick_version(void);

// ---- Statuses and errors ----

typedef enum wick_status {
  WICK_OK = 0,
  WICK_E_ARG = 1,           // the caller broke the contract: empty, out of range, unknown id
  WICK_E_PAGES = 2,         // the KV pool has too few pages
  WICK_E_SEQ = 3,           // no such session
  WICK_E_RANGE = 4,         // position or offset out of range
  WICK_E_CORRUPT = 5,       // a saved state is damaged, or an invariant of the engine is broken
  WICK_E_OVERFLOW = 6,      // arithmetic on sizes overflows
  WICK_E_NOMEM = 7,         // out of memory, or over the budget
  WICK_E_SHAPE = 8,         // dimensions, bytes and type do not agree
  WICK_E_NONFINITE = 9,     // NaN or Inf where numbers were expected
  WICK_E_FULL = 10,         // capacity reached (context, queue, caller's buffer)
  WICK_E_BUSY = 11,         // referenced or in use
  WICK_E_NODATA = 12,       // not available yet
  WICK_E_MISMATCH = 13,     // saved for a different model or version
  WICK_E_IO = 14,           // the host's storage or stream failed
  WICK_E_FORMAT = 15,       // the file violates its format
  WICK_E_UNSUPPORTED = 16,  // well formed, but this build does not run it
  WICK_E_TRUNCATED = 17,    // the file ended early
  WICK_E_ABORTED = 18,      // stopped by the caller
  WICK_STATUS_COUNT = 19
} wick_status;

// The setting to change (a field of wick_config, wick_request or wick_sampling), if an error refers
// to one. The comments list the values of wick_error.numbers.
typedef enum wick_subject {
  // begin subjects: generated from include/options.mjs
  WICK_SUBJECT_NONE = 0,       // no setting: the file, the model, the host, ...
  WICK_SUBJECT_MEMORY = 1,     // memory_bytes_max: bytes needed, budget
  WICK_SUBJECT_PLAN = 2,       // memory_bytes_max, context_tokens: bytes planned, budget, tokens
  WICK_SUBJECT_CONTEXT = 3,    // context_tokens: tokens requested, limit
  WICK_SUBJECT_BATCH = 4,      // batch_tokens: requested, limit
  WICK_SUBJECT_THREADS = 5,    // requested, limit
  WICK_SUBJECT_KV_TYPE = 6,    // k_type, v_type: k_type, v_type
  WICK_SUBJECT_KV_TOKENS = 7,  // kv_tokens_max: pages needed, available
  WICK_SUBJECT_DIRECTORY_ONLY = 8,
  WICK_SUBJECT_REQUESTS = 9,       // requests_max: current, limit
  WICK_SUBJECT_QUEUE_TOKENS = 10,  // queue_tokens_max: current, limit
  WICK_SUBJECT_PROMPT = 11,        // text, tokens
  WICK_SUBJECT_PRIORITY = 12,
  WICK_SUBJECT_COMPLETIONS = 13,  // requested, limit
  WICK_SUBJECT_SESSION = 14,      // its number
  WICK_SUBJECT_STOPS = 15,        // count or index, limit
  WICK_SUBJECT_TEMPERATURE = 16,
  WICK_SUBJECT_TOP_P = 17,
  WICK_SUBJECT_MIN_P = 18,
  WICK_SUBJECT_REPEAT_PENALTY = 19,
  WICK_SUBJECT_FREQUENCY_PENALTY = 20,
  WICK_SUBJECT_PRESENCE_PENALTY = 21,
  WICK_SUBJECT_PENALTY_LAST = 22,  // requested, limit
  WICK_SUBJECT_LOGPROBS = 23,      // requested, limit
  WICK_SUBJECT_BIAS = 24,          // requested, limit; or the token and the vocabulary size
  WICK_SUBJECT_KERNELS = 25,
  WICK_SUBJECT_HOST = 26,  // context_tokens: bytes planned, the host's limit, tokens
  WICK_SUBJECT_PRE_TOKENIZER = 27,
  WICK_SUBJECT_GRAMMAR = 28,
  WICK_SUBJECT_TYPICAL_P = 29,
  WICK_SUBJECT_TOP_N_SIGMA = 30,
  WICK_SUBJECT_XTC_PROBABILITY = 31,
  WICK_SUBJECT_XTC_THRESHOLD = 32,
  WICK_SUBJECT_DYNATEMP_RANGE = 33,
  WICK_SUBJECT_DYNATEMP_EXPONENT = 34,
  WICK_SUBJECT_DRY_MULTIPLIER = 35,
  WICK_SUBJECT_DRY_BASE = 36,
  WICK_SUBJECT_DRY_PENALTY_LAST = 37,       // requested, limit
  WICK_SUBJECT_DRY_SEQUENCE_BREAKERS = 38,  // count or index, limit
  WICK_SUBJECT_MIROSTAT = 39,               // requested, limit
  WICK_SUBJECT_MIROSTAT_TAU = 40,
  WICK_SUBJECT_MIROSTAT_ETA = 41,
  WICK_SUBJECT_ADAPTIVE_TARGET = 42,
  WICK_SUBJECT_ADAPTIVE_DECAY = 43,
  WICK_SUBJECT_SAMPLERS = 44,  // index, limit
  WICK_SUBJECT_ADAPTERS = 45,  // index or count, limit
  WICK_SUBJECT_TABLES = 46,
  WICK_SUBJECT_DRY_ALLOWED_LENGTH = 47,  // requested, limit
  WICK_SUBJECT_TEMPLATE = 48,            // conversation.chat
  WICK_SUBJECT_TOOLS = 49,               // conversation.chat
  WICK_SUBJECT_TOOL_CHOICE = 50,         // conversation.tool_choice
  WICK_SUBJECT_COUNT = 51
  // end subjects
} wick_subject;

enum { WICK_ERROR_MESSAGE_BYTES = 256, WICK_ERROR_NUMBERS = 3 };

#define WICK_NO_OFFSET UINT64_MAX

// Filled by the function that fails; unchanged on success.
typedef struct wick_error {
  wick_status status;
  wick_subject subject;
  uint64_t offset_bytes;                   // position in the file, or WICK_NO_OFFSET
  uint64_t numbers[WICK_ERROR_NUMBERS];    // see wick_subject; unused ones are 0
  char message[WICK_ERROR_MESSAGE_BYTES];  // human-readable, always NUL-terminated
} wick_error;

// Returns the name of a status, for example "WICK_E_FORMAT"; "WICK_E_?" if it is out of range.
WICK_API const char *wick_status_name(wick_status status);
// Returns the name of a subject's field, for example "context_tokens"; "" for none.
WICK_API const char *wick_subject_name(wick_subject subject);

// ---- Text types ----

// Bytes that belong to the engine; not NUL-terminated.
typedef struct wick_text {
  const char *bytes;
  size_t size_bytes;
} wick_text;

// A part of a rendered conversation, from the end of the previous part to `end`.
typedef struct wick_span {
  uint32_t end;         // in bytes
  uint32_t is_content;  // 1: from the conversation, 0: written by the template
} wick_span;

// Called for each piece of an output, in order; `bytes` is valid during the call.
typedef void (*wick_text_sink)(void *context, const char *bytes, size_t size_bytes);

// ---- The engine ----

typedef struct wick_engine wick_engine;

// Types of keys and values: F32, F16, Q8 and Q4 take 4, 2, 1 and 1/2 bytes per value. Q8 and Q4
// values have one scale per 32 values; keys have an offset and a scale per channel of a page of 16
// tokens, and keys of a page that is not full are F16. 0 is the default.
typedef enum wick_kv_type {
  WICK_KV_F16 = 0,
  WICK_KV_F32 = 1,
  WICK_KV_Q8 = 2,
  WICK_KV_Q4 = 3,
  WICK_KV_TYPE_COUNT = 4
} wick_kv_type;

// Storage for pages of preempted requests, keyed by request id. Each function finishes its work
// before it returns. If one fails, the request recomputes its pages, so nothing is lost. The engine
// checks all data that the host returns.
typedef struct wick_swap_host {
  void *context;
  // Reserves space for a record of this many bytes. Each opened record is dropped exactly once.
  bool (*open)(void *context, uint32_t id, uint64_t size_bytes);
  // Pieces are written in order, from offset 0.
  bool (*write)(void *context, uint32_t id, uint64_t offset_bytes, const void *bytes,
                size_t size_bytes);
  bool (*read)(void *context, uint32_t id, uint64_t offset_bytes, void *bytes, size_t size_bytes);
  void (*drop)(void *context, uint32_t id);
  bool always;  // swap even if recomputing is cheaper (tests, measurements)
} wick_swap_host;

// Reads a model's bytes, for wick_load_from and wick_config.tables_reader. `read` reads up to
// `size_bytes` of file `file` (0 unless the model is split) starting at `offset_bytes`. It returns
// the number of bytes read, 0 at the end of the file, SIZE_MAX on failure.
typedef struct wick_reader {
  void *context;
  size_t (*read)(void *context, uint32_t file, uint64_t offset_bytes, void *bytes,
                 size_t size_bytes);
  // The caller's buffer for wick_load_from; must stay valid during the call; 1 MiB is a good size.
  void *piece;
  size_t piece_bytes;
} wick_reader;

// Storage for tables whose rows are only looked up: per-layer embeddings, and token embeddings if
// the output has a separate matrix.
typedef enum wick_tables {
  WICK_TABLES_AUTO = 0,    // inside if the plan fits the memory limit, else outside
  WICK_TABLES_INSIDE = 1,  // in memory
  WICK_TABLES_OUTSIDE = 2  // in the model's files: each pass reads the rows of its tokens
} wick_tables;

// The functions that an engine needs from its host. If a pointer is NULL, the library uses the C
// library's memory, clock and threads (WASI has no threads). An engine draws no random numbers:
// seeds come from the caller (wick_sampling.seed).
typedef struct wick_host {
  void *context;
  // Returns a block aligned to 64 bytes, not zeroed, or NULL. free receives the same size. Set both
  // or neither. A misaligned block is freed and counts as NULL.
  void *(*alloc)(void *context, size_t size_bytes);
  void (*free)(void *context, void *block, size_t size_bytes);
  // A monotonic clock in microseconds, used for step budgets and for request and op timings. It is
  // shared by the whole program, so it has no context.
  uint64_t (*now_us)(void);
  // Logs one line for developers, without a newline.
  void (*log)(void *context, const char *line);
  // Runs entry(argument) once, in parallel with the caller; false: it could not be started. join
  // is called once for each started thread, from the thread that destroys the engine, and returns
  // when entry has returned. Set both or neither.
  bool (*thread_start)(void *context, void (*entry)(void *argument), void *argument,
                       uintptr_t *thread);
  void (*thread_join)(void *context, uintptr_t thread);
  uint64_t reserved[8];
} wick_host;

enum { WICK_THREADS_MAX = 64, WICK_BATCH_TOKENS_MAX = 512 };

typedef struct wick_config {
  uint64_t memory_bytes_max;  // limit for all memory; 0: the limit of the host
  uint32_t threads;           // including the caller's, 1..WICK_THREADS_MAX; 0: 1, no helpers
  bool choose_threads;        // measure which number of threads is fastest, and use it
  uint32_t context_tokens;    // per request, at most the trained length; 0: min(trained, 4096)
  uint32_t batch_tokens;      // micro-batch of prefill, 1..WICK_BATCH_TOKENS_MAX; 0: 128
  uint32_t requests_max;      // queued and running together; 0: 64
  uint32_t running_max;       // running at once, at most batch_tokens; 0: batch_tokens
  uint64_t queue_tokens_max;  // sum of the waiting prompts; 0: no limit
  // Limits on memory and steps for compiling a grammar; beyond them it is rejected with
  // WICK_E_FULL. A step takes about 0.05 us. 0: 192 MiB, 60 million.
  uint64_t grammar_bytes_max, grammar_steps_max;
  uint64_t media_bytes_max;  // cache for the rows of removed images and recordings; 0: 64 MiB
  // Limits per image: tiles and rows. A larger image is split into fewer tiles, then scaled down.
  // 0: no limit.
  uint32_t media_tiles_max, media_rows_max;
  bool media_like_llama_cpp;  // follow llama.cpp where it differs from the published model
  wick_kv_type k_type, v_type;
  uint32_t kv_tokens_max;  // shared by all requests, sessions and the prefix cache; 0: 4 contexts
  bool no_prefix_cache;    // compute every prompt completely
  bool no_predictor;       // do not load the layer for multi-token prediction
  bool beyond_trained;     // context_tokens may exceed the trained length, unless the model
                           // has a table of positions
  const wick_swap_host *swap;  // stores pages of preempted requests; must outlive the engine; NULL:
                               // their pages are always recomputed
  wick_tables tables;          // results are bit-identical for all values
  // Reads tables that are kept outside, on the stepping thread; `piece` is not used; must outlive
  // the engine; NULL: all tables are inside.
  const wick_reader *tables_reader;
  const wick_host *host;      // must outlive the engine; NULL: the library's own functions
  const char *kernels;        // by name (wick_kernels_name); NULL: the best for this processor
  const char *pre_tokenizer;  // replaces the file's tokenizer.ggml.pre if that is missing, wrong or
                              // unknown; copied; NULL: the file's
  bool directory_only;        // load only metadata, tensor list and tokenizer, no weights
  bool metrics;               // time the ops, for wick_metrics_json
  uint32_t timer_grain_us;    // resolution of the host's clock, reported with the metrics; 0: 1
  uint64_t reserved[16];
} wick_config;

// Returns the name of the kernels `wanted` ("scalar", "simd128", "avx2", ...), or of the best ones
// for NULL, as a static string; NULL if this processor or build does not support them.
WICK_API const char *wick_kernels_name(const char *wanted);

// Sets all members to 0.
WICK_API void wick_config_default(wick_config *config);

// Creates an engine without a model, which allocates little: the large segments are allocated when
// the model's directory is known. WICK_E_ARG for settings out of range or if only one function of a
// pair in wick_host is set, WICK_E_UNSUPPORTED for a KV type or kernels that this build does not
// have and for more threads than can be started, WICK_E_NOMEM.
WICK_API wick_status wick_engine_create(const wick_config *config, wick_engine **out,
                                        wick_error *error);
// Ends all requests without events and frees all memory. NULL does nothing.
WICK_API void wick_engine_destroy(wick_engine *engine);

// Returns the configuration in effect, with zeros replaced by the chosen values. Valid for the
// lifetime of the engine.
WICK_API const wick_config *wick_engine_config(const wick_engine *engine);
// Return the number of running threads (helpers start asynchronously), and the number that a pass
// of `tokens` tokens uses.
WICK_API uint32_t wick_engine_threads(const wick_engine *engine);
WICK_API uint32_t wick_engine_threads_used(const wick_engine *engine, uint32_t tokens);

typedef struct wick_memory_state {
  uint64_t budget_bytes;  // 0: no limit
  uint64_t bytes_now;     // currently allocated by the engine
  uint64_t bytes_peak;
  uint64_t calls;       // allocations since creation; decoding adds none
  uint64_t blocks_now;  // allocations not yet freed
  uint64_t reserved[4];
} wick_memory_state;
WICK_API void wick_memory_get_state(const wick_engine *engine, wick_memory_state *state);
// Returns the smaller of the budget and the host's memory when the engine was created; 0: no limit.
// A model whose plan needs more is rejected before its weights are fetched. The limit of a
// wick_host is unknown.
WICK_API uint64_t wick_engine_memory_limit(const wick_engine *engine);

// Returns "f32", "f16", "q8" or "q4"; "?" if the type is out of range.
WICK_API const char *wick_kv_type_name(wick_kv_type type);

// ---- Loading: the engine requests ranges, the caller feeds them ----

// Returns the next range to feed: file (0 unless the model is split), offset, length (0: nothing
// more is needed). Ranges are up to 1 MiB, in file order, until the directory is known, then up to
// 8 MiB. Calling it again without feeding returns the same range.
WICK_API void wick_load_next_range(const wick_engine *engine, uint32_t *file,
                                   uint64_t *offset_bytes, uint64_t *length_bytes);
// Accepts bytes of a file: any number, in any order once the directory is complete (before that,
// sequentially from the next requested byte). Unneeded bytes are skipped. The bytes are placed
// before the call returns. A failure is final for this engine: every later call returns the same
// error. WICK_E_FORMAT, WICK_E_SHAPE, WICK_E_UNSUPPORTED, WICK_E_TRUNCATED, WICK_E_NOMEM (also if
// the plan exceeds the budget, before any weights are requested), WICK_E_ARG.
WICK_API wick_status wick_load_feed(wick_engine *engine, uint32_t file, uint64_t offset_bytes,
                                    const void *bytes, size_t size_bytes, wick_error *error);
// Tells the engine the size of a file, before or after its bytes, so that a truncated file is
// rejected as early as possible (WICK_E_TRUNCATED, with the tensor's name).
WICK_API wick_status wick_load_end(wick_engine *engine, uint32_t file, uint64_t size_bytes,
                                   wick_error *error);

// Loads a model from one file in memory; the bytes may be freed afterwards. Returns the same errors
// as wick_load_feed, WICK_E_UNSUPPORTED for a split model, WICK_E_BUSY if the engine already has a
// model.
WICK_API wick_status wick_load_bytes(wick_engine *engine, const void *bytes, size_t size_bytes,
                                     wick_error *error);

// Loads a model through a reader. Returns the same errors as wick_load_feed, and WICK_E_IO if the
// reader failed or WICK_E_ARG if its buffer is empty; after these two, the call may be repeated.
// WICK_E_BUSY if the engine already has a model.
WICK_API wick_status wick_load_from(wick_engine *engine, const wick_reader *reader,
                                    wick_error *error);

// Loads a model from a file, or a split model by the name of its first file
// (NAME-00001-of-00003.gguf). Only the C library has this function: it uses <stdio.h>. Returns the
// same errors as wick_load_from; WICK_E_IO names a file that cannot be opened, and the call may be
// repeated.
WICK_API wick_status wick_load_file(wick_engine *engine, const char *path, wick_error *error);

typedef struct wick_load_state {
  uint64_t bytes_wanted, bytes_placed;  // known so far; equal when complete
  uint64_t fingerprint;                 // of the model, when complete
  uint32_t files;                       // of a split model, 1 otherwise
  uint32_t layers_ready;                // number of complete layers, from the first one
  bool is_directory_ready;              // metadata, tokenizer and plan are available
  bool is_complete;
  uint64_t reserved[4];
} wick_load_state;
WICK_API void wick_load_get_state(const wick_engine *engine, wick_load_state *state);

// ---- Adapters (LoRA): low-rank changes to a model's weights, chosen per request ----

// An adapter is a GGUF file (general.type "adapter", adapter.type "lora") with two tensors, lora_a
// and lora_b, for each weight that it changes. The product W x of a changed weight becomes W x +
// scale * alpha / rank * B (A x) or, without alpha, W x + scale * B (A x), for the rows of requests
// that selected it; results of other requests are bit-identical. A and B keep their type if it is
// F32, F16 or BF16; other types become F32. Unsupported changes are rejected with an error that
// names them: norms, biases, stacked experts, an embedding that is also the output.

enum { WICK_ADAPTERS_MAX = 8 };  // per request

// Creates an adapter; its file is fed next. WICK_E_NODATA before the model's directory is ready,
// WICK_E_NOMEM.
WICK_API wick_status wick_adapter_create(wick_engine *engine, uint32_t *adapter, wick_error *error);
// Like wick_load_next_range, for the adapter's file. Unknown id: length 0.
WICK_API void wick_adapter_next_range(const wick_engine *engine, uint32_t adapter,
                                      uint64_t *offset_bytes, uint64_t *length_bytes);
// Like wick_load_feed and wick_load_end, with their errors; WICK_E_NOMEM also if model and adapters
// together exceed the budget; WICK_E_MISMATCH if the adapter is for a different architecture,
// WICK_E_ARG for an unknown id. A failure removes the adapter and frees its memory.
WICK_API wick_status wick_adapter_feed(wick_engine *engine, uint32_t adapter, uint64_t offset_bytes,
                                       const void *bytes, size_t size_bytes, wick_error *error);
WICK_API wick_status wick_adapter_end(wick_engine *engine, uint32_t adapter, uint64_t size_bytes,
                                      wick_error *error);
// Loads an adapter from memory. Returns the same errors as wick_adapter_feed.
WICK_API wick_status wick_adapter_load_bytes(wick_engine *engine, const void *bytes,
                                             size_t size_bytes, uint32_t *adapter,
                                             wick_error *error);
// Loads an adapter through a reader, as file 0. Also returns WICK_E_IO and WICK_E_ARG like
// wick_load_from.
WICK_API wick_status wick_adapter_load_from(wick_engine *engine, const wick_reader *reader,
                                            uint32_t *adapter, wick_error *error);
// Frees all memory of the adapter. WICK_E_BUSY while a running or waiting request or an embedding
// uses it: end those first. Sessions and the prefix cache keep pages that were computed with it,
// and reuse them if the same file is loaded again. WICK_E_ARG: unknown id.
WICK_API wick_status wick_adapter_remove(wick_engine *engine, uint32_t adapter, wick_error *error);

typedef struct wick_adapter_info {
  uint32_t id;
  uint32_t tensors;      // number of model tensors that it changes
  uint32_t rank;         // the largest
  float alpha;           // 0: none
  uint32_t users;        // requests and embeddings that use it now
  uint64_t bytes;        // memory it occupies
  uint64_t fingerprint;  // of the file, when complete
  bool is_complete;      // requests may choose it
  uint64_t reserved[4];
} wick_adapter_info;
// Gets adapter `index`, from 0, in load order; false after the last one.
WICK_API bool wick_adapter_get(const wick_engine *engine, uint32_t index, wick_adapter_info *info);

// An adapter that a request selects: scale 1 applies it as trained, 0 disables it.
typedef struct wick_adapter_use {
  uint32_t adapter;
  float scale;
} wick_adapter_use;

// ---- The model: its dimensions and memory plan, before any weights are fetched ----

typedef struct wick_plan {
  uint64_t directory_bytes;  // metadata and tensor list
  uint64_t tokenizer_bytes;
  uint64_t weights_bytes;  // in kernel layout
  uint64_t scratch_bytes;  // activations of a micro-batch, logits, sampling buffers
  uint64_t kv_bytes;       // one full context
  uint64_t adapter_bytes;  // of the loaded and loading adapters
  uint64_t total_bytes;
  uint64_t outside_bytes;  // of tables that stay in the file (wick_config.tables); not in total
  uint32_t context_tokens;
  uint32_t kv_page_bytes;  // 16 tokens, all layers
  uint64_t reserved[4];
} wick_plan;
// Gets the plan for the engine's configuration. WICK_E_NODATA before the directory is ready. With
// directory_only, returns the error that keeps the model from running.
WICK_API wick_status wick_memory_plan(const wick_engine *engine, wick_plan *plan,
                                      wick_error *error);

// How the vectors of an input's tokens are combined into one. The values in GGUF files are one
// lower.
typedef enum wick_pooling {
  WICK_POOLING_MODEL = 0,  // as in the file; else the mean, or for causal models the last token
  WICK_POOLING_NONE = 1,   // one vector for each token
  WICK_POOLING_MEAN = 2,
  WICK_POOLING_CLS = 3,   // the first token
  WICK_POOLING_LAST = 4,  // the last token
  WICK_POOLING_RANK = 5   // scores from the head of a reranker or classifier
} wick_pooling;

typedef struct wick_model_info {
  wick_text architecture, name;  // valid for the lifetime of the engine
  uint32_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab, context_trained;
  uint64_t parameters;         // number of values in all tensors
  bool is_encoder;             // computes embeddings and cannot generate text
  wick_pooling pooling;        // default of wick_embed
  uint32_t embedding, scores;  // length of a vector, and number of scores (0: none)
  uint64_t reserved[8];
} wick_model_info;
// Returns the same errors as wick_memory_plan.
WICK_API wick_status wick_model_get_info(const wick_engine *engine, wick_model_info *info,
                                         wick_error *error);

// Writes {architecture, name, shape: {layers, hidden, ...} | null, context_tokens, threads,
// kernels, k_type, v_type, tokenizer: {model, vocab, bos, eos, ...} | null, chat_template (in use)
// | null, types: {Q8_0: {tensors, bytes}, ...}, plan: {total_bytes, ...} | null, error: {status,
// message, offset_bytes} | null (why the model does not run), memory: {bytes_now, bytes_peak, ...},
// load: {files, bytes_wanted, ...}}. Before the directory is ready, only the known members.
WICK_API void wick_info_json(wick_engine *engine, wick_text_sink sink, void *context);

// ---- The file: metadata and tensors, even of models that do not run (directory_only) ----

typedef struct wick_file_info {
  uint32_t version, alignment;  // of the GGUF file; for a split model, of its first file
  uint64_t directory_bytes;
  uint64_t data_offset_bytes;  // of the tensors' data
  uint32_t metadata_count, tensor_count;
  uint64_t reserved[4];
} wick_file_info;
// WICK_E_NODATA before the directory is ready.
WICK_API wick_status wick_file_get_info(const wick_engine *engine, wick_file_info *info,
                                        wick_error *error);

typedef struct wick_metadata {
  wick_text key;          // valid for the lifetime of the engine
  const char *type;       // "u32", "string", "array", ...; a static string
  const char *item_type;  // of an array; otherwise NULL
  uint64_t count;         // of an array: its number of items; otherwise 1
  uint64_t reserved[2];
} wick_metadata;
// Gets entry `index` < metadata_count, in file order; false if there is none.
WICK_API bool wick_metadata_get(const wick_engine *engine, uint32_t index, wick_metadata *metadata);
// Writes its value as JSON; for an array, only the first `items_max` items (arrays of arrays are
// empty).
WICK_API void wick_metadata_json(const wick_engine *engine, uint32_t index, uint64_t items_max,
                                 wick_text_sink sink, void *context);

typedef struct wick_tensor_info {
  wick_text name;        // valid for the lifetime of the engine
  const char *type;      // "Q8_0", ...; a static string
  uint32_t type_number;  // GGML's number of the type
  uint32_t dim_count;
  uint64_t dims[4];       // dims[0]: columns; entries beyond dim_count are 1
  uint32_t file;          // of a split model
  uint64_t offset_bytes;  // in its file's data
  uint64_t size_bytes;
  bool is_unread;  // the model runs without it
  uint64_t reserved[4];
} wick_tensor_info;
// Gets tensor `index` < tensor_count; false if there is none.
WICK_API bool wick_tensor_get(const wick_engine *engine, uint32_t index, wick_tensor_info *tensor);

// Writes {gguf: {version, alignment, directory_bytes, data_offset}, metadata: [{key, type, value}]
// (arrays: {key, type: "array", item_type, count, first}), tensors: [{name, type, shape, file,
// offset_bytes, size_bytes}] (with unread: true if the model runs without it), info: see
// wick_info_json}.
WICK_API void wick_inspect_json(wick_engine *engine, wick_text_sink sink, void *context);

// The number of items of a metadata array that wick_inspect_json writes.
enum { WICK_INSPECT_ITEMS = 8 };

// ---- Tokens ----

enum { WICK_TOKEN_NONE = -1 };

enum {
  WICK_TOKENIZE_ADD_SPECIAL = 1,   // bos/eos as the model requires
  WICK_TOKENIZE_PARSE_SPECIAL = 2  // parse control tokens in the text, not as plain text
};

// Returns WICK_OK if the tokenizer is available. WICK_E_NODATA if it has not arrived yet; with
// directory_only also the error of the file's tokenizer (WICK_E_UNSUPPORTED, ...). The functions
// below return the same errors.
WICK_API wick_status wick_tokenizer_status(const wick_engine *engine, wick_error *error);
// Returns the number of token ids; 0 without a tokenizer.
WICK_API uint32_t wick_tokenizer_vocab(const wick_engine *engine);

// Writes at most `capacity` ids and sets *count to the number of tokens; if that is larger, the
// status is WICK_E_FULL. `flags`: WICK_TOKENIZE_*. The text need not be valid UTF-8. Takes O(n log
// n) time in its length. Also WICK_E_NOMEM.
WICK_API wick_status wick_tokenize(wick_engine *engine, const char *text, size_t text_bytes,
                                   uint32_t flags, int32_t *tokens, size_t capacity, size_t *count,
                                   wick_error *error);

// Returns the maximum size in bytes of the text of `count` tokens; 0 without a tokenizer, SIZE_MAX
// if the number overflows.
WICK_API size_t wick_detokenize_bytes_max(const wick_engine *engine, size_t count);
// Writes the text of tokens [count] to `out` [wick_detokenize_bytes_max]; *size_bytes is its
// length. is_whole: the tokens start at the beginning of the text (SPM drops the added space);
// has_special: control tokens are also written. Invalid UTF-8 becomes U+FFFD. WICK_E_ARG for an id
// outside the vocabulary.
WICK_API wick_status wick_detokenize(wick_engine *engine, const int32_t *tokens, size_t count,
                                     bool is_whole, bool has_special, char *out, size_t *size_bytes,
                                     wick_error *error);
// Gets the bytes of one token as they are in the middle of text, including control tokens; none for
// an unknown id. They are stored in the engine or in `scratch` [wick_detokenize_bytes_max of 0
// tokens], and are valid while both exist.
WICK_API wick_status wick_token_bytes(wick_engine *engine, int32_t token, char *scratch,
                                      wick_text *bytes, wick_error *error);

// ---- Conversations: a chat template renders messages as a prompt ----

// The template is untrusted code (Jinja, with the settings of transformers). Limits on steps and
// memory end a rendering within a fraction of a second.
typedef struct wick_chat {
  // A JSON object with the template's variables: {"messages": [{"role", "content", ...}], "tools",
  // "enable_thinking", ...}. "add_generation_prompt" is true unless the object sets it. A
  // "reasoning_effort" of none, minimal, low, medium, high, xhigh or max is replaced by the nearest
  // word that the template supports, and also sets the variables enable_thinking and thinking.
  const char *json;
  size_t json_bytes;
  int64_t now_s;       // local time in seconds since 1970, for templates that write a date
  bool has_now;        // now_s is given
  bool parse_special;  // control tokens in message content are parsed, not escaped
  // Passes messages and the arguments of their tool calls to the template unchanged. Otherwise
  // members without a value are removed, and forms that the template rejects are changed: multiple
  // or later system messages, call ids. Arguments become objects, or JSON text if the template
  // accepts only that.
  bool keeps_arguments;
  // The beginning of the reply: its tokens follow those of the conversation. NULL: no prefix.
  const char *prefix;
  size_t prefix_bytes;
  uint64_t reserved[2];
} wick_chat;

// Sets all members to 0.
WICK_API void wick_chat_default(wick_chat *chat);

// Replaces the model's template. `source` is Jinja text or a name (letters, digits, _ and - only):
// "chatml", which many models share, NAME of the loaded model's `tokenizer.chat_template.NAME`, or
// "default" for `tokenizer.chat_template`. NULL restores the model's template, which for
// conversations with tools is the one named "tool_use". WICK_E_ARG: the model has no template of
// this name. WICK_E_FORMAT with the line, WICK_E_FULL (too long, nested too deep), WICK_E_NOMEM.
WICK_API wick_status wick_chat_set_template(wick_engine *engine, const char *source,
                                            size_t source_bytes, wick_error *error);

typedef struct wick_chat_text {
  wick_text text;
  const wick_span *spans;  // [span_count]: which parts come from the messages
  size_t span_count;
  uint64_t reserved[4];
} wick_chat_text;
// *out is valid until the next wick_chat_* call. WICK_E_NODATA: no template exists. WICK_E_ARG:
// the template rejects these messages; the error contains the template's message. WICK_E_FORMAT: an
// error in the template or in the JSON. WICK_E_UNSUPPORTED: an unknown filter or test. WICK_E_FULL:
// over a limit. Also WICK_E_OVERFLOW, WICK_E_NOMEM.
WICK_API wick_status wick_chat_render(wick_engine *engine, const wick_chat *chat,
                                      wick_chat_text *out, wick_error *error);
// Tokenizes the rendered conversation: control tokens written by the template are control tokens;
// message content is always text, even if it looks like a control token. *tokens [*count] is valid
// until the next wick_chat_* call; it can be passed as wick_request.tokens. Returns the same errors
// as wick_chat_render and wick_tokenize.
WICK_API wick_status wick_chat_tokenize(wick_engine *engine, const wick_chat *chat,
                                        const int32_t **tokens, size_t *count, wick_error *error);

// ---- Images and audio: an mmproj file next to the model encodes them ----

// An image or a recording becomes rows that are used in place of token embeddings. Rows also have
// token ids: ids below WICK_TOKEN_NONE that are hashes of the content and the encoder. Sessions
// store them, and later prompts repeat them. A build may lack encoders.
//
//   wick_media_load_bytes(engine, mmproj, mmproj_bytes, &error);
//   wick_media_add_image(engine, rgb, width, height, &image, &error);
//   do status = wick_media_step(engine, image, 10000, &is_ready, &error);
//   while (status == WICK_OK && !is_ready);
//   const wick_media_prompt prompt = {.text = "<image>What is this?", .text_bytes = 20,
//                                     .marker = "<image>", .marker_bytes = 7,
//                                     .media = &image, .media_count = 1};
//   wick_media_tokenize(engine, &prompt, &request.tokens, &request.token_count, &error);

typedef enum wick_media_kind { WICK_MEDIA_IMAGE = 0, WICK_MEDIA_AUDIO = 1 } wick_media_kind;

enum { WICK_MEDIA_RATE = 16000 };  // samples per second

// Loads the encoders of an mmproj file, once per engine, after the model's directory is ready. File
// 0 of the reader is that file. A file whose weights exceed the budget is rejected before they are
// read. WICK_E_FORMAT, WICK_E_SHAPE, WICK_E_UNSUPPORTED, WICK_E_TRUNCATED, WICK_E_NODATA (missing
// tensors, or no model yet), WICK_E_NOMEM, WICK_E_IO, WICK_E_BUSY (encoders are already loaded),
// WICK_E_ARG (an empty buffer).
WICK_API wick_status wick_media_load_from(wick_engine *engine, const wick_reader *reader,
                                          wick_error *error);
// The same for a file in memory; the bytes may be freed afterwards.
WICK_API wick_status wick_media_load_bytes(wick_engine *engine, const void *bytes,
                                           size_t size_bytes, wick_error *error);
// The same for a path; only the C library has this function. WICK_E_IO names a file that cannot be
// opened.
WICK_API wick_status wick_media_load_file(wick_engine *engine, const char *path, wick_error *error);
// Memory used by the encoders, in addition to wick_plan.
typedef struct wick_media_memory {
  uint64_t weights_bytes;
  uint64_t prepare_bytes;  // while the largest image (2^28 pixels) is resized
  uint64_t encode_bytes;   // while the largest input is encoded, including its rows
  uint64_t cache_bytes;    // rows that are kept (wick_config.media_bytes_max)
  uint64_t total_bytes;
  uint64_t reserved[4];
} wick_media_memory;
// Available once the directory of the mmproj file is read, before its weights. With directory_only
// nothing else is loaded, and the model may be the mmproj file itself. WICK_E_NODATA without an
// mmproj file.
WICK_API wick_status wick_media_get_memory(const wick_engine *engine, wick_media_memory *memory,
                                           wick_error *error);
// Returns whether the loaded encoders can encode this kind of input.
WICK_API bool wick_media_has(const wick_engine *engine, wick_media_kind kind);

// The cost of an image or a recording.
typedef struct wick_media_info {
  wick_media_kind kind;
  uint32_t tokens;  // in the prompt: rows, and the delimiters around them
  uint32_t rows;
  uint32_t tiles;         // images that are encoded one after another, or chunks of a recording
  uint64_t macs;          // multiply-adds of encoding
  uint64_t rows_bytes;    // memory of the rows
  uint64_t encode_bytes;  // maximum memory while it is encoded
  bool is_ready;          // whether it is encoded
  uint64_t reserved[4];
} wick_media_info;

// Calculate the cost from the size only. WICK_E_ARG (a size out of range), WICK_E_NODATA (no
// encoder for this kind of input), WICK_E_FULL (the model must process the image in one batch, and
// the image is longer than a batch), WICK_E_NOMEM.
WICK_API wick_status wick_media_plan_image(wick_engine *engine, uint32_t width, uint32_t height,
                                           wick_media_info *info, wick_error *error);
WICK_API wick_status wick_media_plan_audio(wick_engine *engine, uint64_t samples,
                                           wick_media_info *info, wick_error *error);
// Add an image, rgb[height][width][3], or a mono recording with WICK_MEDIA_RATE samples per second
// from -1 to 1. The image is resized, or the recording's spectra are computed; wick_media_step then
// encodes the item. Content that is already stored, or was removed but is still cached, keeps its
// number. Return the same errors as above, and WICK_E_NONFINITE (samples).
WICK_API wick_status wick_media_add_image(wick_engine *engine, const uint8_t *rgb, uint32_t width,
                                          uint32_t height, uint32_t *media, wick_error *error);
WICK_API wick_status wick_media_add_audio(wick_engine *engine, const float *samples, uint64_t count,
                                          uint32_t *media, wick_error *error);
// WICK_E_ARG: unknown number.
WICK_API wick_status wick_media_get_info(const wick_engine *engine, uint32_t media,
                                         wick_media_info *info, wick_error *error);
// Encodes for about budget_us (0: one slice of a few milliseconds), between steps of requests.
// WICK_E_FULL (the input exceeds the context, and nothing is encoded), WICK_E_ARG, WICK_E_NONFINITE
// (the weights produce NaN), WICK_E_NOMEM, after which the call may be repeated.
WICK_API wick_status wick_media_step(wick_engine *engine, uint32_t media, uint64_t budget_us,
                                     bool *is_ready, wick_error *error);
// Releases an item that wick_media_add_* added. Requests and sessions keep its rows; the engine
// caches the most recently used ones, up to wick_config.media_bytes_max. Unknown number:
// WICK_E_ARG.
WICK_API wick_status wick_media_remove(wick_engine *engine, uint32_t media);

// A prompt with images and recordings in place of the markers in its text.
typedef struct wick_media_prompt {
  const wick_chat *chat;  // a conversation with the marker in message contents; NULL: `text`
  const char *text;       // control tokens in it are parsed
  size_t text_bytes;
  const char *marker;  // a string that occurs nowhere else, such as a random number
  size_t marker_bytes;
  const uint32_t *media;  // [media_count] in the order of the markers
  uint32_t media_count;
  uint64_t reserved[4];
} wick_media_prompt;
// *tokens [*count] is valid until the next call; it can be passed as wick_request.tokens once
// everything is encoded. The text between two images is tokenised separately. WICK_E_ARG also if
// the rendered text has a different number of markers; otherwise the same errors as
// wick_chat_tokenize.
WICK_API wick_status wick_media_tokenize(wick_engine *engine, const wick_media_prompt *prompt,
                                         const int32_t **tokens, size_t *count, wick_error *error);

// ---- Requests ----

enum {
  // begin limits: generated from include/options.mjs
  WICK_BIAS_MAX = 1024,
  WICK_LOGPROBS_MAX = 20,
  WICK_PENALTY_LAST_MAX = 1048576,
  WICK_SAMPLERS_MAX = 16,
  WICK_DRY_BREAKERS_MAX = 16,
  WICK_DRY_BREAKER_BYTES_MAX = 40,
  WICK_STOPS_MAX = 64,
  WICK_STOP_BYTES_MAX = 256,  // per stop string
  WICK_PRIORITY_MIN = -100,
  WICK_PRIORITY_MAX = 100,
  WICK_COMPLETIONS_MAX = 16,    // per prompt
  WICK_PASSES_WAITED_MAX = 512  // a request that has waited for this many passes runs before all
                                // later requests, regardless of priority
  // end limits
};

typedef struct wick_bias {
  int32_t token;
  float bias;  // added to the logit; -100 or less, including -inf, forbids the token
} wick_bias;

// Selects a window of the whole context, but at most WICK_PENALTY_LAST_MAX tokens.
#define WICK_LAST_CONTEXT UINT32_MAX

// How a token is chosen from logits: bias, grammar, the samplers in the given order, softmax,
// seeded choice. The result is the same on every host. The samplers are llama.cpp's; tokens that
// bias or grammar forbid are not candidates for them.
typedef struct wick_sampling {
  uint64_t seed;
  // begin sampling: generated from include/options.mjs
  float temperature;            // set the temperature; default 0: greedy. Of equally likely tokens,
                                // greedy takes the one with the lowest id
  uint32_t top_k;               // sample from the top_k most likely tokens; default 0: all
  float top_p;                  // sample from the most likely tokens whose probabilities add up to
                                // top_p; default 1: all, 0: the most likely
  float min_p;                  // keep tokens that are at least min_p times as likely as the most
                                // likely one; default 0: all
  float repeat_penalty;         // penalize repeated tokens (Keskar et al. 2019, as llama.cpp
                                // applies it); default 1: off
  float frequency_penalty;      // penalize tokens by how often they occurred (OpenAI); default 0:
                                // off
  float presence_penalty;       // penalize tokens that have occurred (OpenAI); default 0: off
  uint32_t penalty_last;        // apply penalties to the last penalty_last tokens; default 64, 0:
                                // none, WICK_LAST_CONTEXT
  float typical_p;              // keep tokens of typical surprise whose probabilities add up to
                                // typical_p (Meister et al. 2022); default 1: off
  float top_n_sigma;            // keep logits at most top_n_sigma standard deviations below the
                                // maximum (Tang et al. 2024); default -1: off
  float xtc_probability;        // set the probability of removing all top choices except the least
                                // likely one; default 0: off
  float xtc_threshold;          // set the minimum probability of a top choice; default 0.1, over
                                // 0.5: off
  float dynatemp_range;         // vary the temperature by up to dynatemp_range with the entropy;
                                // default 0: off
  float dynatemp_exponent;      // set the exponent of the entropy; default 1. The entropy is
                                // relative to its maximum
  float dry_multiplier;         // set DRY's penalty for repetitions; default 0: off. A token that
                                // would continue a repetition of n tokens loses dry_multiplier *
                                // dry_base ** (n - dry_allowed_length)
  float dry_base;               // set the growth of DRY's penalty with each token; default 1.75
  uint32_t dry_allowed_length;  // allow repetitions of dry_allowed_length tokens; default 2
  uint32_t dry_penalty_last;    // apply DRY to the last dry_penalty_last tokens; default
                                // WICK_LAST_CONTEXT, 0: off
  uint32_t mirostat;            // use Mirostat 1 or 2 (Basu et al. 2021); default 0: off. It
                                // replaces the other samplers except the temperature
  float mirostat_tau;           // set Mirostat's surprise in bits; default 5
  float mirostat_eta;           // set Mirostat's learning rate; default 0.1
  float adaptive_target;        // prefer tokens with probabilities near adaptive_target
                                // (adaptive-p); default -1, below 0: off
  float adaptive_decay;         // set the decay of adaptive-p's memory; default 0.9
  const char *samplers;         // the samplers in order, one letter each, up to WICK_SAMPLERS_MAX:
                                // 'e' penalties, 'd' dry, 's' top_n_sigma, 'k' top_k, 'y' typ_p,
                                // 'p' top_p, 'm' min_p, 'x' xtc, 't' temperature, 'a' adaptive_p.
                                // Samplers that are not listed are off; 'a' chooses at the end,
                                // regardless of its position. NULL: "edskypmxta"
  // end sampling
  const wick_bias *bias;  // [bias_count]
  uint32_t bias_count;
  uint32_t logprobs;  // alternatives to report; 0: none
  bool logprob;       // report the chosen token's logprob, even without alternatives
  // Strings of 1 to WICK_DRY_BREAKER_BYTES_MAX bytes that end a repetition for DRY; NULL: "\n",
  // ":", "\"" and "*".
  const char *const *dry_sequence_breakers;
  const size_t *dry_breaker_bytes;
  uint32_t dry_breaker_count;
  // Report logprobs of the distribution after the samplers, from which the token is drawn.
  // Otherwise report logprobs of the model's distribution, before bias, grammar and samplers.
  bool logprobs_after;
} wick_sampling;

// ---- Grammars: constraints on the output ----

typedef enum wick_grammar_kind {
  WICK_GRAMMAR_NONE = 0,
  WICK_GRAMMAR_GBNF = 1,         // as in llama.cpp, starting at the rule "root"
  WICK_GRAMMAR_JSON_SCHEMA = 2,  // drafts 4, 6, 7, 2019-09, 2020-12
  WICK_GRAMMAR_REGEX = 3,        // ECMA-262 with the u flag; must match the whole output
  WICK_GRAMMAR_CHOICE = 4        // a JSON array of strings
} wick_grammar_kind;

typedef struct wick_grammar {
  wick_grammar_kind kind;
  const char *text;
  size_t text_bytes;
  // Accept any JSON formatting (white space, escapes, number formats) and members that a schema
  // neither declares nor forbids; a regular expression may match any part of the text. Otherwise
  // only the format that takes the fewest tokens is accepted. Set this to check text, not to
  // generate it.
  bool any_spelling;
  // The constraint applies after each occurrence of this string; the text before it is free. Empty:
  // it applies from the beginning.
  const char *trigger;
  size_t trigger_bytes;
  // This string follows the constrained text, and free text may follow the string. Empty: nothing
  // follows the constrained text.
  const char *marker;
  size_t marker_bytes;
  // The beginning of the output, given at the end of the prompt: it and the generated text together
  // match the grammar. If a JSON schema's default format does not match it, the request accepts any
  // JSON formatting. Copied. WICK_E_ARG, with the position of the byte, if it cannot begin a match
  // of the grammar.
  const char *begun;
  size_t begun_bytes;
  uint64_t reserved[4];
} wick_grammar;

// A limit on reasoning. When a reply has spent this many tokens on it, the end-of-reasoning tag is
// inserted as if it had been sampled, and then the answer follows. The tags are those of the
// engine's chat template; output without them is not limited.
typedef struct wick_reasoning {
  uint32_t tokens_max;
  // The prefix of the reply, or the whole prompt, which may have opened the reasoning. For a
  // conversation, the engine sets it.
  const char *ending;
  size_t ending_bytes;
  uint64_t reserved[4];
} wick_reasoning;

// A conversation that a request replies to. The reply arrives in parts, as events of the kind
// WICK_EVENT_CONTENT and above. The format of tool calls and reasoning is detected from the control
// strings in the source of the chat template. If it contains none, all formats that cannot be
// mistaken for prose are accepted.
typedef struct wick_conversation {
  wick_chat chat;  // if it has "tools", the reply may call them
  // OpenAI's tool_choice, as JSON: "auto", "none", "required", or {"function": {"name"}}. NULL: the
  // members "tool_choice" and "parallel_tool_calls" of chat.json; without these "auto".
  const char *tool_choice;
  size_t tool_choice_bytes;
  bool one_call;  // at most one call; ignored if tool_choice is NULL
  // wick_request.grammar applies to the whole text of the reply. Otherwise it applies only to the
  // content: reasoning may precede it, and calls may replace it.
  bool is_grammar_whole;
  uint64_t reserved[4];
} wick_conversation;

// A standalone grammar for checking strings.
typedef struct wick_constraint wick_constraint;

// `engine` provides the vocabulary and the memory; NULL: the grammar cannot refer to tokens.
// WICK_E_ARG (invalid grammar; the message has the position), WICK_E_UNSUPPORTED (the message names
// the unsupported feature), WICK_E_FULL (the grammar is too large), WICK_E_NOMEM. With an engine,
// also returns the errors of wick_tokenizer_status, and the constraint must be destroyed before the
// engine.
WICK_API wick_status wick_constraint_create(wick_engine *engine, const wick_grammar *grammar,
                                            wick_constraint **out, wick_error *error);
WICK_API void wick_constraint_destroy(wick_constraint *constraint);
// `texts` is a JSON array of strings. Writes a JSON array of booleans: whether each string is a
// complete match. With an engine, strings are matched token by token, and an item may also be an
// array of token ids, which may include control tokens. WICK_E_ARG if it is not such an array,
// WICK_E_NOMEM.
WICK_API wick_status wick_constraint_check(wick_constraint *constraint, const char *texts,
                                           size_t text_bytes, wick_text_sink sink, void *context,
                                           wick_error *error);

typedef struct wick_request {
  // The prompt: text (tokenised with `tokenize_flags`), or ids when `tokens` is not NULL.
  const char *text;
  size_t text_bytes;
  uint32_t tokenize_flags;
  const int32_t *tokens;
  size_t token_count;

  int32_t priority;  // higher ones run first; WICK_PRIORITY_MIN to _MAX, default 0
  // Passes that the request has already waited for in the host's queue. They count as if it had
  // waited here: among requests over WICK_PASSES_WAITED_MAX, the one that has waited longest runs
  // first.
  uint32_t passes_waited;
  uint32_t completions;  // number of outputs for the prompt, which is processed once; 0: 1. Their
                         // ids and seeds are consecutive
  // The text of the prompt may end in the middle of a token of the final text. Its last token (or
  // up to 4, so that whole characters are removed) is removed, and the sampled text begins with the
  // removed bytes; if one token was removed, the first sampled token begins with them. These bytes
  // are not returned again, but their tokens count. WICK_E_ARG with a grammar.
  bool healing;
  bool no_speculation;     // never propose tokens
  bool always_speculates;  // propose tokens even if that is slower, for tests and measurements
  uint32_t session;        // continue this session, which keeps the prompt and the output; 0: none
  // The tenant: cached pages are not shared with other tenants. Empty: the unnamed tenant. A
  // session has its own salt.
  const char *salt;
  size_t salt_bytes;
  uint32_t max_tokens;  // 0: until the context is full
  bool prefill_only;    // process the prompt and sample nothing (max_tokens is ignored)
  // Drops the session's tokens [first, last) as soon as all other tokens have been processed,
  // except one that does not fit in a full context. Requires prefill_only and no prompt; both 0:
  // nothing is dropped.
  uint32_t drop_first, drop_last;
  wick_sampling sampling;
  // The output matches this grammar, or is the beginning of a match if max_tokens, a stop string or
  // the context ends it early. Only tokens that the grammar allows are sampled, and end tokens only
  // where the text may end. When the match is complete and cannot continue, the request ends as
  // stopped. The first grammar of an engine also prepares the vocabulary (151,936 tokens: 40 ms).
  // Copied; NULL: none.
  const wick_grammar *grammar;
  // If the grammar does not allow the tag, it is not inserted. Copied; NULL: reasoning has no
  // limit.
  const wick_reasoning *reasoning;
  const char *const *stops;  // stop strings
  const size_t *stop_bytes;
  uint32_t stop_count;
  bool ignore_end;     // continue after an end token (benchmarks)
  bool print_special;  // write control tokens as text

  // For experiments: before a token is drawn the request waits for the host (WICK_EVENT_LOGITS,
  // wick_request_logits). Such a request does not use speculation, and does not wait before tokens
  // that a grammar forces.
  bool asks_host;

  // Adapters, each at most once; their order does not matter. Session tokens that were computed
  // with other adapters are recomputed; if tokens were dropped from the middle of the session, the
  // request fails with WICK_E_MISMATCH instead. A request that drops tokens uses the session's
  // adapters. Copied; NULL: none.
  const wick_adapter_use *adapters;
  uint32_t adapter_count;  // up to WICK_ADAPTERS_MAX

  // For measurements: these tokens are generated regardless of the logits (models with random
  // weights repeat themselves). NULL: none. Ids as in `tokens`.
  const int32_t *forced;
  size_t forced_count;

  // Called from wick_step for every prompt position with its logits [vocab], which are valid during
  // the call. NULL: not called.
  void (*on_logits)(void *context, uint32_t position, const float *logits, uint32_t vocab);
  void *on_logits_context;

  // The conversation that the request replies to; `text` must be empty; NULL: none. `tokens` is
  // NULL, or the prompt that wick_media_tokenize returned. Text that begins a tool call is
  // constrained to the tool's schema; optional calls whose schemas are not supported are
  // unconstrained. A session keeps the tokens that it has in common with the conversation and drops
  // the others. Copied.
  const wick_conversation *conversation;
  uint64_t reserved[15];
} wick_request;

// Sets the defaults: greedy, special tokens added and parsed, everything else off.
WICK_API void wick_request_default(wick_request *request);

// Queues a request. Its prompt is tokenised here; everything is copied. Requests start in order of
// arrival, each as soon as there are KV pages for its maximum size, and run concurrently.
// WICK_E_ARG (empty prompt, id out of the vocabulary, a setting out of its range), WICK_E_SEQ and
// WICK_E_BUSY (its session), WICK_E_FULL (prompt over the context, or the queue is full),
// WICK_E_NODATA (directory not ready, or an adapter is incomplete), WICK_E_UNSUPPORTED (the model
// is an encoder), WICK_E_MISMATCH (adapters differ from the session's), WICK_E_NOMEM; for a
// grammar, the errors of wick_constraint_create; for a conversation, the errors of
// wick_chat_tokenize, with the subjects WICK_SUBJECT_TOOLS and WICK_SUBJECT_TOOL_CHOICE for its
// tools. May be submitted while weights are still arriving.
WICK_API wick_status wick_request_submit(wick_engine *engine, const wick_request *request,
                                         uint32_t *id, wick_error *error);
// From now on, each call of wick_request_submit compiles a grammar for a few milliseconds and
// returns WICK_E_BUSY with WICK_SUBJECT_GRAMMAR until that is finished: call it again between other
// work. By default, one call compiles the whole grammar.
WICK_API void wick_engine_compile_in_slices(wick_engine *engine);
// Pauses or resumes a request, for example if its client does not keep up. A paused request does
// not run, but keeps its position in the queue and, until another request needs them, its pages.
// Unknown id: WICK_E_ARG.
WICK_API wick_status wick_request_pause(wick_engine *engine, uint32_t id, bool is_paused);
// Cancels a request: the next step ends it with finish reason WICK_FINISH_ABORT. If it is part of a
// running pass with other requests, it ends after that pass, whose tokens still arrive. Unknown id:
// WICK_E_ARG.
WICK_API wick_status wick_request_cancel(wick_engine *engine, uint32_t id);

typedef struct wick_logits {
  float *values;  // [vocab] as the model computed them; the host may change them
  uint32_t vocab;
  const int32_t *tokens;  // [token_count]: the prompt and the sampled tokens
  uint32_t token_count;
  uint64_t reserved[4];
} wick_logits;
// Gets the logits of a waiting request with `asks_host`, valid until it resumes. Bias, grammar and
// samplers are applied later. WICK_E_ARG: the request is not waiting.
WICK_API wick_status wick_request_logits(wick_engine *engine, uint32_t id, wick_logits *logits);
// Resumes the request with these values. If any is NaN or +Inf, or all are -Inf, the request ends
// with WICK_E_NONFINITE. WICK_E_ARG: the request is not waiting.
WICK_API wick_status wick_request_go_on(wick_engine *engine, uint32_t id);

// Lets `draft`, an engine with a smaller model that has the same vocabulary, propose tokens for
// requests of `engine`; their output stays the same. Both must be loaded. The draft accepts no more
// requests, and must be destroyed after `engine`. Call this once per engine. WICK_E_NODATA (one is
// not loaded), WICK_E_MISMATCH (different vocabularies), WICK_E_BUSY (the engine already has a
// draft, or requests run on the draft), WICK_E_NOMEM.
WICK_API wick_status wick_engine_set_draft(wick_engine *engine, wick_engine *draft,
                                           wick_error *error);

// ---- Sessions: text that continues from request to request ----

// A request on a session (wick_request.session) continues the session's text, and appends its
// prompt and output (without an end token); a request that ends before its prompt is processed
// leaves the session unchanged. Errors: WICK_E_SEQ, WICK_E_BUSY while a request runs on it,
// WICK_E_NOMEM, WICK_E_NODATA before the directory is ready.
WICK_API wick_status wick_session_create(wick_engine *engine, uint32_t *session, wick_error *error);
// The session, its forks and its saved states belong to the tenant with this name
// (wick_request.salt).
WICK_API wick_status wick_session_create_salted(wick_engine *engine, const char *salt,
                                                size_t salt_bytes, uint32_t *session,
                                                wick_error *error);
// Creates a copy that shares every page; the first write of either session to a shared page copies
// only that page.
WICK_API wick_status wick_session_fork(wick_engine *engine, uint32_t session, uint32_t *child,
                                       wick_error *error);
// Keeps only the first `tokens` tokens. Also WICK_E_RANGE.
WICK_API wick_status wick_session_truncate(wick_engine *engine, uint32_t session, uint32_t tokens,
                                           wick_error *error);
// Drops the tokens [first, last) from the middle; later tokens keep their keys, moved by rotation.
// Tokens that have not been processed yet, or have lost their pages, are computed later without
// attending to the dropped ones. For output that does not depend on other requests, let a request
// drop the tokens (wick_request.drop_last).
WICK_API wick_status wick_session_drop(wick_engine *engine, uint32_t session, uint32_t first,
                                       uint32_t last, wick_error *error);
WICK_API wick_status wick_session_close(wick_engine *engine, uint32_t session, wick_error *error);
// *tokens [*count] is valid until the session changes.
WICK_API wick_status wick_session_tokens(const wick_engine *engine, uint32_t session,
                                         const int32_t **tokens, uint32_t *count,
                                         wick_error *error);

// ---- Saved state: versioned, checksummed, valid only for this model and these KV types ----

// Receives bytes in order; returns false on failure.
typedef struct wick_state_sink {
  void *context;
  bool (*write)(void *context, const void *bytes, size_t size_bytes);
} wick_state_sink;

// Reads exactly the next `size_bytes` bytes; returns false on failure.
typedef struct wick_state_source {
  void *context;
  bool (*read)(void *context, void *bytes, size_t size_bytes);
  uint64_t size_bytes;  // total size of the record
} wick_state_source;

// Writes a session; session 0: the prefix cache. Also WICK_E_NODATA while the model is loading,
// WICK_E_IO if the sink fails.
WICK_API wick_status wick_state_save(wick_engine *engine, uint32_t session,
                                     const wick_state_sink *sink, wick_error *error);
// Gets the number of bytes that wick_state_save would write now.
WICK_API wick_status wick_state_bytes(const wick_engine *engine, uint32_t session,
                                      uint64_t *size_bytes, wick_error *error);

// Writes a session with its keys and values converted to other types, for example to WICK_KV_Q8 in
// an engine with F16. The record is smaller, and an engine with this engine's types can load it. A
// session loaded from it is less precise and shares no pages with other requests. Recurrent states
// are unchanged. Returns the same errors as above, WICK_E_ARG, and WICK_E_UNSUPPORTED for
// unsupported types.
WICK_API wick_status wick_session_save_packed(wick_engine *engine, uint32_t session,
                                              wick_kv_type k_type, wick_kv_type v_type,
                                              const wick_state_sink *sink, wick_error *error);
WICK_API wick_status wick_session_packed_bytes(const wick_engine *engine, uint32_t session,
                                               wick_kv_type k_type, wick_kv_type v_type,
                                               uint64_t *size_bytes, wick_error *error);

typedef struct wick_state_loaded {
  uint32_t session;  // the new session; 0: it was a prefix cache
  uint32_t entries;  // number of entries that were added to the prefix cache
  uint64_t reserved[2];
} wick_state_loaded;
// Sizes are checked against the size of the source before anything is allocated. WICK_E_MISMATCH:
// the record was saved with a different model, KV type or shape, or needs an adapter that is not
// loaded. WICK_E_FORMAT: not a record, or an unknown version. WICK_E_TRUNCATED: it ends early.
// WICK_E_CORRUPT: it is damaged. WICK_E_IO: the source failed. Also WICK_E_PAGES, WICK_E_NOMEM,
// WICK_E_FULL. A failure changes nothing.
WICK_API wick_status wick_state_load(wick_engine *engine, const wick_state_source *source,
                                     wick_state_loaded *loaded, wick_error *error);

// ---- Steps ----

typedef enum wick_step_result {
  WICK_STEP_IDLE = 0,       // nothing left to do; this step may have written events
  WICK_STEP_PROGRESS = 1,   // call again (take the events first)
  WICK_STEP_WAIT_BYTES = 2  // the weights of the next layer have not arrived
} wick_step_result;

// Works for about budget_us (0: one unit of work). A unit is one layer of one pass or one round of
// logits. A failure ends only its request, which is reported by an event; the engine continues.
WICK_API wick_step_result wick_step(wick_engine *engine, uint64_t budget_us);
// Works for `units` units, at least one, without reading the clock: for hosts whose clock does not
// advance during computation.
WICK_API wick_step_result wick_step_units(wick_engine *engine, uint32_t units);

// ---- Embeddings: vectors or scores of texts ----

// An input: a string, a pair of strings for a reranker, or tokens.
typedef struct wick_embed_text {
  const char *text;  // for a pair, the query
  size_t text_bytes;
  const char *document;  // NULL: not a pair
  size_t document_bytes;
  const int32_t *tokens;  // if not NULL, used instead of the text, unchanged
  size_t token_count;
} wick_embed_text;

typedef struct wick_embed_request {
  const wick_embed_text *texts;  // [text_count], at least one
  uint32_t text_count;
  wick_pooling pooling;
  uint32_t dimensions;  // keep only the first dimensions; 0: all
  bool normalizes;      // divide vectors (not scores) by their length
  bool truncates;  // truncate texts that exceed the context, keeping their last token; else reject
                   // them
  const wick_adapter_use *adapters;  // see wick_request.adapters
  uint32_t adapter_count;
  uint64_t reserved[8];
} wick_embed_request;

// Sets all members to 0.
WICK_API void wick_embed_default(wick_embed_request *request);

// Starts a job: tokenizes the texts and copies them. wick_embed_step processes it alongside
// requests. A request may take the pages of a text, which is then recomputed. A vector depends only
// on its text. WICK_E_ARG (no texts, an empty text, an id out of the vocabulary, a setting out of
// its range), WICK_E_FULL (a text exceeds the context), WICK_E_UNSUPPORTED (scores requested from a
// model without a head), WICK_E_BUSY (the previous job has not been ended), WICK_E_NODATA
// (directory not ready), WICK_E_NOMEM.
WICK_API wick_status wick_embed(wick_engine *engine, const wick_embed_request *request,
                                wick_error *error);
// Works for about budget_us (0: one unit). Texts wait for pages while requests run. *result is
// WICK_STEP_IDLE when everything is done. Final errors: WICK_E_PAGES (too few pages for a text even
// without requests), WICK_E_NONFINITE, WICK_E_NOMEM; WICK_E_NODATA if no job was started.
WICK_API wick_status wick_embed_step(wick_engine *engine, uint64_t budget_us,
                                     wick_step_result *result, wick_error *error);

typedef struct wick_vectors {
  const float *values;   // [rows][width], valid until wick_embed_end
  uint32_t rows, width;  // rows: 1, or without pooling the number of tokens
  uint32_t tokens;       // of the text
  uint64_t reserved[4];
} wick_vectors;
// Gets the result for text `index` once the job is done. False before that, and for an unknown
// index.
WICK_API bool wick_embed_get(const wick_engine *engine, uint32_t index, wick_vectors *vectors);
// Frees the job, whether done or not. Does nothing without a job.
WICK_API void wick_embed_end(wick_engine *engine);

// ---- Events: records in one buffer ----

typedef enum wick_event_kind {
  WICK_EVENT_TOKEN = 1,    // a sampled token and the text that can be shown now (may be empty)
  WICK_EVENT_PREFILL = 2,  // tokens_cached of tokens_prompt are processed
  WICK_EVENT_DONE = 3,     // the last event of a request; text: the remaining text, or the error
  WICK_EVENT_LOGITS = 4,   // the request waits for the host (wick_request.asks_host)
  // Parts of the reply to a conversation. They precede the TOKEN or DONE event that contains their
  // text as the model wrote it.
  WICK_EVENT_CONTENT = 5,
  WICK_EVENT_REASONING = 6,
  WICK_EVENT_CALL = 7,         // a tool call begins: its name [name_bytes], then its id, if any
  WICK_EVENT_ARGUMENTS = 8,    // a piece of its arguments, which together form JSON
  WICK_EVENT_CALL_END = 9,     // the call is complete
  WICK_EVENT_CALL_BROKEN = 10  // this and later calls are treated as content, which follows;
                               // `status` and text give the reason
} wick_event_kind;

typedef enum wick_finish {
  WICK_FINISH_NONE = 0,
  WICK_FINISH_STOP = 1,    // end token or stop string
  WICK_FINISH_LENGTH = 2,  // max_tokens or context full
  WICK_FINISH_ABORT = 3,
  WICK_FINISH_ERROR = 4  // `status`; the text is the message
} wick_finish;

// The layout is the same on every host. After the struct: top_count pairs {int32 token, float
// logprob}, then text_bytes of UTF-8, then padding to a multiple of 8; wick_event_top and
// wick_event_text read them.
typedef struct wick_event {
  uint32_t size_bytes;  // of the whole record
  uint32_t request;
  uint32_t kind;  // wick_event_kind
  int32_t token;  // WICK_TOKEN_NONE if there is none
  float logprob;
  uint32_t top_count;
  uint32_t text_bytes;
  union {
    uint16_t finish;      // wick_finish, of DONE
    uint16_t name_bytes;  // of CALL
  };
  union {
    uint16_t stop;  // of DONE: 1 + the index of the stop string that ended it; 0: none
    uint16_t call;  // of parts of calls: the call's index
  };
  uint16_t status;   // wick_status, of DONE by error and of CALL_BROKEN
  uint16_t subject;  // wick_subject, of DONE by error
  uint32_t tokens_prompt;
  uint32_t tokens_cached;  // PREFILL: processed so far; DONE: taken from a cache
  uint32_t tokens_out;
  double queue_ms, prefill_ms, decode_ms;  // of DONE
  double ttft_ms;                          // time from submission to the first token
} wick_event;

// Returns all events since the last call; *size_bytes is 0 if there are none. They are valid until
// the next wick_step, submit or cancel. If the buffer is full, wick_step does nothing (it returns
// PROGRESS) until the events are taken.
WICK_API const uint8_t *wick_events_take(wick_engine *engine, size_t *size_bytes);
// Returns the record after `event` among those that wick_events_take returned, the first one for
// NULL; NULL after the last.
WICK_API const wick_event *wick_event_next(const uint8_t *events, size_t size_bytes,
                                           const wick_event *event);
// Returns the event's text [text_bytes]. It is valid as long as the event is.
WICK_API const char *wick_event_text(const wick_event *event);

typedef struct wick_logprob {
  int32_t token;
  float logprob;  // natural logarithm
} wick_logprob;
// Returns alternative `index` < top_count, the most probable first.
WICK_API wick_logprob wick_event_top(const wick_event *event, uint32_t index);

// ---- Dialogs: conversations that the library keeps ----

// The messages of a conversation, and a session with their tokens. Only the C library has dialogs;
// a program with several concurrent conversations submits wick_conversations instead.
typedef struct wick_dialog wick_dialog;

// Receives the reply in pieces, in order: content (WICK_EVENT_CONTENT), or reasoning
// (WICK_EVENT_REASONING), which is omitted from later prompts. Returning false ends the reply here.
// The callback must neither use the engine nor destroy the dialog.
typedef bool (*wick_reply_sink)(void *context, wick_event_kind kind, const char *text,
                                size_t text_bytes);

// `system` is the system message; NULL: none. Returns the same errors as wick_session_create.
WICK_API wick_status wick_dialog_create(wick_engine *engine, const char *system, wick_dialog **out,
                                        wick_error *error);
// Must be called before the engine is destroyed; NULL does nothing.
WICK_API void wick_dialog_destroy(wick_dialog *dialog);
// Adds a question, runs the engine until the reply is complete, and adds the reply. Events that
// were not taken before are dropped. `settings` is a request without a prompt (sampling, limits,
// stops, grammar, reasoning); NULL: wick_request_default. `sink` may be NULL. Returns the same
// errors as wick_request_submit, and those that end a request; WICK_E_ARG with `asks_host`;
// WICK_E_BUSY while the engine has other requests, and if called in a sink; WICK_E_NODATA while the
// model is loading. After an error, the dialog is in the same state as before the question.
WICK_API wick_status wick_dialog_ask(wick_dialog *dialog, const char *question,
                                     const wick_request *settings, wick_reply_sink sink,
                                     void *context, wick_error *error);

// ---- Statistics ----

enum { WICK_STATS_ROWS_MAX = 16 };

// Totals since the engine was created; the members in the first line are current values. All are 0
// before the directory is ready.
typedef struct wick_stats {
  uint32_t running, waiting, paused;
  uint32_t running_max, waiting_max;
  uint64_t submitted, refused;                // refused: the queue was full
  uint64_t stopped, length, aborted, failed;  // by how they ended
  uint64_t preempted;                         // requests whose pages were taken for others
  uint64_t swapped_out, swapped_in;           // preempted pages stored by the host, and read back
  uint64_t swap_failed;                       // storage failed or damaged, so pages were recomputed
  uint64_t passes, rows;                      // rows: tokens that went through the model
  uint64_t tokens_prompt, tokens_cached;      // processed; taken from the prefix cache
  uint64_t tokens_recomputed;                 // recomputed after a preemption
  uint64_t tokens_out;
  float pass_us[WICK_STATS_ROWS_MAX + 1];     // recent, for 1, 2, ... rows of a request; 0: unknown
  uint64_t tokens_proposed, tokens_accepted;  // by speculation
  uint64_t draft_failed;  // passes of the draft model, or of a predicting layer, that failed
  uint64_t reserved[16];
} wick_stats;
WICK_API void wick_stats_get(const wick_engine *engine, wick_stats *stats);
// Writes {requests: {running, waiting, paused, ...}, tokens: {prompt, cached, recomputed, out,
// proposed, accepted}, pass_us: [recent times for 1, 2, ... rows of one request; 0: not measured],
// passes, rows}.
WICK_API void wick_stats_json(wick_engine *engine, wick_text_sink sink, void *context);

typedef struct wick_pages_state {
  uint32_t page_tokens;      // tokens per page
  uint32_t pages_used;       // by requests, sessions and the prefix cache
  uint32_t pages_available;  // pages that can still be allocated, minus those reserved for requests
  uint64_t reserved[4];
} wick_pages_state;
// All members are 0 before the directory is ready.
WICK_API void wick_pages_get_state(const wick_engine *engine, wick_pages_state *state);
// Writes the KV pages, their users, and the running requests: {page_tokens, page_bytes, k_type,
// v_type, pages: {all, free, available, shared, cached, used_max}, bytes: {used, capacity} (of all
// groups and states), groups: [{layers, window_tokens, page_bytes, pages: {all, free}, bytes}],
// states: {state_bytes, slots, free, cached} | null, sequences, forks, cow_copies, pages_allocated,
// pages_freed, nonfinite_values, fragmentation: {...}, sessions, prefix: {...} | null, requests:
// {running, waiting} and, with `has_map`, map: [strings with one letter per page: '.' free, 'p'
// private, 's' shared, 'c' cached only]}. A group consists of layers whose keys and values have the
// same shape and sliding window; page_bytes, pages and map describe the pool that keeps all
// positions. Writes {} without a model.
WICK_API void wick_pages_json(wick_engine *engine, bool has_map, wick_text_sink sink,
                              void *context);
// Writes the KV pages of a prompt's longest cached prefix (without a salt), the last page first:
// [indices into the map of wick_pages_json]. Nothing is computed and no counter changes.
WICK_API void wick_pages_find(wick_engine *engine, const int32_t *tokens, size_t count,
                              wick_text_sink sink, void *context);

// Writes the time that the ops of the forward pass took since the start or the last reset; empty
// unless config.metrics is set. {elapsed_s, timer_grain_us, kernels, passes: {prefill: {OP: {count,
// timed, time_us, latency_us: {mean, ...}, bytes, macs, gb_per_s, gmac_per_s, share}}, decode:
// {...}}, dispatch}. Rates are null if the measured time is 0.
WICK_API void wick_metrics_json(const wick_engine *engine, wick_text_sink sink, void *context);
// Writes the metrics in Prometheus text format 0.0.4.
WICK_API void wick_metrics_prometheus(const wick_engine *engine, wick_text_sink sink,
                                      void *context);
WICK_API void wick_metrics_reset(wick_engine *engine);

typedef struct wick_op_metrics {
  const char *pass, *op;    // "prefill" or "decode"; "qkv", "attention", ...; a static string
  uint64_t count;           // of all passes; the other members cover only the timed ones
  uint64_t time_us, bytes;  // bytes: read and written by the op
  uint64_t macs;            // multiply-adds
  double mean_us, p50_us, p99_us;
  double share;  // share of the time of its kind of pass
  uint64_t reserved[4];
} wick_op_metrics;
// Gets row `index`, from 0; prefill first. False after the last one, or without metrics.
WICK_API bool wick_metrics_get(const wick_engine *engine, uint32_t index, wick_op_metrics *metrics);

#ifdef __cplusplus
}
#endif

#endif
