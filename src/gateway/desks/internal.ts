/**
 * The endpoints that workers call: claim, report, heartbeat, logs, definitions, stash values. Every message is a batch over
 * tenants.
 */
import { leaseTimes } from '../../contract/lease-times.ts';
import type { HeartbeatRequest, HeldRun } from '../../contract/wire.ts';
import { knownError, MillraceError } from '../../errors.ts';
import type { Handlers } from '../../http/endpoint.ts';
import { hasNoRuns } from '../../loader/loader.ts';
import { checkpoint } from '../checkpoints.ts';
import { groupBy } from '../../kernel/group-by.ts';
import { noteForeignWorker, noteWorker } from '../installation/queries.ts';
import { DefinitionsAnswer } from './definitions-answer.ts';
import type { gatewayEndpoints } from '../installation/endpoints.ts';
import type { GatewayContext } from '../installation/context.ts';
import { ofKnownTenants } from './known-tenants.ts';
import { eachWithin, inParts } from './per-tenant-batch.ts';
import { keyOf, makeRefusal, hideOtherTenants } from '../access/worker-access.ts';

type Keys = Extract<keyof typeof gatewayEndpoints, `POST /internal/${string}` | 'POST /int-api/heartbeat'>;

const stashWithinMs = 5_000;
/** The time limit of a heartbeat's answer, whatever a tenant does, because the worker's other leases depend on it. */
const maxBeatMs = 2_000;

export const internalHandlers: Handlers<Pick<typeof gatewayEndpoints, Keys>, GatewayContext> = {
  'POST /internal/claim': async ({ body, signal, caller }, { claims, signals, workers }) => {
    const { tenantId } = await workers.admit(caller, body);
    const poll = signals.poll(body.worker);
    try {
      const runs = await claims.claim({ ...body, tenantId }, AbortSignal.any([signal, poll.signal]));
      const signalled = signals.take(body.worker, body.seen);
      return { runs, lost: [], ...signalled, invalidate: hideOtherTenants(signalled.invalidate, tenantId) };
    } finally {
      signals.endPoll(body.worker, poll);
    }
  },
  'POST /internal/report': async ({ body, caller }, { claims, control, reports, workers }) => {
    const { worker, tenantId } = await workers.admit(caller, body, tenantsIn(body.reports));
    checkpoint('report.received');
    const known = await ofKnownTenants(control, body.reports);
    const places = body.places?.map((each) => claims.open({ ...body, ...each, tenantId }));
    const failed = await reports.report(known.map((report) => ({ ...report, worker })));
    checkpoint('report.answer');
    if (places === undefined) return { accepted: body.reports.length, failed };
    return { accepted: body.reports.length, failed, runs: places.map(({ close }) => close()) };
  },
  'POST /internal/heartbeat': async ({ body, signal, caller }, context) => {
    const { control, heartbeatTenants, signals, time, workers } = context;
    const { keyId, tenantId } = await workers.admit(caller, body, tenantsIn(body.holds));
    const holds = await ofKnownTenants(control, body.holds);
    const tenants = heartbeatTenants.tenantsOf(body.worker, holds);
    const before = await noteWorker(control, body, { tenants, keyId, at: new Date(time.now()) });
    if (before === undefined) throw makeRefusal(`the worker id ${body.worker} is used by a process that started later`);
    checkpoint('heartbeat.noted');
    // if the worker has given up waiting, its list of runs is out of date
    const { lost, cancel } = signal.aborted
      ? { lost: [], cancel: [] }
      : await renew({ ...body, holds }, new Set([...tenants, ...before]), context);
    checkpoint('heartbeat.renewed');
    const signalled = signals.take(body.worker, body.seen);
    const invalidate = hideOtherTenants(signalled.invalidate, tenantId);
    const beatMs = leaseTimes(context.leaseMs).beatMs;
    const gone = without(body.holds, holds);
    return {
      ...signalled,
      invalidate,
      lost: [...lost, ...gone],
      cancel: [...cancel, ...signalled.cancel],
      beat_ms: beatMs,
    };
  },
  'POST /internal/logs': async ({ body, caller }, { control, desks, workers }) => {
    const { worker } = await workers.admit(caller, body, tenantsIn(body.chunks));
    const { failed } = await inParts(await ofKnownTenants(control, body.chunks), (tenant, chunks, withinMs) =>
      desks.logs.give(
        tenant,
        chunks.map((chunk) => ({ ...chunk, worker })),
        withinMs,
      ),
    );
    checkpoint('logs.kept');
    return { accepted: body.chunks.length, failed };
  },
  'POST /internal/definitions': async ({ body, caller }, { control, desks, workers }) => {
    const { worker } = await workers.admit(caller, body, tenantsIn(body.items));
    const answer = new DefinitionsAnswer();
    const { failed } = await inParts(await ofKnownTenants(control, body.items), (tenant, keys, withinMs) =>
      answer.fill(tenant, keys, withinMs, (some, leftMs) =>
        desks.definitions.give(tenant, { worker, keys: some }, leftMs),
      ),
    );
    return { definitions: answer.definitions, failed: [...failed, ...answer.failed] };
  },
  'POST /internal/secrets': async ({ body, caller }, { desks, workers }) => {
    const { worker } = await workers.admit(caller, body, [body.tenant]);
    const { tenant, run, lease, names } = body;
    const wish = { run: { tenant, run, lease, worker }, names };
    return { values: await desks.stash.give(body.tenant, wish, stashWithinMs).catch(unavailable(body.tenant)) };
  },
  'POST /int-api/heartbeat': async ({ body, caller }, { control, time }) => {
    const { keyId, tenantId } = keyOf(caller);
    // workers of Waterwheel are listed for all tenants
    if (tenantId !== null) throw new MillraceError('forbidden', 'this key is bound to a tenant');
    const { uuid: id, addr, version, running_tasks: running, total_tasks: places } = body;
    const worker = { id, addr, version, running, places };
    if (!(await noteForeignWorker(control, worker, { keyId, at: new Date(time.now()) })))
      throw new MillraceError('conflict', `${id} is the id of another worker: use another uuid`);
  },
};

