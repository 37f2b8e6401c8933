// wick.h — Wick, an engine for GGUF language models, as C and C++ programs see it. This header
// reads alone: it includes nothing of the engine's, and a program that links the engine needs no
// other.
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
// Threads: one thread at a time calls an engine. Engines share nothing and may be called by
// different threads. No call blocks for long: all work is done inside of wick_load_feed, which
// copies, and wick_step, which computes and returns after at most its budget and a layer's time.
//
// Lifetimes: what is passed in is copied unless its comment says otherwise, so it may be freed when
// the call returns. Returned pointers belong to the engine; each comment says until when they are
// valid, at the latest until wick_engine_destroy. The caller destroys what it has created, engines
// and constraints, and frees nothing else. After wick_engine_destroy every byte is back.
//
// Errors: a call that can fail returns a wick_status and, unless the pointer is NULL, fills a
// wick_error of the caller's. A failed call has changed nothing, except where its comment says so.
// NULL for an engine or for an out parameter is the caller's mistake and is not looked for.
//
// Memory: all of it goes through one gate that keeps config.memory_bytes_max. Decoding allocates
// nothing.
//
// Numbers: sizes in bytes and offsets are of the type that the largest file needs; ids of tokens
// are int32_t, positions and counts of tokens uint32_t. Text is UTF-8 with its length, not
// terminated.
//
// Structs: begin with the function that fills in the defaults (wick_request_default, ...), where
// there is one, else with zeros. A wick_config of zeros has its defaults. `reserved` is room for
// later fields: it is 0, and while libwick.so has the same name a struct keeps its size.
#ifndef WICK_H
#define WICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Before each function. WICK_SHARED says that libwick.so is linked (wick-shared.pc defines it), so
// that code with hidden visibility finds it there. A build of the library may define WICK_API.
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
// Rises with every version: 1.2.3 is 10203.
#define WICK_VERSION (WICK_VERSION_MAJOR * 10000 + WICK_VERSION_MINOR * 100 + WICK_VERSION_PATCH)

// WICK_VERSION of the library that is linked.
WICK_API uint32_t wick_version(void);

// ---- Statuses and errors ----

typedef enum wick_status {
  WICK_OK = 0,
  WICK_E_ARG = 1,           // the caller broke the contract: null, zero, unknown id or enum
  WICK_E_PAGES = 2,         // KV pool short of pages
  WICK_E_SEQ = 3,           // no such session
  WICK_E_RANGE = 4,         // position or offset outside of what is there
  WICK_E_CORRUPT = 5,       // a saved state is damaged, or an invariant of the engine is broken
  WICK_E_OVERFLOW = 6,      // arithmetic on sizes does not fit
  WICK_E_NOMEM = 7,         // allocation or growth refused, or over the budget
  WICK_E_SHAPE = 8,         // dimensions, bytes and type do not agree
  WICK_E_NONFINITE = 9,     // NaN or Inf where numbers were expected
  WICK_E_FULL = 10,         // capacity reached (context, queue, room of the caller)
  WICK_E_BUSY = 11,         // referenced or in use
  WICK_E_NODATA = 12,       // nothing there yet
  WICK_E_MISMATCH = 13,     // saved for another model or version
  WICK_E_IO = 14,           // the host's storage or stream failed
  WICK_E_FORMAT = 15,       // the file is not what its format promises
  WICK_E_UNSUPPORTED = 16,  // well formed, but not something this build runs
  WICK_E_TRUNCATED = 17,    // the file ended early
  WICK_E_ABORTED = 18,      // the caller asked to stop
  WICK_STATUS_COUNT = 19
} wick_status;

// The setting that an error is about (a field of wick_config, wick_request or wick_sampling) that
// a caller would change, where there is one. The comments say what wick_error.numbers hold.
typedef enum wick_subject {
  // begin of subjects: made of include/options.mjs
  WICK_SUBJECT_NONE = 0,       // no setting: the file, the model, the host, ...
  WICK_SUBJECT_MEMORY = 1,     // memory_bytes_max: bytes needed, budget
  WICK_SUBJECT_PLAN = 2,       // memory_bytes_max, context_tokens: planned, budget, tokens
  WICK_SUBJECT_CONTEXT = 3,    // context_tokens: tokens wanted, at most
  WICK_SUBJECT_BATCH = 4,      // batch_tokens: wanted, at most
  WICK_SUBJECT_THREADS = 5,    // wanted, at most
  WICK_SUBJECT_KV_TYPE = 6,    // k_type, v_type: k_type, v_type
  WICK_SUBJECT_KV_TOKENS = 7,  // kv_tokens_max: pages needed, available
  WICK_SUBJECT_DIRECTORY_ONLY = 8,
  WICK_SUBJECT_REQUESTS = 9,       // requests_max: there are, at most
  WICK_SUBJECT_QUEUE_TOKENS = 10,  // queue_tokens_max: there are, at most
  WICK_SUBJECT_PROMPT = 11,        // text, tokens
  WICK_SUBJECT_PRIORITY = 12,
  WICK_SUBJECT_COMPLETIONS = 13,  // wanted, at most
  WICK_SUBJECT_SESSION = 14,      // its number
  WICK_SUBJECT_STOPS = 15,        // how many or which, at most
  WICK_SUBJECT_TEMPERATURE = 16,
  WICK_SUBJECT_TOP_P = 17,
  WICK_SUBJECT_MIN_P = 18,
  WICK_SUBJECT_REPEAT_PENALTY = 19,
  WICK_SUBJECT_FREQUENCY_PENALTY = 20,
  WICK_SUBJECT_PRESENCE_PENALTY = 21,
  WICK_SUBJECT_PENALTY_LAST = 22,  // wanted, at most
  WICK_SUBJECT_LOGPROBS = 23,      // wanted, at most
  WICK_SUBJECT_BIAS = 24,          // wanted, at most; or the token and the vocabulary
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
  WICK_SUBJECT_DRY_PENALTY_LAST = 37,       // wanted, at most
  WICK_SUBJECT_DRY_SEQUENCE_BREAKERS = 38,  // how many or which, at most
  WICK_SUBJECT_MIROSTAT = 39,               // wanted, at most
  WICK_SUBJECT_MIROSTAT_TAU = 40,
  WICK_SUBJECT_MIROSTAT_ETA = 41,
  WICK_SUBJECT_ADAPTIVE_TARGET = 42,
  WICK_SUBJECT_ADAPTIVE_DECAY = 43,
  WICK_SUBJECT_SAMPLERS = 44,  // which, at most
  WICK_SUBJECT_ADAPTERS = 45,  // which or how many, at most
  WICK_SUBJECT_TABLES = 46,
  WICK_SUBJECT_DRY_ALLOWED_LENGTH = 47,  // wanted, at most
  WICK_SUBJECT_COUNT = 48
  // end of subjects
} wick_subject;

enum { WICK_ERROR_MESSAGE_BYTES = 256, WICK_ERROR_NUMBERS = 3 };

#define WICK_NO_OFFSET UINT64_MAX

// Filled by the function that fails; unchanged on success.
typedef struct wick_error {
  wick_status status;
  wick_subject subject;
  uint64_t offset_bytes;                   // where in the file, or WICK_NO_OFFSET
  uint64_t numbers[WICK_ERROR_NUMBERS];    // of the subject, 0 where it has fewer
  char message[WICK_ERROR_MESSAGE_BYTES];  // for people, always terminated
} wick_error;

// The name of a status as written above, e.g. "WICK_E_FORMAT"; "WICK_E_?" when out of range.
WICK_API const char *wick_status_name(wick_status status);
// The field that a subject names as written below, e.g. "context_tokens"; "" for none.
WICK_API const char *wick_subject_name(wick_subject subject);

// ---- Text in and out ----

// Bytes of the engine's, not terminated.
typedef struct wick_text {
  const char *bytes;
  size_t size_bytes;
} wick_text;

// A part of a rendered conversation: it reaches from the end of the part before to `end`.
typedef struct wick_span {
  uint32_t end;         // in bytes
  uint32_t is_content;  // 1: from the conversation, 0: written by the template
} wick_span;

// Called for each piece of a text, in order; `bytes` is valid during the call.
typedef void (*wick_text_sink)(void *context, const char *bytes, size_t size_bytes);

// ---- The engine ----

typedef struct wick_engine wick_engine;

// Types of keys and values: 4, 2, 1 and 1/2 bytes a number. Q8 and Q4 values have a scale for 32 of
// them, keys an offset and a scale for each channel of a page of 16 tokens; keys of a page that is
// not full are F16. 0 is the default.
typedef enum wick_kv_type {
  WICK_KV_F16 = 0,
  WICK_KV_F32 = 1,
  WICK_KV_Q8 = 2,
  WICK_KV_Q4 = 3,
  WICK_KV_TYPE_COUNT = 4
} wick_kv_type;

