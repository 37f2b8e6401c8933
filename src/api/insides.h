// api/insides.h — the parts of an engine, for this folder and for tests that inspect them.
#ifndef WICK_API_INSIDES_H
#define WICK_API_INSIDES_H

#include "load/load.h"
#include "model/adapter.h"
#include "model/forward.h"
#include "model/media.h"
#include "model/weights.h"
#include "reply/reply.h"
#include "schedule/embedding.h"
#include "schedule/scheduler.h"
#include "schedule/session.h"
#include "store/store.h"
#include "template/template.h"
#include "thread/pool.h"
#include "wick.h"

// A chat template that is compiled when it is first needed.
typedef struct engine_template {
  gguf_string source;  // empty: not looked up yet
  chat_template *compiled;
  bool has_format;
  reply_format format;  // of replies
} engine_template;

// Conversations: their templates, and the result of the last call.
typedef struct engine_chat {
  engine_template plain;
  engine_template with_tools;  // the model's template for conversations with tools
  engine_template *last;       // the last rendered template, or NULL
  const engine_template
      *guarded;  // the template whose source was passed to tokenizer_guard, or NULL
  char *given;   // source of a template that is used with and without tools, or NULL
  template_text text;
  wick_chat of;  // the conversation of `text`, which is not rendered again
  // The beginning of its reply: the template's text after the last message, then a header and the
  // prefix, which start at `prefix_at`.
  wick_text ending;
  size_t prefix_at;
  char *kept;  // strings of `of` and the ending; NULL: `text` is incomplete
  int32_t *tokens;
} engine_chat;

// Images and recordings (media.c), which some builds lack.
typedef struct engine_media {
  void (*close)(wick_engine *engine);
  // Finds the rows of a prompt by their tokens.
  wick_status (*find)(wick_engine *engine, const wick_request *request, media_list *out,
                      wick_error *error);
  wick_media_memory plan;
} engine_media;

struct wick_engine {
  memory_gate memory;
  wick_config config;
  char pre_tokenizer[64];  // a copy of the configuration's value
  const kernel_table *kernels;
  thread_pool *threads;
  loader *loader;
  tokenizer *tokenizer;
  loaded_model *model;
  seq_store *store;
  kv_pool *kv;           // the store's pool that keeps all positions
  prefix_cache *prefix;  // the store's; NULL: config.no_prefix_cache
  session_table sessions;
  adapter_list adapters;
  forward_pass *forward;
  scheduler *scheduler;
  // Compiles for one slice; NULL: grammars are compiled at once.
  bool (*prepare_grammar)(scheduler *scheduler, const wick_grammar *wanted);
  engine_chat chat;
  engine_media *media;       // NULL: no encoders are loaded
  embedding *embedding;      // running, or NULL
  forward_pass *embed_pass;  // for embeddings of a causal model; an encoder uses `forward`
  uint32_t embed_count;      // texts
  bool is_draft;     // proposes tokens for another engine, which uses this engine's forward pass
  drafter *drafter;  // NULL: no smaller model proposes tokens
  predictor *predictor;      // NULL: no layer of the model proposes tokens
  op_records *ops;           // NULL: metrics are off
  uint64_t (*now_us)(void);  // the host's clock
  uint64_t host_bytes_max;   // memory of the host when the engine was created; 0: unknown
  uint32_t context_tokens;
  uint32_t kernel_checks;  // number of steps that began with a check of kernels
  bool is_directory_ready;
  wick_error load_error;  // status WICK_OK: none
  // With only the directory: why text cannot be tokenized, and why the model would not run.
  wick_error tokenizer_error, model_error;
  bool is_in_dialog;  // a dialog of the C library reads the events
};

// For tests: different kernels, and an allocation that fails.
typedef struct engine_hooks {
  const kernel_table *kernels;  // NULL: those of the configuration
  uint64_t fail_at_call;        // the k-th allocation returns NULL; 0: never
  uint64_t fail_from_call;      // this and all later allocations return NULL; 0: none
} engine_hooks;
wick_status engine_create(const wick_config *config, const engine_hooks *hooks, wick_engine **out,
                          wick_error *error);

