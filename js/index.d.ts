// The public types of wick-llm, for TypeScript 5.7 or later.

declare global {
  /** As `esnext.disposable` declares it, for projects without that library. */
  interface SymbolConstructor {
    readonly asyncDispose: unique symbol;
  }
}

/** Bytes of a model: an address, a file, a Blob, bytes, or a stream. Exactly one of the five. */
export interface ModelSource {
  /**
   * The address of a GGUF file, relative to the page. Of a split model, the address of any file (the
   * others are found by -00001-of-0000N.gguf) or all of them.
   */
  url?: string | URL | (string | URL)[];
  /** A File of the user's, or a path (Node, Deno, Bun). Arrays are the files of a split model. */
  file?: Blob | string | URL | (Blob | string | URL)[];
  blob?: Blob | Blob[];
  /** They are copied. */
  bytes?: ArrayBuffer | ArrayBufferView<ArrayBuffer>;
  /** Read once, from the beginning to the end; let go when loading is given up. No split models. */
  stream?: ReadableStream<Uint8Array> | AsyncIterable<Uint8Array> | Response;
}

export interface Progress {
  /** Bytes of the model that have arrived. */
  loaded: number;
  /** Known once the file's directory was read. */
  total: number | undefined;
  bytesPerSecond: number | undefined;
  secondsLeft: number | undefined;
  /** `retrying`: the connection broke and is being resumed. */
  /** `waiting`: another tab has the model or downloads it, and does not answer; this one takes over within 20 seconds. */
  phase: 'loading' | 'retrying' | 'waiting' | 'ready';
  /** With `retrying`: the time to the next try, which may be the one that the server requests. */
  retrySeconds?: number;
}

export type KvType = 'f32' | 'f16' | 'q8' | 'q4';
/** Where tables lie whose rows are only looked up (`EngineOptions.tables`). */
export type TablesPlace = 'auto' | 'inside' | 'outside';

/** A web Worker, or one of node:worker_threads. */
export interface WorkerLike {
  postMessage(message: unknown): void;
  terminate(): unknown;
}

/** One of a model's sources, and no other. */
export type OneSource = {
  [Name in keyof ModelSource]-?: Required<Pick<ModelSource, Name>> & {
    [Other in Exclude<keyof ModelSource, Name>]?: undefined;
  };
}[keyof ModelSource];

/** A model by its name, in place of a source. */
export type NamedModel = { [Name in keyof ModelSource]?: undefined } & {
  /**
   * On a hub (`hf:owner/repo/file.gguf`, `owner/repo:Q4_K_M`), or of a model that `wick-llm/models` keeps: its
   * fingerprint, its SHA-256, its id or the name of its file.
   */
  model: string;
};

/** The options of createEngine: where the model is, and settings. */
export type EngineOptions = EngineSettings & ((OneSource & { model?: undefined }) | NamedModel);

/** The options of `new Headers(...)`. */
export type HeaderFields = NonNullable<ConstructorParameters<typeof Headers>[0]>;

/** `WebAssembly.Module`, where the types of the host have it. */
export type WasmModule = typeof globalThis extends {
  WebAssembly: { Module: { prototype: infer Module } };
}
  ? Module
  : object;

export interface EngineSettings {
  /** Sent with every request for the model. */
  headers?: HeaderFields;
  /** Used instead of the worker's own: then the page fetches and passes the bytes on. */
  fetch?: typeof globalThis.fetch;
  /** How often in a row a broken download is resumed; 5 by default. */
  retries?: number;
  /**
   * A connection that delivers no byte for this many milliseconds is considered broken; 30000 by
   * default. 0 waits for ever.
   */
  stallMs?: number;
  /**
   * Whether a model that has an address is kept for the next visit, and taken from what is kept. True by
   * default for `model`, and in pages unless `fetch` or `directoryOnly` is given; otherwise false. 'only' asks no server: a model that is
   * not kept is NOT_FOUND. `wick-llm/models` is the store.
   */
  cache?: boolean | 'only';
  /** Where `model` is looked for: by default https://huggingface.co, without a token. */
  hub?: { endpoint?: string; token?: string };
  /** Ends the loading; createEngine then rejects with the signal's reason, an AbortError. */
  signal?: AbortSignal | null;
  /** Called at most ten times a second. */
  onProgress?: (progress: Progress) => void;
  /**
   * With the engine's own. By default half of the processors, 1 where memory cannot be shared; then
   * the first passes measure whether all, half or one of them are fastest (`info().threadsUsed`).
   * 1 to 64 may be requested, and all of them are used; above twice the number of processors (8 if
   * there are fewer than four) only that many are started, and a warning is logged. They come up
   * when the engine is ready: `info().threads` counts those that are there.
   */
  threads?: number;
  /** Tokens of prompt and answer together; by default the model's, at most 4096. */
  contextSize?: number;
  /** Tokens that are computed together while the prompt is read, up to 512; 128 by default. */
  batchSize?: number;
  /** Type of the cached keys and values, or of each; `f16` by default. */
  kvType?: KvType | { k?: KvType; v?: KvType };
  /**
   * Tokens whose keys and values all requests, sessions and the prefix cache may hold together; four
   * contexts by default. Requests that find no room wait.
   */
  kvTokens?: number;
  /** Bytes of working memory that compiling one grammar may take; 64 MiB by default. */
  grammarMemory?: number;
  /** Steps that compiling one grammar may take; 30 million, about 2 s, by default. */
  grammarSteps?: number;
  /**
   * Requests that may run and wait together, each of `n` completions counted; one more is refused
   * (QUEUE_FULL) at once. By default there is no limit.
   */
  queueLimit?: number;
  /**
   * A smaller model of the same vocabulary: it proposes what may follow, several tokens at once are
   * checked in one pass, and the text stays the same. It is loaded after the model, into the same
   * memory; a url, a file or a Blob. Another vocabulary is a MISMATCH.
   */
  draft?: Omit<ModelSource, 'bytes' | 'stream'>;
  /**
   * If pages (`kvTokens`) run out: those of a request that gives way are kept in a temporary file
   * (OPFS in browsers) and taken back, when that is measured to cost less than to read its tokens
   * again. In Node a string is the folder to keep it in; `always` does so whatever it costs. Without
   * a file there is no swapping. False by default.
   */
  swap?: boolean | string | { folder?: string; always?: boolean };
  /** Keeps what prompts began with, so that it is read once; true by default. */
  prefixCache?: boolean;
  /**
   * If the file has a layer that predicts the token after the next (multi-token prediction, as
   * files of Qwen3.5 may have), it proposes what may follow; true by default. False leaves the layer
   * out: it takes no memory then.
   */
  predictor?: boolean;
  /**
   * Bytes for all together; a model that needs more is refused before its weights are fetched. Never
   * more than WebAssembly's memory may grow to, which is also the default: 4 GiB, and 2, 1 or half of
   * one where the host refuses to reserve so much, without what the module itself takes.
   */
  memoryLimit?: number;
  /**
   * The place of per-layer embeddings (Gemma 3n and 4), and of token embeddings if the output has
   * its own matrix: only rows of them are looked up. `inside`: in memory. `outside`: in the model's
   * file, where each pass reads the rows of its tokens; so a model runs where only its layers fit,
   * with the same answers. The file must be one that a worker can read at once: a path in Node, a
   * Blob in a browser, or a kept model. `auto`, the default: outside where the model would not fit
   * otherwise.
   */
  tables?: TablesPlace;
  /**
   * Answers as soon as metadata and tokenizer are there, while the weights are still arriving. A
   * generation then begins to read its prompt with the layers that have come, and gives the same text.
   * If the download fails later, every call gets its error; close() ends it.
   */
  eager?: boolean;
  /**
   * Tabs (and workers) of one origin that give the same name, model and options share one engine: the
   * model is loaded once, by one of them, and when that one goes by the next. `info().sharing`
   * tells who has it; where there are no Web Locks or no BroadcastChannel, each has its own.
   */
  shared?: string;
  /**
   * With `shared`: called when the tab that had the engine has gone and this one has loaded the model in
   * its place. The text that engine had read is gone, too: here `engine.loadState` can bring back what
   * `engine.saveState` has kept before.
   */
  onLead?: () => void;
  /** Times the ops of the forward pass, for metrics(). */
  metrics?: boolean;
  /** Reads metadata and tokenizer alone: for inspect() and tokenize(), not for generate(). */
  directoryOnly?: boolean;
  /**
   * In place of the file's `tokenizer.ggml.pre`, for files whose name is missing, wrong or not known
   * here: `'qwen2'`, `'llama-bpe'`, `'gpt-2'` and the other names of llama.cpp.
   */
  preTokenizer?: string;
  /**
   * Jinja text that replaces the model's own template, or a name: `'chatml'`, NAME of the model's
   * `tokenizer.chat_template.NAME`, or `'default'`. Without it, conversations with tools use the model's template
   * `tool_use` if there is one.
   */
  chatTemplate?: 'chatml' | (string & {});
  /**
   * The worker's file where a bundler has lost it (`wick-llm/worker`), or a function that starts
   * one worker a call. A single Worker runs without threads.
   */
  worker?: string | URL | WorkerLike | (() => WorkerLike);
  /** The engine's WebAssembly: a file, or a folder (ending in `/`) that holds all builds. */
  wasm?: string | URL | Response | WasmModule | ArrayBuffer | ArrayBufferView<ArrayBuffer>;
  /**
   * The second module of the build that `wasm` is (`wick-…-grammar.wasm`). The first request with a grammar or tools
   * loads it. If `wasm` is an address, it is looked for next to that.
   */
  grammarWasm?: string | URL | Response | WasmModule | ArrayBuffer | ArrayBufferView<ArrayBuffer>;
  /**
   * The module of extras of the build that `wasm` is (`wick-…-extras.wasm`): models of rarer families, types and
   * tokenizers, keys and values of 8 and 4 bits, swapping and saved state load it. If `wasm` is an address,
   * it is looked for next to that.
   */
  extrasWasm?: string | URL | Response | WasmModule | ArrayBuffer | ArrayBufferView<ArrayBuffer>;
}

