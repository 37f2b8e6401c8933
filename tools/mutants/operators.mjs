// Defines mutants. Each is one small source change that a programmer could make by mistake.

import { tokensOf } from './tokens.mjs';

/** @typedef {import('./tokens.mjs').Token} Token */
/**
 * @typedef {object} Mutation
 * @property {number} start of the replaced text
 * @property {number} end
 * @property {string} text the replacement
 * @property {string} operator
 */

/** @type {Record<string, [string, string]>} a sign, its replacement, and the operator's name */
const swapped = {
  '<': ['<=', 'boundary'],
  '<=': ['<', 'boundary'],
  '>': ['>=', 'boundary'],
  '>=': ['>', 'boundary'],
  '==': ['!=', 'equality'],
  '!=': ['==', 'equality'],
  '===': ['!==', 'equality'],
  '!==': ['===', 'equality'],
  '&&': ['||', 'logic'],
  '||': ['&&', 'logic'],
  '??': ['&&', 'logic'],
  '+': ['-', 'arithmetic'],
  '-': ['+', 'arithmetic'],
  '*': ['/', 'arithmetic'],
  '/': ['*', 'arithmetic'],
  '%': ['*', 'arithmetic'],
  '&': ['|', 'bits'],
  '|': ['&', 'bits'],
  '^': ['|', 'bits'],
  '<<': ['>>', 'bits'],
  '>>': ['<<', 'bits'],
  '+=': ['-=', 'arithmetic'],
  '-=': ['+=', 'arithmetic'],
};
const OPENING = '([{';
const CLOSING = ')]}';
const NOT_A_STATEMENT = new Set(
  (
    'return break continue goto if for while do switch case default else typedef static const struct ' +
    'enum union extern let var import export class function throw try catch finally async get set'
  ).split(' '),
);
const ASSIGNS = /^([-+*/%&|^]|<<|>>|>>>|\?\?|&&|\|\|)?=$/;

/** @param {Token[]} tokens @returns {Map<number, number>} maps each bracket to its partner */
function bracketsOf(tokens) {
  const pairs = new Map();
  /** @type {number[]} */
  const open = [];
  for (const [i, { text, kind }] of tokens.entries()) {
    if (kind !== 'sign' || text.length !== 1) continue;
    if (OPENING.includes(text)) open.push(i);
    if (CLOSING.includes(text)) {
      const from = open.pop();
      if (from === undefined) continue;
      pairs.set(from, i).set(i, from);
    }
  }
  return pairs;
}

/** One source with its tokens. */
class Site {
  /** @param {string} source @param {'c' | 'js'} language */
  constructor(source, language) {
    this.source = source;
    this.language = language;
    this.tokens = tokensOf(source, language);
    this.pairs = bracketsOf(this.tokens);
  }

  /** @param {number} i @returns {string} */
  text(i) {
    return this.tokens[i]?.text ?? '';
  }

  /**
   * @param {number} i
   * @returns {boolean} whether it has spaces on both sides, which distinguish `a * b` from `a *b`
   */
  isBinary(i) {
    const { start, end } = this.tokens[i];
    return /\s/.test(this.source[start - 1] ?? '') && /\s/.test(this.source[end] ?? '');
  }

  /** @param {number} i @returns {number} the token that ends the statement beginning at i, or -1 */
  statementEnd(i) {
    for (let at = i; at < this.tokens.length; at++) {
      const text = this.text(at);
      if (text === ';') return at;
      if (this.tokens[at].kind !== 'sign') continue;
      if (CLOSING.includes(text)) return -1;
      if (OPENING.includes(text)) at = this.pairs.get(at) ?? this.tokens.length;
    }
    return -1;
  }

