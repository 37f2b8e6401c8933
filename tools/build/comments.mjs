// Extracts the prose in a source: its comments, split into paragraphs, and its string literals of several words.

/** @typedef {{line: number, text: string}} Found */

const string = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/.source;
const template = /`(?:[^`\\]|\\[\s\S])*`/.source;
const regex = /(?<=[=(,:?[!&|]\s*)\/(?![/*])(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/
  .source;
const slashes = /\/\/[^\n]*|\/\*[\s\S]*?\*\//.source;
const cTokens = new RegExp(`${string}|(${slashes})`, 'g');
const scriptTokens = new RegExp(`${string}|${template}|${regex}|(${slashes})`, 'g');
const hashTokens = new RegExp(`"""[\\s\\S]*?"""|${string}|((?<=^|\\s)#(?![!{])[^\\n]*)`, 'gm');

const tokensOf = [
  { names: /\.[ch]$/, tokens: cTokens },
  { names: /\.(?:m?[jt]s|tsx?|wit)$/, tokens: scriptTokens },
  { names: /\.(?:py|sh|mk|ya?ml|toml)$|(?:^|\/)(?:Makefile|Dockerfile)$/, tokens: hashTokens },
];

/** @param {string} file @returns {boolean} whether commentsOf() can read it */
export const hasComments = (file) => tokensOf.some(({ names }) => names.test(file));

/** @param {string} line of a comment @returns {string} the line without comment markers, code and JSDoc types */
const wordsOf = (line) =>
  line
    .replace(/^\s*(?:\/\/+|\/\*+|\*+(?!\/)|#+)? ?/, '')
    .replace(/\s*\*\/$/, '')
    .replaceAll(/`[^`]*`|[\w./-]+\.(?:[ch]|m?js|md|py)\b/g, 'code');

/**
 * @param {string} file
 * @param {string} text
 * @returns {Found[]} paragraphs; a JSDoc tag, a list item or an empty line begins a new one
 */
export function commentsOf(file, text) {
  const tokens = tokensOf.find(({ names }) => names.test(file))?.tokens;
  /** @type {(Found & {column: number, last: number})[]} */
  const found = [];
  for (const { 0: whole, 1: comment, index } of tokens ? text.matchAll(tokens) : []) {
    if (comment === undefined || whole === '') continue;
    const first = text.slice(0, index).split('\n').length;
    const column = index - text.lastIndexOf('\n', index - 1) - 1;
    for (const [at, line] of comment.split('\n').entries()) {
      const words = wordsOf(line).trim();
      const before = found.at(-1);
      const continues =
        before?.text && before.last === first + at - 1 && before.column === column && words !== '';
      if (continues && !/^(?:@|[-*] |\d+\. )/.test(words)) {
        before.text += ` ${words}`;
        before.last++;
      } else found.push({ line: first + at, text: words, column, last: first + at });
    }
  }
  return found
    .flatMap(({ line, text: words }) =>
      words.split(/\s(?=@\w+ )/).map((part) => ({
        line,
        text: part.replace(
          /^@\w+\s*(?:\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})?\s*(?:(?<=@(?:param|property|typedef|callback|template)\b.*)\[?[\w.$=]+\]?\s*)?/,
          '',
        ),
      })),
    )
    .filter((one) => one.text !== '');
}

/** @param {string} text a C source @returns {Found[]} its string literals of more than two words; adjacent ones are joined */
export function sentencesOf(text) {
  const code = text.replaceAll(new RegExp(slashes, 'g'), (comment) =>
    comment.replaceAll(/[^\n]/g, ' '),
  );
  return [...code.matchAll(/"(?:[^"\\\n]|\\.)*"(?:\s*(?:PRI\w+\s*)?"(?:[^"\\\n]|\\.)*")*/g)]
    .map(({ 0: literal, index }) => ({
      line: code.slice(0, index).split('\n').length,
      text: literal
        .slice(1, -1)
        .replaceAll(/"\s*(?:PRI\w+\s*)?"/g, '')
        .replaceAll('\\n', '\n'),
    }))
    .filter((one) => /[a-z] [a-z]+ [a-z]/i.test(one.text));
}
