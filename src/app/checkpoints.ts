/**
 * All checkpoints, by the role whose process passes them, and the function that arms one (`MILLRACE_CHECKPOINT`).
 *
 * `test/chaos` kills a process at each of them: `crash-points` at those that runs pass, `bus-points` at those of `publish`, in an
 * API, of `outbox`, in a host, and of couriers, `bus-drop` at those of `drop`, in a host, `flow-points` at those of conductors, and,
 * with tasks of flows, of workers and an `up`, `tenant-walk` at those of the launcher, and of an API that creates, changes or deletes
 * tenants (`life`). Every role passes those of the home at its first start; `durable-file.test.ts` kills a process there.
 */
import { MillraceError } from '../errors.ts';
import { courierCheckpoints } from '../bus/checkpoints.ts';
import { publishCheckpoints } from '../bus/publish/checkpoints.ts';
import { outboxCheckpoints } from '../bus/relay/checkpoints.ts';
import { conductorCheckpoints } from '../conductor/checkpoints.ts';
import { dropCheckpoints } from '../bus/retention/checkpoints.ts';
import { gatewayCheckpoints } from '../gateway/checkpoints.ts';
import { hostCheckpoints } from '../hosts/checkpoints.ts';
import { arm, type Armed } from '../kernel/checkpoint.ts';
import { fileCheckpoints } from '../kernel/process/durable-file.ts';
import { launcherCheckpoints } from '../launcher/checkpoints.ts';
import { runCheckpoints } from '../runs/checkpoints.ts';
import { schedulerCheckpoints } from '../scheduler/checkpoints.ts';
import { tenantCheckpoints } from '../tenants/checkpoints.ts';
import { workerCheckpoints } from '../worker/checkpoints.ts';

export const checkpoints = {
  host: [...hostCheckpoints, ...schedulerCheckpoints],
  api: [...gatewayCheckpoints, ...runCheckpoints],
  publish: publishCheckpoints,
  outbox: outboxCheckpoints,
  drop: dropCheckpoints,
  courier: courierCheckpoints,
  conductor: conductorCheckpoints,
  launcher: launcherCheckpoints,
  life: tenantCheckpoints,
  home: fileCheckpoints,
  worker: workerCheckpoints,
} as const;

export type Checkpoint = (typeof checkpoints)[keyof typeof checkpoints][number];

/** Throws for a name that no room has declared. */
export function armCheckpoint(wanted: Armed): void {
  const known: readonly string[] = Object.values(checkpoints).flat();
  if (!known.includes(wanted.name))
    throw new MillraceError(
      'bad_configuration',
      `MILLRACE_CHECKPOINT: unknown checkpoint ${wanted.name}; src/app/checkpoints.ts lists all`,
    );
  arm(wanted);
}
