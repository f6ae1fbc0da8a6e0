import { afterAll, beforeAll, expect, it } from 'vitest';
import { MillraceError } from '../../../errors.ts';
import { pause } from '../../../kernel/service.ts';
import { type LocalServer, shell, startLocalServer } from '../../../../test/harness/cli/shell.ts';

const advice = 'it waits for locks of backend 99 (psql)';
const migration = { what: 'migration', pid: 98 };
const holder = { what: 'holder', pid: 99 };
let server: LocalServer;
beforeAll(async () => {
  let asked = 0;
  server = await startLocalServer({
    'POST /api/tenants/{name}/upgrade': async () => {
      await pause(7_000);
      throw new MillraceError('conflict', 'a lock was waited for in vain');
    },
    'GET /api/explain/tenant/{name}': async ({ params }) => {
      asked += 1;
      if (asked === 1) throw new MillraceError('tenant_unavailable', 'not now');
      const blockers = params.name === 'kept' ? [migration, holder] : [migration];
      const facts = { blockers };
      return {
        tenant: params.name,
        standing: 'will_run',
        summary: 'will run: waiting on transaction 7',
        state: 'ALLOCATED',
        reason_code: 'waiting_on_transaction',
        sentence: '',
        advice,
        facts,
      };
    },
  });
});
afterAll(() => server.stop());

it('an upgrade that waits for locks prints their holders once, and any other prints nothing', async () => {
  const [kept, free] = await Promise.all(
    ['kept', 'free'].map((name) => shell(['tenant', 'upgrade', name], { env: server.env })),
  );
  expect(kept?.stderr).toBe(`upgrading kept…\n${advice}\nerror: a lock was waited for in vain\n`);
  expect(free?.stderr).toBe('upgrading free…\nerror: a lock was waited for in vain\n');
}, 20_000);
