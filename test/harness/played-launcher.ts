/** A launcher played by a test: it writes orders and reads the reports of hosts. */
import type { Db } from '../../src/kernel/sql.ts';
import { sql } from '../../src/kernel/sql.ts';
import type { WakeHub } from '../../src/postgres/wake.ts';
import { until } from './until.ts';

export type HostReport = {
  host_id: string;
  order_no: number;
  phase: string;
  code: string | null;
  reason: string | null;
  beat_at: Date;
};

export class PlayedLauncher {
  readonly #db: Db;
  readonly #hub: WakeHub;

  constructor(db: Db, hub: WakeHub) {
    this.#db = db;
    this.#hub = hub;
  }

  /** Writes an order that replaces any before; returns its number. */
  async order(tenantId: string, hostId: string, engine: string): Promise<number> {
    const { no } = await this.#db.one<{ no: number }>(sql`
      insert into launch (tenant_id, state, code, reason, host_id, engine, order_no, ordered, changed_at)
      values (${tenantId}, 'ALLOCATED', 'starting', 'starting', ${hostId}, ${engine}, 1, true, now())
      on conflict (tenant_id) do update set
        host_id = excluded.host_id, engine = excluded.engine, order_no = launch.order_no + 1, ordered = true
      returning order_no as no`);
    this.#hub.send('orders', hostId);
    return no;
  }

  async withdraw(tenantId: string): Promise<void> {
    const { host } = await this.#db.one<{ host: string }>(sql`
      update launch set ordered = false where tenant_id = ${tenantId} returning host_id as host`);
    this.#hub.send('orders', host);
  }

  readReport(tenantId: string): Promise<HostReport | undefined> {
    return this.#db.maybeOne<HostReport>(sql`
      select host_id, order_no, phase, code, reason, beat_at from scheduler where tenant_id = ${tenantId}`);
  }

  /** Waits until the host reports this phase of the order. */
  waitForReport(tenantId: string, orderNo: number, phase: string): Promise<HostReport> {
    return until(`order ${orderNo} is ${phase}`, async () => {
      const report = await this.readReport(tenantId);
      return report?.order_no === orderNo && report.phase === phase ? report : undefined;
    });
  }
}
