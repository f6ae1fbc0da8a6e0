/**
 * The rival of `bench -- flows`: DBOS, with a workflow of three steps that return what they are given. It runs in the benchmark's
 * process, as the conductor does, and keeps its tables in a database of its own on the same server.
 */
import { DBOS } from '@dbos-inc/dbos-sdk';
import type { Address } from '../../src/postgres/address.ts';
import { atEnd } from '../ending.ts';

export interface RivalFlows {
  /** Executes one workflow from start to end. */
  run(input: unknown): Promise<unknown>;
  close(): Promise<void>;
}

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
  return { run: (input) => workflow(input), close: atEnd(() => DBOS.shutdown()) };
}
