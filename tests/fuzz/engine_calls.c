// See engine_calls.h.
#include "engine_calls.h"
#include "../c/support/consistency.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/insides.h"

enum {
  CALLS_MAX = 48,
  REQUESTS_MAX = 96,
  SESSIONS_MAX = 8,
  KEPT_MAX = 64,
  STEPS_MAX = 30000,
  TEXT_MAX = 640,
  TEXTS_MAX = 3 * TEXT_MAX,  // total bytes of text per input: sanitizers need 1 ms per byte
  CONTEXT = 64               // KV capacity of an engine in tokens, if it is limited
};

// ---- a host that keeps pages, as a list of records ----

static struct kept_record {
  uint32_t id;  // 0: unused
  memory_file file;
} kept[KEPT_MAX];

static struct kept_record *find_kept(uint32_t id) {
  for (int i = 0; i < KEPT_MAX; i++) {
    if (kept[i].id == id) return &kept[i];
  }
  return NULL;
}

static bool keep_open(void *context, uint32_t id, uint64_t size_bytes) {
  (void)context;
  struct kept_record *record = find_kept(0);
  REQUIRE(find_kept(id) == NULL);
  if (record == NULL || size_bytes > 1 << 20) return false;
  record->id = id;
  return true;
}

static bool keep_write(void *context, uint32_t id, uint64_t offset_bytes, const void *bytes,
                       size_t size_bytes) {
  (void)context;
  struct kept_record *record = find_kept(id);
  REQUIRE(record != NULL && record->file.size_bytes == offset_bytes);
  return file_write(&record->file, bytes, size_bytes);
}

static bool keep_read(void *context, uint32_t id, uint64_t offset_bytes, void *bytes,
                      size_t size_bytes) {
  (void)context;
  const struct kept_record *record = find_kept(id);
  REQUIRE(record != NULL && offset_bytes + size_bytes <= record->file.size_bytes);
  memcpy(bytes, record->file.bytes + offset_bytes, size_bytes);
  return true;
}

static void keep_drop(void *context, uint32_t id) {
  (void)context;
  struct kept_record *record = find_kept(id);
  REQUIRE(record != NULL);
  file_free(&record->file);
  record->id = 0;
}

static const wick_swap_host KEEPER = {
    .open = keep_open, .write = keep_write, .read = keep_read, .drop = keep_drop};

// ---- the engine under test ----

typedef struct fuzz_run {
  wick_engine *engine, *draft;
  memory_file file, adapter;
  uint32_t adapter_id;  // 0: no adapter is loaded
  memory_file saved;
  size_t saved_read;
  bool is_failed;  // loading has failed
  uint32_t ids[REQUESTS_MAX], request_count;
  uint32_t dones[REQUESTS_MAX];
  uint32_t sessions[SESSIONS_MAX], session_count;
  uint64_t steps;
  size_t text_bytes;  // of all text so far
} fuzz_run;

static wick_engine *make_engine(input *in, bool is_draft) {
  wick_config config;
  wick_config_default(&config);
  const uint32_t flags = next_u8(in);
  config.memory_bytes_max = 64 << 20;
  config.threads = 1;
  config.k_type = (wick_kv_type)(flags & 3);
  config.v_type = (wick_kv_type)(flags >> 2 & 3);
  config.no_prefix_cache = (flags & 16) != 0;
  config.metrics = (flags & 32) != 0;
  if ((flags & 64) != 0 && !is_draft) config.swap = &KEEPER;
  if ((flags & 128) != 0) config.kv_tokens_max = CONTEXT + 16 * (next_u8(in) % 8);
  config.batch_tokens = next_u8(in) % 40;
  config.running_max = next_u8(in) % 8;
  const uint32_t failing = next_u8(in);
  const engine_hooks hooks = {.fail_at_call = failing >= 128 ? failing * 2 - 250 : 0};
  wick_engine *engine = NULL;
  wick_error error;
  const wick_status status = engine_create(&config, &hooks, &engine, &error);
  REQUIRE((status == WICK_OK) == (engine != NULL));
  static const char TEMPLATE[] =
      "{% if 0 %}<tool_call><think>{% endif %}"
      "{% for one in messages %}{{ one.content }}|{% endfor %}";
  if (engine != NULL) wick_chat_set_template(engine, TEMPLATE, sizeof TEMPLATE - 1, &error);
  return engine;
}

