/**
 * An installation whose every part is a process of its own, as on several machines: a PostgreSQL server, an API, a
 * launcher, hosts (one runs the tenant, the others are idle), workers, couriers and conductors. Leases are short, so that losing one
 * takes seconds. With `flows`, one `up` is API, launcher, host and conductor.
 */
import { countHeld } from '../harness/errands.ts';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Pool } from 'pg';
import type { Client } from '../../src/http/client.ts';
import { machine } from '../../src/kernel/process/machine.ts';
import { silent } from '../../src/kernel/log.ts';
import { markCourierLost } from '../../src/control/courier-queries.ts';
import { markHostLost } from '../../src/hosts/host-queries.ts';
import { type Db, onClient, onPool, sql } from '../../src/kernel/sql.ts';
import { addressOfSocket } from '../../src/postgres/address.ts';
import { type EmbeddedServer, startEmbedded } from '../../src/postgres/embedded/embedded.ts';
import { openPool } from '../../src/postgres/pool/pool.ts';
import type { Endpoints } from '../harness/product.ts';
import { makeTaskFile, makeTaskFolder } from '../harness/task-folder.ts';
import { until } from '../harness/until.ts';
import { retryingClient } from './retrying-client.ts';
import { faultsOf, type Plan, waitUntilQuiet } from './oracle.ts';
import { RoleProcess } from './role-process.ts';
import { flowFunctions, functionsOfUp } from './flows/workload.ts';
import { taskFunctions } from './task-functions.ts';
import { chaosProject, type Fan, limits } from './workload.ts';

const rootKey = 'the-root-key-of-the-chaos-suites';
/** Without fsync, commits survive everything but a crash of the machine; without synchronous_commit they would not. */
const settings = { fsync: 'off', full_page_writes: 'off' };
const plain = { application: 'chaos', max: 3, allowPooler: false, onError: () => {} } as const;
const answerWithinMs = 10_000;
/** Longer than any lease, sweep or retry, and than the longest pause after repeated crashes (a minute). */
const stalledMs = 75_000;

export interface InstallationOptions {
  readonly hosts: number;
  readonly workers: number;
  readonly couriers?: number;
  /** Executes flows: an `up` with a conductor, and so many conductors beside it. */
  readonly flows?: { readonly conductors: number };
  readonly leaseMs: number;
  /** Further settings of all processes. */
  readonly env?: Readonly<Record<string, string>>;
}

export class ChaosInstallation {
  readonly api: RoleProcess;
  /** Missing with `flows`. */
  readonly launcher: RoleProcess | undefined;
  readonly hosts: readonly RoleProcess[];
  readonly workers: readonly RoleProcess[];
  readonly couriers: readonly RoleProcess[];
  readonly conductors: readonly RoleProcess[];
  readonly url: string;
  readonly call: Client<Endpoints>;
  /** Direct access to the tenant's database, past all processes that are killed. */
  readonly db: Db;
  readonly #plans = new Map<string, Plan>();
  readonly #home: string;
  /** Holds the task functions and their evidence. */
  readonly #folder: string;
  readonly #control: Pool;
  readonly #pool: Pool;
  #server: EmbeddedServer;
  #databaseAway = 0;