// The store for pages of requests that give way, by the id of their request. Each function does
// all of its work before it returns, and may refuse: then the request reads its tokens again, so
// nothing is lost. Everything the host returns is checked, so a host may also be wrong.
typedef struct wick_swap_host {
  void *context;
  // A place for a record of this many bytes; every one that was opened is dropped once.
  bool (*open)(void *context, uint32_t id, uint64_t size_bytes);
  // Pieces follow each other from 0 on.
  bool (*write)(void *context, uint32_t id, uint64_t offset_bytes, const void *bytes,
                size_t size_bytes);
  bool (*read)(void *context, uint32_t id, uint64_t offset_bytes, void *bytes, size_t size_bytes);
  void (*drop)(void *context, uint32_t id);
  bool always;  // whatever it costs (tests, measurements)
} wick_swap_host;

// The reader of a model's bytes: wick_load_from, and wick_config.tables_reader. `read` reads at
// most `size_bytes` of file `file` (0 unless the model is split) from `offset_bytes` on. It returns
// how many were read, 0 where the file ends, SIZE_MAX when it failed.
typedef struct wick_reader {
  void *context;
  size_t (*read)(void *context, uint32_t file, uint64_t offset_bytes, void *bytes,
                 size_t size_bytes);
  // wick_load_from's room for what is read, best 1 MiB; the caller's, needed during the call.
  void *piece;
  size_t piece_bytes;
} wick_reader;

// Storage for tables whose rows are only looked up: per-layer embeddings, and embeddings of tokens
// where the output has its own matrix.
typedef enum wick_tables {
  WICK_TABLES_AUTO = 0,    // inside where the plan fits into the memory limit, else outside
  WICK_TABLES_INSIDE = 1,  // in memory
  WICK_TABLES_OUTSIDE = 2  // in the model's files: each pass reads the rows of its tokens
} wick_tables;

// The functions that an engine needs from its host. A pair or a function that is NULL is the
// library's own: the C library's memory, clock and threads, natively and with Emscripten; WASI has
// no threads. Random numbers are not among them, since an engine draws none: seeds are the caller's
// (wick_sampling.seed).
typedef struct wick_host {
  void *context;
  // A block at a multiple of 64 bytes, not zeroed, or NULL; free gets the size back. Both or none.
  // A block elsewhere is freed and counts as NULL.
  void *(*alloc)(void *context, size_t size_bytes);
  void (*free)(void *context, void *block, size_t size_bytes);
  // Microseconds from any beginning, never fewer than before: budgets of steps, figures of requests
  // and ops. A clock is the whole program's, so this has no context.
  uint64_t (*now_us)(void);
  // One line for a developer, without a newline.
  void (*log)(void *context, const char *line);
  // Runs entry(argument) in parallel with the caller, once and until it returns; false: it does
  // not. join is called once for each that was started, from the thread that destroys the engine,
  // and returns when entry has returned. Both or none.
  bool (*thread_start)(void *context, void (*entry)(void *argument), void *argument,
                       uintptr_t *thread);
  void (*thread_join)(void *context, uintptr_t thread);
  uint64_t reserved[8];
} wick_host;

enum { WICK_THREADS_MAX = 64, WICK_BATCH_TOKENS_MAX = 512 };

typedef struct wick_config {
  uint64_t memory_bytes_max;  // budget of everything; 0: what the host can give
  uint32_t threads;           // with the caller's, 1..WICK_THREADS_MAX; 0: 1, no helpers
  bool choose_threads;        // use as many of them as prove fastest, not always all
  uint32_t context_tokens;    // of one request; 0: min(trained, 4096); over the trained: refused
  uint32_t batch_tokens;      // micro-batch of prefill, 1..WICK_BATCH_TOKENS_MAX; 0: 128
  uint32_t requests_max;      // queued and running together; 0: 64
  uint32_t running_max;       // running at once, at most batch_tokens; 0: that many
  uint64_t queue_tokens_max;  // prompts that wait may have this many tokens together; 0: no limit
  // A grammar that takes more working memory or steps to compile is refused with WICK_E_FULL. A
  // step takes about 0.05 us. 0: 192 MiB, 60 million.
  uint64_t grammar_bytes_max, grammar_steps_max;
  uint64_t media_bytes_max;  // rows of images and recordings that were removed; 0: 64 MiB
  // Limits of an image: pictures that it is cut into, and rows. A larger image is cut into fewer
  // pictures, then made smaller. 0: none.
  uint32_t media_tiles_max, media_rows_max;
  bool media_like_llama_cpp;  // follow llama.cpp where it differs from the published model
  wick_kv_type k_type, v_type;
  uint32_t kv_tokens_max;  // of all requests, sessions and the prefix cache; 0: 4 contexts
  bool no_prefix_cache;    // every prompt is read from its beginning
  bool no_predictor;       // a layer that predicts further tokens proposes none, and takes no
                           // memory
  bool beyond_trained;     // context_tokens may be more than the model was trained on, unless it
                           // has a table of positions
  const wick_swap_host *swap;  // keeps pages of requests that give way; outlives the engine; NULL:
                               // they always read their tokens again
  wick_tables tables;          // results are the same to the last bit
  const wick_reader *tables_reader;  // where a pass reads tables that are kept outside, from the
                                     // thread that steps; `piece` is not used; outlives the engine;
                                     // NULL: everything is inside
  const wick_host *host;             // outlives the engine; NULL: the library's own functions
  const char *kernels;        // by name (wick_kernels_name); NULL: the best of this processor
  const char *pre_tokenizer;  // use this instead of the file's tokenizer.ggml.pre, for files whose
                              // name is missing, wrong or not known here; copied; NULL: the file's
  bool directory_only;        // metadata, tensor list and tokenizer, no weights
  bool metrics;               // ops are timed: wick_metrics_json
  uint32_t timer_grain_us;    // how fine the host's clock is, reported with the metrics; 0: 1
  uint64_t reserved[16];
} wick_config;

// The name of the kernels that this processor and build have by the name `wanted` ("scalar",
// "simd128", "avx2", ...), of the best of them for NULL; NULL when there are none such. Valid for
// ever.
WICK_API const char *wick_kernels_name(const char *wanted);

// All of it 0.
WICK_API void wick_config_default(wick_config *config);

// Makes an engine without a model. It allocates little: the big segments come when the directory of
// the model is known. WICK_E_ARG for settings out of range or half a pair of a wick_host,
// WICK_E_UNSUPPORTED for a KV type or kernels that are not there, and for more
// threads than can be started, WICK_E_NOMEM.
WICK_API wick_status wick_engine_create(const wick_config *config, wick_engine **out,
                                        wick_error *error);
// Ends all requests without events and frees all memory. NULL is fine.
WICK_API void wick_engine_destroy(wick_engine *engine);

// The configuration in force: zeros replaced by what was chosen. Valid as long as the engine.
WICK_API const wick_config *wick_engine_config(const wick_engine *engine);
// The threads that have come up (helpers start asynchronously); and how many of them a pass of a
// given number of tokens uses.
WICK_API uint32_t wick_engine_threads(const wick_engine *engine);
WICK_API uint32_t wick_engine_threads_used(const wick_engine *engine, uint32_t tokens);

typedef struct wick_memory_state {
  uint64_t budget_bytes;  // 0: none
  uint64_t bytes_now;     // held by the engine now
  uint64_t bytes_peak;
  uint64_t calls;       // allocations requested since creation; decoding does not move it
  uint64_t blocks_now;  // allocations not yet freed
  uint64_t reserved[4];
} wick_memory_state;
WICK_API void wick_memory_get_state(const wick_engine *engine, wick_memory_state *state);
// A model whose plan needs more is refused before its weights are fetched: the budget, or what the
// host could give when the engine was made, whichever is less. The limit of a wick_host is not
// known. 0: none.
WICK_API uint64_t wick_engine_memory_limit(const wick_engine *engine);

// "f32", "f16", "q8", "q4"; "?" when out of range.
WICK_API const char *wick_kv_type_name(wick_kv_type type);

// ---- Loading: ask and offer ----

// The next bytes wanted: file (0 unless the model is split), offset, length (0: nothing more is
// wanted). In file order while the directory is unknown, in steps of up to 1 MiB, then up to 8 MiB.
// Asking again without feeding gives the same answer.
WICK_API void wick_load_next_range(const wick_engine *engine, uint32_t *file,
                                   uint64_t *offset_bytes, uint64_t *length_bytes);
// Takes bytes of a file: any number, in any order once the directory is there (before that: from
// the next wanted byte on). Bytes that nobody needs are skipped. The bytes go to their places
// before the call returns. A failure is final for this engine: every later call answers the same
// error. WICK_E_FORMAT, WICK_E_SHAPE, WICK_E_UNSUPPORTED, WICK_E_TRUNCATED, WICK_E_NOMEM (also when
// the plan is over the budget: nothing of the weights was requested then), WICK_E_ARG.
WICK_API wick_status wick_load_feed(wick_engine *engine, uint32_t file, uint64_t offset_bytes,
                                    const void *bytes, size_t size_bytes, wick_error *error);
