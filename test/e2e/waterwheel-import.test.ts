/**
 * A change-over from Waterwheel: `millrace import waterwheel` as a process, against a running installation. Over both systems, every
 * instant fires once, and every join and retry runs once.
 */
import { execFile, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sql } from '../../src/kernel/sql.ts';
import {
  type Answer,
  millrace,
  type Product,
  productMain,
  productNode,
  removeHome,
  startProduct,
} from '../harness/product.ts';
import { until } from '../harness/until.ts';
import { type RunRow, type Waterwheel, waterwheel } from '../harness/waterwheel.ts';
import {
  fillInstallation,
  type Installation,
  makeWaterwheelDatabase,
  type WaterwheelDatabase,
} from '../harness/waterwheel-database.ts';

let product: Product;
let client: Waterwheel;
let source: WaterwheelDatabase;
let made: Installation;
beforeAll(async () => {
  [product, source] = await Promise.all([
    startProduct({ env: { MILLRACE_DOCKER_HOST: 'unix:///nonexistent/docker.sock' } }),
    makeWaterwheelDatabase(),
  ]);
  client = waterwheel(product);
  made = await fillInstallation(source);
  await source.schedulerSeen(5);
});
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
  await source.close();
});

const importing = (...flags: string[]): Promise<Answer> =>
  millrace(['import', 'waterwheel', ...flags], { home: product.home, env: { WATERWHEEL_DB_URL: source.url } });

/** The instants of a task that have runs, with how many. */
async function runsOf(job: string, name: string): Promise<Record<string, number>> {
  const { items } = await product.call('GET /api/runs', { query: { job, limit: 1000 } });
  const counts: Record<string, number> = {};
  for (const { task, instant } of items) {
    if (task?.name === name && instant !== null) counts[instant] = (counts[instant] ?? 0) + 1;
  }
  return counts;
}

const once = (...instants: string[]): Record<string, number> =>
  Object.fromEntries(instants.map((instant) => [instant, 1]));

