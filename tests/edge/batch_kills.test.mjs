// The batch job of examples/batch with two local workers: killed at random moments, it embeds each text once. `make soak`
// kills twenty jobs.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { startNodeServer } from '../support/example_servers.mjs';
import { locate, root } from '../support/locate.mjs';
import { createEngine, modelPath, sleep, temporaryFolder, waitUntil } from '../support/package.mjs';
import { randomFrom } from '../support/random_numbers.mjs';
import { soakCount, soakSeed } from '../support/soak.mjs';

const { skip, path: python } = locate('deploy');
const script = resolve(root, 'examples/batch/embed.py');
const BATCH = 32;
const words = ['fox', 'hen', 'bus', 'tree', 'red', 'small', 'runs', 'sleeps'];
const random = randomFrom(soakSeed);
const texts = Array.from({ length: 5000 }, (_, line) => `${line} ${random.pick(words)}`);

const COUNT = Math.ceil(texts.length / BATCH);

/** @type {import('../support/example_servers.mjs').Started} */
let engineServer;
/** Texts of requests, in their order. @type {string[]} */
let requested = [];
/** In front of the engine: notes the texts. */
const proxy = createServer(async (incoming, outgoing) => {
  let body = '';
  for await (const piece of incoming) body += piece;
  if (body !== '') requested.push(...JSON.parse(body).input);
  const headers = { 'content-type': 'application/json' };
  const init = incoming.method === 'POST' ? { method: 'POST', headers, body } : {};
  const answer = await fetch(`${engineServer.origin}${incoming.url}`, init);
  outgoing.writeHead(answer.status, headers).end(await answer.text());
});
let origin = '';

before(async () => {
  if (skip) return;
  engineServer = await startNodeServer(modelPath);
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (proxy.address());
  origin = `http://127.0.0.1:${port}`;
});
after(async () => {
  proxy.closeAllConnections();
  proxy.close();
  await engineServer?.close();
});

/** @param {string} file @param {string} folder */
function startJob(file, folder) {
  const args = [script, file, folder, '--server', origin, '--batch', `${BATCH}`];
  const child = spawn(python, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (bytes) => (output += bytes));
  return { pid: Number(child.pid), child, ended: once(child, 'close'), output: () => output };
}

/** @param {string} file @param {string} folder @returns {Promise<{code: number, output: string}>} */
async function runJob(file, folder) {
  const job = startJob(file, folder);
  const [code] = await job.ended;
  return { code, output: job.output() };
}

/** @param {number} pid @returns {number[]} processes of workers of the job */
function workersOf(pid) {
  try {
    const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' '),
    );
    const isWorker = (/** @type {string} */ child) =>
      readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('spawn_main');
    return children.filter((child) => child !== '' && isWorker(child)).map(Number);
  } catch {
    return []; // one has just ended
  }
}

/** @param {string} name @returns {string} a file of the texts */
function writeTexts(name, list = texts) {
  const path = join(temporaryFolder(), name);
  writeFileSync(path, `${list.join('\n')}\n`);
  return path;
}

/** @param {string} folder @returns {string[]} names of complete batches */
const batchesIn = (folder) =>
  existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.npy')) : [];

/** @param {string} path of an array [rows, columns] of float32 @returns {Float32Array[]} rows */
function readRows(path) {
  const bytes = readFileSync(path);
  const from = 10 + bytes.readUInt16LE(8);
  const [, rows, columns] =
    /'<f4'.*\((\d+), (\d+)\)/.exec(bytes.toString('latin1', 10, from)) ?? [];
  const all = new Float32Array(bytes.buffer.slice(bytes.byteOffset + from));
  assert.equal(all.length, Number(rows) * Number(columns));
  const width = Number(columns);
  return Array.from({ length: Number(rows) }, (_, row) =>
    all.subarray(row * width, (row + 1) * width),
  );
}

/** Resolves at a random moment of the work. @param {ReturnType<typeof startJob>} job @param {string} folder */
async function untilSomeMoment(job, folder) {
  const goal = batchesIn(folder).length + random.below(8);
  await waitUntil(() => {
    assert.equal(job.child.exitCode, null, job.output());
    return batchesIn(folder).length >= goal;
  }, `${goal} batches`);
  await sleep(random.below(150));
}

