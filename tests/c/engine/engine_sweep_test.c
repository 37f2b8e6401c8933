// Allocation failures anywhere in the interface: the k-th allocation of a scenario fails, either
// once or together with all later ones. Each call must return, each request must end once, the
// engine must work once memory is available again, and all pages and memory must be freed. With
// WICK_SOAK=1 several batch sizes are tested.
#include <stdio.h>

#include "adapter_rig.h"
#include "consistency.h"

enum { STEPS_MAX = 20000, IDS_MAX = 64, SESSIONS_MAX = 8, PROMPT = 40 };

static const fixture_shape SHAPE = {GGML_TYPE_F32, 32, 32, 2, 1, 1, 128, false, 0};
static const uint64_t NEVER = UINT64_MAX;

typedef struct sweep {
  fixture_file file;
  wick_config config;
  engine_hooks hooks;
  wick_engine *engine, *draft;
  uint32_t ids[IDS_MAX], dones[IDS_MAX], count;
  uint32_t sessions[SESSIONS_MAX], session_count;
  int32_t prompt[PROMPT];
  fixture_file saved;
  size_t saved_read;
} sweep;

// ---- an engine ----

static wick_engine *open_engine(const sweep *s, const wick_config *config, wick_status *status) {
  wick_engine *engine = NULL;
  wick_error error = {0};
  *status = engine_create(config, &s->hooks, &engine, &error);
  if (*status == WICK_OK) *status = fixture_load(engine, &s->file, 0, &error);
  return engine;
}

static memory_gate *memory_of(const wick_engine *engine) {
  return (memory_gate *)(uintptr_t)&engine->memory;
}

static void take_one(void *context, const wick_event *event, const uint8_t *after) {
  sweep *s = context;
  for (uint32_t i = 0; i < s->count; i++) {
    if (s->ids[i] != event->request) continue;
    CHECK_EQ_UINT(s->dones[i], 0);
    s->dones[i] += event->kind == WICK_EVENT_DONE;
    if (event->kind != WICK_EVENT_DONE || event->finish != WICK_FINISH_ERROR) continue;
    CHECK(event->status == WICK_E_NOMEM || event->status == WICK_E_PAGES);
    const char *text = (const char *)after + 8 * event->top_count;
    const char *start = event->status == WICK_E_NOMEM ? "out of memory: " : "";
    CHECK(event->text_bytes > 15 && memcmp(text, start, strlen(start)) == 0);
  }
}

static void run_to_idle(sweep *s) {
  uint32_t steps = 0;
  while (wick_step(s->engine, 0) != WICK_STEP_IDLE && ++steps < STEPS_MAX) {
    fixture_take_all(s->engine, take_one, s);
  }
  fixture_take_all(s->engine, take_one, s);
  CHECK(steps < STEPS_MAX);
}

static wick_error last_error;  // set by the last call

// Returns whether the call succeeded. The only valid failure here is running out of memory, and the
// error must say so.
static bool went_well(wick_status status) {
  if (status == WICK_OK) return true;
  CHECK(status == WICK_E_NOMEM || status == WICK_E_PAGES);
  CHECK_EQ_INT(last_error.status, status);
  CHECK(strstr(last_error.message, status == WICK_E_NOMEM ? "out of memory: " : "KV pages") !=
        NULL);
  last_error = (wick_error){0};
  return false;
}

static bool submit(sweep *s, const wick_request *request) {
  uint32_t id = 0;
  if (!went_well(wick_request_submit(s->engine, request, &id, &last_error))) return false;
  const uint32_t completions = request->completions == 0 ? 1 : request->completions;
  for (uint32_t i = 0; i < completions && s->count < IDS_MAX; i++) s->ids[s->count++] = id + i;
  return true;
}

static wick_request ask(const sweep *s, uint32_t tokens, uint32_t max_tokens, uint32_t session) {
  wick_request request = fixture_request(s->prompt, tokens, max_tokens);
  request.session = session;
  return request;
}

