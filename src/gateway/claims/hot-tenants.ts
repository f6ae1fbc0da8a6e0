/**
 * Which tenants may have ready runs, for each set of lanes that somebody polls for; whoever has waited longest comes first.
 * A tenant is hot from when something is said of it (a bell, its scheduler's word) until a claim for those lanes got less
 * than it asked for. Bells say which lanes they are about, where that is known: nobody is asked about others. What is said
 * while that claim is under way makes it hot again.
 */
export class HotTenants {
  readonly #byLanes = new Map<string, Set<string>>();
  /** The lanes that each of them stands for. */
  readonly #lanes = new Map<string, ReadonlySet<string>>();
  /** When each tenant was last asked for them. */
  readonly #asked = new Map<string, Map<string, number>>();
  /** When something was last said of a tenant: what lanes that nobody polled for before begin with. */
  readonly #said = new Map<string, number>();

  /** Something was said of this tenant: it may have something, in these lanes or in whatever lanes. */
  add(tenantId: string, nowMs: number, lanes?: readonly string[]): void {
    this.#said.set(tenantId, nowMs);
    if (lanes === undefined) return this.heat(tenantId);
    for (const [key, hot] of this.#byLanes)
      if (lanes.some((lane) => this.#lanes.get(key)?.has(lane))) hot.add(tenantId);
  }

  /** Its scheduler's word, which is a little old and names no lanes: who was just asked need not be asked for that. */
  remind(tenantId: string, nowMs: number): void {
    this.#said.set(tenantId, nowMs);
    for (const [key, hot] of this.#byLanes) {
      const askedMs = this.#asked.get(key)?.get(tenantId) ?? Number.NEGATIVE_INFINITY;
      if (nowMs - askedMs >= justAskedMs) hot.add(tenantId);
    }
  }

  /** Nothing was said of it; it is to be asked, once. */
  heat(tenantId: string): void {
    for (const hot of this.#byLanes.values()) hot.add(tenantId);
  }

  /** It may have been missed, if something was lately said of it. */
  again(tenantId: string): void {
    if (this.#said.has(tenantId)) this.heat(tenantId);
  }

  /** A claim for these lanes may have left more behind: it goes to the end. */
  addFor(tenantId: string, lanes: string): void {
    this.#byLanes.get(lanes)?.add(tenantId);
  }

  /** It is being asked for these lanes. */
  take(tenantId: string, lanes: string, nowMs: number): void {
    this.#byLanes.get(lanes)?.delete(tenantId);
    this.#asked.get(lanes)?.set(tenantId, nowMs);
  }

  /** Unless something was said of it since then. */
  forgetUnlessSaid(tenantId: string, sinceMs: number): void {
    if ((this.#said.get(tenantId) ?? Number.NEGATIVE_INFINITY) < sinceMs) this.forget(tenantId);
  }

  forget(tenantId: string): void {
    this.#said.delete(tenantId);
    for (const hot of this.#byLanes.values()) hot.delete(tenantId);
    for (const asked of this.#asked.values()) asked.delete(tenantId);
  }

  /** Whether these lanes are polled for the first time; if so, they begin with the tenants that were lately spoken of. */
  open(key: string, lanes: readonly string[]): boolean {
    if (this.#byLanes.has(key)) return false;
    // workers come and go, and each may ask for lanes of its own
    if (this.#byLanes.size >= mostLanes) for (const map of [this.#byLanes, this.#lanes, this.#asked]) map.clear();
    this.#byLanes.set(key, new Set(this.#said.keys()));
    this.#asked.set(key, new Map());
    this.#lanes.set(key, new Set(lanes));
    return true;
  }

  of(lanes: string): Iterable<string> {
    return this.#byLanes.get(lanes) ?? [];
  }

  /** Bells may have been lost: those that were lately spoken of are hot once more. */
  heatAll(): void {
    for (const tenantId of this.#said.keys()) this.heat(tenantId);
  }

  /** What was said long ago says nothing any more. */
  forgetOld(nowMs: number): void {
    for (const [tenantId, saidMs] of this.#said) if (nowMs - saidMs > recentMs) this.#said.delete(tenantId);
    for (const asked of this.#asked.values())
      for (const [tenantId, askedMs] of asked) if (nowMs - askedMs >= justAskedMs) asked.delete(tenantId);
  }

  /** How many tenants are hot, or were lately asked or spoken of. */
  get size(): number {
    const hot = [...this.#byLanes.values(), ...this.#asked.values()].flatMap((tenants) => [...tenants.keys()]);
    return new Set([...hot, ...this.#said.keys()]).size;
  }
}

const mostLanes = 1_000;
const recentMs = 10_000;
const justAskedMs = 3_000;
