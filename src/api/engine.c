// api/engine.c — an engine: loader, model, pages, forward pass and scheduler.
#include <string.h>

#include "api/insides.h"
#include "base/checked.h"
#include "kernels/answers.h"
#include "platform/platform.h"

enum {
  BATCH_TOKENS_DEFAULT = 128,
  REQUESTS_DEFAULT = 64,
  DOT_CHECKS = 100,
  CHECKPOINTS_BYTES = 64 << 20,  // for checkpoints of recurrent states
  CHECKPOINTS_MIN = 4,
  CHECKPOINTS_MAX = 256,
  STATES_PLANNED =
      4,  // states of one sequence: before a pass, after it, within it, and at the last whole page
  ENCODER_CONTEXT_DEFAULT = 2048,  // an encoder's passes hold this many tokens by default
  CONTEXTS_DEFAULT = 4             // number of full contexts that the KV pages can hold
};

void wick_config_default(wick_config *config) { *config = (wick_config){0}; }

void wick_request_default(wick_request *request) {
  *request =
      (wick_request){.tokenize_flags = WICK_TOKENIZE_ADD_SPECIAL | WICK_TOKENIZE_PARSE_SPECIAL};
  sampler_set_defaults(&request->sampling);
}

static const kernel_table *kernels_named(const char *name) {
  const kernel_table *bound = kernels_bind();
  const size_t bytes = strlen(bound->name) + 1;
  if (name == NULL) return bound;
  if (strlen(name) + 1 == bytes && memcmp(name, bound->name, bytes) == 0) return bound;
#ifdef WICK_ONE_KERNELS
  return NULL;  // a module is smaller without tables that it never uses
#else
  return kernels_by_name(name);
#endif
}

const char *wick_kernels_name(const char *wanted) {
  const kernel_table *kernels = kernels_named(wanted);
  return kernels == NULL ? NULL : kernels->name;
}

static wick_status check_config(wick_config *config, wick_error *error) {
  const wick_status known = STATUS_CHECK_RESERVED("wick_config", config->reserved, error);
  if (known != WICK_OK) return known;
  if (config->threads == 0) config->threads = 1;
  if (config->batch_tokens == 0) config->batch_tokens = BATCH_TOKENS_DEFAULT;
  if (config->requests_max == 0) config->requests_max = REQUESTS_DEFAULT;
  if (config->running_max == 0 || config->running_max > config->batch_tokens) {
    config->running_max = config->batch_tokens;
  }
  if (config->queue_tokens_max == 0) config->queue_tokens_max = UINT64_MAX;
  if (config->timer_grain_us == 0) config->timer_grain_us = 1;
  if (config->threads > WICK_THREADS_MAX) {
    fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "%u threads: the limit is %d", config->threads,
              (int)WICK_THREADS_MAX);
    return status_about(WICK_E_ARG, error, WICK_SUBJECT_THREADS, config->threads, WICK_THREADS_MAX);
  }
  if (config->batch_tokens > WICK_BATCH_TOKENS_MAX) {
    fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "a batch of %u tokens: the limit is %d",
              config->batch_tokens, (int)WICK_BATCH_TOKENS_MAX);
    return status_about(WICK_E_ARG, error, WICK_SUBJECT_BATCH, config->batch_tokens,
                        WICK_BATCH_TOKENS_MAX);
  }
  if ((unsigned)config->k_type >= WICK_KV_TYPE_COUNT ||
      (unsigned)config->v_type >= WICK_KV_TYPE_COUNT) {
    fail_with(error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET, "this KV type is not supported yet");
    return status_about(WICK_E_UNSUPPORTED, error, WICK_SUBJECT_KV_TYPE, config->k_type,
                        config->v_type);
  }
  const wick_status kept = engine_refuse_config(config, error);
  if (kept != WICK_OK) return kept;
  if (wick_kernels_name(config->kernels) == NULL) {
    fail_with(error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
              "this processor or build has no '%s' kernels", config->kernels);
    return status_about(WICK_E_UNSUPPORTED, error, WICK_SUBJECT_KERNELS, 0, 0);
  }
  const wick_host *host = config->host;
  if (host != NULL && ((host->alloc == NULL) != (host->free == NULL) ||
                       (host->thread_start == NULL) != (host->thread_join == NULL))) {
    return fail_with(
        error, WICK_E_ARG, WICK_NO_OFFSET,
        "wick_host: alloc and free must be set together, and so must thread_start and thread_join");
  }
  if (config->pre_tokenizer != NULL && !tokenizer_knows_pre(config->pre_tokenizer)) {
    fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "pre-tokenizer '%.64s' is not supported",
              config->pre_tokenizer);
    return status_about(WICK_E_ARG, error, WICK_SUBJECT_PRE_TOKENIZER, 0, 0);
  }
  return WICK_OK;
}

