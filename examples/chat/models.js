// examples/chat/models.js — the models that the page offers: the one that comes with it, and a few
// well-known small ones of the hub, by address.

/**
 * @typedef {{id: string, name: string, note: string, url: string, isBuiltIn?: boolean}} ModelChoice
 */

const hub = 'https://huggingface.co';

/** @type {ModelChoice[]} */
export const models = [
  {
    id: 'wick',
    name: 'Wick 2.6M',
    note: '2.9 MB, comes with the page',
    url: 'wick-llm-demo-model/wick-2.6m-q8_0.gguf',
    isBuiltIn: true,
  },
  {
    id: 'smollm2-135m',
    name: 'SmolLM2 135M Instruct, Q8_0',
    note: '145 MB',
    url: `${hub}/bartowski/SmolLM2-135M-Instruct-GGUF/resolve/main/SmolLM2-135M-Instruct-Q8_0.gguf`,
  },
  {
    id: 'smollm2-360m',
    name: 'SmolLM2 360M Instruct, Q8_0',
    note: '386 MB',
    url: `${hub}/HuggingFaceTB/SmolLM2-360M-Instruct-GGUF/resolve/main/smollm2-360m-instruct-q8_0.gguf`,
  },
  {
    id: 'qwen2.5-0.5b',
    name: 'Qwen2.5 0.5B Instruct, Q4_0',
    note: '429 MB',
    url: `${hub}/Qwen/Qwen2.5-0.5B-Instruct-GGUF/resolve/main/qwen2.5-0.5b-instruct-q4_0.gguf`,
  },
  {
    id: 'llama-3.2-1b',
    name: 'Llama 3.2 1B Instruct, Q4_0',
    note: '773 MB',
    url: `${hub}/bartowski/Llama-3.2-1B-Instruct-GGUF/resolve/main/Llama-3.2-1B-Instruct-Q4_0.gguf`,
  },
];

/** @param {string} url @returns {string} the file's name, to show */
export function nameOfUrl(url) {
  try {
    const path = new URL(url, location.href).pathname;
    return decodeURIComponent(path.slice(path.lastIndexOf('/') + 1)) || url;
  } catch {
    return url;
  }
}
