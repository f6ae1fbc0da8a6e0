/**
 * The conditions that a tenant's database must meet when all work is done: every instant fired once (I1), every task ran
 * once per instant (I2), each run has one result and its attempts follow each other (I3, I4), each run has its two events,
 * and nothing is left over.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Db, sql } from '../../src/kernel/sql.ts';

/** The expected work of a job: at these instants each trigger fires and each task succeeds. */
export interface Plan {
  readonly jobId: string;
  readonly instants: readonly number[];
}

interface Named {
  readonly id: string;
  readonly name: string;
  readonly job_id: string;
}

type RunRow = {
  readonly id: string;
  readonly task_id: string;
  readonly instant: Date;
  readonly attempt: number;
  readonly state: string;
  readonly reason: string | null;
  readonly cause: string | null;
};

/** Limits the output of a failed test. */
const maxFaults = 20;

/** Descriptions of all faults; empty if there are none. */
export async function faultsOf(db: Db, plans: readonly Plan[]): Promise<string[]> {
  const faults = [
    ...(await findLeftovers(db)),
    ...(await firingFaults(db, plans)),
    ...(await runFaults(db, plans)),
    ...(await eventFaults(db)),
  ];
  return faults.slice(0, maxFaults);
}

/** Whether no work is left. */
export async function isQuiet(db: Db, plans: readonly Plan[]): Promise<boolean> {
  if ((await findLeftovers(db)).length > 0) return false;
  const tasks = await namedOf(db, 'task');
  const expected = plans.reduce((sum, plan) => sum + ownedBy(tasks, plan).length * plan.instants.length, 0);
  const { n } = await db.one<{ n: number }>(sql`select count(*) as n from run where attempt = 1`);
  return n >= expected;
}

/** Waits until all work is done, however slow the machine is. Gives up when nothing has changed for `stalledMs`. */
export async function waitUntilQuiet(db: Db, plans: readonly Plan[], stalledMs: number): Promise<string[]> {
  let seen = '';
  let movedAt = performance.now();
  while (performance.now() - movedAt < stalledMs) {
    try {
      if (await isQuiet(db, plans)) return [];
      const now = await summarizeRuns(db);
      if (now !== seen) movedAt = performance.now();
      seen = now;
    } catch {
      // the database is away
    }
    await sleep(100);
  }
  return [`nothing has changed for ${stalledMs} ms: ${seen}`];
}

/** Numbers of runs, by what they wait for. */
async function summarizeRuns(db: Db): Promise<string> {
  const rows = await db.rows<{ what: string; n: number; lease: number }>(sql`
    select concat_ws(' ',
             case
               when worker_id is not null then 'held by a worker'
               when gate is not null then 'at a gate'
               when parked then 'parked'
               else 'ready'
             end, case when cancel then 'to be cancelled' end) as what,
           count(*) as n, sum(lease) as lease
      from live
     group by 1
    union all
    select 'finished', count(*), 0 from run
     order by 1`);
  return rows.map((row) => `${row.n} ${row.what}, leased ${row.lease} times`).join('; ');
}

async function findLeftovers(db: Db): Promise<string[]> {
  const rows = await db.rows<{ what: string; n: number }>(sql`
    select 'live runs' as what, count(*) as n from live
    union all select 'retries', count(*) from retry
    union all select 'held tokens', count(*) from held
    union all select 'catch-up', count(*) from catchup
    union all select 'tokens with a count', count(*) from token where count <> 0
    union all select 'permits in use', count(*) from gate where used <> 0
    union all select 'active instants', count(*) from active_instant`);
  return rows.filter((row) => row.n > 0).map((row) => `${row.n} ${row.what} are left`);
}

function namedOf(db: Db, kind: 'task' | 'trigger'): Promise<Named[]> {
  const table = kind === 'task' ? sql`task` : sql`trigger`;
  return db.rows<Named>(sql`select id, name, job_id from ${table}`);
}

function ownedBy(things: readonly Named[], plan: Plan): Named[] {
  return things.filter((thing) => thing.job_id === plan.jobId);
}

/** The key of a task or trigger at an instant. */
function at(id: string, instant: Date | number): string {
  return `${id} ${new Date(instant).toISOString()}`;
}

function expectedOf(things: readonly Named[], plans: readonly Plan[]): Map<string, string> {
  const expected = new Map<string, string>();
  for (const plan of plans) {
    for (const { id, name } of ownedBy(things, plan)) {
      for (const instant of plan.instants) expected.set(at(id, instant), at(name, instant));
    }
  }
  return expected;
}

function differences(what: string, expected: ReadonlyMap<string, string>, seen: ReadonlySet<string>): string[] {
  const missing = [...expected].filter(([key]) => !seen.has(key)).map(([, name]) => `${what} of ${name} is missing`);
  const surplus = [...seen].filter((key) => !expected.has(key)).map((key) => `${what} of ${key} was not expected`);
  return [...missing, ...surplus];
}

async function firingFaults(db: Db, plans: readonly Plan[]): Promise<string[]> {
  const rows = await db.rows<{ trigger_id: string; instant: Date }>(sql`select trigger_id, instant from firing`);
  const seen = new Set(rows.map((row) => at(row.trigger_id, row.instant)));
  return differences('the firing', expectedOf(await namedOf(db, 'trigger'), plans), seen);
}

async function runFaults(db: Db, plans: readonly Plan[]): Promise<string[]> {
  const runs = await db.rows<RunRow>(sql`
    select id, task_id, instant, attempt, state, reason, cause from run order by task_id, instant, attempt`);
  const expected = expectedOf(await namedOf(db, 'task'), plans);
  const groups = new Map<string, RunRow[]>();
  for (const run of runs) {
    const key = at(run.task_id, run.instant);
    groups.set(key, [...(groups.get(key) ?? []), run]);
  }
  const attempts = [...groups].flatMap(([key, some]) => attemptFaults(expected.get(key) ?? key, some));
  return [...differences('the run', expected, new Set(groups.keys())), ...attempts];
}

/** Attempts must be numbered 1, 2, 3…, each caused by the one before; the last and only the last is a success. */
function attemptFaults(name: string, runs: readonly RunRow[]): string[] {
  const formatted = runs.map((run) => `${run.attempt} ${run.state}${run.reason === null ? '' : ` (${run.reason})`}`);
  const inOrder = runs.every((run, i) => run.attempt === i + 1 && (i === 0 || run.cause === runs[i - 1]?.id));
  const ended = runs.every((run, i) => (run.state === 'success') === (i === runs.length - 1));
  return inOrder && ended ? [] : [`${name} ran as ${formatted.join(', ')}`];
}

async function eventFaults(db: Db): Promise<string[]> {
  const rows = await db.rows<{ subject: string; types: string; recorded: boolean }>(sql`
    select e.subject, string_agg(e.type, ' ' order by e.seq) as types, bool_or(run.id is not null) as recorded
      from event e
      left join run on run.id = e.subject
     where e.type like 'run.%'
     group by e.subject
    having string_agg(e.type, ' ' order by e.seq) <> 'run.created run.finished' or not bool_or(run.id is not null)`);
  const odd = rows.map((row) => `run ${row.subject}${row.recorded ? '' : ', which does not exist,'} has ${row.types}`);
  const { n } = await db.one<{ n: number }>(sql`
    select count(*) as n from run where not exists (select 1 from event where subject = run.id and type like 'run.%')`);
  return n > 0 ? [...odd, `${n} runs have no events`] : odd;
}
