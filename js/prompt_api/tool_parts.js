// js/prompt_api/tool_parts.js — the values of tool calls and tool results in Prompt API messages.

/**
 * Returns the id of a call, whose name is spelled differently in the explainer and the web platform
 * tests.
 * @param {{callID?: unknown, callId?: unknown}} init
 */
const idOf = ({ callID, callId }) => textOf('callID', callID ?? callId);

/** @param {string} name @param {unknown} value @returns {string} */
function textOf(name, value) {
  if (typeof value === 'string') return value;
  throw new TypeError(`${name} must be a string`);
}

export class LanguageModelToolCall {
  /** @param {{callID?: string, callId?: string, name: string, arguments?: object}} init */
  constructor({ name, arguments: given = {}, ...id }) {
    this.callID = this.callId = idOf(id);
    this.name = textOf('name', name);
    this.arguments = given;
  }
}

export class LanguageModelToolSuccess {
  /** @param {{callID?: string, callId?: string, name: string, result: {type: string, value: unknown}[]}} init */
  constructor({ name, result, ...id }) {
    this.callID = this.callId = idOf(id);
    this.name = textOf('name', name);
    if (!Array.isArray(result)) throw new TypeError('result must be an array');
    this.result = result;
  }
}

export class LanguageModelToolError {
  /** @param {{callID?: string, callId?: string, name: string, errorMessage: string}} init */
  constructor({ name, errorMessage, ...id }) {
    this.callID = this.callId = idOf(id);
    this.name = textOf('name', name);
    this.errorMessage = textOf('errorMessage', errorMessage);
  }
}