// The size of the file, known from the start or found at its end: a truncated file is reported as
// early as possible (WICK_E_TRUNCATED, naming the tensor).
WICK_API wick_status wick_load_end(wick_engine *engine, uint32_t file, uint64_t size_bytes,
                                   wick_error *error);

// Loads a whole model of one file that is in memory; the bytes may be freed afterwards. Errors as
// wick_load_feed, WICK_E_UNSUPPORTED for a split model, WICK_E_BUSY when the engine already has a
// model.
WICK_API wick_status wick_load_bytes(wick_engine *engine, const void *bytes, size_t size_bytes,
                                     wick_error *error);

// Loads a whole model, reading what is wanted where it is wanted. Errors as wick_load_feed, and
// WICK_E_IO when the reader failed or WICK_E_ARG when its piece has no bytes, after which the call
// may be repeated. WICK_E_BUSY when the engine already has a model.
WICK_API wick_status wick_load_from(wick_engine *engine, const wick_reader *reader,
                                    wick_error *error);

// Loads a whole model from a file, or, by the name of the first one, from the files of a split
// model (NAME-00001-of-00003.gguf). Of libwick.a alone: it reads by <stdio.h>. Errors as
// wick_load_from; WICK_E_IO names a file that cannot be opened, and the call may be repeated.
WICK_API wick_status wick_load_file(wick_engine *engine, const char *path, wick_error *error);

typedef struct wick_load_state {
  uint64_t bytes_wanted, bytes_placed;  // so far known; equal when complete
  uint64_t fingerprint;                 // of the model, when complete
  uint32_t files;                       // of a split model, 1 otherwise
  uint32_t layers_ready;                // complete from the first on
  bool is_directory_ready;              // metadata, tokenizer, plan can be requested
  bool is_complete;
  uint64_t reserved[4];
} wick_load_state;
WICK_API void wick_load_get_state(const wick_engine *engine, wick_load_state *state);

// ---- Adapters: low-rank changes of a model's weights (LoRA), which requests choose ----

// An adapter is a GGUF file (general.type "adapter", adapter.type "lora") with two tensors, lora_a
// and lora_b, for each weight that it changes. The product of a changed weight becomes W x + scale
// * alpha / rank * B (A x), without alpha W x + scale * B (A x), for the rows of requests that
// chose it; the others' results stay the same to the last bit. A and B stay as they are in F32, F16
// and BF16; of other types they are kept in F32. Adapter changes that this engine does not support
// are refused by name: norms, biases, stacked experts, an embedding that is the output, too.

enum { WICK_ADAPTERS_MAX = 8 };  // of one request

// Begins an adapter, whose file is fed next. WICK_E_NODATA before the model's directory is ready,
// WICK_E_NOMEM.
WICK_API wick_status wick_adapter_create(wick_engine *engine, uint32_t *adapter, wick_error *error);
// As wick_load_next_range, of one file. Unknown id: nothing is wanted.
WICK_API void wick_adapter_next_range(const wick_engine *engine, uint32_t adapter,
                                      uint64_t *offset_bytes, uint64_t *length_bytes);
// As wick_load_feed and wick_load_end, with their errors; WICK_E_NOMEM also when model and adapters
// are over the budget; WICK_E_MISMATCH: for another architecture, WICK_E_ARG: unknown id. A failure
// removes the adapter, its memory is back, and its id is unknown.
WICK_API wick_status wick_adapter_feed(wick_engine *engine, uint32_t adapter, uint64_t offset_bytes,
                                       const void *bytes, size_t size_bytes, wick_error *error);
WICK_API wick_status wick_adapter_end(wick_engine *engine, uint32_t adapter, uint64_t size_bytes,
                                      wick_error *error);
// Loads a whole adapter that is in memory. Errors as wick_adapter_feed.
WICK_API wick_status wick_adapter_load_bytes(wick_engine *engine, const void *bytes,
                                             size_t size_bytes, uint32_t *adapter,
                                             wick_error *error);
// Loads a whole adapter, reading what is wanted as file 0. Also WICK_E_IO, WICK_E_ARG as
// wick_load_from.
WICK_API wick_status wick_adapter_load_from(wick_engine *engine, const wick_reader *reader,
                                            uint32_t *adapter, wick_error *error);
// Frees all memory of the adapter. WICK_E_BUSY while a request or an embedding uses it, also
// one that waits: end those first. Pages that sessions and the prefix cache have computed with it
// stay theirs, and count again when the same file is loaded again. WICK_E_ARG: unknown id.
WICK_API wick_status wick_adapter_remove(wick_engine *engine, uint32_t adapter, wick_error *error);

typedef struct wick_adapter_info {
  uint32_t id;
  uint32_t tensors;      // of the model that it changes
  uint32_t rank;         // the largest
  float alpha;           // 0: none
  uint32_t users;        // requests and embeddings that use it now
  uint64_t bytes;        // that it holds
  uint64_t fingerprint;  // of the file, when complete
  bool is_complete;      // requests may choose it
  uint64_t reserved[4];
} wick_adapter_info;
// Adapter `index`, from 0 on, in the order of loading; false: there are no more.
WICK_API bool wick_adapter_get(const wick_engine *engine, uint32_t index, wick_adapter_info *info);

// An adapter that a request selects: scale 1 applies it as trained, 0 disables it.
typedef struct wick_adapter_use {
  uint32_t adapter;
  float scale;
} wick_adapter_use;

// ---- The model: what it is and what it needs, before a byte of weights is fetched ----

typedef struct wick_plan {
  uint64_t directory_bytes;  // metadata and tensor list as kept
  uint64_t tokenizer_bytes;
  uint64_t weights_bytes;  // in kernel layout
  uint64_t scratch_bytes;  // activations of a micro-batch, logits, sampling
  uint64_t kv_bytes;       // one full context
  uint64_t adapter_bytes;  // of those that are loaded or loading now
  uint64_t total_bytes;
  uint64_t outside_bytes;  // of the file: tables that stay there (wick_config.tables); not in total
  uint32_t context_tokens;
  uint32_t kv_page_bytes;  // 16 tokens, all layers
  uint64_t reserved[4];
} wick_plan;
// For the engine's configuration. WICK_E_NODATA before the directory is ready; why a model that was
// opened with directory_only does not run.
WICK_API wick_status wick_memory_plan(const wick_engine *engine, wick_plan *plan,
                                      wick_error *error);

// How the vectors of a text's tokens become one. The file's numbers are one less.
typedef enum wick_pooling {
  WICK_POOLING_MODEL = 0,  // as the file says; else the mean, of causal models the last token's
  WICK_POOLING_NONE = 1,   // they stay: one for each token
  WICK_POOLING_MEAN = 2,
  WICK_POOLING_CLS = 3,   // the first token's
  WICK_POOLING_LAST = 4,  // the last token's
  WICK_POOLING_RANK = 5   // scores, by the head of a reranker or classifier
} wick_pooling;

typedef struct wick_model_info {
  wick_text architecture, name;  // valid as long as the engine
  uint32_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab, context_trained;
  uint64_t parameters;         // values of all tensors
  bool is_encoder;             // it embeds texts and cannot continue them
  wick_pooling pooling;        // of wick_embed by default
  uint32_t embedding, scores;  // numbers of a vector, and of scores (0: it gives none)
  uint64_t reserved[8];
} wick_model_info;
// Errors as wick_memory_plan.
WICK_API wick_status wick_model_get_info(const wick_engine *engine, wick_model_info *info,
                                         wick_error *error);

// {architecture, name, shape: {layers, hidden, ...} | null, context_tokens, threads, kernels,
// k_type, v_type, tokenizer: {model, vocab, bos, eos, ...} | null, chat_template (in force) | null,
// types: {Q8_0: {tensors, bytes}, ...}, plan: {total_bytes, ...} | null, error: {status, message,
// offset_bytes} | null (why the model does not run), memory: {bytes_now, bytes_peak, ...},
// load: {files, bytes_wanted, ...}}. Before the directory is there: only what is known.
WICK_API void wick_info_json(wick_engine *engine, wick_text_sink sink, void *context);

// ---- The file: metadata and tensors, of models that do not run here, too (directory_only) ----

typedef struct wick_file_info {
  uint32_t version, alignment;  // of the GGUF file, the first one of a split model
  uint64_t directory_bytes;
  uint64_t data_offset_bytes;  // of the tensors' data
  uint32_t metadata_count, tensor_count;
  uint64_t reserved[4];
} wick_file_info;
// WICK_E_NODATA before the directory is ready.
WICK_API wick_status wick_file_get_info(const wick_engine *engine, wick_file_info *info,
                                        wick_error *error);

