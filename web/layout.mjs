// web/layout.mjs — the memory layout that C and JavaScript share in a browser build: records, their
// fields, and named numbers. `make layout` generates web/layout.h and js/wasm/layout.js from it;
// `make check-quick` fails if they are out of date.

import { engine, engineFlags, sampling } from '../include/options.mjs';

/**
 * Records that JavaScript fills: 32-bit fields in this order; a u64 takes two of them, and a bool
 * is the first byte of one. A `size` is an address or a size_t, which has 8 bytes in modules with
 * 64-bit addresses. The structs of `web` are declared in web/layout.h, the others in
 * include/wick.h.
 * @type {Record<string, Record<string, 'u32' | 'i32' | 'f32' | 'u64' | 'bool' | 'size'>>}
 */
export const filled = {
  // web_engine_create
  web_config: {
    memory_bytes_max_low: 'u32',
    memory_bytes_max_high: 'u32',
    ...Object.fromEntries(
      Object.keys({ ...engine, ...engineFlags }).map((name) => [
        name,
        /** @type {const} */ ('u32'),
      ]),
    ),
    threads: 'u32',
    k_type: 'u32',
    v_type: 'u32',
    timer_grain_us: 'u32',
    choose_threads: 'u32',
    swap: 'u32', // 0: never, 1: if it is faster, 2: always
    pre_tokenizer: 'size', // the address and the size of a name
    pre_tokenizer_bytes: 'u32',
    tables: 'u32', // a wick_tables; unless WICK_TABLES_INSIDE, the host reads rows
    media_like_llama_cpp: 'u32',
  },
  // web_request_submit; arrays are an address and a count, text is an address and a size in bytes
  web_request: {
    text: 'size',
    text_bytes: 'u32',
    tokens: 'size', // ids, which take precedence over text if token_count is not 0
    token_count: 'u32',
    tokenize_flags: 'u32',
    max_tokens: 'u32',
    sampling: 'size', // a wick_sampling
    stops: 'size', // addresses of strings
    stop_bytes: 'size', // their sizes
    stop_count: 'u32',
    flags: 'u32', // bits of WEB_REQUEST_FLAGS
    session: 'u32',
    prefill_only: 'u32',
    drop_first: 'u32',
    drop_last: 'u32',
    priority: 'i32',
    passes_waited: 'u32',
    completions: 'u32',
    speculation: 'u32', // 0: if it is faster, 1: never, 2: always
    forced: 'size',
    forced_count: 'u32',
    salt: 'size',
    salt_bytes: 'u32',
    grammar_kind: 'u32', // a wick_grammar_kind; 0: none
    grammar: 'size',
    grammar_bytes: 'u32',
    adapters: 'size', // an array of wick_adapter_use
    adapter_count: 'u32',
    limits_reasoning: 'u32', // 1: the three fields below are used
    reasoning_tokens: 'u32',
    reasoning_ending: 'size',
    reasoning_ending_bytes: 'u32',
    chat: 'size', // a web_chat; 0: none
    tool_choice: 'size',
    tool_choice_bytes: 'u32',
    one_call: 'u32',
    is_grammar_whole: 'u32',
    asks_host: 'u32',
    grammar_begun: 'size',
    grammar_begun_bytes: 'u32',
  },
  wick_sampling: {
    seed: 'u64',
    ...Object.fromEntries(Object.entries(sampling).map(([name, { type }]) => [name, type])),
    samplers: 'size', // a NUL-terminated string; 0: the default order
    bias: 'size', // an array of wick_bias
    bias_count: 'u32',
    logprobs: 'u32', // number of alternatives
    logprob: 'bool', // whether to return the logprob of the sampled token
    dry_sequence_breakers: 'size', // addresses of strings; 0: the default breakers
    dry_breaker_bytes: 'size', // their sizes
    dry_breaker_count: 'u32',
    logprobs_after: 'bool',
  },
  // web_embed_begin
  web_embed: {
    texts: 'size', // an array of wick_embed_text
    text_count: 'u32',
    pooling: 'u32',
    dimensions: 'u32',
    normalizes: 'u32',
    truncates: 'u32',
    adapters: 'size', // an array of wick_adapter_use
    adapter_count: 'u32',
  },
  wick_embed_text: {
    text: 'size',
    text_bytes: 'size',
    document: 'size',
    document_bytes: 'size',
    tokens: 'size',
    token_count: 'size',
  },
  // a conversation
  web_chat: {
    json: 'size',
    json_bytes: 'u32',
    now_s: 'u32',
    parse_special: 'u32',
    prefix: 'size',
    prefix_bytes: 'u32',
  },
  // web_media_tokenize
  web_media_prompt: {
    chat: 'size', // a web_chat; 0: plain text
    text: 'size',
    text_bytes: 'u32',
    marker: 'size',
    marker_bytes: 'u32',
    media: 'size',
    media_count: 'u32',
  },
  wick_bias: {
    token: 'i32',
    bias: 'f32',
  },
  wick_adapter_use: {
    adapter: 'u32',
    scale: 'f32',
  },
};

