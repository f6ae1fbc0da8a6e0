/**
 * `bench -- flows`: executions of three hosted steps, against DBOS and against a raw writer of the same rows. Each part is a file of its
 * own: rates, latency on an idle system, the cost beside many old executions, and the same flow on worker processes. What is compared
 * takes turns on one server.
 */
import type { Options } from '../options.ts';
import { type Remote, startPart } from '../parts.ts';
import { profilingSettings } from '../profile.ts';
import { combine, type PartResult, type Report, type Result } from '../report.ts';
import { type Server, startServer } from '../server.ts';
import { measureIdle } from './idle.ts';
import { measureOld } from './old.ts';
import type { FlowPartName } from './part-names.ts';
import { measureRates, printRows } from './rates.ts';
import { type FlowStage, setFlowStage } from './stage.ts';
import { functions, three } from './three-steps.ts';
import { measureWorkers } from './workers.ts';

export interface FlowBench {
  readonly server: Server;
  readonly stage: FlowStage;
  readonly options: Options;
  readonly report: Report;
  /** DBOS in its own process, started when it is first asked for. */
  rival(): Promise<Remote<'dbos'>>;
}

const rivalDatabase = 'bench_rival';

export async function flows(options: Options, report: Report): Promise<Result> {
  const server = await startServer(options, options.profile === undefined ? {} : profilingSettings);
  const results: [string, PartResult][] = [];
  const take = async (name: FlowPartName, measure: () => Promise<PartResult>): Promise<void> => {
    if (options.part === undefined || options.part === name) results.push([name, await measure()]);
  };
  if (options.part !== 'workers') {
    const { bench, close } = await setBench(server, options, report);
    await take('rates', () => measureRates(bench));
    await take('idle', () => measureIdle(bench));
    await take('old', () => measureOld(bench));
    await close();
    if (results.some(([name]) => name === 'rates')) await printRows(bench);
  }
  // the product as `up`, with its own databases
  await take('workers', () => measureWorkers(server, options, report));
  await server.stop();
  return combine(results);
}

async function setBench(
  server: Server,
  options: Options,
  report: Report,
): Promise<{ readonly bench: FlowBench; readonly close: () => Promise<void> }> {
  const stage = await setFlowStage(server, functions);
  await stage.apply(three);
  let rival: Promise<Remote<'dbos'>> | undefined;
  const start = async (): Promise<Remote<'dbos'>> => {
    const dbos = startPart('dbos');
    await dbos.open({ url: (await server.fresh(rivalDatabase)).url });
    return dbos;
  };
  return {
    bench: { server, stage, options, report, rival: () => (rival ??= start()) },
    async close() {
      await stage.verify();
      await stage.stop();
      const dbos = await rival;
      await dbos?.close();
      await dbos?.end();
    },
  };
}
