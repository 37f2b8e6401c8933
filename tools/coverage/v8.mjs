// Converts the output of NODE_V8_COVERAGE to lines and branches of a bundle's sources: V8 counts
// ranges of the bundle's characters, and the source map gives the file and position of each
// character. V8 reports a block only if its count differs from that of the surrounding code, so the
// share of branches is a lower bound.

/** @typedef {{startOffset: number, endOffset: number, count: number}} Range */
/** @typedef {{ranges: Range[], isBlockCoverage: boolean}} FunctionCoverage */
/** @typedef {{offset: number, source: number, line: number, column: number}} Segment */

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** Decodes base64 VLQ. @param {string} text @returns {number[]} */
function numbersOf(text) {
  const numbers = [];
  for (let i = 0, value = 0, shift = 0; i < text.length; i++) {
    const digit = DIGITS.indexOf(text[i]);
    value += (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    numbers.push(value & 1 ? -(value >> 1) : value >> 1);
    value = shift = 0;
  }
  return numbers;
}

/** @param {string} code the bundle @param {string} mappings @returns {Segment[]} */
export function segmentsOf(code, mappings) {
  const segments = [];
  let [lineStart, source, line, column] = [0, 0, 0, 0];
  for (const text of mappings.split(';')) {
    let at = lineStart;
    for (const [step, ...moves] of text.split(',').map(numbersOf)) {
      if (step === undefined) continue;
      at += step;
      if (moves.length < 3) continue;
      source += moves[0];
      line += moves[1];
      column += moves[2];
      segments.push({ offset: at, source, line, column });
    }
    lineStart = code.indexOf('\n', lineStart) + 1;
  }
  return segments;
}

/**
 * @param {FunctionCoverage[]} functions
 * @param {number} size
 * @returns {Uint8Array} for each character, whether it was run
 */
export function ranOf(functions, size) {
  const ran = new Uint8Array(size).fill(1);
  const ranges = functions.flatMap((each) => each.ranges);
  // a nested range overrides the one around it
  ranges.sort((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset);
  for (const { startOffset, endOffset, count } of ranges) {
    ran.fill(count > 0 ? 1 : 0, startOffset, endOffset);
  }
  return ran;
}

/** For each source, records its lines and the starts of its branches, and whether they were run. */
export class SourceCoverage {
  /** @type {Map<string, {lines: Map<number, boolean>, branches: Map<string, boolean>}>} */
  files = new Map();

  /**
   * @param {{code: string, map: {sources: string[], mappings: string}, functions: FunctionCoverage[]}} script
   */
  add({ code, map, functions }) {
    const segments = segmentsOf(code, map.mappings);
    const ran = ranOf(functions, code.length);
    for (const { offset, source, line } of segments) {
      const { lines } = this.#file(map.sources[source]);
      lines.set(line, lines.get(line) || ran[offset] === 1);
    }
    for (const { ranges, isBlockCoverage } of functions) {
      if (!isBlockCoverage) continue;
      for (const { startOffset } of ranges.slice(1)) {
        const segment = segments.find(({ offset }) => offset >= startOffset);
        if (!segment) continue;
        const { branches } = this.#file(map.sources[segment.source]);
        const key = `${segment.line}:${segment.column}`;
        branches.set(key, branches.get(key) || ran[startOffset] === 1);
      }
    }
  }

  /**
   * Adds a source that a test ran directly, for lines that are known from bundles.
   * @param {string} name
   * @param {{code: string, functions: FunctionCoverage[]}} script
   */
  addSource(name, { code, functions }) {
    const ran = ranOf(functions, code.length);
    const { lines } = this.#file(name);
    let start = 0;
    for (const [line, text] of code.split('\n').entries()) {
      if (lines.has(line) && ran[start + text.search(/\S|$/)]) lines.set(line, true);
      start += text.length + 1;
    }
  }

  /** @param {string} name */
  #file(name) {
    const file = this.files.get(name) ?? { lines: new Map(), branches: new Map() };
    this.files.set(name, file);
    return file;
  }
}