// Feeds up to `bytes` of the requested bytes; returns whether more are requested.
static bool load_some(fuzz_run *run, wick_engine *engine, uint64_t bytes, size_t piece) {
  wick_error error;
  while (!run->is_failed && bytes != 0) {
    uint32_t index;
    uint64_t offset, length;
    wick_load_next_range(engine, &index, &offset, &length);
    if (length == 0) return false;
    wick_status status;
    if (index != 0 || offset >= run->file.size_bytes) {
      status = wick_load_end(engine, index, index == 0 ? run->file.size_bytes : 0, &error);
      run->is_failed = status != WICK_OK;
      if (status == WICK_OK) return false;
      break;
    }
    uint64_t take = run->file.size_bytes - offset;
    if (take > length) take = length;
    if (take > piece) take = piece;
    if (take > bytes) take = bytes;
    bytes -= take;
    status = wick_load_feed(engine, index, offset, run->file.bytes + offset, (size_t)take, &error);
    run->is_failed = status != WICK_OK;
  }
  return !run->is_failed;
}

static void take_events(fuzz_run *run) {
  size_t bytes;
  const uint8_t *at = wick_events_take(run->engine, &bytes);
  for (size_t used = 0; used < bytes;) {
    wick_event event;
    memcpy(&event, at + used, sizeof event);
    REQUIRE(event.size_bytes >= sizeof event && event.size_bytes <= bytes - used);
    REQUIRE(sizeof event + 8 * event.top_count + event.text_bytes <= event.size_bytes);
    for (uint32_t i = 0; i < run->request_count; i++) {
      if (run->ids[i] != event.request) continue;
      REQUIRE(run->dones[i] == 0);  // no event follows the end
      run->dones[i] += event.kind == WICK_EVENT_DONE;
    }
    used += event.size_bytes;
  }
}

static wick_step_result step(fuzz_run *run) {
  REQUIRE(run->steps++ < STEPS_MAX);
  return wick_step(run->engine, 0);
}

// ---- calls ----

static const char *choose_text(fuzz_run *run, input *in, char text[TEXT_MAX], size_t *size_bytes) {
  static const char *const TEXTS[] = {"the lo", "", "the the the the the", "<s>t</s><|im_start|> a",
                                      "\xc3\xa9\xff\xe2\x96\x81 aaaa\n\n"};
  const uint32_t choice = next_u8(in);
  if (choice < 5) {
    *size_bytes = strlen(TEXTS[choice]);
    return TEXTS[choice];
  }
  *size_bytes = choice < 128 ? choice % 24 : choice * 5 % TEXT_MAX;
  if (*size_bytes > TEXTS_MAX - run->text_bytes) *size_bytes = TEXTS_MAX - run->text_bytes;
  run->text_bytes += *size_bytes;
  const char letter = (char)next_u8(in);
  for (size_t i = 0; i < *size_bytes; i++) {
    text[i] = choice < 64 ? (char)next_u8(in) : i % 17 == 16 ? ' ' : letter;
  }
  return text;
}

// Some requests reply to a conversation whose first message is the text.
static void make_conversation(uint32_t how, wick_request *request, wick_conversation *of,
                              wick_reasoning *reasoning, wick_grammar *grammar) {
  static const char *const TALKS[] = {
      "{\"messages\":[{\"content\":\"the lo\"}]}",
      "{\"messages\":[{\"content\":\"the lo\"},{\"content\":\"a\"}],\"tools\":[{\"name\":\"get\","
      "\"parameters\":{\"properties\":{\"a\":{\"type\":\"integer\"}}}}]}",
      "{\"messages\":[],\"tool_choice\":\"required\",\"tools\":[{\"name\":\"a\"},{\"name\":\"ab\"}]"
      "}",
      "{\"messages\":[{\"content\":\"<think>\"}],\"tool_choice\":\"any\",\"tools\":[]}"};
  const char *json = TALKS[how % 4];
  *of = (wick_conversation){.chat = {.json = json,
                                     .json_bytes = strlen(json),
                                     .prefix = request->text,
                                     .prefix_bytes = request->text_bytes}};
  *reasoning = (wick_reasoning){.tokens_max = how % 5};
  *grammar = (wick_grammar){.kind = WICK_GRAMMAR_REGEX, .text = "[a-z ]+", .text_bytes = 7};
  request->text_bytes = 0;
  request->conversation = of;
  if ((how & 4) != 0) request->reasoning = reasoning;
  if ((how & 8) != 0) request->grammar = grammar;
}

