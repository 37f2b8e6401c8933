// include/options.mjs — the options of a request, an engine and a server, and the fields of HTTP
// requests, defined once for all hosts. `make layout` generates src/base/options.h,
// js/base/option_table.js, web/layout.h, js/wasm/layout.js, and the marked parts of include/wick.h,
// js/index.d.ts and docs/guide/sampling.md from it; `make check-quick` fails if one of them is out
// of date. docs/extending.md describes how to add a sampler or a field.

/** The default maximum: the largest float, less a margin for rounding. */
export const FLOAT_MAX = 3.4e38;
/** The smallest float above 0. */
export const ABOVE_0 = 1.4e-45;
const U32_MAX = 2 ** 32 - 1;

/**
 * Limits of a request: constants of wick.h, and `limits` of js/base/option_table.js. With a
 * comment if the name does not say what is limited.
 * @type {Record<string, [value: number, comment?: string]>}
 */
export const limits = {
  bias_max: [1024],
  logprobs_max: [20],
  penalty_last_max: [2 ** 20],
  samplers_max: [16],
  dry_breakers_max: [16],
  dry_breaker_bytes_max: [40],
  stops_max: [64],
  stop_bytes_max: [256, 'per stop string'],
  priority_min: [-100],
  priority_max: [100],
  completions_max: [16, 'per prompt'],
  passes_waited_max: [
    512,
    'a request that has waited for this many passes runs before all later requests, regardless of priority',
  ],
};
const WINDOW_MAX = limits.penalty_last_max[0];

/**
 * An option that is a number. Its key is the name in C; the other names follow from it unless they are given.
 * @typedef {object} NumberOption
 * @property {'f32' | 'u32'} type for a u32, -1 means all bits set
 * @property {string} [js] its name in the package's options; by default minP for min_p
 * @property {string} [http] its name in HTTP requests; by default the name in C
 * @property {string} [cli] its option in the commands; by default --min-p for min_p
 * @property {string} value the placeholder for its value in --help
 * @property {number} min
 * @property {number} [max] by default FLOAT_MAX
 * @property {number} off the default in C and in the commands; it switches the sampler off if any
 * value can
 * @property {number} [byDefault] the default in the package and in servers, if it differs
 * @property {[value: string | number, meaning: string][]} [values] values with a meaning
 * @property {string} about a verb phrase. {} stands for the option or its value, {name} for another
 * option.
 * @property {string} [more] a sentence for reference documentation
 * @property {string} [source] the publication that describes the sampler
 */

/**
 * The numbers of wick_sampling, in its order.
 * @type {Record<string, NumberOption>}
 */
