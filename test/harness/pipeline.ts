/**
 * The stages of the pipeline on a tenant's database, called one by one at times that a test sets. Each job has a queue of
 * its own, so that tests in one database do not claim each other's runs.
 */
import { parseJob } from '../../src/jobs/document/parse-job.ts';
import { applyJob, type Applied } from '../../src/jobs/apply.ts';
import { newId } from '../../src/kernel/id.ts';
import { type Db, onClient, sql } from '../../src/kernel/sql.ts';
import { HandTime } from './hand-time.ts';
import { makeTenantDatabase, type TenantDatabase } from './tenant-database.ts';

export type Outcome = 'success' | 'failure' | 'timeout' | 'error' | 'cancelled';
export type Priority = 'backfill' | 'low' | 'normal' | 'high';

export type ClaimedRow = {
  readonly id: string;
  readonly task_id: string;
  readonly instant: Date;
  readonly version: number;
  readonly attempt: number;
  readonly priority: Priority;
  readonly lease: number;
  readonly worker_id: string;
  readonly params: unknown;
};

export interface JobParts {
  readonly project?: string;
  readonly name?: string;
  readonly uuid?: string;
  readonly paused?: boolean;
  readonly retention?: object;
  readonly triggers?: readonly object[];
  readonly tasks?: readonly object[];
  readonly max_active_instants?: number | null;
  readonly overlap?: string;
}

export interface TestJob {
  readonly id: string;
  readonly project: string;
  readonly lane: string;
  readonly applied: Applied;
  task(name: string): string;
  trigger(name: string): string;
  /** Applies the document again with changes. */
  change(parts: JobParts): Promise<TestJob>;
}

export interface Pipeline extends TenantDatabase {
  readonly time: HandTime;
  job(parts?: JobParts): Promise<TestJob>;
}

const worker = newId();

export async function makePipeline(): Promise<Pipeline> {
  const database = await makeTenantDatabase();
  const time = new HandTime('2026-06-01T00:00:00Z');
  return { ...database, time, job: (parts = {}) => makeJob(database.db, time, `q-${newId()}`, parts) };
}

export async function makeProject(db: Db, name: string): Promise<void> {
  await db.exec(sql`
    insert into project (id, name, description, created_at, updated_at)
    values (${newId()}, ${name}, '', now(), now())
    on conflict do nothing`);
}

/** Applies a document as the API does; throws the errors of the API. */
export function applyDocument(
  db: Db,
  document: object,
  options: { at?: Date; dryRun?: boolean } = {},
): Promise<Applied> {
  const parsed = parseJob(document);
  if (!parsed.ok) throw new Error(`invalid document in a test: ${JSON.stringify(parsed.faults)}`);
  const { at = new Date(), dryRun = false } = options;
  return applyJob(db, { definition: parsed.job, warnings: parsed.warnings, actor: 'test', at, dryRun });
}

async function makeJob(db: Db, time: HandTime, queue: string, parts: JobParts): Promise<TestJob> {
  const { project = `p ${newId()}`, name = 'job', tasks = [{ name: 'only' }], triggers = [], ...rest } = parts;
  await makeProject(db, project);
  const queued = tasks.map((task) => ({ queue, ...task }));
  const document = { project, name, description: '', triggers, tasks: queued, ...rest };
  const applied = await applyDocument(db, document, { at: new Date(time.now()) });
  const [taskIds, triggerIds] = [await idsOf(db, 'task', applied.id), await idsOf(db, 'trigger', applied.id)];
  return {
    id: applied.id,
    project,
    lane: `none:${queue}`,
    applied,
    task: (wanted) => idOf(taskIds, wanted),
    trigger: (wanted) => idOf(triggerIds, wanted),
    change: (changed) => makeJob(db, time, queue, { project, name, tasks, triggers, ...rest, ...changed }),
  };
}

async function idsOf(db: Db, kind: 'task' | 'trigger', job: string): Promise<Map<string, string>> {
  const from = kind === 'task' ? sql`task` : sql`trigger`;
  const rows = await db.rows<{ name: string; id: string }>(sql`select name, id from ${from} where job_id = ${job}`);
  return new Map(rows.map((row) => [row.name, row.id]));
}

