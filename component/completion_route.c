// component/completion_route.c — POST /v1/completions: continues prompts, each with one or several
// choices.
#include <string.h>

#include "echo.h"

enum { MAX_TOKENS = 16 };  // OpenAI's default

static const field fields_completion[] = {
    FIELDS_COMPLETION(PLAIN_FIELD)  // only their kind is checked
    {"prompt", FIELD_IGNORED, 0, 0, NULL},
    {"logprobs", FIELD_WHOLE, 0, WICK_LOGPROBS_MAX, NULL},
    {"n_probs", FIELD_WHOLE, 0, WICK_LOGPROBS_MAX, NULL},
    {"best_of", FIELD_WHOLE, 1, UINT32_MAX, NULL},
    {"lora", FIELD_IGNORED, 0, 0, NULL},
    {"max_tokens", FIELD_TOKENS, 0, 0, "0"},
    {NULL, FIELD_IGNORED, 0, 0, NULL}};

static bool is_prompt(const body *read, uint32_t node) {
  return body_node(read, node)->kind == JSON_STRING || body_are_tokens(read, node);
}

static bool refuse_prompt(refusal *refused) {
  return refuse_value(refused, "prompt", "a string, an array of token ids, or an array of these");
}

// The parts of a prompt that are requested.
typedef struct prompt_parts {
  bool has_echo, has_text;
} prompt_parts;

static bool take_parts(const body *read, const wanted *asked, prompt_parts *parts,
                       refusal *refused) {
  const uint32_t tokens = body_find(read, BODY_ROOT, "max_tokens");
  parts->has_echo = body_is_true(read, body_find(read, BODY_ROOT, "echo"));
  parts->has_text = tokens == 0 || body_number(read, tokens) != 0;
  if (parts->has_echo && asked->is_streamed) {
    return refuse(refused, 400, "invalid_value", "echo", "echo is not available with stream");
  }
  return parts->has_echo || parts->has_text ||
         refuse(refused, 400, "invalid_value", "max_tokens", "max_tokens: 0 needs echo");
}

static void end_choices(answer *to, uint32_t first) {
  for (uint32_t i = 0; i < to->choices_a_prompt; i++) to->choices[first + i].finish = "length";
}

static bool submit_prompt(server *of, body *read, uint32_t node, uint32_t first, wanted *asked,
                          prompt_parts parts, answer *to, refusal *refused) {
  wick_request *request = &asked->request;
  if (!is_prompt(read, node)) return refuse_prompt(refused);
  request->tokens = NULL;
  if (body_are_tokens(read, node)) {
    if (!body_take_tokens(read, node, &request->tokens, &request->token_count, refuse_prompt,
                          refused)) {
      return false;
    }
  } else {
    request->text = (const char *)body_node(read, node)->text.bytes;
    request->text_bytes = body_node(read, node)->text.size_bytes;
  }
  if (asked->limits_reasoning && request->tokens == NULL) {
    asked->reasoning.ending = request->text;
    asked->reasoning.ending_bytes = request->text_bytes;
    request->reasoning = &asked->reasoning;
  }
  if (parts.has_echo && !echo_begin(of, request, to, first, refused)) return false;
  if (parts.has_text) return generation_submit(of, to, first, asked, refused);
  end_choices(to, first);
  return true;
}

static bool take_fields(body *read, const char *tenant, wanted *asked, wick_grammar *grammar,
                        refusal *refused) {
  const field_tables tables = {fields_completion, fields_common, ""};
  if (!fields_check(read, BODY_ROOT, &tables, refused) ||
      !fields_take(read, tenant, asked, refused) || !fields_check_adapters(read, refused) ||
      !fields_take_grammar(read, grammar, refused)) {
    return false;
  }
  if (grammar->kind != WICK_GRAMMAR_NONE) asked->request.grammar = grammar;
  const uint32_t logprobs = body_find(read, BODY_ROOT, "logprobs");
  if (body_find(read, BODY_ROOT, "max_tokens") == 0) asked->request.max_tokens = MAX_TOKENS;
  const uint32_t best_of = body_find(read, BODY_ROOT, "best_of");
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
  wanted asked;
  wick_grammar grammar = {0};
  if (!take_fields(read, to->tenant, &asked, &grammar, refused)) return false;
  const uint32_t prompt = body_find(read, BODY_ROOT, "prompt");
  if (prompt == 0) {
    return refuse(refused, 400, "missing_required_parameter", "prompt", "prompt is missing");
  }
  prompt_parts parts;
  if (!take_parts(read, &asked, &parts, refused)) return false;
  const bool is_one = is_prompt(read, prompt);
  const json_node *list = body_node(read, prompt);
  if (!is_one && (list->kind != JSON_ARRAY || list->count == 0)) return refuse_prompt(refused);
  const uint32_t prompts = is_one ? 1 : list->count, n = asked.request.completions;
  if (prompts > ANSWER_CHOICES_MAX || prompts * n > ANSWER_CHOICES_MAX) {
    return refuse(refused, 400, "invalid_value", prompts > 1 ? "prompt" : "n",
                  "A request may have at most %d choices in total over its prompts",
                  ANSWER_CHOICES_MAX);
  }
  if (!generation_prepare(to, ANSWER_TEXT, &asked, prompts * n, refused)) return false;
  uint32_t node = is_one ? prompt : list->first;
  for (uint32_t i = 0; i < prompts; i++) {
    if (!submit_prompt(of, read, node, i * n, &asked, parts, to, refused)) return false;
    node = body_node(read, node)->next;
  }
  generation_start(of, to);
  return true;
}