export const sampling = {
  temperature: {
    ...{ type: 'f32', cli: '--temp', value: 'T', min: 0, off: 0, byDefault: 0.8 },
    values: [[0, 'greedy']],
    about: 'set the temperature',
    more: 'Of equally likely tokens, greedy takes the one with the lowest id.',
  },
  top_k: {
    // 0 and -1 both switch it off, because some servers use one and some the other
    ...{ type: 'u32', value: 'K', min: -1, max: U32_MAX, off: 0, byDefault: 40 },
    values: [[0, 'all']],
    about: 'sample from the {} most likely tokens',
  },
  top_p: {
    ...{ type: 'f32', value: 'P', min: 0, max: 1, off: 1, byDefault: 0.95 },
    values: [
      [1, 'all'],
      [0, 'the most likely'],
    ],
    about: 'sample from the most likely tokens whose probabilities add up to {}',
  },
  min_p: {
    ...{ type: 'f32', value: 'P', min: 0, max: 1, off: 0, byDefault: 0.05 },
    values: [[0, 'all']],
    about: 'keep tokens that are at least {} times as likely as the most likely one',
  },
  repeat_penalty: {
    ...{ type: 'f32', value: 'R', min: ABOVE_0, off: 1 },
    values: [[1, 'off']],
    about: 'penalize repeated tokens',
    source: 'Keskar et al. 2019, as llama.cpp applies it',
  },
  frequency_penalty: {
    ...{ type: 'f32', value: 'F', min: -100, max: 100, off: 0 },
    values: [[0, 'off']],
    about: 'penalize tokens by how often they occurred',
    source: 'OpenAI',
  },
  presence_penalty: {
    ...{ type: 'f32', value: 'F', min: -100, max: 100, off: 0 },
    values: [[0, 'off']],
    about: 'penalize tokens that have occurred',
    source: 'OpenAI',
  },
  penalty_last: {
    ...{ type: 'u32', http: 'repeat_last_n', cli: '--repeat-last-n', value: 'N' },
    ...{ min: -1, max: WINDOW_MAX, off: 64 },
    values: [
      [0, 'none'],
      [-1, 'the context'],
    ],
    about: 'apply penalties to the last {} tokens',
  },
  typical_p: {
    ...{ type: 'f32', cli: '--typical', value: 'P', min: 0, max: 1, off: 1 },
    values: [[1, 'off']],
    about: 'keep tokens of typical surprise whose probabilities add up to {}',
    source: 'Meister et al. 2022',
  },
  top_n_sigma: {
    ...{ type: 'f32', cli: '--top-nsigma', value: 'N', min: -1, off: -1 },
    values: [[-1, 'off']],
    about: 'keep logits at most {} standard deviations below the maximum',
    source: 'Tang et al. 2024',
  },
  xtc_probability: {
    ...{ type: 'f32', value: 'P', min: 0, max: 1, off: 0 },
    values: [[0, 'off']],
    about: 'set the probability of removing all top choices except the least likely one',
  },
  xtc_threshold: {
    ...{ type: 'f32', value: 'P', min: 0, max: 1, off: 0.1 },
    values: [['over 0.5', 'off']],
    about: 'set the minimum probability of a top choice',
  },
  dynatemp_range: {
    ...{ type: 'f32', value: 'R', min: 0, off: 0 },
    values: [[0, 'off']],
    about: 'vary the temperature by up to {} with the entropy',
  },
  dynatemp_exponent: {
    ...{ type: 'f32', cli: '--dynatemp-exp', value: 'E', min: 0, off: 1 },
    about: 'set the exponent of the entropy',
    more: 'The entropy is relative to its maximum.',
  },
  dry_multiplier: {
    ...{ type: 'f32', value: 'M', min: 0, off: 0 },
    values: [[0, 'off']],
    about: "set DRY's penalty for repetitions",
    more: 'A token that would continue a repetition of n tokens loses {} * {dry_base} ** (n - {dry_allowed_length}).',
  },
  dry_base: {
    ...{ type: 'f32', value: 'B', min: 1, off: 1.75 },
    about: "set the growth of DRY's penalty with each token",
  },
  dry_allowed_length: {
    ...{ type: 'u32', value: 'N', min: 0, max: WINDOW_MAX, off: 2 },
    about: 'allow repetitions of {} tokens',
  },
  dry_penalty_last: {
    ...{ type: 'u32', http: 'dry_penalty_last_n', cli: '--dry-penalty-last-n', value: 'N' },
    ...{ min: -1, max: WINDOW_MAX, off: -1 },
    values: [
      [-1, 'the context'],
      [0, 'off'],
    ],
    about: 'apply DRY to the last {} tokens',
  },
  mirostat: {
    ...{ type: 'u32', value: 'N', min: 0, max: 2, off: 0 },
    values: [[0, 'off']],
    about: 'use Mirostat 1 or 2',
    source: 'Basu et al. 2021',
    more: 'It replaces the other samplers except the temperature.',
  },
  mirostat_tau: {
    ...{ type: 'f32', cli: '--mirostat-ent', value: 'T', min: 0, off: 5 },
    about: "set Mirostat's surprise in bits",
  },
  mirostat_eta: {
    ...{ type: 'f32', cli: '--mirostat-lr', value: 'E', min: 0, off: 0.1 },
    about: "set Mirostat's learning rate",
  },
  adaptive_target: {
    ...{ type: 'f32', value: 'P', min: -1, max: 1, off: -1 },
    values: [['below 0', 'off']],
    about: 'prefer tokens with probabilities near {} (adaptive-p)',
  },
  adaptive_decay: {
    ...{ type: 'f32', value: 'D', min: 0, max: 0.99, off: 0.9 },
    about: "set the decay of adaptive-p's memory",
  },
};

