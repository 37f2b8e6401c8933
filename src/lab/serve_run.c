// lab/serve_run.c — the loop: submits the requests that have arrived, runs one unit of work, takes
// its events. The clock is read after each unit. A latency begins at the arrival, not at the
// submission, so a busy engine cannot hide a delay.
#include "lab/serve_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cli/generation.h"

typedef struct serve_loop {
  wick_engine *engine;
  serve_run *run;
  workload_item **active;  // [active_count] submitted requests that have not ended
  size_t active_count, open_next, chain_next;
  workload_item *chain_item;  // the running request of the chain; NULL: none
  int32_t *prompt;            // as long as the longest prompt
  uint32_t vocab;
  serve_clock clock;
  uint64_t prompts;
  wick_stats before;
  uint64_t passes_seen;
  double *speeds;  // [ended] tokens per second of the requests that have ended
  bench_stop stop;
  uint64_t reported_us;  // when progress was last reported
  bool is_closed;        // no more requests are submitted
  exit_code code;
} serve_loop;

static uint64_t now_us(const serve_loop *loop) { return serve_clock_now_us(&loop->clock); }

// ---- Arrivals ----

static void forget(serve_loop *loop, size_t at) {
  if (loop->active[at] == loop->chain_item) loop->chain_item = NULL;
  loop->active[at] = loop->active[--loop->active_count];
}

static void submit(serve_loop *loop, workload_item *item) {
  const uint64_t salt = hash_mix_u64(loop->run->seed + ++loop->prompts);
  for (uint32_t i = 0; i < item->tokens_in; i++) {
    loop->prompt[i] = (int32_t)(hash_mix_u64(salt + i) % loop->vocab);
  }
  wick_request request;
  wick_request_default(&request);
  request.tokens = loop->prompt;
  request.token_count = item->tokens_in;
  request.max_tokens = item->tokens_out;
  request.no_speculation =
      true;  // with proposals, the result would depend on repetitions in the text
  request.ignore_end = true;
  wick_error error;
  item->gaps_ms = calloc(item->tokens_out, sizeof *item->gaps_ms);
  if (item->gaps_ms == NULL) {
    report("out of memory for the measurements");
    loop->code = EXIT_MEMORY;
    return;
  }
  const wick_status status = wick_request_submit(loop->engine, &request, &item->request, &error);
  loop->run->submitted++;
  if (status == WICK_E_FULL) {
    item->is_refused = true;
    loop->run->refused++;
  } else if (status != WICK_OK) {
    loop->code = report_error("request", &error);
  } else {
    loop->active[loop->active_count++] = item;
  }
}

static void submit_arrived(serve_loop *loop) {
  workload *open = loop->run->open, *chain = loop->run->chain;
  const uint64_t now = now_us(loop);
  while (open != NULL && loop->open_next < open->count && loop->code == EXIT_DONE &&
         open->items[loop->open_next].arrival_us <= now) {
    submit(loop, &open->items[loop->open_next++]);
  }
  if (chain == NULL || loop->chain_item != NULL || loop->chain_next == chain->count) return;
  workload_item *item = &chain->items[loop->chain_next++];
  item->arrival_us = now;
  submit(loop, item);
  if (!item->is_refused) loop->chain_item = item;
}

// Whether requests may still arrive.
static bool expects_more(const serve_loop *loop) {
  const serve_run *run = loop->run;
  if (loop->is_closed || loop->code != EXIT_DONE) return false;
  if (run->chain != NULL) return loop->chain_item != NULL || loop->chain_next < run->chain->count;
  return loop->open_next < run->open->count;
}

static void sleep_until_arrival(serve_loop *loop) {
  const workload *open = loop->run->open;
  if (open == NULL || loop->open_next == open->count) return;
  const uint64_t arrival = open->items[loop->open_next].arrival_us, now = now_us(loop);
  if (arrival > now) serve_clock_wait(&loop->clock, arrival - now);
}

// ---- Results ----

