/** The store of executions on a real PostgreSQL. */
import { afterAll, beforeAll, describe } from 'vitest';
import { flowEngine } from '../../src/flows/flow-engine.ts';
import { systemTime } from '../../src/kernel/time.ts';
import { makeContext, type TestContext } from '../harness/engine-context.ts';
import { storeFlow } from '../harness/flows/store-driver.ts';
import { makeTenantDatabase, type TenantDatabase } from '../harness/tenant-database.ts';
import { describeChildren } from './flow-store/children.ts';
import { describeCommits } from './flow-store/commits.ts';
import { describeMessages } from './flow-store/messages.ts';
import { describeOwners } from './flow-store/owners.ts';
import { describeReading } from './flow-store/reading.ts';
import { describeSecrecy } from './flow-store/secrecy.ts';
import { describeTasks } from './flow-store/tasks.ts';
import { flows, type StoreWorld } from './flow-store/world.ts';

describe('the store of executions', () => {
  let tenant: TenantDatabase;
  let ctx: TestContext;
  beforeAll(async () => {
    tenant = await makeTenantDatabase();
    ctx = makeContext({ ...tenant, time: systemTime });
    for (const flow of flows) await storeFlow(tenant.db, flow);
  });
  afterAll(() => tenant.close());

  const world: StoreWorld = {
    engine: flowEngine,
    get ctx() {
      return ctx;
    },
    get db() {
      return tenant.db;
    },
  };
  describeCommits(world);
  describeMessages(world);
  describeTasks(world);
  describeChildren(world);
  describeOwners(world);
  describeReading(world);
  describeSecrecy(world);
});
