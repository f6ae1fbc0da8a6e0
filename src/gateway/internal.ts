/** What workers call: claim, report, heartbeat, logs, definitions, stash values. Every message is a batch over tenants. */
import { leaseTimes } from '../contract/lease-times.ts';
import type { HeartbeatRequest, HeldRun } from '../contract/wire.ts';
import type { Handlers } from '../http/endpoint.ts';
import { isGone, type OpenTenant, unlessGone } from '../launcher/loader.ts';
import { checkpoint } from '../kernel/checkpoint.ts';
import { groupBy } from '../kernel/group.ts';
import { noteForeignWorker, noteWorker } from './control-queries.ts';
import type { gatewayEndpoints } from './endpoints.ts';
import type { GatewayContext } from './context.ts';

type Keys = Extract<keyof typeof gatewayEndpoints, `POST /internal/${string}` | 'POST /int-api/heartbeat'>;

export const internalHandlers: Handlers<Pick<typeof gatewayEndpoints, Keys>, GatewayContext> = {
  'POST /internal/claim': async ({ body, request }, { claims, signals }) => {
    const poll = signals.poll(body.worker, body.seen);
    try {
      const runs = await claims.claim(body, AbortSignal.any([request.signal, poll.signal]));
      return { runs, lost: [], ...signals.take(body.worker, body.seen) };
    } finally {
      signals.endPoll(body.worker, poll);
    }
  },
  'POST /internal/report': async ({ body }, { reports }) => {
    checkpoint('report.received');
    await reports.report(body.reports);
    checkpoint('report.answer');
    return { accepted: body.reports.length };
  },
  'POST /internal/heartbeat': async ({ body, request }, context) => {
    await noteWorker(context.control, body, new Date(context.time.now()));
    checkpoint('heartbeat.noted');
    // what it held when it asked is old news if it has given up waiting
    if (request.signal.aborted) return { lost: [], cancel: [], invalidate: [], seen: body.seen };
    const { lost, cancel } = await renew(body, context);
    checkpoint('heartbeat.renewed');
    const told = context.signals.take(body.worker, body.seen);
    return { ...told, lost, cancel: [...cancel, ...told.cancel], beat_ms: leaseTimes(context.leaseMs).beatMs };
  },
  'POST /internal/logs': async ({ body }, context) => {
    const kept = await perTenant(context, body.chunks, ({ engine, ctx }, chunks) => engine.logs(ctx, chunks));
    checkpoint('logs.kept');
    return { accepted: kept.reduce((sum, n) => sum + n, 0) };
  },
  'POST /internal/definitions': async ({ body }, context) => {
    const found = await perTenant(context, body.items, ({ engine, ctx }, keys) => engine.definitions(ctx, keys));
    return { definitions: found.flat() };
  },
  'POST /internal/secrets': async ({ body }, { loader }) => {
    const { engine, ctx } = await loader.named(body.tenant);
    return { values: await engine.stash(ctx, body, body.names) };
  },
  'POST /int-api/heartbeat': async ({ body }, { control, time }) => {
    const { uuid: id, addr, version, running_tasks: running, total_tasks: places } = body;
    await noteForeignWorker(control, { id, addr, version, running, places }, new Date(time.now()));
  },
};

/** Calls each tenant's engine with its part of a batch; what is of a tenant that is gone is left out. */
async function perTenant<T extends { readonly tenant: string }, R>(
  { loader }: GatewayContext,
  items: readonly T[],
  call: (tenant: OpenTenant, some: readonly T[]) => Promise<R>,
): Promise<R[]> {
  const answers = [...groupBy(items, (item) => item.tenant)].map(async ([name, some]) => {
    const tenant = await loader.named(name).catch(unlessGone);
    return tenant === undefined ? [] : [await call(tenant, some)];
  });
  return (await Promise.all(answers)).flat();
}

/** A tenant that is gone holds no run any more; one that cannot be reached is left in doubt, not called lost. */
async function renew(
  beat: HeartbeatRequest,
  { claims, loader, log }: GatewayContext,
): Promise<{ lost: HeldRun[]; cancel: HeldRun[] }> {
  const holds = groupBy(beat.holds, (run) => run.tenant);
  const answers = await Promise.all(
    [...(await claims.tenantsOf(beat.worker, beat.incarnation, beat.holds))].map(async (tenant) => {
      const held = holds.get(tenant) ?? [];
      try {
        const { engine, ctx } = await loader.named(tenant);
        const [answer] = await engine.renew(ctx, [{ worker: beat.worker, incarnation: beat.incarnation, holds: held }]);
        return answer ?? { lost: [], cancel: [] };
      } catch (error) {
        if (isGone(error)) return { lost: held, cancel: [] };
        log.warn({ err: error, tenant, worker: beat.worker }, 'a lease could not be renewed');
        return { lost: [], cancel: [] };
      }
    }),
  );
  return { lost: answers.flatMap((a) => a.lost), cancel: answers.flatMap((a) => a.cancel) };
}
