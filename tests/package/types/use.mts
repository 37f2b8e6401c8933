// User code that TypeScript must accept: compiled, never run. Lines that must not compile are
// marked.

import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatStream,
  Generation,
  TokenDetail,
} from 'wick-llm';
import { type Chat, type ChatMessage, createEngine, type Engine, WickError } from 'wick-llm';
import { createChat } from 'wick-llm/chat';
import { createEngine as createEdge, openOnce } from 'wick-llm/edge';
import { isolate, isolated } from 'wick-llm/isolate';
import { type MissingRoom, type ModelEntry, openModels } from 'wick-llm/models';
import { createHandler, type HandlerOptions } from 'wick-llm/openai';
import { pipeline, type Tensor, TextStreamer } from 'wick-llm/pipeline';
import modelUrl, { smallModelUrl } from 'wick-llm-demo-model';

type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const check = <T extends true>(_?: T) => {};

export async function ways(
  file: File,
  stream: ReadableStream<Uint8Array>,
  module: WebAssembly.Module,
) {
  await createEngine({ url: modelUrl });
  await createEngine({ url: ['a-00001-of-00002.gguf', smallModelUrl], headers: { a: 'b' } });
  await createEngine({ file, threads: 2, kvType: 'f16', signal: AbortSignal.timeout(1000) });
  await createEngine({
    blob: new Blob([]),
    onProgress: ({ loaded, total }) => loaded / (total ?? 1),
  });
  const inThread: Engine = await createEdge({ wasm: module, bytes: new Uint8Array(4) });
  await openOnce({ wasm: module, isolateBytes: 1e8 })({
    range: async (offset, length) => new Uint8Array(offset + length),
  });
  const isIsolated: boolean = await isolate();
  await isolate({ worker: new URL('https://example.org/isolate-worker.js') });
  // @ts-expect-error a wrong name
  await isolate({ file: 'isolate-worker.js' });
  if (!isIsolated) isolated(new Response()).headers.get('a');
  // @ts-expect-error threads is not an option here
  await createEdge({ wasm: module, file, threads: 2 });
  createHandler(inThread);
  await createEngine({ stream, worker: () => new Worker('w.js'), wasm: module });
  await createEngine({ file, worker: new Worker('w.js') });
  await createEngine({ file, kvType: { k: 'q8', v: 'f16' } });
  await createEngine({ file, kvType: { v: 'q4' } });
  // @ts-expect-error a type that does not exist
  await createEngine({ url: 'a', kvType: 'f8' });
  // @ts-expect-error a value type that does not exist
  await createEngine({ url: 'a', kvType: { k: 'q8', v: 'f8' } });
  // @ts-expect-error the field for keys is k
  await createEngine({ url: 'a', kvType: { keys: 'q8' } });
  // @ts-expect-error a wrong name
  await createEngine({ url: 'a', contextLength: 5 });
  // @ts-expect-error no options
  await createEngine();
  // @ts-expect-error no model
  await createEngine({});
  // @ts-expect-error no model, with settings
  await createEngine({ threads: 2 });
  // @ts-expect-error two models
  await createEngine({ url: 'a', file });
}

export async function chats(engine: Engine, response: Response) {
  await createEngine({ bytes: new Uint8Array(3) });
  await createEngine({ stream: response });
  const chat: Chat = await engine.createChat({ system: 'x', temperature: 0, tools: [] });
  for await (const piece of chat.send('Hello', { timeout: 5 })) check<Same<typeof piece, string>>();
  const message: ChatMessage = await chat.send([{ role: 'tool', content: '1' }]).message();
  chat.edit(1, 'x');
  const count: number = await engine.countTokens([message], { tools: [] });
  const loaded = await engine.loadChat(await chat.save(), { max_tokens: count });
  await createChat(engine, { messages: loaded.history });
  // @ts-expect-error a chat has one answer per turn
  await engine.createChat({ n: 2 });
  // @ts-expect-error only settings are allowed
  await engine.loadChat(new Blob([]), { system: 'x' });
  // @ts-expect-error the salt is an option of the chat
  chat.send('x', { salt: 'y' });
}

