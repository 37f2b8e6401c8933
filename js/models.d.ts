// The public types of wick-llm/models: the store of models that all pages of an origin share.

/** Options of a store. */
export interface StoreOptions {
  /** In Node, Deno and Bun: the folder; by default `wick-llm/models` in the user's cache folder. */
  folder?: string;
  /** Whether the least recently used models are removed when space is short; false by default. */
  evict?: boolean;
}

/** A model of the store, complete or not. */
export interface ModelEntry {
  /** Name of its folder or record. */
  id: string;
  /** Name of the file. */
  name: string;
  /** URLs with this content. */
  urls: string[];
  /** Size in bytes, once known. */
  size: number | undefined;
  /** Bytes that are stored. */
  storedBytes: number;
  /** Whether all bytes are stored and passed the known checks. */
  isWhole: boolean;
  /** Hash of the content of a complete model. */
  fingerprint: string | undefined;
  /** SHA-256 of the file, if known. */
  sha256: string | undefined;
  /** When it was first stored. */
  created: Date;
  /** When it was last used. */
  used: Date;
  /** Version of the storage format. */
  version: number;
}

/** The progress of a download into the store. */
export interface KeepProgress {
  /** Bytes that are stored. */
  loaded: number;
  /** Bytes that are stored or in chunks that are being downloaded. */
  received: number;
  /** Size of the file in bytes; until it is certain, the size that the server reports. */
  total: number | undefined;
  /**
   * Another tab is downloading the model but does not respond; this one takes over within 20
   * seconds.
   */
  isWaiting?: boolean;
}

/** The hub that hosts `hf:owner/repo/file.gguf` and `owner/repo:Q4_K_M`. */
export interface HubOptions {
  /** URL of the hub; https://huggingface.co by default. */
  endpoint?: string;
  /** The token for gated and private models. It is sent only to the endpoint. */
  token?: string;
}

export interface GetOptions
  extends Pick<import('./index.js').EngineSettings, 'headers' | 'retries' | 'stallMs'> {
  /** Pauses the download: stored chunks are kept, and the next `get` resumes there. */
  signal?: AbortSignal | null;
  onProgress?: (progress: KeepProgress) => void;
  /** Expected SHA-256 of the file. A file with a different hash is rejected (CORRUPT). */
  sha256?: string;
  /** Expected size of the file in bytes. A file with a different size is rejected (CORRUPT). */
  size?: number;
  /** For names such as `hf:owner/repo/file.gguf`. */
  hub?: HubOptions;
  fetch?: typeof globalThis.fetch;
  /** Number of requests that fetch parts of the file at the same time; 1 by default. */
  connections?: number;
}

export interface ImportOptions {
  /** The name; by default the file's own. */
  name?: string;
  /** A URL for which this file is used. */
  url?: string | URL;
  signal?: AbortSignal | null;
  onProgress?: (progress: KeepProgress) => void;
}

export interface CheckOptions {
  headers?: import('./index.js').HeaderFields;
  fetch?: typeof globalThis.fetch;
  hub?: HubOptions;
  signal?: AbortSignal | null;
}

export interface ModelCheck {
  /**
   * `newer`: the server has a different version. `unknown`: the server could not be reached, or
   * does not report it.
   */
  state: 'same' | 'newer' | 'unknown';
  /** Why the state is unknown. */
  reason?: string;
  /** The stored model, which is not changed. */
  entry: ModelEntry;
}

export interface Verification {
  isWhole: boolean;
  /** Numbers of the damaged chunks of 4 MB, in the order of the file. */
  damagedChunks: number[];
}

export interface StorageEstimate {
  /** Bytes of all models. */
  usedBytes: number;
  /** The number of bytes still available; undefined if the host does not report it. */
  freeBytes: number | undefined;
  /** Whether the browser keeps all models until the user removes them. */
  isPersisted: boolean;
}

/** The `cause` of a download's STORAGE_FULL error. */
export interface MissingRoom {
  missingBytes: number;
  freeBytes: number | undefined;
  /** Models that could be removed, the least recently used one first. */
  candidates: ModelEntry[];
}

export interface ModelEvents {
  /** A chunk was stored, in this page or another one. */
  progress: CustomEvent<ModelEntry>;
  /** A model is complete. */
  kept: CustomEvent<ModelEntry>;
  removed: CustomEvent<ModelEntry>;
  /** `verify` has found damaged chunks. */
  damaged: CustomEvent<ModelEntry>;
}

/**
 * The models of this origin, or of a folder. A name is a URL, a name on the hub (`hf:owner/repo/file.gguf`,
 * `owner/repo:Q4_K_M`), a fingerprint, a SHA-256, an id or the name of a file.
 */
