// Code of AI SDK users that TypeScript must accept: compiled, never run. The types of `ai` need
// skipLibCheck.

import { type ChatTransport, embed, generateText, type UIMessage } from 'ai';
import type { Engine } from 'wick-llm';
import { createWick, WickChatTransport, type WickProvider } from 'wick-llm/ai-sdk';

export async function sdk(engine: Engine) {
  const wick: WickProvider = createWick(async () => engine);
  const { text } = await generateText({
    model: wick(),
    prompt: 'x',
    providerOptions: { wick: {} },
  });
  await embed({ model: wick.embeddingModel('a'), value: text });
  const transport: ChatTransport<UIMessage> = new WickChatTransport({ model: wick(), system: 'x' });
  // @ts-expect-error an engine is required
  createWick();
  return transport;
}
