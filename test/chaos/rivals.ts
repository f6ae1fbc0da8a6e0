/**
 * Two of everything on one tenant: two schedulers without the lock that keeps them apart (I5), two gateways' desks, and
 * workers that forget runs, report twice, late and to both gateways, and die. The clock is moved by hand at twenty times
 * real speed, so that leases expire and retries become due within milliseconds.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { TenantEndpoints } from '../../src/api/endpoints.ts';
import { postgresBroker } from '../../src/broker/postgres.ts';
import { engine } from '../../src/engine/engine.ts';
import { ClaimDesk } from '../../src/gateway/claims/claim-desk.ts';
import { ReportDesk } from '../../src/gateway/desks/report-desk.ts';
import { HeartbeatTenants } from '../../src/gateway/desks/heartbeat-tenants.ts';
import { BatchTurns } from '../../src/gateway/claims/batch-turns.ts';
import { type Client, makeClient } from '../../src/http/client.ts';
import { silent } from '../../src/kernel/log.ts';
import { all, type Service } from '../../src/kernel/service.ts';
import { type Db, onPool, sql } from '../../src/kernel/sql.ts';
import type { OpenTenant } from '../../src/loader/loader.ts';
import { WakeHub } from '../../src/postgres/wake.ts';
import { makeContext } from '../harness/engine-context.ts';
import { type Fleet, makeFleet } from '../harness/fleet.ts';
import { keyOf } from '../harness/tenant-api.ts';
import { until } from '../harness/until.ts';
import { type Dice, makeDice } from './dice.ts';
import { faultsOf, isQuiet, type Plan } from './oracle.ts';
import { SloppyWorker } from './sloppy-worker.ts';
import { chaosProject, everyMs, fan, limits, meeting } from './workload.ts';

const leaseMs = 30_000;

/** One of the two: a scheduler and the desks of a gateway, with their own connections. */
export class Rival {
  readonly tenant: OpenTenant;
  readonly claims: ClaimDesk;
  readonly reports: ReportDesk;
  readonly call: Client<TenantEndpoints>;
  /** Errors logged by background work. */
  readonly faults: readonly unknown[];
  readonly #gateway: Service;
  #scheduler: Service;

  private constructor(tenant: OpenTenant, hub: WakeHub, desks: Pick<Rival, 'claims' | 'reports' | 'faults'>) {
    this.tenant = tenant;
    this.claims = desks.claims;
    this.reports = desks.reports;
    this.faults = desks.faults;
    this.#gateway = all('gateway', [hub.service, desks.claims.service]);
    this.#scheduler = tenant.engine.scheduler(tenant.ctx);
    hub.onAny('ready', (id) => (id === undefined ? desks.claims.lookAgain() : desks.claims.ready(id)));
    const caller = { ...keyOf('operator'), tenant: tenant.row.name };
    this.call = makeClient<TenantEndpoints>({
      base: 'http://rival',
      fetch: (request) => engine.fetch(request, tenant.ctx, caller),
    });
  }

  static async start(fleet: Fleet): Promise<Rival> {
    const row = fleet.tenants[0]?.row;
    if (row === undefined) throw new Error('the fleet has no tenant');
    const { address } = fleet.control;
    const hub = new WakeHub(address, silent);
    const faults: unknown[] = [];
    const loader = fleet.newLoader({
      engines: [engine],
      contextFor: ({ id, name }, pool) => {
        const base = makeContext({ address, pool, time: fleet.time });
        const log = { ...silent, error: (fields: { err?: unknown }) => void faults.push(fields.err) };
        return { ...base, log, tenant: { id, name }, hints: postgresBroker(hub).hintsOf(id) };
      },
    });
    const { db: control } = fleet.control;
    const heartbeatTenants = new HeartbeatTenants(control, silent);
    const turns = new BatchTurns();
    const claims = new ClaimDesk({ loader, control, heartbeatTenants, turns, log: silent, leaseMs });
    const desks = { claims, reports: new ReportDesk({ loader, turns, claims }), faults };
    const rival = new Rival(await loader.open(row), hub, desks);
    await rival.#gateway.start();
    await rival.#scheduler.start();
    return rival;
  }

  async restartScheduler(): Promise<void> {
    await this.#scheduler.stop();
    this.#scheduler = this.tenant.engine.scheduler(this.tenant.ctx);
    await this.#scheduler.start();
  }

  async stop(): Promise<void> {
    await this.#scheduler.stop();
    await this.#gateway.stop();
  }
}

export interface RivalryOptions {
  readonly seed: number;
  /** Number of live fans, and of instants per fan. The same number of fans is caught up from the past. */
  readonly fans: number;
  readonly instants: number;
}

export interface Outcome {
  readonly faults: readonly string[];
  readonly runs: number;
  readonly handedOutAgain: number;
}

const sloppyWorkers = 4;
const stepMs = 200;

export async function rivalry(options: RivalryOptions): Promise<Outcome> {
  const fleet = await makeFleet(['contested']);
  const rivals = [await Rival.start(fleet), await Rival.start(fleet)];
  const dice = makeDice(options.seed);
  const reported = new Set<string>();
  const workers = Array.from({ length: sloppyWorkers }, () => new SloppyWorker(rivals, dice, reported));
  try {
    const scene = { fleet, rivals, dice, workers, reported, observed: [] };
    return await fight(scene, options);
  } finally {
    await Promise.all(workers.map((worker) => worker.stop()));
    await Promise.all(rivals.map((rival) => rival.stop()));
    await fleet.close();
  }
}