function idOf(ids: ReadonlyMap<string, string>, name: string): string {
  const id = ids.get(name);
  if (id === undefined) throw new Error(`${name} not found`);
  return id;
}

export type Stage = Pick<Pipeline, 'db' | 'time'>;

/** Runs each work on its own connection, where a deadlock is not retried but fails the test. */
export async function onConnections<T>(line: Pipeline, works: readonly ((stage: Stage) => Promise<T>)[]): Promise<T[]> {
  const clients = await Promise.all(works.map(() => line.pool.connect()));
  try {
    return await Promise.all(
      works.map(async (work, i) => {
        const client = clients[i];
        if (client === undefined) throw new Error('fewer connections than works');
        return work({ db: onClient(client), time: line.time });
      }),
    );
  } finally {
    for (const client of clients) client.release();
  }
}

export const at = ({ time }: Pick<Pipeline, 'time'>): Date => new Date(time.now());

export function fire(
  stage: Stage,
  triggers: string | readonly string[],
  instants: string | readonly string[],
  how: { cause?: string; priority?: Priority; order?: 'earliest' | 'latest' | 'random' } = {},
): Promise<{ fired: number; created: number }> {
  return stage.db.one(sql`
    select fired, created
      from fire_triggers(${[triggers].flat()}::uuid[], ${[instants].flat()}::timestamptz[],
                         ${how.cause ?? 'schedule'}, ${how.priority ?? 'normal'}::priority,
                         ${how.order ?? null}::text, ${at(stage)})`);
}

export interface Claim {
  readonly places?: number;
  readonly worker?: string;
  readonly incarnation?: number;
}

export function claim(stage: Stage, lanes: string | readonly string[], how: Claim = {}): Promise<ClaimedRow[]> {
  const places = Array<string>(how.places ?? 100).fill(how.worker ?? worker);
  const until = new Date(stage.time.now() + 30_000);
  return stage.db.rows<ClaimedRow>(sql`
    select *
      from claim_runs(${[lanes].flat()}::text[], ${places}::uuid[],
                      ${places.map(() => how.incarnation ?? 1)}::bigint[], ${until}, ${at(stage)})`);
}

export type Reported = { applied: number; created: number; retries: number };

export function finish(
  stage: Stage,
  runs: readonly Pick<ClaimedRow, 'id' | 'lease'>[],
  state: Outcome | readonly Outcome[] = 'success',
): Promise<Reported> {
  const states = typeof state === 'string' ? runs.map(() => state) : state;
  return stage.db.one<Reported>(sql`
    select applied, created, retries
      from finish_runs(
        ${runs.map((run) => run.id)}::uuid[], ${runs.map((run) => run.lease)}::integer[], ${states}::run_state[],
        ${runs.map(() => null)}::text[], ${runs.map(() => null)}::integer[], ${runs.map(() => null)}::timestamptz[],
        ${at(stage)})`);
}

/** Claims all ready runs of the job and ends them in this state. */
export async function runAll(stage: Stage, job: TestJob, state: Outcome = 'success'): Promise<ClaimedRow[]> {
  const runs = await claim(stage, job.lane);
  await finish(stage, runs, state);
  return runs;
}

export async function activate(
  stage: Stage,
  tasks: string | readonly string[],
  instants: string | readonly string[],
  priority: Priority = 'high',
): Promise<string[]> {
  const { runs } = await stage.db.one<{ runs: string[] }>(sql`
    select activate_tokens(${[tasks].flat()}::uuid[], ${[instants].flat()}::timestamptz[], ${priority}::priority,
                           'test', ${at(stage)}) as runs`);
  return runs;
}

const scalar = async (stage: Stage, query: ReturnType<typeof sql>): Promise<number> =>
  (await stage.db.one<{ n: number }>(query)).n;

export const release = (stage: Stage, max = 1_000): Promise<number> =>
  scalar(stage, sql`select release_tokens(${max}, ${at(stage)}) as n`);

export const queueRetries = (stage: Stage, max = 1_000): Promise<number> =>
  scalar(stage, sql`select queue_retries(${max}, ${at(stage)}) as n`);

export const clear = (stage: Stage, job: string, instant: string): Promise<number> =>
  scalar(stage, sql`select clear_tokens(${job}, ${instant}, ${at(stage)}) as n`);

