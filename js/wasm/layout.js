// js/wasm/layout.js — what C and JavaScript of a browser build both know of memory.
// `make layout` makes it of web/layout.mjs: changes go there.

// Records that are read here: their sizes, and where fields begin.
export const EVENT_BYTES = 80;
export const EVENT_SIZE_BYTES_AT = 0;
export const EVENT_REQUEST_AT = 4;
export const EVENT_KIND_AT = 8;
export const EVENT_TOKEN_AT = 12;
export const EVENT_LOGPROB_AT = 16;
export const EVENT_TOP_COUNT_AT = 20;
export const EVENT_TEXT_BYTES_AT = 24;
export const EVENT_FINISH_AT = 28;
export const EVENT_STATUS_AT = 32;
export const EVENT_SUBJECT_AT = 34;
export const EVENT_TOKENS_PROMPT_AT = 36;
export const EVENT_TOKENS_CACHED_AT = 40;
export const EVENT_TOKENS_OUT_AT = 44;
export const EVENT_QUEUE_MS_AT = 48;
export const EVENT_PREFILL_MS_AT = 56;
export const EVENT_DECODE_MS_AT = 64;
export const EVENT_TTFT_MS_AT = 72;
export const TOP_BYTES = 8;
export const TOP_TOKEN_AT = 0;
export const TOP_LOGPROB_AT = 4;
export const ERROR_BYTES = 296;
export const ERROR_STATUS_AT = 0;
export const ERROR_SUBJECT_AT = 4;
export const ERROR_OFFSET_BYTES_AT = 8;
export const ERROR_NUMBERS_AT = 16;
export const ERROR_MESSAGE_AT = 40;
export const ERROR_MESSAGE_BYTES = 256;

// Places of results.
export const COUNTER_BUDGET_BYTES = 0;
export const COUNTER_BYTES_NOW = 1;
export const COUNTER_BYTES_PEAK = 2;
export const COUNTER_CALLS = 3;
export const COUNTER_BLOCKS_NOW = 4;
export const COUNTER_THREADS = 5;
export const COUNTER_THREADS_DECODE = 6;
export const COUNTER_THREADS_PREFILL = 7;
export const COUNTER_LIMIT_BYTES = 8;
export const RANGE_FILE = 0;
export const RANGE_OFFSET_BYTES = 1;
export const RANGE_SIZE_BYTES = 2;
export const LOAD_BYTES_WANTED = 0;
export const LOAD_BYTES_PLACED = 1;
export const LOAD_FINGERPRINT = 2;
export const LOAD_FILES = 3;
export const LOAD_LAYERS_READY = 4;
export const LOAD_IS_DIRECTORY_READY = 5;
export const LOAD_IS_COMPLETE = 6;
export const ARRAY_ADDRESS = 0;
export const ARRAY_COUNT = 1;
export const STATE_SESSION = 0;
export const STATE_ENTRIES = 1;

// Numbers.
export const STEP_IDLE = 0;
export const STEP_PROGRESS = 1;
export const STEP_WAIT_BYTES = 2;
export const EVENT_TOKEN = 1;
export const EVENT_PREFILL = 2;
export const EVENT_DONE = 3;
export const FINISH_STOP = 1;
export const FINISH_LENGTH = 2;
export const FINISH_ABORT = 3;
export const FINISH_ERROR = 4;
export const TOKENIZE_ADD_SPECIAL = 1;
export const TOKENIZE_PARSE_SPECIAL = 2;
export const KV_F32 = 0;
export const KV_F16 = 1;
export const KV_Q8 = 2;
export const KV_Q4 = 3;
export const E_FULL = 10;
export const COMPLETIONS_MAX = 16;
export const PRIORITY_MIN = -100;
export const PRIORITY_MAX = 100;
export const HELPER_STACK_BYTES = 131072;
export const REQUESTS_MAX = 1024;

// Records that are filled here: 32-bit fields in the order of the struct. 1: a float, 0: a whole number.
export const configFields = {
  memoryBytesMaxLow: 0,
  memoryBytesMaxHigh: 0,
  threads: 0,
  contextTokens: 0,
  batchTokens: 0,
  kType: 0,
  vType: 0,
  directoryOnly: 0,
  metrics: 0,
  timerGrainUs: 0,
  chooseThreads: 0,
  kvTokensMax: 0,
  noPrefixCache: 0,
  swap: 0,
};
export const requestFields = {
  text: 0,
  textBytes: 0,
  tokens: 0,
  tokenCount: 0,
  tokenizeFlags: 0,
  maxTokens: 0,
  temperature: 1,
  topK: 0,
  topP: 1,
  minP: 1,
  repeatPenalty: 1,
  frequencyPenalty: 1,
  presencePenalty: 1,
  penaltyLast: 0,
  seedLow: 0,
  seedHigh: 0,
  bias: 0,
  biasCount: 0,
  logprob: 0,
  logprobs: 0,
  stops: 0,
  stopBytes: 0,
  stopCount: 0,
  ignoreEnd: 0,
  printSpecial: 0,
  session: 0,
  prefillOnly: 0,
  dropFirst: 0,
  dropLast: 0,
  priority: 0,
  completions: 0,
  speculation: 0,
  forced: 0,
  forcedCount: 0,
  salt: 0,
  saltBytes: 0,
};
export const biasFields = {
  token: 0,
  bias: 1,
};
