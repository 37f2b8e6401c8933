// Splits a C or JavaScript source into tokens, as far as tools/mutants needs them: comments and
// preprocessor lines are skipped, and a template literal is one token. Relies on the repository's
// format (make format).

/** @typedef {{text: string, start: number, end: number, kind: 'name' | 'number' | 'text' | 'sign'}} Token */

const SIGNS =
  /^(>>>=|\.\.\.|\*\*=|<<=|>>=|>>>|===|!==|&&=|\|\|=|\?\?=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||\?\?|\?\.|\+=|-=|\*=|\/=|%=|&=|\|=|\^=|=>|\*\*|.)/s;
const NUMBER = /^(0[xX][\da-fA-F_]+|\d[\d_]*(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?)[a-zA-Z]*/;
/** A slash after one of these tokens begins a regular expression. */
const BEFORE_REGEX = /^([(,=:[!&|?{};+\-*%<>~^]|=>|&&|\|\||\?\?|===|!==|return|typeof|case|of|in)$/;

/**
 * @param {string} source
 * @param {number} at the offset after the opening backquote
 * @returns {number} the offset of the end
 */
function templateEnd(source, at) {
  for (let i = at; i < source.length; i++) {
    if (source[i] === '\\') i++;
    else if (source[i] === '`') return i + 1;
    else if (source.startsWith('${', i)) {
      let depth = 1;
      for (i += 2; depth > 0 && i < source.length; i++) {
        if (source[i] === '`') i = templateEnd(source, i + 1) - 1;
        else if (source[i] === '{') depth++;
        else if (source[i] === '}') depth--;
      }
      i--;
    }
  }
  return source.length;
}

/** @param {string} source @param {number} at at the opening slash @returns {number} */
function regexEnd(source, at) {
  let isClass = false;
  for (let i = at + 1; i < source.length; i++) {
    if (source[i] === '\\') i++;
    else if (source[i] === '[') isClass = true;
    else if (source[i] === ']') isClass = false;
    else if (source[i] === '/' && !isClass) {
      return i + 1 + (/^[a-z]*/.exec(source.slice(i + 1))?.[0].length ?? 0);
    }
  }
  return source.length;
}

/** @param {string} source @param {number} at at the quote @returns {number} */
function quoteEnd(source, at) {
  for (let i = at + 1; i < source.length; i++) {
    if (source[i] === '\\') i++;
    else if (source[i] === source[at]) return i + 1;
  }
  return source.length;
}

/**
 * @param {string} source
 * @param {number} at
 * @returns {number} the offset after the line and its continuation lines
 */
function directiveEnd(source, at) {
  for (let i = at; i < source.length; i++) {
    if (source[i] === '\\') i++;
    else if (source[i] === '\n') return i;
  }
  return source.length;
}

/** @param {string} source @param {number} at @param {'c' | 'js'} language @returns {number} */
function skipped(source, at, language) {
  if (/\s/.test(source[at])) return at + 1;
  if (source.startsWith('//', at)) return directiveEnd(source, at);
  if (source.startsWith('/*', at)) return source.indexOf('*/', at + 2) + 2;
  const startsLine = at === 0 || source[at - 1] === '\n';
  if (source[at] === '#' && (language === 'c' || (startsLine && source[at + 1] === '!'))) {
    return directiveEnd(source, at);
  }
  return at;
}

/** @param {string} source @param {'c' | 'js'} language @returns {Token[]} */
export function tokensOf(source, language) {
  /** @type {Token[]} */
  const tokens = [];
  for (let at = 0; at < source.length; ) {
    const next = skipped(source, at, language);
    if (next !== at) {
      at = next;
      continue;
    }
    const token = tokenAt(source, at, language, tokens.at(-1)?.text ?? ';');
    tokens.push(token);
    at = token.end;
  }
  return tokens;
}

/**
 * @param {string} source
 * @param {number} at
 * @param {'c' | 'js'} language
 * @param {string} before the previous token
 * @returns {Token}
 */
function tokenAt(source, at, language, before) {
  const make = (/** @type {Token['kind']} */ kind, /** @type {number} */ end) => ({
    text: source.slice(at, end),
    start: at,
    end,
    kind,
  });
  const rest = source.slice(at, at + 200);
  if (language === 'js' && rest[0] === '`') return make('text', templateEnd(source, at + 1));
  if (rest[0] === '"' || rest[0] === "'") return make('text', quoteEnd(source, at));
  if (language === 'js' && rest[0] === '/' && BEFORE_REGEX.test(before)) {
    return make('text', regexEnd(source, at));
  }
  const number = NUMBER.exec(rest);
  if (number) return make('number', at + number[0].length);
  const name = /^[#A-Za-z_$][\w$]*/.exec(rest);
  if (name) return make('name', at + name[0].length);
  return make('sign', at + (SIGNS.exec(rest)?.[0].length ?? 1));
}