describe('a batch job', { skip }, () => {
  test('killed at random moments, it embeds each text once', async () => {
    for (let runs = soakCount(20); runs > 0; runs--) await killOften(6);
  });

  test('another job, and a second run, are refused; so is a text, with its lines', async () => {
    const folder = join(temporaryFolder(), 'vectors');
    const file = writeTexts('texts.txt');
    const first = startJob(file, folder);
    await waitUntil(() => batchesIn(folder).length > 0, 'a batch');
    assert.match((await runJob(file, folder)).output, /another run writes to it/);
    first.child.kill('SIGKILL');
    await first.ended;
    const other = await runJob(writeTexts('other.txt', texts.slice(1)), folder);
    assert.equal(other.code, 1);
    assert.match(other.output, /it has another job \(sha256 is /);

    const long = writeTexts('long.txt', [...texts.slice(0, 40), 'fox '.repeat(6000)]);
    const refused = await runJob(long, join(temporaryFolder(), 'long'));
    assert.equal(refused.code, 1, refused.output);
    assert.match(refused.output, /^lines 33 to 41: .*context_length_exceeded/m);
  });
});

/** @param {number} rounds */
async function killOften(rounds) {
  const file = writeTexts('texts.txt');
  const folder = join(temporaryFolder(), 'vectors');
  const kills = { job: 0, worker: 0 };
  for (let round = 0; round < rounds; round++) {
    const before = batchesIn(folder);
    requested = [];
    const job = startJob(file, folder);
    const hasBegun = round % 3 !== 2;
    if (hasBegun) await untilSomeMoment(job, folder);
    else await sleep(random.below(2500));
    // a worker that is killed while it starts ends the job
    const [worker] = hasBegun && round % 2 ? workersOf(job.pid) : [];
    if (worker !== undefined) {
      process.kill(worker, 'SIGKILL');
      kills.worker++;
      await untilSomeMoment(job, folder);
    }
    assert.ok(job.child.kill('SIGKILL'), `it ended before the kill: ${job.output()}`);
    kills.job++;
    await job.ended;
    checkNothingAgain(before);
  }
  assert.ok(kills.worker > 0 && kills.job === rounds, JSON.stringify(kills));
  await finish(file, folder);
}

/** @param {string} file @param {string} folder */
async function finish(file, folder) {
  const before = batchesIn(folder);
  assert.ok(before.length > 0 && before.length < COUNT, `${before.length} of ${COUNT} batches`);
  requested = [];
  const { code, output } = await runJob(file, folder);
  assert.equal(code, 0, output);
  checkNothingAgain(before);
  const left = texts.length - before.length * BATCH;
  assert.match(output, new RegExp(`^${left} texts embedded in `, 'm'));
  await checkVectors(folder);
  requested = [];
  assert.match((await runJob(file, folder)).output, /^0 texts embedded in /m);
  assert.deepEqual(requested, [], 'nothing is left to do');
}

/** @param {string[]} batches whose texts have not been requested */
function checkNothingAgain(batches) {
  const seen = new Set(requested);
  for (const name of batches) {
    const first = Number.parseInt(name, 10);
    const again = texts.slice(first, first + BATCH).filter((text) => seen.has(text));
    assert.deepEqual(again, [], `${name} was complete`);
  }
}

/** @param {string} folder whose files have the vector of each text, in order */
async function checkVectors(folder) {
  const firsts = texts.map((_, line) => line).filter((line) => line % BATCH === 0);
  const names = firsts.map((line) => `${`${line}`.padStart(12, '0')}.npy`);
  assert.deepEqual(readdirSync(folder).sort(), [...names, 'job.json', 'lock']);
  const rows = names.flatMap((name) => readRows(join(folder, name)));
  const engine = await createEngine({ file: modelPath, threads: 1 });
  const vectors = await engine.embed(texts);
  await engine.close();
  assert.deepEqual(rows, vectors);
}
