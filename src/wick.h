// wick.h — the engine as hosts see it: the command line, the web's exports, an edge component.
// Plain structs, no callbacks into the host except where said. One thread calls; the engine never
// blocks: work happens inside wick_step, which returns after at most about budget_us (a layer's
// time more).
//
//   wick_engine_create -> { wick_load_next_range, wick_load_feed }* -> wick_request_submit
//     -> { wick_step, wick_events_take }* -> wick_engine_destroy
#ifndef WICK_H
#define WICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "format/gguf.h"
#include "kernels/kernels.h"
#include "kv/state.h"
#include "load/load.h"
#include "metrics/ops.h"
#include "sample/sampler.h"
#include "schedule/event_types.h"
#include "schedule/request.h"
#include "schedule/scheduler.h"
#include "schedule/swap.h"
#include "text/tokenizer.h"

typedef struct wick_engine wick_engine;

typedef struct wick_config {
  uint64_t memory_bytes_max;  // budget of everything; 0: what the host can give
  uint32_t threads;           // with the caller's; 0 and 1: no helpers
  bool choose_threads;        // use as many of them as prove fastest, not always all
  uint32_t context_tokens;    // of one request; 0: min(trained, 4096); over the trained: refused
  uint32_t batch_tokens;      // micro-batch of prefill, 1..512; 0: 128
  uint32_t requests_max;      // queued and running together; 0: 64
  uint32_t running_max;       // running at once, at most batch_tokens; 0: that many
  uint64_t queue_tokens_max;  // prompts that wait may have so many tokens together; 0: no limit
  kernel_kv_type k_type, v_type;
  uint32_t kv_tokens_max;       // of all requests, sessions and the prefix cache; 0: 4 contexts
  bool no_prefix_cache;         // every prompt is read from its beginning
  const wick_swap_host *swap;   // keeps pages of requests that give way; outlives the engine; NULL:
                                // they always read their tokens again
  const wick_kernels *kernels;  // NULL: kernels_bind()
  bool directory_only;          // metadata, tensor list and tokenizer, no weights
  bool metrics;                 // ops are timed: wick_metrics
  uint32_t timer_grain_us;      // how fine the host's clock is, told with the metrics; 0: 1
  uint64_t fail_at_call;        // tests: the k-th allocation answers NULL; 0: never
  uint64_t fail_from_call;      // tests: the same, and all after it
} wick_config;

// F16 KV, everything else 0.
void wick_config_default(wick_config *config);

// WICK_E_ARG for settings out of range, WICK_E_NOMEM. Allocates little: the big segments come when
// the directory of the model is known.
wick_status wick_engine_create(const wick_config *config, wick_engine **out, wick_error *error);
void wick_engine_destroy(wick_engine *engine);
const wick_memory *wick_engine_memory(const wick_engine *engine);
// A model whose plan needs more is refused before its weights are fetched: the budget, or what the
// host could give when the engine was made (platform_memory_bytes_max), whichever is less. 0: none.
uint64_t wick_engine_memory_limit(const wick_engine *engine);
// The threads that have come up; and how many of them a pass of so many tokens uses.
uint32_t wick_engine_threads(const wick_engine *engine);
uint32_t wick_engine_threads_used(const wick_engine *engine, uint32_t tokens);
// The configuration in force: zeros replaced by what was chosen.
const wick_config *wick_engine_config(const wick_engine *engine);

// What its ops took since the start or the last wick_ops_reset; NULL unless config.metrics.
wick_ops *wick_metrics(wick_engine *engine);

// ---- Loading: ask and offer (load/load.h has the details) ----

void wick_load_next_range(const wick_engine *engine, uint32_t *file, uint64_t *offset_bytes,
                          uint64_t *length_bytes);
// A failure is final for this engine: every later call answers the same error.
wick_status wick_load_feed(wick_engine *engine, uint32_t file, uint64_t offset_bytes,
                           const void *bytes, size_t size_bytes, wick_error *error);
wick_status wick_load_end(wick_engine *engine, uint32_t file, uint64_t size_bytes,
                          wick_error *error);

typedef struct wick_load_state {
  uint64_t bytes_wanted, bytes_placed;  // so far known; equal when complete
  uint64_t fingerprint;                 // of the model, when complete
  uint32_t files;                       // of a split model, 1 otherwise
  uint32_t layers_ready;                // complete from the first on
  bool is_directory_ready;              // metadata, tokenizer, plan can be asked for
  bool is_complete;
} wick_load_state;
void wick_load_get_state(const wick_engine *engine, wick_load_state *state);

const gguf_directory *wick_directory(const wick_engine *engine);  // NULL until it is ready
const loader *wick_loader(const wick_engine *engine);
tokenizer *wick_tokenizer(wick_engine *engine);  // NULL until it is ready
// Why there is none: it has not arrived yet (WICK_E_NODATA), or, where the directory alone was
// opened, what tokenizer_create says of it.
wick_status wick_tokenizer_status(const wick_engine *engine, wick_error *error);

// ---- The plan: what the model needs, before a byte of weights is fetched ----

typedef struct wick_plan {
  uint64_t directory_bytes;  // metadata and tensor list as kept
  uint64_t tokenizer_bytes;
  uint64_t weights_bytes;  // in kernel layout
  uint64_t scratch_bytes;  // activations of a micro-batch, logits, sampling
  uint64_t kv_bytes;       // one full context
  uint64_t total_bytes;
  uint32_t context_tokens;
  uint32_t kv_page_bytes;  // 16 tokens, all layers
} wick_plan;

// For the engine's configuration, as soon as the directory is ready (WICK_E_NODATA before).
wick_status wick_memory_plan(const wick_engine *engine, wick_plan *plan, wick_error *error);

