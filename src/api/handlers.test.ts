import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keyOf, makeTenantApi, taskOf, type TenantApi } from '../../test/harness/tenant-api.ts';
import { roles } from '../contract/roles.ts';
import type { Access } from '../http/endpoint.ts';
import { newId } from '../kernel/id.ts';
import { tenantEndpoints } from './endpoints.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
afterAll(() => api.close());

interface Entry {
  readonly method: string;
  readonly path: string;
  readonly allow: Access;
  /** Its `{id}` may be a name. */
  readonly names: boolean;
}

const entries: Entry[] = Object.entries(tenantEndpoints).map(([key, endpoint]) => {
  const [method = '', path = ''] = key.split(' ');
  return {
    method,
    path,
    allow: endpoint.allow,
    names: /^\/bus\/subscriber|delivery/.test(path) && !path.includes('replays/{id}'),
  };
});

/** Paths that a worker may read only if it holds a run of the named object. */
const ofHeldRuns = /^\/int-api\/(?:tasks|projects)\//;

const fill = (path: string, id: string): string =>
  path
    .replace('{id}', id)
    .replace('{instant}', '2026-01-01T00:00:00Z')
    .replace('{key}', 'k')
    .replace('{version}', '1')
    .replace('{node}', '0_0-1');

/** Of endpoints that reject an empty body before they look at the run of a task. */
const bodies: Readonly<Record<string, object>> = {
  'POST /api/executions': { flow: 'none' },
  'POST /api/executions/bulk': { flow: 'none', items: [{}] },
  'POST /api/executions/{id}/signals': { name: 'none' },
};
/** A key may not do what only the task itself may do. */
const onlyTasks = 'PUT /api/runs/{id}/result';

async function status(entry: Entry, caller?: Parameters<TenantApi['as']>[0]): Promise<number> {
  const path = fill(entry.path, newId());
  const body = bodies[`${entry.method} ${entry.path}`];
  const json = body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
  const answer = await api.fetch(entry.method, path, { ...(caller && { caller }), ...json });
  await answer.body?.cancel();
  return answer.status;
}

describe('endpoints of a tenant', () => {
  it.each(entries)('$method $path admits only the callers of its table entry', async (entry) => {
    const open = entry.allow.includes('anyone');
    expect((await status(entry)) === 401).toBe(!open);
    for (const role of roles) {
      const isNamed = open || role === 'root' || entry.allow.includes(role);
      // the worker of this key holds no run
      const isRefused =
        (role === 'worker' && ofHeldRuns.test(entry.path)) || `${entry.method} ${entry.path}` === onlyTasks;
      const allowed = isNamed && !isRefused;
      const got = await status(entry, keyOf(role));
      expect([role, got === 403]).toEqual([role, !allowed]);
      // 501: no conductor can be reached from here
      if (got !== 501) expect(got).toBeLessThan(500);
    }
    // a credential of an ended run gives no access
    if (!open) expect(await status(entry, taskOf(newId()))).toBe(403);
  });

  it.each(entries.filter(({ path, names }) => path.includes('{id}') && !names))(
    '$method $path rejects a bad id with its path',
    async ({ method, path }) => {
      const answer = await api.fetch(method, fill(path, 'nonsense'), { caller: keyOf('root') });
      expect([answer.status, await answer.json()]).toMatchObject([400, { faults: [{ path: 'path.id' }] }]);
    },
  );
});
