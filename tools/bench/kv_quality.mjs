// Measures the cost of a lower-precision KV cache on real models: for each KV type, the divergence
// from an F32 KV cache in nats per token (`wick perplexity --kl`), on the text of a licence and
// Python source code.
//   node tools/bench/kv_quality.mjs [--models smollm2,gemma3 | file.gguf,...] [--kv f16,q8,q4,...] [--bytes 8000]

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { built, locate } from '../../tests/support/locate.mjs';
import { measuredText } from './measured_text.mjs';

const { values: options } = parseArgs({
  options: {
    models: { type: 'string', default: 'smollm2,gemma3' },
    kv: { type: 'string', default: 'f16,q8,q4' },
    bytes: { type: 'string', default: '8000' },
  },
});

const folder = mkdtempSync(join(tmpdir(), 'wick-kv-quality-'));
const [text, logits] = [join(folder, 'text'), join(folder, 'logits.f32')];

/** @param {string} model @param {string[]} more */
function perplexity(model, ...more) {
  const options = ['perplexity', model, '-f', text, '--ctx', '4096', ...more];
  return JSON.parse(execFileSync(built('native/wick'), options, { encoding: 'utf8' }));
}

/** @param {string} name @returns {string} a model's file */
function fileOf(name) {
  if (!['smollm2', 'gemma3'].includes(name)) return resolve(name);
  const { path, skip } = locate(name);
  if (skip) throw new Error(skip);
  return path;
}

try {
  writeFileSync(text, measuredText(Number(options.bytes)));
  console.log(
    '| model | KV type | tokens | perplexity | nats per token | 99th percentile | same top token |',
  );
  console.log('|---|---|---|---|---|---|---|');
  for (const model of options.models.split(',').map(fileOf)) {
    const float = perplexity(model, '--kv', 'f32', '--save', logits);
    console.log(`| ${basename(model)} | f32 | ${float.tokens} | ${float.perplexity} | | | |`);
    for (const type of options.kv.split(',')) {
      const found = perplexity(model, '--kv', type, '--kl', logits);
      console.log(
        `| ${basename(model)} | ${type} | ${found.tokens} | ${found.perplexity} | ${found.kl_nats_mean.toFixed(4)} ` +
          `| ${found.kl_nats_p99.toFixed(4)} | ${(100 * found.top1_agreement).toFixed(1)} % |`,
      );
    }
  }
} finally {
  rmSync(folder, { recursive: true });
}
