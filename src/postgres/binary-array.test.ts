import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeTenantDatabase, type TenantDatabase } from '../../test/harness/tenant-database.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';
import {
  booleanArray,
  integerArray,
  jsonArray,
  smallIntegerArray,
  textArray,
  timeArray,
  uuidArray,
} from './binary-array.ts';

let tenant: TenantDatabase;
beforeAll(async () => {
  tenant = await makeTenantDatabase();
});
afterAll(() => tenant.close());

it('PostgreSQL reads each array as it was given, nulls and empty arrays included.', async () => {
  const ids = [newId(), null, newId()];
  const texts = ['plain', 'ä€😀', null, '', 'a\0b'];
  const entries = ['{"a":"\\u0000"}', null, '[1, "ü"]'];
  const row = await tenant.db.one<Record<string, unknown>>(sql`
    select ${uuidArray(ids)}::uuid[] as ids, ${integerArray([1, -2, null])}::integer[] as numbers,
           ${smallIntegerArray([3, null])}::smallint[] as small, ${booleanArray([true, null, false])}::boolean[] as flags,
           ${timeArray([0, 1_767_225_600_001.2, null])}::timestamptz[] as times, ${textArray(texts)}::text[] as texts,
           array_to_string(${jsonArray(entries)}::json[], '|', 'none') as entries,
           ${textArray([])}::text[] as none, ${uuidArray([])}::uuid[] as no_ids`);
  expect(row).toEqual({
    ids,
    numbers: [1, -2, null],
    small: [3, null],
    flags: [true, null, false],
    times: [new Date(0), new Date(1_767_225_600_002), null],
    texts: ['plain', 'ä€😀', null, '', 'ab'],
    entries: '{"a":"\\u0000"}|none|[1, "ü"]',
    none: [],
    no_ids: [],
  });
});