// Checks that a rejected request changes nothing.
static wick_status submit_checked(fuzz_run *run, const wick_request *request, uint32_t *id) {
  wick_error error;
  const int32_t *tokens;
  uint32_t before = 0, after = 0;
  wick_session_tokens(run->engine, request->session, &tokens, &before, &error);
  const wick_status status = wick_request_submit(run->engine, request, id, &error);
  if (status == WICK_OK) return status;
  wick_session_tokens(run->engine, request->session, &tokens, &after, &error);
  REQUIRE(before == after);
  return status;
}

static void submit(fuzz_run *run, input *in) {
  static const char *const STOPS[] = {"e", "th", "\xef\xbf\xbd"};
  static const size_t STOP_BYTES[] = {1, 2, 3};
  char text[TEXT_MAX];
  wick_request request;
  wick_request_default(&request);
  const uint32_t how = next_u8(in), more = next_u8(in);
  request.text = choose_text(run, in, text, &request.text_bytes);
  request.max_tokens = 1 + more % 12;
  request.priority = (int32_t)(how % 5) - 2;
  request.completions = (how & 7) == 7 ? 1 + more % 5 : 0;
  request.sampling.logprobs = (how & 16) != 0 ? WICK_LOGPROBS_MAX : 0;
  request.sampling.temperature = (how & 32) != 0 ? 1.0f : 0.0f;
  request.sampling.top_k = (how & 64) != 0 ? 5 : 0;
  request.sampling.top_p = (how & 128) != 0 ? 0.5f : 1.0f;
  request.ignore_end = (more & 16) != 0;
  request.print_special = (more & 32) != 0;
  request.always_speculates = (more & 64) != 0;
  request.stops = STOPS;
  request.stop_bytes = STOP_BYTES;
  request.stop_count = (more & 128) != 0 ? 3 : 0;
  request.prefill_only = how == 3;
  if (run->session_count != 0 && (how & 8) != 0) {
    request.session = run->sessions[more % run->session_count];
    if (how == 15) {
      request.completions = 0;
      request.text_bytes = 0;
      request.prefill_only = true;
      request.drop_first = more % 7;
      request.drop_last = request.drop_first + more % 11;
    }
  }
  wick_conversation conversation;
  wick_reasoning reasoning;
  wick_grammar grammar;
  if (how % 13 == 12) make_conversation(more, &request, &conversation, &reasoning, &grammar);
  const wick_adapter_use use = {run->adapter_id, (float)(more % 5) - 1.0f};
  if (run->adapter_id != 0 && (how & 4) != 0) {
    request.adapters = &use;
    request.adapter_count = 1;
  }
  const uint32_t count = request.completions == 0 ? 1 : request.completions;
  if (run->request_count + count > REQUESTS_MAX) return;
  uint32_t id;
  if (submit_checked(run, &request, &id) != WICK_OK) return;
  for (uint32_t i = 0; i < count; i++) run->ids[run->request_count++] = id + i;
}

static void add_session(fuzz_run *run, wick_status status, uint32_t id) {
  if (status != WICK_OK || id == 0) return;
  REQUIRE(run->session_count < SESSIONS_MAX);
  run->sessions[run->session_count++] = id;
}

static bool write_saved(void *context, const void *bytes, size_t size_bytes) {
  return file_write(&((fuzz_run *)context)->saved, bytes, size_bytes);
}

static bool read_saved(void *context, void *bytes, size_t size_bytes) {
  fuzz_run *run = context;
  REQUIRE(size_bytes <= run->saved.size_bytes - run->saved_read);
  memcpy(bytes, run->saved.bytes + run->saved_read, size_bytes);
  run->saved_read += size_bytes;
  return true;
}

