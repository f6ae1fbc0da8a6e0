/**
 * A tenant of a running product, reached through the product's own code: its connections check the version like an
 * engine's, and it applies jobs, fires instants and sends hints as a scheduler does.
 */
import { postgresBroker } from '../src/broker/postgres.ts';
import { engineVersion } from '../src/engine/engine.ts';
import { applyJob } from '../src/jobs/apply.ts';
import { parseJob } from '../src/jobs/document/parse-job.ts';
import { newId } from '../src/kernel/id.ts';
import { silent } from '../src/kernel/log.ts';
import { type Db, onPool, sql } from '../src/kernel/sql.ts';
import type { Address } from '../src/postgres/address.ts';
import { withClient } from '../src/postgres/databases.ts';
import { guardVersion, openPool } from '../src/postgres/pool/pool.ts';
import { WakeHub } from '../src/postgres/wake.ts';
import { type Firing, fireTriggers } from '../src/scheduler/queries.ts';
import { atEnd } from './ending.ts';

export const controlDatabase = 'millrace';
export const tenantDatabase = 'millrace_default';

export interface Tenant {
  readonly db: Db;
  readonly address: Address;
  /** Applies one document per transaction, a few at once. */
  apply(documents: readonly object[]): Promise<void>;
  /** Fires the instants and sends the hint `ready`; returns the number of runs created. */
  fire(firings: readonly Firing[]): Promise<number>;
  close(): Promise<void>;
}

const project = 'bench';
const connections = 6;

export async function openTenant(control: Address, address: Address, name = 'default'): Promise<Tenant> {
  const pool = openPool({
    address,
    schema: 'millrace',
    application: 'millrace bench',
    max: connections,
    allowPooler: false,
    onOpen: guardVersion(engineVersion),
    onError: () => {},
  });
  const db = onPool(pool);
  const hub = new WakeHub(control, silent);
  const close = atEnd(async () => {
    await hub.service.stop();
    await pool.end();
  });
  await hub.service.start();
  const hints = postgresBroker(hub).hintsOf(await tenantId(control, name));
  return {
    db,
    address,
    async apply(documents) {
      await makeProject(db);
      const left = documents.toReversed();
      const work = async (): Promise<void> => {
        for (let next = left.pop(); next !== undefined; next = left.pop()) await applyDocument(db, next);
      };
      await Promise.all(Array.from({ length: connections }, work));
      hints.send('triggers');
    },
    async fire(firings) {
      const { created, lanes } = await fireTriggers(db, firings, { priority: 'normal', at: new Date() });
      hints.send('ready', lanes ?? undefined);
      return created;
    },
    close,
  };
}

function tenantId(control: Address, name: string): Promise<string> {
  return withClient(control, async (client) => {
    const { rows } = await client.query<{ id: string }>('select id from control.tenant where name = $1', [name]);
    const id = rows[0]?.id;
    if (id === undefined) throw new Error(`tenant ${name} not found`);
    return id;
  });
}

async function makeProject(db: Db): Promise<void> {
  const at = new Date();
  await db.exec(sql`
    insert into project (id, name, description, created_at, updated_at)
    values (${newId()}, ${project}, '', ${at}, ${at})
    on conflict do nothing`);
}

async function applyDocument(db: Db, document: object): Promise<void> {
  const parsed = parseJob({ project, description: '', ...document });
  if (!parsed.ok) throw new Error(`invalid job document: ${JSON.stringify(parsed.faults)}`);
  const { job: definition, warnings } = parsed;
  await applyJob(db, { definition, warnings, actor: 'bench', at: new Date(), dryRun: false });
}
