// Draws one curve as an SVG. Both axes are linear from 0 with ticks at round numbers. Points are
// labelled with their values if there is space. The colours are legible on light and dark backgrounds.

import { short, styleOf } from './svg.mjs';

const WIDTH = 560;
const HEIGHT = 260;
const LEFT = 60;
const BOTTOM = 44;
const TOP = 30;
const RIGHT = 40;
const BASE = HEIGHT - BOTTOM;
/** The minimum distance between the centres of two legible labels. */
const NAME_WIDTH = 34;

const STYLE = styleOf(
  `path, line { stroke: #57606a; fill: none } .grid { stroke-opacity: 0.2 }
.curve { stroke: #b8730a; fill: none; stroke-width: 2 } circle { fill: #b8730a }`,
  'path, line { stroke: #9198a1 }',
);

/** Returns 3 to 8 multiples, up to `most`, of a step that is 1, 2 or 5 times a power of 10. @param {number} most */
export function roundMarks(most) {
  const power = 10 ** Math.floor(Math.log10(most / 3));
  const step = [5, 2, 1].map((times) => times * power).find((size) => most / size >= 3) ?? power;
  return Array.from({ length: Math.floor(most / step) }, (_, i) =>
    Number(((i + 1) * step).toPrecision(6)),
  );
}

/**
 * @param {number[][]} points x and y, ascending in x
 * @param {string} xLabel
 * @param {string} yLabel
 * @returns {string}
 */
export function drawCurve(points, xLabel, yLabel) {
  const xMost = Math.max(...points.map(([x]) => x));
  const yMost = Math.max(...points.map(([, y]) => y));
  const across = (/** @type {number} */ x) =>
    (LEFT + (x / xMost) * (WIDTH - LEFT - RIGHT)).toFixed(1);
  const up = (/** @type {number} */ y) => (BASE - (y / yMost) * (BASE - TOP)).toFixed(1);
  const grid = [
    ...roundMarks(yMost).map(
      (y) =>
        `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${up(y)}" y2="${up(y)}"/>` +
        `<text x="${LEFT - 6}" y="${up(y)}" dy="4" text-anchor="end">${y}</text>`,
    ),
    ...roundMarks(xMost).map(
      (x) =>
        `<line x1="${across(x)}" x2="${across(x)}" y1="${BASE}" y2="${BASE + 4}"/>` +
        `<text x="${across(x)}" y="${BASE + 17}" text-anchor="middle">${x}</text>`,
    ),
  ];
  let named = LEFT - NAME_WIDTH / 2;
  const marks = points.map(([value, cost]) => {
    const [x, y] = [across(value), up(cost)];
    const hasRoom = Number(x) - named >= NAME_WIDTH;
    if (hasRoom) named = Number(x);
    const name = `<text x="${x}" y="${y}" dy="-8" text-anchor="middle">${short(cost)}</text>`;
    return (
      `<g><circle cx="${x}" cy="${y}" r="3.5"/>${hasRoom ? name : ''}` +
      `<title>${short(value)} ${xLabel}: ${short(cost)} ${yLabel}</title></g>`
    );
  });
  const line = points.map(([x, y]) => `${across(x)},${up(y)}`).join(' ');
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${yLabel} by ${xLabel}" font-family="sans-serif" font-size="12">
<title>${yLabel} by ${xLabel}</title>
${STYLE}
${grid.join('\n')}
<path d="M${LEFT} ${TOP}V${BASE}H${WIDTH - RIGHT}"/>
<text x="${LEFT}" y="14">${yLabel}</text>
<text x="${WIDTH - RIGHT}" y="${HEIGHT - 8}" text-anchor="end">${xLabel}</text>
<text x="${LEFT}" y="${BASE + 17}" text-anchor="middle">0</text>
<polyline class="curve" points="${line}"/>
${marks.join('\n')}
</svg>
`;
}