static void take_token(workload_item *item, const wick_event *event, uint64_t now) {
  if (item->tokens == 0) {
    item->first_us = now;
  } else {
    item->gaps_ms[item->tokens - 1] = (double)(now - item->last_us) / 1e3;
  }
  if (item->read_us == 0) item->read_us = now;
  item->last_us = now;
  item->tokens++;
  item->tokens_fed = event->tokens_prompt + event->tokens_out - 1;
}

static void take_end(serve_loop *loop, size_t at, const wick_event *event, uint64_t now) {
  workload_item *item = loop->active[at];
  serve_run *run = loop->run;
  item->done_us = now;
  item->finish = event->finish;
  run->tokens_out += item->tokens;
  const bool is_measured = run->chain == NULL || item == loop->chain_item;
  forget(loop, at);
  if (event->finish == WICK_FINISH_ERROR) {
    loop->code = generation_report_error("request", event);
  }
  if (!is_measured || loop->is_closed || now <= item->arrival_us) return;
  loop->speeds[run->ended++] = (double)item->tokens * 1e3 / workload_total_ms(item);
  if (run->ended >= BENCH_WINDOW) {
    run->cv_at_stop = stat_cv(loop->speeds + run->ended - BENCH_WINDOW, BENCH_WINDOW);
  }
  if (run->is_adaptive && bench_should_stop(&loop->stop, loop->speeds, run->ended)) {
    loop->is_closed = true;
  }
}

static void take_event(serve_loop *loop, const wick_event *event, uint64_t now) {
  size_t at = 0;
  while (at < loop->active_count && loop->active[at]->request != event->request) at++;
  if (at == loop->active_count) return;
  workload_item *item = loop->active[at];
  if (event->kind == WICK_EVENT_TOKEN) take_token(item, event, now);
  if (event->kind == WICK_EVENT_PREFILL) {
    if (item->read_us == 0) item->read_us = now;
    item->tokens_fed = event->tokens_cached;
  }
  if (event->kind == WICK_EVENT_DONE) take_end(loop, at, event, now);
}

static void take_events(serve_loop *loop) {
  size_t size_bytes;
  const uint8_t *bytes = wick_events_take(loop->engine, &size_bytes);
  const uint64_t now = now_us(loop);
  const wick_event *event = NULL;
  while ((event = wick_event_next(bytes, size_bytes, event)) != NULL) {
    take_event(loop, event, now);
  }
}

static wick_stats sample_queue(serve_loop *loop) {
  serve_run *run = loop->run;
  wick_stats stats;
  wick_stats_get(loop->engine, &stats);
  if (stats.waiting > run->waiting_max) run->waiting_max = stats.waiting;
  if (stats.running > run->running_max) run->running_max = stats.running;
  return stats;
}

// Counts pages once per pass.
static void sample_load(serve_loop *loop) {
  serve_run *run = loop->run;
  const wick_stats stats = sample_queue(loop);
  if (stats.passes == loop->passes_seen) return;
  loop->passes_seen = stats.passes;
  wick_pages_state pages;
  wick_pages_get_state(loop->engine, &pages);
  const uint32_t slots = pages.page_tokens;
  uint64_t used = 0, touched = 0;
  for (size_t i = 0; i < loop->active_count; i++) {
    const uint64_t fed = loop->active[i]->tokens_fed;
    used += fed;
    touched += (fed + slots - 1) / slots * slots;
  }
  if (pages.pages_used > run->pages_max) run->pages_max = pages.pages_used;
  run->slots_allocated += (uint64_t)pages.pages_used * slots;
  run->slots_touched += touched;
  run->slots_used += used;
}

// ---- The run ----

static void cancel_rest(serve_loop *loop) {
  for (size_t i = 0; i < loop->active_count; i++) {
    wick_request_cancel(loop->engine, loop->active[i]->request);
  }
}

