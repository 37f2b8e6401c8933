// lab/serve_clock.h — the clock for arrivals and service: wall time, or the CPU time of this
// program. On a shared machine, CPU time shows how fast the program would be alone.
#ifndef WICK_LAB_SERVE_CLOCK_H
#define WICK_LAB_SERVE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum { SERVE_WALL, SERVE_CPU };

typedef struct serve_clock {
  uint32_t kind;  // SERVE_WALL, SERVE_CPU
  uint64_t start_us, skipped_us;
} serve_clock;

// Starts the clock. Returns false if the host does not report the CPU time of a thread.
bool serve_clock_start(serve_clock *clock, uint32_t kind);
// Returns the microseconds since the start. CPU time is the time of this thread plus the waits of
// serve_clock_wait.
uint64_t serve_clock_now_us(const serve_clock *clock);
// Sleeps for this time. With CPU time, advances the clock instead.
void serve_clock_wait(serve_clock *clock, uint64_t wait_us);

#endif
