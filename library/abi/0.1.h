// library/abi/0.1.h — the interface of libwick.so.0.1, written by tools/build/abi.mjs --record.
#ifndef WICK_H
#define WICK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#ifndef WICK_API
#if defined(WICK_SHARED) && defined(__GNUC__)
#define WICK_API __attribute__((visibility("default")))
#else
#define WICK_API
#endif
#endif
#define WICK_VERSION_MAJOR 0
#define WICK_VERSION_MINOR 1
#define WICK_VERSION_PATCH 0
#define WICK_VERSION (WICK_VERSION_MAJOR * 10000 + WICK_VERSION_MINOR * 100 + WICK_VERSION_PATCH)
WICK_API uint32_t wick_version(void);
typedef enum wick_status {
  WICK_OK = 0,
  WICK_E_ARG = 1,
  WICK_E_PAGES = 2,
  WICK_E_SEQ = 3,
  WICK_E_RANGE = 4,
  WICK_E_CORRUPT = 5,
  WICK_E_OVERFLOW = 6,
  WICK_E_NOMEM = 7,
  WICK_E_SHAPE = 8,
  WICK_E_NONFINITE = 9,
  WICK_E_FULL = 10,
  WICK_E_BUSY = 11,
  WICK_E_NODATA = 12,
  WICK_E_MISMATCH = 13,
  WICK_E_IO = 14,
  WICK_E_FORMAT = 15,
  WICK_E_UNSUPPORTED = 16,
  WICK_E_TRUNCATED = 17,
  WICK_E_ABORTED = 18,
  WICK_STATUS_COUNT = 19
} wick_status;
typedef enum wick_subject {
  WICK_SUBJECT_NONE = 0,
  WICK_SUBJECT_MEMORY = 1,
  WICK_SUBJECT_PLAN = 2,
  WICK_SUBJECT_CONTEXT = 3,
  WICK_SUBJECT_BATCH = 4,
  WICK_SUBJECT_THREADS = 5,
  WICK_SUBJECT_KV_TYPE = 6,
  WICK_SUBJECT_KV_TOKENS = 7,
  WICK_SUBJECT_DIRECTORY_ONLY = 8,
  WICK_SUBJECT_REQUESTS = 9,
  WICK_SUBJECT_QUEUE_TOKENS = 10,
  WICK_SUBJECT_PROMPT = 11,
  WICK_SUBJECT_PRIORITY = 12,
  WICK_SUBJECT_COMPLETIONS = 13,
  WICK_SUBJECT_SESSION = 14,
  WICK_SUBJECT_STOPS = 15,
  WICK_SUBJECT_TEMPERATURE = 16,
  WICK_SUBJECT_TOP_P = 17,
  WICK_SUBJECT_MIN_P = 18,
  WICK_SUBJECT_REPEAT_PENALTY = 19,
  WICK_SUBJECT_FREQUENCY_PENALTY = 20,
  WICK_SUBJECT_PRESENCE_PENALTY = 21,
  WICK_SUBJECT_PENALTY_LAST = 22,
  WICK_SUBJECT_LOGPROBS = 23,
  WICK_SUBJECT_BIAS = 24,
  WICK_SUBJECT_KERNELS = 25,
  WICK_SUBJECT_HOST = 26,
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
  WICK_SUBJECT_DRY_PENALTY_LAST = 37,
  WICK_SUBJECT_DRY_SEQUENCE_BREAKERS = 38,
  WICK_SUBJECT_MIROSTAT = 39,
  WICK_SUBJECT_MIROSTAT_TAU = 40,
  WICK_SUBJECT_MIROSTAT_ETA = 41,
  WICK_SUBJECT_ADAPTIVE_TARGET = 42,
  WICK_SUBJECT_ADAPTIVE_DECAY = 43,
  WICK_SUBJECT_SAMPLERS = 44,
  WICK_SUBJECT_ADAPTERS = 45,
  WICK_SUBJECT_TABLES = 46,
  WICK_SUBJECT_DRY_ALLOWED_LENGTH = 47,
  WICK_SUBJECT_TEMPLATE = 48,
  WICK_SUBJECT_TOOLS = 49,
  WICK_SUBJECT_TOOL_CHOICE = 50,
  WICK_SUBJECT_COUNT = 51
} wick_subject;
enum { WICK_ERROR_MESSAGE_BYTES = 256, WICK_ERROR_NUMBERS = 3 };
#define WICK_NO_OFFSET UINT64_MAX
typedef struct wick_error {
  wick_status status;
  wick_subject subject;
  uint64_t offset_bytes;
  uint64_t numbers[WICK_ERROR_NUMBERS];
  char message[WICK_ERROR_MESSAGE_BYTES];
} wick_error;
WICK_API const char *wick_status_name(wick_status status);
WICK_API const char *wick_subject_name(wick_subject subject);
typedef struct wick_text {
  const char *bytes;
  size_t size_bytes;
} wick_text;
typedef struct wick_span {
  uint32_t end;
  uint32_t is_content;
} wick_span;
typedef void (*wick_text_sink)(void *context, const char *bytes, size_t size_bytes);
typedef struct wick_engine wick_engine;
typedef enum wick_kv_type {
  WICK_KV_F16 = 0,
  WICK_KV_F32 = 1,
  WICK_KV_Q8 = 2,
  WICK_KV_Q4 = 3,
  WICK_KV_TYPE_COUNT = 4
} wick_kv_type;
typedef struct wick_swap_host {
  void *context;
  bool (*open)(void *context, uint32_t id, uint64_t size_bytes);
  bool (*write)(void *context, uint32_t id, uint64_t offset_bytes, const void *bytes,
                size_t size_bytes);
  bool (*read)(void *context, uint32_t id, uint64_t offset_bytes, void *bytes, size_t size_bytes);
  void (*drop)(void *context, uint32_t id);
  bool always;
} wick_swap_host;
typedef struct wick_reader {
  void *context;
  size_t (*read)(void *context, uint32_t file, uint64_t offset_bytes, void *bytes,
                 size_t size_bytes);
  void *piece;
  size_t piece_bytes;
} wick_reader;
typedef enum wick_tables {
  WICK_TABLES_AUTO = 0,
  WICK_TABLES_INSIDE = 1,
  WICK_TABLES_OUTSIDE = 2
} wick_tables;
typedef struct wick_host {
  void *context;
  void *(*alloc)(void *context, size_t size_bytes);
  void (*free)(void *context, void *block, size_t size_bytes);
  uint64_t (*now_us)(void);
  void (*log)(void *context, const char *line);
  bool (*thread_start)(void *context, void (*entry)(void *argument), void *argument,
                       uintptr_t *thread);
  void (*thread_join)(void *context, uintptr_t thread);
  uint64_t reserved[8];
} wick_host;
enum { WICK_THREADS_MAX = 64, WICK_BATCH_TOKENS_MAX = 512 };
typedef struct wick_config {
  uint64_t memory_bytes_max;
  uint32_t threads;
  bool choose_threads;
  uint32_t context_tokens;
  uint32_t batch_tokens;
  uint32_t requests_max;
  uint32_t running_max;
  uint64_t queue_tokens_max;
  uint64_t grammar_bytes_max, grammar_steps_max;
  uint64_t media_bytes_max;
  uint32_t media_tiles_max, media_rows_max;
  bool media_like_llama_cpp;
  wick_kv_type k_type, v_type;
  uint32_t kv_tokens_max;
  bool no_prefix_cache;
  bool no_predictor;
  bool beyond_trained;
  const wick_swap_host *swap;
  wick_tables tables;
  const wick_reader *tables_reader;
  const wick_host *host;
  const char *kernels;
  const char *pre_tokenizer;
  bool directory_only;
  bool metrics;
  uint32_t timer_grain_us;
  uint64_t reserved[16];
} wick_config;
WICK_API const char *wick_kernels_name(const char *wanted);
WICK_API void wick_config_default(wick_config *config);
WICK_API wick_status wick_engine_create(const wick_config *config, wick_engine **out,
                                        wick_error *error);