static void save_state(fuzz_run *run, uint32_t session) {
  const wick_state_sink sink = {run, write_saved};
  wick_error error;
  uint64_t size_bytes = 0;
  file_free(&run->saved);
  const wick_status told = wick_state_bytes(run->engine, session, &size_bytes, &error);
  const wick_status status = wick_state_save(run->engine, session, &sink, &error);
  if (status != WICK_OK) {
    file_free(&run->saved);
  } else {
    REQUIRE(told == WICK_OK && size_bytes == run->saved.size_bytes);
  }
}

static void load_state(fuzz_run *run, input *in) {
  const uint32_t damage = next_u8(in);
  if (damage != 0 && run->saved.size_bytes != 0) {
    run->saved.bytes[next_u16(in) % run->saved.size_bytes] ^= (uint8_t)damage;
  }
  if (run->session_count == SESSIONS_MAX) return;
  const wick_state_source source = {run, read_saved, run->saved.size_bytes};
  wick_state_loaded loaded = {0};
  wick_error error;
  run->saved_read = 0;
  const wick_status status = wick_state_load(run->engine, &source, &loaded, &error);
  add_session(run, status, loaded.session);
}

static void call_session(fuzz_run *run, input *in) {
  const uint32_t how = next_u8(in) % 6, a = next_u8(in), b = next_u8(in);
  uint32_t id = 0;
  wick_error error;
  if (how == 0 || run->session_count == 0) {
    if (run->session_count == SESSIONS_MAX) return;
    const wick_status status =
        wick_session_create_salted(run->engine, "tenant", a % 7, &id, &error);
    add_session(run, status, id);
    return;
  }
  const uint32_t chosen = a % run->session_count, session = run->sessions[chosen];
  if (how == 1 && run->session_count < SESSIONS_MAX) {
    const wick_status status = wick_session_fork(run->engine, session, &id, &error);
    add_session(run, status, id);
  }
  if (how == 2) wick_session_truncate(run->engine, session, b % 40, &error);
  if (how == 3) wick_session_drop(run->engine, session, b % 16, b / 8, &error);
  if (how == 4 && wick_session_close(run->engine, session, &error) == WICK_OK) {
    run->sessions[chosen] = run->sessions[--run->session_count];
  }
  if (how == 5) save_state(run, b % 2 == 0 ? session : 0);
}

// Tokenizes and detokenizes; checks that all tokens are in the vocabulary.
static void tokenize(fuzz_run *run, input *in) {
  char text[TEXT_MAX];
  size_t size_bytes, count = 0;
  const uint32_t flags = next_u8(in) % 4;
  const char *chosen = choose_text(run, in, text, &size_bytes);
  tokenizer *tokenizer = run->engine->tokenizer;
  if (tokenizer == NULL) return;
  int32_t ids[TEXT_MAX * 3 + 8];
  wick_error error;
  const wick_status status = tokenizer_encode(tokenizer, chosen, size_bytes, flags, ids,
                                              sizeof ids / sizeof *ids, &count, &error);
  if (status != WICK_OK) return;
  char *piece = malloc(tokenizer_piece_bytes_max(tokenizer) + 16);
  REQUIRE(piece != NULL);
  detokenizer state;
  detokenizer_init(&state, true, flags > 1);
  for (size_t i = 0; i < count; i++) {
    REQUIRE(ids[i] >= 0 && (uint32_t)ids[i] < tokenizer_vocab(tokenizer));
    detokenizer_feed(&state, tokenizer, ids[i], piece);
  }
  free(piece);
}

static void count_bytes(void *context, const char *bytes, size_t size_bytes) {
  *(size_t *)context += size_bytes + (size_bytes != 0 ? (uint8_t)bytes[size_bytes - 1] : 0);
}

