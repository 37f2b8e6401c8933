// The public types of wick-llm, for TypeScript 5.7 or later.

declare global {
  /**
   * The same declaration as in `esnext.disposable`, for projects that do not include that library.
   */
  interface SymbolConstructor {
    readonly asyncDispose: unique symbol;
  }
}

/** The bytes of a model. Exactly one of the members must be set. */
export interface ModelSource {
  /**
   * The URL of a GGUF file, relative to the page. For a split model, the URL of any one file (the
   * others are found by -00001-of-0000N.gguf) or of all files.
   */
  url?: string | URL | (string | URL)[];
  /**
   * A File that the user has chosen, or a path (Node, Deno, Bun). Pass an array for the files of a
   * split model.
   */
  file?: Blob | string | URL | (Blob | string | URL)[];
  /** A Blob, or the Blobs of a split model. */
  blob?: Blob | Blob[];
  /** The whole file in memory. It is copied. */
  bytes?: ArrayBuffer | ArrayBufferView<ArrayBuffer>;
  /** The file from beginning to end, read once and cancelled when loading ends. Not for split models. */
  stream?: ReadableStream<Uint8Array> | AsyncIterable<Uint8Array> | Response;
}

/** The progress of loading a model. */
export interface Progress {
  /** Bytes of the model that have arrived. */
  loaded: number;
  /** Size of the file in bytes, once known. */
  total: number | undefined;
  /** Speed of the download, once known. */
  bytesPerSecond: number | undefined;
  /** Estimated time to the end of the download, once known. */
  secondsLeft: number | undefined;
  /**
   * `retrying`: the connection broke and is being resumed. `waiting`: another tab has the model or is
   * downloading it but does not respond; this one takes over within 20 seconds.
   */
  phase: 'loading' | 'retrying' | 'waiting' | 'ready';
  /** With `retrying`: seconds until the next attempt. */
  retrySeconds?: number;
}

export type KvType = 'f32' | 'f16' | 'q8' | 'q4';
/** Where tables that are only used for row lookups are stored (`EngineOptions.tables`). */
export type TablesPlace = 'auto' | 'inside' | 'outside';

/** A web Worker, or one of node:worker_threads. */
export interface WorkerLike {
  postMessage(message: unknown): void;
  terminate(): unknown;
}

/** Exactly one source of a model. */
export type OneSource = {
  [Name in keyof ModelSource]-?: Required<Pick<ModelSource, Name>> & {
    [Other in Exclude<keyof ModelSource, Name>]?: undefined;
  };
}[keyof ModelSource];

/** A model by its name, in place of a source. */
export type NamedModel = { [Name in keyof ModelSource]?: undefined } & {
  /**
   * Its name on a hub (`hf:owner/repo/file.gguf`, `owner/repo:Q4_K_M`), or the fingerprint,
   * SHA-256, id or file name of a model that `wick-llm/models` keeps.
   */
  model: string;
};

/** The options of createEngine: the source of the model, and settings. */
export type EngineOptions = EngineSettings & ((OneSource & { model?: undefined }) | NamedModel);

/** The options of `new Headers(...)`. */
export type HeaderFields = NonNullable<ConstructorParameters<typeof Headers>[0]>;

/** `WebAssembly.Module`, if the host's types include it. */
export type WasmModule = typeof globalThis extends {
  WebAssembly: { Module: { prototype: infer Module } };
}
  ? Module
  : object;

/** Options of calls that can be aborted. */
export interface Abortable {
  /** Aborts the call, which then rejects with the signal's reason, by default an AbortError. */
  signal?: AbortSignal | null;
}

export interface EngineSettings {
  /** Sent with every request for the model. */
  headers?: HeaderFields;
  /** Replaces the worker's fetch: the page then downloads the bytes and passes them to the worker. */
  fetch?: typeof globalThis.fetch;
  /** The number of consecutive attempts to resume a broken download; 5 by default. */
  retries?: number;
  /**
   * A connection that delivers no byte for this many milliseconds is considered broken; 30000 by
   * default. 0: no limit.
   */
  stallMs?: number;
  /**
   * Whether a model that has a URL is stored for the next visit (in the store of `wick-llm/models`). True by
   * default for `model`, and in pages unless `fetch` or `directoryOnly` is set; otherwise false.
   * 'only' sends no request: a model that is not stored rejects with NOT_FOUND.
   */
  cache?: boolean | 'only';
  /** The hub of `model`; https://huggingface.co without a token by default. */
  hub?: { endpoint?: string; token?: string };
  /**
   * Aborts loading; createEngine then rejects with the signal's reason, by default an AbortError.
   */
  signal?: AbortSignal | null;
  /** Called at most ten times per second. */
  onProgress?: (progress: Progress) => void;
  /**
   * Number of compute threads, 1 to 64. By default half of the processors, at most 8, or 1 if memory cannot be
   * shared; the first passes then measure whether all of them, half of them or only one is fastest
   * (`info().threadsUsed`). A number that you set is used unchanged, up to twice the number of
   * processors (8 if there are fewer than four); a larger number is reduced with a warning.
   * `info().threads` counts the threads that have started.
   */
  threads?: number;
  // begin engine options: generated from include/options.mjs
  /** Maximum number of tokens in prompt and answer together; by default the model's limit, but at most 4096. */
  contextSize?: number | null;
  /** Number of prompt tokens that are processed together, up to 512; 128 by default. */
  batchSize?: number | null;
  /**
   * Limit on the tokens of all requests, sessions and the prefix cache together; four contexts by default. Requests
   * wait until enough tokens are free.
   */
  kvTokens?: number | null;
  /** Limit on the working memory for compiling one grammar, in bytes; 64 MiB by default. */
  grammarMemory?: number | null;
  /** Limit on the steps for compiling one grammar; 30 million (about 2 s) by default. */
  grammarSteps?: number | null;
  /** Maximum number of tiles per image, including its overview. No limit by default. */
  maxTiles?: number | null;
  /** Maximum number of context positions per image. A larger image is scaled down. No limit by default. */
  maxImageTokens?: number | null;
  /** Loads only metadata and tokenizer, for inspect() and tokenize(). */
  directoryOnly?: boolean;
  /** Times the ops of the forward pass, for metrics(). */
  metrics?: boolean;
  /** Caches prompt prefixes, so that they are computed once; true by default. */
  prefixCache?: boolean;
  /**
   * Uses the file's layer for multi-token prediction, if it has one (Qwen3.5), to propose tokens; true by default.
   * If false, the layer is not loaded.
   */
  predictor?: boolean;
  // end engine options
  /** Type of the KV cache, or of its keys and its values; `f16` by default. */
  kvType?: KvType | { k?: KvType; v?: KvType };
  /**
   * Limit on running and waiting requests, where each of `n` completions counts; further requests
   * are rejected immediately (QUEUE_FULL). No limit by default.
   */
  queueLimit?: number;
  /**
   * A smaller model with the same vocabulary (a URL, a file or a Blob) that proposes tokens, which the main
   * model verifies in batches; the output is unchanged. It is loaded into the same memory. A draft model with
   * a different vocabulary is rejected (MISMATCH).
   */
  draft?: Omit<ModelSource, 'bytes' | 'stream'>;
  /**
   * The mmproj file of a model for images or audio: a URL (in Node also a path), a name on a hub, a Blob or bytes; true:
   * the one in the repository of `model`. It is kept and deleted together with that model. Messages may then contain images
   * and recordings (`info().media`). Its encoders are in a separate WebAssembly module.
   */
  mmproj?: true | string | URL | Blob | ArrayBuffer | ArrayBufferView<ArrayBuffer>;
  /**
   * Decodes images on hosts without `createImageBitmap` (Node), for example with sharp or pngjs. PPM images are supported
   * everywhere.
   */
  decodeImage?: DecodeImage | null;
  /** Prepare and encode images and audio as the published model does (the default), or as llama.cpp does where that differs. */
  mediaLike?: 'published' | 'llama.cpp';
  /**
   * If pages (`kvTokens`) run out: writes the pages of a preempted request to a temporary file (OPFS in browsers)
   * and reads them back, if measurements show that this is cheaper than recomputing them; `always` swaps in any
   * case. In Node, a string sets the folder of the file. False by default.
   */
  swap?: boolean | string | { folder?: string; always?: boolean };
  /**
   * Limit on all memory in bytes; a model that needs more is rejected before its weights are fetched. The default
   * and maximum is the limit of WebAssembly's memory: 4 GiB, or 2, 1 or 0.5 GiB if the host reserves no more, less
   * the module's memory. A model that needs more runs in a memory with 64-bit addresses, of at most 16 GiB, if
   * the host supports it (memory64). With a limit above 4 GiB the engine starts with such a memory.
   */
  memoryLimit?: number;
  /**
   * The location of per-layer embeddings (Gemma 3n and 4), and of token embeddings if the output has a separate matrix.
   * `inside`: in memory. `outside`: in the model's file, from which each pass reads the rows of its tokens, so only the
   * layers have to fit; results are the same. The worker must be able to read the file synchronously: a path in Node, a
   * Blob in a browser, or a stored model. `auto`, the default: `outside` if the model would not fit
   * otherwise.
   */
  tables?: TablesPlace;
  /**
   * Resolves as soon as metadata and tokenizer have arrived. Prompts are then processed by the layers that have
   * arrived; the output is the same. If the download fails later, every call rejects with its error.
   */
  eager?: boolean;
  /**
   * Tabs (and workers) from the same origin with the same name, model and options share one engine:
   * one of them loads the model, and when it is closed, another one takes over. `info().sharing` is
   * the role of this tab. Without Web Locks or BroadcastChannel each tab has a separate engine.
   */
  shared?: string;
  /**
   * With `shared`: called when this tab has taken over the engine and loaded the model. The prefix cache is then
   * empty; `engine.loadState` can restore one that `engine.saveState` has saved.
   */
  onLead?: () => void;
  /**
   * Replaces the file's `tokenizer.ggml.pre` if that is missing, wrong or unknown: `'qwen2'`, `'llama-bpe'`,
   * `'gpt-2'` or any other name from llama.cpp.
   */
  preTokenizer?: string;
  /**
   * Jinja text that replaces the model's own template, or a name: `'chatml'`, NAME of the model's
   * `tokenizer.chat_template.NAME`, or `'default'`. Without it, conversations with tools use the model's
   * `tool_use` template if there is one.
   */
  chatTemplate?: 'chatml' | (string & {});
  /**
   * The worker's file (`wick-llm/worker`), if a bundler has moved it, or a function that starts a worker on each
   * call. If you pass a single Worker, the engine has one thread.
   */
  worker?: string | URL | WorkerLike | (() => WorkerLike);
  /** The engine's WebAssembly: a file, or a folder (ending in `/`) with all builds. */
  wasm?: string | URL | Response | WasmModule | ArrayBuffer | ArrayBufferView<ArrayBuffer>;
  /**
   * The grammar module of the same build as `wasm` (`wick-…-grammar.wasm`), which is loaded by the first request with
   * a grammar or tools; by default next to `wasm`.
   */
  grammarWasm?: string | URL | Response | WasmModule | ArrayBuffer | ArrayBufferView<ArrayBuffer>;
  /**
   * The extras module of the same build as `wasm` (`wick-…-extras.wasm`), for models with less common
   * architectures, types and tokenizers, 8-bit and 4-bit KV caches, swapping and saved state; by default
   * next to `wasm`.
   */
  extrasWasm?: string | URL | Response | WasmModule | ArrayBuffer | ArrayBufferView<ArrayBuffer>;
  /** The media module of the same build as `wasm` (`wick-…-media.wasm`), for `mmproj`. */
  mediaWasm?: string | URL | Response | WasmModule | ArrayBuffer | ArrayBufferView<ArrayBuffer>;
}

