/**
 * The rival of `bench -- flows`: DBOS, with a workflow of three steps that return what they are given, in a process of its own.
 *
 * It must not share one with the conductor: DBOS uses `AsyncLocalStorage`, and in Node 20 that makes every promise of its process slower.
 */
import type { DBOS as Dbos } from '@dbos-inc/dbos-sdk';
import { addressOfUrl } from '../../src/postgres/address.ts';
import { withClient } from '../../src/postgres/databases.ts';
import { timed } from '../commits.ts';
import type { Turn } from '../tally.ts';
import { closedLoop, input } from './three-steps.ts';

/** DBOS's own default. */
const connections = 10;

type Workflow = (input: unknown) => Promise<unknown>;

interface Opened {
  readonly DBOS: typeof Dbos;
  readonly workflow: Workflow;
  readonly url: string;
}

/** The part for `startPart`. */
export function makeDbos() {
  let opened: Opened | undefined;
  let started = 0;
  const run = (): Promise<unknown> => {
    if (opened === undefined) throw new Error('call open() first');
    const { workflow } = opened;
    started += 1;
    // called as a method, DBOS takes its object for the instance of a class
    return workflow(input);
  };
  return {
    async open({ url }: { readonly url: string }): Promise<void> {
      opened = await launch(url);
    },
    /** Keeps workflows under way for `ms` milliseconds. */
    loop: ({ ms }: { readonly ms: number }): Promise<Turn> => closedLoop(run, ms),
    /** Executes one, and returns its milliseconds. */
    time: (): Promise<number> => timed(async () => void (await run())),
    /** Fails if a workflow has not succeeded. */
    async close(): Promise<void> {
      await opened?.DBOS.shutdown();
      if (opened !== undefined) await verify(opened.url, started);
    },
  };
}

async function launch(url: string): Promise<Opened> {
  const { DBOS } = await import('@dbos-inc/dbos-sdk');
  DBOS.setConfig({
    name: 'bench',
    systemDatabaseUrl: url,
    systemDatabasePoolSize: connections,
    runAdminServer: false,
    logLevel: 'error',
  });
  const step = (name: string, value: unknown): Promise<unknown> => DBOS.runStep(async () => value, { name });
  const workflow = DBOS.registerWorkflow(
    async (value: unknown) => {
      const first = await step('first', value);
      const second = await step('second', first);
      return step('third', second);
    },
    { name: 'three' },
  );
  await DBOS.launch();
  return { DBOS, workflow, url };
}

async function verify(url: string, started: number): Promise<void> {
  const { rows } = await withClient(addressOfUrl(url), (client) =>
    client.query<{ succeeded: number }>(
      `select count(*)::integer as succeeded from dbos.workflow_status where status = 'SUCCESS'`,
    ),
  );
  const succeeded = rows[0]?.succeeded;
  if (succeeded !== started) throw new Error(`DBOS started ${started} workflows, and ${succeeded} have succeeded`);
}