/**
 * An option of a request that has a separate form in C, on the command line or in HTTP requests.
 * @typedef {object} RequestOption
 * @property {'u32' | 'u64' | 'texts'} type
 * @property {string} [js] its name in the package's options; by default the camel case of its key
 * @property {string} [http] its HTTP field, if all routes have the same
 * @property {string} cli its option in the commands
 * @property {string} value the placeholder for its value in --help
 * @property {number} [min] of a number
 * @property {number} [max]
 * @property {number} [off] the default of a number
 * @property {[min: number, max: number]} [cliRange] if it differs
 * @property {string} help the line of --help
 * @property {string} about a comment in the package's types
 * @property {string} typed its type in the package
 */

/** @type {Record<string, RequestOption>} */
export const request = {
  seed: {
    ...{ type: 'u64', http: 'seed', cli: '--seed', value: 'S' },
    help: 'seed the random choice (default: new in each run)',
    about: 'The same seed gives the same output. -1, the default: a random seed.',
    typed: 'number | bigint | null',
  },
  stops: {
    ...{ type: 'texts', js: 'stop', http: 'stop', cli: '--stop', value: 'TEXT' },
    help: 'stop before TEXT (repeatable)',
    about: 'Strings that end the output and are not part of it.',
    typed: 'string | string[] | null',
  },
  reasoning_budget: {
    ...{ type: 'u32', js: 'thinkingBudgetTokens', http: 'thinking_budget_tokens' },
    ...{ cli: '--reasoning-budget', value: 'N', min: -1, max: U32_MAX, off: -1 },
    cliRange: [0, 1e9],
    help: 'reason for at most N tokens, then answer',
    about:
      'Limit on the tokens of reasoning. At the limit the reasoning is closed and the answer follows. The tags are ' +
      "those of the model's chat template, and the prompt may already contain the opening tag. -1, the default: no limit.",
    typed: 'number',
  },
  logprobs: {
    ...{ type: 'u32', cli: '--logprobs', value: 'N' },
    ...{ min: 0, max: limits.logprobs_max[0], off: 0, cliRange: [1, limits.logprobs_max[0]] },
    help: 'print a JSON line on stderr for each token, with N alternatives',
    about: `The number of alternatives that onToken receives, up to ${limits.logprobs_max[0]}; 0: only the token's logprob.`,
    typed: 'number',
  },
};

/**
 * Options of a request that are true or false, false by default: members of wick_request, or of
 * wick_sampling if `isSampling` is set. Without `http` or `cli`, HTTP requests or the commands do
 * not have it.
 * @type {Record<string, {isSampling?: boolean, http?: string, cli?: string, about: string, more?: string}>}
 */
export const flags = {
  ignore_end: {
    http: 'ignore_eos',
    about: 'continue after an end token',
  },
  healing: {
    cli: '--healing',
    about: 'let the prompt end inside a word or token',
    more: 'Its last token is sampled again with the output. Only for string prompts without a grammar.',
  },
  print_special: { about: 'include control tokens in the text' },
  logprobs_after: {
    ...{ isSampling: true, http: 'post_sampling_probs', cli: '--logprobs-after' },
    about: "report logprobs of the distribution after the samplers, not the model's",
  },
};

/**
 * Options of an engine that are whole numbers: members of wick_config. `min` and `max` are 0 and 2 ** 32 - 1 by
 * default; 0 is the default of the engine. `byDefault` is the package's default if it differs.
 * @type {Record<string, {js: string, min?: number, max?: number, byDefault?: number, about: string}>}
 */
export const engine = {
  context_tokens: {
    js: 'contextSize',
    about:
      "Maximum number of tokens in prompt and answer together; by default the model's limit, but at most 4096.",
  },
  batch_tokens: {
    ...{ js: 'batchSize', max: 512 },
    about: 'Number of prompt tokens that are processed together, up to 512; 128 by default.',
  },
  kv_tokens_max: {
    js: 'kvTokens',
    about:
      'Limit on the tokens of all requests, sessions and the prefix cache together; four contexts by default. ' +
      'Requests wait until enough tokens are free.',
  },
  grammar_bytes_max: {
    ...{ js: 'grammarMemory', byDefault: 64 * 2 ** 20 },
    about: 'Limit on the working memory for compiling one grammar, in bytes; 64 MiB by default.',
  },
  grammar_steps_max: {
    ...{ js: 'grammarSteps', byDefault: 30e6 },
    about: 'Limit on the steps for compiling one grammar; 30 million (about 2 s) by default.',
  },
  media_tiles_max: {
    ...{ js: 'maxTiles', min: 1 },
    about: 'Maximum number of tiles per image, including its overview. No limit by default.',
  },
  media_rows_max: {
    ...{ js: 'maxImageTokens', min: 1 },
    about:
      'Maximum number of context positions per image. A larger image is scaled down. ' +
      'No limit by default.',
  },
};