// Reports an error if helpers could not be started.
static wick_status check_threads(const wick_engine *engine, wick_error *error) {
  const uint32_t wanted = engine->config.threads;
  const uint32_t started = thread_pool_started(engine->threads);
  if (started == wanted) return WICK_OK;
  fail_with(error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
            "threads: %u requested, %u available. Request fewer", wanted, started);
  return status_about(WICK_E_UNSUPPORTED, error, WICK_SUBJECT_THREADS, wanted, started);
}

// Copies the name of the pre-tokenizer. It is a built-in one, so its name fits.
static void keep_pre_tokenizer(wick_engine *engine) {
  const char *name = engine->config.pre_tokenizer;
  if (name == NULL) return;
  memcpy(engine->pre_tokenizer, name, strlen(name) + 1);
  engine->config.pre_tokenizer = engine->pre_tokenizer;
}

// ---- What happens when the directory is complete ----

static const gguf_tensor *tensor_at(void *context, uint32_t index) {
  return loader_tensor_at(context, index);
}

static int32_t find_tensor(void *context, const char *name) {
  return loader_find_tensor(context, name);
}

model_tensors engine_tensors(const wick_engine *engine) {
  return (model_tensors){engine->loader, (uint32_t)loader_tensor_count(engine->loader), tensor_at,
                         find_tensor};
}

static wick_status choose_context(wick_engine *engine, wick_error *error) {
  const uint32_t trained = engine->model->config.context_trained;
  const bool is_limit = !engine->config.beyond_trained || engine->model->has_positions;
  if (engine->config.context_tokens > trained && is_limit) {
    fail_with(error, WICK_E_ARG, WICK_NO_OFFSET,
              "a context of %u tokens: the model was trained on %u", engine->config.context_tokens,
              trained);
    return status_about(WICK_E_ARG, error, WICK_SUBJECT_CONTEXT, engine->config.context_tokens,
                        trained);
  }
  engine->context_tokens = engine->config.context_tokens;
  if (engine->context_tokens == 0) {
    const uint32_t usual =
        engine->model->is_encoder ? (uint32_t)ENCODER_CONTEXT_DEFAULT : MODEL_CONTEXT_DEFAULT;
    engine->context_tokens = trained < usual ? trained : usual;
  }
  engine->model->context_tokens = engine->context_tokens;
  return WICK_OK;
}

uint32_t engine_batch_tokens(const wick_engine *engine) {
  const uint32_t batch = engine->config.batch_tokens;
  const bool is_longer = engine->model->is_encoder && engine->context_tokens > batch;
  return is_longer ? engine->context_tokens : batch;
}

static wick_status read_model(wick_engine *engine, wick_error *error) {
  const gguf_directory *directory = loader_directory(engine->loader);
  const model_tensors tensors = engine_tensors(engine);
  wick_status status = engine_refuse_model(engine->loader, error);
  if (status != WICK_OK) return status;
  status = model_create(&engine->memory, engine->kernels, directory, &tensors,
                        !engine->config.no_predictor, &engine->model, error);
  if (status != WICK_OK) return status;
  loader_fill(engine->loader, engine->model);
  const kernel_kv_type keys = kv_key_type(engine->config.k_type);
  engine->model->has_open_pages =
      !engine->model->is_encoder && engine->kernels->kv[keys].k_encode != NULL;
  status = choose_context(engine, error);
  if (status != WICK_OK) return status;
  const uint32_t vocab = engine->model->config.vocab;
  if (engine->tokenizer != NULL && tokenizer_vocab(engine->tokenizer) > vocab) {
    return fail_with(error, WICK_E_SHAPE, WICK_NO_OFFSET,
                     "the tokenizer has %u tokens, but 'token_embd.weight' has %u rows",
                     tokenizer_vocab(engine->tokenizer), vocab);
  }
  return engine_may_move_tables(engine) ? engine_choose_tables(engine, error) : WICK_OK;
}

