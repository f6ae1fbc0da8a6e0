/**
 * Real container engines for tests: a dockerd or a podman of their own, in a temporary folder, with one small image. No network is
 * needed: the image is made of busybox, and containers use the network `none` or `host`.
 *
 * A shell at the end of a pipe cleans up, also after a test process that was killed: it ends the engine with everything that it
 * started, unmounts what is left, and removes the folder.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findService } from '../../../scripts/services.js';
import { until } from '../until.ts';
import { testImage } from './test-image.ts';

const run = promisify(execFile);

const applets = 'cat dd echo env false head id kill ls mkdir pwd seq sh sleep stat test touch true wc yes'.split(' ');

// $1: folder. Processes of the engine have the folder in their command line, those of containers are in its control groups, and
// reapers of workers that were killed have the address of the engine in their environment.
const cleanUp = `
trap '' HUP INT TERM
folder=$1
name=\${folder##*/}
while read -r line; do :; done
users() { grep -lsaF -- "MILLRACE_DOCKER_HOST=unix://$folder/" /proc/[0-9]*/environ; }
engine() { { grep -lsaF -- "$folder/" /proc/[0-9]*/cmdline; users; } | cut -d/ -f3 | grep -vx "$$"; }
tasks() { find /sys/fs/cgroup -path "*/$name/*" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -u; }
kill -9 $(engine) 2>/dev/null
for round in 1 2 3 4 5; do
  left="$(engine) $(tasks)"
  [ -n "$(echo $left)" ] || break
  kill -9 $left 2>/dev/null
  sleep 0.1
done
grep -F -- "$folder/" /proc/mounts | cut -d' ' -f2 | sort -r | while read -r mount; do umount -l "$mount"; done
find /sys/fs/cgroup -depth -path "*/$name*" -type d -exec rmdir {} + 2>/dev/null
rm -rf -- "$folder"
`;

export interface EngineProcess {
  readonly folder: string;
  readonly socket: string;
  /** As `DOCKER_HOST`. */
  readonly host: string;
  readonly pid: number;
  /** Runs the docker command against it; returns what it prints. */
  readonly docker: (...args: string[]) => Promise<string>;
  /** Names of all containers, running or not. */
  readonly containers: () => Promise<string[]>;
  /** Ends it with this signal, if it runs. */
  readonly end: (signal: NodeJS.Signals) => Promise<void>;
  readonly signal: (name: NodeJS.Signals) => void;
  /** Ends it with this signal, if it runs, and starts it again. */
  readonly restart: (signal: NodeJS.Signals) => Promise<void>;
  readonly stop: () => Promise<void>;
}

interface Kind {
  readonly program: string;
  args(folder: string): string[];
  env(folder: string): NodeJS.ProcessEnv;
  prepare(folder: string): Promise<void>;
}

const docker: Kind = {
  program: 'dockerd',
  args: (folder) => [
    '--iptables=false',
    '--bridge=none',
    `--host=unix://${folder}/engine.sock`,
    `--data-root=${folder}/data`,
    `--exec-root=${folder}/exec`,
    `--pidfile=${folder}/pid`,
    `--cgroup-parent=/${folder.split('/').at(-1)}`,
  ],
  env: () => process.env,
  // after a kill the file names a process that may exist again, and the engine would wait for it
  prepare: (folder) => rm(join(folder, 'exec', 'containerd', 'containerd.pid'), { force: true }),
};

const podman: Kind = {
  program: 'podman',
  args: (folder) => [
    `--root=${folder}/data`,
    `--runroot=${folder}/run`,
    '--cgroup-manager=cgroupfs',
    'system',
    'service',
    '--time=0',
    `unix://${folder}/engine.sock`,
  ],
  env: (folder) => ({ ...process.env, CONTAINERS_CONF: join(folder, 'containers.conf') }),
  prepare: (folder) =>
    writeFile(
      join(folder, 'containers.conf'),
      '[engine]\nruntime = "runc"\n[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]\n',
    ),
};

