import { afterAll, beforeAll, expect, it } from 'vitest';
import { type LocalServer, shell, startLocalServer } from '../../../../test/harness/cli/shell.ts';
import { MillraceError } from '../../../errors.ts';

let server: LocalServer;
let fault: 'tenant_unavailable' | 'tenant_stopped' | undefined;

beforeAll(async () => {
  server = await startLocalServer({
    'GET /healthz': async () => {
      if (fault === undefined) return { status: 'ok' };
      throw new MillraceError(fault, 'the scheduler is as it is');
    },
  });
});
afterAll(() => server.stop());

const health = (...flags: string[]) => shell(['health', ...flags], { env: { MILLRACE_URL: server.url } });

it('health ends with 0 without a key while the server works', async () => {
  fault = undefined;
  expect(await health()).toEqual({ code: 0, stdout: 'ok\n', stderr: '' });
});

it('health ends with 1 and the reason if the server does not work', async () => {
  fault = 'tenant_unavailable';
  expect(await health()).toEqual({ code: 1, stdout: 'not ok\n', stderr: 'the scheduler is as it is\n' });
});

it('health ends with 0 if a person has stopped the tenant, because a restart would not start it', async () => {
  fault = 'tenant_stopped';
  const { code, stdout } = await health('--json');
  expect([code, JSON.parse(stdout)]).toEqual([0, { ok: true, reason: 'the scheduler is as it is' }]);
});

it('health ends with 3 if nothing answers', async () => {
  expect((await shell(['health'], { env: { MILLRACE_URL: 'http://127.0.0.1:1' } })).code).toBe(3);
});
