/**
 * The tenants that receive a worker's heartbeats: those whose runs it holds, and those that may believe that it does. They are
 * stored with the worker in the control database, so that any gateway that receives the first heartbeat of its next incarnation
 * knows them. This only affects speed: runs of a tenant that is missing here return when their lease expires.
 */
import type { HeldRun } from '../../contract/wire.ts';
import type { Log } from '../../kernel/log.ts';
import type { Db } from '../../kernel/sql.ts';
import { noteServings } from '../installation/queries.ts';

const recentMs = 60_000;
const maxWorkers = 10_000;

export class HeartbeatTenants {
  readonly #control: Db;
  readonly #log: Log;
  /** The last time that each tenant handed runs to a worker. */
  readonly #served = new Map<string, Map<string, number>>();
  #unwritten: { readonly worker: string; readonly tenant: string }[] = [];
  #writing = false;

  constructor(control: Db, log: Log) {
    this.#control = control;
    this.#log = log;
  }

  /** This tenant has handed, or may believe that it has handed, runs to this worker. */
  note(worker: string, tenant: string): void {
    if (!this.#served.has(worker) && this.#served.size >= maxWorkers) this.#served.clear();
    const tenants = this.#served.get(worker) ?? new Map<string, number>();
    this.#served.set(worker, tenants);
    const isNew = !tenants.has(tenant);
    tenants.set(tenant, performance.now());
    if (!isNew) return;
    this.#unwritten.push({ worker, tenant });
    void this.#write();
  }

  /** The tenants of its heartbeat, besides those of its last one. */
  tenantsOf(worker: string, holds: readonly HeldRun[]): string[] {
    const before = performance.now() - recentMs;
    const recent = [...(this.#served.get(worker) ?? [])].filter(([, atMs]) => atMs > before);
    if (recent.length > 0) this.#served.set(worker, new Map(recent));
    else this.#served.delete(worker);
    return [...new Set([...recent.map(([tenant]) => tenant), ...holds.map((run) => run.tenant)])];
  }

  /** One statement at a time; entries that arrive meanwhile share the next. */
  async #write(): Promise<void> {
    if (this.#writing) return;
    this.#writing = true;
    try {
      while (this.#unwritten.length > 0) await noteServings(this.#control, this.#unwritten.splice(0));
    } catch (error) {
      this.#log.debug({ err: error }, 'recording which tenants serve a worker failed; heartbeats will record it');
    } finally {
      this.#writing = false;
    }
  }
}
