/**
 * Executions of flows under way while their conductors, two processes on one tenant, die at checkpoints, freeze, and lose their
 * connections. The functions write down each call; the oracle reads the history of each execution in the end.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Installation, openInstallation } from '../../src/app/installation.ts';
import { prepareDatabases } from '../../src/app/prepare-databases.ts';
import { readConfig } from '../../src/config.ts';
import type { Delivered } from '../../src/contract/flow-messages.ts';
import { silent } from '../../src/kernel/log.ts';
import { type Db, onPool, sql } from '../../src/kernel/sql.ts';
import { launchMessage, signal } from '../harness/flows/conducting.ts';
import { storeFlow } from '../harness/flows/store-driver.ts';
import { type FreshDatabase, makeFreshDatabase } from '../harness/fresh-database.ts';
import { until } from '../harness/until.ts';
import { RoleProcess } from './role-process.ts';

/** Each call takes a moment, so that a process that dies has some under way. */
const functions = `
  import { appendFileSync } from 'node:fs';
  const step = (name) => async ({ n }, { key }) => {
    appendFileSync(process.env.TEST_FOLDER + '/calls', name + ' ' + key + '\\n');
    await new Promise((done) => setTimeout(done, (n * 37) % 60));
    return n + 1;
  };
  export const one = step('one');
  export const two = step('two');
  export const three = step('three');
`;

const task = (name: string): object => ({ task: name, with: { n: '$(f.n)' }, result: 'f.n' });
const document = {
  flow: 'walk',
  steps: [
    task('one'),
    { wait: '120ms' },
    { parallel: [task('two'), { wait: { on: { signal: 'go' } } }], rest: 'wait' },
    task('three'),
  ],
};
const callsOfExecution = 3;

export class FlowWalk {
  readonly installation: Installation;
  readonly conductors: readonly RoleProcess[];
  readonly db: Db;
  readonly #databases: readonly FreshDatabase[];
  readonly #home: string;
  readonly #tenant: string;
  readonly #launched: string[] = [];

  private constructor(
    parts: { readonly installation: Installation; readonly home: string; readonly databases: readonly FreshDatabase[] },
    tenant: { readonly id: string; readonly db: Db },
    env: Readonly<Record<string, string>>,
  ) {
    this.installation = parts.installation;
    this.#home = parts.home;
    this.#databases = parts.databases;
    this.#tenant = tenant.id;
    this.db = tenant.db;
    const args = ['conductor', '--functions', join(parts.home, 'functions.mjs')];
    this.conductors = ['first', 'second'].map(
      (name) => new RoleProcess({ name: `conductor ${name}`, args, env, mayEnd: () => false }),
    );
  }

  static async start(): Promise<FlowWalk> {
    const [control, tenant] = await Promise.all([makeFreshDatabase(), makeFreshDatabase()]);
    const home = await mkdtemp(join(tmpdir(), 'millrace-flows-'));
    await writeFile(join(home, 'functions.mjs'), functions);
    const env = {
      MILLRACE_HOME: home,
      MILLRACE_DATABASE_URL: control.address.url,
      MILLRACE_DEFAULT_DATABASE_URL: tenant.address.url,
      MILLRACE_SECRET_KEY: 'a secret key of the walk of flows of two conductors',
      MILLRACE_TASK_USER: 'root',
      MILLRACE_CONDUCTOR_CALLS: '6',
      MILLRACE_LOG: 'warn',
      TEST_FOLDER: home,
    };
    const config = readConfig(env);
    await prepareDatabases(config, control.address, { log: silent, onUpgrade: undefined });
    const installation = await openInstallation({
      config,
      log: silent,
      role: 'tests',
      controlAddress: control.address,
      secretKeys: [env.MILLRACE_SECRET_KEY],
      poolSize: 4,
    });
    const { ctx } = await installation.loader.open(await installation.loader.find('default'));
    const db = onPool(ctx.pool);
    await storeFlow(db, document);
    const parts = { installation, home, databases: [control, tenant] };
    const walk = new FlowWalk(parts, { id: ctx.tenant.id, db }, env);
    await walk.registered(2);
    return walk;
  }

