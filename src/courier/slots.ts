/**
 * Slots for connections of one courier, shared fairly between callback hosts.
 *
 * 1. At most `total` slots in all, and `perHost` for one host.
 * 2. The last quarter is for hosts that hold few slots, so that a few hosts that hang cannot take everything.
 * 3. Hosts that wait take turns; within a host, the first request comes first.
 */
import type { Permit } from '../kernel/semaphore.ts';

export interface SlotLimits {
  readonly total: number;
  readonly perHost: number;
}

/** A host with fewer slots than this may use the last quarter. */
const fewSlots = 4;

interface Host {
  held: number;
  readonly line: Set<() => void>;
}

export class Slots {
  readonly #limits: SlotLimits;
  readonly #hosts = new Map<string, Host>();
  /** Hosts with a line, in the order of their turns. */
  readonly #turns = new Set<string>();
  #held = 0;

  constructor(limits: SlotLimits) {
    this.#limits = limits;
  }

  get held(): number {
    return this.#held;
  }

  /** Returns undefined if the signal aborts first. */
  async take(name: string, signal: AbortSignal): Promise<Permit | undefined> {
    if (signal.aborted) return undefined;
    const host = this.#hosts.get(name) ?? { held: 0, line: new Set() };
    this.#hosts.set(name, host);
    if (host.line.size === 0 && this.#admits(host)) this.#hold(host);
    else if (!(await this.#standInLine(name, host, signal))) return undefined;
    let isReleased = false;
    return {
      release: () => {
        if (isReleased) return;
        isReleased = true;
        this.#giveBack(name, host);
      },
    };
  }

  #admits({ held }: Host): boolean {
    const { total, perHost } = this.#limits;
    if (this.#held >= total || held >= perHost) return false;
    return held < fewSlots || this.#held < total - Math.floor(total / 4);
  }

  #hold(host: Host): void {
    host.held += 1;
    this.#held += 1;
  }

  #giveBack(name: string, host: Host): void {
    host.held -= 1;
    this.#held -= 1;
    this.#forgetIfUnused(name, host);
    this.#admitNext();
  }

  /** A freed slot admits at most one: each of the others waits for a slot of its own. */
  #admitNext(): void {
    for (const name of this.#turns) {
      const host = this.#hosts.get(name);
      const [first] = host?.line ?? [];
      if (host === undefined || first === undefined || !this.#admits(host)) continue;
      this.#turns.delete(name);
      this.#turns.add(name);
      this.#hold(host);
      first();
      return;
    }
  }

  #standInLine(name: string, host: Host, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (isAdmitted: boolean): void => {
        host.line.delete(admit);
        if (host.line.size === 0) this.#turns.delete(name);
        signal.removeEventListener('abort', leave);
        if (!isAdmitted) this.#forgetIfUnused(name, host);
        resolve(isAdmitted);
      };
      const admit = (): void => settle(true);
      const leave = (): void => settle(false);
      host.line.add(admit);
      this.#turns.add(name);
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  #forgetIfUnused(name: string, host: Host): void {
    if (host.held === 0 && host.line.size === 0 && this.#hosts.get(name) === host) this.#hosts.delete(name);
  }
}
