/** Decides which hosts are missing and which are idle. A host with a tenant is never dismissed, so no tenant restarts to save one. */
import type { LaunchHost } from '../launch-queries.ts';
import type { Ledger } from '../ledger.ts';
import { type Room, sparesWanted } from './placement.ts';
import { roomsOf } from '../start-tenants.ts';

export interface HostDemand {
  /** Hosts of launchers that are without a tenant. */
  readonly idle: readonly LaunchHost[];
  /** engine → how many more hosts are needed */
  readonly missing: ReadonlyMap<string, number>;
}

interface DemandOptions {
  /** By engine, hosts that tenants wait for. */
  readonly missing: ReadonlyMap<string, number>;
  readonly mostHosts: number;
  readonly keepsSpares: boolean;
}

export function demandHosts(
  ledger: Ledger,
  alive: readonly LaunchHost[],
  { missing, mostHosts, keepsSpares }: DemandOptions,
): HostDemand {
  const spares = keepsSpares ? sparesWanted(roomsOf(ledger, alive), mostHosts) : new Map<string, number>();
  return {
    idle: idleHosts(ledger, alive, spares),
    missing: withSpares(ledger, alive, missing, spares),
  };
}

/** Hosts that run nothing. A host started by hand stays, and so do those that stand by. */
function idleHosts(ledger: Ledger, alive: readonly LaunchHost[], spares: ReadonlyMap<string, number>): LaunchHost[] {
  const empty = emptyRooms(ledger, alive);
  const ofEngine = (engine: string): Room[] => empty.filter((room) => room.engine === engine && !room.hadSuspect);
  const kept = new Set([...spares].flatMap(([engine, count]) => ofEngine(engine).slice(0, count)));
  const idle = new Set(empty.filter((room) => !kept.has(room)).map(({ hostId }) => hostId));
  return alive.filter(({ id, onDemand }) => onDemand && idle.has(id));
}

function emptyRooms(ledger: Ledger, alive: readonly LaunchHost[]): Room[] {
  return roomsOf(ledger, alive).filter(({ guests }) => guests.length === 0);
}

/**
 * Hosts to stand by are requested once all tenants of their engine run: until then the processor is theirs. After a loss they
 * are requested at once, because a second loss may follow as soon as the tenants start again.
 */
function withSpares(
  ledger: Ledger,
  alive: readonly LaunchHost[],
  missing: ReadonlyMap<string, number>,
  spares: ReadonlyMap<string, number>,
): ReadonlyMap<string, number> {
  const wanted = new Map(missing);
  const held = new Set<string | null>();
  const suspicious = new Set<string | null>();
  for (const [, { state, ordered, ending, engine, suspicion }] of ledger.launches()) {
    if (ending || (ordered && state !== 'STARTED')) held.add(engine);
    if (ordered && suspicion > 0) suspicious.add(engine);
  }
  const fresh = emptyRooms(ledger, alive).filter(({ hadSuspect }) => !hadSuspect);
  for (const [engine, count] of spares) {
    const lack = count - fresh.filter((room) => room.engine === engine).length;
    const needed = missing.get(engine) ?? 0;
    if (lack <= 0 || (held.has(engine) && !suspicious.has(engine))) continue;
    wanted.set(engine, Math.max(needed, Math.min(maxAtOnce, needed + lack)));
  }
  return wanted;
}

/**
 * Hosts to stand by that start at the same time: one for each processor that a small machine has. More would delay the tenants
 * that start again meanwhile.
 */
const maxAtOnce = 2;
