// component/media_jobs.h — answers whose messages contain images and recordings. These are encoded
// between steps of requests, for one answer at a time, and the answer begins when they are ready.
#ifndef WICK_COMPONENT_MEDIA_JOBS_H
#define WICK_COMPONENT_MEDIA_JOBS_H

#include "media_parts.h"
#include "server.h"

struct media_job {
  media_set set;
  bool is_waiting;  // in the queue
};

// Takes the images and recordings of checked messages, if there are any. Returns false if an image
// or recording is rejected.
bool media_take(server *of, const body *read, uint32_t messages, answer *to, refusal *refused);
// Adds an answer with media to the queue. Its body is kept until its route begins again.
void media_wait(server *of, answer *to);
// Does a unit of work for the first waiting answer; *ready is an answer whose route must begin
// again, or NULL. Returns false if no request is waiting.
bool media_step(server *of, answer **ready);
// Frees the media of an answer that no longer needs them. Does nothing if the answer has none.
void media_leave(server *of, answer *to);

#endif
