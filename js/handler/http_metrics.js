// js/handler/http_metrics.js — counters of the handler's answers, in Prometheus' text format.

export class HttpMetrics {
  /** @type {Map<string, number>} */
  #answers = new Map();

  /** @param {string} route one of the handler's, not the client's path @param {number} status */
  count(route, status) {
    const labels = `{route="${route}",status="${status}"}`;
    this.#answers.set(labels, (this.#answers.get(labels) ?? 0) + 1);
  }

  /** @param {number} generations under way now @returns {string} */
  text(generations) {
    const answers = [...this.#answers].map(
      ([labels, count]) => `wick_http_responses_total${labels} ${count}\n`,
    );
    return (
      '# HELP wick_http_responses_total Answers by route and status.\n' +
      `# TYPE wick_http_responses_total counter\n${answers.join('')}` +
      '# HELP wick_http_generations Requests for text that run or wait.\n' +
      `# TYPE wick_http_generations gauge\nwick_http_generations ${generations}\n`
    );
  }
}