/** Pixels with three bytes (RGB) or four (RGBA, drawn on white) each, row by row. */
export interface ImagePixels {
  width: number;
  height: number;
  data: ArrayLike<number>;
}

/** Decodes an image to pixels. */
export type DecodeImage = (image: Blob) => ImagePixels | Promise<ImagePixels>;

/**
 * Starts a worker and loads a model into it. Resolves when the engine is ready.
 *
 * @example
 * const engine = await createEngine({
 *   url: modelUrl,
 *   onProgress: ({ loaded, total }) => loaded === total && console.log(`${loaded} bytes`),
 * });
 * console.log((await engine.info()).architecture);
 * await engine.close();
 * //=> 2825099 bytes
 * //=> llama
 */
export function createEngine(options: EngineOptions): Promise<Engine>;

/** The samplers, with llama.cpp's names. */
export type SamplerName =
  // begin samplers: generated from include/options.mjs
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
// end samplers

/** llama.cpp's samplers. */
export interface SamplerOptions {
  /**
   * The samplers in the order in which they run, at most 16; others are off. By default all, in the order of
   * SamplerName. `adaptive_p` always runs last.
   */
  samplers?: SamplerName[] | null;
  /**
   * Strings that end a repetition for DRY: by default a newline, `:`, `"` and `*`. At most 16, each
   * of at most 40 bytes.
   */
  drySequenceBreakers?: string[] | null;
  // begin sampling: generated from include/options.mjs
  /** Set the temperature; default 0.8, 0: greedy. Of equally likely tokens, greedy takes the one with the lowest id. */
  temperature?: number;
  /** Sample from the `topK` most likely tokens; default 40, 0: all. */
  topK?: number;
  /**
   * Sample from the most likely tokens whose probabilities add up to `topP`; default 0.95, 1: all, 0: the most
   * likely.
   */
  topP?: number;
  /** Keep tokens that are at least `minP` times as likely as the most likely one; default 0.05, 0: all. */
  minP?: number;
  /** Penalize repeated tokens; default 1: off. */
  repeatPenalty?: number;
  /** Penalize tokens by how often they occurred; default 0: off. */
  frequencyPenalty?: number;
  /** Penalize tokens that have occurred; default 0: off. */
  presencePenalty?: number;
  /** Apply penalties to the last `penaltyLast` tokens; default 64, 0: none, -1: the context. */
  penaltyLast?: number;
  /** Keep tokens of typical surprise whose probabilities add up to `typicalP`; default 1: off. */
  typicalP?: number;
  /** Keep logits at most `topNSigma` standard deviations below the maximum; default -1: off. */
  topNSigma?: number;
  /** Set the probability of removing all top choices except the least likely one; default 0: off. */
  xtcProbability?: number;
  /** Set the minimum probability of a top choice; default 0.1, over 0.5: off. */
  xtcThreshold?: number;
  /** Vary the temperature by up to `dynatempRange` with the entropy; default 0: off. */
  dynatempRange?: number;
  /** Set the exponent of the entropy; default 1. The entropy is relative to its maximum. */
  dynatempExponent?: number;
  /**
   * Set DRY's penalty for repetitions; default 0: off. A token that would continue a repetition of n tokens loses
   * `dryMultiplier` * `dryBase` ** (n - `dryAllowedLength`).
   */
  dryMultiplier?: number;
  /** Set the growth of DRY's penalty with each token; default 1.75. */
  dryBase?: number;
  /** Allow repetitions of `dryAllowedLength` tokens; default 2. */
  dryAllowedLength?: number;
  /** Apply DRY to the last `dryPenaltyLast` tokens; default -1: the context, 0: off. */
  dryPenaltyLast?: number;
  /** Use Mirostat 1 or 2; default 0: off. It replaces the other samplers except the temperature. */
  mirostat?: 0 | 1 | 2;
  /** Set Mirostat's surprise in bits; default 5. */
  mirostatTau?: number;
  /** Set Mirostat's learning rate; default 0.1. */
  mirostatEta?: number;
  /** Prefer tokens with probabilities near `adaptiveTarget` (adaptive-p); default -1, below 0: off. */
  adaptiveTarget?: number;
  /** Set the decay of adaptive-p's memory; default 0.9. */
  adaptiveDecay?: number;
  // end sampling
}

export interface SamplingOptions extends SamplerOptions {
  // begin seed: generated from include/options.mjs
  /** The same seed gives the same output. -1, the default: a random seed. */
  seed?: number | bigint | null;
  // end seed
  /** Added to the logits of tokens, by id; -100 forbids one. */
  logitBias?: Record<string | number, number> | Map<number, number>;
}

/** Constraints on the output; at most one may be set. Only tokens that match it are sampled. */
export interface GrammarOptions {
  /** GBNF as llama.cpp reads it, from its rule `root`. */
  grammar?: string | null;
  /**
   * A JSON schema of draft 4, 6, 7, 2019-09 or 2020-12, or its JSON. Unsupported keywords are
   * rejected with an error that names them.
   */
  jsonSchema?: Record<string, unknown> | boolean | string | null;
  /** The whole output matches this regular expression (ECMA-262 with the `u` flag). */
  regex?: RegExp | string | null;
  /** The output is one of these strings. */
  choices?: string[] | null;
}

/**
 * Called for each token with a copy of the logits of the whole vocabulary, and with the ids of all tokens so far and
 * their number, `position`. The token is sampled from the returned Float32Array of the same length, or from the copy
 * as modified by the hook; -Infinity forbids a token.
 */
export type LogitsHook =
  | ((logits: Float32Array, context: LogitsContext) => Float32Array)
  | ((logits: Float32Array, context: LogitsContext) => void);

export interface LogitsContext {
  position: number;
  tokens: Int32Array;
}

export interface GenerateOptions extends SamplingOptions, GrammarOptions, Abortable {
  /**
   * With a constraint: the start of the constrained output, which the prompt already ends with.
   * Together with the answer it must match the constraint. A start that does not match is rejected
   * (ARG). UTF-8 bytes may end inside a character.
   */
  begun?: string | Uint8Array | null;
  /** Adapters (engine.adapters). Several can be combined; their order does not matter. */
  adapters?: AdapterUse[] | null;
  /** At least 1; by default until the context is full. */
  maxTokens?: number;
  // begin request options: generated from include/options.mjs
  /** Strings that end the output and are not part of it. */
  stop?: string | string[] | null;
  /**
   * Limit on the tokens of reasoning. At the limit the reasoning is closed and the answer follows. The tags are
   * those of the model's chat template, and the prompt may already contain the opening tag. -1, the default: no
   * limit.
   */
  thinkingBudgetTokens?: number;
  /** The number of alternatives that onToken receives, up to 20; 0: only the token's logprob. */
  logprobs?: number;
  // end request options
  /** Time limit for the request in milliseconds, after which it rejects with a TimeoutError. */
  timeout?: number | null;
  // begin flags: generated from include/options.mjs
  /** Continue after an end token. */
  ignoreEnd?: boolean;
  /**
   * Let the prompt end inside a word or token. Its last token is sampled again with the output. Only for string
   * prompts without a grammar.
   */
  healing?: boolean;
  /** Include control tokens in the text. */
  printSpecial?: boolean;
  /** Report logprobs of the distribution after the samplers, not the model's. */
  logprobsAfter?: boolean;
  // end flags
  /**
   * Intended for experiments. Slow, because all logits of each token are passed to this thread and back. Bias,
   * grammar and samplers are applied afterwards. Not with `shared`.
   */
  logitsHook?: LogitsHook | null;
  /**
   * From -100 to 100, 0 by default. Higher priorities start first and keep their pages. A request that has waited for
   * 512 passes precedes all later ones.
   */
  priority?: number;
  /**
   * Speculative decoding: proposes the tokens that followed the same words earlier in the text and verifies several
   * at once. The output is the same. It pauses automatically when it is not faster, unless set to 'always' (for
   * measurements). True by default.
   */
  speculation?: boolean | 'always';
  /**
   * Identifies the owner of the prompt. Requests with different salts, or without one, share no cached prefixes, so
   * `cachedTokens` reveals nothing about other users' prompts. A session has a separate salt.
   */
  salt?: string | null;
  /**
   * Token ids that are generated regardless of the logits, for measurements with random weights.
   */
  forced?: number[];
  onPrefill?: (progress: { done: number; total: number }) => void;
  /**
   * Called for each token. Its text may arrive with a later token (part of a character, a possible
   * stop string).
   */
  onToken?: (token: TokenDetail) => void;
}