describe('change-over', () => {
  it('an import that is killed is completed by the next one, and nothing fires before the start', async () => {
    const child = spawn(
      productNode,
      [productMain, 'import', 'waterwheel', '--home', product.home, '--db', source.url],
      {
        stdio: 'ignore',
      },
    );
    const ended = new Promise((resolve) => child.once('exit', resolve));
    await until('some jobs are here', async () => {
      const page = await product.call('GET /api/jobs', { query: { limit: 10 } });
      return ('items' in page && page.items.length > 0) || child.exitCode !== null ? true : undefined;
    });
    child.kill('SIGKILL');
    await ended;
    const rest = await importing();
    expect([rest.code, rest.stderr]).toEqual([0, expect.stringContaining('2 projects, 9 jobs')]);
    expect(rest.stderr).toContain('Waterwheel still fires');
    const again = await importing();
    expect([again.code, again.stderr]).toEqual([0, expect.stringContaining('nothing to change')]);
    const early = await importing('--start');
    expect([early.code, early.stderr]).toEqual([1, expect.stringContaining('Waterwheel still fires')]);
    expect((await product.call('GET /api/runs', { query: {} })).items).toEqual([]);
  });

  it('what falls due between import and start fires in Waterwheel only, and the rest here, each instant once', async () => {
    // Waterwheel fires one more instant, and is then stopped
    await source.db.exec(sql`
      update trigger set latest_trigger_datetime = ${made.hour(2)} where job_id = ${made.jobs.nightly} and name = 'hourly'`);
    await source.pauseAll();
    await source.schedulerSeen(3_600);
    const rehearsal = await importing('--start', '--dry-run');
    expect([rehearsal.code, rehearsal.stdout]).toEqual([0, expect.stringMatching(/▶ shop\/nightly would be started/)]);
    const started = await importing('--start');
    expect([started.code, started.stdout]).toEqual([0, expect.stringMatching(/▶ shop\/nightly started/)]);
    expect(started.stdout).toMatch(/‖ ops\/asleep stays paused/);
    // a full hour may have passed since the fixture was filled
    const missed = await until('all that was missed has fired', async () => {
      const runs = await runsOf(made.jobs.nightly, 'export');
      return made.hour(0) in runs ? runs : undefined;
    });
    const { [made.hour(-1)]: _next, ...due } = missed;
    expect(due).toEqual(once(made.hour(1), made.hour(0)));
    expect(await runsOf(made.jobs.asleep, 'nap')).toEqual({});
  });

  it('a join that had one of two tokens runs once when the other arrives', async () => {
    const runs = await until('both instants have joined', async () => {
      const found = await runsOf(made.jobs.join, 'both');
      return made.hour(0) in found && made.hour(1) in found ? found : undefined;
    });
    expect(runs).toMatchObject(once(made.hour(1), made.hour(0)));
    expect(runs[made.hour(2)]).toBeUndefined();
  });

  it('each kind of trigger goes on by its policy', async () => {
    const { clocks } = made.jobs;
    const caughtUp: readonly (readonly [string, number[]])[] = [
      ['cron', [3, 2, 1, 0]],
      ['shuffled', [3, 2, 1, 0]],
      ['new', [2, 1, 0]],
      // half an hour after its instant
      ['later', [3, 2, 1]],
    ];
    for (const [name, hours] of caughtUp) {
      const runs = await until(`${name} has caught up`, async () => {
        const found = await runsOf(clocks, name);
        return hours.every((back) => made.hour(back) in found) ? found : undefined;
      });
      expect([name, runs]).toMatchObject([name, once(...hours.map(made.hour))]);
    }
    expect(await runsOf(clocks, 'once')).toEqual({});
    for (const back of [3, 2, 1]) expect(await runsOf(clocks, 'skips')).not.toHaveProperty([made.hour(back)]);
  });

  it('a retry that waited in Waterwheel is made here, as the next attempt', async () => {
    const [run] = await client.ended(made.jobs.flaky, made.hour(5), ['try']);
    expect(run).toMatchObject({ attempt: 3, state: 'success' });
  });

  it('tasks read the imported stash and configuration, and jobs follow each other across projects', async () => {
    const url = '${WATERWHEEL_SERVER_ADDR}int-api';
    const curl = (path: string): string => `curl -sSf -H "Authorization: Bearer $WATERWHEEL_JWT" "${url}/${path}"`;
    const script = [
      curl('stash/license'),
      curl('projects/$WATERWHEEL_PROJECT_ID/stash/db-password'),
      curl('projects/$WATERWHEEL_PROJECT_ID/config'),
    ].join('; echo; ');
    const reader = {
      project: 'shop',
      name: 'reader',
      tasks: [{ name: 'read', process: { command: ['sh', '-c', script] } }],
    };
    const { id } = await product.call('PUT /api/jobs', { body: JSON.stringify(reader) });
    const { instant } = await product.call('POST /api/jobs/{id}/run', { params: { id }, body: {} });
    const [row] = await client.ended(id, instant, ['read']);
    const log = await client.get(`/api/runs/${row?.task_run_id}/logs`);
    expect(log.text).toBe('open sesame\nhunter2\n{"kubernetes_pod_merge":{"a":1}}');
    const followers = await client.ended(made.jobs.follower, made.hour(1), ['first']);
    expect(followers.map(({ name, state }: RunRow) => [name, state])).toEqual([['first', 'success']]);
  });

  it('after the start an import changes nothing', async () => {
    const after = await importing();
    expect([after.code, after.stderr]).toEqual([0, expect.stringContaining('nothing to change')]);
    const start = await importing('--start');
    expect([start.code, start.stderr]).toEqual([0, expect.stringContaining('nothing to change')]);
  });
});

describe('docs/coming-from-waterwheel.md', () => {
  it('the commands of the change-over work, one after the other', async () => {
    await product.call('POST /api/tenants', { body: { name: 'docs' } });
    const page = await readFile(new URL('../../docs/coming-from-waterwheel.md', import.meta.url), 'utf8');
    const blocks = [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, body = '']) => body);
    expect(blocks.length).toBe(4);
    await source.db.exec(sql`update job set paused = (name = 'asleep')`);
    // its API pauses the jobs
    const freeze = `psql() { echo id-1; echo id-2; }; curl() { echo "$*" >> ${product.taskFolder}/calls; }`;
    const command = `millrace() { "${productNode}" "${productMain}" "$@"; }`;
    const script = ['set -e', command, freeze, ...blocks.slice(0, 3), 'echo frozen'].join('\n');
    const env = { MILLRACE_HOME: product.home, MILLRACE_TENANT: 'docs', WATERWHEEL_DB_URL: source.url };
    const run = (text: string) => promisify(execFile)('bash', ['-c', text], { env: { ...process.env, ...env } });
    const imported = await run(script);
    expect(imported.stdout).toMatch(/nightly would be created[\s\S]*nightly created[\s\S]*\nfrozen\n$/);
    expect(await readFile(`${product.taskFolder}/calls`, 'utf8')).toMatch(
      /"paused": true.*\/api\/jobs\/id-2\/paused\n$/,
    );
    await source.pauseAll();
    const started = await run(['set -e', command, ...blocks.slice(3)].join('\n'));
    expect(started.stdout).toMatch(/nightly would be started[\s\S]*nightly started/);
  });
});