  private constructor(
    places: { home: string; folder: string },
    server: EmbeddedServer,
    port: number,
    options: InstallationOptions,
  ) {
    const { home, folder } = places;
    this.#home = home;
    this.#folder = folder;
    this.#server = server;
    const pool = (database: string, schema: 'control' | 'millrace'): Pool =>
      openPool({ address: addressOfSocket(server.connection, database), schema, ...plain });
    this.#control = pool('millrace', 'control');
    this.#pool = pool('millrace_default', 'millrace');
    this.db = onPool(this.#pool);
    const url = `http://127.0.0.1:${port}`;
    this.url = url;
    this.call = retryingClient(url, rootKey);
    const env = {
      MILLRACE_HOME: home,
      MILLRACE_LOG: 'warn',
      MILLRACE_LEASE: `${options.leaseMs}ms`,
      MILLRACE_DRAIN: '1s',
      MILLRACE_BUS_ALLOW_HTTP: 'true',
      MILLRACE_BUS_ALLOW_CIDRS: '127.0.0.0/8',
      MILLRACE_DATABASE_URL: addressOfSocket(server.connection, 'millrace').url,
      MILLRACE_ROOT_KEY: rootKey,
      MILLRACE_KEY: rootKey,
      CHAOS_EVIDENCE: this.#evidenceFile,
      CHAOS_CALLS: this.#callsFile,
      ...options.env,
    };
    const role = (name: string, ...args: readonly string[]): RoleProcess =>
      new RoleProcess({ name, args, env, mayEnd: () => this.#databaseAway > 0 });
    const functions = join(folder, 'functions.mjs');
    const { flows } = options;
    const upArgs = ['up', '--no-worker', '--functions', join(folder, 'functions-of-up.mjs')];
    this.api = role('api', ...(flows === undefined ? ['api'] : upArgs), '--port', String(port));
    this.launcher = flows === undefined ? role('launcher', 'launcher', '--no-hosts') : undefined;
    this.hosts = numbered('host', options.hosts).map((name) => role(name, 'host'));
    this.workers = numbered('worker', options.workers).map((name) =>
      role(name, 'worker', '--url', url, '--functions', functions, '--name', name),
    );
    this.couriers = numbered('courier', options.couriers ?? 0).map((name) => role(name, 'courier'));
    this.conductors = numbered('conductor', flows?.conductors ?? 0).map((name) =>
      role(name, 'conductor', '--functions', join(folder, 'flow-functions.mjs')),
    );
  }

  static async start(options: InstallationOptions): Promise<ChaosInstallation> {
    const home = await mkdtemp(join(tmpdir(), 'millrace-chaos-'));
    const folder = await makeTaskFolder();
    await writeFile(join(folder, 'functions.mjs'), taskFunctions);
    await writeFile(join(folder, 'flow-functions.mjs'), flowFunctions);
    await writeFile(join(folder, 'functions-of-up.mjs'), functionsOfUp);
    for (const name of ['evidence', 'calls']) await makeTaskFile(join(folder, name));
    const server = await startEmbedded({ home, log: silent, settings });
    const installation = new ChaosInstallation({ home, folder }, server, await freePort(), options);
    try {
      await installation.call('PUT /api/projects', { body: { name: chaosProject } });
      await installation.call('PUT /api/pools/{name}', {
        params: { name: limits.pool },
        body: { places: limits.chairs },
      });
      return installation;
    } catch (error) {
      await installation.close();
      throw new Error(installation.output(), { cause: error });
    }
  }

  get roles(): RoleProcess[] {
    const launchers = this.launcher === undefined ? [] : [this.launcher];
    return [this.api, ...launchers, ...this.hosts, ...this.workers, ...this.couriers, ...this.conductors];
  }

  /** One request as root, as a person would send it. */
  ask(method: string, path: string, body?: object): Promise<Response> {
    const headers = { authorization: `Bearer ${rootKey}` };
    const signal = AbortSignal.timeout(answerWithinMs);
    return fetch(`${this.url}${path}`, {
      method,
      headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
      signal,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  /** Applies the job and expects all its instants from now on. Returns its id. */
  async apply({ name, document, instants }: Fan): Promise<string> {
    const { id: jobId } = await this.call('PUT /api/jobs', { body: document });
    this.#plans.set(name, { jobId, instants });
    return jobId;
  }

  async pause(jobId: string, paused: boolean): Promise<void> {
    await this.call('PUT /api/jobs/{id}/paused', { params: { id: jobId }, body: { paused } });
  }

  /** Stops the server, `immediate` without a checkpoint, as in a crash, and starts it again. */
  async restartDatabase(mode: 'immediate' | 'fast' = 'immediate'): Promise<void> {
    this.#databaseAway++;
    try {
      await this.#server.stop(mode);
      this.#server = await startEmbedded({ home: this.#home, log: silent, settings });
      await this.waitForDatabase();
    } finally {
      this.#databaseAway--;
    }
  }

  /** Kills one backend with kill -9, upon which PostgreSQL ends all others and recovers. */
  async crashDatabase(): Promise<void> {
    this.#databaseAway++;
    try {
      const victim = await this.#pool.connect();
      const lost = new Promise((resolve) => victim.once('error', resolve));
      const { pid } = await onClient(victim).one<{ pid: number }>(sql`select pg_backend_pid() as pid`);
      process.kill(pid, 'SIGKILL');
      await lost;
      victim.release(true);
      await this.waitForDatabase();
    } finally {
      this.#databaseAway--;
    }
  }

  /** Terminates about this share of the connections whose application name is like `like`. */
  async terminateBackends(like: string, share = 1): Promise<void> {
    await this.db.rows(sql`
      select pg_terminate_backend(pid)
        from pg_stat_activity
       where application_name like ${like} and random() < ${share}::float8`);
  }

  /**
   * Reports a host's process as ended, as its parent process would, and requests its tenant at once. Timeouts of silent
   * hosts and pauses after crashes are tested elsewhere.
   */
  async buryHost(pid: number): Promise<void> {
    await markHostLost(onPool(this.#control), { machine, pid });
    await this.call('POST /api/tenants/{name}/start', { params: { name: 'default' } });
  }

  /** Reports a courier's process as ended, as `up` would. Its errands come back at once. */
  async buryCourier(pid: number): Promise<void> {
    await this.forgetCourier(pid);
    await markCourierLost(onPool(this.#control), { machine, pid });
  }

  /** Lets a courier's errands come back at once. How silent couriers are noticed is tested elsewhere. */
  async forgetCourier(pid: number): Promise<void> {
    const id = await this.#courierId(pid);
    await this.db.exec(sql`update errand_hold set taken_at = '-infinity' where worker = ${id}`);
    await this.db.exec(sql`delete from errand_worker where id = ${id}`);
  }

  async errandsHeld(pid: number): Promise<number> {
    return countHeld(this.db, await this.#courierId(pid));
  }

  async #courierId(pid: number): Promise<string | null> {
    const row = await onPool(this.#control).maybeOne<{ id: string }>(sql`
      select id from courier where machine = ${machine} and pid = ${pid}`);
    return row?.id ?? null;
  }

  /** Conductors that have not been silent for so long that others take them for dead. */
  async livingConductors(): Promise<number> {
    const { n } = await onPool(this.#control).one<{ n: number }>(sql`
      select count(*) as n from conductor where lost_at is null and beat_at > clock_timestamp() - interval '5 s'`);
    return n;
  }

  /** Executions that wait for calls of the conductor of this process. */
  async callsUnderWay(pid: number): Promise<number> {
    const row = await onPool(this.#control).maybeOne<{ id: string }>(sql`
      select id from conductor where pid = ${pid} and lost_at is null`);
    const { n } = await this.db.one<{ n: number }>(sql`
      select count(*) as n from execution where owner = ${row?.id ?? null} and calls > 0 and status < 3`);
    return n;
  }

  /** For messages: all conductors, and their processes. */
  async describeConductors(): Promise<string> {
    const rows = await onPool(this.#control).rows<{ what: string }>(sql`
      select concat_ws(' ', id, 'of', pid, state, 'lost:', lost_at, 'silent:', clock_timestamp() - beat_at, 'tenants:', tenants,
                       'tally:', tally) as what
        from conductor`);
    const pids = this.roles.map(({ name, pid }) => `${name} is ${pid}`).join(', ');
    return [...rows.map(({ what }) => what), pids].join('\n');
  }

  async runsHeld(): Promise<number> {
    return (await this.db.one<{ n: number }>(sql`select count(*) as n from live where worker_id is not null`)).n;
  }

  /** Runs held by the newest worker of that name. */
  async runsHeldBy(name: string): Promise<number> {
    const newest = await onPool(this.#control).maybeOne<{ id: string }>(sql`
      select id from worker where name = ${name} order by first_seen_at desc limit 1`);
    return (await this.db.one<{ n: number }>(sql`select count(*) as n from live where worker_id = ${newest?.id}`)).n;
  }

  /** Number of runs that workers hold or could claim. */
  async runsUnderWay(): Promise<number> {
    return (await this.db.one<{ n: number }>(sql`select count(*) as n from live where gate is null and not parked`)).n;
  }

  async waitForDatabase(): Promise<void> {
    await until('the database answers', () => this.db.one(sql`select 1 as n`).catch(() => undefined));
  }

  /** Waits until all planned work is done, then returns all faults. */
  async faultsWhenDone(): Promise<string[]> {
    const plans = [...this.#plans.values()];
    const stalled = await waitUntilQuiet(this.db, plans, stalledMs);
    const faults = await faultsOf(this.db, plans);
    const ended = this.roles.flatMap((role) => role.faults);
    return [...stalled, ...faults, ...ended, ...(await this.#evidenceFaults())];
  }

  get #evidenceFile(): string {
    return join(this.#folder, 'evidence');
  }

  get #callsFile(): string {
    return join(this.#folder, 'calls');
  }

  /** What hosted functions have written, call by call. */
  calls(): Promise<string[]> {
    return linesOf(this.#callsFile);
  }

  /** What functions of workers have written: run and lease. */
  executed(): Promise<string[]> {
    return linesOf(this.#evidenceFile);
  }

  /** A hand-out is executed at most once, and a success was executed under the lease that counted. */
  async #evidenceFaults(): Promise<string[]> {
    const lines = await this.executed();
    const executed = new Set(lines);
    const runs = await this.db.rows<{ id: string; lease: number }>(sql`
      select run.id, run.lease
        from run
        join task on task.id = run.task_id
       where task.lane like 'function:%' and run.state = 'success'`);
    const unseen = runs.filter(({ id, lease }) => !executed.has(`${id} ${lease}`));
    return [
      ...(executed.size < lines.length ? [`${lines.length - executed.size} hand-outs were executed twice`] : []),
      ...unseen.map(({ id, lease }) => `run ${id} succeeded under lease ${lease}, which was never executed`),
    ];
  }

  output(): string {
    return this.roles.map((role) => `— ${role.name}\n${role.output().slice(-2_000)}`).join('\n');
  }

  async close(): Promise<void> {
    await Promise.all(this.roles.map((role) => role.release()));
    await Promise.all([this.#pool.end(), this.#control.end()]);
    await this.#server.stop('immediate');
    await rm(this.#home, { recursive: true, force: true });
    await rm(this.#folder, { recursive: true, force: true });
  }
}

async function linesOf(file: string): Promise<string[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text.split('\n').filter((line) => line !== '');
}

function numbered(name: string, n: number): string[] {
  return Array.from({ length: n }, (_, i) => `${name} ${i + 1}`);
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