// Called when the directory of the model is complete: creates everything that depends on it.
// `context`: the engine.
wick_status engine_take_directory(void *context, wick_error *error);
const gguf_directory *engine_directory(const wick_engine *engine);  // NULL until it is ready
// Whether the model runs without a tensor of its file.
bool engine_tensor_is_unread(const wick_engine *engine, uint32_t index);
// Whether the model, whose directories are complete, waits for code that has not been loaded yet
// (base/extras.h). Bytes that are fed until then are not stored.
bool engine_is_held(const wick_engine *engine);
bool engine_types_are_held(const loader *loader);  // of an adapter's tensors
// Reject models that need this code with WICK_E_UNSUPPORTED, in builds that never load it.
wick_status engine_refuse_config(const wick_config *config, wick_error *error);
wick_status engine_refuse_tokenizer(const gguf_directory *directory, wick_error *error);
wick_status engine_refuse_kind(const gguf_directory *directory, wick_error *error);  // kinds.c
wick_status engine_refuse_model(const loader *loader, wick_error *error);
wick_status engine_refuse_types(const loader *loader, wick_error *error);  // of tensors
// Reports a stored error.
wick_status engine_repeat_error(const wick_error *from, wick_error *error);
// Reports the error that ended the loading.
wick_status engine_refuse_again(const wick_engine *engine, wick_error *error);
// Returns the maximum number of tokens in a pass; an encoder's pass holds an input of any length.
uint32_t engine_batch_tokens(const wick_engine *engine);
// Whether tables may have to stay in the file. If so, engine_choose_tables (extras) decides.
bool engine_may_move_tables(const wick_engine *engine);
// Leaves tables in the file where the configuration or the memory limit requires it.
wick_status engine_choose_tables(wick_engine *engine, wick_error *error);
store_config engine_store_config(const wick_engine *engine);
// Fails with the reason why the engine has no model.
wick_status engine_no_model(const wick_engine *engine, wick_error *error);
// Called at the start of each step: sets load_error if kernels compute incorrectly.
void engine_check_kernels(wick_engine *engine);
// Returns the pooling that the model's file specifies.
wick_pooling engine_pooling(const wick_engine *engine);
// Frees all adapters; no request may still use one.
void engine_free_adapters(wick_engine *engine);
// Returns the number of bytes that all adapters occupy.
uint64_t engine_adapter_bytes(const wick_engine *engine);
// Returns WICK_E_NOMEM if the plan and `more_bytes` together exceed the engine's memory limit.
wick_status engine_check_budget(const wick_engine *engine, const char *what, uint64_t more_bytes,
                                wick_error *error);
// Returns the model's tensors from all its files.
model_tensors engine_tensors(const wick_engine *engine);
// Implements wick_request_submit. `media`: the images and recordings among request->tokens
// (model/media.h); NULL: none. `wish`: the reply to a conversation; NULL: none.
wick_status engine_submit(wick_engine *engine, const wick_request *request, const media_list *media,
                          const reply_wish *wish, uint32_t *id, wick_error *error);
// Like engine_submit, but finds the images and recordings by their tokens.
wick_status engine_submit_tokens(wick_engine *engine, const wick_request *request,
                                 const reply_wish *wish, uint32_t *id, wick_error *error);
// Implements wick_request_submit for a conversation. `media`: as in engine_submit, but if it is
// NULL, images and recordings are found by their tokens.
wick_status engine_submit_conversation(wick_engine *engine, const wick_request *request,
                                       const media_list *media, uint32_t *id, wick_error *error);
// Compiles the grammar of a request for one slice, if the engine compiles in slices. WICK_E_BUSY:
// it is not finished.
wick_status engine_prepare_grammar(wick_engine *engine, const wick_request *request,
                                   wick_error *error);
// Tokenizes the conversation's prefix and the header before it. If *count exceeds `capacity`, the
// status is WICK_E_FULL.
wick_status engine_tokenize_prefix(wick_engine *engine, const wick_chat *chat, int32_t *tokens,
                                   size_t capacity, size_t *count, wick_error *error);
// Whether the template wrote the token that the tokenizer would put at the beginning.
bool engine_begins_with_bos(const wick_engine *engine);
// Frees the memory of conversations.
void engine_free_chat(wick_engine *engine);
// Returns the format of the last rendered template, or of the one for conversations without tools.
reply_format engine_reply_format(wick_engine *engine);

#endif