WICK_API void wick_engine_destroy(wick_engine *engine);
WICK_API const wick_config *wick_engine_config(const wick_engine *engine);
WICK_API uint32_t wick_engine_threads(const wick_engine *engine);
WICK_API uint32_t wick_engine_threads_used(const wick_engine *engine, uint32_t tokens);
typedef struct wick_memory_state {
  uint64_t budget_bytes;
  uint64_t bytes_now;
  uint64_t bytes_peak;
  uint64_t calls;
  uint64_t blocks_now;
  uint64_t reserved[4];
} wick_memory_state;
WICK_API void wick_memory_get_state(const wick_engine *engine, wick_memory_state *state);
WICK_API uint64_t wick_engine_memory_limit(const wick_engine *engine);
WICK_API const char *wick_kv_type_name(wick_kv_type type);
WICK_API void wick_load_next_range(const wick_engine *engine, uint32_t *file,
                                   uint64_t *offset_bytes, uint64_t *length_bytes);
WICK_API wick_status wick_load_feed(wick_engine *engine, uint32_t file, uint64_t offset_bytes,
                                    const void *bytes, size_t size_bytes, wick_error *error);
WICK_API wick_status wick_load_end(wick_engine *engine, uint32_t file, uint64_t size_bytes,
                                   wick_error *error);
