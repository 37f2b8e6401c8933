// js/handler/http_metrics.js — counters of the handler's responses, in Prometheus' text format.

export class HttpMetrics {
  /** @type {Map<string, number>} */
  #answers = new Map();

  /** @param {string} route a route of the handler, not the path that the client sent @param {number} status */
  count(route, status) {
    const labels = `{route="${route}",status="${status}"}`;
    this.#answers.set(labels, (this.#answers.get(labels) ?? 0) + 1);
  }

  /** @param {number} generations the number of running and waiting generations @returns {string} */
  text(generations) {
    const answers = [...this.#answers].map(
      ([labels, count]) => `wick_http_responses_total${labels} ${count}\n`,
    );
    return (
      '# HELP wick_http_responses_total Responses by route and status.\n' +
      `# TYPE wick_http_responses_total counter\n${answers.join('')}` +
      '# HELP wick_http_generations Running and waiting text requests.\n' +
      `# TYPE wick_http_generations gauge\nwick_http_generations ${generations}\n`
    );
  }
}

/**
 * @param {string} page in Prometheus' text format
 * @param {string | undefined} instance
 * @returns {string} the page with the instance as a label of each sample
 */
export function labelled(page, instance) {
  if (instance === undefined) return page;
  const value = JSON.stringify(instance); // JSON escapes these characters as Prometheus requires
  return page.replaceAll(
    /^(\w+)(?:\{|(?= ))/gm,
    (found, name) => `${name}{wick_instance=${value}${found === name ? '}' : ','}`,
  );
}
