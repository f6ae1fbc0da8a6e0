import { afterAll, beforeAll, expect, it } from 'vitest';
import { applyDocument, makeProject } from '../../test/harness/pipeline.ts';
import { makeTenantDatabase, type TenantDatabase } from '../../test/harness/tenant-database.ts';
import type { DefinitionKey } from '../contract/wire.ts';
import { sql } from '../kernel/sql.ts';
import { DocumentCache } from './document/cache.ts';
import { readDefinitions } from './task-definitions.ts';

const jobs = 150;
let database: TenantDatabase;
let keys: DefinitionKey[];

beforeAll(async () => {
  database = await makeTenantDatabase();
  const { db } = database;
  await makeProject(db, 'many');
  for (let i = 0; i < jobs; i++) {
    await applyDocument(db, { project: 'many', name: `job ${i}`, tasks: [{ name: 'a' }, { name: 'b' }] });
  }
  const tasks = await db.rows<{ id: string }>(sql`select id from task order by id`);
  keys = tasks.map(({ id }) => ({ tenant: 't', task: id, version: 1 }));
});
afterAll(() => database.close());

it('definitions of stored versions are found without their documents', async () => {
  const cache = new DocumentCache();
  expect(await readDefinitions(database.db, { tenant: 't' }, keys, cache)).toHaveLength(keys.length);
  expect(cache.size).toBe(0);
});

it('a definition is the same whether its version was stored or its document is parsed', async () => {
  const { db } = database;
  const work = { params: { colour: 'red' }, tasks: [{ name: 'a', timeout: '5m', process: { command: ['date'] } }] };
  const { id } = await applyDocument(db, { project: 'many', name: 'one', ...work });
  const { task } = await db.one<{ task: string }>(sql`select id as task from task where job_id = ${id}`);
  const read = () => readDefinitions(db, { tenant: 't' }, [{ tenant: 't', task, version: 1 }], new DocumentCache());
  const stored = await read();
  expect(stored).toMatchObject([{ name: 'a', timeout_ms: 300_000, params: { colour: 'red' } }]);
  await db.exec(sql`update job_version set work = json_build_object('form', 0) where job_id = ${id}`);
  expect(await read()).toEqual(stored);
  await db.exec(sql`update job_version set work = null where job_id = ${id}`);
  expect(await read()).toEqual(stored);
});

it('every existing definition is found by its document, however many are requested and however small the cache is', async () => {
  await database.db.exec(sql`update job_version set work = null`);
  const cache = new DocumentCache();
  const pieces = Array.from({ length: 12 }, (_, i) => keys.filter((_key, at) => (at + i * 74) % keys.length < 120));
  for (let round = 0; round < 3; round++) {
    const found = await Promise.all(pieces.map((piece) => readDefinitions(database.db, { tenant: 't' }, piece, cache)));
    expect(found.map((definitions) => definitions.length)).toEqual(pieces.map((piece) => piece.length));
  }
  expect(cache.size).toBeLessThan(jobs);
});

it('definitions that do not exist are left out', async () => {
  const [first] = keys;
  if (first === undefined) throw new Error('no key');
  const asked = [first, { ...first, version: 2 }, { ...first, task: '00000000-0000-7000-8000-000000000000' }];
  const found = await readDefinitions(database.db, { tenant: 't' }, asked, new DocumentCache());
  expect(found.map(({ task, version }) => [task, version])).toEqual([[first.task, 1]]);
});
