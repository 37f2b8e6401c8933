// A GGUF file with a vocabulary in which each byte is a token, and some strings are control tokens,
// so that the position of every token in a string is known.

const MAGIC = 0x46554747;
const [TYPE_I32, TYPE_STRING, TYPE_ARRAY, TYPE_BOOL] = [5, 8, 9, 7];
const [NORMAL, CONTROL] = [1, 3];

/** Returns the characters that represent bytes in byte-level BPE (GPT-2). @returns {string[]} */
function alphabet() {
  const isPlain = (/** @type {number} */ byte) =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) =>
    String.fromCodePoint(isPlain(byte) ? byte : next++),
  );
}

/** The id of the first control token. */
export const CONTROLS_FIRST = 256;

/** @param {string[]} controls @returns {Buffer} */
export function byteVocabulary(controls) {
  /** @type {Buffer[]} */
  const parts = [];
  const u32 = (/** @type {number} */ value) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value);
    parts.push(bytes);
  };
  const u64 = (/** @type {number} */ value) => {
    u32(value);
    u32(0);
  };
  const string = (/** @type {string} */ text) => {
    const bytes = Buffer.from(text);
    u64(bytes.length);
    parts.push(bytes);
  };
  const tokens = [...alphabet(), ...controls];
  u32(MAGIC);
  u32(3);
  u64(0);
  u64(6);
  string('general.architecture');
  u32(TYPE_STRING);
  string('llama');
  string('tokenizer.ggml.model');
  u32(TYPE_STRING);
  string('gpt2');
  string('tokenizer.ggml.tokens');
  u32(TYPE_ARRAY);
  u32(TYPE_STRING);
  u64(tokens.length);
  for (const token of tokens) string(token);
  string('tokenizer.ggml.token_type');
  u32(TYPE_ARRAY);
  u32(TYPE_I32);
  u64(tokens.length);
  for (const index of tokens.keys()) u32(index < CONTROLS_FIRST ? NORMAL : CONTROL);
  string('tokenizer.ggml.merges');
  u32(TYPE_ARRAY);
  u32(TYPE_STRING);
  u64(0);
  string('tokenizer.ggml.add_bos_token');
  u32(TYPE_BOOL);
  parts.push(Buffer.from([0]));
  return Buffer.concat(parts);
}
