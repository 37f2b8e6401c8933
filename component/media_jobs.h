// component/media_jobs.h — answers whose messages have images and recordings. These are encoded
// between steps of requests, one answer's at a time, and the answer begins when they are ready.
#ifndef WICK_COMPONENT_MEDIA_JOBS_H
#define WICK_COMPONENT_MEDIA_JOBS_H

#include "media_parts.h"
#include "server.h"

struct media_job {
  answer *next;  // in the line
  media_set set;
  bool is_waiting;  // in the line
};

// Takes the images and recordings of checked messages, if there are any. False: one is refused.
bool media_take(server *of, const body *read, uint32_t messages, answer *to, refusal *refused);
// Puts an answer with media into the line. Its body stays until its route begins again.
void media_wait(server *of, answer *to);
// A unit of work for the first that waits; *ready is an answer whose route is to begin again, or
// NULL. False: no request waits.
bool media_step(server *of, answer **ready);
// The answer no longer needs them. One without media is fine.
void media_leave(server *of, answer *to);

#endif
