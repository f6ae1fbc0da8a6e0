/**
 * A tenant is stopped, started, upgraded in vain and upgraded while executions of its flows (load.ts) are under way, driven by two
 * conductors. Nothing is lost (oracle.ts), nothing is committed while it is stopped, and the log of the server shows which engine
 * has committed when.
 */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pool } from 'pg';
import { engineVersion } from '../../../src/engine/engine.ts';
import { type Db, onPool, sql } from '../../../src/kernel/sql.ts';
import { openPool } from '../../../src/postgres/pool/pool.ts';
import { engineBuild, failingMigration, removeEngineBuilds } from '../../harness/engine-builds.ts';
import { TestInstallation } from '../../harness/installation.ts';
import { millrace } from '../../harness/product.ts';
import { makeTaskFile, makeTaskFolder } from '../../harness/task-folder.ts';
import { until } from '../../harness/until.ts';
import { makeDice } from '../dice.ts';
import { applyFlows, FlowLoad } from './load.ts';
import { flowFaults, waitUntilEnded } from './oracle.ts';
import { flowFunctions, lightMixture } from './workload.ts';
import { retryingClient } from '../retrying-client.ts';
import { RoleProcess } from '../role-process.ts';

const name = 'busy';
const next = '0.2.1-test.1';
const broken = '0.2.2-test.1';
const stalledMs = 75_000;
const patienceMs = 60_000;
/** Executions that end between two changes. */
const endsBetween = 30;

export class FlowTenant {
  readonly #world: TestInstallation;
  readonly #conductors: readonly RoleProcess[];
  readonly #folder: string;
  readonly #pool: Pool;
  readonly #db: Db;
  readonly #load: FlowLoad;
  readonly #over = new AbortController();
  readonly #ended = new AbortController();
  readonly #working: Promise<unknown>;