typedef struct wick_metadata {
  wick_text key;          // valid as long as the engine
  const char *type;       // "u32", "string", "array", ...; valid for ever
  const char *item_type;  // of an array, else NULL
  uint64_t count;         // of an array's items, else 1
  uint64_t reserved[2];
} wick_metadata;
// Entry `index` below metadata_count, in the order of the file; false: there is none.
WICK_API bool wick_metadata_get(const wick_engine *engine, uint32_t index, wick_metadata *metadata);
// Its value as JSON; of an array the first `items_max` (arrays of arrays are empty here).
WICK_API void wick_metadata_json(const wick_engine *engine, uint32_t index, uint64_t items_max,
                                 wick_text_sink sink, void *context);

typedef struct wick_tensor_info {
  wick_text name;        // valid as long as the engine
  const char *type;      // "Q8_0", ...; valid for ever
  uint32_t type_number;  // GGML's
  uint32_t dim_count;
  uint64_t dims[4];       // dims[0]: columns; 1 after dim_count
  uint32_t file;          // of a split model
  uint64_t offset_bytes;  // in its file's data
  uint64_t size_bytes;
  bool is_unread;  // the model runs here without it
  uint64_t reserved[4];
} wick_tensor_info;
// Tensor `index` below tensor_count; false: there is none.
WICK_API bool wick_tensor_get(const wick_engine *engine, uint32_t index, wick_tensor_info *tensor);

// {gguf: {version, alignment, directory_bytes, data_offset}, metadata: [{key, type, value}]
// (arrays: {key, type: "array", item_type, count, first}), tensors: [{name, type, shape, file,
// offset_bytes, size_bytes}] (with unread: true where the model runs here without it), info: as
// wick_info_json}.
WICK_API void wick_inspect_json(wick_engine *engine, wick_text_sink sink, void *context);

// How many items of a metadata array wick_inspect_json shows.
enum { WICK_INSPECT_ITEMS = 8 };

// ---- Tokens ----

enum { WICK_TOKEN_NONE = -1 };

enum {
  WICK_TOKENIZE_ADD_SPECIAL = 1,   // bos/eos as the model requires
  WICK_TOKENIZE_PARSE_SPECIAL = 2  // control tokens in the text become their ids, else plain text
};

// WICK_OK when there is a tokenizer. Why there is none: it has not arrived yet (WICK_E_NODATA), or,
// where the directory alone was opened, what is wrong with the file's (WICK_E_UNSUPPORTED, ...).
// The functions below answer the same where they need one.
WICK_API wick_status wick_tokenizer_status(const wick_engine *engine, wick_error *error);
// Ids are 0 to one below this; 0 when there is no tokenizer.
WICK_API uint32_t wick_tokenizer_vocab(const wick_engine *engine);

// Writes at most `capacity` ids and sets *count to how many there are (may be larger: the answer is
// then WICK_E_FULL and nothing else is wrong). `flags`: of WICK_TOKENIZE_*. The text need not be
// valid UTF-8. Time is linear in the text up to a logarithm. Also WICK_E_NOMEM.
WICK_API wick_status wick_tokenize(wick_engine *engine, const char *text, size_t text_bytes,
                                   uint32_t flags, int32_t *tokens, size_t capacity, size_t *count,
                                   wick_error *error);

// Room that the text of `count` tokens may need; 0 when there is no tokenizer, SIZE_MAX, which
// nobody has, where that is more than an address can tell.
WICK_API size_t wick_detokenize_bytes_max(const wick_engine *engine, size_t count);
// The text of tokens [count] into `out` [wick_detokenize_bytes_max]; *size_bytes is its length.
// is_whole: they are a text from its beginning (SPM drops the added space); has_special: control
// tokens are written, too. Bytes that are not UTF-8 become U+FFFD. WICK_E_ARG for an id that is not
// in the vocabulary.
WICK_API wick_status wick_detokenize(wick_engine *engine, const int32_t *tokens, size_t count,
                                     bool is_whole, bool has_special, char *out, size_t *size_bytes,
                                     wick_error *error);
// The bytes that one token stands for in the middle of a text, control tokens too; an unknown id
// has none. They lie in the engine, or in `scratch` [wick_detokenize_bytes_max of 0 tokens], and
// are valid as long as both.
WICK_API wick_status wick_token_bytes(wick_engine *engine, int32_t token, char *scratch,
                                      wick_text *bytes, wick_error *error);

// ---- Conversations: a chat template makes a prompt of messages ----

// The template is a stranger's program (Jinja, as transformers sets it up). A rendering has limits
// on steps and memory, so it ends within a fraction of a second.
typedef struct wick_chat {
  // A JSON object of what the template may look at: {"messages": [{"role", "content", ...}],
  // "tools", "enable_thinking", ...}. "add_generation_prompt" is true unless it says otherwise.
  // "reasoning_effort" none, minimal, low, medium, high, xhigh or max becomes what the template
  // knows: its nearest word, and the variables enable_thinking and thinking.
  const char *json;
  size_t json_bytes;
  int64_t now_s;       // local time in seconds since 1970, for templates that write a date
  bool has_now;        // now_s is given
  bool parse_special;  // control tokens in message content are parsed, not escaped
  // Messages and the arguments of their tool calls stay as they are given. Otherwise members
  // without a value are removed, and what the template refuses is written in another form: several
  // or later system messages, ids of calls. Arguments become objects, or JSON text where the
  // template accepts only that.
  bool keeps_arguments;
  uint64_t reserved[4];
} wick_chat;

// All of it 0.
WICK_API void wick_chat_default(wick_chat *chat);

// Replaces the model's own template. In addition to Jinja text, `source` may be a name: "chatml",
// which many models share; of a model that is loaded, NAME of `tokenizer.chat_template.NAME`, or
// "default" for `tokenizer.chat_template`. NULL: the model's own again, which is the one named
// "tool_use" for conversations with tools. WICK_E_ARG: the model has no template of this name
// (letters, digits, _ and - alone are a name). WICK_E_FORMAT with the line, WICK_E_FULL (too long,
// nested too deep), WICK_E_NOMEM.
WICK_API wick_status wick_chat_set_template(wick_engine *engine, const char *source,
                                            size_t source_bytes, wick_error *error);

typedef struct wick_chat_text {
  wick_text text;
  const wick_span *spans;  // [span_count]: what of it the messages have brought
  size_t span_count;
  uint64_t reserved[4];
} wick_chat_text;
// *out is valid until the next call about conversations. WICK_E_NODATA: there is no template.
// WICK_E_ARG: the template refuses these messages, with its words. WICK_E_FORMAT: an error in the
// template or in the JSON. WICK_E_UNSUPPORTED: a filter or test that is not known. WICK_E_FULL:
// over a limit. Also WICK_E_OVERFLOW, WICK_E_NOMEM.
WICK_API wick_status wick_chat_render(wick_engine *engine, const wick_chat *chat,
                                      wick_chat_text *out, wick_error *error);
// The tokens of the rendered conversation: control tokens that the template writes are control
// tokens, the content of messages is always text, whatever it looks like. *tokens [*count] is valid
// until the next call about conversations, for example as wick_request.tokens. Errors as
// wick_chat_render and wick_tokenize.
WICK_API wick_status wick_chat_tokenize(wick_engine *engine, const wick_chat *chat,
                                        const int32_t **tokens, size_t *count, wick_error *error);

// ---- Images and audio: an mmproj file next to the model encodes them ----

// An image or a recording becomes rows that take the place of tokens. Rows have tokens, too: ids
// below WICK_TOKEN_NONE, hashes of the content and the encoder, which sessions hold and prompts
// repeat. A build may be without encoders.
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

enum { WICK_MEDIA_RATE = 16000 };  // samples a second

// Loads the encoders of an mmproj file, once an engine, after the model's directory is ready. File
// 0 of the reader is that file. WICK_E_FORMAT, WICK_E_SHAPE, WICK_E_UNSUPPORTED, WICK_E_TRUNCATED,
// WICK_E_NODATA (missing tensors, or no model yet), WICK_E_NOMEM, WICK_E_IO, WICK_E_BUSY (there are
// encoders already), WICK_E_ARG (a piece without bytes).
WICK_API wick_status wick_media_load_from(wick_engine *engine, const wick_reader *reader,
                                          wick_error *error);
// The same of a file in memory; the bytes may be freed afterwards.
WICK_API wick_status wick_media_load_bytes(wick_engine *engine, const void *bytes,
                                           size_t size_bytes, wick_error *error);
// Whether such input can be encoded.
WICK_API bool wick_media_has(const wick_engine *engine, wick_media_kind kind);

// The cost of an image or a recording.
typedef struct wick_media_info {
  wick_media_kind kind;
  uint32_t tokens;  // of the prompt: rows, and the marks around them
  uint32_t rows;
  uint32_t tiles;         // images that are encoded one after the other, or pieces of a recording
  uint64_t macs;          // multiply-adds of encoding
  uint64_t rows_bytes;    // memory of the rows
  uint64_t encode_bytes;  // memory while it is encoded, at most
  bool is_ready;          // it is encoded
  uint64_t reserved[4];
} wick_media_info;

