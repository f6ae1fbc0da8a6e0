/** A control database, tenants with real engines behind a real loader, and jobs whose runs can be made ready. */
import type { Engine } from '../../src/contract/engine.ts';
import { engine } from '../../src/engine/engine.ts';
import { newId } from '../../src/kernel/id.ts';
import { silent } from '../../src/kernel/log.ts';
import { type Db, onPool, sql } from '../../src/kernel/sql.ts';
import { registerTenant, type TenantRow, workersOfKey } from '../../src/control/queries.ts';
import type { EngineSource } from '../../src/loader/engines/engines.ts';
import { Loader, type LoaderOptions, type OpenTenant } from '../../src/loader/loader.ts';
import { onDatabase } from '../../src/postgres/address.ts';
import { WakeHub } from '../../src/postgres/wake.ts';
import { makeContext, type TestContext } from './engine-context.ts';
import {
  type ControlDatabase,
  type FreshDatabase,
  makeControlDatabase,
  makeInstalledTenant,
} from './fresh-database.ts';
import { HandTime } from './hand-time.ts';
import { activate, applyDocument, makeProject } from './pipeline.ts';

export interface TestTenant {
  readonly row: TenantRow;
  /** Makes that many runs of one task ready; returns their ids. */
  ready(runs: number): Promise<string[]>;
  /** Makes a run of a process ready whose environment refers to the stash entry `key`. */
  readyWithSecret(): Promise<void>;
  readonly db: () => Promise<Db>;
}

export interface Fleet {
  readonly control: ControlDatabase;
  /** The wake hub of all its loaders; it is not connected, so wake-ups stay within this process. */
  readonly hub: WakeHub;
  readonly loader: Loader;
  readonly time: HandTime;
  readonly tenants: readonly TestTenant[];
  readonly contexts: ReadonlyMap<string, TestContext>;
  /** Every call of an engine, in order: `claim a`, `report b`… */
  readonly asked: string[];
  /** Engines await this before they answer; tests may replace it. */
  gate: (asked: string) => Promise<void>;
  newLoader(more?: LoaderChoices): Loader;
  close(): Promise<void>;
}

/** Engines may also be given as a list. */
type LoaderChoices = Partial<Omit<LoaderOptions, 'engines'>> & {
  readonly engines?: readonly Engine[] | EngineSource;
};

function isList(engines: readonly Engine[] | EngineSource): engines is readonly Engine[] {
  return Array.isArray(engines);
}

function sourceOf(engines: readonly Engine[] | EngineSource): EngineSource {
  if (!isList(engines)) return engines;
  return {
    async find(version) {
      const found = engines.find((candidate) => candidate.version === version);
      return found === undefined ? { ok: false, detail: 'it is not here' } : { ok: true, engine: found };
    },
  };
}

/** Opens a tenant by its current or a former name. */
export async function opened(loader: Loader, name: string): Promise<OpenTenant> {
  return loader.open(await loader.findAlways(name));
}