/** Starts a worker, loads a model into it, and answers when it is ready. */
export function createEngine(options: EngineOptions): Promise<Engine>;

/** The samplers by llama.cpp's names. */
export type SamplerName =
  | 'penalties'
  | 'dry'
  | 'top_n_sigma'
  | 'top_k'
  | 'typ_p'
  | 'top_p'
  | 'min_p'
  | 'xtc'
  | 'temperature'
  | 'adaptive_p';

/** llama.cpp's samplers beyond the usual ones, all off by default. */
export interface SamplerOptions {
  /**
   * The samplers in their order, at most 16; what is not among them is off. By default `penalties`, `dry`,
   * `top_n_sigma`, `top_k`, `typ_p`, `top_p`, `min_p`, `xtc`, `temperature`, `adaptive_p`. Regardless of
   * its place, `adaptive_p` chooses the token at the end.
   */
  samplers?: SamplerName[] | null;
  /** Locally typical sampling: tokens whose surprise is near the entropy, until they make up this; 1 is off. */
  typicalP?: number;
  /** Keeps logits at most this many standard deviations below the largest; 0 and less is off. */
  topNSigma?: number;
  /** With this probability, of the tokens of at least xtcThreshold only the least stays; 0 is off. */
  xtcProbability?: number;
  /** 0.1 by default; over 0.5 is off. */
  xtcThreshold?: number;
  /** The temperature goes from `temperature` less this to `temperature` and this, with the entropy; 0 is off. */
  dynatempRange?: number;
  /** Of the entropy, relative to the most that it could be; 1 by default. */
  dynatempExponent?: number;
  /**
   * DRY: a token that would continue a repetition of n tokens, n at least dryAllowedLength, loses
   * dryMultiplier * dryBase ** (n - dryAllowedLength). 0 is off.
   */
  dryMultiplier?: number;
  /** 1.75 by default. */
  dryBase?: number;
  /** 2 by default. */
  dryAllowedLength?: number;
  /** How many tokens it looks back at; -1, the default: the whole context, 0: off. */
  dryPenaltyLast?: number;
  /** No repetition reaches over one of these; a line's end, `:`, `"` and `*` by default. At most 16, of 40 bytes. */
  drySequenceBreakers?: string[] | null;
  /** Mirostat 1 or 2 chooses; of the other samplers only the temperature is applied then. 0 is off. */
  mirostat?: 0 | 1 | 2;
  /** The surprise that it keeps, in bits; 5 by default. */
  mirostatTau?: number;
  /** How fast it learns; 0.1 by default. */
  mirostatEta?: number;
  /** adaptive-p prefers tokens of about this probability; less than 0 is off. */
  adaptiveTarget?: number;
  /** Of the mean of the last tokens' probabilities, 0 to 0.99; 0.9 by default. */
  adaptiveDecay?: number;
}

export interface SamplingOptions extends SamplerOptions {
  /** 0 takes the likeliest token always; 0.8 by default. */
  temperature?: number;
  /** 40 by default; 0 and -1 switch it off. */
  topK?: number;
  /** 0.95 by default; 1 switches it off. */
  topP?: number;
  /** 0.05 by default; 0 switches it off. */
  minP?: number;
  /** 1 (off) by default. */
  repeatPenalty?: number;
  frequencyPenalty?: number;
  presencePenalty?: number;
  /** How many tokens the penalties look back at; 64 by default, 0: none, -1: the whole context. */
  penaltyLast?: number;
  /** The same seed gives the same text, on every host. -1: a random one, as without. */
  seed?: number | bigint | null;
  /** Added to the logits of tokens, by id; -100 forbids one. */
  logitBias?: Record<string | number, number> | Map<number, number>;
}

/** Constraints of the text: at most one of these. Only tokens that it allows are sampled, and the text ends where it does. */
export interface GrammarOptions {
  /** GBNF as llama.cpp reads it, from its rule `root`. */
  grammar?: string | null;
  /** A JSON schema of draft 4, 6, 7, 2019-09 or 2020-12, or its JSON. A constraint that cannot be honoured is refused by name. */
  jsonSchema?: Record<string, unknown> | boolean | string | null;
  /** The whole text matches this expression (ECMA-262 with the flag u). */
  regex?: RegExp | string | null;
  /** The text is one of these. */
  choices?: string[] | null;
}

