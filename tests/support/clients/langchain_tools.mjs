// Runs two-turn conversations with a tool, using LangChain's classes, and prints them as JSON:
//   node langchain_tools.mjs FOLDER URL KEY MODEL        FOLDER: where LangChain is installed

import { createRequire } from 'node:module';
import { join } from 'node:path';

const [folder, baseURL, apiKey, modelName] = process.argv.slice(2);
const requireThere = createRequire(join(folder, 'package.json'));
const load = (/** @type {string} */ name) => /** @type {any} */ (requireThere(name));
const { ChatOpenAI } = load('@langchain/openai');
const { HumanMessage } = load('@langchain/core/messages');
const { tool } = load('@langchain/core/tools');
const { z } = load('zod');

const asked = new HumanMessage('Is it cold in Oslo?');
const weather = tool(async () => '-3 degrees', {
  ...{ name: 'weather', description: 'Of a city' },
  schema: z.object({ city: z.enum(['Oslo', 'Rome']) }),
});

/** @param {object} more @param {boolean} isStreamed */
async function converse(more, isStreamed) {
  const shared = {
    model: modelName,
    apiKey,
    temperature: 0,
    maxRetries: 0,
    configuration: { baseURL },
  };
  const ask = async (
    /** @type {any[]} */ messages,
    maxTokens = 12,
    /** @type {object} */ choice = {},
  ) => {
    const model = new ChatOpenAI({ ...shared, maxTokens, ...more }).bindTools([weather], choice);
    if (!isStreamed) return model.invoke(messages);
    /** @type {any} */
    let sum;
    for await (const chunk of await model.stream(messages)) sum = sum?.concat(chunk) ?? chunk;
    return sum;
  };
  const first = await ask([asked], 100, { tool_choice: 'weather' });
  const [call] = first.tool_calls;
  const second = await ask([asked, first, await weather.invoke(call)]);
  return { call: [call.name, call.args], answer: second.text };
}

console.log(
  JSON.stringify({
    'langchain, chat': await converse({}, false),
    'langchain, chat, streamed': await converse({}, true),
    'langchain, responses': await converse({ useResponsesApi: true }, false),
  }),
);
