/**
 * How other code of a process reaches the conductors (`EngineContext.conductors`): its own conductor if it has one, otherwise the
 * inbox of the tenant's database and a hint.
 */
import type { Conductors, Delivered, FlowMessage } from '../contract/flow-messages.ts';
import { isStaleEngine, MillraceError } from '../errors.ts';
import { persist } from '../kernel/backoff.ts';
import type { Loader, OpenTenant } from '../loader/loader.ts';
import type { WakeHub } from '../postgres/wake.ts';
import { acceptedOf } from './deliveries.ts';

/** The conductor of this process. */
export interface LocalConductor {
  readonly id: string;
  /** Whether another conductor that is alive has this id. */
  isOther(id: string): boolean;
  wake(tenantId: string): void;
  /** Undefined: it cannot serve the tenant now. */
  deliver(tenantId: string, messages: readonly FlowMessage[], withinMs: number): Promise<Delivered[] | undefined>;
}

export interface ConductorPort extends Conductors {
  /** Sets the conductor of this process; undefined: it has none any more. */
  attach(local: LocalConductor | undefined): void;
}

export interface ConductorPortOptions {
  readonly loader: () => Pick<Loader, 'use'>;
  readonly hub: Pick<WakeHub, 'send'>;
}

export function makeConductorPort({ loader, hub }: ConductorPortOptions): ConductorPort {
  let local: LocalConductor | undefined;
  const hint: Conductors['hint'] = (tenantId, owners) => {
    const isHere = (owner: string | null): boolean => local !== undefined && (owner === null || !local.isOther(owner));
    if (owners.some(isHere)) local?.wake(tenantId);
    const elsewhere = [...new Set(owners.filter((owner) => !isHere(owner)))];
    if (elsewhere.length > 0) hub.send('flows', tenantId, elsewhere);
  };
  return {
    hint,
    attach(conductor) {
      local = conductor;
    },
    async deliver(tenantId, messages, withinMs) {
      if (messages.length === 0) return [];
      const delivered = await local?.deliver(tenantId, messages, withinMs);
      if (delivered !== undefined) return delivered;
      const stored = await persist(() => loader().use(tenantId, (tenant) => store(tenant, messages)), whileChanging);
      hint(tenantId, [null]);
      return stored;
    },
  };
}

/** The tenant may be closed and opened again while messages are being stored. */
const whileChanging = {
  backoff: { firstMs: 20, capMs: 200, jitter: 0.5 },
  giveUp: (error: unknown): boolean => !isStaleEngine(error),
};

async function store({ engine, ctx }: OpenTenant, messages: readonly FlowMessage[]): Promise<Delivered[]> {
  if (engine.flows === undefined)
    throw new MillraceError(
      'not_supported',
      `tenant ${ctx.tenant.name} is at version ${engine.version}, which has no flows`,
    );
  const outcomes = await engine.flows.accept(ctx, messages, null);
  return messages.map((message, i) => acceptedOf(message, outcomes[i]));
}
