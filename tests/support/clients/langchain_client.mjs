// Sends requests to a server with LangChain's OpenAI classes, and prints the results as JSON:
//   node langchain_client.mjs FOLDER URL KEY        FOLDER: where LangChain is installed

import { createRequire } from 'node:module';
import { join } from 'node:path';

const [folder, baseURL, apiKey] = process.argv.slice(2);
const requireThere = createRequire(join(folder, 'package.json'));
const load = (/** @type {string} */ name) => /** @type {any} */ (requireThere(name));
const { ChatOpenAI, OpenAI, OpenAIEmbeddings } = load('@langchain/openai');
const { HumanMessage, SystemMessage, ToolMessage } = load('@langchain/core/messages');
const { tool } = load('@langchain/core/tools');
const { z } = load('zod');

const shared = { model: 'any', apiKey, configuration: { baseURL }, maxRetries: 0 };
const chat = (/** @type {object} */ more = {}) =>
  new ChatOpenAI({ ...shared, temperature: 0, maxTokens: 24, ...more });
const question = 'Tell me a story about a fox.';

async function chats() {
  const whole = await chat().invoke(question);
  let streamed = '';
  let usage;
  for await (const chunk of await chat().stream([new HumanMessage(question)])) {
    streamed += chunk.content;
    usage = chunk.usage_metadata ?? usage;
  }
  const messages = [new SystemMessage('You are brief.'), new HumanMessage(question)];
  const batch = await chat().batch([messages, question]);
  return {
    ...{
      whole: whole.content,
      streamed,
      batch: batch.map((/** @type {any} */ one) => typeof one.content),
    },
    tokens: [whole.usage_metadata.output_tokens, usage.output_tokens],
    same: batch[1].content === whole.content,
  };
}

async function structures() {
  const pet = z.object({ kind: z.string(), legs: z.number().int() });
  const model = chat({ maxTokens: 100 });
  const parsed = await model
    .withStructuredOutput(pet, { method: 'jsonSchema', name: 'pet' })
    .invoke(question);
  const weather = tool(async (/** @type {{city: string}} */ { city }) => `-3 degrees in ${city}`, {
    ...{ name: 'weather', description: 'Of a city' },
    schema: z.object({ city: z.enum(['Oslo', 'Rome']) }),
  });
  const asked = await model.bindTools([weather], { tool_choice: 'any' }).invoke(question);
  const [call] = asked.tool_calls;
  const result = await weather.invoke(call);
  const answer = await model.invoke([new HumanMessage(question), asked, result]);
  const pieces = [];
  const calls = model.bindTools([weather], { tool_choice: 'weather' });
  for await (const chunk of await calls.stream(question)) pieces.push(chunk);
  const sum = pieces.reduce((a, b) => a.concat(b));
  return {
    ...{ parsed, called: [call.name, call.args], isResult: result instanceof ToolMessage },
    ...{
      contentType: typeof answer.content,
      streamed: [sum.tool_calls[0].name, sum.tool_calls[0].args],
    },
  };
}

async function others() {
  const text = await new OpenAI({ ...shared, temperature: 0, maxTokens: 8 }).invoke('Once');
  const embeddings = new OpenAIEmbeddings(shared);
  const [fox] = await embeddings.embedDocuments(['a fox', 'a hen']);
  const same = await embeddings.embedQuery('a fox');
  const responses = await chat({ useResponsesApi: true }).invoke(question);
  return {
    ...{ text, sizes: [fox.length, same.length], response: responses.text },
    isSame: fox.every(
      (/** @type {number} */ value, /** @type {number} */ index) => value === same[index],
    ),
  };
}

async function errors() {
  const wrong = chat({ apiKey: 'wrong' }).invoke(question);
  const key = await wrong.then(
    () => 'none',
    (/** @type {any} */ error) => [error.status, error.code],
  );
  const controller = new AbortController();
  try {
    const { signal } = controller;
    for await (const _ of await chat({ maxTokens: 900 }).stream(question, { signal })) {
      controller.abort();
    }
  } catch (error) {
    if (!controller.signal.aborted) throw error;
  }
  return { key };
}

const found = { chats: await chats(), structures: await structures(), others: await others() };
console.log(JSON.stringify({ ...found, errors: await errors() }));