WICK_API wick_status wick_load_bytes(wick_engine *engine, const void *bytes, size_t size_bytes,
                                     wick_error *error);
WICK_API wick_status wick_load_from(wick_engine *engine, const wick_reader *reader,
                                    wick_error *error);
WICK_API wick_status wick_load_file(wick_engine *engine, const char *path, wick_error *error);
typedef struct wick_load_state {
  uint64_t bytes_wanted, bytes_placed;
  uint64_t fingerprint;
  uint32_t files;
  uint32_t layers_ready;
  bool is_directory_ready;
  bool is_complete;
  uint64_t reserved[4];
} wick_load_state;
WICK_API void wick_load_get_state(const wick_engine *engine, wick_load_state *state);
enum { WICK_ADAPTERS_MAX = 8 };
WICK_API wick_status wick_adapter_create(wick_engine *engine, uint32_t *adapter, wick_error *error);
WICK_API void wick_adapter_next_range(const wick_engine *engine, uint32_t adapter,
                                      uint64_t *offset_bytes, uint64_t *length_bytes);
WICK_API wick_status wick_adapter_feed(wick_engine *engine, uint32_t adapter, uint64_t offset_bytes,
                                       const void *bytes, size_t size_bytes, wick_error *error);
WICK_API wick_status wick_adapter_end(wick_engine *engine, uint32_t adapter, uint64_t size_bytes,
                                      wick_error *error);
WICK_API wick_status wick_adapter_load_bytes(wick_engine *engine, const void *bytes,
                                             size_t size_bytes, uint32_t *adapter,
                                             wick_error *error);
WICK_API wick_status wick_adapter_load_from(wick_engine *engine, const wick_reader *reader,
                                            uint32_t *adapter, wick_error *error);
WICK_API wick_status wick_adapter_remove(wick_engine *engine, uint32_t adapter, wick_error *error);
typedef struct wick_adapter_info {
  uint32_t id;
  uint32_t tensors;
  uint32_t rank;
  float alpha;
  uint32_t users;
  uint64_t bytes;
  uint64_t fingerprint;
  bool is_complete;
  uint64_t reserved[4];
} wick_adapter_info;
WICK_API bool wick_adapter_get(const wick_engine *engine, uint32_t index, wick_adapter_info *info);
typedef struct wick_adapter_use {
  uint32_t adapter;
  float scale;
} wick_adapter_use;
typedef struct wick_plan {
  uint64_t directory_bytes;
  uint64_t tokenizer_bytes;
  uint64_t weights_bytes;
  uint64_t scratch_bytes;
  uint64_t kv_bytes;
  uint64_t adapter_bytes;
  uint64_t total_bytes;
  uint64_t outside_bytes;
  uint32_t context_tokens;
  uint32_t kv_page_bytes;
  uint64_t reserved[4];
} wick_plan;
WICK_API wick_status wick_memory_plan(const wick_engine *engine, wick_plan *plan,
                                      wick_error *error);