/**
 * Options of an engine that are true or false: members of wick_config, false by default. `not` names the package's option if
 * that has the opposite meaning and is true by default.
 * @type {Record<string, {not?: string, about: string}>}
 */
export const engineFlags = {
  directory_only: { about: 'Loads only metadata and tokenizer, for inspect() and tokenize().' },
  metrics: { about: 'Times the ops of the forward pass, for metrics().' },
  no_prefix_cache: {
    not: 'prefixCache',
    about: 'Caches prompt prefixes, so that they are computed once; true by default.',
  },
  no_predictor: {
    not: 'predictor',
    about:
      "Uses the file's layer for multi-token prediction, if it has one (Qwen3.5), to propose tokens; true by default. " +
      'If false, the layer is not loaded.',
  },
};

/**
 * The samplers in their default order: llama.cpp's names, and their letters in wick_sampling.samplers.
 * @type {Record<string, string>}
 */
export const samplers = {
  penalties: 'e',
  dry: 'd',
  top_n_sigma: 's',
  top_k: 'k',
  typ_p: 'y',
  top_p: 'p',
  min_p: 'm',
  xtc: 'x',
  temperature: 't',
  adaptive_p: 'a',
};

/**
 * HTTP fields by route (`every`: all that generate, embed or rank), each with its kind. A field
 * whose value is only checked needs no code; others are read in js/handler and component:
 * - `text`, `boolean`, `object`
 * - `texts`: a string or an array of strings
 * - `tokens`: a limit, -1 for none; `count`: the same or 0
 * - `whole`: any whole number; `1..` or `0..20`: one in a range
 * - the key of a number in `request`: its range
 * - `schema`: a JSON schema or its text; `effort`: the amount of reasoning
 * - `strings`: an array of strings; `choices`: one of at least one string
 * - `{name}`: an object with the fields of that list
 * - `ignored`; `checked`: the route checks it; `unknown`: the route does not have this field of a
 *   shared list
 * - for a missing feature: the JSON values that request nothing, separated by |
 * @type {Record<string, Record<string, string>>}
 */