/** A token with its probability. */
export interface TokenAlternative {
  /** Id of the token. */
  token: number;
  /** Its text; incomplete characters become U+FFFD. */
  text: string;
  /** Its bytes. */
  bytes: number[];
  /** Natural logarithm of its probability. */
  logprob: number;
}

/** A token that was generated. */
export interface TokenDetail extends Omit<TokenAlternative, 'logprob'> {
  /** Set if `logprobs` was requested. */
  logprob?: number;
  /** The `logprobs` most probable alternatives. */
  top: TokenAlternative[];
}

/** Timings of a request. */
export interface Timings {
  /** From the call until the request started. */
  queueMs: number;
  /** Prefill time. */
  prefillMs: number;
  /** Time to generate the tokens after the first one. */
  decodeMs: number;
  /** From the call to the first token. */
  ttftMs: number;
  /** Prefill speed. */
  prefillTokensPerSecond: number;
  /** Decode speed. */
  decodeTokensPerSecond: number;
}

/** The result of a generation. */
export interface GenerationResult {
  /**
   * `stop`: an end token or a stop string. `length`: maxTokens or the end of the context. `abort`: the signal
   * was aborted, or the reader left; `usage` then counts the prompt, if prefill had begun, and the pieces of
   * text so far, and other numbers are 0.
   */
  finishReason: 'stop' | 'length' | 'abort';
  /** The stop string that ended it; missing after an end token. */
  stop?: string;
  /** Numbers of tokens in the prompt, in the output, and in the cached part of the prompt. */
  usage: { promptTokens: number; completionTokens: number; cachedTokens: number };
  /** Timings of the request. */
  timings: Timings;
}

/**
 * Text that is being generated. The generation starts when it is first read and can be read only
 * once; leaving the loop cancels it.
 */
export interface Generation extends AsyncIterable<string> {
  [Symbol.asyncIterator](): AsyncGenerator<string, void, void>;
  /** Returns the whole text.
   *
   * @example
   * const generation = engine.generate('The capital of France is', { maxTokens: 2, temperature: 0 });
   * console.log(await generation.text());
   * console.log(generation.result.finishReason);
   * //=>  Paris.
   * //=> length
   */
  text(): Promise<string>;
  /** Set when the generation has ended without an error. */
  readonly result: GenerationResult | undefined;
}

// ---- sessions ----

/** Options for saving a session. */
export interface SaveOptions {
  /** A path (Node, Deno) or a name in the origin private file system. */
  to?: string | undefined;
  /**
   * KV types of the saved state; the engine's by default. Lower-precision types make the state smaller, but the
   * precision is lost permanently. Any engine with the same model and `kvType` loads the state.
   */
  kvType?: KvType | { k?: KvType; v?: KvType } | undefined;
}

/**
 * Text that continues from call to call; each token is processed only once. A session runs one request
 * at a time (a second one is rejected with BUSY).
 */