/**
 * Called for each token with a copy of the logits, of the whole vocabulary, and the ids of all tokens so far, of which
 * there are `position`: the prompt's and those of the text. The token is drawn from what it returns, a Float32Array of
 * the same length, or from the copy as it left it; -Infinity forbids a token.
 */
export type LogitsHook =
  | ((logits: Float32Array, context: LogitsContext) => Float32Array)
  | ((logits: Float32Array, context: LogitsContext) => void);

export interface LogitsContext {
  position: number;
  tokens: Int32Array;
}

export interface GenerateOptions extends SamplingOptions, GrammarOptions {
  /**
   * How the text begins in the prompt already, with one of `jsonSchema`, `grammar`, `regex` and `choices`: what is begun and
   * the answer are then one text that it allows. A prefix that no text begins with is refused (ARG). UTF-8 bytes may end
   * inside a character, as a text that `maxTokens` ended may.
   */
  begun?: string | Uint8Array | null;
  /** Adapters (engine.adapters), several at once; their order does not matter. */
  adapters?: AdapterUse[] | null;
  /** At least 1; until the context is full by default. */
  maxTokens?: number;
  /** The text ends before any of these. */
  stop?: string | string[] | null;
  signal?: AbortSignal | null;
  /** Milliseconds from the start of the request to its end; then it rejects with a TimeoutError. */
  timeout?: number | null;
  /**
   * The prompt may end inside of what the tokenizer would make one token: its last token is sampled again with what
   * follows. Of prompts that are strings, without a grammar.
   */
  healing?: boolean;
  /**
   * At most this many tokens of reasoning; then the mark that ends it follows, and the answer. The
   * marks are those of the model's chat template, and the prompt may have opened the reasoning. -1,
   * the default: any number.
   */
  thinkingBudgetTokens?: number;
  /**
   * For experiments, and slow: all logits of each token go to this thread and back. Bias, grammar and samplers come
   * after it. Not where tabs share the engine.
   */
  logitsHook?: LogitsHook | null;
  /** Continues after an end token, for measurements. */
  ignoreEnd?: boolean;
  /** Control tokens are part of the text. */
  printSpecial?: boolean;
  /**
   * From -100 to 100, 0 by default: higher ones go first, and lower ones give their pages up to them
   * when there are too few. A request that has waited for 512 passes goes before all later ones.
   */
  priority?: number;
  /**
   * Whether what may follow is proposed (from what followed the same words earlier in the text) and
   * checked several tokens at once. The text is the same; it is skipped automatically where it does
   * not pay, unless it is 'always', for measurements. True by default.
   */
  speculation?: boolean | 'always';
  /**
   * The owner of the prompt. Text that was read for one salt is not found by requests with another
   * salt or without one: `cachedTokens` reveals nothing about other users' prompts. A session has
   * its own.
   */
  salt?: string | null;
  /**
   * Token ids that come out, whatever the logits say, for measurements with random weights, whose own
   * text would repeat itself.
   */
  forced?: number[];
  onPrefill?: (progress: { done: number; total: number }) => void;
  /** Called for each token; its text may come with a later one (half a character, a stop string). */
  onToken?: (token: TokenDetail) => void;
  /** How many alternatives onToken receives, up to 20; 0: only the token's own logprob. */
  logprobs?: number;
  /**
   * The logprobs are of the distribution that the samplers leave, which the token is drawn from. False, the default:
   * of the model's own.
   */
  logprobsAfter?: boolean;
}

export interface TokenAlternative {
  token: number;
  /** As in the vocabulary; bytes that are not whole characters become U+FFFD. */
  text: string;
  bytes: number[];
  logprob: number;
}

export interface TokenDetail extends Omit<TokenAlternative, 'logprob'> {
  /** Only if `logprobs` was requested. */
  logprob?: number;
  top: TokenAlternative[];
}

export interface Timings {
  queueMs: number;
  prefillMs: number;
  decodeMs: number;
  /** From the call to the first token. */
  ttftMs: number;
  prefillTokensPerSecond: number;
  decodeTokensPerSecond: number;
}

export interface GenerationResult {
  /**
   * `stop`: an end token or a stop string; `length`: maxTokens or the context's end; `abort`: its signal
   * aborted, or its reader left. Then `usage` counts the prompt's tokens, if reading it had begun, and the
   * pieces of text that had come, and the other numbers are 0.
   */
  finishReason: 'stop' | 'length' | 'abort';
  usage: { promptTokens: number; completionTokens: number; cachedTokens: number };
  timings: Timings;
}

/**
 * A text that is being written. It starts when it is read; leaving the loop cancels it. Read once.
 */
export interface Generation extends AsyncIterable<string> {
  [Symbol.asyncIterator](): AsyncGenerator<string, void, void>;
  /** All of it, when it has ended. */
  text(): Promise<string>;
  /** Undefined until it has ended, and after an error. It never waits. */
  readonly result: GenerationResult | undefined;
}

// ---- sessions ----

export interface SaveOptions {
  to?: string | undefined;
  /**
   * Types of the saved keys and values. With coarser ones than the engine's a state is smaller, and what
   * they lose is lost. An engine of the same model and of this engine's own `kvType` loads it. By default the
   * engine's.
   */
  kvType?: KvType | { k?: KvType; v?: KvType } | undefined;
}

/**
 * A text that continues from call to call: tokens that were read once are not read again. One
 * request at a time (another is refused with BUSY); sessions run side by side.
 */
