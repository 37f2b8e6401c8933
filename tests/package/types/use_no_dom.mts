// The package in a Node program that has only Node's types, without the DOM library.

import { readFile } from 'node:fs/promises';
import { createEngine, WickError } from 'wick-llm';
import { createChat } from 'wick-llm/chat';
import { openOnce } from 'wick-llm/edge';
import { openModels } from 'wick-llm/models';
import { createHandler } from 'wick-llm/openai';
import { pipeline } from 'wick-llm/pipeline';
import modelUrl from 'wick-llm-demo-model';

const engine = await createEngine({ url: modelUrl, signal: AbortSignal.timeout(1000) });
const text: string = await engine.generate('Once').text();
const bytes = Uint8Array.from(await readFile(text));
await using other = await createEngine({ bytes });
const [vector] = await other.embed(['a']);
const first: number | undefined = vector[0];
const handler = createHandler(engine);
const answer: Response = await handler(new Request('http://localhost/v1/models'));
if (new WickError('ARG', String(first)).code === 'ARG') console.log(answer.status);

export { createChat, openModels, openOnce, pipeline };
