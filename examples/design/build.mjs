// examples/design/build.mjs — builds the page that shows the design system: its colours with their
// contrast, its scales and icons, and the states of its components. The values are read from
// examples/shared/look.css.

import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  ChevronLeft,
  ChevronRight,
  Copy,
  Ellipsis,
  FileText,
  Menu,
  Mic,
  Pencil,
  Plus,
  RefreshCw,
  Settings,
  Square,
  SquarePen,
  X,
} from 'lucide';
import { copyStyles } from '../shared/bundle.mjs';
import { addLinks } from '../shared/pages.mjs';
import { contrast, pairs, readTokens } from './tokens.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const read = (/** @type {string} */ name) => readFileSync(resolve(here, name), 'utf8');

/** Icons that the pages use, from https://lucide.dev, with their purposes. */
const icons = /** @type {const} */ ([
  [SquarePen, 'New conversation'],
  [Menu, 'List of conversations'],
  [Settings, 'Settings'],
  [Ellipsis, 'More actions'],
  [Plus, 'Attach'],
  [FileText, 'Attached file'],
  [Mic, 'Record'],
  [Square, 'Stop recording'],
  [Copy, 'Copy'],
  [Pencil, 'Edit'],
  [RefreshCw, 'Answer again'],
  [ChevronLeft, 'Previous version'],
  [ChevronRight, 'Next version'],
  [X, 'Remove'],
]);

const tokens = readTokens();

/** @param {Record<string, string>} colours of a theme */
const pairRows = (colours) =>
  pairs.map(([front, back]) => {
    const ratio = contrast(colours[front], colours[back]).toFixed(1);
    return `<li class="${front}-on-${back}">${front} on ${back}, ${ratio} to 1</li>`;
  });

/** Makes one CSS rule per pair, because the page's policy forbids inline styles. */
const pairRules = () =>
  pairs.map(
    ([front, back]) =>
      `.${front}-on-${back} {\n  background: var(--${back});\n  color: var(--${front});\n}\n`,
  );

/** @param {string} group text, space, radius or motion @returns {[string, string][]} */
const scaleOf = (group) =>
  tokens.scales.filter(([name]) => name === group || name.startsWith(`${group}-`));

/** @param {string} group @param {string} sample text of a row's sample */
const scaleRows = (group, sample) =>
  scaleOf(group).map(
    ([name, value]) =>
      `<tr><th scope="row"><code>--${name}</code></th><td>${value}</td><td><span class="${name}">${sample}</span></td></tr>`,
  );

/** @type {Record<string, string>} the property that the samples of a group demonstrate */
const shown = { text: 'font-size', space: 'padding', radius: 'border-radius' };

const scaleRules = () =>
  Object.entries(shown).flatMap(([group, property]) =>
    scaleOf(group).map(
      ([name]) =>
        `.${name} {\n  ${property}${group === 'space' ? '-left' : ''}: var(--${name});\n}\n`,
    ),
  );

/** @param {readonly (readonly unknown[])[]} nodes of an icon: [tag, attributes] */
const drawing = (nodes) =>
  nodes
    .map(([tag, attributes]) => {
      const text = Object.entries(/** @type {Record<string, string>} */ (attributes))
        .map(([name, value]) => `${name}="${value}"`)
        .join(' ');
      return `<${tag} ${text}/>`;
    })
    .join('');

const iconRows = () =>
  icons.map(
    ([icon, use]) =>
      `<li><svg aria-hidden="true" width="24" height="24" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round">${drawing(icon)}</svg> ${use}</li>`,
  );

/** @param {string} folder @param {string} [place] its folder in the site */
export function buildDesign(folder, place) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  /** @type {Record<string, string[]>} */
  const parts = {
    light: pairRows(tokens.light),
    dark: pairRows(tokens.dark),
    text: scaleRows('text', 'Nothing you type leaves this machine.'),
    space: scaleRows('space', '|'),
    radius: scaleRows('radius', ''),
    motion: scaleRows('motion', 'the fade of actions; none if the system requests reduced motion'),
    icons: iconRows(),
  };
  const components = read('components.html');
  const html = addLinks(read('index.html'), place)
    .replaceAll('<!-- components -->', components)
    .replace(/<!-- (\w+) -->/g, (all, name) => parts[name]?.join('\n') ?? all);
  writeFileSync(resolve(folder, 'index.html'), html);
  writeFileSync(
    resolve(folder, 'page.css'),
    [read('page.css'), ...pairRules(), ...scaleRules()].join('\n'),
  );
  copyFileSync(resolve(here, '../chat/icon.svg'), resolve(folder, 'icon.svg'));
  copyStyles(folder);
}
