/**
 * Which host runs which tenant's scheduler. Hosts are of one engine version each.
 *
 * 1. Tenants that nobody suspects share hosts: each goes to the one with the fewest tenants.
 * 2. A tenant whose host was lost with it is suspected (`blame.ts`). The first time, it starts at once in a host that is
 *    there: an empty one, or one that it shares with tenants of equal suspicion only.
 * 3. A tenant that is suspected twice, or was alone in a host that was lost, waits for a host for itself.
 * 4. There are no more hosts of an engine than the machine can bear. At that limit, tenants share hosts, and the most
 *    suspected are spread evenly over them, so that each loss narrows the suspects down.
 * 5. Where tenants share a host, empty hosts stand by (`sparesWanted`), so that the tenants of a lost host start again
 *    without waiting for a process. There are two where at least three tenants share a host: the suspects are divided
 *    among them, so that a second loss hits half of them. Where suspects share a host, one stands by for each of them:
 *    a second loss separates them.
 * 6. An empty host in which a suspect has run is the last choice for everybody, and does not stand by: its former tenant may
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
  /** engine → how many more hosts it takes to run the others */
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
    // it counts as a host: there are only so many
    open.push(new Space({ hostId: undefined, engine: guest.engine, guests: [guest] }));
  }
  return { placed, missing };
}

const ranks: Readonly<Record<Company, number>> = { trusted: 0, suspect: 1, alone: 2 };

function compareGuests(a: Guest, b: Guest): number {
  return ranks[companyOf(a)] - ranks[companyOf(b)] || b.suspicion - a.suspicion;
}

/** Never fewer than it takes for all when none is suspected. */
function limitsOf(all: readonly Guest[], mostHosts: (engine: string) => number): (engine: string) => number {
  const sharing = new Map<string, number>();
  for (const { engine, ownHost } of all) if (!ownHost) sharing.set(engine, (sharing.get(engine) ?? 0) + 1);
  return (engine) => Math.max(1, mostHosts(engine), Math.ceil((sharing.get(engine) ?? 0) / maxGuests));
}

/** Where no further host may be: one that is there, though it is full. The most suspected keep apart from each other. */
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

/** A host that is there, or (without an id) one that would have to be. */
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

  /** What a suspect has left behind in it may harm the next tenant. */
  get isTainted(): boolean {
    return this.#hadSuspect && this.taken === 0;
  }

  get taken(): number {
    return this.#guests.length;
  }

  get isOwn(): boolean {
    return this.#guests.some(({ ownHost }) => ownHost);
  }

  /** The highest of all who are in it. */
  get suspicion(): number {
    return Math.max(0, ...this.#guests.map(({ suspicion }) => suspicion));
  }

  /** How many are suspected at least so much. */
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

/** A host that is there; for a tenant that nobody suspects, not one that stands by; then the one with the fewest tenants. */
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

/** By the first number in which they differ; the first of those that are equal. */
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

/** By engine, how many empty hosts shall stand by. */
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

/** Whether other tenants may come to be in it. */
function isShareable({ guests }: Room): boolean {
  return !guests.some(({ ownHost }) => ownHost);
}