// Reports progress, because a run may take minutes.
static void report_progress(serve_loop *loop) {
  enum { REPORT_US = 10 * 1000 * 1000 };
  const serve_run *run = loop->run;
  if (now_us(loop) - loop->reported_us < REPORT_US) return;
  loop->reported_us = now_us(loop);
  const size_t open = run->open == NULL ? 0 : run->open->count;
  const size_t chain = run->chain == NULL ? 0 : run->chain->count;
  report("%llu s: %zu of %zu requests have ended",
         (unsigned long long)(loop->reported_us / 1000000), run->ended, open + chain);
}

static exit_code run_loop(serve_loop *loop) {
  bool is_cancelled = false;
  while (loop->active_count > 0 || expects_more(loop)) {
    if (expects_more(loop)) {
      submit_arrived(loop);
      sample_queue(loop);
    } else if (!is_cancelled && (loop->run->chain != NULL || loop->code != EXIT_DONE)) {
      cancel_rest(loop);
      is_cancelled = true;
    }
    if (loop->active_count == 0) {
      if (expects_more(loop)) sleep_until_arrival(loop);
      continue;
    }
    const wick_step_result result = wick_step(loop->engine, 0);
    take_events(loop);
    sample_load(loop);
    report_progress(loop);
    if (result == WICK_STEP_PROGRESS || loop->active_count == 0) continue;
    report("the engine stopped before the requests ended");
    return EXIT_INTERNAL;
  }
  return loop->code;
}

static uint32_t longest_prompt(const workload *workload) {
  uint32_t longest = 1;
  for (size_t i = 0; workload != NULL && i < workload->count; i++) {
    if (workload->items[i].tokens_in > longest) longest = workload->items[i].tokens_in;
  }
  return longest;
}

static bool allocate(serve_loop *loop) {
  const workload *open = loop->run->open, *chain = loop->run->chain;
  const size_t count = (open == NULL ? 0 : open->count) + (chain == NULL ? 0 : chain->count) + 1;
  const uint32_t a = longest_prompt(open), b = longest_prompt(chain);
  loop->active = calloc(count, sizeof *loop->active);
  loop->speeds = calloc(count, sizeof *loop->speeds);
  loop->prompt = calloc(a > b ? a : b, sizeof *loop->prompt);
  return loop->active != NULL && loop->speeds != NULL && loop->prompt != NULL;
}

static void finish(serve_loop *loop) {
  serve_run *run = loop->run;
  wick_stats stats;
  wick_stats_get(loop->engine, &stats);
  run->elapsed_ms = (double)now_us(loop) / 1e3;
  run->passes = stats.passes - loop->before.passes;
  run->rows = stats.rows - loop->before.rows;
  run->preempted = stats.preempted - loop->before.preempted;
}

exit_code serve_run_all(wick_engine *engine, serve_run *run) {
  serve_loop loop = {.engine = engine, .run = run};
  wick_stats_get(engine, &loop.before);
  wick_model_info info;
  wick_error error;
  if (wick_model_get_info(engine, &info, &error) != WICK_OK) return report_error("model", &error);
  loop.vocab = info.vocab;
  loop.passes_seen = loop.before.passes;
  exit_code code = EXIT_MEMORY;
  if (!allocate(&loop)) {
    report("out of memory for the measurements");
  } else if (!serve_clock_start(&loop.clock, run->clock)) {
    report("--clock cpu: this host does not report a thread's CPU time");
    code = EXIT_USAGE;
  } else {
    code = run_loop(&loop);
    finish(&loop);
  }
  free(loop.active);
  free(loop.speeds);
  free(loop.prompt);
  return code;
}

double serve_run_tokens_per_s(const serve_run *run) {
  return run->elapsed_ms > 0 ? (double)run->tokens_out * 1e3 / run->elapsed_ms : 0;
}

double serve_run_waste_pct(const serve_run *run) {
  return kv_pct_of_waste(run->slots_allocated, run->slots_used);
}

double serve_run_fragmentation_pct(const serve_run *run) {
  return kv_pct_of_waste(run->slots_touched, run->slots_used);
}
