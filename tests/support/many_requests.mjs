// Asks one engine for many answers of one token, in a process of its own (--expose-gc), and prints its
// private memory and the size of V8's heap, in KB, after the collections at each of the given counts.

import { readFileSync } from 'node:fs';

const [dist, file, ...counts] = process.argv.slice(2);
const { createEngine } = await import(`${dist}/index.js`);
const engine = await createEngine({ file, threads: 1 });
const messages = [{ role: 'user', content: 'Hi' }];
const collect = /** @type {() => void} */ (globalThis.gc);

function privateKb() {
  const told = readFileSync('/proc/self/smaps_rollup', 'utf8');
  return Number(/^Private_Dirty:\s+(\d+)/m.exec(told)?.[1]);
}

let asked = 0;
for (const count of counts.map(Number)) {
  for (; asked < count; asked++) await engine.chat.completions.create({ messages, max_tokens: 1 });
  for (let times = 0; times < 3; times++) {
    collect();
    await new Promise((settle) => setTimeout(settle, 50));
  }
  const heapKb = Math.round(process.memoryUsage().heapTotal / 1000);
  console.log(JSON.stringify({ count, privateKb: privateKb(), heapKb }));
}
await engine.close();
