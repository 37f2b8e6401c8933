// examples/fork/kv_map.js — draws the pages of the KV cache, with one square per page, and a
// legend that counts them. The chat page also uses it.

/** @typedef {import('wick-llm').KvStats} KvStats */

/** The letters in kvStats().map, the most important first. */
const kinds = /** @type {const} */ ({ s: 'shared', p: 'private', c: 'cached', '.': 'free' });

/** @param {string} className @returns {HTMLElement} */
function makeSquare(className) {
  const square = document.createElement('span');
  square.className = className;
  return square;
}

/** @param {HTMLElement} picture @param {string} map the pages; only changed squares are redrawn */
function drawSquares(picture, map) {
  const squares = picture.children;
  while (squares.length > map.length) picture.lastElementChild?.remove();
  for (const [index, letter] of [...map].entries()) {
    const name = `kv-page ${kinds[/** @type {keyof typeof kinds} */ (letter)]}`;
    if (index >= squares.length) picture.append(makeSquare(name));
    else if (squares[index].className !== name) squares[index].className = name;
  }
}

/**
 * @param {HTMLElement} legend
 * @param {string} map
 * @param {Record<string, string>} words the name of each kind on the page; a kind without a name is left out
 * @returns {string} the legend as text
 */
function drawLegend(legend, map, words) {
  const counts = Object.entries(kinds)
    .filter(([, kind]) => words[kind])
    .map(([letter, kind]) => ({ kind, text: `${map.split(letter).length - 1} ${words[kind]}` }));
  const entries = counts.map(({ kind, text }) => {
    const entry = document.createElement('span');
    entry.append(makeSquare(`kv-page ${kind}`), ` ${text}`);
    return entry;
  });
  legend.replaceChildren(...entries);
  return counts.map(({ text }) => text).join(', ');
}

/**
 * @param {{picture: HTMLElement, legend: HTMLElement, words: Record<string, string>}} where
 * @param {KvStats} stats with their map
 */
export function drawPages({ picture, legend, words }, { map = '', pages }) {
  picture.classList.add('kv-map');
  legend.classList.add('kv-legend');
  drawSquares(picture, map);
  picture.ariaLabel = `${pages.all} pages: ${drawLegend(legend, map, words)}`;
}
