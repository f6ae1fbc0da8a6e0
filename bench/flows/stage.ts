/**
 * A conductor in the benchmark's process, assembled from the product's parts. As with DBOS, the launches, the functions and the driver of
 * the database are in one process.
 *
 * Only one thing is added: the commits of the engine are watched, so that the end of an execution is known without asking for it.
 */
import { engine, engineVersion } from '../../src/engine/engine.ts';
import { prepareDatabases } from '../../src/app/prepare-databases.ts';
import { openInstallation } from '../../src/app/installation.ts';
import { readSecretKeys } from '../../src/app/open-installation.ts';
import { makeConductor } from '../../src/conductor/conductor.ts';
import { type HostedFunctionMap, inProcessFunctions } from '../../src/conductor/functions/in-process.ts';
import { makeConductorPort } from '../../src/conductor/port.ts';
import { readConfig } from '../../src/config.ts';
import type { Delivered, FlowMessage, LaunchBody } from '../../src/contract/flow-messages.ts';
import type { FlowEngine } from '../../src/contract/flows.ts';
import { registerTenant } from '../../src/control/queries.ts';
import { applyFlow } from '../../src/flows/definitions/apply-flow.ts';
import { readDefinition } from '../../src/flows/definitions/read-definition.ts';
import { statusNumbers } from '../../src/flows/executions/memory.ts';
import { newId } from '../../src/kernel/id.ts';
import { makeLog } from '../../src/kernel/log.ts';
import { deadlineIn } from '../../src/kernel/service.ts';
import { type Db, onPool, sql } from '../../src/kernel/sql.ts';
import type { Address } from '../../src/postgres/address.ts';
import { Loader } from '../../src/loader/loader.ts';
import { migrateTenant } from '../../src/tenants/install.ts';
import { atEnd } from '../ending.ts';
import type { Server } from '../server.ts';
import { controlDatabase, tenantDatabase } from '../tenant.ts';

export interface FlowTenant {
  readonly db: Db;
  readonly address: Address;
  apply(document: object): Promise<void>;
  /** Launches executions and resolves once their launches are committed, or stored. Returns their ids. */
  launch(flow: string, inputs: readonly unknown[]): Promise<readonly string[]>;
  /** How many have been launched. */
  launched(): number;
  /** Resolves once the commit that ended the execution is answered, with that time. Call it right after the launch. */
  ended(execution: string): Promise<number>;
  /** Executes a flow from start to end. */
  run(flow: string, input: unknown): Promise<string>;
  /** Fails unless all that were launched are done, or wait in a flow of their own. `others`: executions that are done, and were made otherwise. */
  verify(expected?: { readonly others?: number; readonly waiting?: number }): Promise<void>;
}

/** The first tenant. */
export interface FlowStage extends FlowTenant {
  /** A further tenant of the same conductor, with a database of its own. */
  addTenant(name: string): Promise<FlowTenant>;
  stop(): Promise<void>;
}

const withinMs = 60_000;
const poolSize = 8;
const { live, done } = statusNumbers;

export async function setFlowStage(server: Server, functions: HostedFunctionMap): Promise<FlowStage> {
  await server.drop(tenantDatabase);
  const control = await server.fresh(controlDatabase);
  const config = readConfig({ MILLRACE_HOME: server.home, MILLRACE_DATABASE_URL: control.url, MILLRACE_PORT: '0' });
  const log = makeLog({ level: 'warn', role: 'bench' });
  await prepareDatabases(config, control, { log });
  const secretKeys = await readSecretKeys(config);
  const installation = await openInstallation({
    config,
    log,
    secretKeys,
    poolSize,
    role: 'bench',
    controlAddress: control,
  });
  const ends = new Ends();
  const port = makeConductorPort({ hub: installation.hub, loader: () => loader });
  const loader = new Loader({
    ...installation,
    engines: { find: async () => ({ ok: true, engine: { ...engine, flows: ends.watch(flowsOfEngine()) } }) },
    contextFor: (row, pool) => ({ ...installation.contextFor(row, pool), conductors: port }),
    application: 'millrace bench',
    allowPooler: false,
    poolSize,
  });
  const conductor = makeConductor({
    ...installation,
    loader,
    functions: inProcessFunctions(functions, log),
    maxCalls: 10_000,
    maxMemoryBytes: config.conductorMemoryBytes,
    apiUrl: () => 'http://127.0.0.1',
    closesPools: false,
    version: engineVersion,
    now: () => installation.time.now(),
  });
  await conductor.start();
  port.attach(conductor);
  const open = async (name: string): Promise<FlowTenant> => {
    const { ctx, row } = await loader.open(await loader.find(name));
    const deliver = (messages: readonly FlowMessage[]): Promise<Delivered[]> =>
      port.deliver(row.id, messages, withinMs);
    const address = server.address(name === 'default' ? tenantDatabase : databaseOf(name));
    return makeTenant({ db: onPool(ctx.pool), address, deliver, ends });
  };
  return {
    ...(await open('default')),
    async addTenant(name) {
      await migrateTenant(await server.fresh(databaseOf(name)), engine);
      const tenant = { id: newId(), name, database: databaseOf(name), at: new Date() };
      await registerTenant(installation.control, tenant);
      return open(name);
    },
    stop: atEnd(async () => {
      await conductor.stop(deadlineIn(10_000));
      await loader.closeAll();
      await installation.close();
    }),
  };
}

