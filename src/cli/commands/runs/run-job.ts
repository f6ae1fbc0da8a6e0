/** `millrace run`: starts a job now and, with `--wait`, waits until all its runs have ended. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { z } from 'zod';
import { priority } from '../../../api/shapes.ts';
import { paramsFault } from '../../../jobs/params.ts';
import { isRecord } from '../../../kernel/text/path.ts';
import { Ended, exitCodes, UsageError } from '../../session/exit.ts';
import { examples, collectValues, wordsOf } from '../../session/flags.ts';
import { followRuns } from './follow-runs.ts';
import type { Io } from '../../session/io.ts';
import { jobArgument } from '../jobs/job-commands.ts';
import { count, type Output, showTime, stateCell } from '../../print/output.ts';
import type { RunItem } from '../../session/pages.ts';
import { checkInstant, findJob } from '../../session/references.ts';
import { type Session, verb } from '../../session/session.ts';

const flags = z.object({
  param: z.array(z.string()).default([]),
  params: z.string().optional(),
  instant: z.string().optional(),
  priority: priority.optional(),
  wait: z.boolean().default(false),
});

export function addRun(program: Command, io: Io): void {
  const run = program
    .command('run')
    .description('Run a job now: tasks without parents start at once, the others follow.')
    .argument(...jobArgument)
    .option('--param <key=value>', 'a parameter, parsed as JSON if possible, else text; repeatable', collectValues)
    .option('--params <file.json>', 'parameters from a JSON file; --param overrides them')
    .option('--instant <instant>', 'the logical time to run for (now)')
    .option('--priority <priority>', `${priority.options.join(', ')} (high)`, wordsOf(priority.options))
    .option('--wait', 'wait until all runs of the instant have ended; exits with 1 unless all succeeded')
    .action(verb(io, flags, runJob));
  examples(run, [
    ['millrace run shop/daily', 'now'],
    ['millrace run shop/daily --wait && echo fine', 'in a script'],
    ['millrace run shop/report --param days=7 --param to=ann', '{"days": 7, "to": "ann"}'],
    ['millrace run shop/daily --instant 2030-01-31T00:00:00Z', 'for that day'],
  ]);
}

async function runJob(
  session: Session,
  [reference = '']: readonly string[],
  options: z.output<typeof flags>,
): Promise<void> {
  const { out } = session;
  const params = await readParams(session.io, options);
  const instant = options.instant === undefined ? undefined : checkInstant(options.instant);
  const server = await session.connect();
  const id = await findJob(server, reference);
  const body = { params, instant, priority: options.priority };
  const started = await server.tenant('POST /api/jobs/{id}/run', { params: { id }, body });
  out.note(`${count(started.runs.length, 'run')} at ${showTime(started.instant)}`);
  if (!options.wait) {
    out.answer(started, () => {
      for (const run of started.runs) out.line(run);
    });
    return;
  }
  const runs = await followRuns(session, server, { job: id, instant: started.instant, started: started.runs });
  showOutcome(out, started.instant, runs);
}

function showOutcome(out: Output, instant: string, runs: readonly RunItem[]): void {
  const failed = runs.some((run) => run.state !== 'success');
  out.answer({ instant, outcome: failed ? 'failure' : 'success', runs }, () => {
    out.table(
      [{ title: 'RUN' }, { title: 'STATE' }, { title: 'TASK', flexible: true }, { title: 'REASON', flexible: true }],
      runs.map((run) => [run.id, stateCell(run.state), run.task?.name ?? null, run.reason]),
    );
  });
  if (failed) throw new Ended(exitCodes.failed);
}

async function readParams(io: Io, options: z.output<typeof flags>): Promise<Record<string, unknown>> {
  const file = options.params === undefined ? {} : await readParamsFile(resolve(io.cwd, options.params));
  const params = { ...file, ...Object.fromEntries(options.param.map(readParam)) };
  const fault = paramsFault(params);
  if (fault !== undefined) throw new UsageError(`params ${fault}`);
  return params;
}

async function readParamsFile(path: string): Promise<Record<string, unknown>> {
  const text = await readFile(path, 'utf8');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${path} does not hold a JSON object`, { cause: error });
  }
  if (!isRecord(value)) throw new UsageError(`${path} does not hold a JSON object`);
  return { ...value };
}

export function readParam(text: string): [name: string, value: unknown] {
  const at = text.indexOf('=');
  if (at <= 0) throw new UsageError(`--param ${JSON.stringify(text)} must be KEY=VALUE`);
  return [text.slice(0, at), readValue(text.slice(at + 1))];
}

function readValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