static void look(fuzz_run *run) {
  size_t total = 0;
  wick_plan plan;
  wick_model_info info;
  wick_error error;
  wick_memory_plan(run->engine, &plan, &error);
  wick_model_get_info(run->engine, &info, &error);
  wick_info_json(run->engine, count_bytes, &total);
  if (engine_directory(run->engine) != NULL) wick_inspect_json(run->engine, count_bytes, &total);
  wick_pages_json(run->engine, true, count_bytes, &total);
  wick_stats_json(run->engine, count_bytes, &total);
  REQUIRE(total > 0);
}

// Finishes jobs that have begun, unless bytes are missing; checks that each vector can be read and
// is finite.
static wick_status finish_vectors(fuzz_run *run) {
  wick_error error;
  wick_step_result result = WICK_STEP_PROGRESS;
  for (uint64_t steps = 0; result == WICK_STEP_PROGRESS; steps++) {
    REQUIRE(steps < STEPS_MAX);
    const wick_status status = wick_embed_step(run->engine, 0, &result, &error);
    if (status != WICK_OK) return status;
  }
  wick_vectors vectors;
  for (uint32_t i = 0; wick_embed_get(run->engine, i, &vectors); i++) {
    for (size_t k = 0; k < (size_t)vectors.rows * vectors.width; k++) {
      REQUIRE(isfinite(vectors.values[k]));
    }
  }
  return WICK_OK;
}

static wick_status embed(fuzz_run *run, input *in) {
  char text[TEXT_MAX], other[TEXT_MAX];
  wick_embed_text texts[2] = {0};
  texts[0].text = choose_text(run, in, text, &texts[0].text_bytes);
  texts[1].text = choose_text(run, in, other, &texts[1].text_bytes);
  wick_embed_request request;
  wick_embed_default(&request);
  const uint32_t how = next_u8(in);
  request.texts = texts;
  request.text_count = 1 + how % 2;
  request.pooling = (wick_pooling)(how / 2 % 8);
  request.normalizes = (how & 16) != 0;
  request.truncates = (how & 32) != 0;
  request.dimensions = (how & 64) != 0 ? next_u8(in) : 0;
  wick_error error;
  wick_status status = wick_embed(run->engine, &request, &error);
  if (status == WICK_OK) status = finish_vectors(run);
  wick_embed_end(run->engine);
  return status;
}

static void call_adapter(fuzz_run *run) {
  wick_error error;
  if (run->adapter_id != 0) {
    if (wick_adapter_remove(run->engine, run->adapter_id, &error) == WICK_OK) run->adapter_id = 0;
    return;
  }
  uint32_t id = 0;
  const wick_status status = wick_adapter_load_bytes(run->engine, run->adapter.bytes,
                                                     run->adapter.size_bytes, &id, &error);
  if (status == WICK_OK) run->adapter_id = id;
}

static void call_engine(fuzz_run *run, input *in) {
  const uint32_t choice = next_u8(in), call = choice % 16;
  if (choice >= 208 && choice < 224 && run->adapter.size_bytes != 0) {
    call_adapter(run);
    return;
  }
  if (choice >= 224) {
    embed(run, in);
    return;
  }
  if (call < 5) submit(run, in);
  if (call == 5 || call == 6) {
    for (uint32_t i = next_u8(in) % 40; i > 0; i--) step(run);
  }
  if (call == 7) take_events(run);
  if (call == 8) wick_request_cancel(run->engine, next_u8(in) % 24);
  if (call == 9) {
    const uint32_t id = next_u8(in) % 24;
    wick_request_pause(run->engine, id, next_u8(in) % 3 != 0);
  }
  if (call == 10 || call == 11) call_session(run, in);
  if (call == 12) load_state(run, in);
  if (call == 13) tokenize(run, in);
  if (call == 14) look(run);
  if (call == 15) load_some(run, run->engine, next_u16(in), 1 + next_u8(in));
}

// ---- the end ----

static void run_to_idle(fuzz_run *run) {
  for (;;) {
    const wick_step_result result = step(run);
    take_events(run);
    if (result == WICK_STEP_IDLE) break;
    REQUIRE(result != WICK_STEP_WAIT_BYTES || run->is_failed);
  }
  take_events(run);
}

