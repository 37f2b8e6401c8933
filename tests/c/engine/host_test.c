// An engine that uses functions of its host (wick_host): memory, clock, log and threads.
#include <stdlib.h>
#include <string.h>

#include "api/insides.h"
#include "check.h"
#include "platform/platform.h"

#if WICK_THREADS
#include <pthread.h>
#endif

static const char MODEL[] = "examples/models/wick-2.6m-q8_0.gguf";

typedef struct own_host {
  wick_host functions;
  uint64_t blocks, bytes, calls;
  uint32_t offset_bytes;  // distance from a cache line boundary
  void *last;
  char line[64];
  uint32_t threads_now, threads_started;
} own_host;

static void *alloc_block(void *context, size_t size_bytes) {
  own_host *host = context;
  uint8_t *block = platform_alloc(size_bytes + CACHE_LINE_BYTES);
  if (block == NULL) return NULL;
  host->blocks++, host->calls++;
  host->bytes += size_bytes;
  host->last = block + host->offset_bytes;
  return host->last;
}

static void free_block(void *context, void *block, size_t size_bytes) {
  own_host *host = context;
  host->blocks--;
  host->bytes -= size_bytes;
  platform_free((uint8_t *)block - host->offset_bytes, size_bytes + CACHE_LINE_BYTES);
}

static uint64_t time_us;

// Each call advances the clock by one millisecond.
static uint64_t read_clock(void) { return time_us += 1000; }

static void keep_line(void *context, const char *line) {
  own_host *host = context;
  REQUIRE(strlen(line) < sizeof host->line);
  memcpy(host->line, line, strlen(line) + 1);
}

#if WICK_THREADS
typedef struct work {
  void (*entry)(void *);
  void *argument;
} work;

static void *run(void *given) {
  const work copy = *(work *)given;
  free(given);
  copy.entry(copy.argument);
  return NULL;
}

// Starts at most one helper thread.
static bool start(void *context, void (*entry)(void *), void *argument, uintptr_t *thread) {
  own_host *host = context;
  work *given = malloc(sizeof *given);
  if (host->threads_now == 1 || given == NULL) {
    free(given);
    return false;
  }
  *given = (work){entry, argument};
  pthread_t made;
  if (!CHECK(pthread_create(&made, NULL, run, given) == 0)) {
    free(given);
    return false;
  }
  *thread = (uintptr_t)made;
  host->threads_now++, host->threads_started++;
  return true;
}

static void join(void *context, uintptr_t thread) {
  own_host *host = context;
  CHECK(pthread_join((pthread_t)thread, NULL) == 0);
  host->threads_now--;
}
#endif

static own_host make_host(void) {
  own_host host = {
      .functions = {
          .alloc = alloc_block, .free = free_block, .now_us = read_clock, .log = keep_line}};
  time_us = 0;
  return host;
}

static wick_status open_engine(own_host *host, uint32_t threads, wick_engine **engine,
                               wick_error *error) {
  wick_config config;
  wick_config_default(&config);
  host->functions.context = host;
  config.host = &host->functions;
  config.threads = threads;
  return wick_engine_create(&config, engine, error);
}

static void load(wick_engine *engine) {
  size_t size_bytes;
  wick_error error;
  uint8_t *bytes = check_read_file(check_repository(MODEL), &size_bytes);
  CHECK_EQ_INT(wick_load_bytes(engine, bytes, size_bytes, &error), WICK_OK);
  free(bytes);
}

typedef struct answer {
  char text[512];
  size_t text_bytes;
  uint32_t steps;
  double decode_ms;
} answer;

static answer ask(wick_engine *engine, uint64_t budget_us) {
  static const char PROMPT[] = "Once upon a time";
  answer found = {.steps = 0};
  wick_request request;
  wick_request_default(&request);
  request.text = PROMPT;
  request.text_bytes = sizeof PROMPT - 1;
  request.max_tokens = 12;
  uint32_t id;
  wick_error error;
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_OK);
  wick_step_result result;
  do {
    result = wick_step(engine, budget_us);
    found.steps++;
    size_t size_bytes;
    const uint8_t *events = wick_events_take(engine, &size_bytes);
    const wick_event *event = NULL;
    while ((event = wick_event_next(events, size_bytes, event)) != NULL) {
      if (found.text_bytes + event->text_bytes >= sizeof found.text) return found;
      memcpy(found.text + found.text_bytes, wick_event_text(event), event->text_bytes);
      found.text_bytes += event->text_bytes;
      if (event->kind == WICK_EVENT_DONE) found.decode_ms = event->decode_ms;
    }
  } while (result != WICK_STEP_IDLE);
  return found;
}

TEST(all_memory_comes_from_the_host) {
  own_host host = make_host();
  wick_engine *engine;
  wick_error error;
  REQUIRE(open_engine(&host, 1, &engine, &error) == WICK_OK);
  load(engine);
  const uint64_t calls = host.calls;
  ask(engine, 1000000);
  wick_memory_state state;
  wick_memory_get_state(engine, &state);
  CHECK(calls > 10 && host.bytes > 1 << 20);
  CHECK_EQ_UINT(state.bytes_now, host.bytes);
  CHECK_EQ_UINT(state.blocks_now, host.blocks);
  CHECK_EQ_UINT(wick_engine_memory_limit(engine), 0);
  wick_engine_destroy(engine);
  CHECK_EQ_UINT(host.blocks, 0);
  CHECK_EQ_UINT(host.bytes, 0);
  CHECK_EQ_STR(host.line, "");
}

