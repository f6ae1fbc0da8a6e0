/** The life of tenants from creation to drop, by API and by command line, against the whole product. */
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tenantEndpoints } from '../../src/api/endpoints.ts';
import { gatewayEndpoints } from '../../src/gateway/installation/endpoints.ts';
import { type Client, makeClient } from '../../src/http/client.ts';
import { newId } from '../../src/kernel/id.ts';
import { onDatabase } from '../../src/postgres/address.ts';
import { withClient } from '../../src/postgres/databases.ts';
import { bearer } from '../harness/ask.ts';
import { type Answer, type Endpoints, millrace, type Product, removeHome, startProduct } from '../harness/product.ts';
import { controlAddress } from '../harness/second-tenant.ts';
import { makeTaskFolder } from '../harness/task-folder.ts';
import { until } from '../harness/until.ts';

let product: Product;
beforeAll(async () => {
  // a short lease: runs whose worker is lost come back soon
  product = await startProduct({ env: { MILLRACE_LEASE: '6s' } });
});
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
});

const cli = (...args: string[]): Promise<Answer> => millrace(args, { home: product.home });
const tenant = (name: string) => product.call('GET /api/tenants/{name}', { params: { name } });
const below = (name: string): Client<Endpoints> =>
  makeClient<Endpoints>({ base: `${product.url}/t/${name}`, headers: bearer(product.rootKey) });
const inState = (name: string, state: string) =>
  until(`${name} is ${state}`, async () => ((await tenant(name)).state === state ? true : undefined));

/** A job whose one run must come to succeed; answers when it has. */
async function runsAJob(name: string): Promise<void> {
  const call = below(name);
  await call('PUT /api/projects', { body: { name: 'p' } });
  const body = JSON.stringify({ project: 'p', name: 'j', tasks: [{ name: 'a' }] });
  const { id } = await call('PUT /api/jobs', { body });
  const { runs } = await call('POST /api/jobs/{id}/run', { params: { id }, body: {} });
  await until('the run has succeeded', async () => {
    const { state } = await call('GET /api/runs/{id}', { params: { id: runs[0] ?? '' } });
    return state === 'success' || undefined;
  });
}

async function statement(text: string): Promise<void> {
  const address = onDatabase(await controlAddress(product.home), 'postgres');
  await withClient(address, (client) => client.query(text));
}

