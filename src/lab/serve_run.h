// lab/serve_run.h — drives an engine with requests that arrive while it works.
#ifndef WICK_LAB_SERVE_RUN_H
#define WICK_LAB_SERVE_RUN_H

#include "lab/serve_clock.h"
#include "lab/summary.h"
#include "lab/workload.h"

typedef struct serve_run {
  // These requests arrive at their times, regardless of how busy the engine is (an open loop).
  workload *open;
  // These requests arrive one by one, each when the previous one has ended. After the last one, the
  // run ends, and all other requests are cancelled. NULL: none.
  workload *chain;
  // The run ends early once the speed of the finished requests is steady (bench_should_stop).
  bool is_adaptive;
  uint64_t seed;   // for the prompts
  uint32_t clock;  // SERVE_WALL, SERVE_CPU

  // measured:
  double elapsed_ms;
  size_t submitted, ended, refused;
  uint64_t tokens_out;
  uint64_t passes, rows, preempted;
  uint32_t waiting_max, running_max;
  uint32_t pages_max;  // maximum pages in use at once
  // Token slots, summed over the passes: slots of the pages in use, slots of pages with at least
  // one token, and slots with a token.
  uint64_t slots_allocated, slots_touched, slots_used;
  double cv_at_stop;  // coefficient of variation of the last 50 speeds
} serve_run;

// Runs to the end. The engine must have no prefix cache. A request rejected by a full queue
// (WICK_E_FULL) counts as refused. Other errors are reported and end the run.
exit_code serve_run_all(wick_engine *engine, serve_run *run);

double serve_run_tokens_per_s(const serve_run *run);  // for all output; 0 if no time has passed
// Returns the share of slots without a token in the pages in use, over the passes: the unused ends
// of last pages, and space reserved for prompts that are being processed.
double serve_run_waste_pct(const serve_run *run);
// Like serve_run_waste_pct, for pages with at least one token: only the unused ends of last pages.
double serve_run_fragmentation_pct(const serve_run *run);

#endif
