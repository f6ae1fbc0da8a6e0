/** The command line of `npm run bench`. */
import { parseArgs } from 'node:util';
import { type BusPartName, busPartNames } from './bus/part-names.ts';
import { type FlowPartName, flowPartNames } from './flows/part-names.ts';
import { type HarmName, harmNames } from './harms.ts';
import { type WorkloadName, workloadNames } from './workloads.ts';

const benchmarks = [
  'dag',
  'handover',
  'burst',
  'lateness',
  'start',
  'catchup',
  'pages',
  'tenants',
  'isolation',
  'errands',
  'bus',
  'flows',
  'timers',
  'containers',
] as const;
export type BenchmarkName = (typeof benchmarks)[number];

export interface Options {
  readonly name: BenchmarkName;
  readonly json: boolean;
  readonly append: boolean;
  /** Takes a couple of seconds in all: checks that the benchmark works, measures nothing. */
  readonly quick: boolean;
  /** Duration of each measurement. */
  readonly seconds: number;
  readonly workload: WorkloadName | undefined;
  readonly harm: HarmName | 'villains' | undefined;
  readonly part: BusPartName | FlowPartName | undefined;
  readonly workers: number;
  readonly old: number;
  readonly snapshot: boolean;
  readonly runs: number;
  readonly profile: string | undefined;
  /** URL of an existing PostgreSQL server; without it, the benchmark starts an embedded one. */
  readonly database: string | undefined;
}

export const usage = `npm run bench -- NAME [flags]

  dag        runs per second, against PostgreSQL alone in the same run
  handover   parent finished → child started, on an idle system
  burst      1,000 tasks that have never run, due at one instant; one fan-out of ten; ordinary triggers
  lateness   how late triggers fire: 10,000 at once, and ordinary ones
  start      start with 100,000 triggers, cold and warm, and memory when idle
  catchup    a million missed instants, with a live trigger beside them (--runs N: another number)
  pages      every list of the API with five million old runs, its plans, and pruning (--runs N: another number)
  tenants    200 tenants with one trigger each: memory, connections, start, lateness
  isolation  lateness and hand-over of a tenant whose neighbour is flooded (--runs N: another number), hangs or is broken
  errands    50,000 errands pushed and drained, against graphile-worker in the same run (--runs N: another number)
  bus        events taken in and delivered, against PostgreSQL and a bare server in the same run
  flows      executions of three hosted steps, against DBOS and PostgreSQL in the same run (--old N: other old ones)
  containers containers on a Docker engine of its own, against \`docker run\` and plain calls in the same run (as root)
  timers     100,000 sleeping executions, 1,000 timers due per second, 10,000 due at one instant (--runs N: other sleepers)

  --json           the last line of standard output is one JSON object
  --append         add the report to docs/benchmarks/results.md
  --seconds N      how long each thing is measured (10)
  --quick          a couple of seconds in all; shows that it works, measures nothing
  --database URL   an existing PostgreSQL server: the benchmark makes and drops databases of its own there

  of dag only:
  --workload NAME  ${workloadNames.join(', ')}; all, or chain with one of the next three
  --workers N      worker processes over HTTP instead of the worker in \`up\`
  --old N          compares an empty database with one that holds N old runs
  --snapshot       compares with a foreign transaction held open
  --runs N         memory over N runs
  --profile DIR    of handover, bus and flows, too: time by statement, and profiles of Node in DIR; of burst: profiles of Node

  of isolation only:
  --harm NAME      ${harmNames.join(', ')}, villains; all

  of bus and flows only:
  --part NAME      of bus: ${busPartNames.join(', ')}; all
                   of flows: ${flowPartNames.join(', ')}; all`;

const flags = {
  json: { type: 'boolean', default: false },
  append: { type: 'boolean', default: false },
  quick: { type: 'boolean', default: false },
  snapshot: { type: 'boolean', default: false },
  seconds: { type: 'string' },
  workload: { type: 'string' },
  harm: { type: 'string' },
  part: { type: 'string' },
  workers: { type: 'string' },
  old: { type: 'string' },
  runs: { type: 'string' },
  profile: { type: 'string' },
  database: { type: 'string' },
} as const;

/** Throws an error whose message is meant for users. */
export function readOptions(args: readonly string[]): Options {
  const { values, positionals } = parseArgs({ args: [...args], options: flags, allowPositionals: true });
  const [word, ...more] = positionals;
  if (word === undefined || more.length > 0) throw new Error('give the name of exactly one benchmark');
  const { json, append, quick, snapshot, profile } = values;
  const name = oneOf(benchmarks, 'benchmark', word);
  return {
    name,
    json,
    append,
    quick,
    snapshot,
    profile,
    database: databaseUrl(values.database),
    seconds: number('seconds', values.seconds) ?? (quick ? 0.3 : 10),
    workload: values.workload === undefined ? undefined : oneOf(workloadNames, 'workload', values.workload),
    harm: values.harm === undefined ? undefined : oneOf([...harmNames, 'villains' as const], 'harm', values.harm),
    part:
      values.part === undefined
        ? undefined
        : oneOf(name === 'flows' ? flowPartNames : busPartNames, 'part', values.part),
    workers: number('workers', values.workers) ?? 0,
    old: number('old', values.old) ?? 0,
    runs: number('runs', values.runs) ?? 0,
  };
}

function oneOf<T extends string>(known: readonly T[], kind: string, word: string): T {
  const found = known.find((name) => name === word);
  if (found === undefined) throw new Error(`unknown ${kind} '${word}'; choose one of ${known.join(', ')}`);
  return found;
}

function databaseUrl(text: string | undefined): string | undefined {
  if (text !== undefined && !(URL.canParse(text) && /^postgres(ql)?:/.test(text)))
    throw new Error('--database must be a URL such as postgres://user@localhost/postgres');
  return text;
}

function number(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text.replaceAll('_', ''));
  if (!(value > 0)) throw new Error(`--${flag} must be a number above 0, not '${text}'`);
  return value;
}
