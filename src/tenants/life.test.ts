import { afterAll, beforeAll, expect, it } from 'vitest';
import { administer, serverAddress } from '../../test/harness/postgres-server.ts';
import { inDatabase, makeTestLife, type TestLife } from '../../test/harness/tenant-life.ts';
import { append } from '../events/append.ts';
import { pause, within } from '../kernel/service.ts';
import { onClient } from '../kernel/sql.ts';
import { createTenant } from './create.ts';
import { dropTenant } from './drop.ts';
import { exclusively } from './life.ts';
import { findLifeRow } from './queries.ts';

let life: TestLife;
beforeAll(async () => {
  life = await makeTestLife();
});
afterAll(() => life.close());

it('a process that freezes in the middle of a step does not block others for long', async () => {
  const at = new Date();
  const event = { type: 'tenant.tested', subject: null, body: {} };
  const frozen = exclusively(life, ['frozen'], (client) =>
    onClient(client).transaction(async (tx) => {
      await append(tx, 1, [event], { actor: 'test', at });
      // hangs until another transaction has committed
      await others;
    }),
  );
  frozen.catch(() => {});
  const others = pause(500).then(() =>
    within(
      30_000,
      life.control.transaction((tx) => append(tx, 1, [event], { actor: 'test', at })).then(() => 'through'),
    ),
  );
  expect(await others).toBe('through');
  await expect(frozen).rejects.toThrow();
});

it('a drop of a template names the statement to run first, and no sessions; the tenant continues to run', async () => {
  const [name, actor] = [life.name(), 'key:ann'];
  await createTenant(life, { name, actor });
  await administer(serverAddress(), `alter database ${name} is_template true`);
  await inDatabase(life, name, async () => {
    await expect(dropTenant(life, name, { actor })).rejects.toMatchObject({
      code: 'conflict',
      message: `the database ${name} is a template; before you drop it, run: alter database "${name}" is_template false`,
    });
  });
  expect(await findLifeRow(life.control, name)).toMatchObject({ desired: 'on', leaving: null });
  await administer(serverAddress(), `alter database ${name} is_template false`);
  await dropTenant(life, name, { actor });
  expect(await findLifeRow(life.control, name)).toBeUndefined();
});