export interface Session {
  /** Continues with `prompt` and writes an answer; both stay in the session (an end token does not). */
  prompt(prompt: string | ArrayLike<number>, options?: Omit<GenerateOptions, 'salt'>): Generation;
  /** Reads text without an answer. Tokens: of the whole session, and those that it had before. */
  append(
    text: string | ArrayLike<number>,
    options?: Pick<GenerateOptions, 'signal' | 'onPrefill'>,
  ): Promise<{ tokens: number; cachedTokens: number }>;
  /** A session with the same text. It shares what was read: nothing is copied until one continues. */
  fork(): Promise<Session>;
  /** Keeps the first `tokens`. */
  truncate(tokens: number): Promise<void>;
  /** Drops the tokens from `first` to before `last`; what follows is not read again. */
  drop(first: number, last: number): Promise<void>;
  tokens(): Promise<number[]>;
  /** With a name, or `to`, also kept there: a file's path (Node, Deno), a name (the origin's private files). */
  save(to?: string | SaveOptions): Promise<Uint8Array<ArrayBuffer>>;
  /** Frees its pages. Closing twice is fine, and so is closing after the engine. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** With a grammar the beams are texts of it, and logprobs are those among the tokens that it allows. */
export interface BeamSearchOptions extends GrammarOptions {
  /** Continuations that are followed at the same time, 1 to 16; 4 by default. */
  width?: number;
  /** 64 by default. */
  maxTokens?: number;
  /** The sum of logprobs is divided by tokens ** lengthPenalty; 1 by default: their mean. */
  lengthPenalty?: number;
  signal?: AbortSignal | null;
  priority?: number;
  salt?: string | null;
}

export interface Beam {
  text: string;
  tokens: number[];
  /** The sum of the tokens' logprobs. */
  logprob: number;
  finishReason: 'stop' | 'length';
}

/** Counters since the engine began. */
export interface EngineStats {
  requests: {
    running: number;
    waiting: number;
    /** Of both: those whose readers do not keep up. */
    paused: number;
    runningMax: number;
    waitingMax: number;
    submitted: number;
    refused: number;
    stopped: number;
    length: number;
    aborted: number;
    failed: number;
    /** How often one gave its pages up for others, to continue later. */
    preempted: number;
    /** Of those, whose pages went to the swap file; how many came back from there. */
    swappedOut: number;
    swappedIn: number;
    /** Refused or damaged by the file: their tokens were read again instead. */
    swapFailed: number;
  };
  tokens: {
    prompt: number;
    cached: number;
    /** Read again after their pages had been given up. */
    recomputed: number;
    out: number;
    /** By speculation. */
    proposed: number;
    accepted: number;
  };
  /**
   * The recent time of a pass in us, of one request's 1, 2, ... 16 tokens (0: not measured):
   * whether speculation pays depends on it.
   */
  passUs: number[];
  /** Passes through the model, and the tokens in them. */
  passes: number;
  rows: number;
  /**
   * How often the draft model could propose nothing because it could not continue: its pages or
   * memory ran out, its context was at its end, or its values were not finite. The text is the same
   * without it, only slower. 0 without a draft model.
   */
  draftFailed: number;
  kv: KvStats;
}

export interface KvStats {
  pageTokens: number;
  pageBytes: number;
  kType: KvType;
  vType: KvType;
  pages: {
    /** That there are now. */
    all: number;
    free: number;
    /** Free, only cached, or not made yet: what requests can still have. */
    available: number;
    /** That more than one session, request or the prefix cache has. */
    shared: number;
    /** That only the prefix cache has: they go when others need them. */
    cached: number;
    usedMax: number;
  };
  /** Of all groups, and of recurrent states. */
  bytes: { used: number; capacity: number };
  /**
   * Layers whose keys and values have one shape and one sliding window (`windowTokens`, 0: they look back without an
   * end). `pageBytes`, `pages` and `map` next to this are those of the pool that keeps all positions.
   */
  groups: {
    layers: number;
    windowTokens: number;
    pageBytes: number;
    pages: { all: number; free: number };
    bytes: { used: number; capacity: number };
  }[];
  /** Recurrent states, one a slot. Null: the model has no recurrent layers. */
  states: { stateBytes: number; slots: number; free: number; cached: number } | null;
  sequences: number;
  sessions: number;
  forks: number;
  /** Pages that were copied because they were shared when somebody wrote. */
  cowCopies: number;
  pagesAllocated: number;
  pagesFreed: number;
  nonfiniteValues: number;
  fragmentation: {
    holes: number;
    largestFreeRegion: number;
    wastedCapacity: number;
    ratio: number;
    avgTokensPerPage: number;
  };
  prefix: {
    entries: number;
    capacity: number;
    hits: number;
    misses: number;
    hitRatio: number;
    tokensSaved: number;
    evictions: number;
    pagesHeld: number;
  } | null;
  requests: { running: number; waiting: number };
  /** A letter a page: `.` free, `p` private, `s` shared, `c` only cached. */
  map?: string;
}

// ---- chat, in OpenAI's shape ----

export interface ChatTextPart {
  type: 'text';
  text: string;
}

/** Parts that OpenAI's types have, so that its messages are of these types; they are refused with UNSUPPORTED. */
export interface ChatOtherPart {
  type: 'image_url' | 'input_audio' | 'file' | 'refusal';
}

export interface ChatMessage {
  role: 'system' | 'user' | 'assistant' | 'tool' | (string & {});
  /** A message with `tool_calls` needs none. */
  content?: string | ChatTextPart[] | null;
  name?: string;
  /** The assistant's calls, as in its message. */
  tool_calls?: ChatToolCall[] | null;
  /** Which call the result of a tool answers. */
  tool_call_id?: string;
  /** For templates that write the reasoning of earlier turns. */
  reasoning_content?: string | null;
  /** In the last message, of the assistant: the reply begins with its content, and is what follows that. */
  prefix?: boolean;
}

/** The fields of a request: all that OpenAI's types allow. Unsupported ones are refused. */
export interface ChatMessageParam extends Omit<ChatMessage, 'content' | 'tool_calls'> {
  content?: string | (ChatTextPart | ChatOtherPart)[] | null;
  tool_calls?: (ChatToolCall | ChatCustomTool)[] | null;
}

/** The answer is JSON: any object, or what the schema describes (GrammarOptions.jsonSchema). */
export type ResponseFormat =
  | { type: 'text' }
  | { type: 'json_object'; schema?: object }
  | {
      type: 'json_schema';
      /** `schema` is always obeyed; the others have no effect. */
      json_schema: {
        name?: string;
        description?: string;
        /** Needed. */
        schema?: Record<string, unknown>;
        strict?: boolean | null;
      };
    };

export interface ChatCompletionRequest {
  messages: ChatMessageParam[];
  /** Accepted and ignored: an engine has one model. */
  model?: string;
  stream?: boolean | null;
  stream_options?: { include_usage?: boolean } | null;
  max_tokens?: number | null;
  max_completion_tokens?: number | null;
  temperature?: number | null;
  top_p?: number | null;
  top_k?: number | null;
  min_p?: number | null;
  repeat_penalty?: number | null;
  /** Choices, 1 to 16; the prompt is read once for all of them. */
  n?: number | null;
  /** As GenerateOptions'. */
  adapters?: AdapterUse[] | null;
  /** GenerateOptions says what these three do. */
  priority?: number | null;
  speculation?: boolean | 'always' | null;
  salt?: string | null;
  frequency_penalty?: number | null;
  presence_penalty?: number | null;
  seed?: number | bigint | null;
  stop?: string | string[] | null;
  logit_bias?: Record<string | number, number> | null;
  logprobs?: boolean | null;
  /** Alternatives of each token, up to 20; needs `logprobs`. */
  top_logprobs?: number | null;
  /** Any other type is refused with UNSUPPORTED. */
  response_format?: ResponseFormat | null;
  /** GrammarOptions says what these three do; none of them goes with a response_format. */
  grammar?: string | null;
  regex?: RegExp | string | null;
  choices?: string[] | null;
  /**
   * Becomes this conversation and its reply: what it has in common with the prompt is not read again, the rest of it is
   * dropped.
   */
  session?: Session | null;
  /** From here on as llama.cpp's server; SamplerOptions and SamplingOptions say what they mean. */
  samplers?: SamplerName[] | null;
  repeat_last_n?: number | null;
  typical_p?: number | null;
  top_n_sigma?: number | null;
  xtc_probability?: number | null;
  xtc_threshold?: number | null;
  dynatemp_range?: number | null;
  dynatemp_exponent?: number | null;
  dry_multiplier?: number | null;
  dry_base?: number | null;
  dry_allowed_length?: number | null;
  dry_penalty_last_n?: number | null;
  dry_sequence_breakers?: string[] | null;
  mirostat?: 0 | 1 | 2 | null;
  mirostat_tau?: number | null;
  mirostat_eta?: number | null;
  adaptive_target?: number | null;
  adaptive_decay?: number | null;
  /** The logprobs are of the distribution after the samplers. */
  post_sampling_probs?: boolean | null;
  /** The tools that the model may call. The template tells it of them, and its calls come as `tool_calls`. */
  tools?: (ChatTool | ChatCustomTool)[] | null;
  /**
   * `auto`, the default: the model calls tools or not. `none`: they are hidden from it. `required`,
   * or a name (`{type: 'function', function: {name}}`): it calls at least one, or this one.
   * Arguments always satisfy the tool's `parameters`; a schema that cannot be honoured is refused
   * with UNSUPPORTED, or with `auto` not enforced.
   */
  tool_choice?: 'auto' | 'none' | 'required' | object | null;
  /** False: one call at most. */
  parallel_tool_calls?: boolean | null;
  /** Variables for the chat template, such as `enable_thinking`. */
  chat_template_kwargs?: Record<string, unknown>;
  /**
   * At most this many tokens of reasoning; then the mark that ends it follows as if the model had
   * written it, and the answer. -1, the default: any number. Nothing changes where the template has
   * no marks of reasoning.
   */
  thinking_budget_tokens?: number | null;
  /**
   * How much the model should reason: `enable_thinking` and `reasoning_effort` of its template, unless
   * `chat_template_kwargs` has them.
   */
  reasoning_effort?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max' | null;
  /** As in GenerateOptions. */
  logitsHook?: LogitsHook | null;
  /**
   * Control tokens such as `<|im_end|>` that stand in messages are control tokens. False, the default: they are text,
   * so nothing that a stranger has typed ends a message or begins one.
   */
  parseSpecial?: boolean | null;
  signal?: AbortSignal | null;
  onPrefill?: (progress: { done: number; total: number }) => void;
  /** OpenAI's own from here on: accepted, and without effect. */
  user?: string;
  store?: boolean | null;
  metadata?: Record<string, string> | null;
  service_tier?: string | null;
  prediction?: object | null;
  verbosity?: string | null;
  safety_identifier?: string | null;
  prompt_cache_key?: string | null;
  prompt_cache_retention?: string | null;
}

export interface ChatTool {
  type: 'function';
  function: { name: string; description?: string; parameters?: object; strict?: boolean | null };
}

/** OpenAI's, which no model here has; refused with UNSUPPORTED or ARG. */
export interface ChatCustomTool {
  id?: string;
  type: 'custom';
  custom: object;
}

export interface ChatToolCall {
  id: string;
  type: 'function';
  /** JSON of an object, where the reply was not cut off (`finish_reason: 'length'`). */
  function: { name: string; arguments: string };
}

export interface TokenLogprob {
  token: string;
  logprob: number;
  /** A token need not be whole characters. */
  bytes: number[];
}

export interface ChatLogprobs {
  content: (TokenLogprob & { top_logprobs: TokenLogprob[] })[];
  refusal: null;
}

export interface ChatUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number };
}