typedef struct wick_model_info {
  gguf_string architecture, name;
  uint32_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab, context_trained;
  uint64_t parameters;  // values of all tensors
} wick_model_info;
wick_status wick_model_get_info(const wick_engine *engine, wick_model_info *info,
                                wick_error *error);

// ---- Requests ----

// wick_request: schedule/request.h
void wick_request_default(wick_request *request);

// Queues a request. Its prompt is tokenised here; everything is copied. It runs beside others as
// soon as there are KV pages for all that it may come to hold, in the order of arrival. WICK_E_ARG
// (empty prompt, id out of the vocabulary), WICK_E_SEQ and WICK_E_BUSY (its session), WICK_E_FULL
// (prompt over the context: both numbers are in the message; or the queue is full), WICK_E_NODATA
// (directory not ready). May be submitted while weights are still arriving.
wick_status wick_request_submit(wick_engine *engine, const wick_request *request, uint32_t *id,
                                wick_error *error);
// A paused one keeps its place and, while nobody else needs them, its pages, but takes part in
// nothing (a reader that does not keep up). Unknown id: WICK_E_ARG.
wick_status wick_request_pause(wick_engine *engine, uint32_t id, bool is_paused);
// Ends it before the next step with finish reason WICK_FINISH_ABORT; unknown id: WICK_E_ARG.
wick_status wick_request_cancel(wick_engine *engine, uint32_t id);

// From now on `draft`, an engine with a smaller model of the same vocabulary, proposes what may
// follow in requests of `engine` (schedule/speculation.h); their texts stay the same. Both are
// loaded; the draft takes no requests any more, and is destroyed after `engine`. Once an engine.
// WICK_E_NODATA (one is not loaded), WICK_E_MISMATCH (another vocabulary), WICK_E_BUSY (there is
// one already, or requests run on the draft), WICK_E_NOMEM.
wick_status wick_engine_set_draft(wick_engine *engine, wick_engine *draft, wick_error *error);
// What ran, waits, came and went (schedule/scheduler.h); zeros before the directory is ready.
scheduler_stats wick_stats(const wick_engine *engine);
// The KV pages of all requests and sessions, to look at; NULL before the directory is ready.
const wick_kv_pool *wick_pages(const wick_engine *engine);

// ---- Sessions: a text that goes on from request to request (schedule/session.h) ----

// A request on a session (wick_request.session) reads its prompt after what the session holds, and
// leaves prompt and answer in it (an end token is left out); one that ends before it has read its
// prompt leaves the session as it was. Errors: WICK_E_SEQ, WICK_E_BUSY while a request is on it,
// WICK_E_NOMEM, WICK_E_NODATA before the directory is ready.
wick_status wick_session_create(wick_engine *engine, uint32_t *session, wick_error *error);
// Of the tenant of this name (wick_request.salt), as its forks are, and what is saved of it.
wick_status wick_session_create_salted(wick_engine *engine, const char *salt, size_t salt_bytes,
                                       uint32_t *session, wick_error *error);
// Shares every page; the first write of either to a shared page copies that page alone.
wick_status wick_session_fork(wick_engine *engine, uint32_t session, uint32_t *child,
                              wick_error *error);
wick_status wick_session_truncate(wick_engine *engine, uint32_t session, uint32_t tokens,
                                  wick_error *error);
// Drops the tokens [first, last) from the middle; what follows keeps its keys, moved by rotation.
// What has not been read, or has lost its pages to others, is read later and has not seen them: to
// have the same text whoever else is there, let a request drop them (wick_request.drop_last).
wick_status wick_session_drop(wick_engine *engine, uint32_t session, uint32_t first, uint32_t last,
                              wick_error *error);
wick_status wick_session_close(wick_engine *engine, uint32_t session, wick_error *error);
// *tokens [*count] stays valid until the session changes.
wick_status wick_session_tokens(const wick_engine *engine, uint32_t session, const int32_t **tokens,
                                uint32_t *count, wick_error *error);

// ---- Saved state: versioned, checksummed, for this model and these KV types only ----

// session 0: the prefix cache. Also WICK_E_NODATA while the model is loading, WICK_E_IO when the
// sink says no.
wick_status wick_state_save(wick_engine *engine, uint32_t session, const wick_state_sink *sink,
                            wick_error *error);
wick_status wick_state_bytes(const wick_engine *engine, uint32_t session, uint64_t *size_bytes,
                             wick_error *error);
typedef struct wick_state_loaded {
  uint32_t session;  // a new one; 0: it was a prefix cache
  uint32_t entries;  // of it that were entered
} wick_state_loaded;
// Errors of kv/state.h: WICK_E_MISMATCH, WICK_E_FORMAT, WICK_E_CORRUPT, WICK_E_TRUNCATED, ...
wick_status wick_state_load(wick_engine *engine, const wick_state_source *source,
                            wick_state_loaded *loaded, wick_error *error);

typedef enum wick_step_result {
  WICK_STEP_IDLE = 0,       // nothing to do
  WICK_STEP_PROGRESS = 1,   // call again (take the events first)
  WICK_STEP_WAIT_BYTES = 2  // the next layer's weights are not there yet
} wick_step_result;

// Works for about budget_us (0: one unit of work). Parks between layers. Failures of a request
// end that request by an event; the engine goes on.
wick_step_result wick_step(wick_engine *engine, uint64_t budget_us);

// ---- Events: what happened, as records in one buffer ----

// wick_event: schedule/event_types.h

// All events since the last call; *bytes stays valid until the next wick_step, submit or cancel.
// A full buffer parks wick_step (it answers PROGRESS) until events are taken.
const uint8_t *wick_events_take(wick_engine *engine, size_t *size_bytes);

#endif