export interface Session {
  /**
   * Appends `prompt` and generates an answer. Both stay in the session (an end token does not).
   *
   * @example
   * const session = await engine.createSession();
   * const options = { maxTokens: 2, temperature: 0 };
   * console.log(await session.prompt('The capital of France is', options).text());
   * console.log(await session.prompt(' The capital of Italy is', options).text());
   * //=>  Paris.
   * //=>  Rome.
   */
  prompt(prompt: string | ArrayLike<number>, options?: Omit<GenerateOptions, 'salt'>): Generation;
  /**
   * Appends text without generating an answer. Returns the number of tokens in the session, and the number
   * before the call.
   *
   * @example
   * const session = await engine.createSession();
   * console.log(await session.append('Once upon a time'));
   * console.log(await session.append(', there was a fox.'));
   * //=> { tokens: 4, cachedTokens: 0 }
   * //=> { tokens: 10, cachedTokens: 4 }
   */
  append(
    text: string | ArrayLike<number>,
    options?: Pick<GenerateOptions, 'signal' | 'onPrefill'>,
  ): Promise<{ tokens: number; cachedTokens: number }>;
  /**
   * Returns a session with the same text, which shares all pages until one of the two continues.
   *
   * @example
   * const session = await engine.createSession();
   * await session.append('The opposite of hot is');
   * const fork = await session.fork();
   * await fork.append(' not warm, but');
   * console.log((await session.tokens()).length, (await fork.tokens()).length);
   * //=> 5 9
   */
  fork(): Promise<Session>;
  /**
   * Keeps the first `tokens` tokens.
   *
   * @example
   * const session = await engine.createSession();
   * await session.append('Once upon a time, there was a fox.');
   * await session.truncate(4);
   * console.log(await engine.detokenize(await session.tokens()));
   * //=> Once upon a time
   */
  truncate(tokens: number): Promise<void>;
  /**
   * Drops the tokens from `first` up to, but not including, `last`. Later tokens are not
   * recomputed.
   *
   * @example
   * const session = await engine.createSession();
   * await session.append('Once upon a very cold time');
   * await session.drop(3, 5);
   * console.log(await engine.detokenize(await session.tokens()));
   * //=> Once upon a time
   */
  drop(first: number, last: number): Promise<void>;
  /** Returns the ids of all tokens.
   *
   * @example
   * const session = await engine.createSession();
   * await session.append('Once upon a time');
   * console.log(await session.tokens());
   * //=> [ 6403, 1980, 253, 655 ]
   */
  tokens(): Promise<number[]>;
  /**
   * Returns the state as bytes. With a name or `to`, it is also stored there.
   *
   * @example
   * const session = await engine.createSession();
   * await session.append('Once upon a time');
   * const bytes = await session.save();
   * await session.close();
   * const { session: restored } = await engine.loadState(bytes);
   * console.log(await engine.detokenize(await restored.tokens()));
   * //=> Once upon a time
   */
  save(to?: string | SaveOptions): Promise<Uint8Array<ArrayBuffer>>;
  /**
   * Frees the pages. May be called more than once, also after the engine is closed.
   *
   * @example
   * const session = await engine.createSession();
   * await session.append('Once upon a time');
   * await session.close();
   * await session.append(' there was').catch((error) => console.log(error.code));
   * //=> SEQ
   */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Options of a beam search. With a constraint, all beams match it, and logprobs are relative to the
 * allowed tokens.
 */
export interface BeamSearchOptions
  extends GrammarOptions,
    Pick<GenerateOptions, 'signal' | 'priority' | 'salt'> {
  /** Number of beams, 1 to 16; 4 by default. */
  width?: number;
  /** Limit on the tokens per beam; 64 by default. */
  maxTokens?: number;
  /** The sum of logprobs is divided by tokens ** lengthPenalty. 1, the default, gives the mean. */
  lengthPenalty?: number;
}

/** A continuation. */
export interface Beam {
  /** The text of the beam. */
  text: string;
  /** The ids of its tokens. */
  tokens: number[];
  /** The sum of the tokens' logprobs. */
  logprob: number;
  /** `stop`: an end token. `length`: maxTokens. */
  finishReason: 'stop' | 'length';
}

/** Counters since the engine was created. */
export interface EngineStats {
  /** Requests by state and by how they ended. */
  requests: {
    /** Requests that are running. */
    running: number;
    /** Requests in the queue. */
    waiting: number;
    /** Running or waiting requests that are paused because their readers do not keep up. */
    paused: number;
    /** Largest number of running requests so far. */
    runningMax: number;
    /** Largest number of waiting requests so far. */
    waitingMax: number;
    /** All requests so far. */
    submitted: number;
    /** Requests rejected because of `queueLimit`. */
    refused: number;
    /** Requests that ended with an end token or a stop string. */
    stopped: number;
    /** Requests that ended at their token limit. */
    length: number;
    /** Requests that were cancelled. */
    aborted: number;
    /** Requests that ended with an error. */
    failed: number;
    /** Preemptions: a request lost its pages and continues later. */
    preempted: number;
    /** Preempted requests whose pages were written to the swap file. */
    swappedOut: number;
    /** Preempted requests whose pages were read back. */
    swappedIn: number;
    /** Swap file failures, after which the tokens were recomputed. */
    swapFailed: number;
  };
  /** Token counts of all requests. */
  tokens: {
    /** Tokens of prompts. */
    prompt: number;
    /** Tokens of prompts that were found in the prefix cache. */
    cached: number;
    /** Tokens that were recomputed after their pages had been taken. */
    recomputed: number;
    /** Generated tokens. */
    out: number;
    /** Tokens that speculative decoding proposed. */
    proposed: number;
    /** Proposed tokens that were accepted. */
    accepted: number;
  };
  /**
   * Recent duration of a pass in microseconds with 1, 2, ... 16 tokens of one request (0: not
   * measured). Speculative decoding depends on it.
   */
  passUs: number[];
  /** Passes through the model. */
  passes: number;
  /** Tokens in all passes. */
  rows: number;
  /**
   * Failures of the draft model, for lack of pages, memory or context, or because its values were not finite.
   * The output is the same without it.
   */
  draftFailed: number;
  /** Pages of the KV cache. */
  kv: KvStats;
}

/** Pages of the KV cache, and their users. */
export interface KvStats {
  /** Tokens per page. */
  pageTokens: number;
  /** Size of a page in bytes. */
  pageBytes: number;
  /** Type of the cached keys. */
  kType: KvType;
  /** Type of the cached values. */
  vType: KvType;
  /** Numbers of pages. */
  pages: {
    /** Allocated pages. */
    all: number;
    /** Pages without a user. */
    free: number;
    /** Pages still available to requests: free, only cached, or not allocated yet. */
    available: number;
    /** Pages with more than one user. */
    shared: number;
    /** Pages that only the prefix cache uses; they are evicted when needed. */
    cached: number;
    /** Largest number of used pages so far. */
    usedMax: number;
  };
  /** Memory of all groups and of recurrent states. */
  bytes: { used: number; capacity: number };
  /**
   * Layers whose keys and values have the same shape and the same sliding window (`windowTokens`, 0: none).
   * `pageBytes`, `pages` and `map` next to this member are those of the pool that keeps all positions.
   */
  groups: {
    layers: number;
    windowTokens: number;
    pageBytes: number;
    pages: { all: number; free: number };
    bytes: { used: number; capacity: number };
  }[];
  /** Recurrent states, one per slot. Null if the model has no recurrent layers. */
  states: { stateBytes: number; slots: number; free: number; cached: number } | null;
  /** Sequences that have pages. */
  sequences: number;
  /** Open sessions. */
  sessions: number;
  /** Forks so far. */
  forks: number;
  /** Shared pages that were copied before a write. */
  cowCopies: number;
  /** Pages allocated to sequences so far. */
  pagesAllocated: number;
  /** Pages that were freed so far. */
  pagesFreed: number;
  /** Values that were not finite when they were stored. */
  nonfiniteValues: number;
  /** Fragmentation of the used pages. */
  fragmentation: {
    holes: number;
    largestFreeRegion: number;
    wastedCapacity: number;
    ratio: number;
    avgTokensPerPage: number;
  };
  /** The prefix cache; null if it is off. */
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
  /** Running and waiting requests. */
  requests: { running: number; waiting: number };
  /** With `map: true`, a letter for each page: `.` free, `p` private, `s` shared, `c` only cached. */
  map?: string;
}

// ---- chat, in OpenAI's format ----

export interface ChatTextPart {
  type: 'text';
  text: string;
}

/**
 * An image: a file (a Blob, bytes, or a URL, including data URLs), an ImageBitmap, ImageData, VideoFrame, canvas, image
 * or video element, or pixels.
 */
export interface ChatImagePart {
  type: 'image';
  image: string | URL | object;
}

/** An image by its URL or data URL, in OpenAI's format. */
export interface ChatImageUrlPart {
  type: 'image_url';
  image_url: { url: string; detail?: string | null };
}

/** A recording: a file as for images, an AudioBuffer, or mono samples from -1 to 1. */
export interface ChatAudioPart {
  type: 'audio';
  audio: string | URL | object | { samples: Float32Array; sampleRate: number };
}

/** A recording in base64, in OpenAI's format. */
export interface ChatInputAudioPart {
  type: 'input_audio';
  input_audio: { data: string; format: string };
}

/** Parts that are encoded with the model's mmproj file. */
export type ChatMediaPart = ChatImagePart | ChatImageUrlPart | ChatAudioPart | ChatInputAudioPart;

export type ChatPart = ChatTextPart | ChatMediaPart;

/** A string, token ids, or an array of strings, images and recordings. */
export type Prompt = string | ArrayLike<number> | ChatPart[];

/** Parts in OpenAI's types that are rejected with UNSUPPORTED. */
export interface ChatOtherPart {
  type: 'file' | 'refusal';
}

/** A message of a conversation. */
export interface ChatMessage {
  role: 'system' | 'user' | 'assistant' | 'tool' | (string & {});
  /** Its text or parts. May be missing in a message with `tool_calls`. */
  content?: string | ChatPart[] | null;
  name?: string;
  /** The assistant's tool calls. */
  tool_calls?: ChatToolCall[] | null;
  /** The id of the call that this tool result answers. */
  tool_call_id?: string;
  /** The reasoning of an earlier turn, for templates that include it. */
  reasoning_content?: string | null;
  /** `true` in a last message from the assistant: the reply continues its content. */
  prefix?: boolean;
}

/** A message of a request. It has the fields of OpenAI's types; unsupported ones are rejected. */
export interface ChatMessageParam extends Omit<ChatMessage, 'content' | 'tool_calls'> {
  content?: string | (ChatPart | ChatOtherPart)[] | null;
  tool_calls?: (ChatToolCall | ChatCustomTool)[] | null;
}

/** JSON answers: any object, or JSON that matches a schema (GrammarOptions.jsonSchema). */
export type ResponseFormat =
  | { type: 'text' }
  | { type: 'json_object'; schema?: object }
  | {
      type: 'json_schema';
      /** `schema` is always enforced; the other members have no effect. */
      json_schema: {
        name?: string;
        description?: string;
        /** Required. */
        schema?: Record<string, unknown>;
        strict?: boolean | null;
      };
    };

export interface ChatCompletionRequest extends Abortable {
  messages: ChatMessageParam[];
  /** Accepted and ignored: an engine has one model. */
  model?: string;
  stream?: boolean | null;
  stream_options?: { include_usage?: boolean } | null;
  max_tokens?: number | null;
  max_completion_tokens?: number | null;
  /** Number of choices, 1 to 16; the prompt is processed once for all of them. */
  n?: number | null;
  /** As in GenerateOptions. */
  adapters?: AdapterUse[] | null;
  /** These three are described in GenerateOptions. */
  priority?: number | null;
  speculation?: boolean | 'always' | null;
  salt?: string | null;
  // begin request fields: generated from include/options.mjs
  /** The same seed gives the same output. -1, the default: a random seed. */
  seed?: number | bigint | null;
  /** Strings that end the output and are not part of it. */
  stop?: string | string[] | null;
  /**
   * Limit on the tokens of reasoning. At the limit the reasoning is closed and the answer follows. The tags are
   * those of the model's chat template, and the prompt may already contain the opening tag. -1, the default: no
   * limit.
   */
  thinking_budget_tokens?: number | null;
  // end request fields
  logit_bias?: Record<string | number, number> | null;
  logprobs?: boolean | null;
  /** Alternatives of each token, up to 20; needs `logprobs`. */
  top_logprobs?: number | null;
  /** Any other type is rejected with UNSUPPORTED. */
  response_format?: ResponseFormat | null;
  /** These four are described in GrammarOptions; they exclude response_format. */
  grammar?: string | null;
  json_schema?: Record<string, unknown> | string | null;
  regex?: RegExp | string | null;
  choices?: string[] | null;
  /**
   * A session for this conversation. Afterwards it contains the conversation and its reply. Tokens
   * at its start that match the prompt are not recomputed; the rest are dropped.
   */
  session?: Session | null;
  /** The following are fields of llama.cpp's server, described in SamplerOptions. */
  samplers?: SamplerName[] | null;
  dry_sequence_breakers?: string[] | null;
  // begin fields: generated from include/options.mjs
  temperature?: number | null;
  top_k?: number | null;
  top_p?: number | null;
  min_p?: number | null;
  repeat_penalty?: number | null;
  frequency_penalty?: number | null;
  presence_penalty?: number | null;
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
  mirostat?: 0 | 1 | 2 | null;
  mirostat_tau?: number | null;
  mirostat_eta?: number | null;
  adaptive_target?: number | null;
  adaptive_decay?: number | null;
  // end fields
  // begin flag fields: generated from include/options.mjs
  /** Continue after an end token. */
  ignore_eos?: boolean | null;
  /** Report logprobs of the distribution after the samplers, not the model's. */
  post_sampling_probs?: boolean | null;
  // end flag fields
  /** The tools that the model may call. Its calls arrive as `tool_calls`. */
  tools?: (ChatTool | ChatCustomTool)[] | null;
  /**
   * `auto`, the default: the model may call tools. `none`: the model does not see them. `required`, or a name
   * (`{type: 'function', function: {name}}`): it calls at least one tool, or the named one. Arguments always match
   * the tool's `parameters`; an unsupported schema is rejected with UNSUPPORTED, or not enforced with `auto`.
   */
  tool_choice?: 'auto' | 'none' | 'required' | object | null;
  /** False: at most one call. */
  parallel_tool_calls?: boolean | null;
  /** Variables for the chat template, such as `enable_thinking`. */
  chat_template_kwargs?: Record<string, unknown>;
  /**
   * The reasoning effort: sets the template variables `enable_thinking` and `reasoning_effort`,
   * unless `chat_template_kwargs` has them.
   */
  reasoning_effort?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max' | null;
  /** As in GenerateOptions. */
  logitsHook?: LogitsHook | null;
  /**
   * True: control tokens such as `<|im_end|>` in messages keep their meaning. False, the default: they are treated
   * as text, so untrusted input cannot end or begin a message.
   */
  parseSpecial?: boolean | null;
  onPrefill?: (progress: { done: number; total: number }) => void;
  /** The following are OpenAI's fields that are accepted but have no effect. */
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

/** A function that the model may call; `parameters` is a JSON schema. */
export interface ChatTool {
  type: 'function';
  function: { name: string; description?: string; parameters?: object; strict?: boolean | null };
}

/** A custom tool in OpenAI's types. It is rejected with UNSUPPORTED or ARG. */
export interface ChatCustomTool {
  id?: string;
  type: 'custom';
  custom: object;
}

/** A tool call. */
export interface ChatToolCall {
  id: string;
  type: 'function';
  /** `arguments` is a JSON object, unless the reply was cut off (`finish_reason: 'length'`). */
  function: { name: string; arguments: string };
}

export interface TokenLogprob {
  token: string;
  logprob: number;
  /** A token may contain parts of characters. */
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
      /** The model's reasoning before the answer, if the model marks it. */
      reasoning_content?: string;
      tool_calls?: ChatToolCall[];
    };
    logprobs: ChatLogprobs | null;
    finish_reason: 'stop' | 'length' | 'tool_calls';
    /** The stop string that ended it; missing after an end token. */
    stop_reason?: string;
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
      /** The first piece of a call has its id and name; the arguments arrive in pieces. */
      tool_calls?: {
        index: number;
        id?: string;
        type?: 'function';
        function: { name?: string; arguments: string };
      }[];
    };
    logprobs: ChatLogprobs | null;
    finish_reason: 'stop' | 'length' | 'tool_calls' | null;
    /** The stop string that ended it; missing after an end token. */
    stop_reason?: string;
  }[];
  usage?: ChatUsage;
  /** In the chunk that has the finish_reason. */
  timings?: Timings;
}

