// What users of OpenAI's client write: requests of its types are taken, and answers are of its types. Compiled, never run.

import type OpenAI from 'openai';
import type { Engine } from 'wick-llm';

type Message = OpenAI.Chat.ChatCompletionMessageParam;
type Body = OpenAI.Chat.ChatCompletionCreateParamsNonStreaming;

export async function ask(
  engine: Engine,
  messages: Message[],
  tools: OpenAI.Chat.ChatCompletionTool[],
) {
  const body = { messages, model: 'x', temperature: 0, stop: ['a'], seed: 1 } satisfies Body;
  const reply = await engine.chat.completions.create(body);
  const theirs: OpenAI.Chat.ChatCompletion = reply;
  const stream = await engine.chat.completions.create({ ...body, stream: true });
  for await (const chunk of stream) {
    const one: OpenAI.Chat.ChatCompletionChunk = chunk;
    if (one.choices[0]?.delta.content) break;
  }
  messages.push(reply.choices[0].message);
  await engine.chat.completions.create({ messages, tools, tool_choice: 'auto' });
  return theirs;
}

export function whole(engine: Engine, body: Body) {
  return engine.chat.completions.create(body);
}