TEST(an_unaligned_block_is_rejected) {
  own_host host = make_host();
  host.offset_bytes = 8;
  wick_engine *engine;
  wick_error error;
  CHECK_EQ_INT(open_engine(&host, 1, &engine, &error), WICK_E_NOMEM);
  CHECK_EQ_UINT(host.calls, 1);
  CHECK_EQ_UINT(host.blocks, 0);
}

TEST(half_a_pair_of_functions_is_rejected) {
  own_host host = make_host();
  wick_engine *engine;
  wick_error error;
  host.functions.free = NULL;
  CHECK_EQ_INT(open_engine(&host, 1, &engine, &error), WICK_E_ARG);
  host = make_host();
  host.functions.alloc = NULL;
  CHECK_EQ_INT(open_engine(&host, 1, &engine, &error), WICK_E_ARG);
  host = make_host();
  host.functions.thread_join = (void (*)(void *, uintptr_t))abort;
  CHECK_EQ_INT(open_engine(&host, 1, &engine, &error), WICK_E_ARG);
  CHECK_EQ_STR(
      error.message,
      "wick_host: alloc and free must be set together, and so must thread_start and thread_join");
  CHECK_EQ_UINT(host.calls, 0);
}

// The clock advances when it is read, so a budget is a number of clock reads, which is the same on
// every machine.
TEST(budgets_and_timings_use_the_hosts_clock) {
  own_host host = make_host();
  wick_engine *engine;
  wick_error error;
  REQUIRE(open_engine(&host, 1, &engine, &error) == WICK_OK);
  load(engine);
  const answer one = ask(engine, 5000);
  const answer other = ask(engine, 5000000);
  CHECK(one.steps > 3);
  CHECK_EQ_UINT(other.steps, 1);
  CHECK_EQ_MEM(one.text, other.text, one.text_bytes);
  // whole milliseconds, longer than any machine really takes
  CHECK(one.decode_ms > 1 && one.decode_ms == (double)(uint64_t)one.decode_ms);
  wick_engine_destroy(engine);
}

TEST(memory_leaks_are_logged_to_the_host) {
  own_host host = make_host();
  wick_engine *engine;
  wick_error error;
  REQUIRE(open_engine(&host, 1, &engine, &error) == WICK_OK);
  REQUIRE(memory_alloc(&engine->memory, 100) != NULL);
  void *lost = host.last;
  wick_engine_destroy(engine);
  CHECK_EQ_STR(host.line, "wick: memory leak: not all blocks were freed");
  CHECK_EQ_UINT(host.blocks, 1);
  free_block(&host, lost, (size_t)host.bytes);
}

TEST(failing_to_start_threads_is_an_error) {
  own_host host = make_host();
  wick_engine *engine = NULL;
  wick_error error = {0};
#if WICK_THREADS
  host.functions.thread_start = start;
  host.functions.thread_join = join;
#endif
  CHECK_EQ_INT(open_engine(&host, 4, &engine, &error), WICK_E_UNSUPPORTED);
  CHECK_EQ_UINT(error.subject, WICK_SUBJECT_THREADS);
  CHECK_EQ_UINT(error.numbers[0], 4);
  CHECK_EQ_UINT(error.numbers[1], WICK_THREADS ? 2 : 1);
  CHECK(strstr(error.message, "threads: 4 requested") != NULL);
  CHECK_EQ_UINT(host.threads_now, 0);
  CHECK_EQ_UINT(host.blocks, 0);
}

TEST(helper_threads_are_started_by_the_host) {
  own_host host = make_host();
  wick_engine *engine;
  wick_error error;
#if WICK_THREADS
  host.functions.thread_start = start;
  host.functions.thread_join = join;
#endif
  REQUIRE(open_engine(&host, 1, &engine, &error) == WICK_OK);
  load(engine);
  const answer alone = ask(engine, 1000000);
  wick_engine_destroy(engine);
  CHECK_EQ_UINT(host.threads_started, 0);
  REQUIRE(open_engine(&host, WICK_THREADS ? 2 : 1, &engine, &error) == WICK_OK);
  load(engine);
  while (host.threads_started > 0 && wick_engine_threads(engine) < 2) {
  }
  const answer together = ask(engine, 1000000);
  CHECK_EQ_UINT(wick_engine_threads(engine), WICK_THREADS ? 2 : 1);
  CHECK_EQ_UINT(host.threads_now, WICK_THREADS ? 1 : 0);
  CHECK_EQ_UINT(together.text_bytes, alone.text_bytes);
  CHECK_EQ_MEM(together.text, alone.text, alone.text_bytes);
  wick_engine_destroy(engine);
  CHECK_EQ_UINT(host.threads_now, 0);
  CHECK_EQ_UINT(host.blocks, 0);
}
