/**
 * Housekeeping slots: work that can wait (retention, vacuum) asks the launcher for one, waits in line, does its work and
 * gives it back. A tenant asks for one at a time. Where none is free for long the request is withdrawn, and the work is left
 * for another time. What a host that died holds, the launcher frees.
 */
import type { EngineContext } from '../contract/engine.ts';
import { Bell } from '../kernel/bell.ts';
import { newId } from '../kernel/id.ts';
import type { Log } from '../kernel/log.ts';
import { Seldom } from '../kernel/seldom.ts';
import { type Service, steady } from '../kernel/service.ts';
import { type Db, sql } from '../kernel/sql.ts';
import { runningTime } from '../kernel/time.ts';
import type { WakeHub } from '../postgres/wake.ts';

export interface HousekeepingOptions {
  readonly control: Db;
  readonly hub: WakeHub;
  readonly hostId: () => string;
  readonly log: Log;
  readonly longestWaitMs?: number;
  /** How long work may go on after its scheduler was told to end. */
  readonly endMs?: number;
}

const pollMs = 1_000;
const idleMs = 60_000;
const longestWaitMs = 60_000;
/** By then its connections are taken from it. */
const endMs = 6_000;

type Answer = 'granted' | 'refused';

export class Housekeeping {
  readonly #options: HousekeepingOptions;
  /** Slots that were asked for, and who waits for them. */
  readonly #waiting = new Map<string, (answer: Answer) => void>();
  /** Slots that are asked for or worked in: all that this host may have. */
  readonly #known = new Set<string>();
  #sweptAt = Number.NEGATIVE_INFINITY;
  /** Slots that are to be given back, or withdrawn. */
  readonly #done = new Set<string>();
  /** By tenant, the last that asked: who comes next waits for it. */
  readonly #last = new Map<string, Promise<unknown>>();
  readonly #bell = new Bell(runningTime);
  readonly #seldom = new Seldom();
  readonly service: Service;

  constructor(options: HousekeepingOptions) {
    this.#options = options;
    this.service = steady(
      'housekeeping slots',
      async (signal) => {
        await this.#look();
        const busy = this.#waiting.size + this.#done.size > 0;
        await this.#bell.wait(busy ? pollMs : idleMs, signal);
      },
      (error) => options.log.debug({ err: error }, 'housekeeping slots cannot be looked at; trying again'),
    );
  }

  /** The launcher has changed something about this host. */
  wake(): void {
    if (this.#waiting.size > 0) this.#bell.ring();
  }

  /** What a tenant's scheduler is given. When the signal aborts, nobody waits any longer. */
  of(tenant: { readonly id: string; readonly name: string }, signal: AbortSignal): EngineContext['housekeeping'] {
    return (reason, work) => {
      const before = this.#last.get(tenant.id);
      const mine = (before ?? Promise.resolve()).then(() => this.#inSlot(tenant, reason, work, signal));
      const settled = mine.catch(() => {});
      this.#last.set(tenant.id, settled);
      void settled.then(() => this.#last.get(tenant.id) === settled && this.#last.delete(tenant.id));
      return mine;
    };
  }

  async #inSlot<T>(
    tenant: { readonly id: string; readonly name: string },
    reason: string,
    work: () => Promise<T>,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    if (signal.aborted) return undefined;
    const id = newId();
    this.#known.add(id);
    try {
      if ((await this.#granted(id, tenant.id, reason, signal)) !== 'granted') {
        // where none is free, that is so for all tenants of this host
        if (!signal.aborted && this.#seldom.isDue('slots', 'none was free'))
          this.#options.log.warn({ tenant: tenant.name, reason }, 'no slot was free for housekeeping');
        return undefined;
      }
      return await unlessOver(work(), signal, this.#options.endMs ?? endMs);
    } finally {
      this.#known.delete(id);
      this.#done.add(id);
      this.#bell.ring();
    }
  }

  async #granted(id: string, tenantId: string, reason: string, signal: AbortSignal): Promise<Answer> {
    const answered = new Promise<Answer>((resolve) => this.#waiting.set(id, resolve));
    const refuse = (): void => this.#waiting.get(id)?.('refused');
    const limit = setTimeout(refuse, this.#options.longestWaitMs ?? longestWaitMs);
    signal.addEventListener('abort', refuse, { once: true });
    try {
      const { control, hub, hostId } = this.#options;
      if (!(await ask(control, { id, tenantId, holder: hostId(), reason }))) return 'refused';
      hub.send('launcher', 'words');
      this.#bell.ring();
      return await answered;
    } catch (error) {
      // without the control database there is nobody to ask
      this.#options.log.debug({ err: error }, 'a housekeeping slot could not be asked for');
      return 'refused';
    } finally {
      clearTimeout(limit);
      signal.removeEventListener('abort', refuse);
      this.#waiting.delete(id);
    }
  }

  /** Gives back what is done with, and hears what was granted; one statement each, however many there are. */
  async #look(): Promise<void> {
    const { control, hub } = this.#options;
    if (performance.now() - this.#sweptAt >= idleMs) await this.#sweep();
    const done = [...this.#done];
    if (done.length > 0) {
      await control.exec(sql`delete from slot where id = any(${done})`);
      for (const id of done) this.#done.delete(id);
      hub.send('launcher', 'words');
    }
    const asked = [...this.#waiting.keys()];
    if (asked.length === 0) return;
    const rows = await control.rows<{ id: string }>(sql`
      select id from slot where id = any(${asked}) and granted_at is not null`);
    for (const { id } of rows) this.#waiting.get(id)?.('granted');
  }

  /** A request whose answer was lost may be written after it was withdrawn. Old ones only: those just asked for may be unknown. */
  async #sweep(): Promise<void> {
    const { control, hostId } = this.#options;
    await control.exec(sql`
      delete from slot
       where kind = 'housekeeping' and holder = ${hostId()} and id <> all(${[...this.#known]}::uuid[])
         and asked_at < now() - interval '1 minute'`);
    this.#sweptAt = performance.now();
  }
}

/** Work that goes on for so long after its scheduler was to end is left to itself, and its slot is another's. */
async function unlessOver<T>(work: Promise<T>, signal: AbortSignal, graceMs: number): Promise<T | undefined> {
  let onAbort = (): void => {};
  const over = new Promise<undefined>((resolve) => {
    onAbort = () => void setTimeout(() => resolve(undefined), graceMs).unref();
  });
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([work, over]);
  } finally {
    signal.removeEventListener('abort', onAbort);
    work.catch(() => {});
  }
}

/** False where the tenant, or this host, is gone. */
async function ask(db: Db, slot: { id: string; tenantId: string; holder: string; reason: string }): Promise<boolean> {
  const asked = await db.exec(sql`
    insert into slot (id, kind, tenant_id, holder, reason, asked_at)
    select ${slot.id}::uuid, 'housekeeping', tenant.id, host.id, ${slot.reason}, now()
      from tenant, host
     where tenant.id = ${slot.tenantId} and host.id = ${slot.holder}`);
  return asked > 0;
}
