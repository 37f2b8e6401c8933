// lab/serve_clock.h — the time in which requests arrive and are served: the time of the machine, or
// the processor time of this program. On a shared machine, processor time shows how fast the
// program would be alone.
#ifndef WICK_LAB_SERVE_CLOCK_H
#define WICK_LAB_SERVE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum { SERVE_WALL, SERVE_CPU };

typedef struct serve_clock {
  uint32_t kind;  // SERVE_WALL, SERVE_CPU
  uint64_t start_us, skipped_us;
} serve_clock;

// Returns false if the host does not report the processor time of a thread.
bool serve_clock_start(serve_clock *clock, uint32_t kind);
// Microseconds since the start. Processor time is the time of this thread plus the time that it
// waited on purpose.
uint64_t serve_clock_now_us(const serve_clock *clock);
// Sleeps. With processor time, it advances the clock instead.
void serve_clock_wait(serve_clock *clock, uint64_t wait_us);

#endif
