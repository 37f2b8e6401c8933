// js/prompt_api/options.js — the options of LanguageModel.create and availability, checked by the rules of the Prompt API.

/** What answers are drawn with. @type {Record<string, number>} */
const temperatures = {
  'most-predictable': 0,
  predictable: 0.3,
  'slightly-predictable': 0.5,
  balanced: 0.8,
  'slightly-creative': 0.9,
  creative: 1,
  'most-creative': 1.3,
};
/** For LanguageModel.params(). */
export const samplingLimits = {
  defaultTopK: 40,
  maxTopK: 128,
  defaultTemperature: 0.8,
  maxTemperature: 2,
};
const efforts = ['none', 'low', 'medium', 'high'];
const inputs = ['text', 'image', 'audio', 'tool-call', 'tool-response'];
const understood = ['text', 'tool-call', 'tool-response'];

/** @param {any[] | undefined} expected @returns {string[]} the types */
function typesOf(expected = []) {
  return expected.map(({ type, languages = [] }) => {
    if (!inputs.includes(type)) throw new TypeError(`${type} is no type of a message`);
    Intl.getCanonicalLocales(languages); // a RangeError for what is no language tag
    return type;
  });
}

/** @param {any} options */
function samplingOf({ samplingMode, topK, temperature }) {
  const { defaultTopK, maxTopK, defaultTemperature, maxTemperature } = samplingLimits;
  if (topK === undefined && temperature === undefined) {
    const mode = samplingMode ?? 'balanced';
    if (!Object.hasOwn(temperatures, mode))
      throw new TypeError(`${String(mode)} is no samplingMode`);
    return { samplingMode: mode, topK: defaultTopK, temperature: temperatures[mode] };
  }
  if (samplingMode !== undefined) {
    throw new TypeError('samplingMode does not go with topK and temperature');
  }
  const [most, heat] = [topK ?? defaultTopK, temperature ?? defaultTemperature].map(Number);
  if (!(most >= 1)) throw new RangeError('topK must be at least 1');
  if (!(heat >= 0)) throw new RangeError('temperature must be at least 0');
  const numbers = {
    topK: Math.min(Math.floor(most), maxTopK),
    temperature: Math.min(heat, maxTemperature),
  };
  return { samplingMode: null, ...numbers };
}

/** @param {any} tool @param {boolean} isOpen whether the page runs the calls */
function toolOf({ name, description, inputSchema, execute }, isOpen) {
  if (typeof name !== 'string' || typeof description !== 'string') {
    throw new TypeError('A tool has a name and a description');
  }
  if (typeof inputSchema !== 'object' || inputSchema === null) {
    throw new TypeError(`inputSchema of ${name} must be an object`);
  }
  if (typeof execute !== 'function' && !(execute === undefined && isOpen)) {
    throw new TypeError(`${name} needs execute, or expectedOutputs the type tool-call`);
  }
  const described = { name, description, parameters: inputSchema };
  return { execute, tool: { type: /** @type {const} */ ('function'), function: described } };
}

/**
 * @param {any} options
 * @returns {{isSupported: boolean, sampling: ReturnType<typeof samplingOf>, tools: ReturnType<typeof toolOf>[],
 *   effort: string}}
 */
export function readOptions(options = {}) {
  const { expectedInputs, expectedOutputs, tools = [], thinking = {} } = options;
  const outputs = typesOf(expectedOutputs);
  const types = [...typesOf(expectedInputs), ...outputs];
  const effort = thinking.effort ?? 'none';
  if (!efforts.includes(effort)) throw new TypeError(`${effort} is no effort of thinking`);
  return {
    isSupported: types.every((type) => understood.includes(type)),
    sampling: samplingOf(options),
    tools: tools.map((/** @type {any} */ tool) => toolOf(tool, outputs.includes('tool-call'))),
    effort,
  };
}