// The cost from the size alone. WICK_E_ARG (a size out of range), WICK_E_NODATA (no encoder for
// images), WICK_E_FULL (the model reads the image at once, and it is longer than a batch),
// WICK_E_NOMEM.
WICK_API wick_status wick_media_plan_image(wick_engine *engine, uint32_t width, uint32_t height,
                                           wick_media_info *info, wick_error *error);
WICK_API wick_status wick_media_plan_audio(wick_engine *engine, uint64_t samples,
                                           wick_media_info *info, wick_error *error);
// Takes an image, rgb[height][width][3], or a recording of WICK_MEDIA_RATE mono samples from -1 to
// 1. It is resized, or its spectra are computed; encoding is left to wick_media_step. Content that
// is held already, also one that was removed and is still cached, has the number that it had.
// Errors as above; WICK_E_NONFINITE (samples).
WICK_API wick_status wick_media_add_image(wick_engine *engine, const uint8_t *rgb, uint32_t width,
                                          uint32_t height, uint32_t *media, wick_error *error);
WICK_API wick_status wick_media_add_audio(wick_engine *engine, const float *samples, uint64_t count,
                                          uint32_t *media, wick_error *error);
// WICK_E_ARG: unknown number.
WICK_API wick_status wick_media_get_info(const wick_engine *engine, uint32_t media,
                                         wick_media_info *info, wick_error *error);
// Encodes for about budget_us (0: one layer), between steps of requests. WICK_E_ARG,
// WICK_E_NONFINITE (the weights give no numbers), WICK_E_NOMEM, after which it may be repeated.
WICK_API wick_status wick_media_step(wick_engine *engine, uint32_t media, uint64_t budget_us,
                                     bool *is_ready, wick_error *error);
// The caller of wick_media_add_* no longer needs it. Requests and sessions keep its rows; the
// engine keeps those that were used last, of wick_config.media_bytes_max. Unknown number:
// WICK_E_ARG.
WICK_API wick_status wick_media_remove(wick_engine *engine, uint32_t media);

// A prompt with images and recordings where its texts have a marker.
typedef struct wick_media_prompt {
  const wick_chat *chat;  // a conversation with the marker in contents; NULL: `text`
  const char *text;       // control tokens in it are tokens
  size_t text_bytes;
  const char *marker;  // a text that is nowhere else, such as a random number
  size_t marker_bytes;
  const uint32_t *media;  // [media_count] in the order of the markers
  uint32_t media_count;
  uint64_t reserved[4];
} wick_media_prompt;
// *tokens [*count] is valid until the next call, as wick_request.tokens, when all is encoded. Each
// text between two images is tokenised alone. WICK_E_ARG also if the rendered text has another
// number of markers; else as wick_chat_tokenize.
WICK_API wick_status wick_media_tokenize(wick_engine *engine, const wick_media_prompt *prompt,
                                         const int32_t **tokens, size_t *count, wick_error *error);

// ---- Replies: what a chat model writes, split into its parts ----

// How models write calls of tools and reasoning is learnt from the control strings in the source of
// the chat template. A template without any gets all forms that cannot be mistaken for prose.

typedef struct wick_reply wick_reply;

// The text that the template wrote after the last message of the most recently rendered
// conversation: the beginning of the reply, which may have opened the reasoning. Valid until the
// next call about conversations. *has_reasoning: the template knows marks of reasoning.
// *needs_special: they are control tokens, so a request for a reply should set print_special. (One
// with tools should, too.)
WICK_API wick_text wick_chat_ending(wick_engine *engine, bool *has_reasoning, bool *needs_special);

// For one reply. `tools` is OpenAI's JSON array of them, or the object of WICK_GRAMMAR_TOOLS with
// `has_begun`; NULL: calls are content. `ending` is what wick_chat_ending gave. All is copied;
// destroy it before the engine. WICK_E_ARG (tools), WICK_E_FULL, WICK_E_NOMEM.
WICK_API wick_status wick_reply_create(wick_engine *engine, const char *tools, size_t tools_bytes,
                                       const char *ending, size_t ending_bytes, wick_reply **out,
                                       wick_error *error);
WICK_API void wick_reply_destroy(wick_reply *reply);  // NULL is fine
// Reads a further piece. *deltas is a JSON array of what it brought, in order, valid until the next
// call: {"content"}, {"reasoning_content"}, or {"tool_calls": [{"index", "id", "type", "function":
// {"name", "arguments"}}]}; further pieces of a call's arguments have no id, type and name, and an
// id is empty where the model gave none. WICK_E_FORMAT: the text of a call broke, with its number
// and place; WICK_E_TRUNCATED: with `is_last`, within a call; WICK_E_FULL, WICK_E_NOMEM. After an
// error *deltas is what came before it, and each call answers the same. error->numbers[0] is the
// byte of the reply where the text of the broken call begins, with the mark and the white space
// before it; numbers[1] is how many calls before it are whole.
WICK_API wick_status wick_reply_read(wick_reply *reply, const char *text, size_t text_bytes,
                                     bool is_last, wick_text *deltas, wick_error *error);

// ---- Requests ----

enum {
  WICK_BIAS_MAX = 1024,
  WICK_LOGPROBS_MAX = 20,
  WICK_PENALTY_LAST_MAX = 1 << 20,
  WICK_SAMPLERS_MAX = 16,
  WICK_DRY_BREAKERS_MAX = 16,
  WICK_DRY_BREAKER_BYTES_MAX = 40,
  WICK_STOPS_MAX = 64,
  WICK_STOP_BYTES_MAX = 256,  // of one stop string
  WICK_PRIORITY_MIN = -100,
  WICK_PRIORITY_MAX = 100,
  WICK_COMPLETIONS_MAX = 16,  // of one prompt
  // A request that has waited for this many passes goes before all later ones, whatever their
  // priority.
  WICK_PASSES_WAITED_MAX = 512
};

typedef struct wick_bias {
  int32_t token;
  float bias;  // added to the logit; -100 and less, also -inf, forbids the token
} wick_bias;

// Of a window of last tokens: the whole context, at most WICK_PENALTY_LAST_MAX tokens.
#define WICK_LAST_CONTEXT UINT32_MAX

// From logits to a token: bias, grammar, the samplers in their order, softmax, seeded choice. The
// same on every host. The samplers are llama.cpp's. Tokens that bias or grammar forbid are not
// candidates for them.
typedef struct wick_sampling {
  uint64_t seed;
  // begin of sampling: made of include/options.mjs
  float temperature;            // set the temperature; default 0: greedy. Of equally likely tokens,
                                // greedy takes the one with the lowest id
  uint32_t top_k;               // sample from the top_k most likely tokens; default 0: all
  float top_p;                  // sample from the most likely tokens that add up to top_p; default
                                // 1: all, 0: the most likely
  float min_p;                  // keep tokens at least min_p times as likely as the best; default
                                // 0: all
  float repeat_penalty;         // penalize repeated tokens (Keskar et al. 2019, as llama.cpp
                                // applies it); default 1: off
  float frequency_penalty;      // penalize tokens by frequency (OpenAI); default 0: off
  float presence_penalty;       // penalize tokens that occurred (OpenAI); default 0: off
  uint32_t penalty_last;        // apply penalties to the last penalty_last tokens; default 64, 0:
                                // none, WICK_LAST_CONTEXT
  float typical_p;              // keep tokens of typical surprise that add up to typical_p (Meister
                                // et al. 2022); default 1: off
  float top_n_sigma;            // keep logits at most top_n_sigma standard deviations below the
                                // best (Tang et al. 2024); default -1: off
  float xtc_probability;        // set the probability of keeping only the least of the top choices;
                                // default 0: off
  float xtc_threshold;          // set the least probability of a top choice; default 0.1, over 0.5:
                                // off
  float dynatemp_range;         // vary the temperature by up to dynatemp_range with the entropy;
                                // default 0: off
  float dynatemp_exponent;      // set the exponent of the entropy; default 1. The entropy is
                                // relative to the most that it could be
  float dry_multiplier;         // set DRY's penalty of repetitions; default 0: off. A token that
                                // would continue a repetition of n tokens loses dry_multiplier *
                                // dry_base ** (n - dry_allowed_length)
  float dry_base;               // set the growth of DRY's penalty per token; default 1.75
  uint32_t dry_allowed_length;  // allow repetitions of dry_allowed_length tokens; default 2
  uint32_t dry_penalty_last;    // apply DRY to the last dry_penalty_last tokens; default
                                // WICK_LAST_CONTEXT, 0: off
  uint32_t mirostat;            // use Mirostat 1 or 2 (Basu et al. 2021); default 0: off. Of the
                                // other samplers only the temperature is applied then
  float mirostat_tau;           // set Mirostat's surprise in bits; default 5
  float mirostat_eta;           // set Mirostat's learning rate; default 0.1
  float adaptive_target;        // prefer tokens of about probability adaptive_target by adaptive-p;
                                // default -1, below 0: off
  float adaptive_decay;         // set the decay of adaptive-p's memory; default 0.9
  const char *samplers;         // in their order, a letter each, at most WICK_SAMPLERS_MAX: 'e'
                                // penalties, 'd' dry, 's' top_n_sigma, 'k' top_k, 'y' typ_p, 'p'
                                // top_p, 'm' min_p, 'x' xtc, 't' temperature, 'a' adaptive_p.
                                // Samplers that are not listed are off; 'a' chooses at the end,
                                // regardless of its place. NULL: "edskypmxta"
  // end of sampling
  const wick_bias *bias;  // [bias_count]
  uint32_t bias_count;
  uint32_t logprobs;  // alternatives to report; 0: none
  bool logprob;       // report the chosen token's, also without alternatives
  // Texts over which no repetition of DRY reaches, of 1 to WICK_DRY_BREAKER_BYTES_MAX bytes; NULL:
  // "\n", ":", "\"" and "*".
  const char *const *dry_sequence_breakers;
  const size_t *dry_breaker_bytes;
  uint32_t dry_breaker_count;
  // They are of the distribution that the samplers leave and the token is drawn from. Else of the
  // model's own, before bias, grammar and samplers.
  bool logprobs_after;
} wick_sampling;

