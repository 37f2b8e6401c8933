// js/cli/try_page.js — the page of `wick serve` at /: a chat page for trying the server, which uses the
// server's own API.

const style = `
body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.1rem; }
#log p { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0.5rem 0; padding: 0.5rem; }
#log .user { background: #8882; border-radius: 0.5rem; }
#log .error { color: #b00020; }
form { display: flex; gap: 0.5rem; flex-wrap: wrap; }
textarea { flex: 1 0 100%; font: inherit; box-sizing: border-box; }
#state { color: #777; margin-left: auto; }`;

// The script contains no template strings, because it is one itself.
const script = `
const byId = (id) => document.getElementById(id);
const messages = [];
let controller;
function show(role, text) {
  const line = document.createElement('p');
  line.className = role;
  line.textContent = text;
  byId('log').append(line);
  return line;
}
function headers() {
  const key = byId('key').value;
  return { 'Content-Type': 'application/json', ...(key && { Authorization: 'Bearer ' + key }) };
}
async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new Error('The response was interrupted');
    const parts = (rest + value).split('\\n\\n');
    rest = parts.pop();
    for (const part of parts) {
      const data = part.slice('data: '.length);
      if (data === '[DONE]') return;
      yield JSON.parse(data);
    }
  }
}
async function ask(content) {
  messages.push({ role: 'user', content });
  show('user', content);
  const line = show('assistant', '');
  controller = new AbortController();
  const body = JSON.stringify({ messages, stream: true, stream_options: { include_usage: true } });
  const started = performance.now();
  let usage;
  try {
    const init = { method: 'POST', headers: headers(), body, signal: controller.signal };
    const response = await fetch('v1/chat/completions', init);
    if (!response.ok) throw new Error((await response.json()).error.message);
    for await (const event of eventsOf(response)) {
      if (event.error) throw new Error(event.error.message);
      line.textContent += (event.choices[0] && event.choices[0].delta.content) || '';
      usage = event.usage || usage;
    }
  } catch (error) {
    if (!controller.signal.aborted) show('error', error.message);
  }
  messages.push({ role: 'assistant', content: line.textContent });
  const seconds = (performance.now() - started) / 1000;
  if (usage) {
    const count = usage.completion_tokens;
    byId('state').textContent = count + ' tokens, ' + (count / seconds).toFixed(0) + ' per second';
  }
}
byId('form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const content = byId('text').value.trim();
  if (content === '') return;
  byId('text').value = '';
  byId('send').disabled = true;
  byId('stop').disabled = false;
  await ask(content);
  byId('send').disabled = false;
  byId('stop').disabled = true;
  byId('text').focus();
});
byId('text').addEventListener('keydown', (event) => {
  const isComposing = event.isComposing || event.keyCode === 229; // Safari's last Enter of a composition
  if (event.key !== 'Enter' || event.shiftKey || isComposing || byId('send').disabled) return;
  event.preventDefault();
  byId('form').requestSubmit();
});
byId('stop').addEventListener('click', () => controller.abort());
async function greet() {
  const response = await fetch('v1/models', { headers: headers() });
  byId('keys').hidden = response.status !== 401 && byId('key').value === '';
  if (!response.ok) return;
  document.title = byId('model').textContent = (await response.json()).data[0].id;
}
byId('key').addEventListener('change', greet);
greet();`;

/** @param {string} nonce @returns {string} */
const pageOf = (nonce) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Wick</title>
<style nonce="${nonce}">${style}
</style>
<h1 id="model">Wick</h1>
<p id="keys" hidden><label>Key <input id="key" type="password" autocomplete="off"></label></p>
<div id="log" aria-live="polite"></div>
<form id="form">
<textarea id="text" rows="3" aria-label="Message" autofocus></textarea>
<button id="send">Send</button> <button id="stop" type="button" disabled>Stop</button>
<span id="state"></span>
</form>
<script nonce="${nonce}">${script}
</script>
</html>
`;

/**
 * @param {(request: Request) => Promise<Response>} handle
 * @returns {(request: Request) => Promise<Response>} the same handler, with the page at /
 */
export function withPage(handle) {
  return async (request) => {
    const isPage = new URL(request.url).pathname === '/';
    if (!isPage || !['GET', 'HEAD'].includes(request.method)) return handle(request);
    const nonce = crypto.randomUUID();
    const policy = `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; connect-src 'self'`;
    const headers = {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': `${policy}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
    };
    return new Response(pageOf(nonce), { headers });
  };
}
