/**
 * Which host runs which tenant's scheduler. Hosts are of one engine version each; the emptiest that may take it does. A
 * tenant whose host was lost with it may be to blame, and shares a host with ever fewer others.
 */

export interface Guest {
  readonly tenantId: string;
  readonly engine: string;
  /** How often its host was lost with it. */
  readonly suspicion: number;
  /** Shares its host with no other. */
  readonly ownHost: boolean;
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

/** `rooms` are those of hosts that are alive and not leaving. Those that come first are served first. */
export function place(guests: readonly Guest[], rooms: readonly Room[]): Placements {
  const open: Space[] = rooms.map((room) => new Space(room.hostId, room.engine, room.guests));
  const placed = new Map<string, string>();
  const missing = new Map<string, number>();
  for (const guest of guests) {
    const space = emptiest(open.filter((candidate) => candidate.admits(guest)));
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

/** A host that is there, or (without an id) one that would have to be. */
class Space {
  readonly hostId: string | undefined;
  readonly #engine: string;
  #taken: number;
  #capacity: number;

  constructor(hostId: string | undefined, engine: string, guests: readonly Guest[]) {
    this.hostId = hostId;
    this.#engine = engine;
    this.#taken = guests.length;
    this.#capacity = Math.min(capacities[0], ...guests.map(capacity));
  }

  get taken(): number {
    return this.#taken;
  }

  admits(guest: Guest): boolean {
    return guest.engine === this.#engine && this.#taken < Math.min(this.#capacity, capacity(guest));
  }

  take(guest: Guest): void {
    this.#taken += 1;
    this.#capacity = Math.min(this.#capacity, capacity(guest));
  }
}

/** Hosts that are there before those that are not; the first of those that are equally empty. */
function emptiest(spaces: readonly Space[]): Space | undefined {
  const there = spaces.filter((space) => space.hostId !== undefined);
  const among = there.length > 0 ? there : spaces;
  let best: Space | undefined;
  for (const space of among) if (best === undefined || space.taken < best.taken) best = space;
  return best;
}