export interface ChatCompletion {
  id: string;
  object: 'chat.completion';
  created: number;
  model: string;
  choices: {
    index: number;
    message: {
      role: 'assistant';
      content: string;
      refusal: null;
      /** The model's reasoning before the answer, if it marks it. */
      reasoning_content?: string;
      tool_calls?: ChatToolCall[];
    };
    logprobs: ChatLogprobs | null;
    finish_reason: 'stop' | 'length' | 'tool_calls';
  }[];
  usage: ChatUsage;
  timings: Timings;
}

export interface ChatCompletionChunk {
  id: string;
  object: 'chat.completion.chunk';
  created: number;
  model: string;
  /** Empty in the chunk that `include_usage` adds at the end. */
  choices: {
    index: number;
    delta: {
      role?: 'assistant';
      content?: string;
      reasoning_content?: string;
      /** The first of a call has its id and name; the arguments come in pieces. */
      tool_calls?: {
        index: number;
        id?: string;
        type?: 'function';
        function: { name?: string; arguments: string };
      }[];
    };
    logprobs: ChatLogprobs | null;
    finish_reason: 'stop' | 'length' | 'tool_calls' | null;
  }[];
  usage?: ChatUsage;
  /** In the chunk that has the finish_reason. */
  timings?: Timings;
}

/** Leaving the loop cancels the request. */
export interface ChatStream extends AsyncIterable<ChatCompletionChunk> {
  /** `abort()` ends the stream with an AbortError. */
  readonly controller: AbortController;
}

export interface ChatCallOptions {
  signal?: AbortSignal | null;
  /** As in GenerateOptions. */
  timeout?: number | null;
}

/** The interface of standardschema.dev, with the JSON schema that some libraries tell. */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
    // biome-ignore lint/suspicious/noExplicitAny: a record of JSON schemas' targets, which libraries type in their own way
    readonly jsonSchema?: { readonly input: (options: { target: any }) => Record<string, unknown> };
  };
}

type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        readonly message: string;
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
      }[];
    };

/** The parsed answer: a Standard Schema's output, or what OpenAI's helper parses. */
export type Parsed<Format> = Format extends { '~standard': { types?: infer Types } }
  ? NonNullable<Types> extends { output: infer Output }
    ? Output
    : unknown
  : Format extends { $parseRaw(text: string): infer Output }
    ? Output
    : unknown;

export type ParseRequest<Format> = Omit<ChatCompletionRequest, 'response_format' | 'stream'> & {
  response_format: Format;
  stream?: false | null;
};

export type ParsedCompletion<Output> = Omit<ChatCompletion, 'choices'> & {
  choices: (Omit<ChatCompletion['choices'][0], 'message'> & {
    /** Null where the model called a tool. */
    message: ChatCompletion['choices'][0]['message'] & { parsed: Output | null };
  })[];
};

/** Leaving its loop, and `abort()`, cancel the request. */
export interface ChatCompletionStream extends AsyncIterable<ChatCompletionChunk> {
  readonly controller: AbortController;
  on(
    event: 'chunk',
    listener: (chunk: ChatCompletionChunk, snapshot: ChatCompletion) => void,
  ): this;
  on(event: 'content', listener: (delta: string, snapshot: string) => void): this;
  on(event: 'finalChatCompletion', listener: (completion: ChatCompletion) => void): this;
  on(event: 'error' | 'abort', listener: (error: unknown) => void): this;
  on(event: 'end', listener: () => void): this;
  abort(): void;
  done(): Promise<void>;
  finalChatCompletion(): Promise<ChatCompletion>;
  finalMessage(): Promise<ChatCompletion['choices'][0]['message']>;
  finalContent(): Promise<string>;
  totalUsage(): Promise<ChatUsage>;
}

export interface ChatCompletions {
  create(
    body: ChatCompletionRequest & { stream: true },
    options?: ChatCallOptions,
  ): Promise<ChatStream>;
  create(
    body: ChatCompletionRequest & { stream?: false | null },
    options?: ChatCallOptions,
  ): Promise<ChatCompletion>;
  create(
    body: ChatCompletionRequest,
    options?: ChatCallOptions,
  ): Promise<ChatCompletion | ChatStream>;
  /** Reads automatically and emits events, like openai-node's helper of this name. */
  stream(
    body: Omit<ChatCompletionRequest, 'stream'> & { stream?: true },
    options?: ChatCallOptions,
  ): ChatCompletionStream;
  /**
   * An answer that is JSON of a schema: a Standard Schema that tells its JSON schema (zod 4.2 and others), or a
   * response_format, also of OpenAI's helpers. Rejects with INCOMPLETE where the answer was cut off, and with
   * INVALID where the schema requires more than its JSON schema says.
   */
  parse<Format>(
    body: ParseRequest<Format>,
    options?: ChatCallOptions,
  ): Promise<ParsedCompletion<Parsed<Format>>>;
}

