/** Entry point of `npm run bench`: argv → benchmark → report. */
import { burst } from './burst.ts';
import { bus } from './bus/bus.ts';
import { catchup } from './catchup.ts';
import { containers } from './containers.ts';
import { dag } from './dag.ts';
import { endAll, endOnSignals } from './ending.ts';
import { errands } from './errands.ts';
import { flows } from './flows/flows.ts';
import { timers } from './flows/timers.ts';
import { handover } from './handover.ts';
import { isolation } from './isolation.ts';
import { lateness } from './lateness.ts';
import { describeMachine, machineFacts } from './machine.ts';
import { type BenchmarkName, type Options, readOptions, usage } from './options.ts';
import { pages } from './pages.ts';
import { Report, type Result } from './report.ts';
import { start } from './start.ts';
import { tenants } from './tenants.ts';

export { runPart } from './parts.ts';

const benchmarks: Record<BenchmarkName, (options: Options, report: Report) => Promise<Result>> = {
  dag,
  handover,
  burst,
  lateness,
  start,
  catchup,
  pages,
  tenants,
  isolation,
  errands,
  bus,
  flows,
  timers,
  containers,
};

/** Returns the exit code. A missed aim is reported but is no failure, because a busy machine misses them all. */
export async function main(args: readonly string[]): Promise<number> {
  let options: Options;
  try {
    options = readOptions(args);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${usage}\n`);
    return 2;
  }
  endOnSignals();
  const machine = await machineFacts(options.database);
  const title = `bench ${withoutUrl(args).join(' ')}`;
  const report = new Report();
  process.stdout.write(`${title}\n${describeMachine(machine)}\n\n`);
  try {
    const result = await benchmarks[options.name](options, report);
    report.aims(result.aims);
    if (options.append) await report.append(title, machine);
    if (options.json) process.stdout.write(`${JSON.stringify({ name: options.name, ...result, machine })}\n`);
    return 0;
  } finally {
    await endAll();
  }
}

/** An address may hold a password. */
function withoutUrl(args: readonly string[]): string[] {
  return args
    .filter((arg) => arg !== '--append')
    .map((arg) => arg.replace(/^(--database=)?postgres(ql)?:.*$/, '$1URL'));
}