  /** @param {number} i @returns {'if' | 'block' | null} the kind of code before i, if a statement begins there */
  beginning(i) {
    const before = this.text(i - 1);
    if (/^[;{}]$/.test(before)) return 'block';
    if (before === 'else') return 'if';
    if (before !== ')') return null;
    const word = this.text((this.pairs.get(i - 1) ?? 0) - 1);
    if (word === 'if') return 'if';
    return word === 'for' || word === 'while' ? 'block' : null;
  }
}

/**
 * Matches `if (used > most) most = used;`, even as the last of several conditions. If the numbers are equal, assigning one
 * to the other has no effect.
 * @param {Site} site @param {number} i @returns {boolean}
 */
function isOfMost(site, i) {
  const lineStart = site.source.lastIndexOf('\n', site.tokens[i].start) + 1;
  const line = site.source.slice(lineStart).split('\n', 1)[0];
  const [, before, left, right, to, from] =
    /^(\s*if \((?:.* && )?)([^&|]+) [<>]=? ([^&|]+)\) (.+) = (.+);$/.exec(line) ?? [];
  if (left === undefined || site.tokens[i].start - lineStart < before.length) return false;
  return (left === to && right === from) || (left === from && right === to);
}

/** @param {Site} site @param {number} i @returns {Mutation[]} */
function ofSign(site, i) {
  const { start, end, text, kind } = site.tokens[i];
  if (kind !== 'sign') return [];
  const found = [];
  const change = Object.hasOwn(swapped, text) ? swapped[text] : undefined;
  if (change && site.isBinary(i) && !(change[1] === 'boundary' && isOfMost(site, i))) {
    found.push({ start, end, text: change[0], operator: change[1] });
  }
  const step = text === '++' ? '--' : text === '--' ? '++' : '';
  if (step) found.push({ start, end, text: step, operator: 'arithmetic' });
  if (text === '!') found.push({ start, end, text: '', operator: 'negation' });
  return found;
}

/**
 * @param {Site} site
 * @param {number} i
 * @returns {boolean} whether it is a constant like `const AWAKE_MAX = 64;`: an arbitrary choice, like C's enums
 */
function isLimit(site, i) {
  const lineStart = site.source.lastIndexOf('\n', site.tokens[i].start) + 1;
  return /^(export )?const [A-Z][A-Z\d_]* = /.test(site.source.slice(lineStart, lineStart + 80));
}

/**
 * @param {Site} site
 * @param {number} i
 * @returns {string} the function that has the token in its arguments, or ''
 */
function calledWith(site, i) {
  for (let at = i - 1; at > 0; at--) {
    const text = site.text(at);
    if (/^[;{}]$/.test(text)) return '';
    if (text === '(' || text === '[') return site.text(at - 1);
    if (text === ')' || text === ']') at = site.pairs.get(at) ?? 0;
  }
  return '';
}

/** @param {Site} site @param {number} i @returns {boolean} whether it is the initial capacity of a growing list, an arbitrary choice */
function isFirstRoom(site, i) {
  const lineStart = site.source.lastIndexOf('\n', site.tokens[i].start) + 1;
  return /capacity == 0 \? $/.test(site.source.slice(lineStart, site.tokens[i].start));
}

/** @param {Site} site @param {number} i @returns {boolean} whether it is the growth factor of a list, an arbitrary choice */
function isGrowth(site, i) {
  const lineStart = site.source.lastIndexOf('\n', site.tokens[i].start) + 1;
  return /capacity == 0 \? .* : /.test(site.source.slice(lineStart, site.tokens[i].start));
}

/**
 * Changes a number by one. Three kinds of numbers are not increased, because that is not a fault:
 * the arguments of an allocation, which then uses a little more memory; a step count, which reaches
 * its limit a little earlier; and the growth of a list, which then happens less often.
 * @param {Site} site
 * @param {number} i
 * @returns {Mutation[]}
 */