export async function pipelines(engine: Engine) {
  const generator = await pipeline('text-generation', 'm.gguf', { dtype: 'q4', threads: 2 });
  const streamer = new TextStreamer(generator.tokenizer, { skip_prompt: true });
  const [{ generated_text: whole }] = await generator('Once', { max_new_tokens: 5, streamer });
  check<Same<typeof whole, string>>();
  const [{ generated_text: chat }] = await generator([{ role: 'user', content: whole }]);
  check<Same<typeof chat, ChatMessage[]>>();
  const extractor = await pipeline('feature-extraction', engine);
  const tensor: Tensor = await extractor(['a'], { pooling: 'mean' });
  const classifier = await pipeline('text-classification', { url: 'm.gguf' });
  const [{ label, score }] = await classifier('a');
  // @ts-expect-error a task that does not exist
  await pipeline('translation', 'm.gguf');
  // @ts-expect-error a pooling type that does not exist
  await extractor('a', { pooling: 'max' });
  return [tensor, label, score];
}

export async function text(engine: Engine) {
  const generation = engine.generate('Hello', {
    maxTokens: 5,
    seed: 1n,
    logitBias: new Map([[1, 2]]),
  });
  check<Same<typeof generation, Generation>>();
  for await (const piece of generation) check<Same<typeof piece, string>>();
  const reason: 'stop' | 'length' | 'abort' | undefined = generation.result?.finishReason;
  const whole: string = await engine.generate([1, 2], { stop: ['a'] }).text();
  const tokens: number[] = await engine.tokenize(whole, { addSpecial: false });
  const count: number = await engine.countTokens(await engine.detokenize(tokens));
  // @ts-expect-error OpenAI's spelling is only for chat
  engine.generate('Hello', { max_tokens: 5 });
  // @ts-expect-error a prompt is required
  engine.generate();
  return [reason, count];
}

export async function chat(engine: Engine, isStream: boolean) {
  const messages = [{ role: 'user', content: 'Hello' }];
  const answer = await engine.chat.completions.create({ messages, max_tokens: 5 });
  check<Same<typeof answer, ChatCompletion>>();
  const stream = await engine.chat.completions.create({ messages, stream: true }, { signal: null });
  check<Same<typeof stream, ChatStream>>();
  for await (const chunk of stream) check<Same<typeof chunk, ChatCompletionChunk>>();
  const either = await engine.chat.completions.create({ messages, stream: isStream });
  check<Same<typeof either, ChatCompletion | ChatStream>>();
  const content: string = answer.choices[0].message.content;
  // @ts-expect-error messages are required
  await engine.chat.completions.create({ max_tokens: 5 });
  return content;
}

export async function rest(error: unknown) {
  await using engine = await createEngine({ url: modelUrl, retries: 2, stallMs: 5000 });
  const { plan, shape, memory, kType, vType } = await engine.info();
  check<Same<typeof kType, typeof vType>>();
  const { metadata } = await engine.inspect();
  // without `logprobs` a token has no logprob
  const onToken = (token: TokenDetail) => check<Same<typeof token.logprob, number | undefined>>();
  await engine.generate('', { onToken }).text();
  if (error instanceof WickError && error.code === 'NOMEM') return error.cause;
  return [plan?.totalBytes, shape?.layers, memory.linearBytes, metadata[0].key];
}

export async function answers(engine: Engine, request: Request) {
  const options: HandlerOptions = { keys: ['a'], cors: '*', queueLimit: 5 };
  const handle = createHandler(engine, options);
  check<Same<ReturnType<typeof handle>, Promise<Response>>>();
  await createHandler(engine)(request);
  // @ts-expect-error no such option
  createHandler(engine, { key: 'a' });
}

export async function kept(error: unknown) {
  const models = await openModels({ evict: true });
  const entry = await models.get('owner/repo:Q4_K_M', { hub: { token: 'a' }, connections: 2 });
  check<Same<typeof entry, ModelEntry>>();
  models.addEventListener('kept', ({ detail }) => check<Same<typeof detail, ModelEntry>>());
  const { damagedChunks } = await models.verify(entry.id);
  if (error instanceof WickError && error.code === 'STORAGE_FULL') {
    const { candidates } = error.cause as MissingRoom;
    for (const { id } of candidates) await models.delete(id);
  }
  await using engine = await createEngine({ model: entry.id, cache: 'only' });
  // @ts-expect-error a source and a name are required
  await createEngine({ model: 'a/b:c', url: modelUrl });
  // @ts-expect-error no such value
  await createEngine({ url: modelUrl, cache: 'always' });
  // @ts-expect-error the listener has no such event
  models.addEventListener('downloaded', () => {});
  return [damagedChunks.length, await engine.info()];
}
