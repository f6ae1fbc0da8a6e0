/** The end of a run is stated once, even if its reason repeats the state. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { aliveScheduler, claimTask, whyRun } from '../../../test/harness/explaining.ts';
import { activate, finish, makeJob } from '../../../test/harness/runs.ts';
import { makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { sql } from '../../kernel/sql.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
  aliveScheduler(api);
});
afterAll(() => api.close());

const timeLimit = 'it ran longer than its timeout of 1s and was killed';

it.each([
  ['success', null, 'it succeeded', 'ran and succeeded: key:operator'],
  ['failure', 'exit code 3', 'it failed (exit code 3)', 'ran and failed: exit code 3; key:operator'],
  ['timeout', null, 'it took longer than its timeout and was killed', 'timed out: key:operator'],
  ['timeout', timeLimit, timeLimit, `timed out: ${timeLimit}; key:operator`],
  ['cancelled', 'it was cancelled', 'it was cancelled', 'was cancelled: key:operator'],
  ['cancelled', 'cancelled', 'it was cancelled', 'was cancelled: key:operator'],
  ['cancelled', 'cancelled by key:ann', 'it was cancelled (by key:ann)', 'was cancelled: by key:ann; key:operator'],
])('a run that ended in %s because of %j states it once', async (state, reason, message, summary) => {
  const job = await makeJob(api, { tasks: [{ name: 'only' }] });
  const run = await activate(api, job.tasks['only'], '2026-01-01T00:00:00.000Z');
  await finish(api, await claimTask(api, job.tasks['only']), state);
  await api.db.exec(sql`update run set reason = ${reason} where id = ${run}`);
  const why = await whyRun(api, run);
  expect(why.reasons[0]?.message).toBe(message);
  expect(why.summary).toContain(` at 2026-01-01T00:00:00Z ${summary} activated `);
});
