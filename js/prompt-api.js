// js/prompt-api.js — the exports of `wick-llm/prompt-api`.

export { defineLanguageModel, installLanguageModel } from './prompt_api/language_model.js';
export { definePolyfillBackend } from './prompt_api/polyfill_backend.js';
export {
  LanguageModelToolCall,
  LanguageModelToolError,
  LanguageModelToolSuccess,
} from './prompt_api/tool_parts.js';