typedef enum wick_pooling {
  WICK_POOLING_MODEL = 0,
  WICK_POOLING_NONE = 1,
  WICK_POOLING_MEAN = 2,
  WICK_POOLING_CLS = 3,
  WICK_POOLING_LAST = 4,
  WICK_POOLING_RANK = 5
} wick_pooling;
typedef struct wick_model_info {
  wick_text architecture, name;
  uint32_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab, context_trained;
  uint64_t parameters;
  bool is_encoder;
  wick_pooling pooling;
  uint32_t embedding, scores;
  uint64_t reserved[8];
} wick_model_info;
WICK_API wick_status wick_model_get_info(const wick_engine *engine, wick_model_info *info,
                                         wick_error *error);
WICK_API void wick_info_json(wick_engine *engine, wick_text_sink sink, void *context);
typedef struct wick_file_info {
  uint32_t version, alignment;
  uint64_t directory_bytes;
  uint64_t data_offset_bytes;
  uint32_t metadata_count, tensor_count;
  uint64_t reserved[4];
} wick_file_info;
WICK_API wick_status wick_file_get_info(const wick_engine *engine, wick_file_info *info,
                                        wick_error *error);
typedef struct wick_metadata {
  wick_text key;
  const char *type;
  const char *item_type;
  uint64_t count;
  uint64_t reserved[2];
} wick_metadata;
WICK_API bool wick_metadata_get(const wick_engine *engine, uint32_t index, wick_metadata *metadata);
WICK_API void wick_metadata_json(const wick_engine *engine, uint32_t index, uint64_t items_max,
                                 wick_text_sink sink, void *context);
typedef struct wick_tensor_info {
  wick_text name;
  const char *type;
  uint32_t type_number;
  uint32_t dim_count;
  uint64_t dims[4];
  uint32_t file;
  uint64_t offset_bytes;
  uint64_t size_bytes;
  bool is_unread;
  uint64_t reserved[4];
} wick_tensor_info;
WICK_API bool wick_tensor_get(const wick_engine *engine, uint32_t index, wick_tensor_info *tensor);
WICK_API void wick_inspect_json(wick_engine *engine, wick_text_sink sink, void *context);
enum { WICK_INSPECT_ITEMS = 8 };
enum { WICK_TOKEN_NONE = -1 };
enum {
  WICK_TOKENIZE_ADD_SPECIAL = 1,
  WICK_TOKENIZE_PARSE_SPECIAL = 2
};
WICK_API wick_status wick_tokenizer_status(const wick_engine *engine, wick_error *error);
WICK_API uint32_t wick_tokenizer_vocab(const wick_engine *engine);
WICK_API wick_status wick_tokenize(wick_engine *engine, const char *text, size_t text_bytes,
                                   uint32_t flags, int32_t *tokens, size_t capacity, size_t *count,
                                   wick_error *error);
WICK_API size_t wick_detokenize_bytes_max(const wick_engine *engine, size_t count);
WICK_API wick_status wick_detokenize(wick_engine *engine, const int32_t *tokens, size_t count,
                                     bool is_whole, bool has_special, char *out, size_t *size_bytes,
                                     wick_error *error);
WICK_API wick_status wick_token_bytes(wick_engine *engine, int32_t token, char *scratch,
                                      wick_text *bytes, wick_error *error);
typedef struct wick_chat {
  const char *json;
  size_t json_bytes;
  int64_t now_s;
  bool has_now;
  bool parse_special;
  bool keeps_arguments;
  const char *prefix;
  size_t prefix_bytes;
  uint64_t reserved[2];
} wick_chat;
WICK_API void wick_chat_default(wick_chat *chat);
WICK_API wick_status wick_chat_set_template(wick_engine *engine, const char *source,
                                            size_t source_bytes, wick_error *error);
typedef struct wick_chat_text {
  wick_text text;
  const wick_span *spans;
  size_t span_count;
  uint64_t reserved[4];
} wick_chat_text;
WICK_API wick_status wick_chat_render(wick_engine *engine, const wick_chat *chat,
                                      wick_chat_text *out, wick_error *error);
WICK_API wick_status wick_chat_tokenize(wick_engine *engine, const wick_chat *chat,
                                        const int32_t **tokens, size_t *count, wick_error *error);
