// Code that tests of the chat page in Firefox and WebKitGTK run in the page: before the page's
// scripts, and at the start of each test script.

/**
 * Keeps notices visible, because on a busy machine more than their 20 seconds may pass between two
 * clicks.
 */
export const keepNotices = `{
  const usual = setTimeout;
  globalThis.setTimeout = (action, ms, ...more) => usual(action, ms === 20_000 ? 600_000 : ms, ...more);
}`;

/**
 * Errors fail the test. No answer starts before Enter, unless the URL has `ahead`, in which case
 * the settings are unchanged.
 */
export const prelude = `${keepNotices}
  Object.assign(globalThis, { wrong: [], persists: 0, isFull: false });
  addEventListener('error', ({ message }) => wrong.push(message));
  addEventListener('unhandledrejection', ({ reason }) => wrong.push(String(reason)));
  const consoleError = console.error;
  console.error = (...words) => { wrong.push(words.join(' ')); consoleError.apply(console, words); };
  if (navigator.storage) Object.assign(Object.getPrototypeOf(navigator.storage), {
    persisted: async () => false,
    persist: async () => { persists++; return false; },
  });
  const { put } = IDBObjectStore.prototype;
  IDBObjectStore.prototype.put = function (...row) {
    if (isFull) throw new DOMException('The test requires it', 'QuotaExceededError');
    return put.apply(this, row);
  };
  if (!new URLSearchParams(location.search).has('ahead'))
    localStorage.setItem('wick-chat-settings', '{"ahead":false}');`;

/** Inserted at the start of each script that runs in the page. */
export const begin = `
  const until = async (what, condition) => {
    for (const end = Date.now() + 200e3; Date.now() < end; ) {
      const value = await condition();
      if (value) return value;
      await new Promise((settle) => setTimeout(settle, 20));
    }
    throw new Error('timed out: ' + what + ': ' + wrong + document.body.innerText);
  };
  const one = (selector) => document.querySelector(selector);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const button = (text) => all('button').find((element) =>
    [element.textContent, element.getAttribute('aria-label')].includes(text));
  const click = async (text) => (await until(text, () => button(text))).click();
  const type = (text, field = one('#prompt')) => {
    field.value = text;
    field.dispatchEvent(new Event('input'));
  };
  const submit = (text) => {
    type(text);
    one('#composer').requestSubmit();
  };
  const atRest = () => until('at rest', () => one('#log').getAttribute('aria-busy') === 'false');
  const shown = () => all('.message .body').map((body) => body.textContent.trim());
  const answer = async (text) => {
    say(text);
    end();
    await until(text, () => shown().some((body) => body.includes(text)));
    await atRest();
  };
  const talk = async (question, text) => {
    submit(question);
    await until('asked: ' + question, () => asked.at(-1) === question);
    await answer(text);
  };
  const readAll = async () => {
    const db = await new Promise((settle, fail) => {
      const opening = indexedDB.open('wick-chat');
      opening.onsuccess = () => settle(opening.result);
      opening.onerror = fail;
    });
    const rows = (name) => new Promise((settle, fail) => {
      const reading = db.transaction(name).objectStore(name).getAll();
      reading.onsuccess = () => settle(reading.result);
      reading.onerror = fail;
    });
    const [turns, drafts, conversations] = [await rows('turns'), await rows('drafts'), await rows('conversations')];
    db.close();
    return { turns, drafts, conversations };
  };
  const setting = async (name, value) => {
    one('#open-settings').click();
    one('#settings-form [name=' + name + ']').value = value;
    const closed = new Promise((settle) => one('#settings-dialog').addEventListener('close', settle, { once: true }));
    one('#settings-form [value=save]').click();
    await closed;
  };
  const openList = () => { if (!one('#conversations').open) one('#open-list').click(); };
  const titles = () => all('#conversation-list a').map((link) => link.textContent);
  const act = async (title, action) => {
    await click('Actions for ' + title);
    await until(action, () => one('.actions') && button(action));
    button(action).click();
  };
  /** Captures the page's downloads. */
  const saving = () => {
    const saved = {};
    URL.createObjectURL = (blob) => { saved.file = blob; return 'data:,'; };
    HTMLAnchorElement.prototype.click = () => {};
    return saved;
  };
  const takeIn = (name, text, field = one('#import-file')) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([text], name));
    field.files = transfer.files;
    field.dispatchEvent(new Event('change'));
  };
  /** Asks the real model and returns its complete answer. */
  const askReal = async (question) => {
    const { length } = all('.message.assistant footer');
    submit(question);
    await until('answered', () => all('.message.assistant footer').length > length);
    await atRest();
    return shown().at(-1);
  };
  /** Waits for a value in the developer panel. */
  const fact = (name, words) => until(name + ': ' + words, () =>
    words.exec(one('#kv-facts dd[data-fact="' + name + '"]')?.textContent ?? ''));
  const untilModel = (name) => until(name, () => one('#model-name').textContent === name);
  const choose = async (url) => {
    one('#choose-model').click();
    type(url, one('#model-url'));
    await until('verdict', () => one('#found .verdict'));
    one('#load-model').click();
  };
  await until('ready', () => !one('#send').disabled);
  `;