// ---- Grammars: what a text may be ----

typedef enum wick_grammar_kind {
  WICK_GRAMMAR_NONE = 0,
  WICK_GRAMMAR_GBNF = 1,         // as llama.cpp has it, from its rule "root"
  WICK_GRAMMAR_JSON_SCHEMA = 2,  // drafts 4, 6, 7, 2019-09, 2020-12
  WICK_GRAMMAR_REGEX = 3,        // ECMA-262 with the flag u; the whole text matches
  WICK_GRAMMAR_CHOICE = 4,       // a JSON array of texts
  // The output of a chat model that may call tools, in the form of the engine's chat template, read
  // by wick_reply_read. The text is a JSON object of `tools`, `tool_choice` ("auto", "required", or
  // {"function": {"name"}}), `parallel_tool_calls`, as OpenAI has them, `ending`, the part of the
  // prompt after the messages, `has_begun`: its end is content, and `content`: {"kind", "text"}, a
  // grammar of the content after the reasoning. "auto": free until a call begins, or the content;
  // else nothing but calls after the reasoning. Text that begins as a call has arguments of its
  // schema, or WICK_E_UNSUPPORTED names what cannot be. print_special belongs to it, but for plain
  // <think>.
  WICK_GRAMMAR_TOOLS = 5
} wick_grammar_kind;

typedef struct wick_grammar {
  wick_grammar_kind kind;
  const char *text;
  size_t text_bytes;
  // Every way to write what the grammar means: white space, escapes and numbers as JSON has them,
  // members that a schema neither declares nor forbids; a regular expression is searched in the
  // text. Else one way, which takes the fewest tokens: to check texts this is set, to write them
  // not.
  bool any_spelling;
  // Free text before: the constraint applies after each occurrence of this text. None:
  // from the beginning.
  const char *trigger;
  size_t trigger_bytes;
  // This text follows the constraint, and then free text again. None: nothing follows.
  const char *marker;
  size_t marker_bytes;
  // How the text begins in the prompt already: the grammar holds for this and what follows. A
  // request with a JSON schema that needs another white space for it allows any spelling. Copied.
  // WICK_E_ARG, with the byte: no text begins so.
  const char *begun;
  size_t begun_bytes;
  uint64_t reserved[4];
} wick_grammar;

// A limit of reasoning. When a reply has spent this many tokens on it, the mark that ends reasoning
// follows as if it had been sampled, and the answer comes. The marks are those of the engine's chat
// template; nothing is limited in a text without them.
typedef struct wick_reasoning {
  uint32_t tokens_max;
  // How the reply begins, which may have opened the reasoning: the result of wick_chat_ending, and
  // the part of the prompt after it; or all of the prompt.
  const char *ending;
  size_t ending_bytes;
  uint64_t reserved[4];
} wick_reasoning;

// Compiles a grammar of a request for a few milliseconds. True: wick_request_submit does not have
// to compile it; the grammar may also have been refused, which submit reports. Call it until then,
// between other work, and submit at once. Without it, submit compiles the whole grammar.
WICK_API bool wick_grammar_prepare(wick_engine *engine, const wick_grammar *grammar);

// A standalone grammar, to check texts with.
typedef struct wick_constraint wick_constraint;

// `engine` gives its vocabulary and its memory; NULL: there is none, and no token can be named.
// WICK_E_ARG (the grammar is broken; the message names the place), WICK_E_UNSUPPORTED (it cannot be
// honoured; the message names what), WICK_E_FULL (it is too large), WICK_E_NOMEM. With an engine
// also as wick_tokenizer_status, and the constraint is destroyed before the engine.
WICK_API wick_status wick_constraint_create(wick_engine *engine, const wick_grammar *grammar,
                                            wick_constraint **out, wick_error *error);
WICK_API void wick_constraint_destroy(wick_constraint *constraint);
// `texts` is a JSON array. Writes a JSON array: is each text a complete one? With an engine, texts
// are taken as their tokens, and an item may be an array of token ids instead, control tokens among
// them. WICK_E_ARG if it is not such an array, WICK_E_NOMEM.
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

  int32_t priority;  // higher ones go first; WICK_PRIORITY_MIN to _MAX, 0 is usual
  // Passes that it has waited for in a queue of the host. They count as waited for here: of
  // requests that have waited for long, the one that has waited longest goes first.
  uint32_t passes_waited;
  uint32_t completions;  // of one prompt, which is read once; 0: 1. Their ids follow each other and
                         // their seeds, too
  // The prompt, a text, may end inside of what the tokenizer would make one token: its last token
  // (or up to 4, of which whole characters are) is taken back, and what is sampled begins with its
  // bytes: the first token does, if it was one. They are not returned again; the tokens that have
  // them count. WICK_E_ARG with a grammar.
  bool healing;
  bool no_speculation;     // never proposes what may follow
  bool always_speculates;  // proposes whether that pays or not, for tests and measurements
  uint32_t session;        // the text follows what this session holds, which keeps all; 0: none
  // Whose it is: what one tenant had read is not found by another. None: those without a name. A
  // session has its own.
  const char *salt;
  size_t salt_bytes;
  uint32_t max_tokens;  // 0: until the context is full
  bool prefill_only;    // the prompt is read, nothing is sampled (max_tokens is ignored)
  // The tokens [first, last) of the session are dropped as soon as the others have seen them: all
  // is read but the token that a full context has no place for. Without a prompt, and prefill_only;
  // both 0: nothing is dropped.
  uint32_t drop_first, drop_last;
  wick_sampling sampling;
  // The output is a text of this grammar, or the beginning of one where max_tokens, a stop
  // string or the context end it earlier. Only tokens that the grammar allows are sampled, and end
  // tokens where the text may end; where nothing can follow, the request ends as stopped. The first
  // grammar of an engine takes time for the vocabulary (151,936 tokens: 40 ms). Copied; NULL: none.
  const wick_grammar *grammar;
  // If the grammar refuses the mark, none is written. Copied; NULL: reasoning has no limit.
  const wick_reasoning *reasoning;
  const char *const *stops;  // stop strings
  const size_t *stop_bytes;
  uint32_t stop_count;
  bool ignore_end;     // continue after an end token (benchmarks)
  bool print_special;  // control tokens as text

  // For experiments: before a token is drawn the request waits for the host (WICK_EVENT_LOGITS,
  // wick_request_logits). It has no proposals, and is not asked about certain tokens of a grammar.
  bool asks_host;

  // Adapters, each at most once; their order does not matter. On a session whose tokens were read
  // under others, these tokens are read again; where tokens were dropped from its middle, that is
  // WICK_E_MISMATCH. A request that drops tokens has the session's own. Copied; none: NULL.
  const wick_adapter_use *adapters;
  uint32_t adapter_count;  // at most WICK_ADAPTERS_MAX

  // Measurements: these tokens come out, whatever the logits say (what random weights say repeats
  // itself). NULL: none. Ids as in `tokens`.
  const int32_t *forced;
  size_t forced_count;

  // Called from wick_step for every prompt position with its logits [vocab], which are valid during
  // the call; NULL otherwise.
  void (*on_logits)(void *context, uint32_t position, const float *logits, uint32_t vocab);
  void *on_logits_context;
  uint64_t reserved[16];
} wick_request;

// Greedy, special tokens added and parsed, everything else off.
WICK_API void wick_request_default(wick_request *request);

