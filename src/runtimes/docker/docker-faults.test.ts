/** The runtime `docker` while its engine restarts or hangs, and with registries and engines that ask for credentials. */
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createServer } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { makeTask, Recorder } from '../../../test/conformance/task.ts';
import { bundleModule } from '../../../test/harness/bundled.ts';
import { makeAuthority } from '../../../test/harness/certificates.ts';
import { type EngineProcess, startDocker } from '../../../test/harness/containers/engine-process.ts';
import { startRegistry } from '../../../test/harness/containers/registry.ts';
import { testImage } from '../../../test/harness/containers/test-image.ts';
import { needs } from '../../../test/harness/services.ts';
import { until } from '../../../test/harness/until.ts';
import type { Outcome, Runtime } from '../contract.ts';
import type { DockerWork } from './block.ts';
import { type DockerOptions, dockerRuntime } from './docker.ts';

const never = (): AbortSignal => new AbortController().signal;

function work(script: string, more: Partial<DockerWork> = {}): DockerWork {
  return { kind: 'docker', image: testImage, args: ['sh', '-c', script], pull: 'missing', volumes: [], ...more };
}

describe.skipIf(!needs('docker') || !needs('busybox') || !needs('registry'))('a Docker engine', () => {
  let engine: EngineProcess;
  let reaper = '';
  const runtimes: Runtime[] = [];

  beforeAll(async () => {
    [engine, reaper] = await Promise.all([
      startDocker(['--live-restore']),
      bundleModule('runtimes/docker/container-reaper.ts'),
    ]);
  });
  afterAll(async () => {
    await engine.stop();
    await rm(dirname(reaper), { recursive: true });
  });
  afterEach(async () => {
    engine.signal('SIGCONT');
    for (const runtime of runtimes.splice(0)) await runtime.service?.stop();
    await until('all containers are removed', async () => (await engine.containers()).length === 0 || undefined);
  });

  function make(more: Partial<DockerOptions> = {}): Runtime {
    const runtime = dockerRuntime({
      host: engine.host,
      environment: process.env,
      networks: ['none'],
      reaper,
      times: { graceMs: 300, giveUpMs: 200, pingMs: 500 },
      worker: () => ({ worker: 'w', incarnation: 1 }),
      ...more,
    });
    runtimes.push(runtime);
    return runtime;
  }

  function begin(wanted: DockerWork, how: { runtime?: Runtime; signal?: AbortSignal } = {}) {
    const output = new Recorder();
    const ending = (how.runtime ?? make()).run(makeTask(wanted), output, how.signal ?? never());
    const says = (text: string): Promise<unknown> =>
      until(`it prints ${text}`, () => output.text().includes(text) || undefined);
    return { output, ending, says };
  }

  describe('that restarts', () => {
    it.each(['SIGTERM', 'SIGKILL'] as const)(
      'by %s and restores its containers delays their tasks, whose output is complete and not repeated',
      async (signal) => {
        const { ending, output, says } = begin(work('for i in $(seq 1 40); do echo "line $i"; sleep 0.1; done'));
        await says('line 3\n');
        await engine.restart(signal);
        expect(await ending).toMatchObject({ state: 'success' });
        const lines = Array.from({ length: 40 }, (_, index) => `line ${index + 1}\n`);
        expect(output.text('out')).toBe(lines.join(''));
        expect(output.text('err')).toContain('the connection to the Docker engine is broken; waiting for it');
      },
    );

    it('and ended a container meanwhile has lost its run', async () => {
      const { ending, says } = begin(work('echo ready; exec sleep 1000'));
      await says('ready');
      const [name = ''] = await engine.containers();
      const pid = Number(await engine.docker('inspect', '-f', '{{.State.Pid}}', name));
      await engine.end('SIGKILL');
      process.kill(pid, 'SIGKILL');
      await engine.restart('SIGKILL');
      const outcome = await ending;
      expect(outcome.state).toBe('lost');
      expect(outcome.reason).toContain('the Docker engine stopped');
    });

    it('before a container exists delays the task', async () => {
      const runtime = make();
      await engine.end('SIGKILL');
      expect(await runtime.probe?.()).toMatch(/the Docker engine at .* does not (run|exist)/);
      const { ending } = begin(work('echo ready'), { runtime });
      await engine.restart('SIGKILL');
      expect((await ending).state).toBe('success');
      expect(await runtime.probe?.()).toBeUndefined();
    });
  });

  describe('that hangs', () => {
    it('delays tasks, starts none twice, and is unavailable meanwhile', async () => {
      const runtime = make();
      engine.signal('SIGSTOP');
      const some = Array.from({ length: 5 }, (_, index) => begin(work(`echo only ${index}`), { runtime }));
      expect(await runtime.probe?.()).toMatch(/the Docker engine at .* does not answer/);
      engine.signal('SIGCONT');
      const outcomes = await Promise.all(some.map(({ ending }) => ending));
      expect(outcomes.map(({ state }) => state)).toEqual(Array(5).fill('success'));
      expect(some.map(({ output }) => output.text('out'))).toEqual(some.map((_, index) => `only ${index}\n`));
    });

    it('keeps no stopping worker waiting, and the container is removed when it answers', async () => {
      const control = new AbortController();
      const { ending, says } = begin(work('trap "" TERM; echo ready; while :; do sleep 0.1; done'), {
        signal: control.signal,
      });
      await says('ready');
      engine.signal('SIGSTOP');
      control.abort('draining');
      expect(await ending).toMatchObject({
        state: 'failure',
        reason: 'it was stopped; the Docker engine did not answer in time',
      });
      for (const runtime of runtimes.splice(0)) await runtime.service?.stop();
      engine.signal('SIGCONT'); // the reaper does the rest, which afterEach awaits
    });

    it('keeps no container that it was asked for before its run was killed', async () => {
      const control = new AbortController();
      const runtime = make({ times: { sweepMs: 100, pingMs: 500 } });
      await runtime.probe?.();
      await runtime.service?.start();
      engine.signal('SIGSTOP');
      const { ending } = begin(work('sleep 1000'), { runtime, signal: control.signal });
      // the request is in the queue of the engine now, behind this one
      expect(await make().probe?.()).toContain('does not answer');
      control.abort('cancelled');
      expect(await ending).toMatchObject({ state: 'failure', reason: 'it was stopped before it began' });
      engine.signal('SIGCONT');
      // a sweep or the reaper removes it, whenever it appears: here and in later tests, afterEach finds none
    });

    it('holds up a timeout until the container has really ended', async () => {
      const control = new AbortController();
      const { ending, says } = begin(work('echo ready; exec sleep 1000'), { signal: control.signal });
      await says('ready');
      engine.signal('SIGSTOP');
      control.abort('timeout');
      let hasEnded = false;
      void ending.then(() => (hasEnded = true));
      expect(await make().probe?.()).toContain('does not answer');
      expect(hasEnded).toBe(false);
      engine.signal('SIGCONT');
      expect((await ending).state).toBe('failure');
    });
  });

  describe('with a registry that asks for a login', () => {
    // lengths of credentials that base64 pads and does not pad
    it.each(['secret:1', 'secret:12', 'secret:123'])('pulls with the login %s, once for all', async (password) => {
      const registry = await startRegistry(password);
      const image = `${registry.name}/tools/box:${password.length}`;
      const folder = await mkdtemp(join(tmpdir(), 'millrace-login-'));
      try {
        await writeFile(join(folder, 'config.json'), registry.login);
        await engine.docker('tag', testImage, image);
        await engine.docker('--config', folder, 'push', image);
        await engine.docker('rmi', image);
        const refused: Outcome = await begin(work('true', { image }), {
          runtime: make({ auth: '{"auths": {}}' }),
        }).ending;
        expect(refused.state).toBe('error');
        expect(refused.reason).toContain(`the image "${image}" could not be pulled: `);
        const runtime = make({ environment: { ...process.env, DOCKER_CONFIG: folder } });
        const three = [1, 2, 3].map(() => begin(work('echo pulled', { image }), { runtime }));
        for (const { ending, output } of three) {
          expect((await ending).state).toBe('success');
          expect(output.text('out')).toBe('pulled\n');
          expect(output.text('err')).toMatch(/\[millrace] .*\/tools\/box:\d+ pulled in [\d.]+ s\n/);
        }
        const missing = await begin(work('true', { image: `${registry.name}/nosuch:1` }), {
          runtime: make({ auth: registry.login }),
        }).ending;
        expect(missing).toMatchObject({ state: 'error' });
        expect(missing.reason).toContain('/nosuch:1" could not be pulled: ');
        await engine.docker('rmi', image);
      } finally {
        await registry.stop();
        await rm(folder, { recursive: true });
      }
    });

    it('asks the helper that docker is configured with', async () => {
      const registry = await startRegistry();
      const image = `${registry.name}/helped:1`;
      const folder = await mkdtemp(join(tmpdir(), 'millrace-helper-'));
      try {
        await writeFile(join(folder, 'config.json'), registry.login);
        await engine.docker('tag', testImage, image);
        await engine.docker('--config', folder, 'push', image);
        await engine.docker('rmi', image);
        await writeFile(join(folder, 'config.json'), JSON.stringify({ credHelpers: { [registry.name]: 'test' } }));
        const helper = join(folder, 'docker-credential-test');
        const answer = '{"ServerURL":"x","Username":"reader","Secret":"secret:1"}';
        await writeFile(
          helper,
          `#!/bin/sh\nread -r name\n[ "$1 $name" = "get ${registry.name}" ] && echo '${answer}'\n`,
        );
        await chmod(helper, 0o755);
        const environment = { DOCKER_CONFIG: folder, PATH: `${folder}:${process.env['PATH']}` };
        const { ending } = begin(work('true', { image }), { runtime: make({ environment }) });
        expect(await ending).toMatchObject({ state: 'success', reason: null });
        await engine.docker('rmi', image);
      } finally {
        await registry.stop();
        await rm(folder, { recursive: true });
      }
    });
  });

  it('on another machine is reached by TLS, with a certificate of the worker', async () => {
    const authority = await makeAuthority();
    const folder = await mkdtemp(join(tmpdir(), 'millrace-certs-'));
    const server = await authority.sign(['IP:127.0.0.1']);
    const own = await authority.sign(['DNS:worker']);
    const ca = await readFile(authority.file, 'utf8');
    const proxy = createServer({ ...server, ca, requestCert: true }, (socket) => {
      const upstream = connect(engine.socket);
      for (const end of [socket, upstream]) end.on('error', () => end.destroy());
      socket.pipe(upstream).pipe(socket);
    });
    try {
      await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
      await Promise.all([
        writeFile(join(folder, 'ca.pem'), ca),
        writeFile(join(folder, 'cert.pem'), own.cert),
        writeFile(join(folder, 'key.pem'), own.key),
      ]);
      const host = `tcp://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
      const runtime = make({ host, certs: folder });
      expect(await runtime.probe?.()).toBeUndefined();
      const { ending, output } = begin(work('echo over TLS'), { runtime });
      expect((await ending).state).toBe('success');
      expect(output.text()).toBe('over TLS\n');
      const mounted = begin(work('true', { volumes: [{ source: '/etc', target: '/in', readOnly: true }] }), {
        runtime: make({ host, certs: folder, volumes: ['/etc'] }),
      });
      expect((await mounted.ending).reason).toContain('is on another machine, whose folders cannot be checked');
      await runtime.service?.stop();
      expect(await make({ host: host.replace('tcp', 'http') }).probe?.()).toContain('closed the connection');
    } finally {
      proxy.close();
      await authority.close();
      await rm(folder, { recursive: true });
    }
  });

  it.each([
    ['ftp://box', 'MILLRACE_DOCKER_HOST: "ftp://box" is not an address'],
    ['unix:///nonexistent/docker.sock', 'the Docker engine at /nonexistent/docker.sock does not exist'],
    ['tcp://127.0.0.1:1', 'the Docker engine at 127.0.0.1:1 does not run'],
  ])('at %s is unavailable, with the reason', async (host, reason) => {
    expect(await make({ host }).probe?.()).toContain(reason);
  });
});
