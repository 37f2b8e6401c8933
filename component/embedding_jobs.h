// component/embedding_jobs.h — requests for vectors by a waiting answer, and the writing of its
// body.
#ifndef WICK_COMPONENT_EMBEDDING_JOBS_H
#define WICK_COMPONENT_EMBEDDING_JOBS_H

#include "server.h"

struct embedding {
  answer *next;                // in the line
  wick_embed_request request;  // its memory belongs to the body
  bool is_begun;
  uint64_t begun_us;
  const char *param;  // the field of the body that has the texts
  // Writes the body of the answer when all vectors are complete.
  void (*put)(const server *of, answer *to);
  bool is_base64;  // of embeddings
  uint32_t top_n;  // of a ranking
  bool gives_documents, gives_raw_scores;
  bool is_list;  // the ranking has the shape of text-embeddings-inference
};

// Adds an answer to the queue, which then owns the job (allocated with malloc). If the
// engine refuses at once, the error is returned before the call ends, unless another job waits.
void embedding_wait(server *of, answer *to, embedding *job);

#endif