function databaseOf(tenant: string): string {
  return `bench_${tenant}`;
}

interface Parts {
  readonly db: Db;
  readonly address: Address;
  readonly deliver: (messages: readonly FlowMessage[]) => Promise<Delivered[]>;
  readonly ends: Ends;
}

function makeTenant({ db, address, deliver, ends }: Parts): FlowTenant {
  let launched = 0;
  const launch: FlowTenant['launch'] = async (flow, inputs) => {
    const messages = inputs.map((input) => launchMessage(flow, input));
    launched += messages.length;
    for (const { execution } of messages) ends.expect(execution);
    const outcomes = await deliver(messages);
    // `accepted`: it is stored, and takes effect when a conductor takes it
    const failed = outcomes.find(({ outcome }) => outcome !== 'committed' && outcome !== 'accepted');
    if (failed !== undefined) throw new Error(`a launch was ${failed.outcome}: ${failed.detail ?? ''}`);
    return messages.map(({ execution }) => execution);
  };
  return {
    db,
    address,
    launch,
    apply: (document) => apply(db, document),
    launched: () => launched,
    ended: (execution) => ends.of(execution),
    async run(flow, input) {
      const [execution = ''] = await launch(flow, [input]);
      await ends.of(execution);
      return execution;
    },
    async verify({ others = 0, waiting = 0 } = {}) {
      const found = await db.one<{ done: number; live: number; all: number }>(sql`
        select count(*) filter (where status = ${done})::integer as done, count(*)::integer as all,
               count(*) filter (where status = ${live})::integer as live
          from execution`);
      if (found.done === launched + others - waiting && found.live === waiting && found.all === launched + others)
        return;
      throw new Error(
        `${launched} executions were launched: ${found.done} are done and ${found.live} live, of ${found.all}`,
      );
    },
  };
}

async function apply(db: Db, document: object): Promise<void> {
  const read = readDefinition(JSON.stringify(document), 'json');
  if (!read.ok) throw new Error(`a flow of the benchmark is not valid: ${read.faults[0]?.message}`);
  await applyFlow(db, { definition: read.definition, actor: 'bench', at: new Date(), dryRun: false });
}

function flowsOfEngine(): FlowEngine {
  if (engine.flows === undefined) throw new Error('the engine has no flows');
  return engine.flows;
}

function launchMessage(flow: string, input: unknown): FlowMessage {
  const execution = newId();
  const body: LaunchBody = { point: 'launch', flow, input };
  return { id: execution, execution, bornMs: Date.now(), point: 'launch', actor: null, body };
}

interface End {
  readonly over: Promise<number>;
  readonly tell: (atMs: number) => void;
}

/** The ends of executions that are awaited. */
class Ends {
  readonly #expected = new Map<string, End>();

  expect(execution: string): void {
    let tell: End['tell'] = () => {};
    const over = new Promise<number>((resolve) => {
      tell = resolve;
    });
    this.#expected.set(execution, { over, tell });
  }

  async of(execution: string): Promise<number> {
    const end = this.#expected.get(execution);
    if (end === undefined) throw new Error('expect() the execution first');
    const atMs = await end.over;
    this.#expected.delete(execution);
    return atMs;
  }

  watch(flows: FlowEngine): FlowEngine {
    return {
      ...flows,
      put: async (ctx, runs, as) => {
        const result = await flows.put(ctx, runs, as);
        const atMs = ctx.time.now();
        for (const [i, { to }] of runs.entries())
          if (to.over && result.outcomes[i]?.kind === 'won') this.#expected.get(to.id)?.tell(atMs);
        return result;
      },
    };
  }
}
