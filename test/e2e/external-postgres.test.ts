/** The product on an external PostgreSQL (Debian's 15), with its roles as separate commands. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { endProcess, ExternalPostgres } from '../harness/external-postgres.ts';
import { type Endpoints, makeHomeFolder, millrace, productMain, productNode, removeHome } from '../harness/product.ts';
import { makeClient } from '../../src/http/client.ts';
import { addressOfUrl } from '../../src/postgres/address.ts';
import { withClient } from '../../src/postgres/databases.ts';
import { needs } from '../harness/services.ts';
import { until } from '../harness/until.ts';

describe.skipIf(!needs('postgresql'))('on an external PostgreSQL 15', () => {
  const server = new ExternalPostgres();
  const processes: ChildProcess[] = [];
  const homes: string[] = [];
  const url = (database: string, role?: string): string => server.url(database, role);

  beforeAll(() => server.create());
  afterAll(async () => {
    for (const child of processes.toReversed()) await endProcess(child);
    for (const home of homes) await removeHome(home);
    await server.remove();
  });

  function role(name: string, args: readonly string[], env: Record<string, string>): { output(): string } {
    const child = spawn(productNode, [productMain, name, ...args], {
      env: { ...process.env, MILLRACE_LOG: 'warn', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
    processes.push(child);
    return { output: () => output };
  }

  it('the error names the statement to run if the role may not create the database', async () => {
    await server.run('create role modest login');
    const home = await makeHomeFolder();
    homes.push(home);
    const answer = await millrace(['up', '--port', '0'], {
      home,
      env: { MILLRACE_DATABASE_URL: url('wanted', 'modest') },
    });
    expect(answer.code).not.toBe(0);
    expect(answer.stderr).toContain('create database "wanted"');
    expect(answer.stderr).toContain('create database "millrace_default"');
  });

  it('a job runs with api, launcher, host and worker in separate processes', { timeout: 60_000 }, async () => {
    const home = await makeHomeFolder();
    homes.push(home);
    const env = {
      MILLRACE_HOME: home,
      MILLRACE_DATABASE_URL: url('millrace'),
      MILLRACE_ROOT_KEY: 'root-key-for-this-test',
    };
    // started together: they migrate once
    const api = role('api', ['--port', '0'], env);
    role('launcher', [], env);
    role('launcher', [], env);
    role('host', [], env);
    const base = await until('the API prints its address', () => /at (http\S+)/.exec(api.output())?.[1]).catch(
      (error: unknown) => {
        throw new Error(api.output(), { cause: error });
      },
    );
    const call = makeClient<Endpoints>({ base, headers: { authorization: `Bearer ${env.MILLRACE_ROOT_KEY}` } });
    const { key } = await call('POST /api/keys', { body: { name: 'box', role: 'worker' } });
    role('worker', ['--url', base], { MILLRACE_KEY: key, MILLRACE_HOME: join(home, 'none') });
    await call('PUT /api/projects', { body: { name: 'outside' } });
    const tasks = [
      { name: 'first', process: { command: ['echo', 'from far away'] } },
      { name: 'second', depends: ['task/first'] },
    ];
    const { id } = await call('PUT /api/jobs', { body: JSON.stringify({ project: 'outside', name: 'job', tasks }) });
    await call('POST /api/jobs/{id}/run', { params: { id }, body: {} });
    const done = await until('both tasks succeed', async () => {
      const { items } = await call('GET /api/runs', { query: { job: id, state: 'success' } });
      return items.length === 2 ? items : undefined;
    });
    const first = done.find((item) => item.task?.name === 'first');
    expect(await call('GET /api/runs/{id}/logs', { params: { id: first?.id ?? '' } })).toContain('from far away');
    const schedulers = await until('its scheduler has been heard of', async () => {
      const listed = await call('GET /api/schedulers');
      return listed.length > 0 ? listed : undefined;
    });
    expect(schedulers).toHaveLength(1);
    const { database } = await call('GET /api/installation');
    // jit is on by default here: the sessions turn it off
    expect(database).toEqual({ version: expect.stringMatching(/^1[4-7]\./) as string, slow: [] });
  });

  it('makes ids of version 7 that sort as they were made, by a function that the planner inlines', async () => {
    await withClient(addressOfUrl(url('millrace_default')), async (client) => {
      const { rows } = await client.query<{ id: string }>(
        'select millrace.new_id()::text as id from generate_series(1, 1000) as n order by n',
      );
      const ids = rows.map(({ id }) => id);
      expect(ids).toEqual(ids.toSorted());
      expect(ids.filter((id) => !/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab]/.test(id))).toEqual([]);
      expect(Math.abs(Number.parseInt((ids[0] ?? '').replace('-', '').slice(0, 12), 16) - Date.now())).toBeLessThan(
        60_000,
      );
      const plan = await client.query<{ 'QUERY PLAN': string }>('explain (verbose) select millrace.new_id()');
      expect(plan.rows.map((row) => row['QUERY PLAN']).join('\n')).not.toContain('new_id');
    });
  });
});
