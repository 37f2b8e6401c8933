// The manifests in examples/deploy: validated with the schemas of Kubernetes, Gateway API, Envoy Gateway and Knative. The
// container is started as specified in the Deployment.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { before, describe, test } from 'node:test';
import { startServer } from '../support/example_servers.mjs';
import { locate, root } from '../support/locate.mjs';
import { modelPath, temporaryFolder } from '../support/package.mjs';
import { run } from '../support/process.mjs';

const { skip, path: python } = locate('deploy');
const folder = 'examples/deploy/kubernetes';
const manifests = [`${folder}/wick.yaml`, `${folder}/gateway.yaml`, 'examples/deploy/knative.yaml'];
const { version } = JSON.parse(readFileSync(resolve(root, 'package.json'), 'utf8'));
const KEY = 'key-of-a-client';

const validate = (/** @type {string[]} */ ...paths) =>
  run(python, ['tools/deploy/validate.py', ...paths]);

const TO_JSON = 'import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))';

describe('manifests', { skip }, () => {
  /** @type {any} manifests by kind */
  const of = {};
  before(async () => {
    for (const path of manifests) {
      const input = readFileSync(resolve(root, path));
      const { stdout } = await run(python, ['-c', TO_JSON], { input });
      for (const one of JSON.parse(stdout.toString())) of[`${one.apiVersion} ${one.kind}`] = one;
    }
  });

  test('all manifests match their schemas', async () => {
    const { code, stdout, stderr } = await validate(...manifests);
    assert.equal(code, 0, stdout + stderr);
    assert.equal(stdout.toString().match(/: valid \(/g)?.length, Object.keys(of).length);
  });

  for (const [path, right, wrong, message] of [
    [manifests[0], 'containerPort: 8080', 'containerPort: http', /'http' is not of type 'integer'/],
    [manifests[0], 'readinessProbe:', 'readynessProbe:', /'readynessProbe' was unexpected/],
    [
      manifests[1],
      'gatewayClassName: eg',
      'gatewayClass: eg',
      /'gatewayClassName' is a required property/,
    ],
    [manifests[1], 'type: Header', 'type: Session', /'Session' is not one of/],
    [manifests[1], '/v1alpha1', '/v1alpha9', /Couldn't find schema/],
    [manifests[2], 'containerConcurrency: 16', 'concurrency: 16', /'concurrency' was unexpected/],
  ]) {
    test(`a manifest with ${wrong} is rejected`, async () => {
      const text = readFileSync(resolve(root, `${path}`), 'utf8');
      assert.ok(text.includes(`${right}`));
      const changed = join(temporaryFolder(), 'changed.yaml');
      writeFileSync(changed, text.replace(`${right}`, `${wrong}`));
      const { code, stdout } = await validate(changed);
      assert.equal(code, 1);
      assert.match(stdout.toString(), /** @type {RegExp} */ (message));
    });
  }

  test('route, service, pods and policies refer to each other', () => {
    const deployment = of['apps/v1 Deployment'].spec;
    const [container] = deployment.template.spec.containers;
    const service = of['v1 Service'].spec;
    const { labels } = deployment.template.metadata;
    for (const selector of [
      ...[deployment.selector.matchLabels, service.selector],
      of['policy/v1 PodDisruptionBudget'].spec.selector.matchLabels,
    ]) {
      assert.deepEqual(selector, labels);
    }
    const [port] = service.ports;
    assert.equal(port.targetPort, container.ports[0].name);
    const route = of['gateway.networking.k8s.io/v1 HTTPRoute'];
    assert.deepEqual(route.spec.rules[0].backendRefs, [{ name: 'wick', port: port.port }]);
    assert.deepEqual(route.spec.parentRefs, [
      { name: of['gateway.networking.k8s.io/v1 Gateway'].metadata.name },
    ]);
    const [target] = of['gateway.envoyproxy.io/v1alpha1 BackendTrafficPolicy'].spec.targetRefs;
    assert.deepEqual([target.kind, target.name], [route.kind, route.metadata.name]);
    for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe']) {
      assert.equal(container[probe].httpGet.port, container.ports[0].name);
    }
    const drainSeconds = container.lifecycle.preStop.sleep.seconds;
    assert.ok(deployment.template.spec.terminationGracePeriodSeconds > drainSeconds);
  });

  for (const kind of ['apps/v1 Deployment', 'serving.knative.dev/v1 Service']) {
    test(`the container of ${kind} starts, becomes ready, requires its key and stops`, async (t) => {
      const [container] = of[kind].spec.template.spec.containers;
      assert.deepEqual(container.command, ['npx', '--yes', `wick-llm@${version}`]);
      const values = { WICK_MODEL: modelPath, WICK_KEY: KEY };
      for (const { name } of container.env) assert.ok(name === 'HOME' || name in values, name);
      const port = `--port=${container.ports[0].containerPort}`;
      assert.ok(container.args.includes(port));
      const args = container.args.map((/** @type {string} */ argument) =>
        argument === port
          ? '--port=0'
          : argument.replace(/\$\((\w+)\)/, (_, name) => /** @type {any} */ (values)[name]),
      );
      const server = await startServer(
        process.execPath,
        [resolve(root, 'dist/cli.js'), ...args],
        (line) => /^http:\/\/0\.0\.0\.0:\d+/.exec(line)?.[0].replace('0.0.0.0', '127.0.0.1'),
      );
      t.after(() => server.close('SIGKILL'));
      const origin = server.origin;
      const probed = await fetch(origin + container.readinessProbe.httpGet.path);
      assert.equal(probed.status, 200);
      const ask = (/** @type {Record<string, string>} */ headers) =>
        fetch(`${origin}/v1/models`, { headers });
      assert.equal((await ask({})).status, 401);
      assert.equal((await ask({ authorization: `Bearer ${KEY}` })).status, 200);
      await server.close('SIGTERM');
    });
  }
});