// ---- a chat: messages and a session that follows them ----

/** Fields of ChatCompletionRequest for all turns, and how the conversation begins. */
export interface ChatOptions
  extends Omit<
    ChatCompletionRequest,
    'messages' | 'session' | 'stream' | 'stream_options' | 'n' | 'signal' | 'onPrefill'
  > {
  /** The first message. */
  system?: string;
  /** The conversation so far; not with `system`. */
  messages?: ChatMessage[];
}

/** For one turn, before what createChat was given. */
export interface ChatTurnOptions
  extends Omit<ChatOptions, 'system' | 'messages' | 'salt'>,
    ChatCallOptions {
  onPrefill?: (progress: { done: number; total: number }) => void;
}

export interface ChatReplyResult {
  /** As in the history. */
  message: ChatMessage;
  finishReason: 'stop' | 'length' | 'tool_calls' | 'abort';
  /** `cachedTokens`: what the chat had read before. */
  usage: { promptTokens: number; completionTokens: number; cachedTokens: number };
  /** Undefined after an abort. */
  timings: Timings | undefined;
}

/**
 * A turn's answer. It starts when it is read, once, in one of these ways. With its end the turn is in the history; one
 * that is left or aborted stays as far as it came; after an error, or where nothing came, the history is as before.
 */
export interface ChatReply extends AsyncIterable<string> {
  /** The content as it comes. */
  [Symbol.asyncIterator](): AsyncGenerator<string, void, void>;
  /** As chat.completions streams it, with reasoning and calls of tools. */
  chunks(): AsyncGenerator<ChatCompletionChunk, void, void>;
  text(): Promise<string>;
  message(): Promise<ChatMessage>;
  /** Undefined until it has ended, and after an error. */
  readonly result: ChatReplyResult | undefined;
}

export interface Chat {
  /**
   * Says something and answers: a user's text, a message, several (the results of tools); without
   * content it answers the current conversation. One turn at a time (another is refused with BUSY).
   */
  send(content?: string | ChatMessage | ChatMessage[], options?: ChatTurnOptions): ChatReply;
  /** A copy. */
  readonly history: ChatMessage[];
  /** Replaces the content of a message, or, without content, takes the message away; what follows is dropped. */
  edit(index: number, content?: string): void;
  /** The same conversation once more. Pages that were read are shared. */
  fork(): Promise<Chat>;
  /** Tokens of the conversation, and of what would be said next. */
  countTokens(content?: string | ChatMessage | ChatMessage[]): Promise<number>;
  /** The history and what was read of it, for loadChat. Settings are not part of it. */
  save(): Promise<Uint8Array<ArrayBuffer>>;
  /** Ends a running turn and frees the memory. Closing twice is fine. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

// ---- the rest ----

export interface SpecialToken {
  id: number;
  text: string;
}

export interface EngineInfo {
  architecture: string | null;
  name: string | null;
  shape: {
    parameters: number;
    layers: number;
    hidden: number;
    heads: number;
    kvHeads: number;
    headDim: number;
    ffn: number;
    vocab: number;
    contextTrained: number;
  } | null;
  contextSize: number;
  tokenizer: {
    model: string | null;
    pre: string | null;
    vocab: number;
    bos: SpecialToken | null;
    eos: SpecialToken | null;
    /** All that end an answer. */
    ends: number[];
    addsBos: boolean;
    addsEos: boolean;
  } | null;
  chatTemplate: string | null;
  /** Tensors and bytes of each type in the file. */
  types: Record<string, { tensors: number; bytes: number }>;
  /** Of everything that was loaded, hexadecimal. */
  fingerprint: string | null;
  /** That compute: helpers that have not come in yet are not counted. */
  threads: number;
  /** How many of them compute a single token and a part of the prompt: what was fastest, if the number was left open. */
  threadsUsed: { decode: number; prefill: number };
  /** The kernels in use: `simd128` or `relaxed`, with a suffix for what suits this processor. */
  kernels: string;
  /**
   * How sums of floats are rounded: hosts of the same group compute the same bits, and so the same text for a seed.
   * `plain` are hosts without relaxed SIMD and the native build, `relaxed` those with it.
   */
  rounding: 'plain' | 'relaxed';
  /** With `shared`: whether the engine is in this tab or in another; `none`: it is this one's alone. */
  sharing: 'none' | 'leader' | 'follower';
  /** Of the cached keys, and of the values. */
  kType: KvType;
  vType: KvType;
  /** The memory that the model needs, in bytes. */
  plan: {
    contextTokens: number;
    weightsBytes: number;
    kvBytes: number;
    scratchBytes: number;
    directoryBytes: number;
    tokenizerBytes: number;
    totalBytes: number;
    /** Of the file: tables that stay there (`tables`), which are not in the total. */
    outsideBytes: number;
    kvPageBytes: number;
  } | null;
  /** With `directoryOnly`: why the model would not run. */
  error: { status: string; message: string; offsetBytes: number | null } | null;
  memory: {
    /** WebAssembly's linear memory: it never shrinks until close(). */
    linearBytes: number;
    usedBytes: number;
    peakBytes: number;
    /** A model that needs more is refused: memoryLimit, or what the host can give if that is less. */
    limitBytes: number;
    /** Made since the engine was created: decoding makes none. */
    allocations: number;
  };
}

export interface OpMetrics {
  count: number;
  /** Of these, those that were timed: every prefill, one pass of decoding in four. */
  timed: number;
  /** The timed ones together. */
  time_us: number;
  latency_us: {
    mean: number;
    min: number;
    max: number;
    stddev: number;
    p50: number;
    p95: number;
    p99: number;
  };
  /** Weights, keys and values, or activations that the op has to read and write. */
  bytes: number;
  /** Multiply-adds of products. */
  macs: number;
  /** Null when the clock saw no time pass. */
  gb_per_s: number | null;
  gmac_per_s: number | null;
  /** Of the time of its kind of pass. */
  share: number;
}

export type OpName =
  | 'embed'
  | 'norm'
  | 'qkv'
  | 'kv_store'
  | 'attention'
  | 'attn_output'
  | 'gate_up'
  | 'silu'
  | 'down'
  | 'route'
  | 'experts'
  | 'conv'
  | 'delta'
  | 'scan'
  | 'logits'
  | 'sample';

export interface LaneMetrics {
  dispatches: number;
  latency_us_mean: number;
  latency_us_min: number;
  latency_us_max: number;
  latency_us_stddev: number;
  latency_cv_pct: number;
  latency_us_p50: number;
  latency_us_p95: number;
  latency_us_p99: number;
  /** Not in `cpu` and `gpu`, which are sums of lanes. */
  latency_count?: number;
  latency_us_sum?: number;
  /** Cumulative counts, by inclusive upper edges. */
  latency_us_le?: Record<string, number>;
}

export interface EngineMetrics {
  elapsed_s: number;
  /** How fine the clock is: single latencies below it mean little, sums do. */
  timer_grain_us: number;
  kernels: 'scalar' | 'simd128' | 'relaxed' | 'webgpu';
  passes: Record<'prefill' | 'decode', Record<OpName, OpMetrics>>;
  dispatch: {
    elapsed_s: number;
    timer_grain_us: number;
    dispatches: number;
    gpu_ratio: number;
    throughput_rps: number;
    speedup_ratio: number;
    lanes: Record<'scalar' | 'simd128' | 'relaxed' | 'webgpu', LaneMetrics>;
    cpu: LaneMetrics;
    gpu: LaneMetrics;
  };
}