function ofNumber(site, i) {
  const { start, end, text, kind } = site.tokens[i];
  const whole = /^(\d+|0x[\da-f]+)([uUlLn]*)$/i.exec(text);
  if (kind !== 'number' || !whole || isLimit(site, i) || isFirstRoom(site, i)) return [];
  const value = BigInt(whole[1]);
  const isRoom = site.language === 'c' && /_alloc(_|$)|_step$/.test(calledWith(site, i));
  const more = isRoom || isGrowth(site, i) ? [] : [value + 1n];
  const others = value === 0n ? more : [...more, value - 1n];
  return others.map((other) => ({ start, end, text: `${other}${whole[2]}`, operator: 'constant' }));
}

/** @param {Site} site @param {number} i @returns {Mutation[]} */
function ofName(site, i) {
  const { start, end, text } = site.tokens[i];
  if (text === 'true' || text === 'false') {
    return [{ start, end, text: text === 'true' ? 'false' : 'true', operator: 'constant' }];
  }
  const close = site.pairs.get(i + 1);
  if ((text === 'if' || text === 'while') && site.text(i + 1) === '(' && close) {
    const from = site.tokens[i + 1].end;
    const to = site.tokens[close].start;
    const condition = site.source.slice(from, to);
    return [{ start: from, end: to, text: `!(${condition})`, operator: 'condition' }];
  }
  if (text === 'continue') return [{ start, end, text: 'break', operator: 'loop' }];
  return [];
}

/** @param {Site} site @param {number} i @returns {Mutation[]} */
function ofReturn(site, i) {
  const begins = site.beginning(i);
  const last = site.statementEnd(i);
  if (site.text(i) !== 'return' || !begins || last < 0) return [];
  const { start, end } = site.tokens[i];
  const stop = site.tokens[last].end;
  const found = [];
  // the last statement of a function is not an early return
  const isEarly = begins === 'if' || site.text(last + 1) !== '}';
  if (isEarly) found.push({ start, end: stop, text: ';', operator: 'early return' });
  const value = site.source.slice(end, stop - 1).trim();
  if (!value || value === 'true' || value === 'false') return found;
  const instead =
    site.language === 'js' ? 'undefined' : /^(0|NULL|WICK_OK)$/.test(value) ? '1' : '0';
  if (value !== instead) {
    found.push({ start, end: stop, text: `return ${instead};`, operator: 'return value' });
  }
  return found;
}

/**
 * Deletes an expression statement. C's own free() is left out: only commands call it, and their
 * processes end soon, so no behaviour depends on it (the engine calls memory_free, and tests count
 * its blocks). SIMD_OPAQUE is also left out, because it only hides facts from the optimiser.
 * @param {Site} site
 * @param {number} i
 * @returns {Mutation[]}
 */
