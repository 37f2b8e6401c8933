// reply/hold_slices.c — builds the grammar of calls in slices: first the rules of arguments, which
// take nearly all the time and are kept across a pause, then the rest without a pause.
#include "reply/hold.h"

static const reply_form CHANNEL_FORM = {.open = "", .arguments = ARGUMENTS_JSON};

typedef struct hold_job {
  hold now;
  program_builder builder, kept;
  uint32_t done, kept_done;  // counted in pairs of a format and a tool
  gbnf_names *names;
} hold_job;

// Returns the format if it needs a rule for each tool's arguments, otherwise NULL.
static const reply_form *form_of(const hold *h, uint32_t form) {
  if (hold_has_channels(h)) return form == 0 ? &CHANNEL_FORM : NULL;
  return hold_uses(h, form) ? &REPLY_FORMS[form] : NULL;
}

// Builds the rules of arguments. Returns false after a failure, or at the end of a slice.
static bool build_arguments(hold_job *job) {
  hold *h = &job->now;
  grammar_work *work = job->builder.work;
  for (; job->done < REPLY_FORM_COUNT * h->tool_count; job->done++) {
    if (work_keep(work)) {
      job->kept = job->builder;
      job->kept_done = job->done;
      work->kept_calls = job;
      return false;
    }
    const reply_form *form = form_of(h, job->done / h->tool_count);
    hold_tool *tool = &h->tools[job->done % h->tool_count];
    if (form != NULL && hold_can_call(form, tool)) (void)hold_arguments(h, form, tool);
    if (!work_is_ok(work)) return false;
  }
  return true;
}

static hold_job *begin_job(program_builder *builder, const tokenizer *tokens,
                           const wick_grammar *grammar, gbnf_names **names) {
  hold_job *job = work_alloc(builder->work, 1, sizeof *job);
  if (job == NULL) return NULL;
  job->builder = *builder;
  job->now.builder = &job->builder;
  if (!hold_read(&job->now, tokens, grammar, names)) return NULL;
  job->names = *names;
  return job;
}

// After a pause, undoes everything that was built since the last kept rule.
static void restore(hold_job *job) {
  program_restore(&job->builder, &job->kept);
  job->builder = job->kept;
  job->done = job->kept_done;
  for (uint32_t tool = 0; tool < job->now.tool_count; tool++) {
    for (uint32_t i = 0; i < HOLD_RULES_MAX; i++) {
      uint32_t *rule = &job->now.tools[tool].rules[i];
      if (*rule >= job->kept.rules.count && *rule != HOLD_NO_RULE) *rule = 0;
    }
  }
}

uint32_t grammar_build_reply(program_builder *builder, const tokenizer *tokens,
                             const wick_grammar *grammar, gbnf_names **names) {
  hold_job *job = builder->work->kept_calls;
  if (job == NULL) {
    job = begin_job(builder, tokens, grammar, names);
  } else {
    restore(job);
    *names = job->names;
  }
  if (job == NULL || !build_arguments(job)) return 0;
  const uint32_t rule = hold_build(&job->now);
  *builder = job->builder;
  return rule;
}