function without<T>(all: readonly T[], some: readonly T[]): T[] {
  if (all.length === some.length) return [];
  const kept = new Set(some);
  return all.filter((item) => !kept.has(item));
}

function tenantsIn(items: readonly { readonly tenant: string }[]): Iterable<string> {
  return items.map((item) => item.tenant);
}

/**
 * Converts an error of a tenant into `tenant_unavailable`, so that the worker continues with other tenants. A rejection (4xx) is
 * passed on, because repeating the request would get the same answer.
 */
function unavailable(tenant: string): (error: unknown) => never {
  return (error) => {
    const known = knownError(error);
    if (known !== undefined && known.status < 500) throw known;
    const message = known?.message ?? `tenant ${tenant} could not be reached`;
    throw new MillraceError('tenant_unavailable', message, { cause: error });
  };
}

/** Runs of a tenant that no longer exists are lost. Runs of an unreachable tenant are left in doubt. */
async function renew(
  {
    worker,
    incarnation,
    holds,
  }: Pick<HeartbeatRequest, 'worker' | 'incarnation'> & { readonly holds: readonly HeldRun[] },
  tenants: ReadonlySet<string>,
  { desks, leaseMs, log, throttle }: GatewayContext,
): Promise<{ lost: HeldRun[]; cancel: HeldRun[] }> {
  const byTenant = groupBy(holds, ({ tenant }) => tenant);
  const limitMs = Math.min(maxBeatMs, leaseTimes(leaseMs).beatMs);
  const lost: HeldRun[] = [];
  const cancel: HeldRun[] = [];
  await eachWithin(limitMs, [...tenants], async (tenant, withinMs) => {
    const held = byTenant.get(tenant) ?? [];
    try {
      const answer = await desks.renewals.give(tenant, { worker, incarnation, holds: held }, Math.max(1, withinMs));
      lost.push(...answer.lost);
      cancel.push(...answer.cancel);
    } catch (error) {
      if (hasNoRuns(error)) lost.push(...held);
      else if (throttle.isDue(tenant, error)) log.warn({ err: error, tenant, worker }, 'renewing leases failed');
    }
  });
  return { lost, cancel };
}