static uint32_t keep_session(sweep *s, wick_status status, uint32_t id) {
  if (!went_well(status)) return 0;
  if (CHECK(id != 0 && s->session_count < SESSIONS_MAX)) s->sessions[s->session_count++] = id;
  return id;
}

static uint32_t new_session(sweep *s, const char *salt) {
  uint32_t id = 0;
  const wick_status status =
      wick_session_create_salted(s->engine, salt, strlen(salt), &id, &last_error);
  return keep_session(s, status, id);
}

static uint32_t fork_session(sweep *s, uint32_t session) {
  uint32_t id = 0;
  if (session == 0) return 0;
  const wick_status status = wick_session_fork(s->engine, session, &id, &last_error);
  return keep_session(s, status, id);
}

static void ask_session(sweep *s, uint32_t session, uint32_t tokens, uint32_t max_tokens) {
  if (session == 0) return;
  const wick_request request = ask(s, tokens, max_tokens, session);
  submit(s, &request);
  run_to_idle(s);
}

// ---- scenarios ----

static void with_sessions(sweep *s) {
  const uint32_t first = new_session(s, ""), other = new_session(s, "tenant");
  ask_session(s, first, 35, 6);
  ask_session(s, other, 20, 3);
  const uint32_t child = fork_session(s, first);
  ask_session(s, child, 3, 20);
  ask_session(s, first, 2, 4);
  for (uint32_t i = 0; i < 5; i++) fork_session(s, child);
  const int32_t *tokens;
  uint32_t count;
  if (first != 0 && wick_session_tokens(s->engine, first, &tokens, &count, NULL) == WICK_OK) {
    if (count > 20) went_well(wick_session_drop(s->engine, first, 5, 19, &last_error));
    ask_session(s, first, 4, 4);
  }
  if (child != 0 && wick_session_tokens(s->engine, child, &tokens, &count, NULL) == WICK_OK) {
    if (count > 30) {
      wick_request drop = ask(s, 0, 0, child);
      drop.tokens = NULL;
      drop.prefill_only = true;
      drop.drop_first = 3;
      drop.drop_last = 29;
      submit(s, &drop);
      run_to_idle(s);
    }
    went_well(wick_session_truncate(s->engine, child, 2, &last_error));
    ask_session(s, child, 30, 4);
  }
}

static bool write_saved(void *context, const void *bytes, size_t size_bytes) {
  return fixture_write(&((sweep *)context)->saved, bytes, size_bytes);
}

static bool read_saved(void *context, void *bytes, size_t size_bytes) {
  sweep *s = context;
  if (!CHECK(size_bytes <= s->saved.size_bytes - s->saved_read)) return false;
  memcpy(bytes, s->saved.bytes + s->saved_read, size_bytes);
  s->saved_read += size_bytes;
  return true;
}

static bool save(sweep *s, uint32_t session) {
  const wick_state_sink sink = {s, write_saved};
  uint64_t size_bytes = 0;
  s->saved.size_bytes = s->saved_read = 0;
  if (!went_well(wick_state_bytes(s->engine, session, &size_bytes, &last_error))) return false;
  if (!went_well(wick_state_save(s->engine, session, &sink, &last_error))) return false;
  return CHECK_EQ_UINT(s->saved.size_bytes, size_bytes);
}

static void load(sweep *s) {
  const wick_state_source source = {s, read_saved, s->saved.size_bytes};
  wick_state_loaded loaded = {0};
  const wick_status status = wick_state_load(s->engine, &source, &loaded, &last_error);
  if (!went_well(status) || loaded.session == 0) return;
  ask_session(s, keep_session(s, status, loaded.session), 5, 3);
}

static void with_states(sweep *s) {
  const uint32_t session = new_session(s, "tenant");
  ask_session(s, session, PROMPT, 5);
  if (session != 0 && save(s, session)) load(s);
  wick_request plain = ask(s, PROMPT, 2, 0);
  submit(s, &plain);
  run_to_idle(s);
  if (save(s, 0)) load(s);
}

