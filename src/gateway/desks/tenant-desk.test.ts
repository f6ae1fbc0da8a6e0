import { expect, it } from 'vitest';
import { until } from '../../../test/harness/until.ts';
import { inParts } from './per-tenant-batch.ts';
import { TenantDesk } from './tenant-desk.ts';

/** A desk whose tenants answer on command; the answer to an item is the item in capitals. */
function setUp(): { desk: TenantDesk<string, string>; asked: string[]; stall: (tenant: string) => () => void } {
  const asked: string[] = [];
  const gates = new Map<string, Promise<void>>();
  const desk = new TenantDesk<string, string>({
    apply: async (tenant, items) => {
      asked.push(`${tenant}: ${items.join(' ')}`);
      await gates.get(tenant);
      if (items.includes('bad')) throw Object.assign(new Error('refused'), { code: '22003' });
      if (items.includes('broken')) throw new Error('broken');
      return items.map((item) => item.toUpperCase());
    },
    sizeOf: (item) => item.length,
    largestBatch: () => 10,
    batchesAtOnce: 1,
  });
  const stall = (tenant: string): (() => void) => {
    let open = (): void => {};
    gates.set(tenant, new Promise((resolve) => (open = resolve)));
    return () => open();
  };
  return { desk, asked, stall };
}

it('items that arrive while a tenant is busy share its next batch, and each gets its own answer', async () => {
  const { desk, asked, stall } = setUp();
  const go = stall('a');
  const answers = ['one', 'two', 'three', 'four'].map((item) => desk.give('a', item, 5_000));
  expect(desk.isBusy('a')).toBe(true);
  go();
  expect(await Promise.all(answers)).toEqual(['ONE', 'TWO', 'THREE', 'FOUR']);
  expect(asked).toEqual(['a: one', 'a: two three', 'a: four']);
  await until('it is idle', () => !desk.isBusy('a') || undefined);
});

it('a hanging tenant delays no other, and items that it has not begun are taken back', async () => {
  const { desk, asked, stall } = setUp();
  const go = stall('a');
  const [begun, never] = [desk.give('a', 'begun', 50), desk.give('a', 'never', 50)];
  expect(await desk.give('b', 'other', 50)).toBe('OTHER');
  await expect(begun).rejects.toMatchObject({ code: 'tenant_unavailable' });
  await expect(never).rejects.toMatchObject({ code: 'tenant_unavailable' });
  go();
  expect(await desk.give('a', 'again', 5_000)).toBe('AGAIN');
  expect(asked).toEqual(['a: begun', 'b: other', 'a: again']);
});

it('a rejected item fails alone; any other error fails the whole batch', async () => {
  const { desk, stall } = setUp();
  const go = stall('a');
  const first = desk.give('a', 'x', 5_000);
  const refused = ['bad', 'y'].map((item) => desk.give('a', item, 5_000));
  go();
  await first;
  const outcomes = await Promise.allSettled(refused);
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
  await expect(desk.give('a', 'broken', 5_000)).rejects.toThrow('broken');
  expect(await desk.give('a', 'z', 5_000)).toBe('Z');
});

it('a batch over tenants is answered in time, and lists the failed tenants', async () => {
  const { desk, stall } = setUp();
  const stalled = Array.from({ length: 40 }, (_, i) => `still ${i}`);
  const goes = stalled.map(stall);
  const items = [...stalled, 'c', 'a', 'b'].map((tenant) => ({ tenant, text: tenant === 'c' ? 'broken' : 'x' }));
  const startedMs = performance.now();
  const { answers, failed } = await inParts(items, (tenant, some, withinMs) =>
    desk.give(tenant, some.map(({ text }) => text).join(''), withinMs),
  );
  expect(performance.now() - startedMs).toBeLessThan(4_000);
  expect(answers).toEqual(['X', 'X']);
  expect(failed.map(({ tenant }) => tenant).toSorted()).toEqual(['c', ...stalled].toSorted());
  expect(failed.find(({ tenant }) => tenant === 'c')).toEqual({
    tenant: 'c',
    code: 'tenant_unavailable',
    detail: 'broken',
  });
  for (const go of goes) go();
});
