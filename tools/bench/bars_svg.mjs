// Draws groups of bars as an SVG: a grid of panels, each with its own scale starting at 0.
// Every bar has its value next to it; the colours can be distinguished on light and dark
// backgrounds.

import { escapeXml, short, styleOf } from './svg.mjs';

const WIDTH = 760;
const COLUMNS = 2;
const PANEL_WIDTH = WIDTH / COLUMNS;
/** The widths of the group names and of the value after the longest bar. */
const NAMES_WIDTH = 142;
const VALUE_WIDTH = 40;
const BAR = 12;
const BAR_GAP = 2;
const GROUP_GAP = 12;
const PANEL_TOP = 30;
const LEGEND = 28;

const STYLE = styleOf(
  `.title { font-weight: bold } .first { font-weight: bold }
.bar0 { fill: #b8730a } .bar1 { fill: #5b7fa6 } .bar2 { fill: #98a2ad }`,
  '.bar2 { fill: #6a737d }',
);

/** @typedef {{name: string, values: (number | undefined)[]}} Group with one value for each series */
/** @typedef {{title: string, groups: Group[]}} Panel */

/** @param {string[]} series */
const groupHeight = (series) => series.length * (BAR + BAR_GAP) + GROUP_GAP;

/** @param {string[]} series @param {Panel} panel @param {number} left @param {number} top */
function drawPanel(series, { title, groups }, left, top) {
  const most = Math.max(...groups.flatMap(({ values }) => values.map((value) => value ?? 0)));
  const from = left + NAMES_WIDTH;
  const room = PANEL_WIDTH - NAMES_WIDTH - VALUE_WIDTH;
  const lines = groups.flatMap(({ name, values }, g) => {
    const y = top + PANEL_TOP + g * groupHeight(series);
    const middle = y + (groupHeight(series) - GROUP_GAP) / 2 + 4;
    const bars = values.flatMap((value, i) => {
      if (value === undefined) return [];
      const width = Math.max(1, (value / most) * room);
      const at = y + i * (BAR + BAR_GAP);
      return (
        `<g><rect class="bar${i}" x="${from}" y="${at}" width="${width.toFixed(1)}" height="${BAR}" rx="2"/>` +
        `<text${i === 0 ? ' class="first"' : ''} x="${(from + width + 5).toFixed(1)}" y="${at + BAR - 2}">${short(value)}</text>` +
        `<title>${escapeXml(`${name}, ${series[i]}: ${short(value)}`)}</title></g>`
      );
    });
    return [
      `<text x="${from - 8}" y="${middle}" text-anchor="end">${escapeXml(name)}</text>`,
      ...bars,
    ];
  });
  return [
    `<text class="title" x="${left + 4}" y="${top + 16}">${escapeXml(title)}</text>`,
    ...lines,
  ];
}

/** @param {string[]} series */
const drawLegend = (series) =>
  series.map(
    (name, i) =>
      `<rect class="bar${i}" x="${4 + i * 110}" y="6" width="${BAR}" height="${BAR}" rx="2"/>` +
      `<text x="${22 + i * 110}" y="16">${escapeXml(name)}</text>`,
  );

/**
 * @param {string} label of the whole chart
 * @param {string[]} series up to three; the first one is emphasised
 * @param {Panel[]} panels
 * @returns {string}
 */
export function drawBars(label, series, panels) {
  const rows = Array.from({ length: Math.ceil(panels.length / COLUMNS) }, (_, row) =>
    panels.slice(row * COLUMNS, (row + 1) * COLUMNS),
  );
  let top = LEGEND;
  const drawn = rows.flatMap((row) => {
    const at = top;
    const most = Math.max(...row.map(({ groups }) => groups.length));
    top += PANEL_TOP + most * groupHeight(series);
    return row.flatMap((panel, column) => drawPanel(series, panel, column * PANEL_WIDTH, at));
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${top}" role="img" aria-label="${escapeXml(label)}" font-family="sans-serif" font-size="11">
<title>${escapeXml(label)}</title>
${STYLE}
${[...drawLegend(series), ...drawn].join('\n')}
</svg>
`;
}