static void with_completions(sweep *s) {
  static const char *const STOPS[] = {"xyz", "ab"};
  static const size_t STOP_BYTES[] = {3, 2};
  static const wick_bias BIAS[] = {{5, -3.0f}, {70, 1.0f}};
  wick_request request;
  wick_request_default(&request);
  request.text = "the inner thing, and then another one";
  request.text_bytes = 37;
  request.max_tokens = 9;
  request.completions = 4;
  request.ignore_end = true;
  request.stops = STOPS;
  request.stop_bytes = STOP_BYTES;
  request.stop_count = 2;
  request.sampling.temperature = 1.0f;
  request.sampling.logprobs = WICK_LOGPROBS_MAX;
  request.sampling.repeat_penalty = 1.1f;
  request.sampling.bias = BIAS;
  request.sampling.bias_count = 2;
  for (uint32_t i = 0; i < 3; i++) {
    request.salt = i == 2 ? "tenant" : NULL;
    request.salt_bytes = i == 2 ? 6 : 0;
    submit(s, &request);
    for (int k = 0; k < 7; k++) wick_step(s->engine, 0);
  }
  if (s->count > 2) wick_request_cancel(s->engine, s->ids[2]);
  run_to_idle(s);
}

// ---- a host that stores pages ----

static fixture_file kept[IDS_MAX];

static bool keep_open(void *context, uint32_t id, uint64_t size_bytes) {
  (void)context;
  (void)size_bytes;
  kept[id % IDS_MAX].size_bytes = 0;
  return true;
}
static bool keep_write(void *context, uint32_t id, uint64_t offset_bytes, const void *bytes,
                       size_t size_bytes) {
  (void)context;
  CHECK_EQ_UINT(offset_bytes, kept[id % IDS_MAX].size_bytes);
  return fixture_write(&kept[id % IDS_MAX], bytes, size_bytes);
}
static bool keep_read(void *context, uint32_t id, uint64_t offset_bytes, void *bytes,
                      size_t size_bytes) {
  (void)context;
  memcpy(bytes, kept[id % IDS_MAX].bytes + offset_bytes, size_bytes);
  return true;
}
static void keep_drop(void *context, uint32_t id) {
  (void)context;
  free(kept[id % IDS_MAX].bytes);
  kept[id % IDS_MAX] = (fixture_file){0};
}

// There are pages for two of the five requests; the others are preempted, and the host stores their
// pages.
static void with_swap(sweep *s) {
  for (int32_t i = 0; i < 5; i++) {
    s->prompt[0] = 10 + i;
    wick_request request = ask(s, 30, 40, 0);
    request.priority = i;
    submit(s, &request);
    for (int k = 0; k < 9; k++) wick_step(s->engine, 0);
  }
  run_to_idle(s);
}

static void with_draft(sweep *s) {
  went_well(wick_engine_set_draft(s->engine, s->draft, &last_error));
  for (uint32_t i = 0; i < 2; i++) {
    wick_request request = ask(s, 20 + i, 12, 0);
    request.always_speculates = true;
    submit(s, &request);
  }
  run_to_idle(s);
}

static void count_bytes(void *context, const char *bytes, size_t size_bytes) {
  (void)bytes;
  *(size_t *)context += size_bytes;
}

// Loads an adapter for the engine's model; returns 0 if that fails.
static uint32_t add_adapter(sweep *s, uint64_t seed) {
  rig_adapter rig = rig_begin(seed);
  rig_pair(&rig, "blk.0.attn_q.weight", GGML_TYPE_F32, 32, 32, 3);
  rig_pair(&rig, "blk.0.ffn_down.weight", GGML_TYPE_Q8_0, 32, 32, 32);
  fixture_file file = rig_write(&rig);
  uint32_t id = 0;
  const wick_status status =
      wick_adapter_load_bytes(s->engine, file.bytes, file.size_bytes, &id, &last_error);
  free(file.bytes);
  return went_well(status) ? id : 0;
}

