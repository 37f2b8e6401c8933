// examples/docs/reference.mjs — makes a documentation page for each module of the package from its types: every member with its
// type, its comment, an example with its output, and the guide that uses it.

import { documentsIn, modules, readText, referenceOf } from './outline.mjs';

/** @typedef {{name: string, code: string, comment: string, example: string}} Member */
/** @typedef {Member & {members: Member[]}} Declaration */

/** @param {string} source of a comment @returns {{comment: string, example: string}} one paragraph, and the code after `@example` */
function partsOf(source) {
  const plain = source.replace(/^\s*\/\*\*|\*\/\s*$/g, '').replace(/^\s*\* ?/gm, '');
  const [words, example = ''] = plain.split(/^@example\n/m);
  const comment = words.replace(/\{@link (\S+?)\}/g, '`$1`').replace(/\s+/g, ' ');
  return { comment: comment.trim(), example: example.trimEnd() };
}

/** @param {string} code @returns {number} how many brackets are open at its end */
const depthOf = (code) => {
  const plain = code.replace(/'[^'\n]*'|\/\*.*?\*\/|\/\/.*$/gm, '');
  return (plain.match(/[{[(]/g)?.length ?? 0) - (plain.match(/[}\])]/g)?.length ?? 0);
};

/** Matches a declaration that ends with a bracket. */
const isBlock = /^(?:export )?(?:declare )?(?:interface|global|(?:abstract )?class)\b[\s\S]*\}$/;

/**
 * Splits types into statements with the comments before them.
 * @param {string[]} lines of types, as the formatter writes them
 * @returns {{comment: string, example: string, code: string}[]}
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
    found.push({ ...partsOf(comment), code });
    [comment, code] = ['', ''];
  }
  return found;
}

/**
 * @param {string[]} lines of an object type
 * @param {string} before the name of the member that has this type, with a dot
 * @returns {Member[]} a member that is an object itself is followed by its members
 */
function membersOf(lines, before) {
  return statementsOf(lines).flatMap(({ comment, example, code }) => {
    const [, own = ''] = /^(?:readonly |static |get )*(\[.*?\]|\w+)/.exec(code) ?? [];
    const name = `${before}${own}`;
    const inner = /^(?:readonly )?\w+\??: \{\n([\s\S]*)\n\s*\}( \| null)?;$/.exec(code);
    if (!inner) return [{ name, comment, example, code: `${before}${code}` }];
    const whole = {
      ...{ name, comment, example },
      code: `${before}${code.split(':')[0]}: object${inner[2] ?? ''}`,
    };
    return [whole, ...membersOf(inner[1].split('\n'), `${name}.`)];
  });
}

/** @param {string} text of types @returns {Declaration[]} the declarations that a module exports */
export function declarationsOf(text) {
  return statementsOf(text.split('\n')).flatMap(({ comment, example, code }) => {
    const head = /^export (?:declare )?(interface|class|abstract class|type|function|const) (\w+)/;
    const [, kind, name] = head.exec(code) ?? [];
    if (name === undefined) return [];
    if (kind !== 'interface' && !kind.endsWith('class')) {
      return [{ name, code, comment, example, members: [] }];
    }
    const lines = code.split('\n');
    const members = membersOf(lines.slice(1, -1), '');
    return [{ name, code: lines[0].replace(/ \{\}?$/, ''), comment, example, members }];
  });
}

/** @returns {{title: string, path: string, code: string}[]} the guides and their code, which tests run */
const guides = () =>
  [...documentsIn('docs/guide'), 'docs/models.md', 'docs/js-api.md'].map((path) => {
    const text = readText(path);
    const code = [...text.matchAll(/^```(?:js|ts)\n(.*?)^```$/gms)].map(([, block]) => block);
    return { title: /^# (.+)$/m.exec(text)?.[1] ?? path, path, code: code.join('\n') };
  });

/** @param {string} code @returns {string} formatted for a table cell */
const inCell = (code) =>
  `\`${code.replace(/\s+/g, ' ').replaceAll('|', '\\|').replace(/;$/, '')}\``;

/** @param {Member} member @param {ReturnType<typeof guides>} known @returns {string} a link to a guide that calls it */
function guideOf({ name, code }, known) {
  if (!/^\w+(?:<[^>]*>)?\(/.test(code)) return '';
  const found = known.find((guide) => new RegExp(`\\.${name}\\(`).test(guide.code));
  return found ? ` Guide: [${found.title}](${found.path.replace('docs/', '../')}).` : '';
}

/** @param {string} example whose output is in lines that begin with `//=>` @returns {string} */
const exampleText = (example) =>
  example && `\`\`\`js\n${example.replace(/^\/\/=>/gm, '//')}\n\`\`\`\n\n`;

/** @param {Declaration} found @param {ReturnType<typeof guides>} known @returns {string} */
function sectionOf({ name, code, comment, example, members }, known) {
  const head =
    members.length > 0 && /^export \w+ \w+$/.test(code) ? '' : `\`\`\`ts\n${code}\n\`\`\`\n\n`;
  const rows = members.map((one) => {
    const words = `${one.comment.replaceAll('|', '\\|')}${guideOf(one, known)}`;
    return `| ${inCell(one.code)} | ${words} |`;
  });
  const table = rows.length > 0 ? `| member | |\n|---|---|\n${rows.join('\n')}\n\n` : '';
  const examples = members
    .filter((one) => one.example)
    .map((one) => `### ${name}.${one.name}\n\n${exampleText(one.example)}`);
  const words = comment && `${comment}\n\n`;
  return `## ${name}\n\n${words}${head}${exampleText(example)}${table}${examples.join('')}`;
}

/** @param {string} path of a page of `modules` @returns {string} its Markdown */
export function referenceText(path) {
  const name = Object.keys(modules).find((one) => referenceOf(one) === path) ?? '';
  const known = guides();
  const found = declarationsOf(readText(modules[name]));
  const names = found.map((one) => `[${one.name}](#${one.name.toLowerCase()})`).join(', ');
  const sections = found.map((one) => sectionOf(one, known)).join('');
  const given =
    'In the examples, `engine` has the model SmolLM2-135M-Instruct; comments at the end show the output.\n\n';
  return `# ${name}: all members\n\nGenerated from \`${modules[name]}\`. ${names}\n\n${given}${sections}`;
}
