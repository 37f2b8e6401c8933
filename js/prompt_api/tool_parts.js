// js/prompt_api/tool_parts.js — the values of tool calls and their results in messages of the Prompt API.

/** @param {string} name @param {unknown} value @returns {string} */
function textOf(name, value) {
  if (typeof value === 'string') return value;
  throw new TypeError(`${name} must be a string`);
}

export class LanguageModelToolCall {
  /** @param {{callId: string, name: string, arguments?: object}} init */
  constructor({ callId, name, arguments: given = {} }) {
    this.callId = textOf('callId', callId);
    this.name = textOf('name', name);
    this.arguments = given;
  }
}

export class LanguageModelToolSuccess {
  /** @param {{callId: string, name: string, result: {type: string, value: unknown}[]}} init */
  constructor({ callId, name, result }) {
    this.callId = textOf('callId', callId);
    this.name = textOf('name', name);
    if (!Array.isArray(result)) throw new TypeError('result must be an array');
    this.result = result;
  }
}

export class LanguageModelToolError {
  /** @param {{callId: string, name: string, errorMessage: string}} init */
  constructor({ callId, name, errorMessage }) {
    this.callId = textOf('callId', callId);
    this.name = textOf('name', name);
    this.errorMessage = textOf('errorMessage', errorMessage);
  }
}
