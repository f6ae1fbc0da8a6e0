/** A launcher as a test plays it: writes orders, grants slots, and reads what hosts say. */
import type { Db } from '../../src/kernel/sql.ts';
import { sql } from '../../src/kernel/sql.ts';
import type { WakeHub } from '../../src/postgres/wake.ts';
import { until } from './until.ts';

export type SaidWord = {
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

  /** A newer order than any before; answers its number. */
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

  word(tenantId: string): Promise<SaidWord | undefined> {
    return this.#db.maybeOne<SaidWord>(sql`
      select host_id, order_no, phase, code, reason, beat_at from scheduler where tenant_id = ${tenantId}`);
  }

  /** The word on this order, once it is of this phase. */
  hears(tenantId: string, orderNo: number, phase: string): Promise<SaidWord> {
    return until(`order ${orderNo} is ${phase}`, async () => {
      const word = await this.word(tenantId);
      return word?.order_no === orderNo && word.phase === phase ? word : undefined;
    });
  }
}
