// Compares modules compiled by emcc (make emcc) with clang's: the package runs them unchanged, and all text, tokens and
// logits are the same.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { built, ci, locate, locateRelaxedNode, root } from '../support/locate.mjs';
import { run } from '../support/process.mjs';

const shared = locate('shared');
const relaxedNode = locateRelaxedNode();
const builds = ['simd128-single', 'simd128-threads', 'relaxed-single', 'relaxed-threads'];
const clang = resolve(root, 'dist');
const emcc = resolve(root, 'build/dist-emcc');

/** @returns {string | false} */
function missing() {
  try {
    built('dist-emcc');
    return false;
  } catch (error) {
    if (ci) throw error;
    return 'run make emcc';
  }
}

/** @param {string} file @returns {Promise<{imports: string[], exports: string[]}>} */
async function describeModule(file) {
  const source = `const m = new WebAssembly.Module(require('fs').readFileSync(process.argv[1]));
    const list = (all) => all.map(({ module, name, kind }) => [module, name, kind].join(' ')).sort();
    const [imports, exports] = [WebAssembly.Module.imports(m), WebAssembly.Module.exports(m)];
    console.log(JSON.stringify({ imports: list(imports), exports: list(exports) }))`;
  const { stdout, stderr } = await run(relaxedNode.path, ['-e', source, file]);
  return JSON.parse(stdout.toString() || assert.fail(stderr));
}

/** Removes names that link the modules of one build. @param {string[]} names */
const without = (names) => names.filter((name) => !/ [gem]%/.test(name));

describe('modules compiled by emcc', { skip: missing() || relaxedNode.skip }, () => {
  for (const build of builds) {
    test(`${build} has the same imports and exports as clang's`, async () => {
      const [wanted, found] = await Promise.all(
        [clang, emcc].map((dist) => describeModule(join(dist, `wasm/wick-${build}.wasm`))),
      );
      assert.ok(wanted.imports.length > 5 && without(wanted.exports).length > 50);
      assert.deepEqual(found.imports, wanted.imports);
      const table = ' __indirect_function_table table';
      const exports = without(found.exports).filter((name) => name !== table);
      assert.deepEqual(exports, without(wanted.exports));
      for (const part of ['grammar', 'extras', 'media']) {
        const { imports } = await describeModule(join(emcc, `wasm/wick-${build}-${part}.wasm`));
        assert.ok(imports.length > 20, `${part}: ${imports.length} imports`);
        for (const name of imports) assert.match(name, /^main /);
      }
    });

    test(`${build} gives the same answers as clang’s build`, async () => {
      const threads = build.endsWith('threads') ? '2' : '1';
      const script = join(root, 'tests/support/build_answers.mjs');
      const [wanted, found] = await Promise.all(
        [clang, emcc].map(async (dist) => {
          const args = [
            script,
            dist,
            build,
            threads,
            ...(shared.skip ? [] : [`${shared.path}/vectors`]),
          ];
          const { code, stdout, stderr } = await run(relaxedNode.path, args);
          assert.equal(code, 0, stderr);
          return JSON.parse(stdout.toString());
        }),
      );
      assert.ok(Object.keys(wanted).length >= (shared.skip ? 6 : 50));
      assert.deepEqual(found, wanted);
    });
  }

  test('the two builds have different bytes', () => {
    const [one, other] = [clang, emcc].map((dist) =>
      readFileSync(join(dist, 'wasm/wick-simd128-single.wasm')),
    );
    assert.notDeepEqual(one, other);
  });
});
