/**
 * Whose container it is. A label names the process of the worker, so that containers of one that has ended can be found, and no
 * others: a machine, its boot, its process namespace, the process with its start, and a number within it.
 *
 * Other workers of the machine judge by the label whether that process is gone. A process elsewhere cannot be judged, and counts
 * as running.
 */
import { readFileSync, readlinkSync } from 'node:fs';
import { newId } from '../../kernel/id.ts';
import { readProcessStat } from '../../kernel/process/process-stat.ts';

export const labels = {
  owner: 'millrace.owner',
  installation: 'millrace.installation',
  worker: 'millrace.worker',
  incarnation: 'millrace.incarnation',
  tenant: 'millrace.tenant',
  run: 'millrace.run',
  lease: 'millrace.lease',
} as const;

interface Place {
  readonly machine: string;
  readonly boot: string;
  readonly namespace: string;
}

/** A label for the containers of this process; different at each call. */
export function makeOwner(): string {
  const { machine, boot, namespace } = findPlace();
  const started = readProcessStat('self')?.startedMs ?? 0;
  return [machine, boot, namespace, process.pid, started, newId()].join('/');
}

/**
 * - `running`: its process runs, or is elsewhere.
 * - `ended`: its process has ended.
 * - `rebooted`: this machine has been started again since; only containers that do not run may be judged by this, because machines
 *   can be copies of each other.
 */
export function judgeOwner(owner: string): 'running' | 'ended' | 'rebooted' {
  const [machine = '', boot = '', namespace = '', pid = '', started = ''] = owner.split('/');
  const here = findPlace();
  if (machine === '' || boot === '' || here.boot === '') return 'running';
  if (machine === here.machine && boot !== here.boot) return 'rebooted';
  if (boot !== here.boot || namespace !== here.namespace) return 'running';
  const stat = readProcessStat(Number(pid));
  return stat === undefined || stat.hasEnded || stat.startedMs !== Number(started) ? 'ended' : 'running';
}

function findPlace(): Place {
  return {
    machine: read('/etc/machine-id'),
    boot: read('/proc/sys/kernel/random/boot_id'),
    namespace: namespaceOf('self'),
  };
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}

function namespaceOf(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`).replaceAll(/\D/g, '');
  } catch {
    return '';
  }
}
