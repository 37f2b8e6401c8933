// The package in a program without the library esnext.disposable, for the oldest TypeScript that the types work with.

import { createEngine, WickError } from 'wick-llm';
import { createChat } from 'wick-llm/chat';
import { openModels } from 'wick-llm/models';
import { createHandler } from 'wick-llm/openai';
import { pipeline } from 'wick-llm/pipeline';

const engine = await createEngine({ url: 'model.gguf' });
const text: string = await engine.generate('Once').text();
const handler = createHandler(engine);
if (new WickError('ARG', text).code === 'ARG') await engine.close();

export { createChat, handler, openModels, pipeline };