describe('tenant', () => {
  it('a tenant is created, runs jobs below its own prefix, is stopped, started, renamed and dropped', async () => {
    const { tenant: made, message } = await product.call('POST /api/tenants', { body: { name: 'shop' } });
    expect([made.state, message.outcome]).toEqual(['STARTED', 'started']);
    await runsAJob('shop');
    const stopped = await cli('tenant', 'stop', 'shop', '--json');
    expect(JSON.parse(stopped.stdout)).toMatchObject({
      tenant: { state: 'DISABLED', desired: 'off' },
      message: { outcome: 'stopped' },
    });
    expect(await below('shop')('GET /api/projects')).toMatchObject([{ name: 'p' }]);
    const starts = await Promise.all(Array.from({ length: 3 }, () => cli('tenant', 'start', 'shop', '--json')));
    expect(starts.map(({ code }) => code)).toEqual([0, 0, 0]);
    for (const { stdout } of starts)
      expect(JSON.parse(stdout)).toMatchObject({ tenant: { state: 'STARTED' }, message: { outcome: 'started' } });
    await product.call('POST /api/tenants/{name}/rename', { params: { name: 'shop' }, body: { name: 'store' } });
    await inState('store', 'STARTED');
    await runsAJob('store');
    await expect(below('shop')('GET /api/projects')).rejects.toMatchObject({ status: 404 });
    await product.call('DELETE /api/tenants/{name}', { params: { name: 'store' } });
    await expect(tenant('store')).rejects.toMatchObject({ status: 404 });
    expect((await product.call('GET /api/tenants')).items.map(({ name }) => name)).toEqual(['default']);
    const { items } = await product.call('GET /api/installation/audit');
    const told = items.filter(({ name }) => name === 'shop' || name === 'store').map(({ type }) => type);
    expect(told).toEqual(
      expect.arrayContaining([
        'tenant.dropped',
        'tenant.renamed',
        'tenant.started',
        'tenant.stopped',
        'tenant.created',
      ]),
    );
  });

  it('a tenant that is renamed during a run receives its heartbeats and its end', async () => {
    await product.call('POST /api/tenants', { body: { name: 'slow' } });
    const folder = await makeTaskFolder();
    const call = below('slow');
    await call('PUT /api/projects', { body: { name: 'p' } });
    // the task calls with its credential, at the address that it got, after its tenant was renamed
    const script = `
      const { appendFileSync, existsSync } = require('node:fs');
      const { MILLRACE_URL: url, MILLRACE_CREDENTIAL: key, MILLRACE_PROJECT_ID: project } = process.env;
      appendFileSync('${folder}/begun', 'x');
      const ask = async () => {
        const answer = await fetch(url + '/int-api/projects/' + project + '/config', { headers: { authorization: 'Bearer ' + key } });
        console.log(answer.status);
      };
      const wait = () => existsSync('${folder}/go') ? ask() : setTimeout(wait, 50);
      wait();`;
    const task = { name: 'a', process: { command: [process.execPath, '-e', script] } };
    const { id } = await call('PUT /api/jobs', { body: JSON.stringify({ project: 'p', name: 'j', tasks: [task] }) });
    const { runs } = await call('POST /api/jobs/{id}/run', { params: { id }, body: {} });
    const run = { params: { id: runs[0] ?? '' } };
    await until('the run has begun', () => existsSync(join(folder, 'begun')) || undefined);
    await product.call('POST /api/tenants/{name}/rename', { params: { name: 'slow' }, body: { name: 'quick' } });
    await inState('quick', 'STARTED');
    // longer than a lease lives without a heartbeat
    await sleep(12_000);
    await writeFile(join(folder, 'go'), '');
    const seen = await until('the run has ended', async () => {
      const told = await below('quick')('GET /api/runs/{id}', run);
      return told.finished_at === null ? undefined : told;
    });
    expect(seen).toMatchObject({ state: 'success', attempt: 1, lease: 1 });
    expect(await readFile(join(folder, 'begun'), 'utf8')).toBe('x');
    const log = await fetch(`${product.url}/t/quick/api/runs/${run.params.id}/logs`, {
      headers: bearer(product.rootKey),
    });
    expect(await log.text()).toBe('200\n');
    await product.call('DELETE /api/tenants/{name}', { params: { name: 'quick' } });
    await rm(folder, { recursive: true });
  }, 120_000);

  it('the command line does the same', async () => {
    expect(await cli('tenant', 'create', 'field')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('field runs') as unknown,
    });
    expect((await cli('--tenant', 'field', 'project', 'create', 'wheat')).code).toBe(0);
    expect((await cli('tenant', 'stop', 'field')).code).toBe(0);
    expect((await cli('tenant', 'why', 'field')).stdout).toContain('was stopped by');
    expect((await cli('tenant', 'start', 'field')).code).toBe(0);
    expect((await cli('tenant', 'upgrade', 'field')).stdout).toContain('already');
    expect((await cli('tenant', 'rename', 'field', 'meadow')).code).toBe(0);
    await inState('meadow', 'STARTED');
    expect((await cli('--tenant', 'meadow', 'projects')).stdout).toContain('wheat');
    expect((await cli('slots')).stdout).toMatch(/scheduler +meadow/);
    expect((await cli('tenant', 'release', 'meadow', '--yes')).code).toBe(0);
    await until('it is listed without Millrace', async () => {
      const { reason_code } = await tenant('meadow');
      return reason_code === 'not_installed' || undefined;
    });
    expect((await cli('tenant', 'adopt', 'meadow')).stdout).toContain('meadow runs');
    expect((await cli('--tenant', 'meadow', 'projects')).stdout).not.toContain('wheat');
    expect((await cli('tenant', 'drop', 'meadow', '--yes')).code).toBe(0);
    // a process for each command
  }, 120_000);

  it('a plain database becomes a tenant when the script is run in it, without a message', async () => {
    const script = await cli('tenant', 'sql');
    await statement('create database orchard');
    await until('it is discovered', async () => (await tenant('orchard').catch(() => undefined)) && true);
    const address = onDatabase(await controlAddress(product.home), 'orchard');
    await withClient(address, (client) => client.query(script.stdout));
    await inState('orchard', 'STARTED');
    // nothing told the gateway of the installation: for a second it may remember that there was none
    await until('the gateway serves it', () => below('orchard')('GET /api/projects', {}).catch(() => undefined));
    await runsAJob('orchard');
    await statement('drop database orchard');
    await until(
      'it is forgotten',
      async () =>
        await tenant('orchard').then(
          () => undefined,
          () => true,
        ),
    );
  });
});

describe('key of one tenant', () => {
  it('a tenant’s key gives no access to another tenant or the installation', async () => {
    for (const name of ['mine', 'theirs']) await product.call('POST /api/tenants', { body: { name } });
    const { key } = await product.call('POST /api/keys', { body: { name: 'k', role: 'operator', tenant: 'mine' } });
    const statusOf = async (method: string, path: string): Promise<number> => {
      const response = await fetch(product.url + path, { method, headers: bearer(key) });
      await response.body?.cancel();
      return response.status;
    };
    expect(await statusOf('GET', '/t/mine/api/projects')).toBe(200);
    expect(await statusOf('GET', '/api/explain/tenant/mine')).toBe(200);
    const filled = (path: string): string =>
      path.replaceAll(/\{(\w+)\}/g, (_, field: string) => (field === 'name' ? 'theirs' : newId()));
    const walked = Object.entries({ ...tenantEndpoints, ...gatewayEndpoints });
    for (const [call] of walked) {
      const [method = '', path = ''] = call.split(' ');
      expect([call, await statusOf(method, `/t/theirs${filled(path)}`)]).toEqual([call, 403]);
    }
    for (const [call] of walked.filter(([path]) =>
      /\/api\/(tenants|slots|engines|launcher|explain\/tenant)/.test(path),
    )) {
      const [method = '', path = ''] = call.split(' ');
      for (const prefix of ['', '/t/mine'])
        expect([call, prefix, await statusOf(method, prefix + filled(path))]).toEqual([call, prefix, 403]);
    }
  });
});
