// examples/chat/calculator.js — computes the value of an arithmetic expression with a separate
// grammar, without evaluating code.

/** The maximum nesting of parentheses, signs and powers. */
const DEPTH_MAX = 50;

/** @param {string} text @returns {string[]} */
function tokensOf(text) {
  const tokens = text.match(/\d+\.?\d*(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?|\S/gi) ?? [];
  return tokens.map((one) => ({ '×': '*', '·': '*', '÷': '/', '−': '-' })[one] ?? one);
}

/**
 * Precedence: powers and signs, which are right-associative (-2^2 is -4), then products, then sums.
 * @param {string} text
 * @returns {number}
 * @throws {Error} if it is not an expression, or has no value
 */
export function calculate(text) {
  const tokens = tokensOf(text.replaceAll('**', '^'));
  let at = 0;
  let depth = 0;

  function sum() {
    let value = product();
    while (tokens[at] === '+' || tokens[at] === '-')
      value = tokens[at++] === '+' ? value + product() : value - product();
    return value;
  }
  function product() {
    let value = signed();
    for (;;) {
      const operator = tokens[at];
      if (operator !== '*' && operator !== '/' && operator !== '%') return value;
      at++;
      const other = signed();
      value = operator === '*' ? value * other : operator === '/' ? value / other : value % other;
    }
  }
  /** @returns {number} */
  function signed() {
    if (++depth > DEPTH_MAX) throw new Error('the expression is too deep');
    const sign = tokens[at];
    if (sign === '-' || sign === '+') at++;
    const value = sign === '-' ? -signed() : sign === '+' ? signed() : power();
    depth--;
    return value;
  }
  /** @returns {number} */
  function power() {
    const base = operand();
    if (tokens[at] !== '^') return base;
    at++;
    return base ** signed();
  }
  function operand() {
    const token = tokens[at++];
    if (token === undefined) throw new Error('the expression ends too early');
    if (/^[\d.]/.test(token) && Number.isFinite(Number(token))) return Number(token);
    if (token !== '(') throw new Error(`“${token}” is not understood`);
    const value = sum();
    if (tokens[at++] !== ')') throw new Error('a parenthesis is not closed');
    return value;
  }

  const value = sum();
  if (at < tokens.length) throw new Error(`“${tokens[at]}” is not understood`);
  if (!Number.isFinite(value)) throw new Error('it has no value');
  // 0.1 + 0.2 is 0.3, and whole numbers have 16 digits
  return Number.isInteger(value) ? value : Number(value.toPrecision(15));
}