export function startDocker(args: readonly string[] = []): Promise<EngineProcess> {
  return startEngine({ ...docker, args: (folder) => [...docker.args(folder), ...args] });
}

export function startPodman(): Promise<EngineProcess> {
  return startEngine(podman);
}

async function startEngine(kind: Kind): Promise<EngineProcess> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-engine-'));
  const keeper = spawn('/bin/sh', ['-c', cleanUp, 'engine-keeper', folder], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const socket = join(folder, 'engine.sock');
  let child = await launch(kind, folder);
  const stop = async (): Promise<void> => {
    const gone = once(keeper, 'exit');
    keeper.stdin.end();
    await gone;
  };
  try {
    await importImage(socket);
  } catch (error) {
    await stop();
    throw error;
  }
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill(signal);
    await gone;
  };
  const host = `unix://${socket}`;
  const command = async (...args: string[]): Promise<string> =>
    (
      await run('/usr/bin/docker', args, { env: { ...process.env, DOCKER_HOST: host }, maxBuffer: 2 ** 26 })
    ).stdout.trim();
  return {
    folder,
    socket,
    host,
    get pid() {
      return child.pid ?? 0;
    },
    docker: command,
    containers: async () => (await listNames(socket)).toSorted(),
    signal: (name) => void child.kill(name),
    end,
    async restart(signal) {
      await end(signal);
      child = await launch(kind, folder);
    },
    stop,
  };
}

async function launch(kind: Kind, folder: string): Promise<ChildProcess> {
  await kind.prepare(folder);
  const log = openSync(join(folder, 'log'), 'a');
  const child = spawn(kind.program, kind.args(folder), { env: kind.env(folder), stdio: ['ignore', log, log] });
  await until(`${kind.program} answers`, async () => {
    if (child.exitCode !== null)
      throw new Error(`${kind.program} ended: ${(await readFile(join(folder, 'log'), 'utf8')).slice(-2_000)}`);
    return (await ask(join(folder, 'engine.sock'), 'GET', '/_ping').catch(() => undefined)) === 'OK' || undefined;
  });
  return child;
}

async function listNames(socket: string): Promise<string[]> {
  const found = JSON.parse(await ask(socket, 'GET', '/containers/json?all=true')) as { Names: string[] }[];
  return found.flatMap(({ Names }) => Names.map((name) => name.replace('/', '')));
}

async function importImage(socket: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-image-'));
  try {
    for (const name of ['bin', 'tmp', 'etc']) await mkdir(join(folder, name));
    await copyFile(findService('busybox') ?? '/bin/busybox', join(folder, 'bin', 'busybox'));
    await chmod(join(folder, 'bin', 'busybox'), 0o755);
    for (const applet of applets) await symlink('busybox', join(folder, 'bin', applet));
    await writeFile(join(folder, 'etc', 'passwd'), 'root:x:0:0::/:/bin/sh\ntask:x:1234:1234::/tmp:/bin/sh\n');
    const { stdout } = await run('tar', ['-C', folder, '-c', '.'], { encoding: 'buffer', maxBuffer: 2 ** 26 });
    const [repo = '', tag = ''] = testImage.split(':');
    await ask(socket, 'POST', `/images/create?fromSrc=-&repo=${repo}`, stdout);
    // podman imports everything as `latest`
    await ask(socket, 'POST', `/images/${repo}:latest/tag?repo=${repo}&tag=${tag}`);
  } finally {
    await rm(folder, { recursive: true });
  }
}

function ask(socketPath: string, method: string, path: string, body?: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/x-tar', 'content-length': body?.length ?? 0 };
    const sending = request({ socketPath, method, path, headers, agent: false, timeout: 20_000 }, (answer) => {
      let text = '';
      answer.on('data', (piece: Buffer) => (text += piece.toString()));
      answer.on('end', () => ((answer.statusCode ?? 500) < 400 ? resolve(text) : reject(new Error(text))));
      answer.on('error', reject);
    });
    sending.on('error', reject);
    sending.end(body);
  });
}
