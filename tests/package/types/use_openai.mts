// Code of users of OpenAI's client: requests of its types are accepted, and responses have its
// types. Compiled, never run.

import type OpenAI from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import type { Engine } from 'wick-llm';
import { z } from 'zod';

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

export async function helpers(engine: Engine, messages: Message[]) {
  const { completions } = engine.chat;
  const format = zodResponseFormat(z.object({ a: z.number() }), 'x');
  const { choices } = await completions.parse({ messages, response_format: format });
  const a: number | undefined = choices[0].message.parsed?.a;
  const schema = z.object({ b: z.string().transform((text) => text.length) });
  const own = await completions.parse({ messages, response_format: schema });
  const b: number | undefined = own.choices[0].message.parsed?.b;
  // @ts-expect-error the transform returns a number
  own.choices[0].message.parsed?.b.trim();
  const stream = completions.stream({ messages }).on('content', (delta) => delta.trim());
  const whole: OpenAI.Chat.ChatCompletion = await stream.finalChatCompletion();
  return [a, b, whole];
}
