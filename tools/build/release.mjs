// make release: checks that this clone can be released, packs both packages into build/release/,
// and tries the packs. It publishes nothing and changes no file outside of build/.
// REPOSITORY=https://... is the public URL of the sources.

import { mkdirSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkPack, tryPacks } from './release_checks.mjs';
import { packPackage, stagePackage } from './release_pack.mjs';
import { checkTree, checkVersions } from './release_state.mjs';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const folder = join(root, 'build/release');

/** @param {string | undefined} url @returns {string[]} its faults */
function checkRepository(url) {
  if (!url) return [];
  const isPublic = URL.canParse(url) && new URL(url).protocol === 'https:';
  return isPublic ? [] : [`REPOSITORY is not an https URL: ${url}`];
}

/** Exits if there are faults. @param {string[]} faults */
function stopAt(faults) {
  if (faults.length === 0) return;
  for (const fault of faults) console.error(`release: ${fault}`);
  process.exit(1);
}

const repository = process.env.REPOSITORY || undefined;
stopAt([...checkTree(root), ...checkVersions(root), ...checkRepository(repository)]);

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const packs = ['.', 'examples/models'].map((source) => {
  const staged = stagePackage({ root, source, folder, repository });
  return { staged, ...packPackage(staged, folder) };
});
const found = packs.flatMap((pack) => checkPack(root, pack.file));
stopAt(found.length > 0 ? found : tryPacks(folder, packs));

for (const { name, version, file, size, integrity } of packs) {
  console.log(`${name} ${version}: ${(size / 1e6).toFixed(2)} MB packed, ${integrity}\n  ${file}`);
}
const flags = repository ? '--access public --provenance' : '--access public';
for (const { file } of packs.toReversed()) console.log(`npm publish ${file} ${flags}`);
if (!repository) {
  console.log(
    'without REPOSITORY=https://... the packs have no repository field, so npm rejects --provenance',
  );
}
