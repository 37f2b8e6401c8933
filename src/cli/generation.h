// cli/generation.h — runs one request to its end.
#ifndef WICK_CLI_GENERATION_H
#define WICK_CLI_GENERATION_H

#include "cli/args.h"
#include "cli/command.h"

// A budget that does not limit reasoning tokens.
#define GENERATION_UNLIMITED UINT32_MAX

typedef struct generation {
  wick_event end;               // the DONE event, without its text
  uint64_t decode_allocations;  // calls to the memory gate between the first and the last token
} generation;

// Called for each TOKEN event, and for each part of a reply to a conversation. Returning false
// cancels the request.
typedef bool (*generation_on_token)(void *context, wick_engine *engine, const wick_event *event);

// Submits the request and steps the engine until it is done. Reports failures. `on_token` may be
// NULL.
exit_code generation_run(wick_engine *engine, const wick_request *request,
                         generation_on_token on_token, void *context, generation *done);
// Like generation_run, but reads events after every unit of work, for measurements.
exit_code generation_run_stepwise(wick_engine *engine, const wick_request *request,
                                  generation_on_token on_token, void *context, generation *done);
// Like generation_run, for a request that was already submitted; reports a failed submission.
exit_code generation_follow(wick_engine *engine, uint32_t request, generation_on_token on_token,
                            void *context, generation *done);
exit_code generation_report_refusal(const wick_error *error);
// Reports the error of a DONE event with WICK_FINISH_ERROR; `end` is in the engine's memory,
// followed by its text.
exit_code generation_report_error(const char *what, const wick_event *end);
// Returns "stop", "length", "abort", "error" or "none".
const char *generation_finish_name(uint32_t finish);

#endif
