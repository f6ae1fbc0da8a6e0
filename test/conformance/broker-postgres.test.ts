import { postgresBroker } from '../../src/broker/postgres.ts';
import { silent } from '../../src/kernel/log.ts';
import { sql } from '../../src/kernel/sql.ts';
import { WakeHub } from '../../src/postgres/wake.ts';
import { makeTenantDatabase } from '../harness/tenant-database.ts';
import { describeBroker } from './broker.ts';

describeBroker('PostgreSQL', async () => {
  const database = await makeTenantDatabase();
  const hubs: WakeHub[] = [];
  return {
    async open() {
      const hub = new WakeHub(database.address, silent);
      hubs.push(hub);
      await hub.service.start();
      return postgresBroker(hub);
    },
    async cut() {
      await database.db.exec(sql`
        select pg_terminate_backend(pid, 5000) from pg_stat_activity
         where application_name = 'millrace wake' and datname = current_database()`);
    },
    async close() {
      for (const hub of hubs) await hub.service.stop();
      await database.close();
    },
  };
});
