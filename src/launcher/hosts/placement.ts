/**
 * Decides which host runs which tenant's scheduler. Each host has one engine version.
 *
 * 1. Tenants without suspicion share hosts: each goes to the host with the fewest tenants.
 * 2. A tenant whose host was lost with it is suspected (`blame.ts`). The first time, it starts at once in a running
 *    host: an empty one, or one that it shares with tenants of equal suspicion only.
 * 3. A tenant that is suspected twice, or was alone in a host that was lost, waits for a host for itself.
 * 4. The memory of the machine limits the number of hosts per engine. At that limit, tenants share hosts, and the most
 *    suspected are spread evenly over them, so that each loss narrows the suspects down.
 * 5. Where tenants share a host, empty hosts stand by (`sparesWanted`), so that the tenants of a lost host start again
 *    without waiting for a process. There are two where at least three tenants share a host: the suspects are divided
 *    among them, so that a second loss hits half of them. Where suspects share a host, one stands by for each of them:
 *    a second loss separates them.
 * 6. An empty host in which a suspect has run is the last choice for every tenant, and is no spare: its former tenant may
 *    have left timers or memory behind.
 *
 * A suspect that runs is not moved: it restarts only if its host is lost.
 */

import { aloneSuspicion } from './blame.ts';

export interface Guest {
  readonly tenantId: string;
  readonly engine: string;
  /** How often its host was lost with it; more where it was the newcomer. */
  readonly suspicion: number;
  /** Shares its host with no other. */
  readonly ownHost: boolean;
  /** It was alone in a host that was lost: it waits for a host of its own, and shares none meanwhile. */
  readonly isBlamed: boolean;
  /** The host where it has just failed: another one comes first. */
  readonly failedAt: string | null;
}

export interface Room {
  readonly hostId: string;
  readonly engine: string;
  readonly guests: readonly Guest[];
  /** A suspected tenant is in it, or was. */
  readonly hadSuspect?: boolean;
}

export interface Placements {
  /** tenant → host */
  readonly placed: ReadonlyMap<string, string>;
  /** engine → number of further hosts that the other tenants need */
  readonly missing: ReadonlyMap<string, number>;
}

/** Tenants that share a host. */
const maxGuests = 256;

type Company = 'trusted' | 'suspect' | 'alone';

/** Tenants share a host only with tenants of the same company. */
function companyOf({ suspicion, ownHost, isBlamed }: Guest): Company {
  if (ownHost || isBlamed || suspicion >= aloneSuspicion) return 'alone';
  return suspicion === 1 ? 'suspect' : 'trusted';
}

/**
 * `rooms` are those of hosts that are alive and not leaving. `mostHosts` of an engine do not count those of tenants that have
 * one of their own. Tenants that may share a host are placed first, then those that are to be alone, the most suspected first.
 */
export function place(
  guests: readonly Guest[],
  rooms: readonly Room[],
  mostHosts: (engine: string) => number,
): Placements {
  const open: Space[] = rooms.map((room) => new Space(room));
  const most = limitsOf([...guests, ...rooms.flatMap((room) => room.guests)], mostHosts);
  const placed = new Map<string, string>();
  const missing = new Map<string, number>();
  for (const guest of guests.toSorted(compareGuests)) {
    const admitting = open.filter((candidate) => candidate.admits(guest));
    const space = emptiest(admitting, guest) ?? beyondLimit(open, guest, most);
    if (space !== undefined) {
      space.take(guest);
      if (space.hostId !== undefined) placed.set(guest.tenantId, space.hostId);
      continue;
    }
    missing.set(guest.engine, (missing.get(guest.engine) ?? 0) + 1);
    // the host to come counts towards the limit
    open.push(new Space({ hostId: undefined, engine: guest.engine, guests: [guest] }));
  }
  return { placed, missing };
}

const ranks: Readonly<Record<Company, number>> = { trusted: 0, suspect: 1, alone: 2 };

function compareGuests(a: Guest, b: Guest): number {
  return ranks[companyOf(a)] - ranks[companyOf(b)] || b.suspicion - a.suspicion;
}

/** The maximum number of hosts by engine: at least as many as all tenants would need without suspicion. */
function limitsOf(all: readonly Guest[], mostHosts: (engine: string) => number): (engine: string) => number {
  const sharing = new Map<string, number>();
  for (const { engine, ownHost } of all) if (!ownHost) sharing.set(engine, (sharing.get(engine) ?? 0) + 1);
  return (engine) => Math.max(1, mostHosts(engine), Math.ceil((sharing.get(engine) ?? 0) / maxGuests));
}