static void with_adapters(sweep *s) {
  const uint32_t first = add_adapter(s, 1), second = add_adapter(s, 2);
  const wick_adapter_use uses[] = {{first, 1}, {second, 0.5f}};
  const uint32_t session = new_session(s, "");
  for (uint32_t i = 0; i < 4; i++) {
    wick_request request = ask(s, 20 + i, 6, i == 3 ? session : 0);
    request.adapters = uses + (i == 1);
    request.adapter_count = i == 2 ? 2 : 1;
    request.completions = i == 0 ? 3 : 0;
    const bool is_whole = first != 0 && second != 0 && (i != 3 || session != 0);
    if (is_whole) submit(s, &request);
  }
  run_to_idle(s);
  if (session != 0 && first != 0 && save(s, session)) load(s);
  if (first != 0) CHECK_EQ_INT(wick_adapter_remove(s->engine, first, NULL), WICK_OK);
  if (second != 0) CHECK_EQ_INT(wick_adapter_remove(s->engine, second, NULL), WICK_OK);
}

static void with_questions(sweep *s) {
  size_t total = 0, count = 0;
  wick_plan plan;
  wick_model_info info;
  int32_t ids[64];
  went_well(wick_memory_plan(s->engine, &plan, &last_error));
  went_well(wick_model_get_info(s->engine, &info, &last_error));
  wick_info_json(s->engine, count_bytes, &total);
  wick_inspect_json(s->engine, count_bytes, &total);
  wick_pages_json(s->engine, true, count_bytes, &total);
  wick_stats_json(s->engine, count_bytes, &total);
  CHECK(total > 1000);
  went_well(tokenizer_encode(s->engine->tokenizer, "the <|end|> end", 15,
                             WICK_TOKENIZE_PARSE_SPECIAL, ids, 64, &count, &last_error));
  wick_request logits = ask(s, 10, 1, 0);
  submit(s, &logits);
  run_to_idle(s);
}

// ---- the sweep ----

typedef struct scenario {
  const char *name;
  void (*run)(sweep *s);
  bool has_draft, is_short;  // is_short: the pages are not enough for all requests
} scenario;

static const wick_swap_host KEEPER = {
    .open = keep_open, .write = keep_write, .read = keep_read, .drop = keep_drop};

static void set_up(sweep *s, const scenario *scenario, const fixture_file *file) {
  memset(s, 0, sizeof *s);
  s->file = *file;
  wick_config_default(&s->config);
  s->config.metrics = true;
  if (scenario->is_short) {
    s->config.kv_tokens_max = 160;
    s->config.swap = &KEEPER;
  }
  for (int32_t i = 0; i < PROMPT; i++) s->prompt[i] = i * 7 % 250;
}

static void check_pages(const sweep *s) {
  wick_error error;
  CHECK_EQ_INT(kv_pool_check(s->engine->kv, &error), WICK_OK);
  const kv_stats stats = kv_pool_stats(s->engine->kv);
  CHECK_EQ_UINT(stats.active_sequences, 0);
  CHECK_EQ_UINT(stats.used_pages, stats.pages_held_prefix);
}

// Checks that the engine works afterwards as if nothing had happened.
static void check_works(sweep *s) {
  for (uint32_t i = 0; i < s->count; i++) CHECK_EQ_UINT(s->dones[i], 1);
  memory_of(s->engine)->fail_at_call = memory_of(s->engine)->fail_from_call = 0;
  s->count = 0;
  memset(s->dones, 0, sizeof s->dones);
  const wick_request request = ask(s, 10, 3, 0);
  CHECK(submit(s, &request));
  run_to_idle(s);
  CHECK_EQ_UINT(s->dones[0], 1);
  for (uint32_t i = 0; i < s->session_count; i++) {
    CHECK_EQ_INT(wick_session_close(s->engine, s->sessions[i], NULL), WICK_OK);
  }
  check_pages(s);
}