/**
 * Records of include/wick.h that JavaScript reads: the offset of each field, and its size in bytes.
 * @type {Record<string, {as: string, sizeBytes: number, fields: Record<string, [at: number, sizeBytes: number]>}>}
 */
export const read = {
  wick_event: {
    as: 'event',
    sizeBytes: 80,
    fields: {
      size_bytes: [0, 4],
      request: [4, 4],
      kind: [8, 4],
      token: [12, 4],
      logprob: [16, 4],
      top_count: [20, 4],
      text_bytes: [24, 4],
      finish: [28, 2],
      stop: [30, 2],
      status: [32, 2],
      subject: [34, 2],
      tokens_prompt: [36, 4],
      tokens_cached: [40, 4],
      tokens_out: [44, 4],
      queue_ms: [48, 8],
      prefill_ms: [56, 8],
      decode_ms: [64, 8],
      ttft_ms: [72, 8],
    },
  },
  wick_logprob: { as: 'top', sizeBytes: 8, fields: { token: [0, 4], logprob: [4, 4] } },
  wick_error: {
    as: 'error',
    sizeBytes: 296,
    fields: {
      status: [0, 4],
      subject: [4, 4],
      offset_bytes: [8, 8],
      numbers: [16, 24],
      message: [40, 256],
    },
  },
};

/**
 * Calls with several results store them in `numbers` of web/exports.c, at these indexes.
 * @type {Record<string, string[]>}
 */
export const results = {
  // web_engine_counters: the allocator's counters; the number of threads that have started, that a
  // pass with one token uses, and that a micro-batch uses; then the budget, less the memory that
  // the host did not provide
  counter: [
    ...['budget_bytes', 'bytes_now', 'bytes_peak', 'calls', 'blocks_now'],
    ...['threads', 'threads_decode', 'threads_prefill', 'limit_bytes'],
  ],
  range: ['file', 'offset_bytes', 'size_bytes'],
  load: [
    ...['bytes_wanted', 'bytes_placed', 'fingerprint', 'files', 'layers_ready'],
    ...['is_directory_ready', 'is_complete'],
  ],
  array: ['address', 'count'],
  // web_request_logits
  asked: ['logits', 'vocab', 'tokens', 'count'],
  state: ['session', 'entries'],
  vectors: ['rows', 'width', 'tokens'],
  adapter: ['id', 'tensors', 'rank', 'users', 'bytes', 'is_complete'],
  // web_media_add, web_media_info
  media: ['id', 'tokens', 'rows', 'tiles', 'macs', 'rows_bytes', 'encode_bytes', 'is_ready'],
};

/** Constants of C; JavaScript has their names without the prefix. @type {Record<string, number>} */
export const constants = {
  WICK_STEP_IDLE: 0,
  WICK_STEP_PROGRESS: 1,
  WICK_STEP_WAIT_BYTES: 2,
  WICK_EVENT_TOKEN: 1,
  WICK_EVENT_PREFILL: 2,
  WICK_EVENT_DONE: 3,
  WICK_EVENT_LOGITS: 4,
  WICK_EVENT_CONTENT: 5,
  WICK_EVENT_REASONING: 6,
  WICK_EVENT_CALL: 7,
  WICK_EVENT_ARGUMENTS: 8,
  WICK_EVENT_CALL_BROKEN: 10,
  WICK_FINISH_STOP: 1,
  WICK_FINISH_LENGTH: 2,
  WICK_FINISH_ABORT: 3,
  WICK_FINISH_ERROR: 4,
  WICK_TOKENIZE_ADD_SPECIAL: 1,
  WICK_TOKENIZE_PARSE_SPECIAL: 2,
  WICK_GRAMMAR_GBNF: 1,
  WICK_GRAMMAR_JSON_SCHEMA: 2,
  WICK_GRAMMAR_REGEX: 3,
  WICK_GRAMMAR_CHOICE: 4,
  WICK_KV_F16: 0,
  WICK_KV_F32: 1,
  WICK_KV_Q8: 2,
  WICK_KV_Q4: 3,
  WICK_E_FULL: 10,
  WICK_POOLING_MODEL: 0,
  WICK_POOLING_RANK: 5,
  WEB_HELPER_STACK_BYTES: 131072,
};

/** Constants that are defined only here. @type {Record<string, number>} */
export const own = {
  // A request that is paused until its reader continues keeps its slot, so there are more slots than requests
  // that run together.
  WEB_REQUESTS_MAX: 1024,
};