wick_status engine_check_budget(const wick_engine *engine, const char *what, uint64_t more_bytes,
                                wick_error *error) {
  wick_plan plan;
  const wick_status status = wick_memory_plan(engine, &plan, error);
  const uint64_t limit = wick_engine_memory_limit(engine);
  if (status != WICK_OK || limit == 0) return status;
  if (plan.total_bytes <= limit && more_bytes <= limit - plan.total_bytes) return WICK_OK;
  plan.total_bytes += more_bytes;
  const bool is_budget = limit == engine->memory.budget_bytes;
  fail_with(error, WICK_E_NOMEM, WICK_NO_OFFSET,
            "%s needs %llu bytes with a context of %u tokens; the %s is %llu", what,
            (unsigned long long)plan.total_bytes, plan.context_tokens,
            is_budget ? "budget" : "host's limit", (unsigned long long)limit);
  if (error != NULL) error->numbers[2] = plan.context_tokens;
  return status_about(WICK_E_NOMEM, error, is_budget ? WICK_SUBJECT_PLAN : WICK_SUBJECT_HOST,
                      plan.total_bytes, limit);
}

// Returns the number of recurrent states that are kept as checkpoints.
static uint32_t count_checkpoints(uint64_t state_bytes) {
  const uint64_t count = CHECKPOINTS_BYTES / state_bytes;
  return count < CHECKPOINTS_MIN ? CHECKPOINTS_MIN
                                 : (count > CHECKPOINTS_MAX ? CHECKPOINTS_MAX : (uint32_t)count);
}

// Returns the configuration of the store. The plan counts the pages of one engine. Up to that
// number, the pools grow before they evict idle pages of the prefix cache. Beyond it, they evict
// first, and grow only for concurrent requests.
store_config engine_store_config(const wick_engine *engine) {
  const uint32_t pages = ceil_div_u32(engine->context_tokens, KERNEL_PAGE_TOKENS);
  const uint32_t kv_tokens = engine->config.kv_tokens_max;
  uint32_t pages_max = pages * CONTEXTS_DEFAULT;
  if (kv_tokens != 0) pages_max = ceil_div_u32(kv_tokens, KERNEL_PAGE_TOKENS);
  const uint64_t state_bytes = engine->model->state_bytes;
  store_config config = {.group_count = engine->model->group_count,
                         .batch_tokens = engine->config.batch_tokens,
                         .pages_max = pages_max,
                         .pages_keep = pages < pages_max ? pages : pages_max,
                         .prefix_entries_max = engine->config.no_prefix_cache ? 0 : pages_max,
                         .state_bytes = state_bytes,
                         .checkpoints_max = state_bytes == 0 ? 0 : count_checkpoints(state_bytes)};
  for (uint32_t i = 0; i < config.group_count; i++) {
    const model_group *group = &engine->model->groups[i];
    config.groups[i] = (kv_shape){.layers = group->layers,
                                  .kv_heads = group->kv_heads,
                                  .head_dim = group->head_dim,
                                  .k_type = kv_key_type(engine->config.k_type),
                                  .v_type = kv_value_type(engine->config.v_type),
                                  .window = group->window};
  }
  return config;
}

static wick_status create_kv(wick_engine *engine, wick_error *error) {
  const store_config config = engine_store_config(engine);
  const wick_status status =
      store_create(&engine->memory, engine->kernels, &config, &engine->store, error);
  if (status != WICK_OK) return status;
  engine->kv = store_pages(engine->store);
  engine->prefix = store_prefix(engine->store);
  sessions_init(&engine->sessions, &engine->memory, engine->store);
  engine->sessions.adapters = &engine->adapters;
  engine->sessions.model = engine->model;
  engine->sessions.batch_tokens = engine->config.batch_tokens;
  return WICK_OK;
}

// Checks the kernels that the model uses against known results. Vectors (norms, biases) are not
// operands of matrix products.
static wick_status check_kernels(const wick_engine *engine, wick_error *error) {
  kernel_needs needs = {.k_type = kv_key_type(engine->config.k_type),
                        .v_type = kv_value_type(engine->config.v_type),
                        .is_recurrent = engine->model->state_bytes != 0};
  if (engine->model->is_encoder) needs.k_type = needs.v_type = KERNEL_KV_F32;
  for (uint32_t i = 0; i < loader_tensor_count(engine->loader); i++) {
    const gguf_tensor *tensor = loader_tensor_at(engine->loader, i);
    if (!model_wants(engine->model, i) || tensor->type >= GGML_TYPE_COUNT) continue;
    if (tensor->dims[1] > 1) needs.types[tensor->type] = true;
  }
  return kernels_check(engine->kernels, &needs, error);
}

