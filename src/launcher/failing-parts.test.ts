/** A scheduler whose parts fail: it ends, is not called running before it works, and reports what only tidies up. */
import type { Pool } from 'pg';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { makeContext } from '../../test/harness/engine-context.ts';
import { textWith } from '../../test/harness/expected.ts';
import { makeInstalledTenant } from '../../test/harness/fresh-database.ts';
import { HandTime } from '../../test/harness/hand-time.ts';
import { until } from '../../test/harness/until.ts';
import type { Engine, PartFault, Scheduler } from '../contract/engine.ts';
import { engine, engineVersion } from '../engine/engine.ts';
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

const faults = { failingMs: 20_000, provenMs: 200, lookEveryMs: 20 };
const limits = { ...usualLimits, versionEveryMs: 50, schemaEveryMs: 100, faults };

/** An engine whose scheduler does nothing but report these. */
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
      onWait: (reason) => said.push(reason),
      onRunning: () => said.push('running'),
      onTrouble: (trouble) => said.push(trouble),
      ...more,
    },
    abort.signal,
  );
  return { said };
}

const broken = 'firing triggers fails since 2026-06-01T12:03:00.000Z: no such function';

it('A scheduler with a vital part that has failed every time for 20 s ends, and names the part and the error', async () => {
  let failingMs = 0;
  const { said } = run(reporting(() => (failingMs === 0 ? [] : [{ failingMs }])));
  await until('it runs', () => said.includes('running'));
  failingMs = 19_999;
  await until('it is reported', () => said.includes(broken));
  failingMs = 20_000;
  expect(await ending).toMatchObject({ code: 'failing', message: broken });
});

it('A scheduler is not called running while a vital part of it fails', async () => {
  let isBroken = true;
  const { said } = run(reporting(() => (isBroken ? [{}] : [])));
  await until('it says what it waits for', () => said.includes(broken));
  expect(said).not.toContain('running');
  isBroken = false;
  await until('it runs', () => said.includes('running'));
});

it('A scheduler that has failed before is called running once it has worked for a while', async () => {
  let looks = 0;
  const { said } = run(
    reporting(() => (++looks, [])),
    { hasFailed: true },
  );
  await until('it runs', () => said.includes('running'));
  expect(looks).toBeGreaterThanOrEqual(3);
  expect(said[0]).toBe('it runs, and has to prove itself');
});

it('A part that only tidies up ends no scheduler, and is reported until it works', async () => {
  let isBroken = true;
  const fault = { doing: 'forgetting old runs', isVital: false, failingMs: 3_600_000, message: 'no such table' };
  const { said } = run(reporting(() => (isBroken ? [fault] : [])));
  await until('it is reported', () => said.some((words) => words?.includes('forgetting old runs fails since')));
  isBroken = false;
  await until('it is over', () => said.includes(null));
  abort.abort();
  expect(await ending).toMatchObject({ code: 'stopping' });
});

it('A scheduler under which a function is renamed ends, and one without it is not started', async () => {
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