typedef enum wick_media_kind { WICK_MEDIA_IMAGE = 0, WICK_MEDIA_AUDIO = 1 } wick_media_kind;
enum { WICK_MEDIA_RATE = 16000 };
WICK_API wick_status wick_media_load_from(wick_engine *engine, const wick_reader *reader,
                                          wick_error *error);
WICK_API wick_status wick_media_load_bytes(wick_engine *engine, const void *bytes,
                                           size_t size_bytes, wick_error *error);
WICK_API wick_status wick_media_load_file(wick_engine *engine, const char *path, wick_error *error);
typedef struct wick_media_memory {
  uint64_t weights_bytes;
  uint64_t prepare_bytes;
  uint64_t encode_bytes;
  uint64_t cache_bytes;
  uint64_t total_bytes;
  uint64_t reserved[4];
} wick_media_memory;
WICK_API wick_status wick_media_get_memory(const wick_engine *engine, wick_media_memory *memory,
                                           wick_error *error);
WICK_API bool wick_media_has(const wick_engine *engine, wick_media_kind kind);
typedef struct wick_media_info {
  wick_media_kind kind;
  uint32_t tokens;
  uint32_t rows;
  uint32_t tiles;
  uint64_t macs;
  uint64_t rows_bytes;
  uint64_t encode_bytes;
  bool is_ready;
  uint64_t reserved[4];
} wick_media_info;
WICK_API wick_status wick_media_plan_image(wick_engine *engine, uint32_t width, uint32_t height,
                                           wick_media_info *info, wick_error *error);
WICK_API wick_status wick_media_plan_audio(wick_engine *engine, uint64_t samples,
                                           wick_media_info *info, wick_error *error);
WICK_API wick_status wick_media_add_image(wick_engine *engine, const uint8_t *rgb, uint32_t width,
                                          uint32_t height, uint32_t *media, wick_error *error);
WICK_API wick_status wick_media_add_audio(wick_engine *engine, const float *samples, uint64_t count,
                                          uint32_t *media, wick_error *error);
WICK_API wick_status wick_media_get_info(const wick_engine *engine, uint32_t media,
                                         wick_media_info *info, wick_error *error);
WICK_API wick_status wick_media_step(wick_engine *engine, uint32_t media, uint64_t budget_us,
                                     bool *is_ready, wick_error *error);
WICK_API wick_status wick_media_remove(wick_engine *engine, uint32_t media);
typedef struct wick_media_prompt {
  const wick_chat *chat;
  const char *text;
  size_t text_bytes;
  const char *marker;
  size_t marker_bytes;
  const uint32_t *media;
  uint32_t media_count;
  uint64_t reserved[4];
} wick_media_prompt;
WICK_API wick_status wick_media_tokenize(wick_engine *engine, const wick_media_prompt *prompt,
                                         const int32_t **tokens, size_t *count, wick_error *error);
