// Runs Emscripten's build of chat.c in Node: node node.mjs BUILD/chat.mjs MODEL.gguf QUESTION...

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [program, model, ...questions] = process.argv.slice(2);
const { default: createChat } = await import(pathToFileURL(resolve(program)).href);
const chat = await createChat();
chat.FS.writeFile('model.gguf', readFileSync(model));
process.exit(chat.callMain(['model.gguf', ...questions]));