// Queues a request. Its prompt is tokenised here; everything is copied. It runs concurrently with
// others as soon as there are KV pages for its maximum size, in the order of arrival. WICK_E_ARG
// (empty prompt, id out of the vocabulary, a setting out of its range), WICK_E_SEQ and WICK_E_BUSY
// (its session), WICK_E_FULL (prompt over the context, or the queue is full), WICK_E_NODATA
// (directory not ready; an adapter is not complete), WICK_E_UNSUPPORTED (the model is an encoder),
// WICK_E_MISMATCH (adapters and the session), WICK_E_NOMEM; of a grammar what
// wick_constraint_create answers. May be submitted while weights are still arriving.
WICK_API wick_status wick_request_submit(wick_engine *engine, const wick_request *request,
                                         uint32_t *id, wick_error *error);
// A paused one keeps its place and, while nobody else needs them, its pages, but takes part in
// nothing (a reader that does not keep up). Unknown id: WICK_E_ARG.
WICK_API wick_status wick_request_pause(wick_engine *engine, uint32_t id, bool is_paused);
// The next step ends it with finish reason WICK_FINISH_ABORT. When it shares a pass with others, it
// ends after that pass, whose tokens still come. Unknown id: WICK_E_ARG.
WICK_API wick_status wick_request_cancel(wick_engine *engine, uint32_t id);

typedef struct wick_logits {
  float *values;  // [vocab] as the model gave them; the host may change them
  uint32_t vocab;
  const int32_t *tokens;  // [token_count]: the prompt and what was drawn
  uint32_t token_count;
  uint64_t reserved[4];
} wick_logits;
// The logits of a request with `asks_host` that waits, valid until it resumes. Bias, grammar and
// samplers are applied later. WICK_E_ARG: it does not wait.
WICK_API wick_status wick_request_logits(wick_engine *engine, uint32_t id, wick_logits *logits);
// Resumes it with the values. NaN or +Inf among them, or nothing but -Inf, end it with
// WICK_E_NONFINITE. WICK_E_ARG: it does not wait.
WICK_API wick_status wick_request_go_on(wick_engine *engine, uint32_t id);

// From now on `draft`, an engine with a smaller model of the same vocabulary, proposes what may
// follow in requests of `engine`; their texts stay the same. Both are loaded; the draft takes no
// requests any more, and is destroyed after `engine`. Once an engine. WICK_E_NODATA (one is not
// loaded), WICK_E_MISMATCH (another vocabulary), WICK_E_BUSY (there is one already, or requests run
// on the draft), WICK_E_NOMEM.
WICK_API wick_status wick_engine_set_draft(wick_engine *engine, wick_engine *draft,
                                           wick_error *error);

// ---- Sessions: a text that continues from request to request ----

// A request on a session (wick_request.session) reads its prompt after what the session holds, and
// leaves prompt and answer in it (an end token is left out); one that ends before it has read its
// prompt leaves the session as it was. Errors: WICK_E_SEQ, WICK_E_BUSY while a request is on it,
// WICK_E_NOMEM, WICK_E_NODATA before the directory is ready.
WICK_API wick_status wick_session_create(wick_engine *engine, uint32_t *session, wick_error *error);
// Of the tenant of this name (wick_request.salt), as its forks are, and what is saved of it.
WICK_API wick_status wick_session_create_salted(wick_engine *engine, const char *salt,
                                                size_t salt_bytes, uint32_t *session,
                                                wick_error *error);
// Shares every page; the first write of either to a shared page copies that page alone.
WICK_API wick_status wick_session_fork(wick_engine *engine, uint32_t session, uint32_t *child,
                                       wick_error *error);
// Keeps the first `tokens`; also WICK_E_RANGE.
WICK_API wick_status wick_session_truncate(wick_engine *engine, uint32_t session, uint32_t tokens,
                                           wick_error *error);
// Drops the tokens [first, last) from the middle; what follows keeps its keys, moved by rotation.
// Tokens that have not been read, or have lost their pages to others, are read later and have not
// seen them: to have the same text whoever else is there, let a request drop them
// (wick_request.drop_last).
WICK_API wick_status wick_session_drop(wick_engine *engine, uint32_t session, uint32_t first,
                                       uint32_t last, wick_error *error);
WICK_API wick_status wick_session_close(wick_engine *engine, uint32_t session, wick_error *error);
// *tokens [*count] stays valid until the session changes.
WICK_API wick_status wick_session_tokens(const wick_engine *engine, uint32_t session,
                                         const int32_t **tokens, uint32_t *count,
                                         wick_error *error);

// ---- Saved state: versioned, checksummed, for this model and these KV types only ----

// Takes bytes in order; false: it failed.
typedef struct wick_state_sink {
  void *context;
  bool (*write)(void *context, const void *bytes, size_t size_bytes);
} wick_state_sink;

// Returns exactly this many of the next bytes; false: it failed.
typedef struct wick_state_source {
  void *context;
  bool (*read)(void *context, void *bytes, size_t size_bytes);
  uint64_t size_bytes;  // of all
} wick_state_source;

// Writes a session; session 0: the prefix cache. Also WICK_E_NODATA while the model is loading,
// WICK_E_IO when the sink says no.
WICK_API wick_status wick_state_save(wick_engine *engine, uint32_t session,
                                     const wick_state_sink *sink, wick_error *error);
// How many bytes wick_state_save would write now.
WICK_API wick_status wick_state_bytes(const wick_engine *engine, uint32_t session,
                                      uint64_t *size_bytes, wick_error *error);

// Writes a session with its keys and values in other types, such as WICK_KV_Q8 of an engine that
// has F16: a smaller record, which an engine of this engine's own types loads. Evicted content is
// lost; a session loaded from it shares no pages with other requests. Recurrent states stay as they
// are. As above; also WICK_E_ARG, WICK_E_UNSUPPORTED for types that cannot be.
WICK_API wick_status wick_session_save_packed(wick_engine *engine, uint32_t session,
                                              wick_kv_type k_type, wick_kv_type v_type,
                                              const wick_state_sink *sink, wick_error *error);
WICK_API wick_status wick_session_packed_bytes(const wick_engine *engine, uint32_t session,
                                               wick_kv_type k_type, wick_kv_type v_type,
                                               uint64_t *size_bytes, wick_error *error);

typedef struct wick_state_loaded {
  uint32_t session;  // a new one; 0: it was a prefix cache
  uint32_t entries;  // of it that were entered
  uint64_t reserved[2];
} wick_state_loaded;
// Sizes are checked against what the source has before anything is allocated. Another model, KV
// type or shape, or an adapter that the session was read under is not loaded: WICK_E_MISMATCH. Not
// a record, or of a version that is not read: WICK_E_FORMAT. Ends early: WICK_E_TRUNCATED. Damaged:
// WICK_E_CORRUPT. The source says no: WICK_E_IO. Also WICK_E_PAGES, WICK_E_NOMEM, WICK_E_FULL.
// After a failure everything is as it was.
WICK_API wick_status wick_state_load(wick_engine *engine, const wick_state_source *source,
                                     wick_state_loaded *loaded, wick_error *error);

// ---- Working ----

typedef enum wick_step_result {
  WICK_STEP_IDLE = 0,       // nothing more to do; this step may have left events to take
  WICK_STEP_PROGRESS = 1,   // call again (take the events first)
  WICK_STEP_WAIT_BYTES = 2  // the next layer's weights are not there yet
} wick_step_result;

// Works for about budget_us (0: one unit of work), a unit being one layer of one pass or one round
// of logits. Failures of a request end that request by an event; the engine continues.
WICK_API wick_step_result wick_step(wick_engine *engine, uint64_t budget_us);
// Works for `units` units, at least one, without looking at the clock: for hosts whose clock does
// not advance while a program computes.
WICK_API wick_step_result wick_step_units(wick_engine *engine, uint32_t units);

// ---- Embeddings: texts become vectors, or scores ----

// A text, a pair of texts for a reranker, or tokens.
typedef struct wick_embed_text {
  const char *text;  // of a pair the query
  size_t text_bytes;
  const char *document;  // NULL: no pair
  size_t document_bytes;
  const int32_t *tokens;  // not NULL: instead, fed as they are, nothing is added
  size_t token_count;
} wick_embed_text;

typedef struct wick_embed_request {
  const wick_embed_text *texts;  // [text_count], at least one
  uint32_t text_count;
  wick_pooling pooling;
  uint32_t dimensions;  // the first ones are kept; 0: all
  bool normalizes;      // divide vectors by their length; scores never are
  bool truncates;       // texts over the context are cut, but for their last token; else refused
  const wick_adapter_use *adapters;  // as wick_request.adapters
  uint32_t adapter_count;
  uint64_t reserved[8];
} wick_embed_request;

// All of it 0.
WICK_API void wick_embed_default(wick_embed_request *request);

