/**
 * Which lanes of which tenants are known to hold nothing that is ready: a claim got less than it asked for, and no bell has
 * rung since it was sent. Who polls for them only needs to wait. A bell that got lost is the sweep's business, which asks
 * regardless.
 */
export class EmptyLanes {
  readonly #bells = new Map<string, number>();
  /** The bell at which a claim found too little, by tenant and lanes. */
  readonly #found = new Map<string, Map<string, number>>();

  /** Something of this tenant has become ready. */
  ring(tenantId: string): void {
    this.#bells.set(tenantId, this.bell(tenantId) + 1);
  }

  /** The number of the last bell. */
  bell(tenantId: string): number {
    return this.#bells.get(tenantId) ?? 0;
  }

  /** A claim that was sent after this bell found too little. */
  note(tenantId: string, lanes: string, bell: number): void {
    const found = this.#found.get(tenantId) ?? new Map<string, number>();
    // workers come and go, and each may ask for lanes of its own
    if (found.size >= mostLanes) found.clear();
    this.#found.set(tenantId, found.set(lanes, bell));
  }

  /** Bells may have been missed. */
  forget(): void {
    this.#found.clear();
  }

  has(tenantId: string, lanes: string): boolean {
    return this.#found.get(tenantId)?.get(lanes) === this.bell(tenantId);
  }
}

const mostLanes = 1_000;
