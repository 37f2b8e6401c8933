// The public types of wick-llm/edge.

export type Engine = import('./index.js').Engine;
type EngineOptions = import('./index.js').EngineOptions;

export declare const WickError: typeof import('./index.js').WickError;
export type WickError = import('./index.js').WickError;

/**
 * Reads bytes of the model: at most `length` of them from `offset`, fewer only at the end of the file. A
 * Response or an R2 object (`bucket.get(key, { range: { offset, length } })`) is read to its end.
 */
export type ReadRange = (
  offset: number,
  length: number,
) => Promise<Uint8Array | ArrayBuffer | { arrayBuffer(): Promise<ArrayBuffer> } | null>;

/** The source of the model: `bytes`, `range`, `stream`, `url`, `file` or `blob`. */
export interface EdgeModel
  extends Pick<
    EngineOptions,
    | 'url'
    | 'file'
    | 'blob'
    | 'stream'
    | 'headers'
    | 'fetch'
    | 'retries'
    | 'stallMs'
    | 'signal'
    | 'onProgress'
  > {
  /** The whole file. It occupies JavaScript memory in addition to the engine's memory. */
  bytes?: Uint8Array | ArrayBuffer;
  /** A function that reads the file in pieces of 4 MiB. */
  range?: ReadRange;
  /**
   * The mmproj file of a model for images or audio, from the same kinds of sources as the model. It is kept in JavaScript's
   * memory until its encoders are loaded. Messages may then contain images and recordings (`info().media`).
   */
  mmproj?: string | URL | Blob | Uint8Array | ArrayBuffer | ReadRange;
}

export interface EdgeOptions
  extends EdgeModel,
    Pick<
      EngineOptions,
      | 'contextSize'
      | 'batchSize'
      | 'kvType'
      | 'kvTokens'
      | 'grammarMemory'
      | 'grammarSteps'
      | 'decodeImage'
      | 'maxTiles'
      | 'maxImageTokens'
      | 'mediaLike'
      | 'queueLimit'
      | 'prefixCache'
      | 'predictor'
      | 'metrics'
      | 'directoryOnly'
      | 'preTokenizer'
      | 'chatTemplate'
      | 'memoryLimit'
    > {
  /**
   * The compiled module, a build without threads: `import wasm from
   * 'wick-llm/wasm/wick-simd128-single.wasm'` if the host or the bundler compiles modules,
   * otherwise `await WebAssembly.compileStreaming(...)`.
   */
  wasm: import('./index.js').WasmModule;
  /**
   * The compiled grammar module of the same build
   * (`wick-llm/wasm/wick-simd128-single-grammar.wasm`): required for grammars and tools, but not
   * for other requests.
   */
  grammarWasm?: import('./index.js').WasmModule;
  /**
   * The compiled extras module of the same build (`wick-llm/wasm/wick-simd128-single-extras.wasm`): models with
   * less common architectures, types and tokenizers, 8-bit and 4-bit KV caches, and saved state need it.
   */
  extrasWasm?: import('./index.js').WasmModule;
  /** The compiled media module of the same build (`wick-llm/wasm/wick-simd128-single-media.wasm`): `mmproj` needs it. */
  mediaWasm?: import('./index.js').WasmModule;
  /**
   * The host's limit on all memory, for example 128 MB (`128e6`). The part that JavaScript needs is
   * subtracted, and a model that would need more than the rest is rejected before its weights are
   * read.
   */
  isolateBytes?: number;
}

/**
 * Loads a model into an engine in the calling thread. The engine computes while an answer is read, driven by
 * `for await` or by a ReadableStream's `pull`. Nothing runs in between.
 *
 * @example
 * const engine = await createEngine({ wasm, file: modelPath, contextSize: 512 });
 * console.log(await engine.countTokens('Hello there'));
 * await engine.close();
 * //=> 2
 */
export function createEngine(options: EdgeOptions): Promise<Engine>;

/**
 * For isolates that serve many requests: returns a function to be called with each request. The
 * first call loads the model, and later ones wait for it. If the loading call's request ends before
 * that, another call resumes the load where it stopped. Later calls receive the same engine, or a new
 * one after `close()` or a crash.
 *
 * @example
 * const open = openOnce({ wasm, contextSize: 512 });
 * const [first, second] = await Promise.all([open({ file: modelPath }), open({ file: modelPath })]);
 * console.log(first === second);
 * await first.close();
 * //=> true
 */
export function openOnce(
  options: Omit<EdgeOptions, keyof EdgeModel>,
): (model: EdgeModel) => Promise<Engine>;
