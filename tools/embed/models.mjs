// Creates build/embed/: all-MiniLM-L6-v2 as GGUF in F32 and Q8_0, and for transformers.js as ONNX in
// F32 and quantised, from the weights that tools/setup.sh embed installs. Existing files are kept.
//   node tools/embed/models.mjs

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { locate, root } from '../../tests/support/locate.mjs';
import { convertBert } from './bert_gguf.mjs';

const weights = locate('minilm');
if (weights.skip) {
  console.error(`models: ${weights.skip}`);
  process.exit(1);
}
const folder = resolve(root, 'build/embed');
mkdirSync(folder, { recursive: true });

/** Creates a file completely or not at all. @param {string} name @param {(part: string) => void} make */
function once(name, make) {
  const path = join(folder, name);
  if (existsSync(path)) return;
  rmSync(`${path}.part`, { recursive: true, force: true });
  make(`${path}.part`);
  renameSync(`${path}.part`, path);
  console.log(path);
}

once('minilm-f32.gguf', (part) => writeFileSync(part, convertBert(weights.path)));
once('minilm-q8_0.gguf', (part) => {
  const from = join(folder, 'minilm-f32.gguf');
  execFileSync(resolve(root, 'build/native/wick'), ['quantize', '--quiet', from, part, 'q8_0']);
});
once('onnx', (part) => {
  const python = resolve(root, '.toolchain/embed/bin/python');
  execFileSync(python, [resolve(root, 'tools/embed/bert_onnx.py'), weights.path, part]);
});
