/** Steps of a run's life on a tenant's database: applies jobs, and claims and reports runs as a stand-in worker. */
import { newId } from '../../src/kernel/id.ts';
import { type Db, sql } from '../../src/kernel/sql.ts';
import type { TenantApi } from './tenant-api.ts';

export type ClaimedRow = { readonly id: string; readonly task_id: string; readonly lease: number };

export const aWorker = newId();

/** Claims up to `places` runs of every lane. */
export function claim({ db, ctx }: Pick<TenantApi, 'db' | 'ctx'>, places = 10): Promise<ClaimedRow[]> {
  const at = ctx.time.now();
  return db.rows<ClaimedRow>(sql`
    select id, task_id, lease
      from claim_runs(
        array(select distinct lane from live), ${Array(places).fill(aWorker)}::uuid[],
        ${Array(places).fill(1)}::bigint[], ${new Date(at + 30_000)}, ${new Date(at)})`);
}

export async function finish(
  api: Pick<TenantApi, 'db' | 'ctx'>,
  runs: readonly ClaimedRow[],
  state = 'success',
): Promise<void> {
  const at = new Date(api.ctx.time.now());
  await api.db.exec(sql`
    select *
      from finish_runs(
        ${runs.map((run) => run.id)}::uuid[], ${runs.map((run) => run.lease)}::integer[],
        ${runs.map(() => state)}::run_state[], ${runs.map(() => null)}::text[], ${runs.map(() => null)}::integer[],
        ${runs.map(() => at)}::timestamptz[], ${at})`);
}

/** Claims all ready runs and ends them in this state. */
export async function runAll(api: Pick<TenantApi, 'db' | 'ctx'>, state = 'success'): Promise<ClaimedRow[]> {
  const runs = await claim(api);
  await finish(api, runs, state);
  return runs;
}

/** Types of the events after a position, oldest first. */
export async function eventTypes(db: Db, after = 0): Promise<string[]> {
  const rows = await db.rows<{ type: string }>(sql`select type from event where seq > ${after} order by seq`);
  return rows.map((row) => row.type);
}

export interface JobParts {
  readonly project?: string;
  readonly name?: string;
  readonly description?: string;
  readonly params?: object;
  readonly paused?: boolean;
  readonly triggers?: readonly object[];
  readonly tasks?: readonly object[];
  readonly max_active_instants?: number;
  readonly overlap?: string;
}

export interface MadeJob {
  readonly id: string;
  /** Ids by name. */
  readonly tasks: Readonly<Record<string, string>>;
  readonly triggers: Readonly<Record<string, string>>;
}

/** Applies a document; by default one task without a runtime, in a new project. */
export async function makeJob(api: TenantApi, parts: JobParts = {}): Promise<MadeJob> {
  const { project = `p ${newId()}`, name = 'job', triggers = [], tasks = [{ name: 'only' }], ...rest } = parts;
  await api.call('PUT /api/projects', { body: { name: project } });
  const body = JSON.stringify({ project, name, description: '', triggers, tasks, ...rest });
  const { id } = await api.call('PUT /api/jobs', { body });
  const params = { id };
  const [taskRows, triggerRows] = [
    await api.call('GET /api/jobs/{id}/tasks', { params }),
    await api.call('GET /api/jobs/{id}/triggers', { params }),
  ];
  return {
    id,
    tasks: Object.fromEntries(taskRows.map((row) => [row.name, row.task_id])),
    triggers: Object.fromEntries(triggerRows.map((row) => [row.trigger_name, row.trigger_id])),
  };
}

/** Activates a token by hand; returns the id of its run. */
export async function activate(api: TenantApi, task: string | undefined, instant: string): Promise<string> {
  const params = { id: task ?? '', instant };
  const { runs } = await api.call('PUT /api/tasks/{id}/tokens/{instant}', { params, body: { priority: 'high' } });
  return runs[0] ?? '';
}

/** Fires a trigger as the scheduler does. */
export async function fire(api: TenantApi, trigger: string | undefined, instant: string): Promise<void> {
  await api.db.exec(sql`
    select *
      from fire_triggers(
        ${[trigger]}::uuid[], ${[instant]}::timestamptz[], 'schedule', 'normal', null, ${new Date(api.ctx.time.now())})`);
}
