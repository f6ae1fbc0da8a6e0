/** The desks for messages of workers other than reports: lease renewals, logs, definitions, stash values. */
import type { FromWorker, Heartbeat } from '../../contract/engine.ts';
import type { DefinitionKey, HeldRun, LogChunk, TaskDefinition } from '../../contract/wire.ts';
import { type Loader, unlessGone } from '../../loader/loader.ts';
import { TenantDesk } from './tenant-desk.ts';

interface Renewed {
  readonly lost: readonly HeldRun[];
  readonly cancel: readonly HeldRun[];
}

interface StashWish {
  readonly run: FromWorker<HeldRun>;
  readonly names: readonly string[];
}

interface DefinitionWish {
  readonly worker: string;
  readonly keys: readonly DefinitionKey[];
}

export interface TenantDesks {
  readonly renewals: TenantDesk<Heartbeat, Renewed>;
  readonly logs: TenantDesk<readonly FromWorker<LogChunk>[], void>;
  readonly definitions: TenantDesk<DefinitionWish, TaskDefinition[]>;
  readonly stash: TenantDesk<StashWish, Record<string, string>>;
}

export function makeTenantDesks(loader: Loader): TenantDesks {
  const few = { largestBatch: () => 1_000, batchesAtOnce: 2 } as const;
  return {
    renewals: new TenantDesk({ ...few, sizeOf: () => 1, apply: (tenant, beats) => renew(loader, tenant, beats) }),
    logs: new TenantDesk({
      ...few,
      sizeOf: (chunks: readonly FromWorker<LogChunk>[]) => chunks.length,
      apply: (tenant, parts) => keep(loader, tenant, parts),
    }),
    definitions: new TenantDesk({
      ...few,
      sizeOf: ({ keys }: DefinitionWish) => keys.length,
      apply: (tenant, wishes) => define(loader, tenant, wishes),
    }),
    stash: new TenantDesk({
      sizeOf: () => 1,
      largestBatch: () => 1,
      batchesAtOnce: 4,
      apply: (tenant, wishes) =>
        loader.use(tenant, ({ engine, ctx }) =>
          Promise.all(wishes.map(({ run, names }) => engine.runs.stash(ctx, run, names))),
        ),
    }),
  };
}

/** Only the newest heartbeat of a worker counts; runs of an older one are left in doubt. */
async function renew(loader: Loader, tenant: string, beats: readonly Heartbeat[]): Promise<Renewed[]> {
  const newest = new Map<string, Heartbeat>();
  for (const beat of beats) {
    if (beat.incarnation >= (newest.get(beat.worker)?.incarnation ?? 0)) newest.set(beat.worker, beat);
  }
  const counted = [...newest.values()];
  const renewed = await loader.use(tenant, ({ engine, ctx }) => engine.runs.renew(ctx, counted));
  const answers = new Map(counted.map((beat, i) => [beat, renewed[i]]));
  return beats.map((beat) => answers.get(beat) ?? { lost: [], cancel: [] });
}

/** Output of a tenant that no longer exists is dropped. */
async function keep(
  loader: Loader,
  tenant: string,
  parts: readonly (readonly FromWorker<LogChunk>[])[],
): Promise<void[]> {
  const row = await loader.byId(tenant).catch(unlessGone);
  if (row !== undefined) await loader.use(row.id, ({ engine, ctx }) => engine.runs.logs(ctx, parts.flat()));
  return parts.map(() => undefined);
}

/** A worker may read only the definitions of its own runs, so the engine is called for each worker separately. */
async function define(loader: Loader, tenant: string, wishes: readonly DefinitionWish[]): Promise<TaskDefinition[][]> {
  const row = await loader.byId(tenant).catch(unlessGone);
  if (row === undefined) return wishes.map(() => []);
  return loader.use(row.id, ({ engine, ctx }) =>
    Promise.all(wishes.map(({ worker, keys }) => engine.runs.definitions(ctx, keys, worker))),
  );
}
