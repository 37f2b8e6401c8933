// component/completion_route.c — POST /v1/completions: continues prompts, each with one or several
// choices.

#include "echo.h"
#include "prompts.h"

enum { MAX_TOKENS = 16 };  // OpenAI's default

// The parts of a prompt that are requested.
typedef struct prompt_parts {
  bool has_echo, has_text;
} prompt_parts;

static bool take_parts(const body *read, const wanted *asked, prompt_parts *parts,
                       refusal *refused) {
  const uint32_t tokens = body_field(read, "max_tokens");
  parts->has_echo = body_flag(read, "echo");
  parts->has_text = tokens == 0 || body_number(read, tokens) != 0;
  if (parts->has_echo && asked->is_streamed) {
    return refuse(refused, REFUSE_ECHO_STREAM("echo"));
  }
  return parts->has_echo || parts->has_text || refuse(refused, REFUSE_NO_ECHO("max_tokens"));
}

static void end_choices(answer *to, uint32_t first) {
  for (uint32_t i = 0; i < to->choices_a_prompt; i++) to->choices[first + i].finish = "length";
}

static bool submit_prompt(server *of, const prompt *one, uint32_t first, wanted *asked,
                          prompt_parts parts, answer *to, refusal *refused) {
  wick_request *request = &asked->request;
  buffer text = {0};
  request->tokens = one->tokens;
  request->token_count = one->token_count;
  request->text = one->text.bytes;
  request->text_bytes = one->text.size_bytes;
  bool is_right = !asked->limits_reasoning || prompts_put(of->engine, one, &text, refused);
  if (asked->limits_reasoning) {
    asked->reasoning.ending = text.bytes;
    asked->reasoning.ending_bytes = text.size_bytes;
    request->reasoning = &asked->reasoning;
  }
  is_right = is_right && (!parts.has_echo || echo_begin(request, to, first, refused)) &&
             (!parts.has_text || generation_submit(to, first, asked, refused));
  buffer_free(&text);
  if (is_right && !parts.has_text) end_choices(to, first);
  return is_right;
}

static bool take_fields(body *read, const char *tenant, wanted *asked, refusal *refused) {
  if (!fields_take(read, tenant, asked, refused) ||
      !fields_take_bias(read, &asked->request.sampling, refused)) {
    return false;
  }
  const uint32_t logprobs = body_field(read, "logprobs");
  if (body_field(read, "max_tokens") == 0) asked->request.max_tokens = MAX_TOKENS;
  const uint32_t best_of = body_field(read, "best_of");
  fields_take_probabilities(read, &asked->request.sampling);
  if (logprobs != 0) {
    asked->request.sampling.logprob = true;
    asked->request.sampling.logprobs = (uint32_t)body_number(read, logprobs);
  }
  return best_of == 0 || body_number(read, best_of) == asked->request.completions ||
         refuse(refused, 400, "unsupported_parameter", "best_of",
                "best_of: only the value of n is supported");
}

bool completion_begin(server *of, body *read, answer *to, refusal *refused) {
  wanted asked = {0};
  if (!take_fields(read, to->tenant, &asked, refused)) return false;
  const uint32_t given = body_field(read, "prompt");
  if (given == 0) return refuse(refused, REFUSE_MISSING("prompt"), "prompt");
  prompt_parts parts;
  prompt *prompts;
  uint32_t count;
  if (!take_parts(read, &asked, &parts, refused) ||
      !prompts_take(of->engine, read, given, "prompt", &prompts, &count, refused)) {
    return false;
  }
  const uint32_t n = asked.request.completions;
  if (count > ANSWER_CHOICES_MAX || count * n > ANSWER_CHOICES_MAX) {
    return refuse(refused, REFUSE_CHOICES(count > 1 ? "prompt" : "n"),
                  (unsigned)ANSWER_CHOICES_MAX);
  }
  if (!generation_prepare(to, &form_text, &asked, count * n, refused)) return false;
  for (uint32_t i = 0; i < count; i++) {
    if (!submit_prompt(of, &prompts[i], i * n, &asked, parts, to, refused)) return false;
  }
  generation_start(to);
  return true;
}