// Checks kernels. The first step checks all kernels: the host compiles them at that time, so the
// model loads sooner. The host's compiler recompiles functions that are called often, which could
// introduce errors. So the next steps check DOT_CHECKS * KERNEL_DOTS relaxed dot products, and then
// all kernels again.
void engine_check_kernels(wick_engine *engine) {
  const kernel_table *kernels = engine->kernels;
  const uint32_t last = kernels->dots_are_right == NULL ? 0 : DOT_CHECKS;
  const uint32_t step = engine->kernel_checks;
  if (step > last) return;
  wick_status status = WICK_OK;
  if (step > 0 && !kernels->dots_are_right()) {
    status = kernels_fail_dots(kernels, &engine->load_error);
  } else if (step == 0 || step == last) {
    status = check_kernels(engine, &engine->load_error);
  }
  engine->kernel_checks = status == WICK_OK ? step + 1 : last + 1;
}

static predictor_parts parts_of_predictor(const wick_engine *engine) {
  return (predictor_parts){.memory = (memory_gate *)&engine->memory,
                           .model = engine->model,
                           .threads = engine->threads,
                           .now_us = engine->now_us,
                           .threads_max = engine->config.threads,
                           .context_tokens = engine->context_tokens,
                           .k_type = kv_key_type(engine->config.k_type),
                           .v_type = kv_value_type(engine->config.v_type)};
}

static wick_status create_predictor(wick_engine *engine, wick_error *error) {
  if (engine->model->predictor.first == NULL) return WICK_OK;
  const predictor_parts parts = parts_of_predictor(engine);
  return predictor_create(&parts, &engine->predictor, error);
}

static wick_status build_engine(wick_engine *engine, wick_error *error) {
  wick_status status = engine_check_budget(engine, "the model", 0, error);
  if (status == WICK_OK) status = model_allocate_weights(engine->model, error);
  if (status == WICK_OK) status = create_kv(engine, error);
  if (status != WICK_OK) return status;
  status = forward_create(engine->model, engine->store, engine->threads, engine->config.threads,
                          engine_batch_tokens(engine), &engine->forward, error);
  if (status != WICK_OK) return status;
  forward_measure(engine->forward, engine->ops);
  if (engine->config.choose_threads) forward_choose_threads(engine->forward);
  status = create_predictor(engine, error);
  if (status != WICK_OK) return status;
  const scheduler_parts parts = {
      .memory = &engine->memory,
      .model = engine->model,
      .predictor = engine->predictor,
      .tokenizer = engine->tokenizer,
      .store = engine->store,
      .sessions = &engine->sessions,
      .adapters = &engine->adapters,
      .forward = engine->forward,
      .ops = engine->ops,
      .swap = engine->config.swap,
      .now_us = engine->now_us,
      .batch_tokens = engine->config.batch_tokens,
      .context_tokens = engine->context_tokens,
      .requests_max = engine->config.requests_max,
      .running_max = engine->config.running_max,
      .queue_tokens_max = engine->config.queue_tokens_max,
      .grammar_limits = {engine->config.grammar_bytes_max, engine->config.grammar_steps_max}};
  return scheduler_create(&parts, &engine->scheduler, error);
}

static wick_status read_tokenizer(wick_engine *engine, wick_error *error) {
  const gguf_directory *directory = loader_directory(engine->loader);
  wick_status status = engine_refuse_tokenizer(directory, error);
  if (status != WICK_OK) return status;
  status = tokenizer_create(&engine->memory, directory, engine->config.pre_tokenizer,
                            &engine->tokenizer, error);
  if (status != WICK_E_NODATA) return status;
  return fail_with(error, WICK_E_FORMAT, WICK_NO_OFFSET,
                   "the file has no tokenizer (the key 'tokenizer.ggml.model' is missing)");
}

