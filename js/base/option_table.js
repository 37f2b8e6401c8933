// js/base/option_table.js — a request's options that are numbers, and the subjects of errors.
// `make layout` makes it of include/options.mjs: changes go there.

/** @typedef {{field: string, byDefault: number, min: number, max?: number, whole?: boolean}} NumberOption */

/** The numbers of wick_sampling in its order: their fields over HTTP, defaults and ranges. */
export const samplingNumbers = {
  temperature: { field: 'temperature', byDefault: 0.8, min: 0 },
  topK: { field: 'top_k', byDefault: 40, min: -1, max: 4294967295, whole: true },
  topP: { field: 'top_p', byDefault: 0.95, min: 0, max: 1 },
  minP: { field: 'min_p', byDefault: 0.05, min: 0, max: 1 },
  repeatPenalty: { field: 'repeat_penalty', byDefault: 1, min: 1.4e-45 },
  frequencyPenalty: { field: 'frequency_penalty', byDefault: 0, min: -100, max: 100 },
  presencePenalty: { field: 'presence_penalty', byDefault: 0, min: -100, max: 100 },
  penaltyLast: { field: 'repeat_last_n', byDefault: 64, min: -1, max: 1048576, whole: true },
  typicalP: { field: 'typical_p', byDefault: 1, min: 0, max: 1 },
  topNSigma: { field: 'top_n_sigma', byDefault: -1, min: -1 },
  xtcProbability: { field: 'xtc_probability', byDefault: 0, min: 0, max: 1 },
  xtcThreshold: { field: 'xtc_threshold', byDefault: 0.1, min: 0, max: 1 },
  dynatempRange: { field: 'dynatemp_range', byDefault: 0, min: 0 },
  dynatempExponent: { field: 'dynatemp_exponent', byDefault: 1, min: 0 },
  dryMultiplier: { field: 'dry_multiplier', byDefault: 0, min: 0 },
  dryBase: { field: 'dry_base', byDefault: 1.75, min: 1 },
  dryAllowedLength: {
    field: 'dry_allowed_length',
    byDefault: 2,
    min: 0,
    max: 1048576,
    whole: true,
  },
  dryPenaltyLast: {
    field: 'dry_penalty_last_n',
    byDefault: -1,
    min: -1,
    max: 1048576,
    whole: true,
  },
  mirostat: { field: 'mirostat', byDefault: 0, min: 0, max: 2, whole: true },
  mirostatTau: { field: 'mirostat_tau', byDefault: 5, min: 0 },
  mirostatEta: { field: 'mirostat_eta', byDefault: 0.1, min: 0 },
  adaptiveTarget: { field: 'adaptive_target', byDefault: -1, min: -1, max: 1 },
  adaptiveDecay: { field: 'adaptive_decay', byDefault: 0.9, min: 0, max: 0.99 },
};

/** Numbers of a request beyond those. */
export const requestNumbers = {
  thinkingBudgetTokens: {
    field: 'thinking_budget_tokens',
    byDefault: -1,
    min: -1,
    max: 4294967295,
    whole: true,
  },
};

/** Options of a request that are true or false, by the bits of web_request.flags: the fields over HTTP and the options of the commands. */
export const requestFlags = {
  ignoreEnd: { field: 'ignore_eos' },
  healing: { cli: '--healing' },
  printSpecial: {},
  logprobsAfter: { field: 'post_sampling_probs', cli: '--logprobs-after' },
};

/** An engine's options that are numbers, in the order of web_config. */
export const engineNumbers = {
  contextSize: { byDefault: 0, min: 0, max: 4294967295, whole: true },
  batchSize: { byDefault: 0, min: 0, max: 512, whole: true },
  kvTokens: { byDefault: 0, min: 0, max: 4294967295, whole: true },
  grammarMemory: { byDefault: 67108864, min: 0, max: 4294967295, whole: true },
  grammarSteps: { byDefault: 30000000, min: 0, max: 4294967295, whole: true },
  maxTiles: { byDefault: 0, min: 1, max: 4294967295, whole: true },
  maxImageTokens: { byDefault: 0, min: 1, max: 4294967295, whole: true },
};

/** An engine's options that are true or false, in the order of web_config: its member of the opposite, or '' for the same. */
export const engineFlags = {
  directoryOnly: '',
  metrics: '',
  prefixCache: 'noPrefixCache',
  predictor: 'noPredictor',
};

/** The defaults of the commands, where they are others: no sampler does anything. */
export const plainSampling = { temperature: 0, topK: 0, topP: 1, minP: 0 };

/** The commands' options. */
export const commandOptions = {
  '--temp': 'temperature',
  '--top-k': 'topK',
  '--top-p': 'topP',
  '--min-p': 'minP',
  '--repeat-penalty': 'repeatPenalty',
  '--frequency-penalty': 'frequencyPenalty',
  '--presence-penalty': 'presencePenalty',
  '--repeat-last-n': 'penaltyLast',
  '--typical': 'typicalP',
  '--top-nsigma': 'topNSigma',
  '--xtc-probability': 'xtcProbability',
  '--xtc-threshold': 'xtcThreshold',
  '--dynatemp-range': 'dynatempRange',
  '--dynatemp-exp': 'dynatempExponent',
  '--dry-multiplier': 'dryMultiplier',
  '--dry-base': 'dryBase',
  '--dry-allowed-length': 'dryAllowedLength',
  '--dry-penalty-last-n': 'dryPenaltyLast',
  '--mirostat': 'mirostat',
  '--mirostat-ent': 'mirostatTau',
  '--mirostat-lr': 'mirostatEta',
  '--adaptive-target': 'adaptiveTarget',
  '--adaptive-decay': 'adaptiveDecay',
  '--reasoning-budget': 'thinkingBudgetTokens',
};

