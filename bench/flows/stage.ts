/**
 * A conductor with its database in the benchmark's process, assembled from the product's parts. DBOS runs in the same process, too, so
 * both sides pay for their driver and their functions alike.
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
import type { FlowMessage, LaunchBody } from '../../src/contract/flow-messages.ts';
import type { FlowEngine } from '../../src/contract/flows.ts';
import { applyFlow } from '../../src/flows/definitions/apply-flow.ts';
import { readDefinition } from '../../src/flows/definitions/read-definition.ts';
import { newId } from '../../src/kernel/id.ts';
import { makeLog } from '../../src/kernel/log.ts';
import { deadlineIn } from '../../src/kernel/service.ts';
import { type Db, onPool } from '../../src/kernel/sql.ts';
import type { Address } from '../../src/postgres/address.ts';
import { Loader } from '../../src/loader/loader.ts';
import { atEnd } from '../ending.ts';
import type { Server } from '../server.ts';
import { controlDatabase, tenantDatabase } from '../tenant.ts';

export interface FlowStage {
  readonly db: Db;
  readonly address: Address;
  apply(document: object): Promise<void>;
  /** Launches executions and resolves once their launches are committed. Returns their ids. */
  launch(flow: string, inputs: readonly unknown[]): Promise<readonly string[]>;
  /** Resolves when the execution has ended. Call it right after the launch. */
  ended(execution: string): Promise<void>;
  /** Executes a flow from start to end. */
  run(flow: string, input: unknown): Promise<string>;
  stop(): Promise<void>;
}

const withinMs = 60_000;
const poolSize = 8;

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
  const { ctx, row } = await loader.open(await loader.find('default'));
  const launch: FlowStage['launch'] = async (flow, inputs) => {
    const messages = inputs.map((input) => launchMessage(flow, input));
    for (const { execution } of messages) ends.expect(execution);
    const outcomes = await port.deliver(row.id, messages, withinMs);
    const failed = outcomes.find(({ outcome }) => outcome !== 'committed');
    if (failed !== undefined) throw new Error(`a launch was ${failed.outcome}: ${failed.detail ?? ''}`);
    return messages.map(({ execution }) => execution);
  };
  return {
    db: onPool(ctx.pool),
    address: server.address(tenantDatabase),
    apply: (document) => apply(onPool(ctx.pool), document),
    launch,
    ended: (execution) => ends.of(execution),
    async run(flow, input) {
      const [execution = ''] = await launch(flow, [input]);
      await ends.of(execution);
      return execution;
    },
    stop: atEnd(async () => {
      await conductor.stop(deadlineIn(10_000));
      await loader.closeAll();
      await installation.close();
    }),
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
  readonly over: Promise<void>;
  readonly tell: () => void;
}

/** The ends of executions that are awaited. */
class Ends {
  readonly #expected = new Map<string, End>();

  expect(execution: string): void {
    let tell = (): void => {};
    const over = new Promise<void>((resolve) => {
      tell = resolve;
    });
    this.#expected.set(execution, { over, tell });
  }

  async of(execution: string): Promise<void> {
    await this.#expected.get(execution)?.over;
    this.#expected.delete(execution);
  }

  watch(flows: FlowEngine): FlowEngine {
    return {
      ...flows,
      put: async (ctx, runs, as) => {
        const result = await flows.put(ctx, runs, as);
        for (const [i, { to }] of runs.entries())
          if (to.over && result.outcomes[i]?.kind === 'won') this.#expected.get(to.id)?.tell();
        return result;
      },
    };
  }
}
