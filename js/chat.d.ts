// The public types of wick-llm/chat: engine.createChat and engine.loadChat as functions, for places without dynamic
// imports (service workers).

type Engine = import('./index.js').Engine;
type Chat = import('./index.js').Chat;

export function createChat(
  engine: Engine,
  options?: import('./index.js').ChatOptions,
): Promise<Chat>;
export function parseCompletion<Format>(
  completions: import('./index.js').ChatCompletions,
  body: import('./index.js').ParseRequest<Format>,
  options?: import('./index.js').ChatCallOptions,
): Promise<import('./index.js').ParsedCompletion<import('./index.js').Parsed<Format>>>;
export function loadChat(
  engine: Engine,
  bytes: Blob | ArrayBuffer | Uint8Array,
  options?: Omit<import('./index.js').ChatOptions, 'system' | 'messages'>,
): Promise<Chat>;