// Begins: makes tokens of the texts and copies them. Jobs that were begun are processed by
// wick_embed_step, next to requests. A request may take the pages of a text, which is then read
// again. A vector depends on its text alone. WICK_E_ARG (no texts, an empty one, an id out of the
// vocabulary, a setting out of its range), WICK_E_FULL (a text over the context),
// WICK_E_UNSUPPORTED (scores of a model without a head), WICK_E_BUSY (what was begun before was not
// ended), WICK_E_NODATA (directory not ready), WICK_E_NOMEM.
WICK_API wick_status wick_embed(wick_engine *engine, const wick_embed_request *request,
                                wick_error *error);
// Works for about budget_us (0: one unit). Texts wait for pages while requests run. *result:
// WICK_STEP_IDLE when all is done. Final errors: WICK_E_PAGES (no room for a text even without
// requests), WICK_E_NONFINITE, WICK_E_NOMEM; WICK_E_NODATA when nothing was begun.
WICK_API wick_status wick_embed_step(wick_engine *engine, uint64_t budget_us,
                                     wick_step_result *result, wick_error *error);

typedef struct wick_vectors {
  const float *values;   // [rows][width], valid until wick_embed_end
  uint32_t rows, width;  // rows: 1, or the text's tokens without pooling
  uint32_t tokens;       // of the text
  uint64_t reserved[4];
} wick_vectors;
// Of text `index`, once all is done. False before, and for other numbers.
WICK_API bool wick_embed_get(const wick_engine *engine, uint32_t index, wick_vectors *vectors);
// Frees a job, done or not. Nothing begun is fine.
WICK_API void wick_embed_end(wick_engine *engine);

// ---- Events: what happened, as records in one buffer ----

typedef enum wick_event_kind {
  WICK_EVENT_TOKEN = 1,    // a sampled token and the text that can be shown now (may be empty)
  WICK_EVENT_PREFILL = 2,  // tokens_prompt of which tokens_cached (= done so far) are processed
  WICK_EVENT_DONE = 3,     // the last one of a request; text: what was held back, or the error's
  WICK_EVENT_LOGITS = 4    // the request waits for the host (wick_request.asks_host)
} wick_event_kind;

typedef enum wick_finish {
  WICK_FINISH_NONE = 0,
  WICK_FINISH_STOP = 1,    // end token or stop string
  WICK_FINISH_LENGTH = 2,  // max_tokens or context full
  WICK_FINISH_ABORT = 3,
  WICK_FINISH_ERROR = 4  // `status`; the text is the message
} wick_finish;

// Same layout on every host. After the struct: top_count pairs {int32 token, float logprob}, then
// text_bytes of UTF-8, then padding to a multiple of 8; wick_event_top and wick_event_text read
// them.
typedef struct wick_event {
  uint32_t size_bytes;  // of the whole record
  uint32_t request;
  uint32_t kind;  // wick_event_kind
  int32_t token;  // WICK_TOKEN_NONE when none
  float logprob;
  uint32_t top_count;
  uint32_t text_bytes;
  uint16_t finish;   // wick_finish, of DONE
  uint16_t stop;     // of DONE: 1 + the number of the stop string that ended it; 0: none did
  uint16_t status;   // wick_status, of DONE by error
  uint16_t subject;  // wick_subject, of DONE by error
  uint32_t tokens_prompt;
  uint32_t tokens_cached;  // PREFILL: processed so far; DONE: taken from a cache
  uint32_t tokens_out;
  double queue_ms, prefill_ms, decode_ms;  // of DONE
  double ttft_ms;                          // from submit to the first token
} wick_event;

// All events since the last call; *size_bytes is 0 when there are none. They stay valid until the
// next wick_step, submit or cancel. A full buffer parks wick_step (it answers PROGRESS) until
// events are taken.
WICK_API const uint8_t *wick_events_take(wick_engine *engine, size_t *size_bytes);
// The record after `event` among those that wick_events_take returned, the first one for NULL; NULL
// after the last.
WICK_API const wick_event *wick_event_next(const uint8_t *events, size_t size_bytes,
                                           const wick_event *event);
// Its text [text_bytes], valid as long as the event.
WICK_API const char *wick_event_text(const wick_event *event);

typedef struct wick_logprob {
  int32_t token;
  float logprob;  // natural logarithm
} wick_logprob;
// Alternative `index` below top_count, the most probable first.
WICK_API wick_logprob wick_event_top(const wick_event *event, uint32_t index);

// ---- Figures ----

enum { WICK_STATS_ROWS_MAX = 16 };

// Since the engine began, but for the first line, which is of now; zeros before the directory is
// ready.
typedef struct wick_stats {
  uint32_t running, waiting, paused;
  uint32_t running_max, waiting_max;
  uint64_t submitted, refused;                // refused: the queue was full
  uint64_t stopped, length, aborted, failed;  // how they ended
  uint64_t preempted;                         // pages given up for others
  uint64_t swapped_out, swapped_in;           // their pages kept by the host; taken back
  uint64_t swap_failed;                       // refused, or damaged: read again instead
  uint64_t passes, rows;                      // rows: tokens that went through the model
  uint64_t tokens_prompt, tokens_cached;      // read; of prompts that began with cached pages
  uint64_t tokens_recomputed;                 // read again after a preemption
  uint64_t tokens_out;
  float pass_us[WICK_STATS_ROWS_MAX + 1];     // lately, of one request's 1, 2, ... rows; 0: unknown
  uint64_t tokens_proposed, tokens_accepted;  // by speculation
  uint64_t draft_failed;  // passes of the draft model, or of a predicting layer, that failed
  uint64_t reserved[16];
} wick_stats;
WICK_API void wick_stats_get(const wick_engine *engine, wick_stats *stats);
// {requests: {running, waiting, paused, ...}, tokens: {prompt, cached, recomputed, out, proposed,
// accepted}, pass_us: [of one request's 1, 2, ... rows, lately; 0: not measured], passes, rows}.
WICK_API void wick_stats_json(wick_engine *engine, wick_text_sink sink, void *context);

typedef struct wick_pages_state {
  uint32_t page_tokens;      // of one page
  uint32_t pages_used;       // by requests, sessions and the prefix cache
  uint32_t pages_available;  // that may still be taken, without what is kept for requests
  uint64_t reserved[4];
} wick_pages_state;
// Zeros before the directory is ready.
WICK_API void wick_pages_get_state(const wick_engine *engine, wick_pages_state *state);
// The KV pages, who has them, and what is running: {page_tokens, page_bytes, k_type, v_type, pages:
// {all, free, available, shared, cached, used_max}, bytes: {used, capacity} (of all groups and
// states), groups: [{layers, window_tokens, page_bytes, pages: {all, free}, bytes}], states:
// {state_bytes, slots, free, cached} | null, sequences, forks, cow_copies, pages_allocated,
// pages_freed, nonfinite_values, fragmentation: {...}, sessions, prefix: {...} | null, requests:
// {running, waiting} and, with `has_map`, map: [texts of a letter a page: '.' free, 'p' private,
// 's' shared, 'c' cached only]}. A group is layers whose keys and values have one shape and one
// sliding window; page_bytes, pages and map are of the pool that keeps all positions. {} before
// there is a model.
WICK_API void wick_pages_json(wick_engine *engine, bool has_map, wick_text_sink sink,
                              void *context);
// The KV pages that the prefix cache has of a prompt (without a salt), from its beginning, the last
// one first: [places in the map of wick_pages_json]. Nothing is read and no counter changes.
WICK_API void wick_pages_find(wick_engine *engine, const int32_t *tokens, size_t count,
                              wick_text_sink sink, void *context);

// The time that the ops of the forward pass took since the start or the last reset; empty unless
// config.metrics. {elapsed_s, timer_grain_us, kernels, passes: {prefill: {OP: {count, timed,
// time_us, latency_us: {mean, ...}, bytes, macs, gb_per_s, gmac_per_s, share}}, decode: {...}},
// dispatch}. Rates are null when the clock saw no time pass.
WICK_API void wick_metrics_json(const wick_engine *engine, wick_text_sink sink, void *context);
// Prometheus text format 0.0.4.
WICK_API void wick_metrics_prometheus(const wick_engine *engine, wick_text_sink sink,
                                      void *context);
WICK_API void wick_metrics_reset(wick_engine *engine);

typedef struct wick_op_metrics {
  const char *pass, *op;    // "prefill" or "decode"; "qkv", "attention", ...; valid for ever
  uint64_t count;           // of all passes; the rest is of those that were timed
  uint64_t time_us, bytes;  // bytes: that the op has to read and write
  uint64_t macs;            // multiply-adds
  double mean_us, p50_us, p99_us;
  double share;  // of the time of its kind of pass
  uint64_t reserved[4];
} wick_op_metrics;
// Row `index`, from 0 on; those of prefill come first. False: there are no more, or no metrics.
WICK_API bool wick_metrics_get(const wick_engine *engine, uint32_t index, wick_op_metrics *metrics);

#ifdef __cplusplus
}
#endif

#endif