static void end_requests(fuzz_run *run) {
  wick_error error;
  if (load_some(run, run->engine, UINT64_MAX, SIZE_MAX)) {
    run->is_failed = wick_load_end(run->engine, 0, run->file.size_bytes, &error) != WICK_OK;
  }
  for (uint32_t i = 0; i < run->request_count; i++) {
    wick_request_pause(run->engine, run->ids[i], false);
  }
  take_events(run);
  run_to_idle(run);
  for (uint32_t i = 0; i < run->request_count; i++) REQUIRE(run->dones[i] == 1);
  wick_stats stats;
  wick_stats_get(run->engine, &stats);
  REQUIRE(stats.running == 0 && stats.waiting == 0);
}

static void embed_again(fuzz_run *run) {
  const int32_t first = 0;
  const wick_embed_text text = {.tokens = &first, .token_count = 1};
  wick_embed_request request;
  wick_embed_default(&request);
  request.texts = &text;
  request.text_count = 1;
  wick_error error;
  wick_status status = wick_embed(run->engine, &request, &error);
  if (status == WICK_OK) status = finish_vectors(run);
  wick_embed_end(run->engine);
  REQUIRE(status == WICK_OK || status == WICK_E_NOMEM || status == WICK_E_NONFINITE ||
          run->is_failed);
}

// Checks that one more request is answered or rejected, whatever the earlier calls were.
static void ask_again(fuzz_run *run) {
  const int32_t first = 0;
  wick_model_info info;
  wick_error told;
  if (wick_model_get_info(run->engine, &info, &told) == WICK_OK && info.is_encoder) {
    embed_again(run);
    return;
  }
  wick_request request;
  wick_request_default(&request);
  request.tokens = &first;
  request.token_count = 1;
  request.max_tokens = 2;
  uint32_t id = 0;
  wick_error error;
  const wick_status status = wick_request_submit(run->engine, &request, &id, &error);
  wick_load_state state;
  wick_load_get_state(run->engine, &state);
  if (status != WICK_OK) {
    REQUIRE(run->is_failed || status == WICK_E_NOMEM || run->engine->kv == NULL);
    return;
  }
  run->ids[0] = id;
  run->dones[0] = 0;
  run->request_count = 1;
  run->steps = 0;
  run_to_idle(run);
  REQUIRE(run->dones[0] == 1);
}

static void check_pages(const fuzz_run *run) {
  const kv_pool *pages = run->engine->kv;
  if (pages == NULL) return;
  wick_error error;
  REQUIRE(store_check(run->engine->store, &error) == WICK_OK);
  const kv_stats stats = kv_pool_stats(pages);
  REQUIRE(stats.active_sequences == 0 && stats.used_pages == stats.pages_held_prefix);
}

static void set_draft(fuzz_run *run, input *in) {
  run->draft = make_engine(in, true);
  if (run->draft == NULL) return;
  wick_error error;
  const bool is_failed = run->is_failed;
  load_some(run, run->draft, UINT64_MAX, SIZE_MAX);
  run->is_failed = is_failed;
  wick_engine_set_draft(run->engine, run->draft, &error);
}

void engine_calls_run(input *in, memory_file file, memory_file adapter) {
  static fuzz_run run;
  run = (fuzz_run){.file = file, .adapter = adapter};
  run.engine = make_engine(in, false);
  if (run.engine != NULL) {
    const uint32_t how = next_u8(in);
    const uint64_t now = (how & 3) == 3 ? next_u32(in) % (run.file.size_bytes + 1) : UINT64_MAX;
    load_some(&run, run.engine, now, (how & 4) != 0 ? 500 : SIZE_MAX);
    if ((how & 24) == 24) set_draft(&run, in);
    if (adapter.size_bytes != 0) call_adapter(&run);
    for (uint32_t i = 0; i < CALLS_MAX && in->left != 0; i++) call_engine(&run, in);
    end_requests(&run);
    ask_again(&run);
    wick_error error;
    for (uint32_t i = 0; i < run.session_count; i++) {
      wick_session_close(run.engine, run.sessions[i], &error);
    }
    check_pages(&run);
    wick_engine_destroy(run.engine);
    wick_engine_destroy(run.draft);
  }
  for (int i = 0; i < KEPT_MAX; i++) REQUIRE(kept[i].id == 0);
  file_free(&run.saved);
}
