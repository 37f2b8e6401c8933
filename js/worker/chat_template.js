// js/worker/chat_template.js — chat templates: the model's own Jinja, rendered in the worker, where one that
// never ends can be killed.

import { Template } from '@huggingface/jinja';
import { WickError } from '../base/errors.js';

const CHATML =
  "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}" +
  '<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}';

const namedTemplates = new Map([['chatml', CHATML]]);

/** @typedef {import('../connection/messages.js').PlainMessage} PlainMessage */

export class ChatTemplate {
  #template;
  #tokens;

  /**
   * @param {string} source Jinja, or the name of a built-in template
   * @param {{bos_token: string, eos_token: string}} tokens
   */
  constructor(source, tokens) {
    this.#tokens = tokens;
    this.#template = inWords(
      'is not valid',
      () => new Template(namedTemplates.get(source) ?? source),
    );
  }

  /**
   * @param {PlainMessage[]} messages
   * @param {Record<string, unknown>} [variables] further variables of the template
   * @returns {string}
   */
  render(messages, { add_generation_prompt = true, ...variables } = {}) {
    const given = { messages, add_generation_prompt };
    const context = Object.assign({}, this.#tokens, variables, given);
    return inWords('refuses these messages', () => this.#template.render(context));
  }
}

/** @template T @param {string} problem @param {() => T} action @returns {T} */
function inWords(problem, action) {
  try {
    return action();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new WickError('TEMPLATE', `The chat template ${problem}: ${reason}`, error);
  }
}

export function noTemplate() {
  return new WickError(
    'NO_TEMPLATE',
    'The model has no chat template, so it was not made for conversations. Use generate(), or give ' +
      "createEngine the option chatTemplate: Jinja text, or 'chatml'",
  );
}
