// examples/chat/templates.js — models without a chat template: each continues text, or uses a
// template that the user chooses. The choice is stored with the model. This file is loaded only for
// such a model.

import { byId, make, makeButton } from './dom.js';
import { keepJson, readJson } from './local_storage.js';
import { templates } from './template_list.js';

/** @import { Wish } from './requested_model.js' */
/** @typedef {import('./template_list.js').Template} Template */

const REMEMBERED = 'wick-chat-templates';
const SOURCE_LETTERS_MAX = 100_000;
const [plain] = templates;

/**
 * The conversation that is rendered before a template is stored.
 * @type {import('wick-llm').ChatMessage[]}
 */
export const trial = [
  { role: 'user', content: 'Hello' },
  { role: 'assistant', content: 'Hi' },
  { role: 'user', content: 'Bye' },
];

/**
 * Returns the model's key, which for a file is the same before and after it is stored.
 * @param {Wish} wish
 * @returns {string}
 */
const keyFor = ({ name, url = name }) => url;

/**
 * @returns {Record<string, {id: string, source?: string}>} the remembered templates by the models'
 * keys
 */
function readRemembered() {
  const found = readJson(REMEMBERED);
  return typeof found === 'object' ? found : {};
}

/**
 * @param {Wish} wish
 * @returns {Template | undefined} the chosen or last used template; undefined if the model is new,
 * or has a template
 */
export function knownTemplate(wish) {
  return Object.hasOwn(readRemembered(), keyFor(wish)) ? templateFor(wish) : undefined;
}

/** @param {Wish} wish a model without its own template @returns {Template} the chosen template, if any */
export function templateFor(wish) {
  const { id, source } = readRemembered()[keyFor(wish)] ?? {};
  if (id === 'own' && typeof source === 'string' && source.length <= SOURCE_LETTERS_MAX)
    return { id, name: 'a custom template', source, stops: [] };
  return templates.find((one) => one.id === id) ?? plain;
}

/** @param {Wish} wish @param {Template} template */
export function rememberTemplate(wish, { id, source }) {
  const own = id === 'own' ? { id, source } : { id };
  keepJson(REMEMBERED, { ...readRemembered(), [keyFor(wish)]: own });
}

// ---- the page ----

const line = make('p', { className: 'facts template' });
const dialog = make('dialog', { id: 'template-dialog' });
dialog.setAttribute('aria-labelledby', 'template-title');
dialog.innerHTML = `<form method="dialog">
  <h2 id="template-title">Chat template</h2>
  <p class="hint">The file of this model has no template. It may only continue texts, or it may use one of these formats for conversations. See the page of the model for its format.</p>
  <label>Template <select name="template"></select></label>
  <label hidden>In Jinja, as in tokenizer_config.json <textarea name="source" rows="8" spellcheck="false" maxlength="${SOURCE_LETTERS_MAX}"></textarea></label>
  <p class="problem" role="alert" hidden></p>
  <div class="buttons"><button type="button" value="cancel">Cancel</button><button type="submit" class="primary">Use it</button></div>
</form>`;
const form = /** @type {HTMLFormElement} */ (dialog.querySelector('form'));
const choice = /** @type {HTMLSelectElement} */ (form.elements.namedItem('template'));
const sourceField = /** @type {HTMLTextAreaElement} */ (form.elements.namedItem('source'));
const problem = /** @type {HTMLElement} */ (form.querySelector('.problem'));

function showChoice() {
  const label = /** @type {HTMLElement} */ (sourceField.parentElement);
  label.hidden = choice.value !== 'own';
}

/** @type {(template: Template) => Promise<void>} */
let use = async () => {};

choice.append(
  ...templates.map(({ id, name }) => new Option(name, id)),
  new Option('Custom …', 'own'),
);
choice.addEventListener('change', showChoice);
form.querySelector('[value=cancel]')?.addEventListener('click', () => dialog.close());
form.addEventListener('submit', async (event) => {
  event.preventDefault();
  const known = templates.find(({ id }) => id === choice.value);
  const own = { id: 'own', name: 'a custom template', source: sourceField.value, stops: [] };
  const submit = /** @type {HTMLButtonElement} */ (form.querySelector('.primary'));
  problem.hidden = true;
  submit.textContent = 'Checking …';
  try {
    await use(known ?? own);
    dialog.close();
  } catch (error) {
    problem.textContent = error instanceof Error ? error.message : String(error);
    problem.hidden = false;
  }
  submit.textContent = 'Use it';
});
document.body.append(dialog);

/**
 * Shows how the model is prompted, and lets the user choose.
 * @param {Template} template
 * @param {(template: Template) => Promise<void>} choose rejects if the template does not work
 */
export function showTemplate(template, choose) {
  use = choose;
  const isPlain = template === plain;
  line.textContent = isPlain
    ? 'This model has no chat template: it continues your text. '
    : `This model has no chat template: it uses ${template.name}. `;
  const button = makeButton('Choose a template', () => {
    choice.value = template.id;
    sourceField.value = template.id === 'own' ? template.source : '';
    problem.hidden = true;
    showChoice();
    dialog.showModal();
  });
  button.setAttribute('aria-haspopup', 'dialog');
  line.append(button);
  byId('context').after(line);
  setContinuing(isPlain);
}

const promptField = /** @type {HTMLTextAreaElement} */ (byId('prompt'));

/** @param {boolean} isContinuing whether the model continues the input */
function setContinuing(isContinuing) {
  document.body.classList.toggle('continuing', isContinuing);
  promptField.placeholder = isContinuing ? 'Write the beginning of a text' : 'Ask something';
  promptField.ariaLabel = isContinuing ? 'Your text' : 'Your message';
  byId('send').textContent = isContinuing ? 'Generate' : 'Send';
}

/** Hides the choice, because the model has its own template. */
export function hideTemplate() {
  line.remove();
  setContinuing(false);
}
