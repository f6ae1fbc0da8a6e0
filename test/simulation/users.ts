/** The users of a world: they apply and edit documents, pause, activate, clear, cancel, run and delete through the real API. */
import type { TenantEndpoints } from '../../src/api/endpoints.ts';
import { engine } from '../../src/engine/engine.ts';
import { type Client, makeClient } from '../../src/http/client.ts';
import { sql } from '../../src/kernel/sql.ts';
import { keyOf } from '../harness/tenant-api.ts';
import { documentOf, type JobPlan, poolName, project, second } from './documents.ts';
import { editRandomly } from './edits.ts';
import { clockTime } from './steps.ts';
import type { World } from './world.ts';

export class Users {
  readonly #world: World;
  readonly #call: Client<TenantEndpoints>;
  readonly #plans = new Map<string, JobPlan>();
  readonly #ids = new Map<string, string>();
  readonly #paused = new Set<string>();
  readonly #backfills: { readonly id: string; readonly job: string }[] = [];

  constructor(world: World) {
    this.#world = world;
    const fetch = (request: Request): Promise<Response> => engine.fetch(request, world.ctx, keyOf('operator'));
    this.#call = makeClient<TenantEndpoints>({ base: 'http://tenant', fetch });
  }

  /** The existing jobs, as last applied. */
  get jobs(): readonly JobPlan[] {
    return [...this.#plans.values()];
  }

  async begin(jobs: readonly JobPlan[]): Promise<void> {
    await this.#call('PUT /api/projects', { body: { name: project } });
    await this.#setPool(this.#world.random.int(1, 2));
    for (const job of jobs) await this.apply(job);
  }

  /** Performs a random action. */
  async act(): Promise<void> {
    const { random } = this.#world;
    const job = random.maybe(this.jobs);
    if (job === undefined) return;
    const wishes = {
      edit: 8,
      pause: 4,
      activate: 4,
      clear: 3,
      cancel: 4,
      run: 2,
      backfill: 3,
      'cancel backfill': 1,
      delete: 0.3,
    };
    switch (random.weighted(wishes)) {
      case 'edit':
        return this.apply(editRandomly(random, job));
      case 'pause':
        return this.pause(job.name, !this.#paused.has(job.name));
      case 'activate':
        return this.#activate(job);
      case 'clear':
        return this.#clear(job);
      case 'cancel':
        return this.#cancel();
      case 'run':
        return this.#run(job);
      case 'backfill':
        return this.#backfill(job);
      case 'cancel backfill':
        return this.#cancelBackfill();
      case 'delete':
        return this.#delete(job);
    }
  }

  async #setPool(places: number): Promise<void> {
    const deed = { kind: 'pool' as const, name: poolName, places };
    await this.#world.step('user', `gives the pool ${places} places`, deed, () =>
      this.#call('PUT /api/pools/{name}', { params: { name: poolName }, body: { places } }),
    );
  }

  async unpauseAll(): Promise<void> {
    for (const { name } of this.jobs) await this.pause(name, false);
  }

