/**
 * Which tenants a worker's heartbeats are about: those whose runs it holds, and those that may think it does. They are
 * kept with the worker in the control database, so that whichever gateway hears of its next life knows whom to tell.
 * Only speed rests on this: what is missing here comes back when its lease runs out.
 */
import type { HeldRun } from '../../contract/wire.ts';
import type { Log } from '../../kernel/log.ts';
import type { Db } from '../../kernel/sql.ts';
import { noteServings } from '../installation/queries.ts';

const recentMs = 60_000;
const mostWorkers = 10_000;

export class Servings {
  readonly #control: Db;
  readonly #log: Log;
  /** When each tenant last gave a worker runs. */
  readonly #served = new Map<string, Map<string, number>>();
  #unwritten: { readonly worker: string; readonly tenant: string }[] = [];
  #writing = false;

  constructor(control: Db, log: Log) {
    this.#control = control;
    this.#log = log;
  }

  /** This tenant has given, or may think that it has given, runs to this worker. */
  note(worker: string, tenant: string): void {
    if (!this.#served.has(worker) && this.#served.size >= mostWorkers) this.#served.clear();
    const tenants = this.#served.get(worker) ?? new Map<string, number>();
    this.#served.set(worker, tenants);
    const isNew = !tenants.has(tenant);
    tenants.set(tenant, performance.now());
    if (!isNew) return;
    this.#unwritten.push({ worker, tenant });
    void this.#write();
  }

  /** What its heartbeat is to be about, beside what it was about last time. */
  tenantsOf(worker: string, holds: readonly HeldRun[]): string[] {
    const before = performance.now() - recentMs;
    const recent = [...(this.#served.get(worker) ?? [])].filter(([, atMs]) => atMs > before);
    if (recent.length > 0) this.#served.set(worker, new Map(recent));
    else this.#served.delete(worker);
    return [...new Set([...recent.map(([tenant]) => tenant), ...holds.map((run) => run.tenant)])];
  }

  /** One statement at a time; whatever gathers meanwhile shares the next. */
  async #write(): Promise<void> {
    if (this.#writing) return;
    this.#writing = true;
    try {
      while (this.#unwritten.length > 0) await noteServings(this.#control, this.#unwritten.splice(0));
    } catch (error) {
      this.#log.debug({ err: error }, 'whom tenants gave runs to could not be noted; heartbeats will say it');
    } finally {
      this.#writing = false;
    }
  }
}
