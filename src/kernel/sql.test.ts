import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { makeTenantDatabase, type TenantDatabase } from '../../test/harness/tenant-database.ts';
import { isConnectionLoss } from '../errors.ts';
import { allOf, type Db, empty, onClient, sql } from './sql.ts';

let database: TenantDatabase;
let db: Db;
beforeAll(async () => {
  database = await makeTenantDatabase();
  db = database.db;
  await db.exec(sql`create table note (id integer primary key)`);
});
afterAll(() => database.close());
beforeEach(() => db.exec(sql`delete from note`));

const insert = (tx: Db, id: number): Promise<number> => tx.exec(sql`insert into note values (${id})`);
const notes = async (): Promise<number[]> =>
  (await db.rows<{ id: number }>(sql`select id from note order by id`)).map((row) => row.id);
const kill = async (tx: Db): Promise<void> => {
  const { pid } = await tx.one<{ pid: number }>(sql`select pg_backend_pid() as pid`);
  await db.exec(sql`select pg_terminate_backend(${pid}, 5000)`);
};

describe('sql', () => {
  it('a statement binds every value, and numbers those of nested fragments in order', () => {
    const inner = sql`b = ${2} or c = ${3}`;
    const { text, values } = sql`select * from x where a = ${1} and (${inner}) and d = ${4}${empty}`.compile();
    expect(text).toBe('select * from x where a = $1 and (b = $2 or c = $3) and d = $4');
    expect(values).toEqual([1, 2, 3, 4]);
  });

  it('a value never becomes part of the text of a statement', async () => {
    const nasty = `'; drop table note; --`;
    expect(await db.one<{ x: string }>(sql`select ${nasty}::text as x`)).toEqual({ x: nasty });
    expect(await notes()).toEqual([]);
  });

  it('allOf joins conditions by and; without conditions it is true', () => {
    expect(sql`where ${allOf([])}`.compile().text).toBe('where true');
    expect(sql`where ${allOf([sql`a = ${1}`, sql`b`, sql`c = ${2}`])}`.compile()).toMatchObject({
      text: 'where a = $1 and b and c = $2',
      values: [1, 2],
    });
  });

  it('a statement has one name per text, so that it is prepared once per connection', async () => {
    const one = (id: number) => sql`select ${id}::integer as id`;
    expect(one(1).compile().name).toBe(one(2).compile().name);
    expect(one(1).compile().name).not.toBe(sql`select ${1}::bigint as id`.compile().name);
    const prepared = await db.transaction(async (tx) => {
      for (const id of [1, 2, 3]) await tx.one(one(id));
      return tx.rows(sql`select 1 from pg_prepared_statements where name = ${one(1).compile().name}`);
    });
    expect(prepared).toHaveLength(1);
  });

  it('one() rejects if there is no row, and maybeOne() returns undefined', async () => {
    await expect(db.one(sql`select 1 where false`)).rejects.toThrow('returned none');
    expect(await db.maybeOne(sql`select 1 where false`)).toBeUndefined();
  });
});

describe('transactions', () => {
  it('a transaction commits everything or nothing', async () => {
    await db.transaction((tx) => insert(tx, 1));
    const fails = db.transaction(async (tx) => {
      await insert(tx, 2);
      throw new Error('changed my mind');
    });
    await expect(fails).rejects.toThrow('changed my mind');
    expect(await notes()).toEqual([1]);
  });

  it('a nested transaction is a savepoint: a caught failure leaves the outer one usable', async () => {
    await db.transaction(async (tx) => {
      await insert(tx, 1);
      await tx.transaction((inner) => insert(inner, 1)).catch(() => {});
      await tx.transaction((inner) => insert(inner, 2));
    });
    expect(await notes()).toEqual([1, 2]);
  });

  it('a rollback undoes exactly one transaction, even after a rollback within it', async () => {
    await db.transaction(async (tx) => {
      const middle = tx.transaction(async (inner) => {
        await insert(inner, 1);
        await inner.transaction((innermost) => insert(innermost, 1)).catch(() => {});
        throw new Error('the middle one fails, too');
      });
      await middle.catch(() => {});
      await insert(tx, 2);
    });
    expect(await notes()).toEqual([2]);
  });

  it('a nested transaction is rolled back with the outer one', async () => {
    const outer = db.transaction(async (tx) => {
      await tx.transaction((inner) => insert(inner, 1));
      throw new Error('no');
    });
    await expect(outer).rejects.toThrow('no');
    expect(await notes()).toEqual([]);
  });

  it('a transaction rejects if the error of a failed statement was swallowed', async () => {
    const swallowing = db.transaction(async (tx) => {
      await insert(tx, 1);
      await insert(tx, 1).catch(() => {});
    });
    await expect(swallowing).rejects.toThrow(/rolled back/);
    expect(await notes()).toEqual([]);
  });
});

describe('killed backends', () => {
  it('a backend killed during a transaction makes it reject, and the pool works afterwards', async () => {
    for (let round = 0; round < database.pool.options.max + 1; round++) {
      const failure: unknown = await db
        .transaction(async (tx) => {
          await insert(tx, round);
          await kill(tx);
          await insert(tx, 100 + round);
        })
        .catch((error: unknown) => error);
      expect(isConnectionLoss(failure)).toBe(true);
    }
    expect(await notes()).toEqual([]);
    await db.transaction((tx) => insert(tx, 7));
    expect(await notes()).toEqual([7]);
  });

  it('a backend killed between two statements is noticed by the next one', async () => {
    const waiting = db.transaction(async (tx) => {
      await kill(tx);
      // the event of the lost connection arrives while no query could carry it
      await new Promise((resolve) => setImmediate(resolve));
      return 'did nothing more';
    });
    await expect(waiting).rejects.toSatisfy(isConnectionLoss);
  });

  it('a backend killed in a nested transaction gives the outer one the same error', async () => {
    const nested = db.transaction((tx) =>
      tx.transaction(async (inner) => {
        await kill(inner);
        await insert(inner, 1);
      }),
    );
    await expect(nested).rejects.toSatisfy(isConnectionLoss);
  });

  it('a backend killed under onClient gives the error of the lost connection', async () => {
    const client = await database.pool.connect();
    client.on('error', () => {});
    const failing = onClient(client).transaction(async (tx) => {
      await kill(tx);
      await insert(tx, 1);
    });
    await expect(failing).rejects.toSatisfy(isConnectionLoss);
    client.release(true);
  });

  it('a backend killed while idle in the pool is replaced', async () => {
    await Promise.all([1, 2, 3].map((id) => insert(db, id)));
    await db.exec(sql`
      select pg_terminate_backend(pid, 5000) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and application_name = 'millrace tests'`);
    expect(await notes()).toEqual([1, 2, 3]);
  });
});
