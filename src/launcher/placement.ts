/**
 * Which host runs which tenant's scheduler. Hosts are of one engine version each; the emptiest that may take it does. A
 * tenant whose host was lost with it may be to blame, and shares a host with ever fewer others.
 *
 * There are no more hosts of an engine than the machine can bear. Where there would have to be, they are filled beyond what
 * is good, and the most suspected are spread evenly over them: with each loss there are fewer of these, until one is left,
 * which is then alone.
 */

export interface Guest {
  readonly tenantId: string;
  readonly engine: string;
  /** How often its host was lost with it. */
  readonly suspicion: number;
  /** Shares its host with no other. */
  readonly ownHost: boolean;
  /** The host where it has just failed: another one comes first. */
  readonly failedAt: string | null;
}

export interface Room {
  readonly hostId: string;
  readonly engine: string;
  readonly guests: readonly Guest[];
}

export interface Placements {
  /** tenant → host */
  readonly placed: ReadonlyMap<string, string>;
  /** engine → how many more hosts it takes to run the others */
  readonly missing: ReadonlyMap<string, number>;
}

const capacities = [256, 32, 4, 1] as const;

function capacity({ suspicion, ownHost }: Guest): number {
  return ownHost ? 1 : (capacities[Math.min(suspicion, capacities.length - 1)] ?? 1);
}

/** Its host was lost with it so often that by now nobody shares one with it. */
export function isAlone({ suspicion }: Pick<Guest, 'suspicion'>): boolean {
  return suspicion >= capacities.length - 1;
}

/**
 * `rooms` are those of hosts that are alive and not leaving. `mostHosts` of an engine do not count those of tenants that have
 * one of their own. The most suspected are served first; among equals, those that come first.
 */
export function place(
  guests: readonly Guest[],
  rooms: readonly Room[],
  mostHosts: (engine: string) => number,
): Placements {
  const open: Space[] = rooms.map((room) => new Space(room.hostId, room.engine, room.guests));
  const most = limitsOf([...guests, ...rooms.flatMap((room) => room.guests)], mostHosts);
  const placed = new Map<string, string>();
  const missing = new Map<string, number>();
  for (const guest of guests.toSorted((a, b) => b.suspicion - a.suspicion)) {
    const admitting = open.filter((candidate) => candidate.admits(guest));
    const space = emptiest(admitting, guest) ?? beyondLimit(open, guest, most);
    if (space === undefined) {
      open.push(new Space(undefined, guest.engine, [guest]));
      missing.set(guest.engine, (missing.get(guest.engine) ?? 0) + 1);
    } else {
      space.take(guest);
      if (space.hostId !== undefined) placed.set(guest.tenantId, space.hostId);
    }
  }
  return { placed, missing };
}

/** Never fewer than it takes for all when none is suspected. */
function limitsOf(all: readonly Guest[], mostHosts: (engine: string) => number): (engine: string) => number {
  const sharing = new Map<string, number>();
  for (const { engine, ownHost } of all) if (!ownHost) sharing.set(engine, (sharing.get(engine) ?? 0) + 1);
  return (engine) => Math.max(1, mostHosts(engine), Math.ceil((sharing.get(engine) ?? 0) / capacities[0]));
}

/** Where no further host may be: one that is there, though it is full. The most suspected keep apart from each other. */
function beyondLimit(open: readonly Space[], guest: Guest, most: (engine: string) => number): Space | undefined {
  const shared = open.filter((space) => space.engine === guest.engine && !space.isOwn);
  if (guest.ownHost || shared.length < most(guest.engine)) return undefined;
  return least(shared, (space) => [
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
  readonly #guests: Guest[];
  #capacity: number;

  constructor(hostId: string | undefined, engine: string, guests: readonly Guest[]) {
    this.hostId = hostId;
    this.engine = engine;
    this.#guests = [...guests];
    this.#capacity = Math.min(capacities[0], ...guests.map(capacity));
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
    return guest.engine === this.engine && this.taken < Math.min(this.#capacity, capacity(guest));
  }

  take(guest: Guest): void {
    this.#guests.push(guest);
    this.#capacity = Math.min(this.#capacity, capacity(guest));
  }
}

/** Hosts that are there before those that are not; the first of those that are equally empty. */
function emptiest(spaces: readonly Space[], guest: Guest): Space | undefined {
  return least(spaces, (space) => [space.hostId === undefined ? 1 : 0, hasFailedIn(space, guest), space.taken]);
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

/** So few may have to move, and so many may share a host in the end: far from where hosts are full, or nothing would last. */
const fewGuests = 32;
const wellFilled = capacities[0] / 2;

/**
 * Hosts whose tenants might as well run in another of their engine, one of each engine: suspects were given room, and nobody
 * is suspected any more. `mayGo`: it may be sent away.
 */
export function needless(rooms: readonly Room[], mayGo: (room: Room) => boolean): Room[] {
  const trusted = rooms
    .filter(({ guests }) => guests.length > 0 && guests.every(({ suspicion, ownHost }) => suspicion === 0 && !ownHost))
    .toSorted((a, b) => a.guests.length - b.guests.length);
  const found = new Map<string, Room>();
  for (const [i, room] of trusted.entries()) {
    const fits = ({ engine, guests }: Room): boolean =>
      engine === room.engine && guests.length + room.guests.length <= wellFilled;
    if (found.has(room.engine) || room.guests.length > fewGuests || !mayGo(room)) continue;
    if (trusted.slice(i + 1).some(fits)) found.set(room.engine, room);
  }
  return [...found.values()];
}
