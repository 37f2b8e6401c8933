// A local R2 bucket for workerd: implements `get` for one file, with the protocol that workerd uses for bucket
// services.
//
//   node examples/workers/local_bucket.mjs [model.gguf] [port] (VERBOSE=1 prints each read)

import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { modelUrl } from 'wick-llm-demo-model'; // outside of this repository: the installed package

const [path = fileURLToPath(modelUrl), port = '8788'] = process.argv.slice(2);

const server = createServer((request, response) => {
  const { method, object, range } = JSON.parse(request.headers['cf-r2-request'] ?? '{}');
  if (method !== 'get' || object !== 'model.gguf') {
    const error = JSON.stringify({ version: 0, v4code: 10007, message: 'There is no such object' });
    response.writeHead(404, { 'cf-r2-error': error }).end();
    return;
  }
  const { size, mtimeMs } = statSync(path);
  const offset = Number(range?.offset ?? 0);
  const length = Math.min(Number(range?.length ?? size), size - offset);
  if (process.env.VERBOSE) console.log(offset, length);
  const metadata = JSON.stringify({
    ...{ name: object, version: '1', etag: '1', size: `${size}`, uploaded: `${mtimeMs | 0}` },
    ...{ httpFields: {}, customFields: [], checksums: {}, storageClass: 'Standard' },
    range: { offset: `${offset}`, length: `${length}` },
  });
  response.writeHead(200, { 'cf-r2-metadata-size': Buffer.byteLength(metadata) });
  response.write(metadata);
  createReadStream(path, { start: offset, end: offset + length - 1 }).pipe(response);
});
server.listen(Number(port), '127.0.0.1', () => {
  console.log(`a bucket with ${path} at http://127.0.0.1:${server.address().port}`);
});
