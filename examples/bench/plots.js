// examples/bench/plots.js — live plots in the page's colours. Lines connect only points of the same setting (threads and prompt).

import UPlot from 'uplot';

const HEIGHT_PX = 240;
/** The possible steps between ticks, for numbers of repetitions. */
const WHOLE_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
const COLOURS = ['--accent', '--second', '--third', '--fourth', '--fifth', '--sixth'];
const SERIES_MAX = 24;

/** @param {string} name */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/**
 * A plot that fills its element, follows the colour scheme, and has one line per name.
 */
class LivePlot {
  #place;
  #labels;
  #steps;
  /** x and y of each line. @type {Map<string, [number, number][]>} */
  #lines = new Map();
  /** The names of the drawn lines. */
  #names = '';
  /** @type {UPlot | undefined} */
  #plot;
  #isDue = false;

  /**
   * @param {HTMLElement} place
   * @param {{x: string, y: string}} labels of the axes, with their units
   * @param {number[]} [steps] between the ticks of x; if given, points are drawn
   */
  constructor(place, labels, steps) {
    this.#place = place;
    this.#labels = labels;
    this.#steps = steps;
    this.#build();
    new ResizeObserver(() => {
      this.#plot?.setSize({ width: place.clientWidth, height: HEIGHT_PX });
    }).observe(place);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#build());
  }

  #build() {
    this.#plot?.destroy();
    const font = '13px system-ui, sans-serif';
    const axis = {
      stroke: colour('--soft'),
      grid: { stroke: colour('--line'), width: 1 },
      ...{ font, labelFont: font, labelSize: 22 },
    };
    const names = [...this.#lines.keys()].slice(0, SERIES_MAX);
    this.#names = names.join('\n');
    this.#plot = new UPlot(
      {
        width: this.#place.clientWidth,
        height: HEIGHT_PX,
        scales: { x: { time: false }, y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
        axes: [
          { ...axis, label: this.#labels.x, ...(this.#steps && { incrs: this.#steps }) },
          { ...axis, label: this.#labels.y, size: 56 },
        ],
        series: [
          { label: this.#labels.x },
          ...names.map((name, index) => this.#series(name, index)),
        ],
      },
      this.#data(),
      this.#place,
    );
  }

  /** @param {string} label @param {number} index */
  #series(label, index) {
    return {
      label,
      stroke: colour(COLOURS[index % COLOURS.length]),
      width: 2,
      ...(index >= COLOURS.length && { dash: [6 * Math.floor(index / COLOURS.length), 4] }),
      points: { show: this.#steps !== undefined, size: 7 },
    };
  }

  /** @returns {any} the x values, and the values of each line at them */
  #data() {
    const lines = [...this.#lines.values()].slice(0, SERIES_MAX);
    const xs = [...new Set(lines.flatMap((line) => line.map(([x]) => x)))].sort((a, b) => a - b);
    return [
      xs,
      ...lines.map((line) => {
        const ys = new Map(line);
        return xs.map((x) => ys.get(x) ?? null);
      }),
    ];
  }

  /** @param {string} name of the line @param {number} x @param {number} y */
  add(name, x, y) {
    const line = this.#lines.get(name);
    if (line) line.push([x, y]);
    else this.#lines.set(name, [[x, y]]);
    this.#draw();
  }

  clear() {
    this.#lines.clear();
    this.#draw();
  }

  /** Draws at most once per frame, because tokens may arrive faster. */
  #draw() {
    if (this.#isDue) return;
    this.#isDue = true;
    requestAnimationFrame(() => {
      this.#isDue = false;
      const names = [...this.#lines.keys()].slice(0, SERIES_MAX).join('\n');
      if (names === this.#names) this.#plot?.setData(this.#data());
      else this.#build();
    });
  }
}

/** @typedef {{threads: number, promptTokens: number}} Setting */

/** @param {Setting} setting */
export const settingName = ({ threads, promptTokens }) =>
  `${threads} thread${threads === 1 ? '' : 's'}, ${promptTokens} tokens`;

/** @param {(id: string) => HTMLElement} byId */
export function makePlots(byId) {
  const x = 'repetition';
  const prefill = new LivePlot(byId('prefill-plot'), { x, y: 'prefill, tokens/s' }, WHOLE_STEPS);
  const decode = new LivePlot(byId('decode-plot'), { x, y: 'decode, tokens/s' }, WHOLE_STEPS);
  const time = new LivePlot(byId('time-plot'), { x: 'time, s', y: 'tokens generated' });
  return {
    time,
    clear: () => [prefill, decode, time].forEach((plot) => void plot.clear()),
    /** @param {Setting} setting @param {number} repetition from 1 @param {import('./measure.js').Sample} sample */
    addSample: (setting, repetition, sample) => {
      prefill.add(settingName(setting), repetition, sample.prefill);
      decode.add(settingName(setting), repetition, sample.decode);
    },
  };
}
