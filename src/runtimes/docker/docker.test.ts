/** The runtime `docker` on a real engine: what ends a container and what becomes of it, limits, output, hostile tasks. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { makeTask, Recorder } from '../../../test/conformance/task.ts';
import { bundleModule } from '../../../test/harness/bundled.ts';
import { type EngineProcess, startDocker } from '../../../test/harness/containers/engine-process.ts';
import { testImage } from '../../../test/harness/containers/test-image.ts';
import { needs } from '../../../test/harness/services.ts';
import { until } from '../../../test/harness/until.ts';
import type { Outcome, Runtime, Task } from '../contract.ts';
import type { DockerWork } from './block.ts';
import { dockerRuntime, type DockerOptions } from './docker.ts';
import { makeOwner } from './owner.ts';

const MiB = 1024 * 1024;
const never = (): AbortSignal => new AbortController().signal;

function work(script: string, more: Partial<DockerWork> = {}): DockerWork {
  return { kind: 'docker', image: testImage, args: ['sh', '-c', script], pull: 'missing', volumes: [], ...more };
}

describe.skipIf(!needs('docker') || !needs('busybox'))('a container', () => {
  let engine: EngineProcess;
  let reaper = '';
  let folder = '';
  const runtimes: Runtime[] = [];
  const children: ChildProcess[] = [];

  beforeAll(async () => {
    [engine, reaper, folder] = await Promise.all([
      startDocker(),
      bundleModule('runtimes/docker/container-reaper.ts'),
      mkdtemp(join(tmpdir(), 'millrace-volumes-')),
    ]);
  });
  afterAll(async () => {
    await engine.stop();
    for (const made of [dirname(reaper), folder]) await rm(made, { recursive: true });
  });
  afterEach(async () => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
    for (const runtime of runtimes.splice(0)) await runtime.service?.stop();
    // whatever happened, nothing is left behind
    await until('all containers are removed', async () => (await engine.containers()).length === 0 || undefined);
  });

  function make(more: Partial<DockerOptions> = {}): Runtime {
    const runtime = dockerRuntime({
      host: engine.host,
      environment: process.env,
      networks: ['none', 'host'],
      reaper,
      times: { graceMs: 300 },
      worker: () => ({ worker: 'w', incarnation: 1 }),
      ...more,
    });
    runtimes.push(runtime);
    return runtime;
  }

  interface Ran {
    readonly outcome: Outcome;
    readonly output: Recorder;
  }

  async function run(task: Task | DockerWork, { runtime = make(), signal = never() } = {}): Promise<Ran> {
    const output = new Recorder();
    const outcome = await runtime.run('facts' in task ? task : makeTask(task), output, signal);
    return { outcome, output };
  }

  /** A run that has printed `ready`. */
  async function begin(
    task: Task | DockerWork,
    how: { runtime?: Runtime; signal?: AbortSignal } = {},
  ): Promise<{ readonly ending: Promise<Outcome>; readonly output: Recorder }> {
    const output = new Recorder();
    const ending = (how.runtime ?? make()).run('facts' in task ? task : makeTask(task), output, how.signal ?? never());
    await until('it prints ready', () => output.text().includes('ready') || undefined);
    return { ending, output };
  }

  describe('of a document', () => {
    it('gets arguments, entrypoint, variables, folder and user', async () => {
      const script = 'echo "$0 $1 $NAME $(pwd) $(id -u):$(id -g)"';
      const wanted = work('', { entrypoint: ['sh', '-c', script], args: ['a b', '$c'], cwd: '/tmp', user: 'task' });
      const { outcome, output } = await run(makeTask(wanted, { NAME: 'x=y z' }));
      expect([outcome.state, output.text()]).toEqual(['success', 'a b $c x=y z /tmp 1234:1234\n']);
    });

    it('that needs more memory than its limit fails, with the limit in its reason', async () => {
      const { outcome } = await run(work('exec dd if=/dev/zero of=/dev/null bs=100M', { memoryBytes: 20 * MiB }));
      expect(outcome).toMatchObject({ state: 'failure', exitCode: 137 });
      // now and then the engine says only later that memory was the reason
      expect(outcome.reason).toMatch(/^it (was killed; probably it )?ran out of memory \(limit 20 MiB\)$/);
    });

    it('has limits of processors and processes, and no new privileges', async () => {
      const script =
        'cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/pids/pids.max /proc/self/oom_score_adj; grep NoNewPrivs /proc/self/status';
      const { output } = await run(work(script, { cpus: 0.2, pids: 7 }));
      expect(output.text('out').split('\n')).toEqual(['20000', '7', '500', 'NoNewPrivs:\t1', '']);
    });

    it('may use allowed folders only, whatever links lead to them', async () => {
      await mkdir(join(folder, 'shared', 'in'), { recursive: true });
      await writeFile(join(folder, 'shared', 'in', 'word'), 'found');
      await symlink('/etc', join(folder, 'shared', 'out'));
      const runtime = make({ volumes: [join(folder, 'shared')] });
      const mount = (source: string, readOnly = false): DockerWork['volumes'] => [{ source, target: '/in', readOnly }];
      const see = async (source: string): Promise<string> => {
        const { outcome, output } = await run(
          work('cat /in/word; echo more > /in/word', { volumes: mount(source, true) }),
          {
            runtime,
          },
        );
        return outcome.state === 'failure' ? output.text('out') : String(outcome.reason);
      };
      expect(await see(join(folder, 'shared', 'in'))).toBe('found');
      expect(await see(join(folder, 'shared', 'out'))).toContain(
        'docker.volumes[0]: this worker does not allow the folder',
      );
      expect(await see(join(folder, 'shared', '..'))).toContain('does not allow the folder');
      expect(await see(join(folder, 'shared', 'none'))).toContain('does not exist on this worker');
      expect(await see('/etc')).toContain('does not allow the folder');
      expect(await see('cache')).toContain('does not allow the volume "cache"');
    });

    it('may join allowed networks only', async () => {
      const of = async (network: string): Promise<Outcome> => (await run(work('true', { network }))).outcome;
      expect((await of('host')).state).toBe('success');
      expect(await of('bridge')).toMatchObject({
        state: 'error',
        reason:
          'docker.network: this worker does not allow the network "bridge", only none, host (MILLRACE_DOCKER_NETWORK)',
      });
    });

    it('with a command that does not exist fails, and says so', async () => {
      const { outcome, output } = await run(work('', { args: ['nosuch'] }));
      expect(outcome).toMatchObject({
        state: 'failure',
        reason: 'it ended with exit code 127 (a command was not found)',
      });
      expect(output.text()).toContain('nosuch');
    });

    it.each([
      ['a user that does not exist', { user: 'nobody-here' }, /could not be started: .*nobody-here/],
      [
        'an image that is not there, and may not be pulled',
        { image: 'nosuch:1', pull: 'never' },
        /No such image: nosuch:1/,
      ],
      [
        'an image whose registry does not answer',
        { image: '127.0.0.1:1/nosuch:1' },
        /"127.0.0.1:1\/nosuch:1" could not be pulled: .*refused/,
      ],
      ['an image whose name is not valid', { image: 'Not Valid' }, /invalid reference format/],
    ] as const)('with %s is an error that says so', async (_, more, reason) => {
      const { outcome } = await run(work('true', more));
      expect(outcome.state).toBe('error');
      expect(outcome.reason).toMatch(reason);
    });
  });

  describe('with output', () => {
    it('keeps its bytes as they are, also long lines and a last line without an end', async () => {
      const script = 'head -c 100000 /dev/urandom | tee /tmp/bytes; cat /tmp/bytes >&2';
      const { output } = await run(work(script.replace('| tee /tmp/bytes', '> /tmp/bytes; cat /tmp/bytes')));
      expect(output.bytes('out')).toHaveLength(100_000);
      expect(output.bytes('out').equals(output.bytes('err'))).toBe(true);
    });

    it('has passed it on completely although it ended before anybody read', async () => {
      const { output } = await run(work('seq 1 20000'));
      expect(output.text('out').split('\n').slice(-3)).toEqual(['19999', '20000', '']);
      expect(output.text('out').split('\n')).toHaveLength(20_001);
    });

    it('is read no faster than the sink accepts', async () => {
      let free = (): void => {};
      let writes = 0;
      const full = {
        write(): Promise<void> {
          writes++;
          return new Promise((resolve) => (free = resolve));
        },
      };
      const ending = make({ times: { graceMs: 300, lingerMs: 50 } }).run(makeTask(work('seq 1 200000')), full, never());
      await until('the first piece is written', () => writes === 1 || undefined);
      let hasEnded = false;
      void ending.then(() => (hasEnded = true));
      await until('the container has ended', async () => (await engine.docker('ps', '-q')) === '' || undefined);
      expect([writes, hasEnded]).toEqual([1, false]);
      const drain = setInterval(() => free(), 1);
      expect((await ending).state).toBe('success');
      clearInterval(drain);
    });
  });

  describe('that is hostile', () => {
    it('is ended with all it has forked, by a kill that it ignores', async () => {
      const control = new AbortController();
      const script = 'trap "" TERM; for i in 1 2 3; do (trap "" TERM; sleep 1234) & done; echo ready; wait; sleep 1234';
      const { ending } = await begin(work(script, { network: 'host' }), { signal: control.signal });
      control.abort('timeout');
      expect((await ending).state).toBe('failure');
      const left = spawn('pgrep', ['-fx', 'sleep 1234'], { stdio: 'ignore' });
      expect(await once(left, 'exit')).toEqual([1, null]);
    });

    it('cannot fork more than its limit, and its neighbours do not notice', async () => {
      const runtime = make();
      const control = new AbortController();
      const bomb = 'echo ready; bomb() { bomb & bomb & wait; }; while :; do bomb 2>/dev/null; done';
      const { ending } = await begin(work(bomb, { pids: 50, cpus: 0.2 }), { runtime, signal: control.signal });
      expect((await run(work('echo fine'), { runtime })).output.text()).toBe('fine\n');
      control.abort('cancelled');
      expect((await ending).state).toBe('failure');
    });

    it('may print without end: memory stays, and neighbours go on', async () => {
      const runtime = make();
      const control = new AbortController();
      let bytes = 0;
      const sink = { write: (_: string, data: Buffer): undefined => void (bytes += data.length) };
      const ending = runtime.run(makeTask(work('yes $(seq 1 2000)', { cpus: 0.5 })), sink, control.signal);
      const before = process.memoryUsage().rss;
      await until('it has printed 100 MB', () => bytes > 100 * MiB || undefined);
      expect((await run(work('echo fine'), { runtime })).output.text()).toBe('fine\n');
      expect(process.memoryUsage().rss - before).toBeLessThan(200 * MiB);
      control.abort('timeout');
      expect((await ending).state).toBe('failure');
    });
  });

  describe('whose worker is gone', () => {
    it('is ended by the reaper of a worker that was killed, and containers of others are not', async () => {
      const foreign = await engine.docker('run', '-d', '--network', 'none', testImage, 'sleep', '1000');
      const other = make();
      const control = new AbortController();
      const { ending } = await begin(work('trap "exit 0" TERM; echo ready; while :; do sleep 0.1; done'), {
        runtime: other,
        signal: control.signal,
      });
      const program = await bundleModule('../test/harness/containers/doomed-worker.ts');
      const child = spawn(process.execPath, [program, engine.host, reaper], { stdio: ['ignore', 'pipe', 'inherit'] });
      children.push(child);
      await until('its container runs', async () => (await engine.containers()).length === 3 || undefined);
      await once(child.stdout, 'data');
      child.kill('SIGKILL');
      await until('its container is removed', async () => (await engine.containers()).length === 2 || undefined);
      expect(await engine.docker('inspect', '-f', '{{.State.Running}}', foreign)).toBe('true');
      control.abort('cancelled');
      await ending;
      await engine.docker('rm', '-f', foreign);
      await rm(dirname(program), { recursive: true });
    });

    it('is removed by the next worker of the machine, as are those of its own earlier incarnations', async () => {
      // numbers of processes are smaller
      const ended = `${makeOwner().split('/').slice(0, 3).join('/')}/4194305/12/x`;
      const leave = (labels: Record<string, string>): Promise<string> => {
        const flags = Object.entries(labels).flatMap(([name, value]) => ['--label', `millrace.${name}=${value}`]);
        return engine.docker('run', '-d', '--network', 'none', ...flags, testImage, 'sleep', '1000');
      };
      await leave({ owner: ended });
      await leave({ owner: 'elsewhere/b/1/2/3/x', worker: 'w', incarnation: '4' });
      const kept = [
        await leave({ owner: 'elsewhere/b/1/2/3/x', worker: 'w', incarnation: '5' }),
        await leave({ owner: 'elsewhere/b/1/2/3/x', worker: 'v', incarnation: '1' }),
        await leave({ owner: makeOwner() }),
      ];
      const runtime = make({ worker: () => ({ worker: 'w', incarnation: 5 }) });
      expect(await runtime.probe?.()).toBeUndefined();
      await runtime.adopt?.();
      const left = (await engine.docker('ps', '-q', '--no-trunc')).split('\n');
      expect(left.toSorted()).toEqual(kept.toSorted());
      await engine.docker('rm', '-f', ...kept);
    });

    it('is removed before its run is executed again', async () => {
      const task = makeTask(work('trap "exit 0" TERM; echo ready; while :; do sleep 0.1; done'));
      const { ending } = await begin(task);
      const again: Task = { ...task, work: work('echo again'), facts: { ...task.facts, lease: 2 } };
      const { outcome, output } = await run(again);
      expect([outcome.state, output.text()]).toEqual(['success', 'again\n']);
      expect((await ending).state).toBe('failure');
    });
  });

  it.each(['exec sleep 1000', 'trap "exit 5" TERM; while :; do sleep 0.1; done'])(
    'that its engine has ended, running %s, has lost its run',
    async (script) => {
      const { ending } = await begin(work(`echo ready; ${script}`));
      await engine.restart('SIGTERM');
      expect(await ending).toMatchObject({ state: 'lost' });
    },
  );

  it('shows no secret in its labels or its name', async () => {
    const control = new AbortController();
    const task = {
      ...makeTask(work('trap "exit 0" TERM; echo ready; sleep 5 & wait'), { KEY: 'hidden-value' }),
      secrets: new Set(['KEY']),
    };
    const { ending } = await begin(task, { signal: control.signal });
    const [name = ''] = await engine.containers();
    const labels = await engine.docker('inspect', '-f', '{{json .Config.Labels}}', name);
    expect(JSON.parse(labels)).toMatchObject({
      'millrace.worker': 'w',
      'millrace.incarnation': '1',
      'millrace.tenant': 'default',
      'millrace.run': task.facts.run,
      'millrace.lease': '1',
      'millrace.installation': task.facts.url,
    });
    expect(labels + name + (await engine.docker('inspect', testImage))).not.toMatch(/hidden-value|credential/);
    control.abort('cancelled');
    await ending;
  });
});
