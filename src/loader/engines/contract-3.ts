/**
 * Adapts engines of contract 3 (release 0.1.0) to contract 4. Their tenants have neither an event bus nor flows; everything
 * else works.
 *
 * Differences: in contract 3, functions for runs were not in a group, and the context had a broker and wake-ups instead of
 * hints. These engines know tasks only, whose runs have the same shape. They do not offer runs by name, so workers claim
 * them. They hand out no runs in answers to reports, and keep no results.
 */
import type { HintKind } from '../../contract/channels.ts';
import type { EngineContext } from '../../contract/context.ts';
import type { Engine, RunEngine } from '../../contract/engine.ts';
import type { HeldRun, Invalidation } from '../../contract/wire.ts';
import { all, type Service } from '../../kernel/service.ts';

interface OldBroker {
  offer(tenant: unknown, lanes?: readonly string[]): void;
  results(): Service;
  update(tenant: unknown, jobIds: readonly string[]): void;
  broadcast(invalidation: Invalidation): void;
  cancel(run: HeldRun): void;
}

interface OldWake {
  send(tenantId: string, kind: HintKind): void;
  on(tenantId: string, kind: HintKind, listener: () => void): () => void;
}

/** Members of the context that contract 4 no longer has. */
interface OldMembers {
  readonly broker: OldBroker;
  readonly wake: OldWake;
}

/** An engine of contract 3. Its functions expect a context that also has the old members. */
export type OldEngine = Omit<Engine, 'runs' | 'bus' | 'flows'> & Omit<RunEngine, 'offers' | 'accept'>;

export function adaptContract3(old: OldEngine): Engine {
  return {
    contract: old.contract,
    version: old.version,
    pending: (client) => old.pending(client),
    migrate: (client) => old.migrate(client),
    scheduler: (ctx) => old.scheduler(withOldMembers(ctx)),
    fetch: (request, ctx, caller) => old.fetch(request, withOldMembers(ctx), caller),
    prune: (ctx) => old.prune(withOldMembers(ctx)),
    runs: {
      claim: (ctx, polls) => old.claim(withOldMembers(ctx), polls),
      report: (ctx, reports) => old.report(withOldMembers(ctx), reports),
      offers: () => Promise.resolve([]),
      accept: (_, wishes) => Promise.resolve(wishes.map(() => [])),
      renew: (ctx, beats) => old.renew(withOldMembers(ctx), beats),
      cancellations: (ctx) => old.cancellations(withOldMembers(ctx)),
      logs: (ctx, chunks) => old.logs(withOldMembers(ctx), chunks),
      definitions: (ctx, keys, worker) => old.definitions(withOldMembers(ctx), keys, worker),
      stash: (ctx, run, names) => old.stash(withOldMembers(ctx), run, names),
    },
  };
}

function withOldMembers(ctx: EngineContext): EngineContext & OldMembers {
  const { hints } = ctx;
  return {
    ...ctx,
    broker: {
      offer: (_, lanes) => hints.send('ready', lanes),
      results: () => all('results', []),
      update: (_, jobIds) => hints.send('triggers', jobIds),
      broadcast: (invalidation) => hints.send('invalidate', invalidation),
      cancel: (run) => hints.send('cancel', run),
    },
    wake: {
      send: (_, kind) => hints.send(kind),
      on: (_, kind, listener) => hints.on(kind, listener),
    },
  };
}