// Reads the tokenizer and the model if only the directory is loaded. A model that would not run is
// not an error; the reason is stored in model_error.
static wick_status look_at_directory(wick_engine *engine, wick_error *error) {
  wick_status status = read_tokenizer(engine, &engine->tokenizer_error);
  if (status == WICK_E_NOMEM) return engine_repeat_error(&engine->tokenizer_error, error);
  status = read_model(engine, &engine->model_error);
  if (status == WICK_OK) return WICK_OK;
  model_destroy(engine->model);
  engine->model = NULL;
  return status == WICK_E_NOMEM ? engine_repeat_error(&engine->model_error, error) : WICK_OK;
}

wick_status engine_take_directory(void *context, wick_error *error) {
  wick_engine *engine = context;
  wick_status status;
  kernels_bind();  // fills tables whose code may not have been loaded when the engine was created
  if (engine->config.directory_only) {
    status = look_at_directory(engine, error);
  } else {
    status = read_tokenizer(engine, error);
    if (status == WICK_OK) status = read_model(engine, error);
    if (status == WICK_OK) status = build_engine(engine, error);
  }
  engine->is_directory_ready = status == WICK_OK;
  return status;
}

static bool is_held(void *context) { return engine_is_held(context); }

// ---- Lifetime ----

static bool has_prefix(const char *name, const char *prefix) {
  const size_t length = strlen(prefix);
  return strlen(name) >= length && memcmp(name, prefix, length) == 0;
}

// Returns the lane of the kernels. In native builds, vector kernels are called simd128, regardless
// of the processor's instructions.
static op_lane lane_of(const kernel_table *kernels) {
  if (has_prefix(kernels->name, lane_name(LANE_SCALAR))) return LANE_SCALAR;
  if (has_prefix(kernels->name, lane_name(LANE_RELAXED))) return LANE_RELAXED;
  return LANE_SIMD128;
}

static wick_status create_metrics(wick_engine *engine, wick_error *error) {
  engine->ops = memory_alloc(&engine->memory, sizeof *engine->ops);
  if (engine->ops == NULL) {
    return memory_fail(&engine->memory, error, "the metrics");
  }
  ops_init(engine->ops, lane_of(engine->kernels), engine->now_us, engine->config.timer_grain_us);
  return WICK_OK;
}

wick_status wick_engine_create(const wick_config *config, wick_engine **out, wick_error *error) {
  return engine_create(config, &(engine_hooks){0}, out, error);
}

wick_status engine_create(const wick_config *config, const engine_hooks *hooks, wick_engine **out,
                          wick_error *error) {
  wick_config chosen = *config;
  wick_status status = check_config(&chosen, error);
  if (status != WICK_OK) return status;
  memory_gate memory;
  memory_init(&memory, chosen.memory_bytes_max, platform_alloc, platform_free);
  memory_use_host(&memory, chosen.host);
  memory.fail_at_call = hooks->fail_at_call;
  memory.fail_from_call = hooks->fail_from_call;
  const uint64_t host_bytes_max = memory.host == NULL ? platform_memory_bytes_max() : 0;
  wick_engine *engine = memory_alloc_zeroed(&memory, sizeof *engine);
  if (engine == NULL) return memory_fail(&memory, error, "the engine");
  engine->memory = memory;
  engine->host_bytes_max = host_bytes_max;
  engine->config = chosen;
  const bool has_clock = chosen.host != NULL && chosen.host->now_us != NULL;
  engine->now_us = has_clock ? chosen.host->now_us : platform_now_us;
  engine->kernels = hooks->kernels != NULL ? hooks->kernels : kernels_named(chosen.kernels);
  engine->config.kernels = engine->kernels->name;
  keep_pre_tokenizer(engine);
  status =
      thread_pool_create(&engine->memory, chosen.host, chosen.threads, &engine->threads, error);
  if (status == WICK_OK) status = check_threads(engine, error);
  if (status == WICK_OK && chosen.metrics) status = create_metrics(engine, error);
  if (status == WICK_OK) {
    const loader_sink sink = {engine,      is_held,     engine_take_directory,
                              model_wants, model_place, model_tensor_done};
    status = loader_create(&engine->memory, &sink, chosen.directory_only, &engine->loader, error);
  }
  if (status != WICK_OK) {
    wick_engine_destroy(engine);
    return status;
  }
  *out = engine;
  return WICK_OK;
}

static void say(const wick_host *host, const char *line) {
  if (host != NULL && host->log != NULL) {
    host->log(host->context, line);
  } else {
    platform_log(line);
  }
}