/** A streamed reply. Leaving the loop cancels the request. */
export interface ChatStream extends AsyncIterable<ChatCompletionChunk> {
  /** `abort()` ends the stream with an AbortError. */
  readonly controller: AbortController;
}

/** Options of one call. */
export interface ChatCallOptions extends Abortable {
  /** Milliseconds until the request ends with a TimeoutError. */
  timeout?: number | null;
}

/** The interface of standardschema.dev, with the JSON schema that some libraries provide. */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
    // biome-ignore lint/suspicious/noExplicitAny: a record of JSON schema targets, which each library types differently
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

/** The parsed answer: the output of a Standard Schema or of OpenAI's helper. */
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
    /** Null if the model called a tool. */
    message: ChatCompletion['choices'][0]['message'] & { parsed: Output | null };
  })[];
};

/** A streamed reply that emits events. `abort()`, or leaving its loop, cancels the request. */
export interface ChatCompletionStream extends AsyncIterable<ChatCompletionChunk> {
  readonly controller: AbortController;
  /**
   * @example
   * const stream = engine.chat.completions.stream({
   *   messages: [{ role: 'user', content: 'What is 2 + 2?' }],
   *   temperature: 0,
   * });
   * stream.on('content', (delta) => console.log(delta));
   * stream.on('end', () => console.log('the end'));
   * await stream.done();
   * //=> The
   * //=>  answer
   * //=>  to
   * //=>  this
   * //=>  classic
   * //=>  math
   * //=>  problem
   * //=>  is
   * //=>
   * //=> 4
   * //=> .
   * //=> the end
   */
  on(
    event: 'chunk',
    listener: (chunk: ChatCompletionChunk, snapshot: ChatCompletion) => void,
  ): this;
  on(event: 'content', listener: (delta: string, snapshot: string) => void): this;
  on(event: 'finalChatCompletion', listener: (completion: ChatCompletion) => void): this;
  on(event: 'error' | 'abort', listener: (error: unknown) => void): this;
  on(event: 'end', listener: () => void): this;
  /**
   * @example
   * const messages = [{ role: 'user', content: 'Tell me a story.' }];
   * const stream = engine.chat.completions.stream({ messages });
   * stream.on('content', () => stream.abort());
   * await stream.done().catch((error) => console.log(error.name));
   * //=> AbortError
   */
  abort(): void;
  /**
   * @example
   * const messages = [{ role: 'user', content: 'What is 2 + 2?' }];
   * const stream = engine.chat.completions.stream({ messages, max_tokens: 3, temperature: 0 });
   * stream.on('content', (delta, snapshot) => console.log(snapshot));
   * await stream.done();
   * //=> The
   * //=> The answer
   * //=> The answer to
   */
  done(): Promise<void>;
  /**
   * @example
   * const messages = [{ role: 'user', content: 'What is 2 + 2?' }];
   * const stream = engine.chat.completions.stream({ messages, temperature: 0 });
   * const { object, choices } = await stream.finalChatCompletion();
   * console.log(object, choices[0].finish_reason);
   * //=> chat.completion stop
   */
  finalChatCompletion(): Promise<ChatCompletion>;
  /**
   * @example
   * const messages = [{ role: 'user', content: 'What is 2 + 2?' }];
   * console.log(await engine.chat.completions.stream({ messages, temperature: 0 }).finalMessage());
   * //=> {
   * //=>   role: 'assistant',
   * //=>   content: 'The answer to this classic math problem is 4.',
   * //=>   refusal: null
   * //=> }
   */
  finalMessage(): Promise<ChatCompletion['choices'][0]['message']>;
  /**
   * @example
   * const messages = [{ role: 'user', content: 'What is 2 + 2?' }];
   * console.log(await engine.chat.completions.stream({ messages, temperature: 0 }).finalContent());
   * //=> The answer to this classic math problem is 4.
   */
  finalContent(): Promise<string>;
  /**
   * @example
   * const messages = [{ role: 'user', content: 'What is 2 + 2?' }];
   * const stream = engine.chat.completions.stream({ messages, temperature: 0 });
   * const { prompt_tokens, completion_tokens } = await stream.totalUsage();
   * console.log(prompt_tokens, completion_tokens);
   * //=> 38 11
   */
  totalUsage(): Promise<ChatUsage>;
}

/** Chat completions with OpenAI's request and response format. */
export interface ChatCompletions {
  /**
   * Returns a reply, or with `stream: true` a stream of chunks.
   *
   * @example
   * const { choices } = await engine.chat.completions.create({
   *   messages: [{ role: 'user', content: 'What is 2 + 2?' }],
   *   temperature: 0,
   * });
   * console.log(choices[0].message.content);
   * //=> The answer to this classic math problem is 4.
   */
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
  /**
   * Reads the stream automatically and emits events, like the helper of the same name in
   * openai-node.
   *
   * @example
   * const messages = [{ role: 'user', content: 'What is 2 + 2?' }];
   * const stream = engine.chat.completions.stream({ messages, max_tokens: 4, temperature: 0 });
   * for await (const { choices } of stream) {
   *   for (const { delta } of choices) console.log(delta);
   * }
   * //=> { role: 'assistant', content: '' }
   * //=> { content: 'The' }
   * //=> { content: ' answer' }
   * //=> { content: ' to' }
   * //=> { content: ' this' }
   * //=> {}
   */
  stream(
    body: Omit<ChatCompletionRequest, 'stream'> & { stream?: true },
    options?: ChatCallOptions,
  ): ChatCompletionStream;
  /**
   * Returns a reply that is JSON and matches a schema: a Standard Schema with a JSON schema (zod 4.2 and
   * others), or a response_format, including those from OpenAI's helpers. Rejects with INCOMPLETE if the
   * reply was cut off, and with INVALID if the schema's validation fails.
   *
   * @example
   * const schema = {
   *   type: 'object',
   *   properties: { city: { type: 'string' }, country: { type: 'string' } },
   *   required: ['city', 'country'],
   * };
   * const { choices } = await engine.chat.completions.parse({
   *   messages: [{ role: 'user', content: 'Where is the Eiffel Tower?' }],
   *   response_format: { type: 'json_schema', json_schema: { name: 'place', schema } },
   *   temperature: 0,
   * });
   * console.log(choices[0].message.parsed);
   * //=> { city: 'Paris', country: 'France' }
   */
  parse<Format>(
    body: ParseRequest<Format>,
    options?: ChatCallOptions,
  ): Promise<ParsedCompletion<Parsed<Format>>>;
}

// ---- a chat: messages and a session that caches them ----

/** The beginning of a conversation, and fields of ChatCompletionRequest for all turns. */
export interface ChatOptions
  extends Omit<
    ChatCompletionRequest,
    'messages' | 'session' | 'stream' | 'stream_options' | 'n' | 'signal' | 'onPrefill'
  > {
  /** The system prompt, as the first message. */
  system?: string;
  /** The conversation so far; not with `system`. */
  messages?: ChatMessage[];
}

/** Fields of one turn, which override those of createChat. */
export interface ChatTurnOptions
  extends Omit<ChatOptions, 'system' | 'messages' | 'salt'>,
    ChatCallOptions {
  onPrefill?: (progress: { done: number; total: number }) => void;
}

/** The result of a turn. */
export interface ChatReplyResult {
  /** The message that was added to the history. */
  message: ChatMessage;
  finishReason: 'stop' | 'length' | 'tool_calls' | 'abort';
  /** `cachedTokens`: tokens that the chat had processed before. */
  usage: { promptTokens: number; completionTokens: number; cachedTokens: number };
  /** Undefined after an abort. */
  timings: Timings | undefined;
}

/**
 * A turn's reply. It starts when it is read, which is possible only once, in one of these ways. When it
 * ends, it is added to the history; an abandoned or aborted reply keeps the part that was generated. After
 * an error, or an empty reply, the history is unchanged.
 */
export interface ChatReply extends AsyncIterable<string> {
  /** The content as it arrives. */
  [Symbol.asyncIterator](): AsyncGenerator<string, void, void>;
  /** Returns the chunks as chat.completions streams them, with reasoning and tool calls.
   *
   * @example
   * const chat = await engine.createChat({ temperature: 0, max_tokens: 3 });
   * for await (const { choices } of chat.send('What is 2 + 2?').chunks()) {
   *   for (const { delta } of choices) console.log(delta);
   * }
   * //=> { role: 'assistant', content: '' }
   * //=> { content: 'The' }
   * //=> { content: ' answer' }
   * //=> { content: ' to' }
   * //=> {}
   */
  chunks(): AsyncGenerator<ChatCompletionChunk, void, void>;
  /** Returns the whole content.
   *
   * @example
   * const chat = await engine.createChat({ temperature: 0 });
   * const reply = chat.send('What is 2 + 2?');
   * console.log(await reply.text());
   * console.log(reply.result.finishReason, reply.result.usage);
   * //=> The answer to this classic math problem is 4.
   * //=> stop { promptTokens: 38, completionTokens: 11, cachedTokens: 32 }
   */
  text(): Promise<string>;
  /** Returns the whole message, with reasoning and tool calls.
   *
   * @example
   * const chat = await engine.createChat({ temperature: 0 });
   * console.log(await chat.send('What is 2 + 2?').message());
   * //=> {
   * //=>   role: 'assistant',
   * //=>   content: 'The answer to this classic math problem is 4.'
   * //=> }
   */
  message(): Promise<ChatMessage>;
  /** Set when the reply has ended without an error. */
  readonly result: ChatReplyResult | undefined;
}

