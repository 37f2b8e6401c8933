// The encoders of all modules, with one thread and two, in Node with and without relaxed SIMD. The probabilities after an image
// or a recording are bit-identical on all hosts with the same rounding.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { isFull } from '../support/level.mjs';
import { locateRelaxedNode } from '../support/locate.mjs';
import {
  bodyAbout,
  folder,
  manifest,
  messagePartOf,
  partOf,
  skip,
  texts,
  typeOf,
} from '../support/media_files.mjs';
import { dist } from '../support/package.mjs';
import { run } from '../support/process.mjs';

const relaxed = locateRelaxedNode();
const nodes = relaxed.skip ? [process.execPath] : [process.execPath, relaxed.path];

/** @param {string} node @param {object} options @param {object} body @returns {Promise<{rounding: string, kernels: string, tops: string}>} */
async function answersOf(node, options, body) {
  const script = `
    const { createEngine } = await import(${JSON.stringify(pathToFileURL(join(dist, 'index.js')).href)});
    const engine = await createEngine(${JSON.stringify(options)});
    const { rounding, kernels } = await engine.info();
    const { choices } = await engine.chat.completions.create(${JSON.stringify(body)});
    console.log(JSON.stringify({ rounding, kernels, tops: JSON.stringify(choices[0].logprobs.content) }));
    await engine.close();`;
  const { code, stdout, stderr } = await run(node, ['--input-type=module', '-e', script]);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout.toString());
}

/** @param {string} id of a type @returns {string[]} its mmproj files, in `make test-all` with several weight types */
const filesOf = (id) => {
  const { quantised } = manifest.types.find((/** @type {any} */ one) => one.id === id);
  return [
    typeOf(id).mmproj,
    ...(isFull ? quantised : []).map((/** @type {any} */ one) => join(folder, one.mmproj)),
  ];
};

describe('encoders are bit-identical', { skip, concurrency: 2 }, () => {
  for (const [id, name] of skip
    ? []
    : [
        ['gemma3', 'sq'],
        [
          'qwen3vl',
          manifest.types.find((/** @type {any} */ one) => one.id === 'qwen3vl').cases[0].id,
        ],
        ['idefics3', 'wide'],
        ['qwen3a', 'a2'],
        ['lfm2a', 'a2'],
      ]) {
    for (const mmproj of filesOf(id)) {
      test(`${id}: ${mmproj.slice(mmproj.lastIndexOf('/') + 1)}`, async () => {
        const body = {
          ...bodyAbout(messagePartOf(partOf(id, name))),
          logprobs: true,
          top_logprobs: 5,
        };
        /** @type {Awaited<ReturnType<typeof answersOf>>[]} */
        const reports = [];
        for (const node of nodes) {
          for (const threads of [1, 2]) {
            const options = { file: typeOf(id).model, mmproj, chatTemplate: texts, threads };
            reports.push(await answersOf(node, { ...options, contextSize: 512 }, body));
          }
        }
        for (const { rounding, kernels, tops } of reports) {
          const [same] = reports.filter((one) => one.rounding === rounding);
          assert.equal(tops, same.tops, `${rounding} ${kernels}`);
        }
        assert.ok(JSON.parse(reports[0].tops).length > 0);
      });
    }
  }
});
