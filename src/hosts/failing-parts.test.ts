/** A scheduler whose parts fail: when it ends, when it counts as running, and which faults it only reports. */
import { Client, type Pool } from 'pg';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { makeContext } from '../../test/harness/engine-context.ts';
import { textWith } from '../../test/harness/expected.ts';
import { makeInstalledTenant } from '../../test/harness/fresh-database.ts';
import { HandTime } from '../../test/harness/hand-time.ts';
import { until } from '../../test/harness/until.ts';
import type { Engine, PartFault, Scheduler } from '../contract/engine.ts';
import { formatCause } from '../control/format-reason.ts';
import { engine, engineVersion } from '../engine/engine.ts';
import { clientConfig } from '../postgres/address.ts';
import { withClient } from '../postgres/databases.ts';
import type { Ending } from './singleton.ts';
import { runScheduler, type TenantSchedulerOptions, usualLimits } from './tenant-scheduler.ts';

let tenant: Awaited<ReturnType<typeof makeInstalledTenant>>;
let ending: Promise<Ending> | undefined;
beforeAll(async () => {
  tenant = await makeInstalledTenant();
});
let abort = new AbortController();
afterEach(async () => {
  abort.abort();
  await ending;
  abort = new AbortController();
});
afterAll(() => tenant.close());

const faults = { failingMs: 20_000, abandonMs: 40_000, provenMs: 200, lookEveryMs: 20, askEveryMs: 100 };
const limits = { ...usualLimits, versionEveryMs: 50, schemaEveryMs: 100, faults };

/** An engine whose scheduler does nothing but report these faults. */
function reporting(report: () => readonly Partial<PartFault>[]): Engine {
  const scheduler = (): Scheduler => ({
    name: 'reporting',
    start: async () => {},
    stop: async () => {},
    probe: async () => {},
    faults: () =>
      report().map((fault) => ({
        doing: 'firing triggers',
        isVital: true,
        since: new Date('2026-06-01T12:03:00Z'),
        failingMs: 0,
        message: 'no such function',
        ...fault,
      })),
  });
  return { ...engine, scheduler };
}

function run(with_: Engine, more: Partial<TenantSchedulerOptions> = {}): { said: (string | null)[] } {
  const said: (string | null)[] = [];
  const { address } = tenant;
  const time = new HandTime('2026-06-01T12:00:00Z');
  ending = runScheduler(
    {
      address,
      application: 'millrace tests',
      version: engineVersion,
      allowPooler: false,
      poolSize: 4,
      engines: { find: async () => ({ ok: true, engine: with_ }) },
      contextFor: (pool: Pool) => makeContext({ address, pool, time }),
      limits,
      onWait: (reason) => said.push(formatCause(reason)),
      onRunning: () => said.push('running'),
      onTrouble: (trouble) => said.push(trouble === null ? null : formatCause(trouble)),
      onHang: (reason) => said.push(`hangs: ${formatCause(reason)}`),
      ...more,
    },
    abort.signal,
  );
  return { said };
}

const broken = 'firing triggers has failed since 2026-06-01T12:03:00.000Z: no such function';

it('A scheduler with a vital part that has failed every time for 20 s ends, and names the part and the error', async () => {
  let failingMs = 0;
  const { said } = run(reporting(() => (failingMs === 0 ? [] : [{ failingMs }])));
  await until('it runs', () => said.includes('running'));
  failingMs = 19_999;
  await until('it is reported', () => said.includes(broken));
  failingMs = 20_000;
  expect(await ending).toMatchObject({ code: 'failing', message: broken });
});

it('A scheduler does not count as running while a vital part of it fails', async () => {
  let isBroken = true;
  const { said } = run(reporting(() => (isBroken ? [{}] : [])));
  await until('it reports the fault', () => said.includes(broken));
  expect(said).not.toContain('running');
  isBroken = false;
  await until('it runs', () => said.includes('running'));
});

it('A scheduler that has failed before counts as running once it has worked for a while', async () => {
  let looks = 0;
  const { said } = run(
    reporting(() => (++looks, [])),
    { hasFailed: true },
  );
  await until('it runs', () => said.includes('running'));
  expect(looks).toBeGreaterThanOrEqual(3);
  expect(said[0]).toBe('it has started, and is watched for 0.2 s before it is called running');
});

const hanging = { message: null, failingMs: 20_000, underWayMs: 20_000 };
const hung = 'hangs: firing triggers has made no progress since 2026-06-01T12:03:00.000Z: ';