/** A conversation and the session that caches it. */
export interface Chat {
  /**
   * Sends a user's text, a message, or several (such as tool results). Without content, the model answers the
   * current conversation. One turn runs at a time (a second one is rejected with BUSY).
   *
   * @example
   * const chat = await engine.createChat({ temperature: 0 });
   * for await (const piece of chat.send('What is 2 + 2?')) console.log(piece);
   * console.log(chat.history.map(({ role }) => role));
   * //=> The
   * //=>  answer
   * //=>  to
   * //=>  this
   * //=>  classic
   * //=>  math
   * //=>  problem
   * //=>  is
   * //=>
   * //=> 4
   * //=> .
   * //=> [ 'user', 'assistant' ]
   */
  send(content?: string | ChatMessage | ChatMessage[], options?: ChatTurnOptions): ChatReply;
  /** A copy of the messages. */
  readonly history: ChatMessage[];
  /**
   * Replaces the content of a message, or removes the message if there is no content. Later messages are
   * dropped.
   *
   * @example
   * const chat = await engine.createChat({ temperature: 0 });
   * await chat.send('What is 2 + 2?').text();
   * chat.edit(0, 'Where is the Eiffel Tower?'); // drops the answer
   * console.log(await chat.send().text());
   * //=> The Eiffel Tower is located in Paris, France, France.
   */
  edit(index: number, content?: string): void;
  /**
   * Returns a copy of the conversation, which shares all pages.
   *
   * @example
   * const chat = await engine.createChat({ temperature: 0, max_tokens: 8 });
   * await chat.send('My name is Ada.').text();
   * const fork = await chat.fork();
   * await fork.send('What is my name?').text();
   * console.log(chat.history.length, fork.history.length);
   * //=> 2 4
   */
  fork(): Promise<Chat>;
  /**
   * Returns the number of tokens of the conversation, with an optional next message.
   *
   * @example
   * const chat = await engine.createChat({ system: 'Answer briefly.' });
   * console.log(await chat.countTokens(), await chat.countTokens('What is 2 + 2?'));
   * //=> 12 25
   */
  countTokens(content?: string | ChatMessage | ChatMessage[]): Promise<number>;
  /**
   * Returns the history and its KV state as bytes, for loadChat. Settings are not included.
   *
   * @example
   * const chat = await engine.createChat({ temperature: 0, max_tokens: 8 });
   * await chat.send('My name is Ada.').text();
   * const restored = await engine.loadChat(await chat.save());
   * console.log(restored.history[0]);
   * //=> { role: 'user', content: 'My name is Ada.' }
   */
  save(): Promise<Uint8Array<ArrayBuffer>>;
  /**
   * Ends a running turn and frees the memory. May be called more than once.
   *
   * @example
   * const chat = await engine.createChat();
   * await chat.close();
   * await chat.send('Hello!').text().catch((error) => console.log(error.code));
   * //=> SEQ
   */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

// ---- the engine ----

export interface SpecialToken {
  id: number;
  text: string;
}

/** The model, and how the engine runs it. */
export interface EngineInfo {
  /** `general.architecture` of the file. */
  architecture: string | null;
  /** `general.name` of the file. */
  name: string | null;
  /** Sizes of the model. */
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
  /** The context size: tokens of prompt and answer together. */
  contextSize: number;
  /** The tokenizer; null if the file has none. */
  tokenizer: {
    model: string | null;
    pre: string | null;
    vocab: number;
    bos: SpecialToken | null;
    eos: SpecialToken | null;
    /** Ids of all tokens that end an answer. */
    ends: number[];
    addsBos: boolean;
    addsEos: boolean;
    /** Fill-in-the-middle tokens; missing if the vocabulary has none. */
    infill?: Record<
      'prefix' | 'suffix' | 'middle' | 'repository' | 'separator',
      SpecialToken | null
    >;
  } | null;
  /** The chat template (Jinja), from the `chatTemplate` option or from the model. */
  chatTemplate: string | null;
  /** Tensors and bytes of each type in the file. */
  types: Record<string, { tensors: number; bytes: number }>;
  /** Hash of all bytes that were loaded, hexadecimal. */
  fingerprint: string | null;
  /** Number of compute threads. Helper threads that have not started yet are not counted. */
  threads: number;
  /**
   * The number of threads used for a single token, and for a part of a prompt. If `threads` was not
   * set, these are the numbers that were measured to be fastest.
   */
  threadsUsed: { decode: number; prefill: number };
  /**
   * The kernels in use: `simd128` or `relaxed`, with a suffix for the variant chosen for this
   * processor.
   */
  kernels: string;
  /**
   * How sums of floats are rounded. Hosts in the same group compute the same bits, so a seed gives the same
   * output. `relaxed`: hosts with relaxed SIMD; `plain`: others.
   */
  rounding: 'plain' | 'relaxed';
  /**
   * With `shared`: whether the engine is in this tab (`leader`) or in a different one (`follower`).
   */
  sharing: 'none' | 'leader' | 'follower';
  /** Type of the cached keys. */
  kType: KvType;
  /** Type of the cached values. */
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
    /** Tables that stay in the file (`tables`). They are not in the total. */
    outsideBytes: number;
    kvPageBytes: number;
  } | null;
  /** With `mmproj`: the kinds of media that messages may contain in addition to text. */
  media: ('image' | 'audio')[];
  /** With `mmproj`: the memory of its encoders in bytes, in addition to `plan`, planned before their weights are read. */
  mediaPlan: {
    weightsBytes: number;
    /** Needed while the largest image, of 2^28 pixels, is resized. */
    prepareBytes: number;
    /** Needed while the largest input that fits in the context is encoded. */
    encodeBytes: number;
    /** Limit on the cached rows of images and recordings. */
    cacheBytes: number;
    totalBytes: number;
  } | null;
  /** With `directoryOnly`: the reason if the model cannot run. */
  error: { status: string; message: string; offsetBytes: number | null } | null;
  /** The memory of this engine, in bytes. */
  memory: {
    /** WebAssembly's linear memory. It does not shrink until close(). */
    linearBytes: number;
    usedBytes: number;
    peakBytes: number;
    /**
     * The memory limit; a model that needs more is rejected. It is memoryLimit, or the memory that
     * the host can provide if that is less.
     */
    limitBytes: number;
    /**
     * The maximum for an engine on this host: limitBytes, or 16 GiB if the host supports memory with 64-bit addresses. A
     * model that needs more than 4 GiB runs in such a memory.
     */
    mostBytes: number;
    /** The number of allocations since the engine was created; decoding does not allocate. */
    allocations: number;
  };
}

export interface MediaCost {
  /** Number of prompt tokens that it takes up: its rows and the tokens around them. */
  tokens: number;
  /** The number of rows that are computed from it. */
  rows: number;
  /**
   * The number of tiles that an image is split into, including its overview, or of pieces of a
   * recording.
   */
  tiles: number;
  /** Multiply-adds of the encoder. */
  macs: number;
  /** The memory needed while it is encoded, in bytes. */
  encodeBytes: number;
  /**
   * The estimated encoding time, based on the rate of earlier encodings, or on 40 billion
   * multiply-adds per second and thread before the first one.
   */
  seconds: number;
}

export interface OpMetrics {
  count: number;
  /** The number of timed passes: every prefill, and one decoding pass in four. */
  timed: number;
  /** The total of the timed passes. */
  time_us: number;
  latency_us: Record<'mean' | 'min' | 'max' | 'stddev' | 'p50' | 'p95' | 'p99', number>;
  /** Bytes of weights, KV cache, or activations that the op has to read and write. */
  bytes: number;
  /** Multiply-adds of matrix products. */
  macs: number;
  /** Null if the measured time is 0. */
  gb_per_s: number | null;
  gmac_per_s: number | null;
  /** Its share of the time of all passes of the same kind. */
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
  /** Missing in `cpu` and `gpu`, which are sums of lanes. */
  latency_count?: number;
  latency_us_sum?: number;
  /** Cumulative counts by inclusive upper bounds. */
  latency_us_le?: Record<string, number>;
}

export interface EngineMetrics {
  elapsed_s: number;
  /** Resolution of the clock. Individual latencies below it are unreliable, but sums are not. */
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

/** Metadata and tensors of the file. */
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
    /** Whether the model runs without it. */
    unread?: true;
  }[];
  info: Record<string, unknown>;
}

export interface TokenizeOptions extends Abortable {
  /** Adds BOS and EOS as the model requires; true by default. */
  addSpecial?: boolean;
  /** Whether control tokens in the text become their ids; true by default. */
  parseSpecial?: boolean;
}

/** Fields of ChatCompletionRequest that change the prompt; `variables` are its `chat_template_kwargs`. */
export interface CountOptions extends Abortable {
  tools?: ChatTool[] | null;
  /** With 'none', the prompt contains no tools. */
  tool_choice?: ChatCompletionRequest['tool_choice'];
  reasoning_effort?: ChatCompletionRequest['reasoning_effort'];
  variables?: Record<string, unknown>;
  parseSpecial?: boolean;
}

// ---- embeddings ----

/** An adapter that a request selects: scale 1, the default, applies it as trained; 0 disables it. */
export interface AdapterUse {
  name: string;
  scale?: number;
}

/** A loaded adapter. */
export interface AdapterInfo {
  name: string;
  /** Number of model tensors that it changes. */
  tensors: number;
  /** The largest rank of its tensors. */
  rank: number;
  alpha: number | null;
  /** Number of requests and calls of embed that currently use it. */
  users: number;
  bytes: number;
}

export interface AddAdapterOptions extends Abortable {
  /** The name that requests use; it is unique. */
  name: string;
}

/** LoRA adapters from GGUF files, which requests select. */
export interface Adapters {
  /**
   * Loads an adapter for the loaded model.
   *
   * @example
   * await engine.adapters.add({ file: 'pirate-lora.gguf' }, { name: 'pirate' });
   * const options = { adapters: [{ name: 'pirate', scale: 0.8 }] };
   * console.log(await engine.generate('Hello', options).text());
   */
  add(source: ModelSource, options: AddAdapterOptions): Promise<AdapterInfo>;
  /**
   * Frees its memory. Rejects with BUSY while a running or waiting request uses it.
   *
   * @example
   * await engine.adapters.remove('pirate').catch((error) => console.log(error.code));
   * //=> ARG
   */
  remove(name: string): Promise<void>;
  /** Returns the loaded adapters.
   *
   * @example
   * console.log(await engine.adapters.list());
   * //=> []
   */
  list(): Promise<AdapterInfo[]>;
}