export const fields = {
  // Clients of llama.cpp's server, Ollama, LM Studio and Spring AI use the fields from cache_prompt
  // on to choose how a server caches and reports.
  every: {
    ...{ model: 'text', user: 'ignored', cache_prompt: 'boolean', id_slot: 'ignored' },
    ...{ n_keep: 'ignored', timings_per_token: 'boolean', return_progress: 'boolean' },
    return_tokens: 'false',
    ...{ reasoning_format: '"auto"|"deepseek"', keep_alive: 'ignored', ttl: 'ignored' },
    extra_body: '{}',
  },
  text: {
    ...{ stream: 'boolean', max_tokens: 'tokens', grammar: 'text', regex: 'text' },
    ...{ json_schema: 'schema', structured_outputs: '{structured_outputs}' },
    stream_options: '{stream_options}',
    ...{ n: `1..${limits.completions_max[0]}`, stop: 'texts', seed: 'whole' },
    ...{ thinking_budget_tokens: 'reasoning_budget', logit_bias: 'object', salt: 'text' },
    ...{ choices: 'choices', dry_sequence_breakers: 'checked', samplers: 'checked' },
  },
  stream_options: { include_usage: 'boolean', include_obfuscation: 'boolean' },
  structured_outputs: {
    ...{ json: 'schema', regex: 'text', choice: 'choices', grammar: 'text' },
    json_object: 'boolean',
  },
  chat_used: {
    ...{ messages: 'checked', max_completion_tokens: 'tokens', logprobs: 'boolean' },
    ...{ top_logprobs: 'logprobs', chat_template_kwargs: 'object', lora: 'checked' },
    ...{ parallel_tool_calls: 'boolean', parseSpecial: 'boolean', reasoning_effort: 'effort' },
    ...{ response_format: 'object', tools: 'checked', tool_choice: 'checked' },
  },
  // not passed to the engine unchanged
  chat_idle: {
    ...{ enable_thinking: 'boolean', thinking: 'checked', n_probs: 'logprobs', store: 'ignored' },
    ...{ metadata: 'ignored', service_tier: 'ignored', prediction: 'ignored' },
    ...{ safety_identifier: 'ignored', prompt_cache_key: 'ignored' },
    ...{ prompt_cache_retention: 'ignored', functions: '[]' },
    ...{ function_call: '"none"|"auto"', modalities: '[]|["text"]', verbosity: '"medium"' },
    ...{ audio: '', web_search_options: '' },
  },
  // the types of response_format
  text_format: { type: 'ignored' },
  object_format: { type: 'ignored', schema: 'object' }, // llama.cpp's clients send the schema here
  schema_format: { type: 'ignored', json_schema: '{json_schema}' },
  json_schema: { name: 'text', schema: 'object', strict: 'boolean', description: 'text' },
  // Clients store additional members in their messages and send them.
  message: {
    ...{ role: 'text', tool_call_id: 'text', reasoning_content: 'text', reasoning: 'text' },
    ...{ refusal: 'text', function_call: '{}', audio: '{}' },
  },
  completion: {
    ...{ prompt: 'checked', max_tokens: 'count', logprobs: 'logprobs', n_probs: 'logprobs' },
    ...{ best_of: '1..', lora: 'checked', parseSpecial: 'true', echo: 'boolean', suffix: '""' },
  },
  // the routes of llama.cpp's server
  native: {
    ...{ n_probs: 'logprobs', return_tokens: 'boolean', response_fields: 'strings' },
    ...{ logit_bias: 'checked', lora: 'checked', stream_options: 'unknown', n: '1' },
    ...{ n_discard: 'ignored', n_indent: '0' },
  },
  native_completion: { prompt: 'checked' },
  infill: {
    ...{ prompt: 'text', input_prefix: 'text', input_suffix: 'text', input_extra: 'checked' },
  },
  tokenize: {
    ...{ model: 'text', content: 'text', prompt: 'text', messages: 'checked', tools: 'checked' },
    ...{ add_special: 'boolean', add_special_tokens: 'boolean', parse_special: 'boolean' },
    ...{ with_pieces: 'boolean', chat_template_kwargs: 'object' },
  },
  detokenize: { model: 'text', tokens: 'checked' },
  template: {
    ...{ model: 'text', messages: 'checked', tools: 'checked', chat_template_kwargs: 'object' },
    ...{ add_generation_prompt: 'boolean', reasoning_format: 'ignored' },
  },
  response: {
    ...{ input: 'checked', instructions: 'text', max_output_tokens: 'tokens' },
    text: '{response_text}',
    ...{ tools: 'checked', tool_choice: 'checked', parallel_tool_calls: 'boolean' },
    ...{ chat_template_kwargs: 'object', stream_options: '{response_stream}' },
    ...{ metadata: 'object', reasoning: '{reasoning}', store: 'ignored' },
    ...{ service_tier: 'ignored', safety_identifier: 'ignored' },
    client_metadata: 'ignored', // sent by Codex
    ...{ prompt_cache_key: 'ignored', prompt_cache_retention: 'ignored' },
    ...{ prompt_cache_options: 'ignored', include: 'checked', top_logprobs: 'logprobs' },
    truncation: '"disabled"|"auto"', // input that exceeds the context is rejected
    ...{ background: 'false', previous_response_id: '', conversation: '', prompt: '' },
    ...{ max_tool_calls: 'ignored', moderation: '', context_management: '' },
    ...{ n: 'unknown', max_tokens: 'unknown' },
  },
  response_stream: { include_obfuscation: 'boolean' },
  reasoning: { effort: 'effort', summary: '"auto"|"concise"|"detailed"' },
  response_text: { format: 'checked', verbosity: '"medium"' },
  response_format: {
    ...{ type: 'ignored', name: 'text', schema: 'object', strict: 'boolean' },
    description: 'text',
  },
  // other members of a tool are left out
  response_tool: { name: 'text', description: 'text', parameters: 'object', strict: 'boolean' },
  // of /v1/messages/count_tokens and /v1/messages, which components do not have
  counted: {
    ...{ model: 'text', system: 'checked', messages: 'checked', tools: 'checked' },
    ...{ tool_choice: 'checked', thinking: 'checked', cache_control: 'ignored' },
    ...{ output_config: 'checked', output_format: 'checked', context_management: 'ignored' },
    ...{ mcp_servers: '[]', speed: 'ignored' },
  },
  messages: {
    ...{ stop_sequences: 'strings', chat_template_kwargs: 'object', metadata: 'ignored' },
    ...{ service_tier: 'ignored', container: '', betas: 'ignored', inference_geo: 'ignored' },
    ...{ n: 'unknown', stop: 'unknown', stream_options: 'unknown' },
  },
  embedding: { input: 'checked', dimensions: '1..', encoding_format: 'checked' },
  native_embedding: { input: 'checked', content: 'checked', embd_normalize: '-1|2' },
  rerank: {
    ...{ query: 'text', documents: 'checked', top_n: '1..', return_documents: 'boolean' },
    // of text-embeddings-inference
    ...{ texts: 'checked', return_text: 'boolean', raw_scores: 'boolean' },
  },
};

