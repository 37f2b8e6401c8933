// examples/docs/reference.mjs — a page of the documentation for each module of the package,
// generated from its types: every member with its type, its comment and the guide that has an
// example.

import { documentsIn, modules, readText, referenceOf } from './outline.mjs';

/** @typedef {{name: string, code: string, comment: string}} Member */
/** @typedef {Member & {members: Member[]}} Declaration */

/**
 * @param {string} comment
 * @returns {string} its text without the comment marks, as one paragraph
 */
const wordsOf = (comment) =>
  comment
    .replace(/^\s*\/\*\*|\*\/\s*$/g, '')
    .replace(/^\s*\* ?/gm, '')
    .replace(/\{@link (\S+?)\}/g, '`$1`')
    .replace(/\s+/g, ' ')
    .trim();

/** @param {string} code @returns {number} the number of brackets that are open at its end */
const depthOf = (code) => {
  const plain = code.replace(/'[^'\n]*'|\/\*.*?\*\/|\/\/.*$/gm, '');
  return (plain.match(/[{[(]/g)?.length ?? 0) - (plain.match(/[}\])]/g)?.length ?? 0);
};

/** A declaration that ends with a bracket. */
const isBlock = /^(?:export )?(?:declare )?(?:interface|global|(?:abstract )?class)\b[\s\S]*\}$/;

/**
 * Statements with the comments before them.
 * @param {string[]} lines of types, as formatted by Biome
 * @returns {{comment: string, code: string}[]}
 */
function statementsOf(lines) {
  const found = [];
  let [comment, code] = ['', ''];
  for (const line of lines) {
    const isComment =
      code === '' && (/^\s*\/\*\*/.test(line) || (comment && !comment.includes('*/')));
    if (isComment) {
      comment = /^\s*\/\*\*/.test(line) ? line : `${comment}\n${line}`;
      continue;
    }
    if (line.trim() === '' || (code === '' && /^\s*\/\//.test(line))) continue;
    code += code === '' ? line.trimStart() : `\n${line}`;
    const isWhole = depthOf(code) === 0 && (line.endsWith(';') || isBlock.test(code));
    if (!isWhole) continue;
    found.push({ comment: wordsOf(comment), code });
    [comment, code] = ['', ''];
  }
  return found;
}

/**
 * @param {string[]} lines of an object type
 * @param {string} before the name of the member whose type it is, with a dot
 * @returns {Member[]} the members; one that is itself an object is followed by its own members
 */
function membersOf(lines, before) {
  return statementsOf(lines).flatMap(({ comment, code }) => {
    const [, own = ''] = /^(?:readonly |static |get )*(\[.*?\]|\w+)/.exec(code) ?? [];
    const name = `${before}${own}`;
    const inner = /^(?:readonly )?\w+\??: \{\n([\s\S]*)\n\s*\}( \| null)?;$/.exec(code);
    if (!inner) return [{ name, comment, code: `${before}${code}` }];
    const whole = {
      name,
      comment,
      code: `${before}${code.split(':')[0]}: object${inner[2] ?? ''}`,
    };
    return [whole, ...membersOf(inner[1].split('\n'), `${name}.`)];
  });
}

/**
 * @param {string} text that of types
 * @returns {Declaration[]} the declarations that a module exports
 */
export function declarationsOf(text) {
  return statementsOf(text.split('\n')).flatMap(({ comment, code }) => {
    const head = /^export (?:declare )?(interface|class|abstract class|type|function|const) (\w+)/;
    const [, kind, name] = head.exec(code) ?? [];
    if (name === undefined) return [];
    if (kind !== 'interface' && !kind.endsWith('class')) {
      return [{ name, code, comment, members: [] }];
    }
    const lines = code.split('\n');
    const members = membersOf(lines.slice(1, -1), '');
    return [{ name, code: lines[0].replace(/ \{\}?$/, ''), comment, members }];
  });
}

/** @returns {{title: string, path: string, code: string}[]} the guides and their code, which tests run */
const guides = () =>
  [...documentsIn('docs/guide'), 'docs/models.md', 'docs/js-api.md'].map((path) => {
    const text = readText(path);
    const code = [...text.matchAll(/^```(?:js|ts)\n(.*?)^```$/gms)].map(([, block]) => block);
    return { title: /^# (.+)$/m.exec(text)?.[1] ?? path, path, code: code.join('\n') };
  });

/** @param {string} code @returns {string} the code in a cell of a table */
const inCell = (code) =>
  `\`${code.replace(/\s+/g, ' ').replaceAll('|', '\\|').replace(/;$/, '')}\``;

/** @param {Member} member @param {ReturnType<typeof guides>} known @returns {string} a link to an example of a call */
function exampleOf({ name, code }, known) {
  if (!/^\w+(?:<[^>]*>)?\(/.test(code)) return '';
  const found = known.find((guide) => new RegExp(`\\.${name}\\(`).test(guide.code));
  return found ? ` Example: [${found.title}](${found.path.replace('docs/', '../')}).` : '';
}

/** @param {Declaration} found @param {ReturnType<typeof guides>} known @returns {string} */
function sectionOf({ name, code, comment, members }, known) {
  const head =
    members.length > 0 && /^export \w+ \w+$/.test(code) ? '' : `\`\`\`ts\n${code}\n\`\`\`\n\n`;
  const rows = members.map((one) => {
    const words = `${one.comment.replaceAll('|', '\\|')}${exampleOf(one, known)}`;
    return `| ${inCell(one.code)} | ${words} |`;
  });
  const table = rows.length > 0 ? `| member | |\n|---|---|\n${rows.join('\n')}\n\n` : '';
  return `## ${name}\n\n${comment && `${comment}\n\n`}${head}${table}`;
}

/** @param {string} path of a page of `modules` @returns {string} its Markdown */
export function referenceText(path) {
  const name = Object.keys(modules).find((one) => referenceOf(one) === path) ?? '';
  const known = guides();
  const found = declarationsOf(readText(modules[name]));
  const names = found.map((one) => `[${one.name}](#${one.name.toLowerCase()})`).join(', ');
  const sections = found.map((one) => sectionOf(one, known)).join('');
  return `# ${name}: all members\n\nMade of \`${modules[name]}\`. ${names}\n\n${sections}`;
}