export interface EmbedOptions extends Abortable {
  /** Adapters that are applied to all inputs. */
  adapters?: AdapterUse[] | null;
  /**
   * How the vectors of an input's tokens are combined. 'model' (default): as the file specifies, otherwise the mean,
   * or for causal models the last token. 'none': the vectors of all tokens, concatenated. 'rank': the scores of a
   * reranker or classifier.
   */
  pooling?: 'model' | 'none' | 'mean' | 'cls' | 'last' | 'rank';
  /** Whether vectors are normalized to length 1; true by default. Scores never are. */
  normalize?: boolean;
  /** Truncates vectors to this many values before they are normalized. */
  dimensions?: number;
  /** Prepended to each input, as the model was trained for queries or documents. */
  prefix?: string;
  /**
   * Truncates inputs that exceed the context, but keeps their last token. By default they are
   * rejected.
   */
  truncate?: boolean;
}

export interface ClassifyOptions extends Abortable {
  /**
   * The text before the input and the labels. A model with a classification head receives only the
   * input.
   */
  instructions?: string;
  /**
   * For a model with a head: truncates an input that exceeds its context. By default the call
   * rejects with PROMPT_TOO_LONG.
   */
  truncate?: boolean;
  salt?: string;
}

/** Labels with their probabilities, which add up to 1, the most probable label first. */
export type Classification = { label: string; score: number }[];

export interface ExtractOptions extends Abortable {
  /** The text before the schema and the input. */
  instructions?: string;
  /** 1024 by default. If the record needs more, the call rejects with INCOMPLETE. */
  maxTokens?: number;
  /** 0 by default: the most probable record. */
  temperature?: number;
  seed?: number;
  salt?: string;
}

/** Functions that the model may call, by name. */
export type ToolSet = Record<
  string,
  {
    /** Its description, for the model. */
    description?: string;
    /** The JSON schema of its argument, an object. Without it, the tool takes no argument. */
    schema?: object;
    /**
     * Called with the parsed arguments. Its return value, converted to JSON unless it is a string,
     * is the result that the model receives.
     */
    run(
      argument: Record<string, unknown>,
      call: { id: string; name: string; signal?: AbortSignal | null },
    ): unknown;
  }
>;

export interface RunToolsOptions
  extends Omit<ChatCompletionRequest, 'tools' | 'stream' | 'stream_options' | 'n'> {
  tools: ToolSet;
  /**
   * Limit on the replies of the model; 8 by default. The call rejects with TOOL_ROUNDS if the model
   * would need more.
   */
  maxRounds?: number;
  /**
   * Whether an exception thrown by a tool rejects the call. By default the model receives its message
   * as the result.
   */
  throwErrors?: boolean;
}

export interface RunToolsResult {
  /** The last reply, which contains no calls. */
  message: ChatCompletion['choices'][0]['message'];
  /** The whole conversation, with the calls and their results. */
  messages: ChatMessageParam[];
  finish_reason: 'stop' | 'length';
  /** Number of replies. */
  rounds: number;
  /** The total tokens of all replies. */
  usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
}

export interface RerankOptions extends Abortable {
  /** The number of results; all by default. */
  topN?: number;
  /** Truncates pairs that exceed the context; false by default: they are rejected. */
  truncate?: boolean;
}

export interface Ranking {
  /**
   * The results, best first. `score` is the first output of the model's head. `probability` is from 0 to 1:
   * the sigmoid of the score, or the score itself if the model returns probabilities.
   */
  results: { index: number; score: number; probability: number }[];
  /** The total tokens of all pairs. */
  tokens: number;
}

/** OpenAI's request. Token ids are accepted instead of strings. */
export interface EmbeddingRequest extends Abortable {
  input: string | number[] | (string | number[])[];
  dimensions?: number | null;
  encoding_format?: 'float' | 'base64';
  model?: string;
  user?: string;
}

/** OpenAI's response. */
export interface EmbeddingList {
  object: 'list';
  model: string;
  /** `embedding` is an array of numbers, or base64 of little-endian float32. */
  data: { object: 'embedding'; index: number; embedding: number[] | string }[];
  usage: { prompt_tokens: number; total_tokens: number };
}

