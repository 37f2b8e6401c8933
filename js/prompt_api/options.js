// js/prompt_api/options.js — checks the options of LanguageModel.create and availability by the rules of the Prompt API.

/** The sampling settings by mode. @type {Record<string, number>} */
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
/** Types whose support depends on the model. */
const media = ['image', 'audio'];

/**
 * @param {string} tag
 * @returns {boolean} whether it is a valid language tag; the model's languages are not known
 */
function isLanguage(tag) {
  if (!Intl.DisplayNames) return true;
  return new Intl.DisplayNames('en', { type: 'language', fallback: 'none' }).of(tag) !== undefined;
}

/** @param {any[] | undefined} expected @param {string[]} known @returns {{types: string[], isUnderstood: boolean}} */
function typesOf(expected = [], known = understood) {
  let isUnderstood = true;
  const types = expected.map(({ type, languages = [] }) => {
    if (!inputs.includes(type)) throw new TypeError(`${type} is not a valid message type`);
    // a RangeError for text that is not a language tag
    const areLanguages = Intl.getCanonicalLocales(languages).every(isLanguage);
    isUnderstood &&= areLanguages && known.includes(type);
    return type;
  });
  return { types, isUnderstood };
}

/** @param {any} options @param {boolean} isExtension whether topK and temperature exist */
function samplingOf({ samplingMode, topK, temperature }, isExtension) {
  const { defaultTopK, maxTopK, defaultTemperature, maxTemperature } = samplingLimits;
  if (!isExtension || (topK === undefined && temperature === undefined)) {
    const mode = samplingMode ?? 'balanced';
    if (!Object.hasOwn(temperatures, mode))
      throw new TypeError(`${String(mode)} is not a samplingMode`);
    return { samplingMode: mode, topK: defaultTopK, temperature: temperatures[mode] };
  }
  if (samplingMode !== undefined) {
    throw new TypeError('samplingMode cannot be combined with topK and temperature');
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

/** @param {any} value */
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** @param {string} name of the tool @param {any} schema @returns {object} a copy */
function inputSchemaOf(name, schema) {
  const { type, properties = {}, required = [] } = isObject(schema) ? schema : {};
  if (type !== 'object' || !isObject(properties) || !Array.isArray(required)) {
    throw new TypeError(`inputSchema of ${name} must be a schema of the type object`);
  }
  return JSON.parse(JSON.stringify(schema)); // a TypeError for a schema that contains itself
}

/** @param {any} tool @param {boolean} isOpen whether the page runs the calls */
function toolOf({ name, description, inputSchema, execute }, isOpen) {
  const isDescribed = [name, description].every((text) => typeof text === 'string' && text !== '');
  if (!isDescribed) throw new TypeError('A tool must have a name and a description');
  const parameters = inputSchemaOf(name, inputSchema);
  if (typeof execute !== 'function' && !(execute === undefined && isOpen)) {
    throw new TypeError(
      `${name} needs execute, or expectedOutputs must include the type tool-call`,
    );
  }
  const described = { name, description, parameters };
  return { execute, tool: { type: /** @type {const} */ ('function'), function: described } };
}

/** @param {any[]} tools @param {boolean} isOpen */
function toolsOf(tools, isOpen) {
  const list = tools.map((tool) => toolOf(tool, isOpen));
  const names = list.map(({ tool }) => tool.function.name);
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) throw new TypeError(`Two tools have the name ${twice}`);
  return list;
}

/**
 * @param {any} options
 * @param {boolean} isExtension
 * @returns {{isSupported: boolean, sampling: ReturnType<typeof samplingOf>, tools: ReturnType<typeof toolOf>[],
 *   effort: string, inputs: string[], media: string[], hasParts: boolean}} `hasParts`: an answer is an array of its parts.
 *   `isSupported`: whether the options are supported, if the model reads all of `media`
 */
export function readOptions(options = {}, isExtension = false) {
  const { expectedInputs, expectedOutputs, tools = [], thinking = {} } = options;
  const input = typesOf(expectedInputs, [...understood, ...media]);
  const output = typesOf(expectedOutputs);
  const effort = thinking.effort ?? 'none';
  if (!efforts.includes(effort)) throw new TypeError(`${effort} is not a valid thinking effort`);
  return {
    isSupported: input.isUnderstood && output.isUnderstood,
    sampling: samplingOf(options, isExtension),
    tools: toolsOf(tools, output.types.includes('tool-call')),
    effort,
    inputs: input.types,
    media: media.filter((type) => input.types.includes(type)),
    hasParts: output.types.includes('tool-call'),
  };
}