interface Scene {
  readonly fleet: Fleet;
  readonly rivals: readonly Rival[];
  readonly dice: Dice;
  readonly workers: readonly SloppyWorker[];
  /** All reports that workers ever sent, as `run lease state`. */
  readonly reported: ReadonlySet<string>;
  /** Limits that were found exceeded. */
  readonly observed: string[];
}

async function fight(scene: Scene, options: RivalryOptions): Promise<Outcome> {
  const { fleet, rivals, workers, dice } = scene;
  const db = onPool(dice.next(rivals).tenant.ctx.pool);
  const { plans, endMs } = await begin(scene, options);
  const ids = plans.map((plan) => plan.jobId);
  for (let step = 1; fleet.time.now() < endMs; step++) {
    await tick(fleet);
    if (step % 20 === 0) dice.next(workers).die();
    if (step % 30 === 0) await toggle(scene, dice.next(ids));
    if (step % 100 === 0) await dice.next(rivals).restartScheduler();
    if (step % 5 === 0) scene.observed.push(...(await findExceededLimits(db)));
  }
  for (const id of ids) await setPaused(scene, id, false);
  await Promise.all(workers.map((worker) => worker.behave()));
  const late = await until('all is done', () => tick(fleet).then(() => isQuiet(db, plans)), 60_000).then(
    () => [],
    (error: unknown) => [String(error)],
  );
  const background = rivals.flatMap((rival) => rival.faults).map(String);
  const faults = [
    ...late,
    ...(await faultsOf(db, plans)),
    ...(await findUnreportedResults(db, scene)),
    ...scene.observed,
    ...background,
  ];
  const { runs, again } = await db.one<{ runs: number; again: number }>(sql`
    select count(*) as runs, coalesce(sum(lease - 1), 0) as again from run`);
  return { faults, runs, handedOutAgain: again };
}

/** Moves the clock, at twenty times real speed. */
async function tick({ time }: Fleet): Promise<void> {
  await sleep(stepMs / 20);
  time.advance(stepMs);
}

async function begin(scene: Scene, { fans, instants }: RivalryOptions): Promise<{ plans: Plan[]; endMs: number }> {
  const { fleet, rivals, dice } = scene;
  const nowMs = fleet.time.now();
  const numbers = Array.from({ length: fans }, (_, i) => i);
  const live = numbers.map((i) =>
    fan(`live ${i}`, { firstMs: nowMs, count: instants, limited: i === 0, paused: true }),
  );
  const policies = ['earliest', 'latest', 'random'] as const;
  const past = numbers.map((i) =>
    fan(`past ${i}`, { firstMs: nowMs - 86_400_000, count: instants, catchup: dice.next(policies) }),
  );
  const meet = meeting('meeting', live.slice(0, 2));
  await dice.next(rivals).call('PUT /api/projects', { body: { name: chaosProject } });
  await dice
    .next(rivals)
    .call('PUT /api/pools/{name}', { params: { name: limits.pool }, body: { places: limits.chairs } });
  const plans: Plan[] = [];
  for (const each of [...live, meet, ...past]) {
    const { id } = await dice.next(rivals).call('PUT /api/jobs', { body: each.document });
    plans.push({ jobId: id, instants: each.instants });
  }
  // unpaused only now, because the meeting would miss earlier firings
  for (const { jobId } of plans) await setPaused(scene, jobId, false);
  return { plans, endMs: fleet.time.now() + instants * everyMs };
}

async function setPaused({ rivals, dice }: Scene, id: string, paused: boolean): Promise<void> {
  await dice.next(rivals).call('PUT /api/jobs/{id}/paused', { params: { id }, body: { paused } });
}

async function toggle(scene: Scene, id: string): Promise<void> {
  const paused = await scene.dice.next(scene.rivals).call('GET /api/jobs/{id}/paused', { params: { id } });
  await setPaused(scene, id, !paused);
}

/** Finds results that no worker reported under the lease that counted (I3). */
async function findUnreportedResults(db: Db, { reported }: Scene): Promise<string[]> {
  const rows = await db.rows<{ id: string; lease: number; state: string }>(sql`
    select id, lease, state from run where reason is null`);
  return rows
    .map(({ id, lease, state }) => `${id} ${lease} ${state}`)
    .filter((result) => !reported.has(result))
    .slice(0, 5)
    .map((result) => `no worker reported ${result}`);
}

/** Compares the runs and instants of one snapshot with the limits. */
async function findExceededLimits(db: Db): Promise<string[]> {
  const seen = await db.one<{ slow: number; instants: number }>(sql`
    select count(*) filter (where task.name = 'slow') as slow,
           count(distinct live.instant) as instants
      from live
      join task on task.id = live.task_id
     where live.worker_id is not null and task.gates is not null`);
  return [
    ...(seen.slow > limits.slow ? [`${seen.slow} runs of a task at once, limit ${limits.slow}`] : []),
    ...(seen.instants > limits.instants
      ? [`${seen.instants} instants of a job at once, limit ${limits.instants}`]
      : []),
  ];
}
