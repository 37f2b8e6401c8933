// Keeps the event loop of this thread from sleeping: the thread sends messages to itself, so that it handles the next
// message from another thread immediately, without waking a processor.

const { port1, port2 } = new MessageChannel();
let end = 0;
let isSending = false;

port2.onmessage = () => {
  isSending = performance.now() < end;
  if (isSending) port1.postMessage(0);
};

/** @param {number} ms how long to stay awake; 0 lets the thread sleep */
export function stayAwake(ms) {
  end = ms === 0 ? 0 : performance.now() + ms;
  if (isSending || ms === 0) return;
  isSending = true;
  port1.postMessage(0);
}