// Runs the scenario so that the k-th allocation after loading fails. Returns the number of
// allocations.
static uint64_t run_once(const scenario *scenario, const fixture_file *file, uint32_t batch_tokens,
                         uint64_t k, bool is_lasting) {
  static sweep s;
  wick_status status;
  set_up(&s, scenario, file);
  s.config.batch_tokens = batch_tokens;
  s.engine = open_engine(&s, &s.config, &status);
  CHECK_EQ_INT(status, WICK_OK);
  if (scenario->has_draft) {
    wick_config plain;
    wick_config_default(&plain);
    s.draft = open_engine(&s, &plain, &status);
    CHECK_EQ_INT(status, WICK_OK);
  }
  // in every other run, the allocation of the draft engine fails
  memory_gate *memory = memory_of(s.draft != NULL && k % 2 == 0 ? s.draft : s.engine);
  const uint64_t first = memory->calls;
  if (k != NEVER && is_lasting) memory->fail_from_call = first + k;
  if (k != NEVER && !is_lasting) memory->fail_at_call = first + k;
  scenario->run(&s);
  const uint64_t calls = memory->calls - first;
  memory->fail_at_call = memory->fail_from_call = 0;
  check_works(&s);
  wick_engine_destroy(s.engine);
  wick_engine_destroy(s.draft);
  free(s.saved.bytes);
  for (int i = 0; i < IDS_MAX; i++) CHECK(kept[i].bytes == NULL);
  return calls;
}

// With WICK_SOAK=1, every batch size is tested.
static bool is_soak(void) {
  const char *soak = getenv("WICK_SOAK");
  return soak != NULL && soak[0] == '1';
}

static void sweep_batch(const scenario *scenario, const fixture_file *file, uint32_t batch_tokens) {
  const uint64_t calls = run_once(scenario, file, batch_tokens, NEVER, false);
  for (uint64_t k = 1; k <= calls; k++) {
    run_once(scenario, file, batch_tokens, k, false);
    run_once(scenario, file, batch_tokens, k, true);
  }
  printf("#   %s, batches of %u: %llu allocations\n", scenario->name, batch_tokens,
         (unsigned long long)calls);
  CHECK(calls > 5);
}

static void sweep_scenario(const scenario *scenario) {
  static const uint32_t BATCHES[] = {24, 1, 5, 16, 17, 100};
  fixture_file file = fixture_make(&SHAPE);
  const size_t count = is_soak() ? sizeof BATCHES / sizeof *BATCHES : 1;
  for (size_t i = 0; i < count; i++) sweep_batch(scenario, &file, BATCHES[i]);
  free(file.bytes);
}

TEST(allocations_fail_in_sessions_forks_and_drops) {
  sweep_scenario(&(scenario){"sessions", with_sessions, false, false});
}
TEST(allocations_fail_while_states_are_saved_and_loaded) {
  sweep_scenario(&(scenario){"states", with_states, false, false});
}
TEST(allocations_fail_in_completions_with_all_options) {
  sweep_scenario(&(scenario){"completions", with_completions, false, false});
}
TEST(allocations_fail_in_preempted_requests) {
  sweep_scenario(&(scenario){"swap", with_swap, false, true});
}
TEST(allocations_fail_with_a_draft_model) {
  sweep_scenario(&(scenario){"draft", with_draft, true, false});
}
TEST(allocations_fail_with_adapters) {
  sweep_scenario(&(scenario){"adapters", with_adapters, false, false});
}
TEST(allocations_fail_in_queries_about_the_engine) {
  sweep_scenario(&(scenario){"queries", with_questions, false, false});
}

// Loads a model while all allocations from the k-th on fail.
TEST(allocations_fail_while_loading) {
  static sweep s;
  fixture_file file = fixture_make(&SHAPE);
  const scenario none = {"loading", NULL, false, false};
  bool has_failed = true;
  uint64_t tried = 0;
  for (uint64_t k = 1; has_failed; k++, tried++) {
    wick_status status;
    set_up(&s, &none, &file);
    s.hooks.fail_from_call = k;
    s.engine = open_engine(&s, &s.config, &status);
    has_failed = status != WICK_OK;
    if (has_failed) CHECK_EQ_INT(status, WICK_E_NOMEM);
    wick_engine_destroy(s.engine);
    REQUIRE(k < 5000);
  }
  printf("#   loading: %llu failures\n", (unsigned long long)tried - 1);
  CHECK(tried > 3);
  free(file.bytes);
}
