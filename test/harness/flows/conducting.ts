/** Conductors in this process, on real databases: each has its own loader and port, as if it were a process of its own. */
import type { Pool } from 'pg';
import { type Conductor, type ConductorOptions, makeConductor } from '../../../src/conductor/conductor.ts';
import { type HostedFunctionMap, inProcessFunctions } from '../../../src/conductor/functions/in-process.ts';
import { type ConductorPort, makeConductorPort } from '../../../src/conductor/port.ts';
import type { EngineContext } from '../../../src/contract/context.ts';
import type { Delivered, FlowMessage, LaunchBody } from '../../../src/contract/flow-messages.ts';
import type { LocalTasks } from '../../../src/contract/local-tasks.ts';
import type { FlowEngine } from '../../../src/contract/flows.ts';
import { engine } from '../../../src/engine/engine.ts';
import type { Head } from '../../../src/flows/executions/heads.ts';
import { readHeads } from '../../../src/flows/executions/heads.ts';
import { readHistory } from '../../../src/flows/executions/history.ts';
import { readExecution, type StoredExecution } from '../../../src/flows/executions/stored.ts';
import type { MessageBody } from '../../../src/flows/interpreter/state.ts';
import { newId } from '../../../src/kernel/id.ts';
import { silent } from '../../../src/kernel/log.ts';
import { deadlineIn } from '../../../src/kernel/service.ts';
import { type Db, onPool, sql } from '../../../src/kernel/sql.ts';
import { makeTelemetry, type Telemetry } from '../../../src/kernel/telemetry.ts';
import { systemTime } from '../../../src/kernel/time.ts';
import type { Loader, OpenTenant } from '../../../src/loader/loader.ts';
import type { ServedTimes } from '../../../src/loader/served/served-tenant.ts';
import { makeContext } from '../engine-context.ts';
import { type Fleet, makeFleet } from '../fleet.ts';
import { until } from '../until.ts';
import { storeFlow } from './store-driver.ts';

export interface StartOptions extends Partial<Pick<ConductorOptions, 'control' | 'maxCalls' | 'log'>> {
  readonly functions?: HostedFunctionMap;
  readonly times?: Partial<ServedTimes>;
  readonly localTasks?: LocalTasks;
  /** Replaces parts of the engine. */
  readonly engine?: (real: FlowEngine) => Partial<FlowEngine>;
}

/** A conductor with what belongs to its process. */
export interface TestConductor {
  readonly conductor: Conductor;
  readonly port: ConductorPort;
  readonly loader: Loader;
  readonly telemetry: Telemetry;
  stop(): Promise<void>;
}

const fast: Partial<ServedTimes> = { changedMs: 50, retry: { firstMs: 20, capMs: 200, jitter: 0 } };

export class Conducting {
  readonly fleet: Fleet;
  readonly #started = new Set<TestConductor>();

  static async make(names: readonly string[] = ['a']): Promise<Conducting> {
    return new Conducting(await makeFleet(names));
  }

  constructor(fleet: Fleet) {
    this.fleet = fleet;
  }

  /** The id of a tenant. */
  tenant(name = 'a'): string {
    return this.fleet.tenants.find(({ row }) => row.name === name)?.row.id ?? '';
  }

  async open(name = 'a'): Promise<OpenTenant> {
    return this.fleet.loader.open(await this.fleet.loader.find(name));
  }

  async db(name = 'a'): Promise<Db> {
    return onPool((await this.open(name)).ctx.pool);
  }

  /** A process without a conductor, such as the role `api`. */
  makeProcess(parts: Pick<StartOptions, 'engine' | 'localTasks'> = {}): Pick<TestConductor, 'port' | 'loader'> {
    const { fleet } = this;
    const port = makeConductorPort({ hub: fleet.hub, loader: () => loader });
    const contextOf = (pool: Pool): EngineContext => {
      const context = makeContext({ address: fleet.control.address, pool, time: systemTime });
      return {
        ...context,
        settings: { ...context.settings, ...(parts.localTasks && { localTasks: parts.localTasks }) },
      };
    };
    const flows = engine.flows === undefined ? undefined : { ...engine.flows, ...parts.engine?.(engine.flows) };
    const loader = fleet.newLoader({
      engines: [{ ...engine, ...(flows !== undefined && { flows }) }],
      poolSize: 8,
      contextFor: (row, pool) => ({
        ...contextOf(pool),
        tenant: { id: row.id, name: row.name },
        hints: {
          send: (kind, payload) => fleet.hub.send(kind, row.id, payload),
          on: (kind, listener) => fleet.hub.on(kind, row.id, () => listener()),
        },
        conductors: port,
      }),
    });
    return { port, loader };
  }