/** The requirements that errors name: those of the kinds above, and of fields that routes check. */
export const words = {
  ...{ text: 'a string', boolean: 'true or false', object: 'an object', whole: 'a whole number' },
  texts: 'a string or an array of strings',
  tokens: 'a whole number of at least 1, or -1 for no limit',
  schema: 'a JSON schema or its text',
  effort: 'one of none, minimal, low, medium, high, xhigh, max',
  strings: 'an array of strings',
  choices: 'an array of at least one string',
  salt: 'a non-empty string',
  logit_bias: 'an object of token ids and numbers',
  samplers: `an array of at most ${limits.samplers_max[0]} of ${Object.keys(samplers).join(', ')}`,
  lora: 'an array of {"id": a whole number, "scale": a number}',
  thinking: 'an object with the type enabled or disabled',
  messages: 'an array of at least one message',
  role: 'one of system, developer, user, assistant, tool',
  content: 'a string or an array of parts',
  call: '{"id", "function": {"name", "arguments": a string}}',
  tool: '{"type": "function", "function": {"name", ...}}',
  tool_choice: 'none, auto, required or {"type": "function", "function": {"name"}}',
  prompt: 'a string, an array of token ids and strings, or an array of these',
  native_bias: `an object that maps at most ${limits.bias_max[0]} token ids or strings to numbers, or an array of such pairs`,
  input_extra: 'an array of {"filename", "text"}',
  encoding_format: 'float or base64',
  ids: 'an array of token ids',
};

/**
 * Errors of servers: HTTP status, code and text, with %s in place of a string and %u in place of a count.
 * @type {Record<string, [status: number, code: string, text: string]>}
 */
export const refusals = {
  no_route: [404, 'not_found', 'No route for %s'],
  wrong_method: [405, 'method_not_allowed', 'Method %s is not allowed for %s'],
  other_model: [404, 'model_not_found', "This server's model is %s"],
  body_size: [413, 'body_too_large', 'The body has more than %u bytes'],
  body_late: [408, 'body_timeout', 'The body did not arrive within %u ms'],
  body_type: [
    415,
    'unsupported_media_type',
    'The body must be JSON with Content-Type: application/json, not %s',
  ],
  body_coding: [415, 'unsupported_media_type', 'Content-Encoding: %s is not supported'],
  body_values: [400, 'too_many_values', 'The body has more than %u objects and arrays'],
  long_list: [400, 'array_above_max_length', '%s must have at most %u items, not %u'],
  full_queue: [429, 'queue_full', '%u requests are already running or waiting'],
  missing: [400, 'missing_required_parameter', '%s is missing'],
  unknown: [400, 'unknown_parameter', 'unknown field %s'],
  same_field: [400, 'invalid_value', '%s and %s are the same field: send one'],
  choices: [
    400,
    'invalid_value',
    'A request may have at most %u choices in total over its prompts',
  ],
  prompts: [400, 'invalid_value', 'A request may have at most %u prompts'],
  echo_stream: [400, 'invalid_value', 'echo is not available with stream'],
  no_echo: [400, 'invalid_value', 'max_tokens: 0 needs echo'],
  no_stream: [400, 'invalid_value', 'stream_options needs stream: true'],
  no_logprobs: [400, 'invalid_value', 'top_logprobs needs logprobs: true'],
  no_infill: [501, 'nodata', 'infill: the model has no fill-in-the-middle tokens'],
  high_id: [400, 'invalid_value', '%s must be below %u, not %u'],
};

