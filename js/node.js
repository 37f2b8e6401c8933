// js/node.js — the exports of `wick-llm/node`.

export { fastifyPlugin, honoHandler, nodeListener } from './node/adapters.js';
