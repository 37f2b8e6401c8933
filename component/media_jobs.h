// component/media_jobs.h — answers whose messages have images and recordings. These are encoded
// between steps of requests, one answer's at a time, and the answer begins when they are ready.
#ifndef WICK_COMPONENT_MEDIA_JOBS_H
#define WICK_COMPONENT_MEDIA_JOBS_H

#include "server.h"

struct media_job {
  answer *next;                    // in the line
  char marker[RANDOM_NAME_BYTES];  // written into texts in place of each medium
  uint32_t *numbers;               // [count], the engine's
  uint32_t count;
  bool is_waiting;  // in the line
};

// Adds an image or a recording to the answer's. Takes over the engine's number. False: no memory.
bool media_keep(const server *of, answer *to, uint32_t number, refusal *refused);
// Puts an answer with media into the line. Its body stays until its route begins again.
void media_wait(server *of, answer *to);
// A unit of work for the first that waits; *ready is an answer whose route is to begin again, or
// NULL. False: nobody waits.
bool media_step(server *of, answer **ready);
// The answer no longer needs them. One without media is fine.
void media_leave(server *of, answer *to);

#endif