void wick_engine_destroy(wick_engine *engine) {
  if (engine == NULL) return;
  wick_embed_end(engine);
  scheduler_destroy(engine->scheduler);
  if (engine->media != NULL) engine->media->close(engine);
  engine_free_adapters(engine);
  drafter_destroy(engine->drafter);
  if (engine->predictor != NULL) predictor_destroy(engine->predictor);
  forward_destroy(engine->forward);
  sessions_destroy(&engine->sessions);
  store_destroy(engine->store);
  model_destroy(engine->model);
  engine_free_chat(engine);
  tokenizer_destroy(engine->tokenizer);
  loader_destroy(engine->loader);
  thread_pool_destroy(engine->threads);
  memory_free(&engine->memory, engine->ops);
  memory_gate memory = engine->memory;
  const wick_host *host = engine->config.host;
  memory_free(&memory, engine);
  if (memory.blocks_now != 0) say(host, "wick: memory leak: not all blocks were freed");
}

uint64_t wick_engine_memory_limit(const wick_engine *engine) {
  const uint64_t budget = engine->memory.budget_bytes, host = engine->host_bytes_max;
  return budget != 0 && (host == 0 || budget <= host) ? budget : host;
}

void wick_memory_get_state(const wick_engine *engine, wick_memory_state *state) {
  const memory_gate *memory = &engine->memory;
  *state = (wick_memory_state){.budget_bytes = memory->budget_bytes,
                               .bytes_now = memory->bytes_now,
                               .bytes_peak = memory->bytes_peak,
                               .calls = memory->calls,
                               .blocks_now = memory->blocks_now};
}

uint32_t wick_engine_threads(const wick_engine *engine) {
  return thread_pool_threads(engine->threads);
}

uint32_t wick_engine_threads_used(const wick_engine *engine, uint32_t tokens) {
  if (engine->forward == NULL) return wick_engine_threads(engine);
  return forward_threads(engine->forward, tokens);
}

const wick_config *wick_engine_config(const wick_engine *engine) { return &engine->config; }

// ---- Plan and information ----

wick_status engine_repeat_error(const wick_error *from, wick_error *error) {
  if (error != NULL) *error = *from;
  return from->status;
}

wick_status engine_no_model(const wick_engine *engine, wick_error *error) {
  if (engine->model_error.status != WICK_OK)
    return engine_repeat_error(&engine->model_error, error);
  if (engine->is_directory_ready) {
    fail_with(error, WICK_E_NODATA, WICK_NO_OFFSET, "only the model's directory was requested");
    return status_about(WICK_E_NODATA, error, WICK_SUBJECT_DIRECTORY_ONLY, 0, 0);
  }
  return fail_with(error, WICK_E_NODATA, WICK_NO_OFFSET,
                   "the model's directory has not arrived yet");
}

wick_status wick_memory_plan(const wick_engine *engine, wick_plan *plan, wick_error *error) {
  if (engine->model == NULL) return engine_no_model(engine, error);
  const wick_config *config = &engine->config;
  const store_config store = engine_store_config(engine);
  const gguf_directory *directory = loader_directory(engine->loader);
  const uint64_t page_bytes = store_plan_bytes(engine->kernels, &store, KERNEL_PAGE_TOKENS);
  *plan = (wick_plan){.context_tokens = engine->context_tokens,
                      .kv_page_bytes = (uint32_t)page_bytes,
                      .weights_bytes = engine->model->weights_bytes,
                      .outside_bytes = engine->model->outside_bytes,
                      .directory_bytes = gguf_directory_bytes(directory),
                      .tokenizer_bytes = tokenizer_plan_bytes(directory)};
  plan->scratch_bytes =
      forward_plan_bytes(engine->model, engine_batch_tokens(engine), config->threads);
  if (config->metrics) plan->scratch_bytes += sizeof(op_records);
  if (engine->tokenizer != NULL) {
    plan->scratch_bytes += scheduler_plan_bytes(engine->tokenizer, config->batch_tokens);
  }
  wick_sampling sampling;
  sampler_set_defaults(&sampling);
  sampling.temperature = 1.0f;  // a sampler without top-k needs the most memory
  plan->scratch_bytes += sampler_plan_bytes(&sampling, engine->model->config.vocab);
  plan->kv_bytes = store_plan_bytes(engine->kernels, &store, engine->context_tokens);
  plan->kv_bytes += store_open_bytes(engine->kernels, &store);
  plan->kv_bytes += STATES_PLANNED * engine->model->state_bytes;
  if (engine->model->predictor.first != NULL) {
    const predictor_parts parts = parts_of_predictor(engine);
    const predictor_plan more = predictor_plan_bytes(&parts);
    plan->scratch_bytes += more.scratch_bytes;
    plan->kv_bytes += more.kv_bytes;
  }
  plan->adapter_bytes = engine_adapter_bytes(engine);
  plan->total_bytes = plan->directory_bytes + plan->tokenizer_bytes + plan->weights_bytes +
                      plan->scratch_bytes + plan->kv_bytes + plan->adapter_bytes;
  return WICK_OK;
}

