/**
 * Decides which tenants are asked for runs now, and for how many. It is a pure function: the desk (`claim-desk.ts`) executes the
 * decision, and calls it again whenever something has changed.
 *
 * It promises, for one set of lanes:
 * 1. Only tenants that may have ready runs are asked, the one that has waited longest first, each with one claim at a time. A
 *    tenant that is off, paused after a failure, or served by no poll is not asked.
 * 2. The free places are divided equally between the asked tenants, and no poll gets more runs than it has room for. One place
 *    in 32 stays free, so that a tenant whose runs become ready during a large claim is served at once.
 * 3. A slow tenant costs the others nothing (I11): no places are kept for it, and slow tenants have a limit of their own.
 * 4. While others are at work, a tenant gets at most 250 runs at once, and its large claims wait for their turn.
 * 5. A tenant that may have no connection yet is asked for one set of lanes at a time. Only a few such tenants are asked while
 *    this process opens as many connections as it can.
 */
import type { TenantRecord } from './tenant-record.ts';

export const claimLimits = {
  /** Tenants that are asked for the same lanes at the same time. The limit applies separately to slow tenants. */
  tenantsAtOnce: 16,
  /** One place in this many stays free. */
  sparePlaceIn: 32,
  /** A batch of this many runs is too small to delay other tenants. */
  smallBatch: 25,
  /** The maximum number of runs in one batch of a tenant while others are at work. */
  sharedBatch: 250,
  /** A claim without an answer after this time no longer counts against `tenantsAtOnce`, unless connections are short. */
  stuckMs: 1_000,
} as const;

/** A poll that waits for runs. */
export interface Poll {
  /** Whether it takes runs of this tenant. */
  readonly takes: (tenantId: string) => boolean;
}

/** Places of a poll: those that are free, or those that a tenant is asked to fill. */
export interface Portion<P extends Poll = Poll> {
  readonly poll: P;
  readonly places: number;
}

/** A claim: a tenant is asked for runs. */
export interface Ask<P extends Poll = Poll> {
  readonly tenant: TenantRecord;
  readonly laneSet: string;
  readonly portions: readonly Portion<P>[];
  readonly atMs: number;
  /** How long places are kept for its answer. */
  readonly patienceMs: number;
  /** Whether places are kept for it now. */
  keepsPlaces: boolean;
}

export interface Standing {
  readonly laneSet: string;
  readonly now: number;
  /** The claims under way. */
  readonly asks: Iterable<Ask>;
  /** This process opens as many connections as it can, and more requests for connections wait. */
  readonly isConnecting: boolean;
  readonly isOff: (tenantId: string) => boolean;
  readonly hasOthersAtWork: (tenant: TenantRecord) => boolean;
}

export interface Choice<P extends Poll> {
  readonly asks: readonly Ask<P>[];
  /** Tenants that are not asked because they must wait for their turn. */
  readonly postponed: readonly TenantRecord[];
}

export function choose<P extends Poll>(
  queue: Iterable<TenantRecord>,
  free: readonly Portion<P>[],
  standing: Standing,
): Choice<P> {
  const { laneSet, now, isConnecting, isOff } = standing;
  const room = countRoom(standing);
  const chosen: Record<'prompt' | 'slow', TenantRecord[]> = { prompt: [], slow: [] };
  const postponed: TenantRecord[] = [];
  let unconnected = 0;
  for (const tenant of queue) {
    if (tenant.asks.has(laneSet) || isOff(tenant.id) || now < tenant.pausedUntil) continue;
    const places = sumPlaces(free.filter(({ poll }) => poll.takes(tenant.id)));
    if (places === 0) continue;
    if (tenant.turn?.isTaken && needsTurn(tenant, places, standing)) {
      postponed.push(tenant);
      continue;
    }
    const pace = tenant.isSlow(now) ? 'slow' : 'prompt';
    if (chosen[pace].length >= room[pace]) continue;
    if (!tenant.isKnown(now)) {
      // it may have no connection yet, and would need a second one for other lanes
      if (tenant.asks.size > 0) continue;
      if (isConnecting && pace === 'prompt' && unconnected++ >= room.slow) continue;
    }
    chosen[pace].push(tenant);
  }
  return { asks: [chosen.prompt, chosen.slow].flatMap((tenants) => share(tenants, free, standing)), postponed };
}