enum {
  WICK_BIAS_MAX = 1024,
  WICK_LOGPROBS_MAX = 20,
  WICK_PENALTY_LAST_MAX = 1048576,
  WICK_SAMPLERS_MAX = 16,
  WICK_DRY_BREAKERS_MAX = 16,
  WICK_DRY_BREAKER_BYTES_MAX = 40,
  WICK_STOPS_MAX = 64,
  WICK_STOP_BYTES_MAX = 256,
  WICK_PRIORITY_MIN = -100,
  WICK_PRIORITY_MAX = 100,
  WICK_COMPLETIONS_MAX = 16,
  WICK_PASSES_WAITED_MAX = 512
};
typedef struct wick_bias {
  int32_t token;
  float bias;
} wick_bias;
#define WICK_LAST_CONTEXT UINT32_MAX
typedef struct wick_sampling {
  uint64_t seed;
  float temperature;
  uint32_t top_k;
  float top_p;
  float min_p;
  float repeat_penalty;
  float frequency_penalty;
  float presence_penalty;
  uint32_t penalty_last;
  float typical_p;
  float top_n_sigma;
  float xtc_probability;
  float xtc_threshold;
  float dynatemp_range;
  float dynatemp_exponent;
  float dry_multiplier;
  float dry_base;
  uint32_t dry_allowed_length;
  uint32_t dry_penalty_last;
  uint32_t mirostat;
  float mirostat_tau;
  float mirostat_eta;
  float adaptive_target;
  float adaptive_decay;
  const char *samplers;
  const wick_bias *bias;
  uint32_t bias_count;
  uint32_t logprobs;
  bool logprob;
  const char *const *dry_sequence_breakers;
  const size_t *dry_breaker_bytes;
  uint32_t dry_breaker_count;
  bool logprobs_after;
} wick_sampling;
typedef enum wick_grammar_kind {
  WICK_GRAMMAR_NONE = 0,
  WICK_GRAMMAR_GBNF = 1,
  WICK_GRAMMAR_JSON_SCHEMA = 2,
  WICK_GRAMMAR_REGEX = 3,
  WICK_GRAMMAR_CHOICE = 4
} wick_grammar_kind;
typedef struct wick_grammar {
  wick_grammar_kind kind;
  const char *text;
  size_t text_bytes;
  bool any_spelling;
  const char *trigger;
  size_t trigger_bytes;
  const char *marker;
  size_t marker_bytes;
  const char *begun;
  size_t begun_bytes;
  uint64_t reserved[4];
} wick_grammar;
typedef struct wick_reasoning {
  uint32_t tokens_max;
  const char *ending;
  size_t ending_bytes;
  uint64_t reserved[4];
} wick_reasoning;
typedef struct wick_conversation {
  wick_chat chat;
  const char *tool_choice;
  size_t tool_choice_bytes;
  bool one_call;
  bool is_grammar_whole;
  uint64_t reserved[4];
} wick_conversation;
typedef struct wick_constraint wick_constraint;
WICK_API wick_status wick_constraint_create(wick_engine *engine, const wick_grammar *grammar,
                                            wick_constraint **out, wick_error *error);
WICK_API void wick_constraint_destroy(wick_constraint *constraint);
WICK_API wick_status wick_constraint_check(wick_constraint *constraint, const char *texts,
                                           size_t text_bytes, wick_text_sink sink, void *context,
                                           wick_error *error);
typedef struct wick_request {
  const char *text;
  size_t text_bytes;
  uint32_t tokenize_flags;
  const int32_t *tokens;
  size_t token_count;
  int32_t priority;
  uint32_t passes_waited;
  uint32_t completions;
  bool healing;
  bool no_speculation;
  bool always_speculates;
  uint32_t session;
  const char *salt;
  size_t salt_bytes;
  uint32_t max_tokens;
  bool prefill_only;
  uint32_t drop_first, drop_last;
  wick_sampling sampling;
  const wick_grammar *grammar;
  const wick_reasoning *reasoning;
  const char *const *stops;
  const size_t *stop_bytes;
  uint32_t stop_count;
  bool ignore_end;
  bool print_special;
  bool asks_host;
  const wick_adapter_use *adapters;
  uint32_t adapter_count;
  const int32_t *forced;
  size_t forced_count;
  void (*on_logits)(void *context, uint32_t position, const float *logits, uint32_t vocab);
  void *on_logits_context;
  const wick_conversation *conversation;
  uint64_t reserved[15];
} wick_request;
WICK_API void wick_request_default(wick_request *request);
WICK_API wick_status wick_request_submit(wick_engine *engine, const wick_request *request,
                                         uint32_t *id, wick_error *error);
WICK_API void wick_engine_compile_in_slices(wick_engine *engine);
WICK_API wick_status wick_request_pause(wick_engine *engine, uint32_t id, bool is_paused);
WICK_API wick_status wick_request_cancel(wick_engine *engine, uint32_t id);
typedef struct wick_logits {
  float *values;
  uint32_t vocab;
  const int32_t *tokens;
  uint32_t token_count;
  uint64_t reserved[4];
} wick_logits;
WICK_API wick_status wick_request_logits(wick_engine *engine, uint32_t id, wick_logits *logits);
WICK_API wick_status wick_request_go_on(wick_engine *engine, uint32_t id);
WICK_API wick_status wick_engine_set_draft(wick_engine *engine, wick_engine *draft,
                                           wick_error *error);
WICK_API wick_status wick_session_create(wick_engine *engine, uint32_t *session, wick_error *error);
WICK_API wick_status wick_session_create_salted(wick_engine *engine, const char *salt,
                                                size_t salt_bytes, uint32_t *session,
                                                wick_error *error);
