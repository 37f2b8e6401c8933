// examples/bench/plots.js — two live plots in the page's colours.

import UPlot from 'uplot';

const HEIGHT_PX = 220;
/** Between the numbers of repetitions. */
const WHOLE_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

/** @param {string} name */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/**
 * A plot that takes points one by one, fills its element and follows the colour scheme.
 */
class LivePlot {
  #place;
  #labels;
  #isPoints;
  /** @type {number[][]} */
  #data;
  /** @type {UPlot | undefined} */
  #plot;
  #isDue = false;

  /**
   * @param {HTMLElement} place
   * @param {string[]} labels of x and of the series
   * @param {boolean} isPoints
   */
  constructor(place, labels, isPoints) {
    this.#place = place;
    this.#labels = labels;
    this.#isPoints = isPoints;
    this.#data = labels.map(() => []);
    this.#build();
    new ResizeObserver(() => {
      this.#plot?.setSize({ width: place.clientWidth, height: HEIGHT_PX });
    }).observe(place);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#build());
  }

  #build() {
    this.#plot?.destroy();
    const axis = { stroke: colour('--soft'), grid: { stroke: colour('--line'), width: 1 } };
    const strokes = [colour('--accent'), colour('--second')];
    this.#plot = new UPlot(
      {
        width: this.#place.clientWidth,
        height: HEIGHT_PX,
        scales: { x: { time: false }, y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
        axes: [this.#isPoints ? { ...axis, incrs: WHOLE_STEPS } : axis, { ...axis, size: 56 }],
        series: [
          { label: this.#labels[0] },
          ...this.#labels.slice(1).map((label, index) => ({
            label,
            stroke: strokes[index],
            width: 2,
            points: { show: this.#isPoints, size: 7 },
          })),
        ],
      },
      /** @type {any} */ (this.#data),
      this.#place,
    );
  }

  /** @param {number[]} values x and the series' */
  add(...values) {
    for (const [index, value] of values.entries()) this.#data[index].push(value);
    this.#draw();
  }

  clear() {
    for (const values of this.#data) values.length = 0;
    this.#draw();
  }

  /** Draws at most once a frame: tokens may come faster. */
  #draw() {
    if (this.#isDue) return;
    this.#isDue = true;
    requestAnimationFrame(() => {
      this.#isDue = false;
      this.#plot?.setData(/** @type {any} */ (this.#data));
    });
  }
}

/** @param {HTMLElement} speed @param {HTMLElement} time */
export function makePlots(speed, time) {
  return {
    speed: new LivePlot(speed, ['repetition', 'prefill', 'decode'], true),
    time: new LivePlot(time, ['seconds', 'tokens'], false),
  };
}
