// The batch job in examples/batch with two local workers: even if it is killed at random moments, it embeds each input
// once. `make soak` kills twenty jobs.

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
/** Lines without a vector, with the reason. @type {Map<number, RegExp>} */
const refusals = new Map([
  [65, /^the line is empty$/],
  [70, /context_length_exceeded/],
  [71, /^the line is empty$/],
  [4999, /context_length_exceeded/],
]);
const texts = Array.from({ length: 5000 }, (_, line) => {
  const reason = refusals.get(line)?.source;
  if (reason === undefined) return `${line} ${random.pick(words)}`;
  return reason.includes('empty') ? '' : 'fox '.repeat(6000);
});

const COUNT = Math.ceil(texts.length / BATCH);

/** @type {import('../support/example_servers.mjs').Started} */
let engineServer;
/** Inputs of requests, in order. @type {string[]} */
let requested = [];
/** A proxy in front of the engine that records the inputs. */
const proxy = createServer((incoming, outgoing) => {
  pass(incoming, outgoing).catch(() => outgoing.destroy()); // a killed job may end its request at any point
});
let origin = '';

/** @param {import('node:http').IncomingMessage} incoming @param {import('node:http').ServerResponse} outgoing */
async function pass(incoming, outgoing) {
  let body = '';
  for await (const piece of incoming) body += piece;
  if (body !== '') requested.push(...JSON.parse(body).input);
  const headers = { 'content-type': 'application/json' };
  const init = incoming.method === 'POST' ? { method: 'POST', headers, body } : {};
  const answer = await fetch(`${engineServer.origin}${incoming.url}`, init);
  outgoing.writeHead(answer.status, headers).end(await answer.text());
}

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

/** @param {string} file @param {string} folder @param {string[]} [more] */
function startJob(file, folder, more = []) {
  const args = [script, file, folder, '--server', origin, '--batch', `${BATCH}`, ...more];
  const child = spawn(python, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (bytes) => (output += bytes));
  return { pid: Number(child.pid), child, ended: once(child, 'close'), output: () => output };
}

/** @param {string} file @param {string} folder @param {string[]} [more] @returns {Promise<{code: number, output: string}>} */
async function runJob(file, folder, more = []) {
  const job = startJob(file, folder, more);
  const [code] = await job.ended;
  return { code, output: job.output() };
}

/** @param {number} pid @returns {number[]} pids of the job's workers */
function workersOf(pid) {
  try {
    const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' '),
    );
    const isWorker = (/** @type {string} */ child) =>
      readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('spawn_main');
    return children.filter((child) => child !== '' && isWorker(child)).map(Number);
  } catch {
    return []; // a process has just ended
  }
}

/** @param {string} name @returns {string} a file with the inputs */
function writeTexts(name, list = texts) {
  const path = join(temporaryFolder(), name);
  writeFileSync(path, `${list.join('\n')}\n`);
  return path;
}

/** @param {string} folder @returns {string[]} names of complete batches */
const batchesIn = (folder) =>
  existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.npy')) : [];

