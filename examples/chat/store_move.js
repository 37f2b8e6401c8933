// examples/chat/store_move.js — moves data to another store when the user changes whether conversations are kept.

/** @typedef {import('./store.js').Store} Store */

/** Moves conversations that were started in memory to disk. @param {Store} memory @param {Store} disk */
export async function moveToDisk(memory, disk) {
  const { conversations, turns } = await memory.everything();
  for (const conversation of conversations) {
    const own = turns.filter((turn) => turn.conversation === conversation.id);
    await disk.takeIn({ conversation, turns: own });
  }
}

/** Moves the open conversation from disk to memory. @param {Store} disk @param {Store} memory @param {string} open its id */
export async function moveToMemory(disk, memory, open) {
  const whole = await disk.open(open);
  if (whole) await memory.takeIn(whole);
  await disk.remove([open]);
  await disk.close();
}