  private constructor(world: TestInstallation, folder: string, { seed, atOnce }: FlowTenantOptions) {
    this.#world = world;
    this.#folder = folder;
    const env = {
      ...world.env,
      CHAOS_CALLS: join(folder, 'calls'),
      MILLRACE_TASK_USER: 'root',
      MILLRACE_CONDUCTOR_CALLS: '6',
    };
    const args = ['conductor', '--functions', join(folder, 'functions.mjs')];
    this.#conductors = ['first', 'second'].map(
      (each) => new RoleProcess({ name: `conductor ${each}`, args, env, mayEnd: () => false }),
    );
    const plain = { application: 'chaos', max: 3, allowPooler: false, onError: () => {} };
    this.#pool = openPool({ address: world.address(name), schema: 'millrace', ...plain });
    this.#db = onPool(this.#pool);
    const call = retryingClient(`${world.url}/t/${name}`, world.env['MILLRACE_KEY'] ?? '');
    this.#load = new FlowLoad({ call, db: this.#db }, makeDice(seed), lightMixture);
    const feeding = applyFlows({ call, db: this.#db }).then(() => this.#load.feed(atOnce, this.#over.signal));
    this.#working = Promise.all([feeding, this.#load.answerUntil(this.#ended.signal)]);
    // its failure is that of the next step
    this.#working.catch(() => {});
  }

  static async start(options: FlowTenantOptions): Promise<FlowTenant> {
    const settings = { log_statement: 'all', log_parameter_max_length: '0', log_line_prefix: '@%d|%a|' };
    const world = await TestInstallation.start({ launchers: 1, settings });
    try {
      const builds = [{ version: next }, { version: broken, migrations: [failingMigration] }];
      for (const build of builds) await addEngine(world, await engineBuild(build));
      await world.started('default');
      await world.call('POST /api/tenants', { body: { name } });
      await world.started(name);
      const folder = await makeTaskFolder();
      await writeFile(join(folder, 'functions.mjs'), flowFunctions);
      await makeTaskFile(join(folder, 'calls'));
      return new FlowTenant(world, folder, options);
    } catch (error) {
      await world.close();
      throw error;
    }
  }

  /** Waits until so many are under way at once. */
  async busy(count: number): Promise<void> {
    await this.#unlessFailed(
      until(`${count} are under way`, async () => (await this.#load.underWay()) >= count || undefined, 2 * patienceMs),
    );
  }

  /** Waits until further executions have ended. */
  async goOn(): Promise<void> {
    const wanted = (await this.#countEnded()) + endsBetween;
    const isOn = async (): Promise<boolean | undefined> => (await this.#countEnded()) >= wanted || undefined;
    await this.#unlessFailed(until('executions go on', isOn, 2 * patienceMs));
  }

  /** Stops the tenant, and starts it again. Returns how many commits came while it was stopped, and how many messages were stored. */
  async pause(): Promise<{ readonly commits: number; readonly stored: number }> {
    await this.#world.call('POST /api/tenants/{name}/stop', { params: { name } });
    await this.#world.waitUntilNotRunning(name, /stopped/);
    await until('the conductors have left it', async () => (await this.#connections()) === 0 || undefined, patienceMs);
    const before = await this.#commits();
    const stored = await this.#stored();
    await until('more messages are stored', async () => (await this.#stored()) > stored || undefined, patienceMs);
    await this.#beatenTwice();
    const outcome = { commits: (await this.#commits()) - before, stored: (await this.#stored()) - stored };
    await this.#world.call('POST /api/tenants/{name}/start', { params: { name } });
    await this.#world.started(name);
    return outcome;
  }

  /** An upgrade whose last migration fails. */
  async upgradeInVain(): Promise<void> {
    const failure = await this.#upgrade(broken).catch((error: unknown) => error);
    if (!(failure instanceof Error) || !failure.message.includes('division by zero')) throw new Error(String(failure));
    await this.#world.started(name);
  }

  async upgrade(): Promise<void> {
    await this.#upgrade(next);
    await this.#world.started(name);
  }

  /** Ends the load, waits until everything has ended, and returns all faults. */
  async finish(): Promise<readonly string[]> {
    this.#over.abort();
    const stalled = await waitUntilEnded(this.#db, stalledMs);
    this.#ended.abort();
    await this.#working;
    const calls = (await readFile(join(this.#folder, 'calls'), 'utf8')).split('\n').filter((line) => line !== '');
    const faults = [...stalled, ...(await flowFaults(this.#db, this.#load, { calls, executed: [] }))];
    faults.push(...this.#conductors.flatMap((role) => role.faults), ...(await this.#engineFaults()));
    return faults.length > 0 ? [...faults, this.#world.output()] : [];
  }

  async close(): Promise<void> {
    this.#over.abort();
    this.#ended.abort();
    await Promise.all(this.#conductors.map((each) => each.release()));
    await this.#pool.end();
    await this.#world.close();
    await rm(this.#folder, { recursive: true, force: true });
    await removeEngineBuilds();
  }

  async #unlessFailed<T>(waiting: Promise<T>): Promise<T> {
    return Promise.race([waiting, this.#working.then(() => waiting)]);
  }

  #upgrade(to: string): Promise<unknown> {
    return this.#world.call('POST /api/tenants/{name}/upgrade', { params: { name }, body: { to } });
  }

  async #countEnded(): Promise<number> {
    return this.#count(sql`select count(*)::integer as n from execution where status > 2`);
  }

  #commits(): Promise<number> {
    return this.#count(sql`select count(*)::integer as n from commit`);
  }

  #stored(): Promise<number> {
    return this.#count(sql`select count(*)::integer as n from inbox`);
  }

  #connections(): Promise<number> {
    return this.#count(sql`
      select count(*)::integer as n from pg_stat_activity
       where datname = current_database() and application_name like 'millrace conductor%'`);
  }

  async #count(query: ReturnType<typeof sql>): Promise<number> {
    return (await this.#db.one<{ n: number }>(query)).n;
  }

  /** Each conductor has beaten twice, which takes it a second or two. */
  async #beatenTwice(): Promise<void> {
    for (let i = 0; i < 2; i++) {
      const before = await this.#beats();
      const isBeaten = async (): Promise<boolean | undefined> => {
        const now = await this.#beats();
        return (now.length === 2 && now.every((each) => !before.includes(each))) || undefined;
      };
      await until('each conductor has beaten', isBeaten, patienceMs);
    }
  }

  #beats(): Promise<string[]> {
    return this.#world.inControl(async (db) => {
      const rows = await db.rows<{ at: string }>(sql`select beat_at::text as at from conductor where lost_at is null`);
      return rows.map(({ at }) => at);
    });
  }

  /** No engine commits but that of the tenant: the old one until the migration has its lock, the new one from then on. */
  async #engineFaults(): Promise<string[]> {
    const log = await this.#serverLog();
    const granted = log.findLastIndex(({ text }) => text.includes('select min(relname) as found'));
    const isBy = (version: string) => (line: Line) => isCommit(line) && line.application.includes(` ${version} `);
    const [before, after] = [log.slice(0, granted), log.slice(granted)];
    const faults = [
      ...before.filter((line) => isBy(next)(line) || isBy(broken)(line)),
      ...after.filter(isBy(engineVersion)),
    ].map(({ application }) => `${application} has committed on the wrong side of the upgrade`);
    if (!before.some(isBy(engineVersion))) faults.push('the old engine has committed nothing');
    if (!after.some(isBy(next))) faults.push('the new engine has committed nothing');
    return faults.slice(0, 5);
  }

  async #serverLog(): Promise<Line[]> {
    const text = await readFile(join(this.#world.home, 'postgres.log'), 'utf8');
    return text.split('\n@').flatMap((line) => {
      const [database, application = '', ...rest] = line.replace(/^@/, '').split('|');
      return database === name ? [{ application, text: rest.join('|') }] : [];
    });
  }
}

export interface FlowTenantOptions {
  readonly seed: number;
  /** Executions under way at any time. */
  readonly atOnce: number;
}

interface Line {
  readonly application: string;
  readonly text: string;
}

/** A statement is logged when it begins. A connection that gives up waiting for the lock repeats it in its error. */
function isCommit({ text }: Line): boolean {
  return text.includes('commit_executions') && !/^(ERROR|STATEMENT): /.test(text);
}

async function addEngine({ env }: TestInstallation, folder: string): Promise<void> {
  const { code, stderr } = await millrace(['engine', 'add', folder], { env: { ...env } });
  if (code !== 0) throw new Error(stderr);
}