static wick_text string_of(const gguf_directory *directory, const char *key) {
  gguf_string text = {0};
  gguf_get_string(directory, key, &text, NULL);
  return (wick_text){text.bytes, (size_t)text.size_bytes};
}

wick_status wick_model_get_info(const wick_engine *engine, wick_model_info *info,
                                wick_error *error) {
  if (engine->model == NULL) return engine_no_model(engine, error);
  const model_config *config = &engine->model->config;
  const gguf_directory *directory = loader_directory(engine->loader);
  *info = (wick_model_info){.layers = config->layers,
                            .hidden = config->hidden,
                            .heads = config->heads,
                            .kv_heads = config->kv_heads,
                            .head_dim = config->head_dim,
                            .ffn = config->ffn,
                            .vocab = config->vocab,
                            .context_trained = config->context_trained};
  info->is_encoder = engine->model->is_encoder;
  info->pooling = engine_pooling(engine);
  info->embedding = head_width(&engine->model->head, config->hidden, false);
  info->scores = head_width(&engine->model->head, config->hidden, true);
  info->architecture = string_of(directory, "general.architecture");
  info->name = string_of(directory, "general.name");
  for (size_t i = 0; i < loader_tensor_count(engine->loader); i++) {
    const gguf_tensor *tensor = loader_tensor_at(engine->loader, i);
    info->parameters += tensor->dims[0] * tensor->dims[1] * tensor->dims[2] * tensor->dims[3];
  }
  return WICK_OK;
}

// ---- Requests ----

wick_status engine_submit(wick_engine *engine, const wick_request *request, const media_list *media,
                          const reply_wish *wish, uint32_t *id, wick_error *error) {
  const wick_status known = STATUS_CHECK_RESERVED("wick_request", request->reserved, error);
  if (known != WICK_OK) return known;
  if (engine->load_error.status != WICK_OK) return engine_refuse_again(engine, error);
  if (engine->scheduler == NULL) return engine_no_model(engine, error);
  if (engine->model->is_encoder) {
    return fail_with(error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
                     "the model is an encoder: it embeds texts and cannot continue them");
  }
  if (engine->is_draft) {
    return fail_with(error, WICK_E_BUSY, WICK_NO_OFFSET,
                     "the engine is the draft of another engine");
  }
  reply_wish plain = {0};
  if (wish == NULL && request->reasoning != NULL) {
    plain.format = engine_reply_format(engine);
  }
  if (wish == NULL) wish = &plain;
  return scheduler_submit(engine->scheduler, request, media, wish, id, error);
}

wick_status wick_request_submit(wick_engine *engine, const wick_request *request, uint32_t *id,
                                wick_error *error) {
  if (request->conversation != NULL) {
    return engine_submit_conversation(engine, request, NULL, id, error);
  }
  const wick_status status = engine_prepare_grammar(engine, request, error);
  return status == WICK_OK ? engine_submit_tokens(engine, request, NULL, id, error) : status;
}

// A separate function, so that programs that do not call it are linked without this code.
void wick_engine_compile_in_slices(wick_engine *engine) {
  engine->prepare_grammar = scheduler_prepare_grammar;
}

wick_status engine_prepare_grammar(wick_engine *engine, const wick_request *request,
                                   wick_error *error) {
  if (engine->prepare_grammar == NULL || request->grammar == NULL || engine->scheduler == NULL ||
      engine->prepare_grammar(engine->scheduler, request->grammar)) {
    return WICK_OK;
  }
  fail_with(error, WICK_E_BUSY, WICK_NO_OFFSET, "the grammar is being compiled");
  return status_about(WICK_E_BUSY, error, WICK_SUBJECT_GRAMMAR, 0, 0);
}