  get control(): Db {
    return this.installation.control;
  }

  get faults(): string[] {
    return this.conductors.flatMap(({ faults }) => faults);
  }

  /** Waits until so many conductors are alive. */
  async registered(count: number): Promise<void> {
    await until(`${count} conductors are alive`, async () => {
      const rows = await this.control.rows(sql`
        select id from conductor where lost_at is null and beat_at > clock_timestamp() - interval '3 s'`);
      return rows.length >= count || undefined;
    });
  }

  /** Launches executions, and sends each its signal. */
  async launch(count: number): Promise<void> {
    const launches = Array.from({ length: count }, () => launchMessage('walk', { n: 1 }));
    const ids = launches.map(({ execution }) => execution);
    expectAccepted(await this.#deliver(launches));
    this.#launched.push(...ids);
    expectAccepted(await this.#deliver(ids.map((id) => signal(id, 'go'))));
  }

  #deliver(messages: Parameters<Installation['conductors']['deliver']>[1]): Promise<Delivered[]> {
    return this.installation.conductors.deliver(this.#tenant, messages, 5_000);
  }

  async allDone(): Promise<void> {
    await until('all executions are done', async () => {
      const { left } = await this.db.one<{ left: number }>(sql`
        select count(*)::integer as left from execution where status <> 3`);
      return left === 0 || undefined;
    });
  }

  /** A conductor dies at a checkpoint, and comes back. */
  async dieAt(conductor: RoleProcess, checkpoint: string): Promise<void> {
    await conductor.restart({ MILLRACE_CHECKPOINT: checkpoint });
    await this.registered(2);
    const ended = conductor.ending();
    let isOver = false;
    void ended.then(() => (isOver = true));
    // the other one may take all of a batch
    for (let batch = 0; batch < 30 && !isOver; batch++) {
      await this.launch(20);
      await Promise.race([ended, this.allDone()]);
    }
    if (!isOver) throw new Error(`it has not passed ${checkpoint}`);
    const { signal: how, code } = await ended;
    if (how !== 'SIGKILL') throw new Error(`it ended by ${how ?? code}: ${conductor.output().slice(-500)}`);
    await conductor.restart();
    await this.registered(2);
  }

  /** What is wrong in the end: one sentence each. */
  async faultsOfExecutions(): Promise<string[]> {
    const rows = await this.db.rows<{ id: string; rev: number; commits: number; fields: number; early: number }>(sql`
      select e.id, e.rev, count(c.rev)::integer as commits,
             count(*) filter (
               where c.entry #>> '{m,planned}' is not null
                 and c.at < to_timestamp((c.entry #>> '{m,planned}')::double precision / 1000))::integer as early
        from execution e
        join commit c on c.execution_id = e.id
       group by e.id`);
    const calls = (await readFile(join(this.#home, 'calls'), 'utf8')).trim().split('\n');
    const keys = new Set(calls.map((line) => line.split(' ')[1]));
    const faults = rows.flatMap(({ id, rev, commits, early }) => [
      ...(rev === commits ? [] : [`${id} is at revision ${rev}, and has ${commits} commits`]),
      ...(early === 0 ? [] : [`a timer of ${id} was early`]),
    ]);
    if (rows.length !== this.#launched.length) faults.push(`${rows.length} executions of ${this.#launched.length}`);
    const expected = callsOfExecution * this.#launched.length;
    if (keys.size !== expected) faults.push(`${keys.size} keys of calls instead of ${expected}`);
    return faults;
  }

  async close(): Promise<void> {
    await Promise.all(this.conductors.map((each) => each.release()));
    await this.installation.close();
    await Promise.all(this.#databases.map((each) => each.close()));
    await rm(this.#home, { recursive: true, force: true });
  }
}

function expectAccepted(delivered: readonly Delivered[]): void {
  const bad = delivered.find(({ outcome }) => outcome !== 'accepted' && outcome !== 'committed');
  if (bad !== undefined) throw new Error(`${bad.outcome}: ${bad.code} ${bad.detail}`);
}
