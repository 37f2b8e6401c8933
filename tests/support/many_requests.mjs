// Sends many requests for one token to one engine, in a separate process. At each of the given counts
// it prints, in KB: private memory before and after garbage collection, and the used part of both
// threads' heaps after it.

import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { setTimeout as sleep } from 'node:timers/promises';

const [dist, file, ...counts] = process.argv.slice(2);
const { createEngine } = await import(`${dist}/index.js`);
const engine = await createEngine({ file, threads: 1 });
const messages = [{ role: 'user', content: 'Hi' }];

/**
 * Collects garbage in this thread and in the engine's, like a host with little memory: V8 then also frees the empty space of
 * its young generations, unlike gc() from --expose-gc.
 * @returns {Promise<number>} used bytes of both heaps
 */
async function collect() {
  const session = new Session();
  session.connect();
  /** @type {Promise<number>} */
  const ofWorker = new Promise((settle) => {
    session.on('NodeWorker.attachedToWorker', ({ params: { sessionId } }) => {
      for (const [id, method] of [
        'HeapProfiler.collectGarbage',
        'Runtime.getHeapUsage',
      ].entries()) {
        const message = JSON.stringify({ id, method });
        session.post('NodeWorker.sendMessageToWorker', { sessionId, message });
      }
    });
    session.on('NodeWorker.receivedMessageFromWorker', ({ params: { message } }) => {
      const { result } = JSON.parse(message);
      if (result?.usedSize) settle(result.usedSize);
    });
  });
  const awake = setInterval(() => {}, 1000); // an idle engine does not keep a process alive
  session.post('NodeWorker.enable', { waitForDebuggerOnStart: false });
  session.post('HeapProfiler.collectGarbage');
  const usedBytes = (await ofWorker) + process.memoryUsage().heapUsed;
  clearInterval(awake);
  session.post('NodeWorker.disable');
  session.disconnect();
  return usedBytes;
}

function privateKb() {
  const rollup = readFileSync('/proc/self/smaps_rollup', 'utf8');
  return Number(/^Private_Dirty:\s+(\d+)/m.exec(rollup)?.[1]);
}

let asked = 0;
for (const count of counts.map(Number)) {
  for (; asked < count; asked++) await engine.chat.completions.create({ messages, max_tokens: 1 });
  const uncollectedKb = privateKb();
  let usedBytes = 0;
  for (let times = 0; times < 3; times++) {
    usedBytes = await collect();
    await sleep(50);
  }
  const usedKb = Math.round(usedBytes / 1024);
  console.log(JSON.stringify({ count, uncollectedKb, privateKb: privateKb(), usedKb }));
}
await engine.close();
