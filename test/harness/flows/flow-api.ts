/** A tenant's API in this process, with a real database, engine and conductor. Tests choose the hosted functions, and may stop the conductor. */
import type { ApiContext } from '../../../src/api/context.ts';
import type { HostedFunctionMap } from '../../../src/conductor/functions/in-process.ts';
import type { SchedulerInfo, WorkerInfo } from '../../../src/contract/context.ts';
import { listConductors } from '../../../src/control/conductor-queries.ts';
import { newId } from '../../../src/kernel/id.ts';
import { onPool } from '../../../src/kernel/sql.ts';
import { makeTenantCalls, type TenantCalls } from '../tenant-router.ts';
import { until } from '../until.ts';
import { Conducting, type TestConductor } from './conducting.ts';

export interface FlowApi extends TenantCalls {
  readonly ctx: ApiContext;
  readonly world: Conducting;
  readonly workers: WorkerInfo[];
  readonly schedulers: SchedulerInfo[];
  /** Applies a document. */
  apply(document: { readonly flow: string; readonly [key: string]: unknown }): Promise<void>;
  /** Launches an execution, and returns its id after the commit. */
  launch(flow: string, input?: unknown, key?: string): Promise<string>;
  /** Resolves once the execution has this status. */
  reached(id: string, status: string): Promise<void>;
  /** Ends the conductor: messages are only accepted until it is started again. */
  stopConductor(): Promise<void>;
  startConductor(functions?: HostedFunctionMap): Promise<void>;
  close(): Promise<void>;
}

export async function makeFlowApi(functions: HostedFunctionMap = {}): Promise<FlowApi> {
  const world = await Conducting.make(['default']);
  const workers: WorkerInfo[] = [];
  const schedulers: SchedulerInfo[] = [];
  const process = world.makeProcess();
  const opened = await process.loader.open(await process.loader.find('default'));
  let conductor: TestConductor | undefined;
  const ctx: ApiContext = {
    ...opened.ctx,
    db: onPool(opened.ctx.pool),
    directory: {
      ...opened.ctx.directory,
      workers: async (since) => workers.filter((worker) => worker.lastSeenAt > since),
      schedulers: async (since) => schedulers.filter((scheduler) => scheduler.lastSeenAt > since),
      conductors: async () =>
        (await listConductors(world.fleet.control.db)).map(({ beatAt: lastSeenAt, ...row }) => ({
          ...row,
          lastSeenAt,
        })),
    },
    conductors: {
      deliver: (...args) => (conductor ?? process).port.deliver(...args),
      hint: (...args) => (conductor ?? process).port.hint(...args),
    },
  };
  const calls = makeTenantCalls(ctx);
  const api: FlowApi = {
    ...calls,
    ctx,
    world,
    workers,
    schedulers,
    async apply(document) {
      await calls.call('POST /api/flows', { body: JSON.stringify(document) });
    },
    async launch(flow, input = {}, key) {
      const body = { flow, input, ...(key !== undefined && { key }) };
      return (await calls.call('POST /api/executions', { body })).id;
    },
    reached: (id, status) =>
      until(
        `execution ${id} is ${status}`,
        async () => (await world.head(id, 'default')).status === status || undefined,
      ).then(() => undefined),
    async stopConductor() {
      await conductor?.stop();
      conductor = undefined;
    },
    async startConductor(chosen = functions) {
      conductor = await world.start({ functions: chosen });
    },
    async close() {
      await process.loader.closeAll();
      await world.close();
    },
  };
  schedulers.push({
    id: newId(),
    version: '1',
    lastSeenAt: new Date(8_640_000_000_000_000),
    queuedTriggers: 0,
    nextTriggerId: null,
  });
  await api.startConductor();
  return api;
}