/** How many more tenants may be asked. Stuck claims would soon use up the room for slow tenants, so they do not count. */
function countRoom({ laneSet, now, asks, isConnecting }: Standing): Record<'prompt' | 'slow', number> {
  const room = { prompt: claimLimits.tenantsAtOnce, slow: claimLimits.tenantsAtOnce };
  for (const ask of asks) {
    if (ask.laneSet !== laneSet) continue;
    if (ask.keepsPlaces) room.prompt--;
    // while connections are short, a stuck claim waits for this process, and more claims would not help
    else if (isConnecting || now - ask.atMs < claimLimits.stuckMs) room.slow--;
  }
  return room;
}

/** Whether a claim for this many places counts as one of the tenant's large batches, which take turns. */
export function needsTurn(
  tenant: TenantRecord,
  places: number,
  { laneSet, now, hasOthersAtWork }: Pick<Standing, 'laneSet' | 'now' | 'hasOthersAtWork'>,
): boolean {
  return places > claimLimits.smallBatch && tenant.isFlooded(laneSet, now) && hasOthersAtWork(tenant);
}

function share<P extends Poll>(
  tenants: readonly TenantRecord[],
  free: readonly Portion<P>[],
  { laneSet, now, hasOthersAtWork }: Standing,
): Ask<P>[] {
  const dealt = dealPlaces(
    free.map(({ places }) => places - Math.floor(places / claimLimits.sparePlaceIn)),
    tenants.length,
  );
  return tenants.flatMap((tenant, i) => {
    const own = free
      .map(({ poll }, at) => ({ poll, places: dealt[i]?.[at] ?? 0 }))
      .filter(({ poll, places }) => places > 0 && poll.takes(tenant.id));
    const portions = hasOthersAtWork(tenant) ? limitPlaces(own, claimLimits.sharedBatch) : own;
    if (portions.length === 0) return [];
    const keepsPlaces = !tenant.isSlow(now);
    return [{ tenant, laneSet, portions, atMs: now, patienceMs: tenant.patienceMs(now), keepsPlaces }];
  });
}

/**
 * Divides the free places of each poll equally between tenants. The remainder of a division goes to the first tenants, and
 * that of the next poll to the next ones. Returns for each tenant its places of each poll.
 */
export function dealPlaces(free: readonly number[], tenants: number): number[][] {
  const shares = Array.from({ length: tenants }, () => free.map(() => 0));
  let next = 0;
  free.forEach((places, poll) => {
    const each = Math.floor(places / tenants);
    const rest = places % tenants;
    shares.forEach((own, tenant) => {
      const position = (tenant - next + tenants) % tenants;
      own[poll] = each + (position < rest ? 1 : 0);
    });
    next = (next + rest) % tenants;
  });
  return shares;
}

export function sumPlaces(portions: readonly { readonly places: number }[]): number {
  return portions.reduce((sum, { places }) => sum + places, 0);
}

/** Limits the portions to `max` places in all, reducing them as evenly as possible. */
export function limitPlaces<P extends { readonly places: number }>(portions: readonly P[], max: number): readonly P[] {
  if (sumPlaces(portions) <= max) return portions;
  let left = max;
  return portions
    .toSorted((a, b) => a.places - b.places)
    .map((portion, i) => {
      const places = Math.min(portion.places, Math.ceil(left / (portions.length - i)));
      left -= places;
      return { ...portion, places };
    })
    .filter(({ places }) => places > 0);
}