/** Other servers' names for HTTP fields, with our field of the same meaning. A request may have only one of the two.
 * @type {Record<string, string>}
 */
export const aliases = {
  // llama.cpp's server
  ...{ n_predict: 'max_tokens', typ_p: 'typical_p' },
  // vLLM
  ...{ repetition_penalty: 'repeat_penalty', guided_json: 'json_schema', guided_regex: 'regex' },
  ...{ guided_choice: 'choices', guided_grammar: 'grammar' },
};

/**
 * Options of a server: a count is at least 1, a string is not empty, a flag is 0 or 1 in the
 * environment. createHandler uses the name, a component uses the variable or the field of
 * `settings`, and `wick serve` uses the option.
 * @typedef {object} ServerOption
 * @property {'keys' | 'texts' | 'text' | 'count' | 'flag'} kind
 * @property {number} [byDefault] of a count or a flag
 * @property {[variable: string, field: string]} [env]
 * @property {[option: string, value: string, about: string]} [cli] a verb phrase
 * @property {true} [isElsewhere] whether it is not an option of createHandler
 */

/** @type {Record<string, ServerOption>} */
export const server = {
  keys: {
    ...{ kind: 'keys', env: ['WICK_KEYS', 'keys'] },
    cli: ['--key', 'KEY', 'require KEY from clients; repeat for several keys'],
  },
  metricsKey: {
    ...{ kind: 'keys', env: ['WICK_METRICS_KEY', 'metrics_keys'] },
    cli: [
      '--metrics-key',
      'KEY',
      'require KEY for /metrics (default: the only --key, if there is one)',
    ],
  },
  cors: {
    ...{ kind: 'texts', env: ['WICK_CORS', 'origins'] },
    cli: [
      '--cors',
      'ORIGIN',
      'allow requests from pages of ORIGIN, or * for all; repeat for several origins',
    ],
  },
  queueLimit: {
    ...{ kind: 'count', byDefault: 256, env: ['WICK_QUEUE_LIMIT', 'queue_limit'] },
    cli: ['--queue', 'N', 'accept N running and waiting requests (default 256)'],
  },
  model: {
    ...{ kind: 'text', env: ['WICK_MODEL_NAME', 'model_name'] },
    cli: ['--name', 'NAME', 'show NAME as the model in responses (default: the file name)'],
  },
  bodyBytesMax: {
    ...{ kind: 'count', byDefault: 1 << 20, env: ['WICK_BODY_BYTES_MAX', 'body_bytes_max'] },
  },
  // milliseconds
  bodyTimeout: {
    ...{ kind: 'count', byDefault: 60_000, env: ['WICK_BODY_TIMEOUT_MS', 'body_timeout_ms'] },
  },
  // number of items in a list: OpenAI's limit on inputs
  itemsMax: { kind: 'count', byDefault: 2048, env: ['WICK_ITEMS_MAX', 'items_max'] },
  instance: { kind: 'text' },
  // delay before a comment line is sent on a stream without tokens: proxies close a connection that
  // has been silent for a minute
  silenceMs: {
    ...{ kind: 'count', byDefault: 5000, env: ['WICK_SILENCE_MS', 'silence_ms'] },
    isElsewhere: true,
  },
  log: { kind: 'flag', byDefault: 1, env: ['WICK_LOG', 'logs_requests'], isElsewhere: true },
  chatTemplate: {
    ...{ kind: 'text', env: ['WICK_CHAT_TEMPLATE', 'chat_template'], isElsewhere: true },
  },
};

/**
 * HTTP routes with a body: the name of the component's function, or '' if a component does not have the
 * route, and OpenTelemetry's name of the operation.
 * @type {Record<string, [name: string, operation?: string]>}
 */
