/**
 * Remembers in which hosts suspected tenants have run. Such a host may hold timers and memory of a tenant that has left it, so
 * that other tenants should start elsewhere. A launcher that has just become active knows only the present tenants.
 */
import type { LaunchHost } from '../launch-queries.ts';
import type { LaunchEntry } from '../ledger.ts';

export class SuspectHosts {
  readonly #ids = new Set<string>();

  /** The same hosts, marked. Hosts that are no longer listed are forgotten. */
  mark(hosts: readonly LaunchHost[], entries: readonly LaunchEntry[]): LaunchHost[] {
    const listed = new Set(hosts.map(({ id }) => id));
    for (const id of this.#ids) if (!listed.has(id)) this.#ids.delete(id);
    for (const { launch } of entries)
      if (launch?.hostId && launch.suspicion > 0 && listed.has(launch.hostId)) this.#ids.add(launch.hostId);
    return hosts.map((host) => (this.#ids.has(host.id) ? { ...host, hadSuspect: true } : host));
  }

  clear(): void {
    this.#ids.clear();
  }
}
