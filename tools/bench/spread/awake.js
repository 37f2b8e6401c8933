// Keeps the event loop of this thread from sleeping: it sends itself messages, so that the next message of another
// thread is taken at once, without a processor that has to be woken.

const { port1, port2 } = new MessageChannel();
let end = 0;
let isSending = false;

port2.onmessage = () => {
  isSending = performance.now() < end;
  if (isSending) port1.postMessage(0);
};

/** @param {number} ms from now on; 0 lets the thread sleep */
export function stayAwake(ms) {
  end = ms === 0 ? 0 : performance.now() + ms;
  if (isSending || ms === 0) return;
  isSending = true;
  port1.postMessage(0);
}