export const routes = {
  '/v1/chat/completions': ['chat', 'chat'],
  '/v1/completions': ['completion', 'text_completion'],
  '/v1/responses': ['responses', 'chat'],
  '/v1/messages': ['', 'chat'],
  '/v1/embeddings': ['embedding', 'embeddings'],
  '/v1/rerank': ['rerank', 'rerank'],
  '/completion': ['native', 'text_completion'],
  '/infill': ['infill', 'text_completion'],
  '/embedding': ['native_embedding', 'embeddings'],
  '/tokenize': ['tokenize'],
  '/detokenize': ['detokenize'],
  '/apply-template': ['template'],
};

/** Aliases of HTTP paths.
 * @type {Record<string, string>}
 */
export const paths = {
  ...{ '/v1/health': '/health', '/models': '/v1/models' },
  '/chat/completions': '/v1/chat/completions',
  ...{ '/completions': '/v1/completions', '/embeddings': '/v1/embeddings' },
  ...{ '/responses': '/v1/responses', '/messages': '/v1/messages' },
  ...{ '/rerank': '/v1/rerank', '/reranking': '/v1/rerank', '/v1/reranking': '/v1/rerank' },
  ...{ '/v2/rerank': '/v1/rerank', '/v1/tokenize': '/tokenize', '/v1/detokenize': '/detokenize' },
};

/**
 * The members of wick_subject in the order of their numbers, which never change: the name in C and, where they are not those of
 * a number above, the fields that it refers to, the option of the package, and the meaning of
 * wick_error.numbers.
 * @type {[name: string, fields?: string, option?: string, numbers?: string][]}
 */
export const subjects = [
  ['none', '', undefined, 'no setting: the file, the model, the host, ...'],
  ['memory', 'memory_bytes_max', 'memoryLimit', 'bytes needed, budget'],
  [
    'plan',
    'memory_bytes_max, context_tokens',
    'memoryLimit, contextSize',
    'bytes planned, budget, tokens',
  ],
  ['context', 'context_tokens', 'contextSize', 'tokens requested, limit'],
  ['batch', 'batch_tokens', 'batchSize', 'requested, limit'],
  ['threads', 'threads', 'threads', 'requested, limit'],
  ['kv_type', 'k_type, v_type', 'kvType', 'k_type, v_type'],
  ['kv_tokens', 'kv_tokens_max', 'kvTokens', 'pages needed, available'],
  ['directory_only', 'directory_only', 'directoryOnly'],
  ['requests', 'requests_max', undefined, 'current, limit'],
  ['queue_tokens', 'queue_tokens_max', undefined, 'current, limit'],
  ['prompt', 'text, tokens'],
  ['priority', 'priority', 'priority'],
  ['completions', 'completions', undefined, 'requested, limit'],
  ['session', 'session', undefined, 'its number'],
  ['stops', 'stops', 'stop', 'count or index, limit'],
  ['temperature'],
  ['top_p'],
  ['min_p'],
  ['repeat_penalty'],
  ['frequency_penalty'],
  ['presence_penalty'],
  ['penalty_last'],
  ['logprobs', 'logprobs', 'logprobs', 'requested, limit'],
  ['bias', 'bias', 'logitBias', 'requested, limit; or the token and the vocabulary size'],
  ['kernels', 'kernels'],
  ['host', 'context_tokens', 'contextSize', "bytes planned, the host's limit, tokens"],
  ['pre_tokenizer', 'pre_tokenizer', 'preTokenizer'],
  ['grammar', 'grammar', 'grammar, jsonSchema, regex, choices'],
  ['typical_p'],
  ['top_n_sigma'],
  ['xtc_probability'],
  ['xtc_threshold'],
  ['dynatemp_range'],
  ['dynatemp_exponent'],
  ['dry_multiplier'],
  ['dry_base'],
  ['dry_penalty_last'],
  [
    'dry_sequence_breakers',
    'dry_sequence_breakers',
    'drySequenceBreakers',
    'count or index, limit',
  ],
  ['mirostat'],
  ['mirostat_tau'],
  ['mirostat_eta'],
  ['adaptive_target'],
  ['adaptive_decay'],
  ['samplers', 'samplers', 'samplers', 'index, limit'],
  ['adapters', 'adapters', 'adapters', 'index or count, limit'],
  ['tables', 'tables', 'tables'],
  ['dry_allowed_length'],
  ['template', 'conversation.chat'],
  ['tools', 'conversation.chat', 'tools'],
  ['tool_choice', 'conversation.tool_choice', 'tool_choice'],
];
