// One curve as an SVG: both axes linear from 0, the points named, colours that do on light and dark.

const WIDTH = 560;
const HEIGHT = 260;
const LEFT = 60;
const BOTTOM = 44;
const TOP = 22;
const RIGHT = 40;

/** @param {number} value */
const short = (value) => value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2);

/**
 * @param {number[][]} points x and y, ascending in x
 * @param {string} xLabel
 * @param {string} yLabel
 * @returns {string}
 */
export function drawCurve(points, xLabel, yLabel) {
  const xMost = Math.max(...points.map(([x]) => x));
  const yMost = Math.max(...points.map(([, y]) => y));
  const at = points.map(([x, y]) => [
    LEFT + (x / xMost) * (WIDTH - LEFT - RIGHT),
    HEIGHT - BOTTOM - (y / yMost) * (HEIGHT - BOTTOM - TOP),
  ]);
  const line = at.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(' ');
  const marks = at.map(([x, y], index) => {
    const [value, cost] = points[index];
    return (
      `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="3.5" fill="#b8730a"/>` +
      `<text x="${x.toFixed(1)}" y="${(y - 8).toFixed(1)}" text-anchor="middle">${short(cost)}</text>` +
      `<title>${short(value)} ${xLabel}: ${short(cost)} ${yLabel}</title>`
    );
  });
  const base = HEIGHT - BOTTOM;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12" fill="#808080">
<path d="M${LEFT} ${TOP}V${base}H${WIDTH - RIGHT}" fill="none" stroke="#808080"/>
<text x="${LEFT}" y="14">${yLabel}</text>
<text x="${WIDTH - RIGHT}" y="${HEIGHT - 8}" text-anchor="end">${xLabel}</text>
<text x="${LEFT}" y="${base + 16}" text-anchor="middle">0</text>
<text x="${WIDTH - RIGHT}" y="${base + 16}" text-anchor="end">${short(xMost)}</text>
<polyline points="${line}" fill="none" stroke="#b8730a" stroke-width="2"/>
${marks.map((mark) => `<g>${mark}</g>`).join('\n')}
</svg>
`;
}
