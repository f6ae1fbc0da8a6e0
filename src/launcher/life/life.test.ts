import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeTestLife, type TestLife } from '../../../test/harness/tenant-life.ts';
import { append } from '../../events/append.ts';
import { pause, within } from '../../kernel/service.ts';
import { onClient } from '../../kernel/sql.ts';
import { exclusively } from './life.ts';

let life: TestLife;
beforeAll(async () => {
  life = await makeTestLife();
});
afterAll(() => life.close());

it('a process that is frozen in the middle of a step keeps nobody waiting for long', async () => {
  const at = new Date();
  const event = { type: 'tenant.tested', subject: null, body: {} };
  const frozen = exclusively(life, ['frozen'], (client) =>
    onClient(client).transaction(async (tx) => {
      await append(tx, 1, [event], { actor: 'test', at });
      // until somebody else is through
      await others;
    }),
  );
  frozen.catch(() => {});
  const others = pause(500).then(() =>
    within(
      9_000,
      life.control.transaction((tx) => append(tx, 1, [event], { actor: 'test', at })).then(() => 'through'),
    ),
  );
  expect(await others).toBe('through');
  await expect(frozen).rejects.toThrow();
}, 20_000);