/** @param {string} path a file with a float32 array [rows, columns] @returns {Float32Array[]} rows */
function readRows(path) {
  const bytes = readFileSync(path);
  const from = 10 + bytes.readUInt16LE(8);
  const [, rows, columns] =
    /'<f4'.*\((\d+), (\d+)\)/.exec(bytes.toString('latin1', 10, from)) ?? [];
  const all = new Float32Array(Uint8Array.from(bytes.subarray(from)).buffer);
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
  test('a job killed at random moments embeds each text once', async () => {
    for (let runs = soakCount(20); runs > 0; runs--) await killOften(6);
  });

  test('a second run and a different job are rejected', async () => {
    const folder = join(temporaryFolder(), 'vectors');
    const file = writeTexts('texts.txt');
    const first = startJob(file, folder);
    await waitUntil(() => batchesIn(folder).length > 0, 'a batch');
    assert.match((await runJob(file, folder)).output, /another run is writing to it/);
    first.child.kill('SIGKILL');
    await first.ended;
    const other = await runJob(writeTexts('other.txt', texts.slice(1)), folder);
    assert.equal(other.code, 1);
    assert.match(other.output, /belongs to a different job \(sha256 is /);
  });

  test('a line that is not UTF-8 results in a row of NaN, and a batch without text is accepted', async () => {
    const folder = join(temporaryFolder(), 'vectors');
    const file = join(temporaryFolder(), 'texts.txt');
    const bytes = [`\xff\xfe\r\n${'\n'.repeat(31)}`, 'fox\r\nhen'];
    writeFileSync(file, Buffer.from(bytes.join(''), 'latin1'));
    const { code, output } = await runJob(file, folder);
    assert.equal(code, 1, output);
    assert.match(output, /^2 texts embedded in /m);
    assert.match(output, /^line 1: the line is not UTF-8$/m);
    assert.match(output, /^lines without a vector: 32\. /m);
    assert.ok(readRows(join(folder, '000000000000.npy')).every((row) => row.every(Number.isNaN)));
    const engine = await createEngine({ file: modelPath, threads: 1 });
    assert.deepEqual(
      readRows(join(folder, '000000000032.npy')),
      await engine.embed(['fox', 'hen']),
    );
    await engine.close();
  });

  test('the job fails at the start if a server has no embeddings or servers have different models', async () => {
    const file = writeTexts('texts.txt');
    const run = (/** @type {string[]} */ ...more) =>
      runJob(file, join(temporaryFolder(), 'vectors'), more);
    const other = createServer((incoming, outgoing) => {
      const isList = incoming.method === 'GET';
      outgoing.writeHead(isList ? 200 : otherStatus, { 'content-type': 'application/json' });
      const embedding = Buffer.from(new Float32Array(7).buffer).toString('base64');
      outgoing.end(JSON.stringify({ data: [isList ? { id: 'other' } : { index: 0, embedding }] }));
    });
    let otherStatus = 200;
    await once(other.listen(0, '127.0.0.1'), 'listening');
    const { port } = /** @type {import('node:net').AddressInfo} */ (other.address());
    const mixed = await run('--server', `http://127.0.0.1:${port}`);
    otherStatus = 400;
    const refusing = await run('--server', `http://127.0.0.1:${port}`);
    other.close();
    assert.equal(mixed.code, 1);
    assert.match(mixed.output, /^the servers have different models: /m);
    assert.equal(refusing.code, 1);
    assert.match(refusing.output, /^http:\/\/127\.0\.0\.1:\d+: \{"data"/m);
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
    // killing a worker during its start ends the job
    const [worker] = hasBegun && round % 2 ? workersOf(job.pid) : [];
    if (worker !== undefined) {
      process.kill(worker, 'SIGKILL');
      kills.worker++;
      await untilSomeMoment(job, folder);
    }
    assert.ok(job.child.kill('SIGKILL'), `the job ended before the kill: ${job.output()}`);
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
  assert.equal(code, 1, output); // some lines have no vector
  checkNothingAgain(before);
  const done = new Set(before.map((name) => Number.parseInt(name, 10)));
  const isLeft = (/** @type {number} */ line) => !done.has(line - (line % BATCH));
  const left = texts.filter((_, line) => isLeft(line) && !refusals.has(line)).length;
  assert.match(output, new RegExp(`^${left} texts embedded in `, 'm'));
  await checkVectors(folder);
  requested = [];
  const again = await runJob(file, folder);
  assert.match(again.output, /^0 texts embedded in /m);
  assert.match(again.output, /^line 66: the line is empty$/m);
  assert.match(again.output, /^lines without a vector: 4\. /m);
  assert.deepEqual(requested, ['a text'], 'nothing is left to do');
}

/** @param {string[]} batches complete batches, which must not be requested again */
function checkNothingAgain(batches) {
  const seen = new Set(requested);
  for (const name of batches) {
    const first = Number.parseInt(name, 10);
    const of = texts.slice(first, first + BATCH).filter((_, row) => !refusals.has(first + row));
    const again = of.filter((text) => seen.has(text));
    assert.deepEqual(again, [], `${name} was complete`);
  }
}

/** @param {string} folder @returns {number[]} lines without a vector */
function checkReasons(folder) {
  const files = readdirSync(folder).filter((name) => /^0.*json$/.test(name));
  assert.deepEqual(files.sort(), ['000000000064.json', '000000004992.json']);
  const reasons = Object.assign(
    {},
    ...files.map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8'))),
  );
  const lines = [...refusals.keys()];
  assert.deepEqual(
    Object.keys(reasons).map(Number),
    lines.map((line) => line + 1),
  );
  for (const line of lines) assert.match(reasons[line + 1], refusals.get(line) ?? /^$/);
  return lines;
}

/** @param {string} folder must contain the vectors of all lines, in order */
async function checkVectors(folder) {
  const firsts = texts.map((_, line) => line).filter((line) => line % BATCH === 0);
  const names = firsts.map((line) => `${`${line}`.padStart(12, '0')}.npy`);
  const others = readdirSync(folder).filter((name) => !/^0.*json$/.test(name));
  assert.deepEqual(others.sort(), [...names, 'job.json', 'lock']);
  const refused = checkReasons(folder);
  const rows = names.flatMap((name) => readRows(join(folder, name)));
  assert.deepEqual(
    rows.flatMap((row, line) => (row.every(Number.isNaN) ? [line] : [])),
    refused,
  );
  const engine = await createEngine({ file: modelPath, threads: 1 });
  const vectors = await engine.embed(texts.filter((_, line) => !refusals.has(line)));
  await engine.close();
  assert.deepEqual(
    rows.filter((_, line) => !refusals.has(line)),
    vectors,
  );
}
