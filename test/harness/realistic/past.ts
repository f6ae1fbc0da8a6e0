/**
 * Two weeks of the invented company's past, inserted as rows: at each instant of each trigger the tasks run in graph order,
 * with varying durations and a few failures. The numbers come from a seed, so that every screenshot shows the same past.
 */
import { randomBytes } from 'node:crypto';
import type { Client } from 'pg';
import type { Product } from '../product.ts';

const dayMs = 24 * 3_600_000;
const pastMs = 14 * dayMs;
const maxInstants = 1_500;

interface Row {
  readonly id: string;
  readonly task: string;
  readonly instant: Date;
  readonly state: 'success' | 'failure';
  readonly reason: string | null;
  readonly exit: number | null;
  readonly queued: Date;
  readonly started: Date;
  readonly finished: Date;
}

/** A generator of repeatable numbers between 0 and 1 (mulberry32). */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** An id as the database makes it: it begins with the time, so that ids sort by time. */
function idAt(at: Date): string {
  const hex = at.getTime().toString(16).padStart(12, '0') + randomBytes(10).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-7${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

interface Task {
  readonly id: string;
  readonly name: string;
  readonly parents: readonly { readonly id: string; readonly kind: string }[];
}

/** Typical duration of a task in milliseconds, and its failure rate. */
function habitsOf(task: Task, random: () => number): { readonly ms: number; readonly failureRate: number } {
  const ms = 800 + random() * 40_000;
  return { ms, failureRate: task.name === 'parse' ? 1 : random() < 0.25 ? 0.03 : 0.002 };
}

export async function writePast(product: Product, client: Client): Promise<void> {
  const random = numbers(7);
  await client.query('set search_path to millrace');
  const { rows: jobs } = await client.query<{ id: string; trigger: string | null }>(
    `select job.id, (select trigger.id from trigger where trigger.job_id = job.id limit 1) as trigger
       from job order by name`,
  );
  for (const { id, trigger } of jobs) {
    const instants = trigger === null ? await hourly() : await instantsOf(client, trigger);
    const tasks = await tasksOf(product, id);
    const rows = instants.flatMap((instant) => runsAt(instant, tasks, random));
    await insert(client, rows, trigger, instants);
  }
  await client.query(`insert into log (run_id, lease, number, stream, at, data)
    select id, 1, 0, 'stderr', finished_at, convert_to(E'starting\\nline 8121: price is not a number\\n', 'UTF8')
      from run where state = 'failure' on conflict do nothing`);
  await client.query(`insert into activity (at, success, failure, timeout, error, cancelled, started, wait, worst_wait,
                                            fired, late, worst_late)
    select date_trunc('minute', finished_at, 'UTC'), count(*) filter (where state = 'success'),
           count(*) filter (where state = 'failure'), 0, 0, 0, count(*), sum(started_at - queued_at),
           max(started_at - queued_at), count(distinct instant), count(distinct instant) * interval '2 ms',
           (2 + random() * 6) * interval '1 ms'
      from run group by 1 on conflict do nothing`);
  await client.query('analyze');
}

async function hourly(): Promise<Date[]> {
  const hour = 3_600_000;
  const last = Math.floor(Date.now() / hour) * hour;
  return Array.from({ length: pastMs / hour }, (_, n) => new Date(last - n * hour));
}

/** Instants of a period, or of a cron expression treated as daily, which is close enough for screenshots. */
async function instantsOf(client: Client, trigger: string): Promise<Date[]> {
  const { rows } = await client.query<{ period_ms: string | null; cron: string | null }>(
    'select period_ms, cron from trigger where id = $1',
    [trigger],
  );
  const period = Number(rows[0]?.period_ms ?? dayMs);
  const hour = Number(/^\d+ (\d+)/.exec(rows[0]?.cron ?? '')?.[1] ?? 0);
  const offset = rows[0]?.period_ms === null ? hour * 3_600_000 : 0;
  const last = Math.floor((Date.now() - offset) / period) * period + offset;
  const count = Math.min(maxInstants, Math.floor(pastMs / period));
  // the newest instant is left to the scheduler
  return Array.from({ length: count }, (_, n) => new Date(last - (n + 1) * period));
}

/** The tasks of a job in topological order. */
async function tasksOf(product: Product, job: string): Promise<Task[]> {
  const { nodes, edges } = await product.call('GET /api/jobs/{id}/graph', { params: { id: job } });
  const own = new Set(nodes.filter((node) => node.kind === 'task' && node.job_id === job).map((node) => node.id));
  const left = nodes
    .filter((node) => own.has(node.id))
    .map(({ id, name }): Task => {
      const parents = edges.filter((edge) => edge.to === id && own.has(edge.from));
      return { id, name, parents: parents.map((edge) => ({ id: edge.from, kind: edge.kind })) };
    });
  const sorted: Task[] = [];
  while (left.length > 0) {
    const next = left.findIndex((task) => task.parents.every((parent) => sorted.some(({ id }) => id === parent.id)));
    sorted.push(...left.splice(Math.max(0, next), 1));
  }
  return sorted;
}

function runsAt(instant: Date, tasks: readonly Task[], random: () => number): Row[] {
  const habits = numbers(tasks.length);
  const done = new Map<string, Row>();
  for (const task of tasks) {
    const { ms, failureRate } = habitsOf(task, habits);
    const parents = task.parents.map((parent) => ({ ...parent, row: done.get(parent.id) }));
    const fits = parents.filter(({ kind, row }) => row !== undefined && isMet(kind, row.state));
    const isDue = task.parents.some(({ kind }) => kind === 'failure')
      ? fits.length > 0
      : fits.length === parents.length;
    if (!isDue) continue;
    const queued = new Date(Math.max(instant.getTime() + 20, ...fits.map(({ row }) => row?.finished.getTime() ?? 0)));
    const started = new Date(queued.getTime() + 5 + random() * 400);
    const finished = new Date(started.getTime() + ms * (0.6 + 0.8 * random()));
    const isWrong = random() < failureRate;
    done.set(task.id, {
      id: idAt(queued),
      task: task.id,
      instant,
      state: isWrong ? 'failure' : 'success',
      reason: isWrong ? 'exit code 2' : null,
      exit: isWrong ? 2 : 0,
      queued,
      started,
      finished,
    });
  }
  return [...done.values()];
}

function isMet(kind: string, state: Row['state']): boolean {
  return kind === 'done' || (kind === 'failure') === (state === 'failure');
}

async function insert(
  client: Client,
  rows: readonly Row[],
  trigger: string | null,
  instants: readonly Date[],
): Promise<void> {
  const column = <K extends keyof Row>(key: K): Row[K][] => rows.map((row) => row[key]);
  await client.query(
    `insert into run (id, task_id, instant, origin, version, attempt, priority, lease, worker_id, state, reason,
                      exit_code, queued_at, started_at, finished_at)
     select r.id, r.task, r.instant, 'token', 1, 1, 'normal', 1, '00000000-0000-7000-8000-000000000001', r.state, r.reason,
            r.exit, r.queued, r.started, r.finished
       from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::run_state[], $5::text[], $6::integer[],
                   $7::timestamptz[], $8::timestamptz[], $9::timestamptz[])
            as r (id, task, instant, state, reason, exit, queued, started, finished)
      where r.finished < clock_timestamp()`,
    [
      column('id'),
      column('task'),
      column('instant'),
      column('state'),
      column('reason'),
      column('exit'),
      column('queued'),
      column('started'),
      column('finished'),
    ],
  );
  await client.query(
    `insert into token (task_id, instant, count, fire, reach, priority)
     select distinct on (k.task, k.instant) k.task, k.instant, 0, 1, 1, 'normal'::priority
       from unnest($1::uuid[], $2::timestamptz[]) as k (task, instant)
     on conflict do nothing`,
    [column('task'), column('instant')],
  );
  if (trigger === null) return;
  await client.query(
    `insert into firing (trigger_id, instant, cause)
     select $1, i, 'schedule' from unnest($2::timestamptz[]) as i on conflict do nothing`,
    [trigger, instants],
  );
  await client.query('update trigger set earliest = least(earliest, $2), latest = greatest(latest, $3) where id = $1', [
    trigger,
    instants.at(-1),
    instants[0],
  ]);
}
