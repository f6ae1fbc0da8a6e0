/** For any databases and tenants, the database accepts what discovery writes, and the next discovery finds nothing to do. */
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { type ControlDatabase, makeControlDatabase } from '../../../test/harness/fresh-database.ts';
import { newId } from '../../kernel/id.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import {
  type Database,
  discover,
  type DiscoveryRules,
  isNothing,
  type KnownTenant,
  writeDiscovered,
} from './discovery.ts';

/** Few names, so that they clash. Some look like names that discovery makes up. */
const names = ['a', 'b', 'a-100', 'a (gone, 100)', 'default', 'it\'s; "%s" ü', 'x'.repeat(63), 'what?', 'caf\uFFFD'];
const name = fc.constantFrom(...names);
const place = fc.nat(6);
const flag = fc.boolean();

/** Acts of users in plain SQL, and the launcher's discovery (`look`). */
const act = fc.oneof(
  fc.record({ kind: fc.constant('create'), name, template: flag, connectable: flag }),
  fc.record({ kind: fc.constant('rename'), place, name }),
  fc.record({ kind: fc.constant('swap'), place, other: place }),
  fc.record({ kind: fc.constant('drop'), place }),
  fc.record({ kind: fc.constant('register'), name, database: name }),
  fc.record({ kind: fc.constant('look') }),
);
type Act = typeof act extends fc.Arbitrary<infer T> ? T : never;

const rules = fc.record({ discover: fc.constantFrom('all', 'registered'), controlDatabase: fc.constant('control') });

/** A server as `pg_database` shows it. Two databases may have the same name if their names are not valid text. */
class Server {
  databases: Database[] = [];
  #oid = 100;

  perform(what: Act): void {
    const at = 'place' in what ? this.databases[what.place] : undefined;
    if (what.kind === 'create' && this.#isFree(what.name)) this.databases.push({ oid: this.#oid++, ...what });
    else if (what.kind === 'drop') this.databases = this.databases.filter((each) => each !== at);
    else if (what.kind === 'rename' && at !== undefined && this.#isFree(what.name)) this.#call(at.oid, what.name);
    else if (what.kind === 'swap') this.#swap(at, this.databases[what.other]);
  }

  #swap(one: Database | undefined, other: Database | undefined): void {
    if (one === undefined || other === undefined) return;
    this.#call(one.oid, other.name);
    this.#call(other.oid, one.name);
  }

  #call(oid: number, to: string): void {
    this.databases = this.databases.map((each) => (each.oid === oid ? { ...each, name: to } : each));
  }

  #isFree(wanted: string): boolean {
    return wanted.includes('\uFFFD') || !this.databases.some((each) => each.name === wanted);
  }
}

async function register(db: Db, what: { name: string; database: string }, server: Server): Promise<void> {
  const oid = server.databases.find((each) => each.name === what.database)?.oid ?? null;
  await db.exec(sql`
    insert into tenant (id, name, database, database_oid, created_at)
    values (${newId()}, ${what.name}, ${what.database}, ${oid}::oid, now())
    on conflict do nothing`);
}

async function read(db: Db, isFar: boolean): Promise<KnownTenant[]> {
  const rows = await db.rows<Omit<KnownTenant, 'elsewhere'>>(sql`
    select id, name, database, database_oid as "databaseOid", discovered from tenant order by created_at, id`);
  return rows.map((row) => ({ ...row, elsewhere: isFar && row.name === 'default' }));
}

async function look(db: Db, server: Server, by: { rules: DiscoveryRules; isFar: boolean }): Promise<void> {
  const found = discover(await read(db, by.isFar), server.databases, by.rules);
  if (!isNothing(found)) await db.transaction((tx) => writeDiscovered(tx, found, new Date()));
  const again = discover(await read(db, by.isFar), server.databases, by.rules);
  if (!isNothing(again)) throw new Error(`it is not done: ${JSON.stringify(again)}`);
}

let control: ControlDatabase;
beforeAll(async () => {
  control = await makeControlDatabase();
});
afterAll(() => control.close());

describe('discovery', () => {
  it('discovery converges to a state that the database accepts, for any input', { timeout: 120_000 }, async () => {
    const story = fc.record({ acts: fc.array(act, { maxLength: 24 }), rules, isFar: flag });
    await fc.assert(
      fc.asyncProperty(story, async ({ acts, rules: by, isFar }) => {
        await control.db.exec(sql`delete from tenant`);
        const server = new Server();
        for (const what of [...acts, { kind: 'look' } as const]) {
          if (what.kind === 'look') await look(control.db, server, { rules: by, isFar });
          else if (what.kind === 'register') await register(control.db, what, server);
          else server.perform(what);
        }
      }),
      { numRuns: 250 },
    );
  });
});
