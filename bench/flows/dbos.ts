/**
 * The rival of `bench -- flows`: DBOS, with a workflow of three steps that return what they are given. It runs in the benchmark's
 * process, as the conductor does, and keeps its tables in a database of its own on the same server.
 */
import { DBOS } from '@dbos-inc/dbos-sdk';
import type { Address } from '../../src/postgres/address.ts';
import { withClient } from '../../src/postgres/databases.ts';
import { atEnd } from '../ending.ts';

export interface RivalFlows {
  /** Executes one workflow from start to end. */
  run(input: unknown): Promise<unknown>;
  /** Fails if a workflow has not succeeded. */
  close(): Promise<void>;
}

/** DBOS's own default. */
const connections = 10;

export async function openDbos(address: Address): Promise<RivalFlows> {
  DBOS.setConfig({
    name: 'bench',
    systemDatabaseUrl: address.url,
    systemDatabasePoolSize: connections,
    runAdminServer: false,
    logLevel: 'error',
  });
  const step = (name: string, input: unknown): Promise<unknown> => DBOS.runStep(async () => input, { name });
  const workflow = DBOS.registerWorkflow(
    async (input: unknown) => {
      const first = await step('first', input);
      const second = await step('second', first);
      return step('third', second);
    },
    { name: 'three' },
  );
  await DBOS.launch();
  const shutDown = atEnd(() => DBOS.shutdown());
  let started = 0;
  return {
    run(input) {
      started += 1;
      return workflow(input);
    },
    async close() {
      await shutDown();
      await verify(address, started);
    },
  };
}

async function verify(address: Address, started: number): Promise<void> {
  const { rows } = await withClient(address, (client) =>
    client.query<{ succeeded: number }>(
      `select count(*)::integer as succeeded from dbos.workflow_status where status = 'SUCCESS'`,
    ),
  );
  const succeeded = rows[0]?.succeeded;
  if (succeeded !== started) throw new Error(`DBOS started ${started} workflows, and ${succeeded} have succeeded`);
}