export async function makeFleet(names: readonly string[]): Promise<Fleet> {
  const control = await makeControlDatabase();
  const databases = await Promise.all(names.map(() => makeInstalledTenant()));
  const rows = await Promise.all(names.map((name, i) => register(control.db, name, databases[i])));
  const time = new HandTime('2026-06-01T00:00:00Z');
  const contexts = new Map<string, TestContext>();
  const asked: string[] = [];
  const loaders: Loader[] = [];
  const hub = new WakeHub(control.address, silent);
  const newLoader = ({ engines = [makeRecordingEngine()], ...more }: LoaderChoices = {}): Loader => {
    const loader = new Loader({
      control: control.db,
      hub,
      engines: sourceOf(engines),
      addressOf: (row) => onDatabase(control.address, row.database, row.databaseOid),
      contextFor: (row, pool) => {
        const made = makeContext({ address: control.address, pool, time });
        const context = {
          ...made,
          tenant: { id: row.id, name: row.name },
          directory: { ...made.directory, workersOfKey: (keyId: string) => workersOfKey(control.db, keyId) },
        };
        contexts.set(row.id, context);
        return context;
      },
      application: 'fleet',
      poolSize: 4,
      allowPooler: false,
      log: silent,
      ...more,
    });
    loaders.push(loader);
    return loader;
  };
  const makeRecordingEngine = (): Engine => ({
    ...engine,
    runs: {
      ...engine.runs,
      claim: async (ctx, polls) => {
        const line = `claim ${ctx.tenant.name} ${polls.length}`;
        asked.push(line);
        const runs = await engine.runs.claim(ctx, polls);
        await fleet.gate(line);
        return runs;
      },
      report: async (ctx, reports, polls) => {
        const line = `report ${ctx.tenant.name} ${reports.length}`;
        asked.push(line);
        await fleet.gate(line);
        return engine.runs.report(ctx, reports, polls);
      },
      cancellations: async (ctx) => {
        const line = `cancellations ${ctx.tenant.name}`;
        asked.push(line);
        await fleet.gate(line);
        return engine.runs.cancellations(ctx);
      },
    },
  });
  const loader = newLoader();
  const fleet: Fleet = {
    control,
    hub,
    loader,
    time,
    tenants: rows.map((row) => testTenant(loader, row, time)),
    contexts,
    asked,
    gate: async () => {},
    newLoader,
    async close() {
      await Promise.all(loaders.map((each) => each.closeAll()));
      await control.close();
      await Promise.all(databases.map((database) => database.close()));
    },
  };
  return fleet;
}

async function register(db: Db, name: string, database: FreshDatabase | undefined): Promise<TenantRow> {
  const row = { id: newId(), name, database: database?.address.database ?? '' };
  await registerTenant(db, { ...row, at: new Date() });
  return { ...row, desired: 'on' };
}

function testTenant(loader: Loader, row: TenantRow, time: HandTime): TestTenant {
  let task: Promise<string> | undefined;
  let secretTask: Promise<string> | undefined;
  let day = 0;
  const db = async (): Promise<Db> => onPool((await loader.open(row)).ctx.pool);
  return {
    row,
    db,
    async readyWithSecret() {
      const on = await db();
      secretTask ??= makeTask(on, 'secret', { process: { command: ['true'], env: { X: { stash: 'key' } } } });
      await activate({ db: on, time }, [await secretTask], [new Date(Date.UTC(2027, 0, ++day)).toISOString()]);
    },
    async ready(runs) {
      const on = await db();
      task ??= makeTask(on, 'j', {});
      const id = await task;
      const instants = Array.from({ length: runs }, () => new Date(Date.UTC(2026, 0, ++day)).toISOString());
      return activate(
        { db: on, time },
        instants.map(() => id),
        instants,
      );
    },
  };
}

async function makeTask(db: Db, job: string, runtime: object): Promise<string> {
  await makeProject(db, 'p');
  const tasks = [{ name: 'a', ...runtime }];
  const { id } = await applyDocument(db, { project: 'p', name: job, description: '', tasks });
  return (await db.one<{ id: string }>(sql`select id from task where job_id = ${id}`)).id;
}

export async function setDesired(control: ControlDatabase, tenant: string, desired: 'on' | 'off'): Promise<void> {
  await control.db.exec(sql`update tenant set desired = ${desired} where id = ${tenant}`);
}

/** Writes the row of the tenant's scheduler. */
export async function writeSchedulerStatus(
  fleet: Pick<Fleet, 'control'>,
  { row }: Pick<TestTenant, 'row'>,
  { ready, beatAt = new Date() }: { ready: boolean; beatAt?: Date },
): Promise<void> {
  await fleet.control.db.exec(sql`
    insert into scheduler (tenant_id, id, host_id, order_no, phase, engine, ready, changed_at, beat_at)
    values (${row.id}, ${newId()}, ${newId()}, 1, 'running', '0', ${ready}, ${beatAt}, ${beatAt})
    on conflict (tenant_id) do update set ready = excluded.ready, beat_at = excluded.beat_at`);
}