/** One model in a worker. Any number of calls run at the same time. */
export interface Engine {
  /**
   * Continues a prompt. The generation starts when it is read.
   *
   * @example
   * const options = { maxTokens: 2, temperature: 0 };
   * for await (const piece of engine.generate('The capital of France is', options)) {
   *   console.log(piece);
   * }
   * //=>  Paris
   * //=> .
   */
  generate(prompt: Prompt, options?: GenerateOptions): Generation;
  /** Chat completions with OpenAI's request and response format. */
  readonly chat: { readonly completions: ChatCompletions };
  /**
   * Returns a vector for each input, which does not depend on the other inputs. Encoders do not support
   * calls that generate text.
   *
   * @example
   * const vectors = await engine.embed(['a small cat', 'a little kitten']);
   * console.log(vectors.length, vectors[0].length);
   * //=> 2 576
   */
  embed(
    texts: string | ArrayLike<number> | (string | ArrayLike<number>)[],
    options?: EmbedOptions,
  ): Promise<Float32Array[]>;
  /**
   * Ranks documents by their relevance to a query. Needs a model with a ranking head; others reject with UNSUPPORTED.
   *
   * @example
   * const documents = ['The sky is blue.', 'Pandas eat bamboo.'];
   * const { results } = await engine.rerank('What do pandas eat?', documents);
   * console.log(documents[results[0].index], results[0].score);
   */
  rerank(query: string, documents: string[], options?: RerankOptions): Promise<Ranking>;
  /**
   * Returns the labels with their probabilities. A model with a head gives a score for each label, in the
   * head's order. With any other model that generates text, the score is the probability of the label as its
   * answer.
   *
   * @example
   * const question = 'Is this review positive or negative? "What a wonderful film!"';
   * const [best] = await engine.classify(question, ['positive', 'negative']);
   * console.log(best.label);
   * //=> positive
   */
  classify(text: string, labels: string[], options?: ClassifyOptions): Promise<Classification>;
  /**
   * Extracts a record from a text: returns the most probable JSON that matches a schema, parsed.
   *
   * @example
   * const schema = {
   *   type: 'object',
   *   properties: { name: { type: 'string' }, city: { type: 'string' } },
   *   required: ['name', 'city'],
   * };
   * console.log(await engine.extract('My name is Tom, and I live in Paris.', schema));
   * //=> { name: 'Tom', city: 'Paris' }
   */
  extract<T = unknown>(
    text: string,
    schema: GrammarOptions['jsonSchema'],
    options?: ExtractOptions,
  ): Promise<T>;
  /**
   * Prompts the model, runs the tools that it calls and adds their results, until it answers.
   *
   * @example
   * const tools = {
   *   time: {
   *     description: 'The time in a city.',
   *     schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
   *     run: ({ city }) => `It is 10:24 in ${city}.`,
   *   },
   * };
   * const messages = [{ role: 'user', content: 'What time is it in Oslo?' }];
   * const options = { tool_choice: 'required', temperature: 0 }; // small models rarely call one otherwise
   * const { messages: all } = await engine.runTools({ messages, tools, ...options });
   * console.log(all.find(({ role }) => role === 'tool').content);
   * //=> It is 10:24 in Oslo.
   */
  runTools(options: RunToolsOptions): Promise<RunToolsResult>;
  /** LoRA adapters of this engine. */
  readonly adapters: Adapters;
  /** Embeddings with OpenAI's request and response format. */
  readonly embeddings: {
    /**
     * Returns one vector for each input, as numbers or base64.
     *
     * @example
     * const { data } = await engine.embeddings.create({ input: ['a small cat', 'a little kitten'] });
     * console.log(data.map(({ index, embedding }) => [index, embedding.length]));
     * //=> [ [ 0, 576 ], [ 1, 576 ] ]
     */
    create(body: EmbeddingRequest, call?: Abortable): Promise<EmbeddingList>;
  };
  /**
   * Returns the token ids of a text.
   *
   * @example
   * console.log(await engine.tokenize('Hello there'));
   * //=> [ 19556, 665 ]
   */
  tokenize(text: string, options?: TokenizeOptions): Promise<number[]>;
  /** Returns the token ids of a conversation's prompt. */
  tokenize(messages: ChatMessageParam[], options?: CountOptions): Promise<number[]>;
  /**
   * Returns the text of tokens. With `special`, special tokens are written as text, too.
   *
   * @example
   * console.log(await engine.detokenize([19556, 665]));
   * //=> Hello there
   */
  detokenize(
    tokens: ArrayLike<number>,
    options?: { special?: boolean } & Abortable,
  ): Promise<string>;
  /**
   * Returns the bytes of each token, which may end within a character.
   *
   * @example
   * const pieces = await engine.tokenBytes([19556, 665]);
   * console.log(pieces.map((bytes) => bytes.length));
   * //=> [ 5, 6 ]
   */
  tokenBytes(tokens: ArrayLike<number>, options?: Abortable): Promise<Uint8Array[]>;
  /**
   * Returns the number of tokens of a text.
   *
   * @example
   * console.log(await engine.countTokens('Hello there'));
   * console.log(await engine.countTokens([{ role: 'user', content: 'Hello there' }]));
   * //=> 2
   * //=> 32
   */
  countTokens(text: string, options?: TokenizeOptions): Promise<number>;
  /** Returns the number of tokens of a conversation's prompt. */
  countTokens(messages: ChatMessageParam[], options?: CountOptions): Promise<number>;
  /**
   * Decodes an image or a recording once, for several requests: the returned part contains pixels or samples and is not
   * affected by later changes to a canvas or to bytes.
   *
   * @example
   * const image = { width: 1, height: 1, data: new Uint8Array([255, 0, 0]) };
   * const part = await engine.decodeMedia({ type: 'image', image });
   * console.log(part.image);
   * //=> { width: 1, height: 1, data: Uint8Array(3) [ 255, 0, 0 ] }
   */
  decodeMedia(part: ChatImagePart | ChatImageUrlPart): Promise<{
    type: 'image';
    image: { width: number; height: number; data: Uint8Array };
  }>;
  decodeMedia(part: ChatAudioPart | ChatInputAudioPart): Promise<{
    type: 'audio';
    audio: { samples: Float32Array; sampleRate: number };
  }>;
  /**
   * Returns the cost of an image or a recording before it is encoded.
   *
   * @example
   * const part = { type: 'image', image: 'https://example.com/receipt.png' };
   * const { tokens, tiles, seconds } = await engine.mediaCost(part);
   * console.log(`${tokens} tokens, ${tiles} tiles, ${seconds.toFixed(1)} s`);
   */
  mediaCost(part: Exclude<ChatPart, ChatTextPart>): Promise<MediaCost>;
  /**
   * Creates a conversation that keeps its KV cache, so each turn processes only the new
   * messages.
   *
   * @example
   * const chat = await engine.createChat({ temperature: 0 });
   * await chat.send('What is 2 + 2?').text();
   * console.log(chat.history);
   * //=> [
   * //=>   { role: 'user', content: 'What is 2 + 2?' },
   * //=>   {
   * //=>     role: 'assistant',
   * //=>     content: 'The answer to this classic math problem is 4.'
   * //=>   }
   * //=> ]
   */
  createChat(options?: ChatOptions): Promise<Chat>;
  /**
   * Restores the output of a chat's `save`. With a different model or KV type, the conversation is
   * recomputed; damaged bytes are rejected (CORRUPT, TRUNCATED, FORMAT).
   *
   * @example
   * const chat = await engine.createChat({ temperature: 0, max_tokens: 8 });
   * await chat.send('My name is Ada.').text();
   * const bytes = await chat.save(); // keep them where the program keeps its files
   * const restored = await engine.loadChat(bytes, { temperature: 0 });
   * console.log(restored.history.length);
   * //=> 2
   */
  loadChat(
    bytes: Blob | ArrayBuffer | Uint8Array,
    options?: Omit<ChatOptions, 'system' | 'messages'>,
  ): Promise<Chat>;
  /**
   * Returns the conversation as the prompt that chat.completions would continue.
   *
   * @example
   * const messages = [
   *   { role: 'system', content: 'Answer briefly.' },
   *   { role: 'user', content: 'Hello!' },
   * ];
   * console.log(await engine.applyTemplate(messages));
   * //=> <|im_start|>system
   * //=> Answer briefly.<|im_end|>
   * //=> <|im_start|>user
   * //=> Hello!<|im_end|>
   * //=> <|im_start|>assistant
   * //=>
   */
  applyTemplate(
    messages: ChatMessageParam[],
    options?: { addGenerationPrompt?: boolean; variables?: Record<string, unknown> } & Abortable,
  ): Promise<string>;
  /**
   * Returns the model's dimensions, the memory plan, threads, kernels and sharing.
   *
   * @example
   * const { architecture, shape, contextSize } = await engine.info();
   * console.log(architecture, shape.parameters, contextSize);
   * //=> llama 134515008 2048
   */
  info(): Promise<EngineInfo>;
  /**
   * Returns metadata and tensors, as `wick inspect --json` prints them.
   *
   * @example
   * const { metadata, tensors } = await engine.inspect();
   * console.log(metadata.find(({ key }) => key === 'general.name').value);
   * console.log(tensors.length, tensors[0].name, tensors[0].type);
   * //=> Smollm2 135M 8k Lc100K Mix1 Ep2
   * //=> 272 token_embd.weight Q8_0
   */
  inspect(): Promise<ModelInspection>;
  /**
   * Returns the time that the ops of the forward passes took since the start, or since the last
   * call with `reset`; rejects with NODATA unless the engine was created with `metrics: true`.
   *
   * @example
   * const measured = await createEngine({ url: modelUrl, metrics: true });
   * await measured.generate('Once', { maxTokens: 4 }).text();
   * const { passes } = await measured.metrics();
   * console.log(passes.decode.attention.count > 0);
   * await measured.close();
   * //=> true
   */
  metrics(options?: { format?: 'json'; reset?: boolean } & Abortable): Promise<EngineMetrics>;
  /** Returns the metrics in Prometheus' text format 0.0.4. */
  metrics(options: { format: 'prometheus'; reset?: boolean } & Abortable): Promise<string>;
  /**
   * Creates a session: text that continues from call to call. Its requests, forks and saved states
   * have its `salt`.
   *
   * @example
   * const session = await engine.createSession();
   * console.log(await session.append('Once upon a time'));
   * //=> { tokens: 4, cachedTokens: 0 }
   */
  createSession(options?: { salt?: string | null } & Abortable): Promise<Session>;
  /**
   * Returns the prefix cache as bytes, for an engine with the same model. With `to`, it is also stored
   * there: a path (Node, Deno) or a name in the origin private file system.
   *
   * @example
   * await engine.generate('Once upon a time, there was a fox. '.repeat(4), { maxTokens: 1 }).text();
   * const bytes = await engine.saveState();
   * console.log(bytes.length > 0, (await engine.loadState(bytes)).session);
   * //=> true undefined
   */
  saveState(to?: string): Promise<Uint8Array<ArrayBuffer>>;
  /**
   * Restores the output of saveState or of a session's `save`, from a path, a name or bytes. A state from a
   * different model or KV type is rejected (MISMATCH), and so is a damaged state (CORRUPT, TRUNCATED, FORMAT).
   *
   * @example
   * const session = await engine.createSession();
   * await session.append('Once upon a time');
   * const { session: copy } = await engine.loadState(await session.save());
   * console.log(await copy.tokens());
   * //=> [ 6403, 1980, 253, 655 ]
   */
  loadState(
    from: string | Blob | ArrayBuffer | Uint8Array,
  ): Promise<{ session: Session | undefined; entries: number }>;
  /**
   * Returns the pages of the KV cache, their users, and the running requests.
   *
   * @example
   * const session = await engine.createSession();
   * await session.append('Once upon a time');
   * const { pageTokens, bytes } = await engine.kvStats();
   * console.log(pageTokens, bytes.used > 0);
   * //=> 16 true
   */
  kvStats(options?: { map?: boolean }): Promise<KvStats>;
  /**
   * Returns the number of tokens of a conversation's prompt, and its pages in the prefix cache, as indexes into
   * kvStats' map. Does not run the model.
   *
   * @example
   * const messages = [{ role: 'user', content: 'Tell me about the Eiffel Tower.' }];
   * await engine.chat.completions.create({ messages, max_tokens: 1 });
   * const { tokens, pages } = await engine.findPages(messages);
   * console.log(tokens, pages.length);
   * //=> 38 2
   */
  findPages(
    messages: ChatMessageParam[],
    options?: CountOptions,
  ): Promise<{ tokens: number; pages: number[] }>;
  /**
   * Returns several continuations of one prompt, which is processed once. They share its pages, and start when
   * the first of them is read. Leaving one (`break`, `return()`) frees its pages. A continuation that is not
   * read pauses after 256 pieces and is cancelled when it is garbage-collected, so leave it explicitly.
   *
   * @example
   * const options = { n: 2, maxTokens: 4, seed: 1 };
   * const texts = engine.generateMany('My favourite colour is', options).map((one) => one.text());
   * console.log(await Promise.all(texts));
   * //=> [ " blue. I've", ' a vibrant emerald' ]
   */
  generateMany(
    prompt: string | ArrayLike<number>,
    options?: GenerateOptions & { n?: number },
  ): Generation[];
  /**
   * Returns the most likely continuations that a beam search finds, best first.
   *
   * @example
   * const beams = await engine.beamSearch('The capital of France is', { width: 2, maxTokens: 2 });
   * for (const { text, logprob } of beams) console.log(text, logprob.toFixed(1));
   * //=>  Paris. -0.7
   * //=>  Paris, -1.8
   */
  beamSearch(prompt: string | ArrayLike<number>, options?: BeamSearchOptions): Promise<Beam[]>;
  /**
   * Returns `n` (default 4) sampled continuations, the one with the highest mean logprob first.
   *
   * @example
   * const [best] = await engine.bestOf('The capital of France is', { n: 3, maxTokens: 2, seed: 1 });
   * console.log(best.text);
   * //=>  Paris.
   */
  bestOf(
    prompt: string | ArrayLike<number>,
    options?: GenerateOptions & { n?: number },
  ): Promise<Beam[]>;
  /**
   * Returns counters of requests, tokens and pages.
   *
   * @example
   * const { requests, kv } = await engine.stats();
   * console.log(requests.running, kv.pageTokens);
   * //=> 0 16
   */
  stats(options?: { format?: 'json' }): Promise<EngineStats>;
  /** Returns these counters in Prometheus' text format. */
  stats(options: { format: 'prometheus' }): Promise<string>;
  /**
   * Terminates the workers and frees the memory. May be called more than once.
   *
   * @example
   * const engine = await createEngine({ url: modelUrl });
   * await engine.close();
   * await engine.generate('Once').text().catch((error) => console.log(error.code));
   * //=> CLOSED
   */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** docs/js-api.md explains the codes. */
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

/**
 * The only error class. Aborted work rejects with a DOMException named AbortError instead.
 *
 * @example
 * try {
 *   await createEngine({ url: modelUrl, threads: 0 });
 * } catch (error) {
 *   console.log(error instanceof WickError, error.code);
 * }
 * //=> true ARG
 */
export class WickError extends Error {
  constructor(code: WickErrorCode, message: string, cause?: unknown);
  readonly name: 'WickError';
  readonly code: WickErrorCode;
  readonly cause?: unknown;
}
