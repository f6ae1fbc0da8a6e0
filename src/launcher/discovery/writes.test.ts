/** A discovery about one tenant that cannot be written does not prevent the others from being written. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type ControlDatabase, makeControlDatabase } from '../../../test/harness/fresh-database.ts';
import { newId } from '../../kernel/id.ts';
import { type Log, silent } from '../../kernel/log.ts';
import { sql } from '../../kernel/sql.ts';
import { WakeHub } from '../../postgres/wake.ts';
import type { Discovered } from './discovery.ts';
import { Discovery } from './writes.ts';

let control: ControlDatabase;
beforeEach(async () => {
  control = await makeControlDatabase();
});
afterEach(() => control.close());

const logged: unknown[] = [];
const warn = (fields: unknown): void => {
  logged.push(fields);
};
const log: Log = { ...silent, warn };

it('a tenant that cannot be written is left out for a while and logged once; others are found, renamed and forgotten', async () => {
  const { db, pool, address } = control;
  const [bad, renamed, gone] = [newId(), newId(), newId()];
  for (const [at, id] of [bad, renamed, gone].entries())
    await db.exec(sql`
      insert into tenant (id, name, database, database_oid, discovered, created_at)
      values (${id}, ${`t${at}`}, ${`t${at}`}, ${at + 1}, true, now())`);
  await pool.query(`
    create function control.refuse() returns trigger language plpgsql as
      $$ begin raise exception 'not this one' using errcode = '23514'; end $$;
    create trigger refuse before insert or update on control.tenant
      for each row when (new.id = '${bad}') execute function control.refuse()`);
  const changed: Discovered = {
    found: [{ id: newId(), name: 'new', database: 'new', oid: 9 }],
    seen: [{ id: bad, from: 1, oid: 8 }],
    renamed: [{ id: renamed, from: { name: 't1', database: 't1' }, name: 'other', database: 'other' }],
    gone: [{ id: gone, name: 't2', database: 't2', oid: 3 }],
  };
  const discovery = new Discovery({ db, hub: new WakeHub(address, silent), log });
  expect(await discovery.write(changed, 0, new Date())).toBe(true);
  const names = await db.rows<{ name: string }>(sql`select name from tenant order by name`);
  expect(names.map(({ name }) => name)).toEqual(['new', 'other', 't0']);
  const nothing = { found: [], renamed: [], gone: [] };
  expect(await discovery.write({ ...nothing, seen: changed.seen }, 0, new Date())).toBe(false);
  expect(logged).toEqual([expect.objectContaining({ tenant: bad })]);
});
