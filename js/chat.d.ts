// The public types of wick-llm/chat: engine.createChat and engine.loadChat as functions, for environments without
// dynamic imports (service workers).

type Engine = import('./index.js').Engine;
type Chat = import('./index.js').Chat;

/**
 * @example
 * const chat = await createChat(engine, { temperature: 0 });
 * console.log(await chat.send('What is 2 + 2?').text());
 * //=> The answer to this classic math problem is 4.
 */
export function createChat(
  engine: Engine,
  options?: import('./index.js').ChatOptions,
): Promise<Chat>;
/**
 * @example
 * const properties = { city: { type: 'string' }, country: { type: 'string' } };
 * const schema = { type: 'object', properties, required: ['city', 'country'] };
 * const response_format = { type: 'json_schema', json_schema: { name: 'place', schema } };
 * const messages = [{ role: 'user', content: 'Where is the Eiffel Tower?' }];
 * const body = { messages, response_format, temperature: 0 };
 * const completion = await parseCompletion(engine.chat.completions, body);
 * console.log(completion.choices[0].message.parsed);
 * //=> { city: 'Paris', country: 'France' }
 */
export function parseCompletion<Format>(
  completions: import('./index.js').ChatCompletions,
  body: import('./index.js').ParseRequest<Format>,
  options?: import('./index.js').ChatCallOptions,
): Promise<import('./index.js').ParsedCompletion<import('./index.js').Parsed<Format>>>;
/**
 * @example
 * const chat = await createChat(engine, { temperature: 0, max_tokens: 8 });
 * await chat.send('My name is Ada.').text();
 * const restored = await loadChat(engine, await chat.save());
 * console.log(restored.history[0].content);
 * //=> My name is Ada.
 */
export function loadChat(
  engine: Engine,
  bytes: Blob | ArrayBuffer | Uint8Array,
  options?: Omit<import('./index.js').ChatOptions, 'system' | 'messages'>,
): Promise<Chat>;
