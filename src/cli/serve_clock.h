// cli/serve_clock.h — the time in which requests arrive and are served: the machine's, or what this
// program computed. On a machine that others use, too, the latter tells what it would do alone.
#ifndef WICK_CLI_SERVE_CLOCK_H
#define WICK_CLI_SERVE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum { SERVE_WALL, SERVE_CPU };

typedef struct serve_clock {
  uint32_t kind;  // SERVE_WALL, SERVE_CPU
  uint64_t start_us, skipped_us;
} serve_clock;

// False when the host does not tell the processor time of a thread.
bool serve_clock_start(serve_clock *clock, uint32_t kind);
// Microseconds since the start. Processor time is this thread's, and what was waited.
uint64_t serve_clock_now_us(const serve_clock *clock);
// Sleeps; processor time is moved on instead.
void serve_clock_wait(serve_clock *clock, uint64_t wait_us);

#endif