/** At the limit of hosts: a running host, even a full one. The most suspected tenants are kept apart from each other. */
function beyondLimit(open: readonly Space[], guest: Guest, most: (engine: string) => number): Space | undefined {
  const shared = open.filter((space) => space.engine === guest.engine && !space.isOwn);
  if (guest.ownHost || shared.length < most(guest.engine)) return undefined;
  const mayWait = guest.isBlamed || !shared.some(({ hostId }) => hostId !== undefined);
  const candidates = shared.filter(({ hostId }) => hostId !== undefined || mayWait);
  return least(candidates, (space) => [
    Math.max(0, space.suspicion - guest.suspicion),
    space.suspects(Math.max(1, guest.suspicion)),
    hasFailedIn(space, guest),
    space.taken,
  ]);
}

/** A running host, or one that has yet to be started, which has no id. */
class Space {
  readonly hostId: string | undefined;
  readonly engine: string;
  readonly #hadSuspect: boolean;
  readonly #guests: Guest[];

  constructor({ hostId, engine, guests, hadSuspect = false }: Omit<Room, 'hostId'> & { hostId: string | undefined }) {
    this.hostId = hostId;
    this.engine = engine;
    this.#hadSuspect = hadSuspect;
    this.#guests = [...guests];
  }

  /** A suspect has run in it, and may have left timers or memory behind. */
  get isTainted(): boolean {
    return this.#hadSuspect && this.taken === 0;
  }

  get taken(): number {
    return this.#guests.length;
  }

  get isOwn(): boolean {
    return this.#guests.some(({ ownHost }) => ownHost);
  }

  /** The highest suspicion of its tenants. */
  get suspicion(): number {
    return Math.max(0, ...this.#guests.map(({ suspicion }) => suspicion));
  }

  /** The number of its tenants with at least this suspicion. */
  suspects(suspicion: number): number {
    return this.#guests.filter((guest) => guest.suspicion >= suspicion).length;
  }

  admits(guest: Guest): boolean {
    const company = companyOf(guest);
    if (guest.engine !== this.engine || this.taken >= maxGuests) return false;
    return this.taken === 0 || (company !== 'alone' && this.#guests.every((each) => companyOf(each) === company));
  }

  take(guest: Guest): void {
    this.#guests.push(guest);
  }
}

/** Prefers running hosts; for a tenant without suspicion, those that are no spares; then the one with the fewest tenants. */
function emptiest(spaces: readonly Space[], guest: Guest): Space | undefined {
  return least(spaces, (space) => [
    space.hostId === undefined ? 1 : 0,
    hasFailedIn(space, guest),
    space.isTainted ? 1 : 0,
    space.taken === 0 && companyOf(guest) === 'trusted' ? 1 : 0,
    space.taken,
  ]);
}

function hasFailedIn({ hostId }: Space, { failedAt }: Guest): number {
  return hostId !== undefined && hostId === failedAt ? 1 : 0;
}

/** Returns the space with the least key. Keys are compared by the first number in which they differ. */
function least(spaces: readonly Space[], keyOf: (space: Space) => readonly number[]): Space | undefined {
  const keyed = spaces.map((space) => ({ space, key: keyOf(space) }));
  return keyed.toSorted((a, b) => compare(a.key, b.key))[0]?.space;
}

function compare(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((value, i) => value !== b[i]);
  return at < 0 ? 0 : (a[at] ?? 0) - (b[at] ?? 0);
}

/** A host that stands by costs 30 MB of memory (proportional set size), and no processor time. */
const maxSparesWithoutLoss = 2;

/** Returns the number of empty hosts to stand by, for each engine. */
export function sparesWanted(rooms: readonly Room[], mostHosts: number): Map<string, number> {
  const wanted = new Map<string, number>();
  for (const { engine, guests } of rooms.filter((room) => room.guests.length > 1)) {
    const used = rooms.filter((room) => room.engine === engine && isShareable(room) && room.guests.length > 0).length;
    const suspects = guests.filter(({ suspicion }) => suspicion > 0).length;
    const least = Math.min(maxSparesWithoutLoss, guests.length - 1);
    const spares = Math.max(1, Math.min(Math.max(least, suspects), mostHosts - used));
    wanted.set(engine, Math.max(spares, wanted.get(engine) ?? 0));
  }
  return wanted;
}

/** Whether other tenants may be placed in it. */
function isShareable({ guests }: Room): boolean {
  return !guests.some(({ ownHost }) => ownHost);
}