wick_status engine_submit_tokens(wick_engine *engine, const wick_request *request,
                                 const reply_wish *wish, uint32_t *id, wick_error *error) {
  if (engine->media == NULL || request->tokens == NULL) {
    return engine_submit(engine, request, NULL, wish, id, error);
  }
  media_list media = {0};
  wick_status status = engine->media->find(engine, request, &media, error);
  if (status == WICK_OK) status = engine_submit(engine, request, &media, wish, id, error);
  media_list_clear(&engine->memory, &media);
  return status;
}

wick_status wick_request_cancel(wick_engine *engine, uint32_t id) {
  return engine->scheduler == NULL ? WICK_E_ARG : scheduler_cancel(engine->scheduler, id);
}

wick_status wick_request_logits(wick_engine *engine, uint32_t id, wick_logits *logits) {
  request *request;
  if (engine->scheduler == NULL) return WICK_E_ARG;
  const wick_status status = scheduler_find_asking(engine->scheduler, id, &request);
  if (status != WICK_OK) return status;
  *logits = (wick_logits){.values = request->logits,
                          .vocab = engine->model->config.vocab,
                          .tokens = request->tokens,
                          .token_count = request->tokens_count};
  return WICK_OK;
}

wick_status wick_request_go_on(wick_engine *engine, uint32_t id) {
  request *request;
  if (engine->scheduler == NULL) return WICK_E_ARG;
  const wick_status status = scheduler_find_asking(engine->scheduler, id, &request);
  if (status == WICK_OK) request->is_answered = true;
  return status;
}

wick_status wick_request_pause(wick_engine *engine, uint32_t id, bool is_paused) {
  return engine->scheduler == NULL ? WICK_E_ARG : scheduler_pause(engine->scheduler, id, is_paused);
}

void wick_stats_get(const wick_engine *engine, wick_stats *stats) {
  *stats = (wick_stats){0};
  if (engine->scheduler != NULL) *stats = scheduler_get_stats(engine->scheduler);
}

void wick_pages_get_state(const wick_engine *engine, wick_pages_state *state) {
  *state = (wick_pages_state){0};
  if (engine->kv == NULL) return;
  *state = (wick_pages_state){.page_tokens = KERNEL_PAGE_TOKENS,
                              .pages_used = kv_pool_stats(engine->kv).used_pages,
                              .pages_available = kv_pool_pages_available(engine->kv)};
}

// Begins a step. Returns false if there is nothing to do.
static bool begin_step(wick_engine *engine) {
  if (engine->scheduler == NULL) return false;
  engine_check_kernels(engine);
  if (engine->load_error.status != WICK_OK) {
    scheduler_fail_all(engine->scheduler, &engine->load_error);
  }
  ops_resume(engine->ops);
  return true;
}

// Runs one unit. Returns false if nothing more can be done now; *result is the reason.
static bool work(wick_engine *engine, wick_step_result *result) {
  const scheduler_result done = scheduler_step(engine->scheduler);
  *result = WICK_STEP_PROGRESS;
  if (done == SCHEDULER_IDLE) *result = WICK_STEP_IDLE;
  if (done == SCHEDULER_WAIT_BYTES) *result = WICK_STEP_WAIT_BYTES;
  return done == SCHEDULER_PROGRESS;
}

wick_step_result wick_step(wick_engine *engine, uint64_t budget_us) {
  if (!begin_step(engine)) return WICK_STEP_IDLE;
  const uint64_t start_us = engine->now_us();
  wick_step_result result;
  while (work(engine, &result)) {
    if (budget_us == 0 || engine->now_us() - start_us >= budget_us) break;
  }
  return result;
}

wick_step_result wick_step_units(wick_engine *engine, uint32_t units) {
  if (!begin_step(engine)) return WICK_STEP_IDLE;
  wick_step_result result;
  for (uint32_t done = 1; work(engine, &result) && done < units;) done++;
  return result;
}

const uint8_t *wick_events_take(wick_engine *engine, size_t *size_bytes) {
  *size_bytes = 0;
  if (engine->scheduler == NULL) return NULL;
  return scheduler_take_events(engine->scheduler, size_bytes);
}
