/** A host played by a test: it follows the launcher's orders by writing reports, and runs nothing. */
import { hostname } from 'node:os';
import { everyone } from '../../src/contract/channels.ts';
import { newId } from '../../src/kernel/id.ts';
import { type Db, sql } from '../../src/kernel/sql.ts';
import { every, type Service } from '../../src/kernel/service.ts';
import type { WakeHub } from '../../src/postgres/wake.ts';

type Order = { tenant_id: string; order_no: number; ordered: boolean };

export interface Ending {
  readonly code: string;
  readonly reason: string;
}

let pids = 0;

export class PlayedHost {
  readonly id = newId();
  readonly pid = ++pids;
  /** Decides what an order leads to: a running scheduler, this ending, or no report at all. */
  obey: (tenantId: string) => Ending | 'run' | 'nothing' = () => 'run';
  /** Whether it stops schedulers whose order was withdrawn. */
  letsGo = true;
  readonly running = new Map<string, number>();
  readonly #over = new Map<string, number>();
  readonly #db: Db;
  readonly #hub: WakeHub;
  readonly #engine: string;
  readonly #service: Service;

  constructor(db: Db, hub: WakeHub, engine: string) {
    this.#db = db;
    this.#hub = hub;
    this.#engine = engine;
    this.#service = every(
      25,
      'played host',
      () => this.#turn(),
      () => {},
    );
  }

  async start(): Promise<void> {
    await this.#db.exec(sql`
      insert into host (id, machine, pid, engine, started_at, beat_at)
      values (${this.id}, ${hostname()}, ${this.pid}, ${this.#engine}, clock_timestamp(), clock_timestamp())`);
    await this.#service.start();
  }

  /** Stops heartbeats and ignores orders. */
  freeze(): Promise<void> {
    return this.#service.stop();
  }

  thaw(): Promise<void> {
    return this.#service.start();
  }

  /** Makes one of its schedulers end by itself. */
  async end(tenantId: string, ending: Ending): Promise<void> {
    const orderNo = this.running.get(tenantId) ?? 0;
    this.running.delete(tenantId);
    this.#over.set(tenantId, orderNo);
    await this.#report(tenantId, orderNo, 'ended', ending);
  }

  async #turn(): Promise<void> {
    await this.#db.exec(sql`update host set beat_at = clock_timestamp() where id = ${this.id}`);
    const orders = await this.#db.rows<Order>(sql`
      select tenant_id, order_no, ordered from launch where host_id = ${this.id} and (ordered or ending)`);
    const wanted = new Map(orders.filter(({ ordered }) => ordered).map((order) => [order.tenant_id, order.order_no]));
    for (const [tenantId, orderNo] of this.running)
      if (this.letsGo && wanted.get(tenantId) !== orderNo)
        await this.end(tenantId, { code: 'stopping', reason: 'its order was withdrawn' });
    for (const { tenant_id: tenantId, order_no: orderNo, ordered } of orders)
      if (!ordered && this.letsGo && !this.running.has(tenantId) && (this.#over.get(tenantId) ?? -1) < orderNo) {
        this.#over.set(tenantId, orderNo);
        await this.#report(tenantId, orderNo, 'ended', { code: 'stopping', reason: 'it was never started' });
      }
    for (const [tenantId, orderNo] of wanted)
      if (!this.running.has(tenantId) && (this.#over.get(tenantId) ?? -1) < orderNo)
        await this.#begin(tenantId, orderNo);
  }

  async #begin(tenantId: string, orderNo: number): Promise<void> {
    const result = this.obey(tenantId);
    if (result === 'nothing') return;
    if (result === 'run') {
      this.running.set(tenantId, orderNo);
      await this.#report(tenantId, orderNo, 'running');
    } else {
      this.#over.set(tenantId, orderNo);
      await this.#report(tenantId, orderNo, 'ended', result);
    }
  }

  async #report(tenantId: string, orderNo: number, phase: string, ending?: Ending): Promise<void> {
    await this.#db.exec(sql`
      insert into scheduler as s (tenant_id, id, host_id, order_no, phase, code, reason, engine, changed_at, beat_at)
      select ${tenantId}::uuid, ${newId()}::uuid, ${this.id}::uuid, ${orderNo}::bigint, ${phase}, ${ending?.code ?? null}::text,
             ${ending?.reason ?? null}::text, ${this.#engine}::text, clock_timestamp(), clock_timestamp()
       where exists (select from tenant where id = ${tenantId}::uuid)
      on conflict (tenant_id) do update set
        id = excluded.id, host_id = excluded.host_id, order_no = excluded.order_no, phase = excluded.phase,
        code = excluded.code, reason = excluded.reason, changed_at = excluded.changed_at
       where excluded.order_no >= s.order_no`);
    this.#hub.send('host_reports', everyone);
  }
}
