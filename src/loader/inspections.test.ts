import { expect, it } from 'vitest';
import { until } from '../../test/harness/until.ts';
import { type LookRequest, Looks } from './inspections.ts';

it('idle inspections are limited to 20 a second, whatever the rate of turns, and run in order', async () => {
  const address = { url: 'postgres://x@127.0.0.1:1/x', database: 'x' };
  const requests = Array.from({ length: 60 }, (_, i): LookRequest => ({ tenantId: `${i}`, address, idle: true }));
  const startedMs = performance.now();
  const looks = new Looks({
    engines: { usable: async () => ({ ok: true }), diagnose: async () => undefined },
    onFound: () => {},
  });
  const seen = new Set<string>();
  const gather = (): ReadonlySet<string> => {
    for (const tenantId of looks.findings().keys()) seen.add(tenantId);
    return seen;
  };
  const look = (): ReadonlySet<string> => {
    looks.ask(requests.filter(({ tenantId }) => !seen.has(tenantId)));
    return gather();
  };
  look();
  // 20 at once, and then 20 a second
  await until('some more were inspected', () => look().size >= 26 || undefined);
  expect(seen.size).toBeLessThanOrEqual(20 + 20 * ((performance.now() - startedMs) / 1_000));
  // inspections that began together may end in any order
  await until(
    'all before them were inspected as well',
    () => Math.max(...[...gather()].map(Number)) === seen.size - 1,
    10_000,
  );
});