WICK_API wick_status wick_session_fork(wick_engine *engine, uint32_t session, uint32_t *child,
                                       wick_error *error);
WICK_API wick_status wick_session_truncate(wick_engine *engine, uint32_t session, uint32_t tokens,
                                           wick_error *error);
WICK_API wick_status wick_session_drop(wick_engine *engine, uint32_t session, uint32_t first,
                                       uint32_t last, wick_error *error);
WICK_API wick_status wick_session_close(wick_engine *engine, uint32_t session, wick_error *error);
WICK_API wick_status wick_session_tokens(const wick_engine *engine, uint32_t session,
                                         const int32_t **tokens, uint32_t *count,
                                         wick_error *error);
typedef struct wick_state_sink {
  void *context;
  bool (*write)(void *context, const void *bytes, size_t size_bytes);
} wick_state_sink;
typedef struct wick_state_source {
  void *context;
  bool (*read)(void *context, void *bytes, size_t size_bytes);
  uint64_t size_bytes;
} wick_state_source;
WICK_API wick_status wick_state_save(wick_engine *engine, uint32_t session,
                                     const wick_state_sink *sink, wick_error *error);
WICK_API wick_status wick_state_bytes(const wick_engine *engine, uint32_t session,
                                      uint64_t *size_bytes, wick_error *error);
WICK_API wick_status wick_session_save_packed(wick_engine *engine, uint32_t session,
                                              wick_kv_type k_type, wick_kv_type v_type,
                                              const wick_state_sink *sink, wick_error *error);
WICK_API wick_status wick_session_packed_bytes(const wick_engine *engine, uint32_t session,
                                               wick_kv_type k_type, wick_kv_type v_type,
                                               uint64_t *size_bytes, wick_error *error);
typedef struct wick_state_loaded {
  uint32_t session;
  uint32_t entries;
  uint64_t reserved[2];
} wick_state_loaded;
WICK_API wick_status wick_state_load(wick_engine *engine, const wick_state_source *source,
                                     wick_state_loaded *loaded, wick_error *error);
typedef enum wick_step_result {
  WICK_STEP_IDLE = 0,
  WICK_STEP_PROGRESS = 1,
  WICK_STEP_WAIT_BYTES = 2
} wick_step_result;
WICK_API wick_step_result wick_step(wick_engine *engine, uint64_t budget_us);
WICK_API wick_step_result wick_step_units(wick_engine *engine, uint32_t units);
typedef struct wick_embed_text {
  const char *text;
  size_t text_bytes;
  const char *document;
  size_t document_bytes;
  const int32_t *tokens;
  size_t token_count;
} wick_embed_text;
typedef struct wick_embed_request {
  const wick_embed_text *texts;
  uint32_t text_count;
  wick_pooling pooling;
  uint32_t dimensions;
  bool normalizes;
  bool truncates;
  const wick_adapter_use *adapters;
  uint32_t adapter_count;
  uint64_t reserved[8];
} wick_embed_request;
WICK_API void wick_embed_default(wick_embed_request *request);
WICK_API wick_status wick_embed(wick_engine *engine, const wick_embed_request *request,
                                wick_error *error);
WICK_API wick_status wick_embed_step(wick_engine *engine, uint64_t budget_us,
                                     wick_step_result *result, wick_error *error);