export type MetadataValue = string | number | boolean | null;

export interface ModelInspection {
  gguf: { version: number; alignment: number; directory_bytes: number; data_offset: number };
  metadata: (
    | { key: string; type: string; value: MetadataValue }
    | { key: string; type: 'array'; item_type: string; count: number; first: MetadataValue[] }
  )[];
  tensors: {
    name: string;
    type: string;
    shape: number[];
    file: number;
    offset_bytes: number;
    size_bytes: number;
    /** The model runs here without it. */
    unread?: true;
  }[];
  info: Record<string, unknown>;
}

export interface TokenizeOptions {
  /** BOS and EOS as the model requires; true by default. */
  addSpecial?: boolean;
  /** Control tokens in the text become their ids; true by default. */
  parseSpecial?: boolean;
  signal?: AbortSignal | null;
}

/** As in ChatCompletionRequest; `variables` are its `chat_template_kwargs`. */
export interface CountOptions {
  tools?: ChatTool[] | null;
  /** With 'none' the prompt has no tools. */
  tool_choice?: ChatCompletionRequest['tool_choice'];
  reasoning_effort?: ChatCompletionRequest['reasoning_effort'];
  variables?: Record<string, unknown>;
  parseSpecial?: boolean;
  signal?: AbortSignal | null;
}

// ---- embeddings ----

/** An adapter that a request selects: scale 1, the default, applies it as trained, 0 disables it. */
export interface AdapterUse {
  name: string;
  scale?: number;
}

export interface AdapterInfo {
  name: string;
  /** Of the model, that it changes. */
  tensors: number;
  /** The largest. */
  rank: number;
  alpha: number | null;
  /** Requests and calls of embed that use it now. */
  users: number;
  bytes: number;
}

export interface AddAdapterOptions {
  /** The name that requests use; it is unique. */
  name: string;
  signal?: AbortSignal | null;
}

/** Low-rank changes of the model's weights (LoRA), from GGUF files, which requests choose. */
export interface Adapters {
  add(source: ModelSource, options: AddAdapterOptions): Promise<AdapterInfo>;
  /** Frees its memory. Rejects with BUSY while a request uses it, also one that waits. */
  remove(name: string): Promise<void>;
  list(): Promise<AdapterInfo[]>;
}

export interface EmbedOptions {
  /** Adapters that the texts are read with. */
  adapters?: AdapterUse[] | null;
  /**
   * How the vectors of a text's tokens become one. 'model' (default): as the file says, else the mean, of causal models
   * the last token's. 'none': they are kept, one after the other in one array. 'rank': the scores of a reranker or
   * classifier.
   */
  pooling?: 'model' | 'none' | 'mean' | 'cls' | 'last' | 'rank';
  /** Vectors are divided by their length; true by default. Scores never are. */
  normalize?: boolean;
  /** The first numbers alone, cut before the length becomes 1. */
  dimensions?: number;
  /** Put before each text: what the model was trained with for queries or documents. */
  prefix?: string;
  /** Texts over the context are cut, but for their last token; false by default: they are refused. */
  truncate?: boolean;
  signal?: AbortSignal | null;
}

export interface ClassifyOptions {
  /** The text before the text and the labels; a model with a head for labels reads the text alone. */
  instructions?: string;
  /** Of a model with a head: a text over its context is cut. Else it rejects with PROMPT_TOO_LONG. */
  truncate?: boolean;
  salt?: string;
  signal?: AbortSignal | null;
}

/** Labels with their probabilities, which add up to 1; the most probable first. */
export type Classification = { label: string; score: number }[];

export interface ExtractOptions {
  /** The text before the schema and the text. */
  instructions?: string;
  /** 1024 by default. A record that needs more rejects with INCOMPLETE. */
  maxTokens?: number;
  /** 0 by default: the most probable record. */
  temperature?: number;
  seed?: number;
  salt?: string;
  signal?: AbortSignal | null;
}

/** Functions that the model may call, by their names. */
export type ToolSet = Record<
  string,
  {
    /** Its description, for the model. */
    description?: string;
    /** The JSON schema of its argument, an object. None: it takes none. */
    schema?: object;
    /** Gets the arguments, parsed. Its return value, text or else JSON, is the result that the model reads. */
    run(
      argument: Record<string, unknown>,
      call: { id: string; name: string; signal?: AbortSignal | null },
    ): unknown;
  }
>;

export interface RunToolsOptions
  extends Omit<ChatCompletionRequest, 'tools' | 'stream' | 'stream_options' | 'n'> {
  tools: ToolSet;
  /** Replies of the model, 8 by default. One more rejects with TOOL_ROUNDS. */
  maxRounds?: number;
  /** An exception of a tool rejects. False, the default: the model gets its message as the result. */
  throwErrors?: boolean;
}

export interface RunToolsResult {
  /** The last one: it calls nothing. */
  message: ChatCompletion['choices'][0]['message'];
  /** The whole conversation, with the calls and their results. */
  messages: ChatMessageParam[];
  finish_reason: 'stop' | 'length';
  /** Replies of the model. */
  rounds: number;
  /** Of all of them together. */
  usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
}

export interface RerankOptions {
  /** The number of results; all by default. */
  topN?: number;
  /** Pairs over the context are cut; false by default: they are refused. */
  truncate?: boolean;
  signal?: AbortSignal | null;
}

export interface Ranking {
  /**
   * The best first. `score`: the first number of the model's head. `probability`: from 0 to 1, the sigmoid of the
   * score, or the score where the model gives probabilities.
   */
  results: { index: number; score: number; probability: number }[];
  /** Of all pairs together. */
  tokens: number;
}

/** As OpenAI's; token ids in place of texts are taken, too. */
export interface EmbeddingRequest {
  input: string | number[] | (string | number[])[];
  dimensions?: number | null;
  encoding_format?: 'float' | 'base64';
  model?: string;
  user?: string;
  signal?: AbortSignal | null;
}

export interface EmbeddingList {
  object: 'list';
  model: string;
  /** `embedding`: numbers, or base64 of little-endian float32. */
  data: { object: 'embedding'; index: number; embedding: number[] | string }[];
  usage: { prompt_tokens: number; total_tokens: number };
}