function ofStatement(site, i) {
  if (!site.beginning(i) || NOT_A_STATEMENT.has(site.text(i))) return [];
  if (site.language === 'c' && /^(free|SIMD_OPAQUE)$/.test(site.text(i))) return [];
  if (site.tokens[i].kind !== 'name' && !/^(\(|\*|\+\+|--)$/.test(site.text(i))) return [];
  const last = site.statementEnd(i);
  if (last <= i) return [];
  const isDeclaration =
    site.tokens[i].kind === 'name' &&
    !/^(await|yield|delete|void)$/.test(site.text(i)) &&
    (site.tokens[i + 1].kind === 'name' ||
      (site.text(i + 1) === '*' && !site.isBinary(i + 1) && site.language === 'c'));
  if (isDeclaration) return [];
  let isEffect = site.text(last - 1) === ')' || /^(\+\+|--)$/.test(site.text(last - 1));
  for (let at = i; at < last && !isEffect; at++) {
    if (ASSIGNS.test(site.text(at)) && site.tokens[at].kind === 'sign') isEffect = true;
    if (OPENING.includes(site.text(at))) at = site.pairs.get(at) ?? last;
  }
  const { start } = site.tokens[i];
  const { end } = site.tokens[last];
  return isEffect ? [{ start, end, text: ';', operator: 'statement' }] : [];
}

/**
 * Returns whether a function of two arguments is symmetric: minimum and maximum, and the sum, product and
 * equality of vectors.
 * @param {string} name
 */
const isCommutative = (name) =>
  /(^|_)(min|max)(_|$)/.test(name) ||
  /^wasm_[a-z\d]+_(add|mul|dot_i16x8|and|or|xor|eq|ne)$/.test(name);

/**
 * @param {Site} site
 * @param {number} i
 * @returns {Mutation[]} mutants in which two plain arguments are exchanged
 */
function ofArguments(site, i) {
  if (site.text(i) !== ',' || (site.text(i - 2) !== '(' && site.text(i + 2) !== ')')) return [];
  if (!/^[(,]$/.test(site.text(i - 2))) return [];
  const [left, right] = [site.tokens[i - 1], site.tokens[i + 1]];
  if (left.kind !== 'name' || right?.kind !== 'name' || !/^[,)]$/.test(site.text(i + 2))) return [];
  const isCall = site.text(i - 2) === '(' && site.text(i + 2) === ')';
  if (isCall && isCommutative(site.text(i - 3))) return [];
  const text = `${right.text}, ${left.text}`;
  return [{ start: left.start, end: right.end, text, operator: 'arguments' }];
}

/**
 * Finds the ranges of functions: in C, code outside of them is not changed (tables, types,
 * prototypes).
 * @param {Site} site
 * @returns {(i: number) => boolean}
 */
function withinFunctions(site) {
  if (site.language === 'js') return () => true;
  /** @type {[number, number][]} */
  const bodies = [];
  for (let i = 0; i < site.tokens.length; i++) {
    if (site.text(i) !== '{') continue;
    const close = site.pairs.get(i) ?? site.tokens.length;
    if (site.text(i - 1) === ')') bodies.push([i, close]);
    i = close;
  }
  return (i) => bodies.some(([from, to]) => i > from && i < to);
}

/**
 * @param {Site} site
 * @param {number} i
 * @returns {boolean} whether it is on a line that only imports names
 */
function isWithinImport(site, i) {
  const lineStart = site.source.lastIndexOf('\n', site.tokens[i].start) + 1;
  return site.language === 'js' && site.source.startsWith('import ', lineStart);
}

/** @param {string} source @param {'c' | 'js'} language @returns {Mutation[]} */
export function mutationsOf(source, language) {
  const site = new Site(source, language);
  const isWithin = withinFunctions(site);
  const kinds = [ofSign, ofNumber, ofName, ofReturn, ofStatement, ofArguments];
  return site.tokens.flatMap((_, i) =>
    isWithin(i) && !isWithinImport(site, i) ? kinds.flatMap((kind) => kind(site, i)) : [],
  );
}

/** @param {string} source @param {Mutation} mutation @returns {string} */
export function mutate(source, { start, end, text }) {
  return source.slice(0, start) + text + source.slice(end);
}

/**
 * Returns the lines that a mutation changes, with single spaces, for the report. They also identify a
 * listed mutant even if its lines have moved.
 * @param {string} source
 * @param {Mutation} mutation
 * @returns {{line: number, above: string, before: string, after: string}} `above`: the line before
 * them
 */
export function describeMutation(source, mutation) {
  const from = source.lastIndexOf('\n', mutation.start - 1) + 1;
  const stop = source.indexOf('\n', mutation.end);
  const to = stop < 0 ? source.length : stop;
  const plain = (/** @type {string} */ text) => text.replace(/\s+/g, ' ').trim();
  const lines = source.slice(0, mutation.start).split('\n');
  return {
    line: lines.length,
    above: plain(lines.at(-2) ?? ''),
    before: plain(source.slice(from, to)),
    after: plain(
      source.slice(from, mutation.start) + mutation.text + source.slice(mutation.end, to),
    ),
  };
}
