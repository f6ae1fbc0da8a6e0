/** What workers call: claim, report, heartbeat, logs, definitions, stash values. Every message is a batch over tenants. */
import { leaseTimes } from '../contract/lease-times.ts';
import type { HeartbeatRequest, HeldRun } from '../contract/wire.ts';
import { knownError, MillraceError } from '../errors.ts';
import type { Handlers } from '../http/endpoint.ts';
import { hasNoRuns } from '../launcher/loader.ts';
import { checkpoint } from '../kernel/checkpoint.ts';
import { groupBy } from '../kernel/group.ts';
import { noteForeignWorker, noteWorker } from './control-queries.ts';
import type { gatewayEndpoints } from './endpoints.ts';
import type { GatewayContext } from './context.ts';
import { eachWithin, inParts } from './parts.ts';
import { refused, withoutOthers } from './worker-access.ts';

type Keys = Extract<keyof typeof gatewayEndpoints, `POST /internal/${string}` | 'POST /int-api/heartbeat'>;

const stashWithinMs = 5_000;
/** A heartbeat is answered by then, whatever a tenant does: the worker's other leases hang on it. */
const longestBeatMs = 2_000;

export const internalHandlers: Handlers<Pick<typeof gatewayEndpoints, Keys>, GatewayContext> = {
  'POST /internal/claim': async ({ body, request, caller }, { claims, signals, workers }) => {
    const { tenantId } = await workers.admit(caller, body);
    const poll = signals.poll(body.worker);
    try {
      const runs = await claims.claim({ ...body, tenantId }, AbortSignal.any([request.signal, poll.signal]));
      const told = signals.take(body.worker, body.seen);
      return { runs, lost: [], ...told, invalidate: withoutOthers(told.invalidate, tenantId) };
    } finally {
      signals.endPoll(body.worker, poll);
    }
  },
  'POST /internal/report': async ({ body, caller }, { reports, workers }) => {
    await workers.admit(caller, body, tenantsIn(body.reports));
    checkpoint('report.received');
    const failed = await reports.report(body.reports);
    checkpoint('report.answer');
    return { accepted: body.reports.length, failed };
  },
  'POST /internal/heartbeat': async ({ body, request, caller }, context) => {
    const { control, servings, signals, time, workers } = context;
    const { keyId, tenantId } = await workers.admit(caller, body, tenantsIn(body.holds));
    const tenants = servings.tenantsOf(body.worker, body.holds);
    const before = await noteWorker(control, body, { tenants, keyId, at: new Date(time.now()) });
    if (before === undefined) throw refused(`the worker id ${body.worker} is used by a process that started later`);
    checkpoint('heartbeat.noted');
    // what it held when it asked is old news if it has given up waiting
    const { lost, cancel } = request.signal.aborted
      ? { lost: [], cancel: [] }
      : await renew(body, new Set([...tenants, ...before]), context);
    checkpoint('heartbeat.renewed');
    const told = signals.take(body.worker, body.seen);
    const invalidate = withoutOthers(told.invalidate, tenantId);
    const beatMs = leaseTimes(context.leaseMs).beatMs;
    return { ...told, invalidate, lost, cancel: [...cancel, ...told.cancel], beat_ms: beatMs };
  },
  'POST /internal/logs': async ({ body, caller }, { desks, workers }) => {
    await workers.admit(caller, body, tenantsIn(body.chunks));
    const { failed } = await inParts(body.chunks, (tenant, chunks, withinMs) =>
      desks.logs.give(tenant, chunks, withinMs),
    );
    checkpoint('logs.kept');
    return { accepted: body.chunks.length, failed };
  },
  'POST /internal/definitions': async ({ body, caller }, { desks, workers }) => {
    const { worker } = await workers.admit(caller, body, tenantsIn(body.items));
    const { answers, failed } = await inParts(body.items, (tenant, keys, withinMs) =>
      desks.definitions.give(tenant, { worker, keys }, withinMs),
    );
    return { definitions: answers.flat(), failed };
  },
  'POST /internal/secrets': async ({ body, caller }, { desks, workers }) => {
    const { worker } = await workers.admit(caller, body, [body.tenant]);
    const { tenant, run, lease, names } = body;
    const wish = { run: { tenant, run, lease, worker }, names };
    return { values: await desks.stash.give(body.tenant, wish, stashWithinMs).catch(unavailable(body.tenant)) };
  },
  'POST /int-api/heartbeat': async ({ body, caller }, { control, time }) => {
    // workers of Waterwheel are listed for all tenants
    if (caller?.tenantId !== null) throw new MillraceError('forbidden', 'this key is bound to a tenant');
    const { uuid: id, addr, version, running_tasks: running, total_tasks: places } = body;
    await noteForeignWorker(control, { id, addr, version, running, places }, new Date(time.now()));
  },
};

function tenantsIn(items: readonly { readonly tenant: string }[]): Iterable<string> {
  return items.map((item) => item.tenant);
}

/**
 * Whatever is wrong with a tenant is not wrong with this API: its worker is to go on with the others. But a refusal is passed
 * on: asking again would get the same.
 */
function unavailable(tenant: string): (error: unknown) => never {
  return (error) => {
    const known = knownError(error);
    if (known !== undefined && known.status < 500) throw known;
    const message = known?.message ?? `tenant ${tenant} could not be asked`;
    throw new MillraceError('tenant_unavailable', message, { cause: error });
  };
}

/** A tenant that is gone holds no run any more; one that cannot be reached is left in doubt, not called lost. */
async function renew(
  { worker, incarnation, holds }: HeartbeatRequest,
  tenants: ReadonlySet<string>,
  { desks, leaseMs, log, seldom }: GatewayContext,
): Promise<{ lost: HeldRun[]; cancel: HeldRun[] }> {
  const byTenant = groupBy(holds, ({ tenant }) => tenant);
  const limitMs = Math.min(longestBeatMs, leaseTimes(leaseMs).beatMs);
  const lost: HeldRun[] = [];
  const cancel: HeldRun[] = [];
  await eachWithin(limitMs, [...tenants], async (tenant, withinMs) => {
    const held = byTenant.get(tenant) ?? [];
    try {
      const told = await desks.renewals.give(tenant, { worker, incarnation, holds: held }, Math.max(1, withinMs));
      lost.push(...told.lost);
      cancel.push(...told.cancel);
    } catch (error) {
      if (hasNoRuns(error)) lost.push(...held);
      else if (seldom.isDue(tenant, error)) log.warn({ err: error, tenant, worker }, 'a lease could not be renewed');
    }
  });
  return { lost, cancel };
}