  async start({
    functions = {},
    times,
    engine: parts,
    localTasks,
    ...more
  }: StartOptions = {}): Promise<TestConductor> {
    const { fleet } = this;
    const telemetry = makeTelemetry((error) => {
      throw error;
    });
    const { port, loader } = this.makeProcess({
      ...(parts !== undefined && { engine: parts }),
      ...(localTasks !== undefined && { localTasks }),
    });
    const conductor = makeConductor({
      control: fleet.control.db,
      hub: fleet.hub,
      loader,
      functions: inProcessFunctions(functions, silent),
      maxCalls: 1_000,
      apiUrl: () => 'http://millrace.test',
      closesPools: true,
      telemetry,
      version: '1',
      now: () => Date.now(),
      log: silent,
      times: { ...fast, ...times },
      ...more,
    });
    const started: TestConductor = {
      conductor,
      port,
      loader,
      telemetry,
      stop: async () => {
        this.#started.delete(started);
        await conductor.stop(deadlineIn(10_000));
        await loader.closeAll();
      },
    };
    this.#started.add(started);
    await conductor.start();
    port.attach(conductor);
    return started;
  }

  async stopAll(): Promise<void> {
    await Promise.all([...this.#started].map((each) => each.stop()));
    await this.fleet.control.db.exec(sql`delete from conductor`);
  }

  async close(): Promise<void> {
    await this.stopAll();
    await this.fleet.close();
  }

  async flow(document: { readonly flow: string; readonly [key: string]: unknown }, tenant = 'a'): Promise<void> {
    await storeFlow(await this.db(tenant), document);
  }

  async launch(
    { port }: Pick<TestConductor, 'port'>,
    flow: string,
    { input = {}, tenant = 'a', withinMs = 10_000, ...more }: LaunchOptions = {},
  ): Promise<Delivered> {
    return this.send(port, launchMessage(flow, input, more), { tenant, withinMs });
  }

  async send(
    port: ConductorPort,
    message: FlowMessage,
    { tenant = 'a', withinMs = 10_000 }: { readonly tenant?: string; readonly withinMs?: number } = {},
  ): Promise<Delivered> {
    const [delivered] = await port.deliver(this.tenant(tenant), [message], withinMs);
    if (delivered === undefined) throw new Error('no outcome');
    return delivered;
  }

  async head(id: string, tenant = 'a'): Promise<Head> {
    const [head] = await readHeads(await this.db(tenant), [id]);
    if (head === undefined) throw new Error(`no execution ${id}`);
    return head;
  }

  async ended(id: string, { tenant = 'a', withinMs = 20_000 } = {}): Promise<StoredExecution> {
    await until(
      `execution ${id} has ended`,
      async () => (await this.head(id, tenant)).endedAt !== null || undefined,
      withinMs,
    ).catch(async (error: unknown) => {
      const { state } = (await this.stored(id, tenant)) ?? {};
      throw new Error(JSON.stringify(state), { cause: error });
    });
    const stored = await this.stored(id, tenant);
    if (stored === undefined) throw new Error(`no execution ${id}`);
    return stored;
  }

  async stored(id: string, tenant = 'a'): Promise<StoredExecution | undefined> {
    return readExecution((await this.open(tenant)).ctx, id);
  }

  async history(id: string, tenant = 'a') {
    return readHistory((await this.open(tenant)).ctx, id, { limit: 1_000 });
  }
}

interface LaunchOptions extends Partial<Omit<LaunchBody, 'flow' | 'point'>> {
  readonly tenant?: string;
  readonly withinMs?: number;
}

export function launchMessage(flow: string, input: unknown = {}, more: Partial<LaunchBody> = {}): FlowMessage {
  const execution = newId();
  const body: LaunchBody = { point: 'launch', flow, input, ...more };
  return { id: execution, execution, bornMs: Date.now(), point: 'launch', actor: 'anna', body };
}

function messageOf(execution: string, body: MessageBody, id = newId()): FlowMessage {
  const { point } = body;
  return { id, execution, bornMs: Date.now(), point, actor: 'anna', body };
}

export function signal(execution: string, name: string, payload: unknown = null, id = newId()): FlowMessage {
  return messageOf(execution, { point: 'signal', name, payload: payload as never }, id);
}