/** A connection under the scheduler's name that executes a statement, as a hanging part would. */
async function statement(text: string): Promise<{ readonly pid: number; end(): Promise<void> }> {
  const client = new Client(clientConfig(tenant.address, 'millrace tests'));
  client.on('error', () => {});
  await client.connect();
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  const pid = rows[0]?.pid ?? 0;
  const done = client.query(text).catch(() => {});
  const end = async (): Promise<void> => {
    await withClient(tenant.address, (other) => other.query('select pg_terminate_backend($1)', [pid]));
    await done;
    await client.end().catch(() => {});
  };
  return { pid, end };
}

it('A scheduler with a vital part that waits for a lock is kept, names the lock holder, and later runs again', async () => {
  let report: Partial<PartFault>[] = [];
  const { said } = run(reporting(() => report));
  await until('it runs', () => said.includes('running'));
  await withClient(tenant.address, async (holder) => {
    await holder.query('begin; lock table millrace.live in share mode');
    const { rows } = await holder.query<{ pid: number }>('select pg_backend_pid() as pid');
    const waiting = await statement('begin; lock table millrace.live in row exclusive mode');
    const behind = await statement('begin; lock table millrace.live in row exclusive mode');
    const pid = rows[0]?.pid ?? 0;
    const holds = `held by backend ${pid} (millrace setup, `;
    report = [{ ...hanging, failingMs: 3_000, underWayMs: 3_000 }];
    await until('it is reported', () => said.some((words) => words?.includes(holds)));
    expect(said.some((words) => words?.startsWith('hangs'))).toBe(false);
    report = [{ ...hanging, failingMs: 3_600_000, underWayMs: 3_600_000 }];
    const words = await until('it hangs', () => said.find((each) => each?.startsWith(hung) && each.includes(holds)));
    expect(words).toContain(`; end it (select pg_terminate_backend(${pid})), or wait`);
    await waiting.end();
    await behind.end();
  });
  report = [];
  await until('it runs again', () => said.at(-1) === 'running');
});

it('A scheduler with a hanging part is kept while PostgreSQL works on its statement', async () => {
  let report: Partial<PartFault>[] = [];
  const { said } = run(reporting(() => report));
  await until('it runs', () => said.includes('running'));
  const slow = await statement('select pg_sleep(3600)');
  report = [{ ...hanging, failingMs: 3_600_000, underWayMs: 3_600_000 }];
  await until('it reports the statement', () =>
    said.find((words) => words?.startsWith(hung) && words.includes(`(backend ${slow.pid})`)),
  );
  await slow.end();
  expect(await ending).toMatchObject({
    code: 'failing',
    message: textWith('PostgreSQL works on none of its statements'),
  });
});

it('A part that hangs after failures is reported with its last error and the cause', async () => {
  let report: Partial<PartFault>[] = [];
  const { said } = run(reporting(() => report));
  await until('it runs', () => said.includes('running'));
  report = [{ failingMs: 4_000, underWayMs: 3_000 }];
  await until('it is reported', () => said.includes(`${broken}; PostgreSQL works on none of its statements`));
});

it('A failing part that is not vital does not end the scheduler, and is reported until it works', async () => {
  let isBroken = true;
  const fault = { doing: 'forgetting old runs', isVital: false, failingMs: 3_600_000, message: 'no such table' };
  const { said } = run(reporting(() => (isBroken ? [fault] : [])));
  await until('it is reported', () => said.some((words) => words?.includes('forgetting old runs has failed since')));
  isBroken = false;
  await until('the report is withdrawn', () => said.includes(null));
  abort.abort();
  expect(await ending).toMatchObject({ code: 'stopping' });
});

it('A scheduler ends when a function of its schema is renamed, and does not start while the function is missing', async () => {
  const rename = (from: string, to: string) =>
    withClient(tenant.address, (client) => client.query(`alter function millrace.${from} rename to ${to}`));
  const { said } = run(engine);
  await until('it runs', () => said.includes('running'));
  await rename('fire_triggers', 'lost');
  const lost = { code: 'no_engine', message: textWith('parts are missing (function fire_triggers)') };
  expect(await ending).toMatchObject(lost);
  run(engine);
  expect(await ending).toMatchObject(lost);
  await rename('lost', 'fire_triggers');
  const again = run(engine);
  await until('it runs again', () => again.said.includes('running'));
});
