import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, makeFleet } from '../../../test/harness/fleet.ts';
import { until } from '../../../test/harness/until.ts';
import type { LocalTasks } from '../../contract/local-tasks.ts';
import { newId } from '../../kernel/id.ts';
import { silent } from '../../kernel/log.ts';
import { ClaimDesk } from './claim-desk.ts';
import { allowedLanes, tenantsOf } from './claim-rules.ts';
import { HeartbeatTenants } from '../desks/heartbeat-tenants.ts';
import { BatchTurns } from './batch-turns.ts';

let fleet: Fleet;

beforeAll(async () => {
  fleet = await makeFleet(['default', 'shop']);
});
afterAll(() => fleet.close());

const lanes = ['none:q', 'process:q', 'function:q', 'docker:q', 'node/process:q', 'node/function:q', 'node/http:q'];

it.each([
  ['shop', 'default', ['none:q', 'docker:q', 'node/http:q']],
  ['default', 'default', lanes],
  ['shop', 'all', lanes],
  ['shop', undefined, lanes],
] as const)('the lanes of tenant %s with the setting %s are %j', (tenant, setting, allowed) => {
  expect(allowedLanes(lanes, tenant, setting)).toEqual(allowed);
});

it('a poll takes runs of all tenants except those that it leaves out, or only of the tenant of its key', () => {
  const takes = (poll: Parameters<typeof tenantsOf>[0]): boolean[] => ['a', 'b'].map(tenantsOf(poll));
  expect(takes({})).toEqual([true, true]);
  expect(takes({ without: ['a'] })).toEqual([false, true]);
  expect(takes({ tenantId: 'a' })).toEqual([true, false]);
  expect(takes({ tenantId: 'a', without: ['a'] })).toEqual([false, false]);
});

/** The tenants of the process runs that a worker gets, once it has `count` runs and every tenant was asked. */
async function served(localTasks: LocalTasks, count: number): Promise<string[]> {
  const control = fleet.control.db;
  const heartbeatTenants = new HeartbeatTenants(control, silent);
  const options = {
    loader: fleet.loader,
    control,
    heartbeatTenants,
    turns: new BatchTurns(),
    log: silent,
    leaseMs: 30_000,
  };
  const desk = new ClaimDesk({ ...options, localTasks });
  await desk.service.start();
  for (const tenant of fleet.tenants) await tenant.readyWithSecret();
  fleet.asked.length = 0;
  const self = { worker: newId(), incarnation: 1, free: 4, seen: {} };
  const wish = { ...self, runtimes: ['process' as const], queues: ['default'] };
  const names: string[] = [];
  await until('every tenant was asked', async () => {
    const runs = await desk.claim({ ...wish, wait_ms: 100 }, new AbortController().signal);
    names.push(...runs.map((run) => run.tenant_name));
    const asked = fleet.tenants.every(({ row }) => fleet.asked.includes(`claim ${row.name} 1`));
    return (asked && names.length >= count) || undefined;
  });
  await desk.service.stop();
  return names.sort();
}

it('a process run of a tenant other than default is handed out only if the setting allows it', async () => {
  expect(await served('default', 1)).toEqual(['default']);
  expect(await served('all', 3)).toEqual(['default', 'shop', 'shop']);
});