/** The letters of wick_sampling.samplers, by llama.cpp's names. */
export const samplerLetters = {
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

/** Fields over HTTP by routes, each with its kind or with the JSON that is accepted of a missing feature. */
export const fieldKinds = {
  every:
    'model=text user=ignored cache_prompt=boolean id_slot=ignored n_keep=ignored timings_per_token=boolean return_progress=boolean return_tokens=false reasoning_format="auto"|"deepseek" keep_alive=ignored ttl=ignored extra_body={}',
  text: 'stream=boolean max_tokens=tokens grammar=text regex=text json_schema=schema structured_outputs=object',
  chat_used:
    'max_completion_tokens=tokens logprobs=boolean chat_template_kwargs=object parallel_tool_calls=boolean parseSpecial=boolean',
  chat_idle:
    'enable_thinking=boolean store=ignored metadata=ignored service_tier=ignored prediction=ignored safety_identifier=ignored prompt_cache_key=ignored prompt_cache_retention=ignored functions=[] function_call="none"|"auto" modalities=[]|["text"] verbosity="medium" audio= web_search_options=',
  completion: 'parseSpecial=true echo=boolean suffix=""',
};

/** Other servers' names of fields over HTTP, and ours. @type {Record<string, string>} */
export const fieldAliases = {
  n_predict: 'max_tokens',
  typ_p: 'typical_p',
  repetition_penalty: 'repeat_penalty',
  guided_json: 'json_schema',
  guided_regex: 'regex',
  guided_choice: 'choices',
  guided_grammar: 'grammar',
};

/** Options of createHandler with a number and their defaults, and those with a text or several. */
export const handlerCounts = {
  queueLimit: 256,
  bodyBytesMax: 1048576,
  bodyTimeout: 60000,
  itemsMax: 2048,
};
export const handlerTexts = ['keys', 'metricsKey', 'cors', 'model', 'instance'];

/** Of a stream before its first token. */
export const SILENCE_MS = 5000;

/** Options of `wick serve`: createHandler, and what --help says. @type {[option: string, name: string, value: string, about: string][]} */
export const serveOptions = [
  ['--key', 'keys', 'KEY', 'require KEY from clients; repeat for several keys'],
  [
    '--metrics-key',
    'metricsKey',
    'KEY',
    'require KEY for /metrics (default: the only --key, if there is one)',
  ],
  [
    '--cors',
    'cors',
    'ORIGIN',
    'allow requests from pages of ORIGIN, or * for all; repeat for several origins',
  ],
  ['--queue', 'queueLimit', 'N', 'accept N running and waiting requests (default 256)'],
  ['--name', 'model', 'NAME', 'show NAME as the model in answers (default: the name of the file)'],
];

/** Other names of paths over HTTP. @type {Record<string, string>} */
export const pathAliases = {
  '/v1/health': '/health',
  '/models': '/v1/models',
  '/chat/completions': '/v1/chat/completions',
  '/completions': '/v1/completions',
  '/embeddings': '/v1/embeddings',
  '/responses': '/v1/responses',
  '/messages': '/v1/messages',
  '/rerank': '/v1/rerank',
  '/reranking': '/v1/rerank',
  '/v1/reranking': '/v1/rerank',
  '/v2/rerank': '/v1/rerank',
  '/v1/tokenize': '/tokenize',
  '/v1/detokenize': '/detokenize',
};

/** The subjects of errors in the order of their numbers, each with its option. @type {[string, string?][]} */
export const subjects = [
  ['none'],
  ['memory', 'memoryLimit'],
  ['plan', 'memoryLimit, contextSize'],
  ['context', 'contextSize'],
  ['batch', 'batchSize'],
  ['threads', 'threads'],
  ['kv_type', 'kvType'],
  ['kv_tokens', 'kvTokens'],
  ['directory_only', 'directoryOnly'],
  ['requests'],
  ['queue_tokens'],
  ['prompt'],
  ['priority', 'priority'],
  ['completions'],
  ['session'],
  ['stops', 'stop'],
  ['temperature', 'temperature'],
  ['top_p', 'topP'],
  ['min_p', 'minP'],
  ['repeat_penalty', 'repeatPenalty'],
  ['frequency_penalty', 'frequencyPenalty'],
  ['presence_penalty', 'presencePenalty'],
  ['penalty_last', 'penaltyLast'],
  ['logprobs', 'logprobs'],
  ['bias', 'logitBias'],
  ['kernels'],
  ['host', 'contextSize'],
  ['pre_tokenizer', 'preTokenizer'],
  ['grammar', 'grammar, jsonSchema, regex, choices'],
  ['typical_p', 'typicalP'],
  ['top_n_sigma', 'topNSigma'],
  ['xtc_probability', 'xtcProbability'],
  ['xtc_threshold', 'xtcThreshold'],
  ['dynatemp_range', 'dynatempRange'],
  ['dynatemp_exponent', 'dynatempExponent'],
  ['dry_multiplier', 'dryMultiplier'],
  ['dry_base', 'dryBase'],
  ['dry_penalty_last', 'dryPenaltyLast'],
  ['dry_sequence_breakers', 'drySequenceBreakers'],
  ['mirostat', 'mirostat'],
  ['mirostat_tau', 'mirostatTau'],
  ['mirostat_eta', 'mirostatEta'],
  ['adaptive_target', 'adaptiveTarget'],
  ['adaptive_decay', 'adaptiveDecay'],
  ['samplers', 'samplers'],
  ['adapters', 'adapters'],
  ['tables', 'tables'],
  ['dry_allowed_length', 'dryAllowedLength'],
  ['template'],
  ['tools', 'tools'],
  ['tool_choice', 'tool_choice'],
];