  async apply(job: JobPlan): Promise<void> {
    const body = JSON.stringify(documentOf(job));
    const applied = await this.#world.step('user', `applies ${body}`, { kind: 'apply', job }, () =>
      this.#call('PUT /api/jobs', { body }),
    );
    if (applied === undefined) return;
    this.#plans.set(job.name, job);
    this.#ids.set(job.name, applied.id);
    if (job.paused === true) this.#paused.add(job.name);
    if (job.paused === false) this.#paused.delete(job.name);
    await this.#learnNames(applied.id, job.name);
  }

  /** Includes tasks and triggers that the document no longer names, because their runs still appear in the trace. */
  async #learnNames(id: string, job: string): Promise<void> {
    const rows = await this.#world.db.rows<{ id: string; name: string }>(sql`
      select id, name from task where job_id = ${id} union all select id, name from trigger where job_id = ${id}`);
    for (const row of rows) this.#world.names.set(row.id, `${job}/${row.name}`);
  }

  async pause(job: string, paused: boolean): Promise<void> {
    if (paused) this.#paused.add(job);
    else this.#paused.delete(job);
    const params = { id: this.#idOf(job) };
    await this.#world.step('user', `${paused ? 'pauses' : 'unpauses'} ${job}`, { kind: 'pause', job, paused }, () =>
      this.#call('PUT /api/jobs/{id}/paused', { params, body: { paused } }),
    );
  }

  async #activate(job: JobPlan): Promise<void> {
    const task = `${job.name}/${this.#world.random.pick(job.tasks).name}`;
    const instantMs = await this.#someInstant(job);
    const params = { id: this.#idOf(task), instant: new Date(instantMs).toISOString() };
    await this.#world.step(
      'user',
      `activates ${task} ${clockTime(instantMs)}`,
      { kind: 'activate', task, instantMs },
      () => this.#call('PUT /api/tasks/{id}/tokens/{instant}', { params }),
    );
  }

  async #clear(plan: JobPlan): Promise<void> {
    const job = plan.name;
    const someMs = await this.#someInstant(plan);
    const instantMs = (await this.#retriedInstant(job)) ?? someMs;
    const params = { id: this.#idOf(job), instant: new Date(instantMs).toISOString() };
    await this.#world.step('user', `clears ${job} ${clockTime(instantMs)}`, { kind: 'clear', job, instantMs }, () =>
      this.#call('DELETE /api/jobs/{id}/tokens/{instant}', { params }),
    );
  }

  /** Cancels a random run that is unfinished or waits for its retry. */
  async #cancel(): Promise<void> {
    const open = await this.#world.db.rows<{ id: string }>(sql`
      select id from (
        select id, task_id, instant, attempt from live
        union all
        select run_id, task_id, instant, attempt from retry
      ) as open
       order by task_id, instant, attempt, id`);
    const run = this.#world.random.maybe(open)?.id;
    if (run === undefined) return;
    await this.#world.step('user', `cancels ${this.#world.runName(run)}`, { kind: 'cancel', run }, () =>
      this.#call('POST /api/runs/{id}/cancel', { params: { id: run } }),
    );
  }

  async #run(job: JobPlan): Promise<void> {
    const instantMs = await this.#someInstant(job);
    const body = { instant: new Date(instantMs).toISOString() };
    const deed = { kind: 'run' as const, job: job.name, instantMs };
    await this.#world.step('user', `runs ${job.name} ${clockTime(instantMs)}`, deed, () =>
      this.#call('POST /api/jobs/{id}/run', { params: { id: this.#idOf(job.name) }, body }),
    );
  }

  async #backfill({ name: job }: JobPlan): Promise<void> {
    const { random, now } = this.#world;
    const lastMs = now + random.int(-6, 3) * 10 * second;
    const deed = { kind: 'backfill' as const, job, firstMs: lastMs - random.int(1, 6) * 10 * second, lastMs };
    const made = { ...deed, missing: random.chance(0.3), id: '' };
    const [first, last] = [new Date(made.firstMs).toISOString(), new Date(lastMs).toISOString()];
    const order = random.pick(['earliest', 'latest', 'random'] as const);
    const body = { first, last, order, only: made.missing ? ('missing' as const) : ('all' as const) };
    const answer = await this.#world.step('user', `backfills ${job} ${JSON.stringify(body)}`, made, () =>
      this.#call('POST /api/jobs/{id}/backfill', { params: { id: this.#idOf(job) }, body }),
    );
    if (answer === undefined || !('id' in answer)) return;
    made.id = answer.id;
    this.#backfills.push({ id: answer.id, job });
  }

  async #cancelBackfill(): Promise<void> {
    const backfill = this.#world.random.maybe(this.#backfills);
    if (backfill === undefined) return;
    const deed = { kind: 'cancel backfill' as const, ...backfill };
    await this.#world.step('user', `cancels a backfill of ${backfill.job}`, deed, () =>
      this.#call('POST /api/backfills/{id}/cancel', { params: { id: backfill.id } }),
    );
  }

  async #delete(job: JobPlan): Promise<void> {
    const params = { id: this.#idOf(job.name) };
    this.#plans.delete(job.name);
    await this.#world.step('user', `deletes ${job.name}`, { kind: 'delete', job: job.name }, () =>
      this.#call('DELETE /api/jobs/{id}', { params }),
    );
  }

  /** The earliest instant at which a retry of the job waits. Few do, so a clear would seldom meet one by chance. */
  async #retriedInstant(job: string): Promise<number | undefined> {
    const first = await this.#world.db.maybeOne<{ instant: Date }>(sql`
      select instant
        from retry
       where task_id in (select id from task where job_id = ${this.#idOf(job)})
       order by instant
       limit 1`);
    return first?.instant.getTime();
  }

  /** A random instant: one at which the job has something waiting, or one near now by its triggers. */
  async #someInstant(job: JobPlan): Promise<number> {
    const { random, now, db } = this.#world;
    const busy = await db.rows<{ instant: Date }>(sql`
      select distinct instant
        from (
          select task_id, instant from retry
          union all
          select task_id, instant from live
          union all
          select task_id, instant from token where count > 0
        ) as waits
       where task_id in (select id from task where job_id = ${this.#idOf(job.name)})
       order by instant`);
    const [trigger, chosen] = [random.maybe(job.triggers), random.maybe(busy)];
    if (chosen !== undefined && random.chance(0.7)) return chosen.instant.getTime();
    if (trigger === undefined) return now;
    const { startMs, periodMs } = trigger;
    return startMs + (Math.floor((now - startMs) / periodMs) - random.int(-1, 3)) * periodMs;
  }

  /** Id of a job, of a task (`job/task`) or of a trigger. */
  #idOf(name: string): string {
    const part = [...this.#world.names].find(([, known]) => known === name)?.[0];
    const id = this.#ids.get(name) ?? part;
    if (id === undefined) throw new Error(`no job, task or trigger is called ${name}`);
    return id;
  }
}
