import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, makeFleet } from '../../test/harness/fleet.ts';
import { Bell } from '../kernel/bell.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';
import { systemTime } from '../kernel/time.ts';
import { registerHost, type Word, writeWords } from './host-queries.ts';
import { Words } from './words.ts';

let fleet: Fleet;
beforeAll(async () => {
  fleet = await makeFleet(['a', 'b', 'c']);
});
afterAll(() => fleet.close());

it('a word that the database refuses keeps none of the others back', async () => {
  const { db } = fleet.control;
  const hostId = newId();
  await registerHost(db, { id: hostId, machine: 'here', pid: 1, engine: '1.0.0', memory: 1 });
  const errors: unknown[] = [];
  const words = new Words({
    bell: new Bell(systemTime),
    write: (some) => writeWords(db, hostId, some),
    onError: (error) => errors.push(error),
  });
  const [a = '', b = '', c = ''] = fleet.tenants.map(({ row }) => row.id);
  const rest = { orderNo: 1, engine: '1.0.0', phase: 'ended', code: 'crashed' } as const;
  const say = (tenantId: string, more: Partial<Word>): void =>
    words.say({ ...rest, tenantId, id: newId(), reason: 'no luck', ...more });
  say(a, {});
  say(b, { id: 'nothing that could be written' });
  say(c, {});
  await words.flush();
  const written = await db.rows(sql`select tenant_id, reason from scheduler order by tenant_id = ${c}`);
  expect(written).toEqual([
    { tenant_id: a, reason: 'no luck' },
    { tenant_id: c, reason: 'no luck' },
  ]);
  expect(errors).toHaveLength(1);
  // nothing is left to be said again
  await db.exec(sql`delete from scheduler`);
  await words.flush();
  expect(await db.rows(sql`select from scheduler`)).toEqual([]);
});