export interface ModelStore extends Omit<EventTarget, 'addEventListener' | 'removeEventListener'> {
  /** Where models are stored. */
  readonly kind: 'opfs' | 'indexeddb' | 'folder' | 'memory';
  /** The folder of the models, with `kind: 'folder'`; the file of an entry is `<id>/model.gguf` in it. */
  readonly folder: string | undefined;
  /**
   * Returns all entries, the most recently used first.
   *
   * @example
   * const store = await openModels({ folder });
   * await store.import(modelPath);
   * for (const { name, size } of await store.list()) console.log(name, size);
   * //=> wick-2.6m-q8_0.gguf 2825120
   */
  list(): Promise<ModelEntry[]>;
  /**
   * Returns the entry of a model.
   *
   * @example
   * const store = await openModels({ folder });
   * await store.import(modelPath);
   * const { isWhole, storedBytes } = await store.info('wick-2.6m-q8_0.gguf');
   * console.log(isWhole, storedBytes);
   * //=> true 2825120
   */
  info(name: string | URL): Promise<ModelEntry | undefined>;
  /**
   * Returns whether the model is stored completely.
   *
   * @example
   * const store = await openModels({ folder });
   * console.log(await store.has('other.gguf'));
   * //=> false
   */
  has(name: string | URL): Promise<boolean>;
  /**
   * Downloads the missing chunks of a model.
   *
   * @example
   * const store = await openModels();
   * const { name, size } = await store.get('Qwen/Qwen3-0.6B-GGUF:Q8_0', {
   *   onProgress: ({ loaded, total }) => console.log(`${loaded} of ${total} bytes`),
   * });
   * console.log(name, size);
   */
  get(name: string | URL, options?: GetOptions): Promise<ModelEntry>;
  /**
   * Returns the bytes of a complete model, which are read as needed.
   *
   * @example
   * const store = await openModels({ folder });
   * await store.import(modelPath);
   * const blob = await store.blob('wick-2.6m-q8_0.gguf');
   * console.log(await blob.slice(0, 4).text());
   * //=> GGUF
   */
  blob(name: string | URL): Promise<Blob | undefined>;
  /**
   * Stores a File, a Blob or (in Node, Deno and Bun) the file at a path.
   *
   * @example
   * const store = await openModels({ folder });
   * const { name, isWhole } = await store.import(modelPath);
   * console.log(name, isWhole);
   * //=> wick-2.6m-q8_0.gguf true
   */
  import(file: Blob | string | URL, options?: ImportOptions): Promise<ModelEntry>;
  /**
   * Asks the server, or the hub, whether it still has this version; the result is `unknown` without a
   * network.
   *
   * @example
   * const store = await openModels();
   * const { state } = await store.check('Qwen/Qwen3-0.6B-GGUF:Q8_0');
   * console.log(state);
   */
  check(name: string | URL, options?: CheckOptions): Promise<ModelCheck>;
  /**
   * Compares all chunks with their checksums; `get` fetches damaged ones again.
   *
   * @example
   * const store = await openModels({ folder });
   * await store.import(modelPath);
   * console.log(await store.verify('wick-2.6m-q8_0.gguf'));
   * //=> { isWhole: true, damagedChunks: [] }
   */
  verify(name: string | URL, options?: { signal?: AbortSignal | null }): Promise<Verification>;
  /**
   * Deletes a model. Returns whether it existed.
   *
   * @example
   * const store = await openModels({ folder });
   * await store.import(modelPath);
   * console.log(await store.delete('wick-2.6m-q8_0.gguf'), await store.list());
   * //=> true []
   */
  delete(name: string | URL): Promise<boolean>;
  /**
   * Deletes all models.
   *
   * @example
   * const store = await openModels({ folder });
   * await store.import(modelPath);
   * await store.clear();
   * console.log((await store.list()).length);
   * //=> 0
   */
  clear(): Promise<void>;
  /**
   * Returns the number of used and free bytes.
   *
   * @example
   * const store = await openModels({ folder });
   * await store.import(modelPath);
   * const { usedBytes } = await store.estimate();
   * console.log(usedBytes);
   * //=> 2825120
   */
  estimate(): Promise<StorageEstimate>;
  /**
   * Asks the browser to keep all models until the user removes them.
   *
   * @example
   * const store = await openModels({ folder });
   * console.log(await store.persist()); // a folder stays in any case
   * //=> true
   */
  persist(): Promise<boolean>;
  /**
   * Ends downloads; stored chunks are kept.
   *
   * @example
   * const store = await openModels({ folder });
   * await store.close();
   * await store.list().catch((error) => console.log(error.code));
   * //=> CLOSED
   */
  close(): Promise<void>;
  /**
   * @example
   * const store = await openModels({ folder });
   * store.addEventListener('removed', ({ detail }) => console.log('removed', detail.name));
   * await store.import(modelPath);
   * await store.clear();
   * //=> removed wick-2.6m-q8_0.gguf
   */
  addEventListener<Name extends keyof ModelEvents>(
    type: Name,
    listener: (event: ModelEvents[Name]) => void,
    options?: boolean | { once?: boolean; signal?: AbortSignal },
  ): void;
  /**
   * @example
   * const store = await openModels({ folder });
   * const report = ({ detail }) => console.log('removed', detail.name);
   * store.addEventListener('removed', report);
   * store.removeEventListener('removed', report);
   * await store.import(modelPath);
   * await store.clear();
   * console.log('cleared');
   * //=> cleared
   */
  removeEventListener<Name extends keyof ModelEvents>(
    type: Name,
    listener: (event: ModelEvents[Name]) => void,
    options?: boolean | EventListenerOptions,
  ): void;
}

/**
 * Opens the store of this origin, or of a folder.
 *
 * @example
 * const store = await openModels({ folder });
 * console.log(store.kind, await store.list());
 * //=> folder []
 */
export function openModels(options?: StoreOptions): Promise<ModelStore>;