/** One model in a worker. Any number of calls run side by side. */
export interface Engine {
  /** Continues a plain text. The generation starts when it is read. */
  generate(prompt: string | number[] | Int32Array, options?: GenerateOptions): Generation;
  /** Chat completions with OpenAI's request and response format. */
  readonly chat: { readonly completions: ChatCompletions };
  /** A vector for each text. It depends on its text alone. Encoders answer no other calls that make text. */
  embed(
    texts: string | ArrayLike<number> | (string | ArrayLike<number>)[],
    options?: EmbedOptions,
  ): Promise<Float32Array[]>;
  /** How well documents fit a query, by a model with a head for it; others reject with UNSUPPORTED. */
  rerank(query: string, documents: string[], options?: RerankOptions): Promise<Ranking>;
  /**
   * Which of the labels a text has. A model with a head gives a score for each, in the head's order; of any other that
   * makes text, how probable each label is as its answer.
   */
  classify(text: string, labels: string[], options?: ClassifyOptions): Promise<Classification>;
  /** The content of a text, as a record of a JSON schema: JSON.parse of a text that the schema describes. */
  extract<T = unknown>(
    text: string,
    schema: GrammarOptions['jsonSchema'],
    options?: ExtractOptions,
  ): Promise<T>;
  /** The model calls functions, those of one reply together, and reads their results, until it answers. */
  runTools(options: RunToolsOptions): Promise<RunToolsResult>;
  /** LoRA adapters of this engine. */
  readonly adapters: Adapters;
  /** Embeddings with OpenAI's request and response format. */
  readonly embeddings: {
    /** One vector for each input, as numbers or base64. */
    create(body: EmbeddingRequest, call?: { signal?: AbortSignal | null }): Promise<EmbeddingList>;
  };
  /** The token ids of a text. */
  tokenize(text: string, options?: TokenizeOptions): Promise<number[]>;
  /** The prompt that chat.completions makes of a conversation. */
  tokenize(messages: ChatMessageParam[], options?: CountOptions): Promise<number[]>;
  /** `special`: control tokens as text, too. */
  detokenize(
    tokens: ArrayLike<number>,
    options?: { special?: boolean; signal?: AbortSignal | null },
  ): Promise<string>;
  /** The number of tokens of a text. */
  countTokens(text: string, options?: TokenizeOptions): Promise<number>;
  /** Of the prompt that chat.completions makes of a conversation. */
  countTokens(messages: ChatMessageParam[], options?: CountOptions): Promise<number>;
  /** A conversation that continues from turn to turn and reads only what is new. */
  createChat(options?: ChatOptions): Promise<Chat>;
  /**
   * The output of a chat's save. Another model or KV type reads the conversation again; damaged
   * bytes are refused (CORRUPT, TRUNCATED, FORMAT).
   */
  loadChat(
    bytes: Blob | ArrayBuffer | Uint8Array,
    options?: Omit<ChatOptions, 'system' | 'messages'>,
  ): Promise<Chat>;
  /** The conversation as the text that chat.completions would continue from. */
  applyTemplate(
    messages: ChatMessageParam[],
    options?: {
      addGenerationPrompt?: boolean;
      variables?: Record<string, unknown>;
      signal?: AbortSignal | null;
    },
  ): Promise<string>;
  /** The model's shape, the memory plan, threads, kernels and sharing. */
  info(): Promise<EngineInfo>;
  /** Metadata and tensors, as `wick inspect --json` prints them. */
  inspect(): Promise<ModelInspection>;
  /**
   * The time that the ops of the forward passes took since the start, or since the last call with
   * `reset`; rejects with NODATA unless the engine was created with `metrics: true`.
   */
  metrics(options?: {
    format?: 'json';
    reset?: boolean;
    signal?: AbortSignal | null;
  }): Promise<EngineMetrics>;
  /** The same in Prometheus' text format 0.0.4. */
  metrics(options: {
    format: 'prometheus';
    reset?: boolean;
    signal?: AbortSignal | null;
  }): Promise<string>;
  /** With a `salt` (GenerateOptions), which its requests, its forks and what is saved of it have, too. */
  createSession(options?: { signal?: AbortSignal | null; salt?: string | null }): Promise<Session>;
  /**
   * The prefix cache, for an engine with the same model. With `to`, also kept there: a file's path
   * (Node, Deno), a name (the origin's private file system).
   */
  saveState(to?: string): Promise<Uint8Array<ArrayBuffer>>;
  /**
   * The output of saveState or a session's save: a path or name as above, or the bytes. A state of
   * another model or KV type is refused (MISMATCH), a damaged one, too (CORRUPT, TRUNCATED, FORMAT).
   */
  loadState(
    from: string | Blob | ArrayBuffer | Uint8Array,
  ): Promise<{ session: Session | undefined; entries: number }>;
  /** The pages of keys and values, who has them, and what is running. */
  kvStats(options?: { map?: boolean }): Promise<KvStats>;
  /**
   * How many tokens a conversation has as a prompt, and the pages that the prefix cache has of it, from its beginning: places
   * in kvStats' map. Two conversations share the pages that both have. Nothing is read.
   */
  findPages(
    messages: ChatMessageParam[],
    options?: CountOptions,
  ): Promise<{ tokens: number; pages: number[] }>;
  /**
   * Several continuations of one prompt, which is read once. They run together, share its pages, and
   * start when the first of them is read. Leaving one (`break`, `return()`) frees its pages at once.
   * A stream that is not read continues for 256 pieces and then rests, and its pages are the first
   * that others take; when it is no longer referenced (it was garbage-collected), it is cancelled.
   * Leave a stream that is not read to its end explicitly: the time of garbage collection is
   * unknown.
   */
  generateMany(
    prompt: string | ArrayLike<number>,
    options?: GenerateOptions & { n?: number },
  ): Generation[];
  /** The likeliest continuations that a beam search finds, the best first. */
  beamSearch(prompt: string | ArrayLike<number>, options?: BeamSearchOptions): Promise<Beam[]>;
  /** `n` (4) continuations as generateMany samples them, all, by the mean of their logprobs. */
  bestOf(
    prompt: string | ArrayLike<number>,
    options?: GenerateOptions & { n?: number },
  ): Promise<Beam[]>;
  /** The requests that run, those that wait, and the results of earlier ones. */
  stats(options?: { format?: 'json' }): Promise<EngineStats>;
  /** The same in Prometheus' text format. */
  stats(options: { format: 'prometheus' }): Promise<string>;
  /** Ends the workers and frees the memory. Closing twice is fine. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** docs/js-api.md lists what the codes mean. */
export type WickErrorCode =
  | 'ARG'
  | 'BUSY'
  | 'CHANGED'
  | 'CLOSED'
  | 'CORRUPT'
  | 'CORS'
  | 'CSP'
  | 'FORMAT'
  | 'GATED'
  | 'GRAMMAR_TOO_LARGE'
  | 'HOOK'
  | 'HTTP'
  | 'INCOMPLETE'
  | 'INTERNAL'
  | 'INVALID'
  | 'IO'
  | 'LEADER_GONE'
  | 'MISMATCH'
  | 'NETWORK'
  | 'NODATA'
  | 'NOMEM'
  | 'NONFINITE'
  | 'NOT_FOUND'
  | 'NOT_GGUF'
  | 'NO_STORAGE'
  | 'NO_TEMPLATE'
  | 'PAGES'
  | 'PROMPT_TOO_LONG'
  | 'QUEUE_FULL'
  | 'RANGE'
  | 'SEQ'
  | 'SHAPE'
  | 'STORAGE_FULL'
  | 'TEMPLATE'
  | 'TRUNCATED'
  | 'UNSUPPORTED'
  | 'WASM'
  | 'WORKER_CRASHED'
  | (string & {});

/** The only error class. Aborted work rejects with a DOMException named AbortError instead. */
export class WickError extends Error {
  constructor(code: WickErrorCode, message: string, cause?: unknown);
  readonly name: 'WickError';
  readonly code: WickErrorCode;
  readonly cause?: unknown;
}
