// component/echo.c — `echo` of /v1/completions: the prompt's own text before each choice, and with
// `logprobs` the probability of each of its tokens. The engine processes the prompt's first token
// and is forced to generate the others.
#include "echo.h"

#include <string.h>

#include "prompts.h"

typedef struct prompt_tokens {
  const int32_t *ids;  // [count], the tokens that the model processes
  size_t count;
  size_t first;  // the index where the prompt's tokens begin, after a BOS
} prompt_tokens;

// Returns the tokens of the prompt's text, after a BOS if the model requires one. An EOS is left
// out.
static bool tokenize(const server *of, body *read, const wick_request *asked, prompt_tokens *out,
                     refusal *refused) {
  const wick_text text = {asked->text, asked->text_bytes};
  const int32_t *own;
  size_t all;
  const uint32_t plain = WICK_TOKENIZE_PARSE_SPECIAL;
  if (!prompts_tokenize(of->engine, read, text, plain, &own, &out->count, refused) ||
      !prompts_tokenize(of->engine, read, text, plain | (uint32_t)WICK_TOKENIZE_ADD_SPECIAL,
                        &out->ids, &all, refused)) {
    return false;
  }
  const bool has_bos =
      all > out->count &&
      (out->count == 0 || memcmp(out->ids + 1, own, out->count * sizeof *own) == 0);
  out->first = has_bos ? 1 : 0;
  out->count += out->first;
  return true;
}

// Queues the request that generates all tokens except the first.
static bool submit(const server *of, const wick_request *asked, const prompt_tokens *prompt,
                   answer *to, choice *from, refusal *refused) {
  wick_request request;
  wick_error error;
  wick_request_default(&request);
  request.tokens = prompt->ids;
  request.token_count = 1;
  request.forced = prompt->ids + 1;
  request.forced_count = prompt->count - 1;
  request.max_tokens = (uint32_t)(prompt->count - 1);
  request.ignore_end = true;
  request.print_special = true;
  request.no_speculation = true;
  request.sampling.logprob = true;
  request.sampling.logprobs = asked->sampling.logprobs;
  request.salt = asked->salt;
  request.salt_bytes = asked->salt_bytes;
  if (wick_request_submit(of->engine, &request, &from->echo_request, &error) != WICK_OK) {
    return refuse_error(refused, &error, "prompt", NULL);
  }
  from->echo_left = request.max_tokens;
  from->is_echo_open = true;
  to->choices_open++;
  return true;
}

bool echo_begin(const wick_request *asked, answer *to, uint32_t first, refusal *refused) {
  const prompt shown = {{asked->text, asked->text_bytes}, asked->tokens, asked->token_count};
  prompt_tokens prompt = {.ids = asked->tokens, .count = asked->token_count};
  choice *choices = &to->choices[first];
  bool is_right =
      asked->tokens != NULL || tokenize(to->of, &to->asked->read, asked, &prompt, refused);
  buffer *text = &choices->content;
  is_right = is_right && prompts_put(to->of->engine, &shown, text, refused);
  for (uint32_t i = 0; is_right && i < to->choices_a_prompt; i++) {
    choices[i].tokens_prompt = (uint32_t)prompt.count;  // replaced when the choice itself ends
    if (i > 0) buffer_put(&choices[i].content, text->bytes, text->size_bytes);
  }
  if (is_right && to->has_logprobs) {
    if (prompt.first == 0 && prompt.count > 0) {
      details_add_first(&choices->echo, to->of->engine, prompt.ids[0]);
    }
    for (size_t i = prompt.first; i < prompt.count; i++) {
      const uint32_t units = details_units(to->of->engine, prompt.ids[i]);
      for (uint32_t k = 0; k < to->choices_a_prompt; k++) choices[k].details.text_units += units;
    }
    if (prompt.count > 1) is_right = submit(to->of, asked, &prompt, to, choices, refused);
  }
  return is_right;
}