typedef struct wick_vectors {
  const float *values;
  uint32_t rows, width;
  uint32_t tokens;
  uint64_t reserved[4];
} wick_vectors;
WICK_API bool wick_embed_get(const wick_engine *engine, uint32_t index, wick_vectors *vectors);
WICK_API void wick_embed_end(wick_engine *engine);
typedef enum wick_event_kind {
  WICK_EVENT_TOKEN = 1,
  WICK_EVENT_PREFILL = 2,
  WICK_EVENT_DONE = 3,
  WICK_EVENT_LOGITS = 4,
  WICK_EVENT_CONTENT = 5,
  WICK_EVENT_REASONING = 6,
  WICK_EVENT_CALL = 7,
  WICK_EVENT_ARGUMENTS = 8,
  WICK_EVENT_CALL_END = 9,
  WICK_EVENT_CALL_BROKEN = 10
} wick_event_kind;
typedef enum wick_finish {
  WICK_FINISH_NONE = 0,
  WICK_FINISH_STOP = 1,
  WICK_FINISH_LENGTH = 2,
  WICK_FINISH_ABORT = 3,
  WICK_FINISH_ERROR = 4
} wick_finish;
typedef struct wick_event {
  uint32_t size_bytes;
  uint32_t request;
  uint32_t kind;
  int32_t token;
  float logprob;
  uint32_t top_count;
  uint32_t text_bytes;
  union {
    uint16_t finish;
    uint16_t name_bytes;
  };
  union {
    uint16_t stop;
    uint16_t call;
  };
  uint16_t status;
  uint16_t subject;
  uint32_t tokens_prompt;
  uint32_t tokens_cached;
  uint32_t tokens_out;
  double queue_ms, prefill_ms, decode_ms;
  double ttft_ms;
} wick_event;
WICK_API const uint8_t *wick_events_take(wick_engine *engine, size_t *size_bytes);
WICK_API const wick_event *wick_event_next(const uint8_t *events, size_t size_bytes,
                                           const wick_event *event);
WICK_API const char *wick_event_text(const wick_event *event);
typedef struct wick_logprob {
  int32_t token;
  float logprob;
} wick_logprob;
WICK_API wick_logprob wick_event_top(const wick_event *event, uint32_t index);
typedef struct wick_dialog wick_dialog;
typedef bool (*wick_reply_sink)(void *context, wick_event_kind kind, const char *text,
                                size_t text_bytes);
WICK_API wick_status wick_dialog_create(wick_engine *engine, const char *system, wick_dialog **out,
                                        wick_error *error);
WICK_API void wick_dialog_destroy(wick_dialog *dialog);
WICK_API wick_status wick_dialog_ask(wick_dialog *dialog, const char *question,
                                     const wick_request *settings, wick_reply_sink sink,
                                     void *context, wick_error *error);
enum { WICK_STATS_ROWS_MAX = 16 };
typedef struct wick_stats {
  uint32_t running, waiting, paused;
  uint32_t running_max, waiting_max;
  uint64_t submitted, refused;
  uint64_t stopped, length, aborted, failed;
  uint64_t preempted;
  uint64_t swapped_out, swapped_in;
  uint64_t swap_failed;
  uint64_t passes, rows;
  uint64_t tokens_prompt, tokens_cached;
  uint64_t tokens_recomputed;
  uint64_t tokens_out;
  float pass_us[WICK_STATS_ROWS_MAX + 1];
  uint64_t tokens_proposed, tokens_accepted;
  uint64_t draft_failed;
  uint64_t reserved[16];
} wick_stats;
WICK_API void wick_stats_get(const wick_engine *engine, wick_stats *stats);
WICK_API void wick_stats_json(wick_engine *engine, wick_text_sink sink, void *context);
typedef struct wick_pages_state {
  uint32_t page_tokens;
  uint32_t pages_used;
  uint32_t pages_available;
  uint64_t reserved[4];
} wick_pages_state;
WICK_API void wick_pages_get_state(const wick_engine *engine, wick_pages_state *state);
WICK_API void wick_pages_json(wick_engine *engine, bool has_map, wick_text_sink sink,
                              void *context);
WICK_API void wick_pages_find(wick_engine *engine, const int32_t *tokens, size_t count,
                              wick_text_sink sink, void *context);
WICK_API void wick_metrics_json(const wick_engine *engine, wick_text_sink sink, void *context);
WICK_API void wick_metrics_prometheus(const wick_engine *engine, wick_text_sink sink,
                                      void *context);
WICK_API void wick_metrics_reset(wick_engine *engine);
typedef struct wick_op_metrics {
  const char *pass, *op;
  uint64_t count;
  uint64_t time_us, bytes;
  uint64_t macs;
  double mean_us, p50_us, p99_us;
  double share;
  uint64_t reserved[4];
} wick_op_metrics;
WICK_API bool wick_metrics_get(const wick_engine *engine, uint32_t index, wick_op_metrics *metrics);
#ifdef __cplusplus
}
#endif
#endif
