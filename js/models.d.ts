// The public types of wick-llm/models: the store of models that all pages of an origin share.

export interface StoreOptions {
  /** For Node, Deno and Bun; by default `wick-llm/models` in the user's folder of caches. */
  folder?: string;
  /** Whether models that were not used for the longest time are removed where there is no room; false by default. */
  evict?: boolean;
}

/** A model of the store, whole or in part. */
export interface ModelEntry {
  /** Where it is kept. */
  id: string;
  /** The file's. */
  name: string;
  /** Addresses that it came from. */
  urls: string[];
  /** Bytes; missing until it is known. */
  size: number | undefined;
  storedBytes: number;
  /** Whether all bytes are stored and were compared with what was known of them. */
  isWhole: boolean;
  /** Of the content: the same bytes have the same one. Only whole models have it. */
  fingerprint: string | undefined;
  /** Of the whole file, where it is known. */
  sha256: string | undefined;
  created: Date;
  used: Date;
  /** Of the format in which it is kept. */
  version: number;
}

export interface KeepProgress {
  /** Bytes that are stored. */
  loaded: number;
  /** Bytes that have come: those that are stored, and those of chunks on their way. */
  received: number;
  /** Bytes; what the server promises until the size is known for certain. */
  total: number | undefined;
  /** Another tab downloads the model and does not answer; this one takes over within 20 seconds. */
  isWaiting?: boolean;
}

/** The hub on which `hf:owner/repo/file.gguf` and `owner/repo:Q4_K_M` are. */
export interface HubOptions {
  /** By default https://huggingface.co. */
  endpoint?: string;
  /** For gated and private models; sent to the endpoint alone. */
  token?: string;
}

export interface GetOptions {
  /** Pauses the download: stored chunks stay, and the next `get` continues from there. */
  signal?: AbortSignal | null;
  onProgress?: (progress: KeepProgress) => void;
  /** Of the file, where it is known: other bytes are refused (CORRUPT). */
  sha256?: string;
  size?: number;
  /** For names such as `hf:owner/repo/file.gguf`. */
  hub?: HubOptions;
  headers?: import('./index.js').HeaderFields;
  fetch?: typeof globalThis.fetch;
  /** How often in a row a broken download is resumed; 5 by default. */
  retries?: number;
  /** A connection without a byte for this many milliseconds counts as broken; 30000 by default, 0: never. */
  stallMs?: number;
  /** Requests that fetch parts of the file at the same time; 1 by default. */
  connections?: number;
}

export interface ImportOptions {
  /** By default the file's own. */
  name?: string;
  /** An address that this file represents. */
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
  /** `newer`: the server has another version. `unknown`: it could not be asked, or does not say. */
  state: 'same' | 'newer' | 'unknown';
  /** Why it is unknown. */
  reason?: string;
  /** Of what is kept, which stays as it is. */
  entry: ModelEntry;
}

export interface Verification {
  isWhole: boolean;
  /** Chunks of 4 MB, by their place in the file. */
  damagedChunks: number[];
}

export interface StorageEstimate {
  /** Bytes of all models. */
  usedBytes: number;
  /** The bytes that the host still grants; undefined if it does not say. */
  freeBytes: number | undefined;
  /** Whether the browser keeps all until the user removes it. */
  isPersisted: boolean;
}

/** The cause of a download's STORAGE_FULL error. */
export interface MissingRoom {
  missingBytes: number;
  freeBytes: number | undefined;
  /** Models that could be removed, the one that was not used for the longest time first. */
  candidates: ModelEntry[];
}

export interface ModelEvents {
  /** A chunk was stored, in this page or another one. */
  progress: CustomEvent<ModelEntry>;
  /** A model is whole. */
  kept: CustomEvent<ModelEntry>;
  removed: CustomEvent<ModelEntry>;
  /** `verify` has found damaged chunks. */
  damaged: CustomEvent<ModelEntry>;
}

/**
 * The models of this origin, or of a folder. A name is an address, a name on the hub (`hf:owner/repo/file.gguf`,
 * `owner/repo:Q4_K_M`), a fingerprint, a SHA-256, an id or the name of a file.
 */
export interface ModelStore extends Omit<EventTarget, 'addEventListener' | 'removeEventListener'> {
  readonly kind: 'opfs' | 'indexeddb' | 'folder' | 'memory';
  /** The folder of the models, with `kind: 'folder'`; the file of an entry is `<id>/model.gguf` in it. */
  readonly folder: string | undefined;
  /** The last used ones first. */
  list(): Promise<ModelEntry[]>;
  info(name: string | URL): Promise<ModelEntry | undefined>;
  /** Whether it is kept whole. */
  has(name: string | URL): Promise<boolean>;
  /** Downloads what is not stored yet of it. */
  get(name: string | URL, options?: GetOptions): Promise<ModelEntry>;
  /** The bytes of a whole model, which are read as they are needed. */
  blob(name: string | URL): Promise<Blob | undefined>;
  /** A path in Node, Deno and Bun. */
  import(file: Blob | string | URL, options?: ImportOptions): Promise<ModelEntry>;
  /** Asks the server, or the hub, whether it still has this version; without a network that is `unknown`. */
  check(name: string | URL, options?: CheckOptions): Promise<ModelCheck>;
  /** Compares all chunks with their checksums; `get` fetches damaged ones again. */
  verify(name: string | URL, options?: { signal?: AbortSignal | null }): Promise<Verification>;
  delete(name: string | URL): Promise<boolean>;
  clear(): Promise<void>;
  estimate(): Promise<StorageEstimate>;
  /** Asks the browser to keep all until the user removes it. */
  persist(): Promise<boolean>;
  /** Ends downloads; what is stored stays. */
  close(): Promise<void>;
  addEventListener<Name extends keyof ModelEvents>(
    type: Name,
    listener: (event: ModelEvents[Name]) => void,
    options?: boolean | { once?: boolean; signal?: AbortSignal },
  ): void;
  removeEventListener<Name extends keyof ModelEvents>(
    type: Name,
    listener: (event: ModelEvents[Name]) => void,
    options?: boolean | EventListenerOptions,
  ): void;
}

export function openModels(options?: StoreOptions): Promise<ModelStore>;