export function takeBack(stage: Stage): Promise<{ returned: number; failed: number }> {
  return stage.db.one(sql`select returned, failed from take_back_runs(interval '10 seconds', ${at(stage)})`);
}

export async function cancel(stage: Stage, run: string): Promise<string> {
  const { outcome } = await stage.db.one<{ outcome: string }>(sql`
    select outcome from cancel_run(${run}, 'test', ${at(stage)})`);
  return outcome;
}

export const giveBack = (stage: Stage, runs: readonly Pick<ClaimedRow, 'id' | 'lease'>[]): Promise<number> => {
  const [ids, leases] = [runs.map((run) => run.id), runs.map((run) => run.lease)];
  return scalar(stage, sql`select returned as n from return_runs(${ids}::uuid[], ${leases}::integer[], ${at(stage)})`);
};

/** Reports that what executed these runs is gone. */
export function lose(
  stage: Stage,
  runs: readonly Pick<ClaimedRow, 'id' | 'lease'>[],
  reason = 'the node went away',
): Promise<{ returned: number; failed: number }> {
  const [ids, leases] = [runs.map((run) => run.id), runs.map((run) => run.lease)];
  return stage.db.one(sql`
    select returned, failed
      from lose_runs(${ids}::uuid[], ${leases}::integer[], ${runs.map(() => reason)}::text[], ${at(stage)})`);
}

export type Renewed = { worker: string; mine: string[] | null; cancelled: string[] | null; returned: boolean };

export async function renew(
  stage: Stage,
  beat: { worker?: string; incarnation?: number; holds?: readonly string[] },
): Promise<Renewed | undefined> {
  return stage.db.maybeOne<Renewed>(sql`
    select *
      from renew_leases(${[beat.worker ?? worker]}::uuid[], ${[beat.incarnation ?? 1]}::bigint[],
                        ${JSON.stringify([beat.holds ?? []])}::jsonb, interval '10 seconds', ${new Date(stage.time.now() + 30_000)},
                        ${at(stage)})`);
}

/** A task's count at an instant; undefined if there is no token. */
export async function countOf(stage: Stage, task: string, instant: string): Promise<number | undefined> {
  const row = await stage.db.maybeOne<{ count: number }>(sql`
    select count from token where task_id = ${task} and instant = ${instant}`);
  return row?.count;
}

/** Number of runs of a task, finished or not. */
export const runsOf = (stage: Stage, task: string): Promise<number> =>
  scalar(
    stage,
    sql`
      select (select count(*) from live where task_id = ${task})
           + (select count(*) from run where task_id = ${task}) as n`,
  );

/** The finished runs of a task, oldest first. */
export function historyOf(
  stage: Stage,
  task: string,
): Promise<{ id: string; state: Outcome; attempt: number; reason: string | null; lease: number }[]> {
  return stage.db.rows(sql`
    select id, state, attempt, reason, lease from run where task_id = ${task} order by finished_at, attempt, id`);
}

export async function pauseTasks(stage: Stage, job: TestJob, paused: boolean): Promise<void> {
  await stage.db.exec(sql`update task set paused = ${paused} where job_id = ${job.id} and removed_at is null`);
}

/**
 * A task with enough waiting runs (5,000) that catch-up of triggers leading to it is held back. `hold` adds an edge from a
 * trigger to it, `letGo` removes the edge.
 */
export async function makeDam(
  line: Pipeline,
): Promise<{ hold: (trigger: string) => Promise<void>; letGo: (trigger: string) => Promise<void> }> {
  const task = (await line.job({ tasks: [{ name: 'dam' }] })).task('dam');
  await line.db.exec(sql`
    insert into live (id, task_id, instant, version, attempt, priority, lane, rank, cause, queued_at)
    select new_id(), ${task}, ${at(line)}::timestamptz + n * interval '1 second', 1, 1, 'low', 'none:dam', ${at(line)},
           ${newId()}, ${at(line)}
      from generate_series(1, 5000) as n`);
  return {
    hold: async (trigger) => {
      await line.db.exec(
        sql`insert into trigger_edge (trigger_id, task_id, offset_ms) values (${trigger}, ${task}, 0)`,
      );
    },
    letGo: async (trigger) => {
      await line.db.exec(sql`delete from trigger_edge where trigger_id = ${trigger} and task_id = ${task}`);
    },
  };
}
