/**
 * Access to every endpoint of both tables: without a key, with a key of every role, with a worker's key that is bound to a
 * tenant, and by a running task. docs/security.md shows the same table.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tenantEndpoints } from '../../src/api/endpoints.ts';
import { type Role, roles } from '../../src/contract/roles.ts';
import type { Endpoint } from '../../src/http/endpoint.ts';
import { newId } from '../../src/kernel/id.ts';
import { bodyFor, endpoints, accessOf } from '../harness/access-table.ts';
import { ask, bearer, type Reply } from '../harness/ask.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { until } from '../harness/until.ts';

/** What a task's credential opens of its own. */
const ofTasks = endpoints.filter(([key, endpoint]) => accessOf(key, endpoint, 'task') === 'own');

type Who = Role | 'boundWorker' | 'task';

/** A run that is under way: what its credential opens is its own. */
interface Running {
  readonly run: string;
  readonly task: string;
  readonly job: string;
  readonly project: string;
  readonly instant: string;
}

/** A worker's key opens these while a worker of it holds a run; here none does (gateway/access/worker-access.test.ts). */
const ofHeldRuns: ReadonlySet<string> = new Set(['GET /int-api/tasks/{id}', 'GET /int-api/projects/{id}/config']);
/** Not even the root key may. */
const onlyTasks = 'PUT /api/runs/{id}/result';
const instant = '2026-01-01T00:00:00.000Z';
const stashed = 'an entry';

let product: Product;
let secrets: Record<Who, string>;
let own: Running;

beforeAll(async () => {
  product = await startProduct();
  const [made, bound, started] = await Promise.all([makeKeys(), makeKey('worker', 'default'), startTask()]);
  own = started.own;
  secrets = { ...made, root: product.rootKey, boundWorker: bound.key, task: started.credential };
});
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
});

async function makeKey(role: Role, tenant?: string): Promise<{ id: string; key: string }> {
  return product.call('POST /api/keys', {
    body: { name: `a ${role}`, role, ...(tenant === undefined ? {} : { tenant }) },
  });
}

async function makeKeys(): Promise<Record<Role, string>> {
  const entries = await Promise.all(roles.map(async (role) => [role, (await makeKey(role)).key] as const));
  return Object.fromEntries(entries) as Record<Role, string>;
}

/** The task leaves its credential in a file and then waits to be killed. */
async function startTask(): Promise<{ own: Running; credential: string }> {
  const { taskFolder, call } = product;
  const { id: project } = await call('PUT /api/projects', { body: { name: 'access' } });
  const body = JSON.stringify({
    project: 'access',
    name: 'long',
    tasks: [
      {
        name: 'wait',
        process: {
          command: [
            'sh',
            '-c',
            `umask 077; echo "$MILLRACE_CREDENTIAL" > "${taskFolder}/$MILLRACE_RUN_ID"; exec sleep 600`,
          ],
        },
      },
    ],
  });
  const { id: job } = await call('PUT /api/jobs', { body });
  const { runs } = await call('POST /api/jobs/{id}/run', { params: { id: job }, body: { instant } });
  const run = runs[0] ?? '';
  const credential = await until('the task has written its credential', async () => {
    const text = await readFile(join(taskFolder, run), 'utf8').catch(() => '');
    return text.endsWith('\n') ? text.trim() : undefined;
  });
  const [task] = await call('GET /api/jobs/{id}/tasks', { params: { id: job } });
  await call('PUT /api/stash/{key}', { params: { key: stashed }, body: Buffer.from('x') });
  await call('PUT /api/projects/{id}/stash/{key}', { params: { id: project, key: stashed }, body: Buffer.from('x') });
  return { own: { run, job, project, instant, task: task?.task_id ?? '' }, credential };
}

/** What `{id}` stands for in a path. */
function idIn(path: string, ids: Running): string {
  if (path.includes('/projects/')) return ids.project;
  if (path.includes('/jobs/')) return ids.job;
  return path.includes('/tasks/') ? ids.task : ids.run;
}

/** Own ids where a call only looks or is for tasks; elsewhere an id of nothing, so that the walk changes nothing. */
function pathOf(key: string, { allow }: Endpoint, ids: Running = own): [method: string, path: string] {
  const [method = '', path = ''] = key.split(' ');
  const harmless = method === 'GET' || allow.includes('task');
  const values = {
    id: harmless ? idIn(path, ids) : newId(),
    instant: ids.instant,
    key: harmless ? stashed : 'another entry',
    name: harmless ? 'default' : newId(),
    version: '0.0.0',
  };
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(values[name as keyof typeof values]),
  );
  return [method, filled];
}

/** The status alone: what is streamed has no end of its own. */
async function statusOf(method: string, path: string, headers: Record<string, string>, body?: object): Promise<number> {
  const sent =
    body === undefined
      ? { headers }
      : { headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body) };
  const response = await fetch(product.url + path, { method, ...sent });
  await response.body?.cancel();
  return response.status;
}

function may(key: string, endpoint: Endpoint, who: Who | 'nobody'): boolean {
  if (who === 'root') return key !== onlyTasks;
  // it opens nothing of its own yet, and has no column in the table
  if (who === 'conductor') return endpoint.allow.includes('anyone') || endpoint.allow.includes(who);
  const isWorker = who === 'worker' || who === 'boundWorker';
  return !(isWorker && ofHeldRuns.has(key)) && accessOf(key, endpoint, who) !== '';
}

async function walk(prefix: string, headers: Record<string, string>): Promise<Record<string, number>> {
  const answers: Record<string, number> = {};
  for (const [key, endpoint] of endpoints) {
    const [method, path] = pathOf(key, endpoint);
    answers[key] = await statusOf(method, prefix + path, headers, bodyFor(key));
  }
  return answers;
}

/** `refused` for those that must be, `let in` for all that got as far as being served. */
function verdicts(answers: Record<string, number>, refused: number): Record<string, string | number> {
  const verdict = (status: number): string | number => {
    if (status === refused) return 'refused';
    return status === 401 || status === 403 || status >= 500 ? status : 'let in';
  };
  return Object.fromEntries(Object.entries(answers).map(([key, status]) => [key, verdict(status)]));
}

function expected(who: Who | 'nobody'): Record<string, string> {
  return Object.fromEntries(endpoints.map(([key, endpoint]) => [key, may(key, endpoint, who) ? 'let in' : 'refused']));
}

describe.each(['', '/t/default'])('below "%s"', (prefix) => {
  it('without a key, only public endpoints are open', async () => {
    expect(verdicts(await walk(prefix, {}), 401)).toEqual(expected('nobody'));
  });

  it.each([...roles, 'boundWorker', 'task'] as const)(
    'the role %s may call exactly the endpoints that the table allows',
    async (who) => {
      expect(verdicts(await walk(prefix, bearer(secrets[who])), 403)).toEqual(expected(who));
    },
  );
});

describe('credential of a task', () => {
  it('a task’s credential gives access to its own run, job and project', async () => {
    const statuses = await Promise.all(
      ofTasks.map(async ([key, endpoint]) => {
        const asked = statusOf(...pathOf(key, endpoint), bearer(secrets.task), bodyFor(key));
        return [key, await asked] as const;
      }),
    );
    expect(statuses.filter(([, status]) => status >= 300)).toEqual([]);
    expect(statuses.length).toBeGreaterThan(5);
  });

  it('a task’s credential gives no access to another task, job, project, run or instant', async () => {
    const ids = { run: newId(), job: newId(), project: newId(), task: newId(), instant: own.instant };
    for (const [key, endpoint] of ofTasks.filter(([path]) => path.includes('{id}'))) {
      expect([key, await statusOf(...pathOf(key, endpoint, ids), bearer(secrets.task))]).toEqual([key, 403]);
    }
    const later = `/int-api/jobs/${own.job}/stash/2027-01-01T00:00:00Z/${stashed}`;
    expect(await statusOf('GET', later, bearer(secrets.task))).toBe(403);
  });

  it('an altered credential is refused', async () => {
    const [claims = '', mac = ''] = secrets.task.slice('mrt_'.length).split('.');
    type Claims = [tenant: string, run: string, lease: number, until: number];
    const [tenant, run, lease, until] = JSON.parse(Buffer.from(claims, 'base64url').toString()) as Claims;
    const forged = Buffer.from(JSON.stringify([tenant, run, lease + 1, until])).toString('base64url');
    for (const credential of [
      `mrt_${forged}.${mac}`,
      `mrt_${claims}.`,
      `mrt_${claims}`,
      'mrt_',
      `mrt_${claims}.${mac.slice(1)}A`,
    ]) {
      expect(await statusOf('GET', '/api/me', bearer(credential))).toBe(401);
    }
  });

  it('a credential expires with its run', async () => {
    const { id: job } = await product
      .call('GET /api/jobs', { query: { project: 'access', name: 'long' } })
      .then(single);
    const { runs } = await product.call('POST /api/jobs/{id}/run', { params: { id: job }, body: {} });
    const run = runs[0] ?? '';
    const credential = await until('a second task has written its credential', async () => {
      const text = await readFile(join(product.taskFolder, run), 'utf8').catch(() => '');
      return text.endsWith('\n') ? text.trim() : undefined;
    });
    const path = `/int-api/tasks/${own.task}`;
    expect(await statusOf('GET', path, bearer(credential))).toBe(200);
    await product.call('POST /api/runs/{id}/cancel', { params: { id: run } });
    await until(
      'the run has ended',
      async () =>
        (await product.call('GET /api/runs/{id}', { params: { id: run } })).state === 'cancelled' || undefined,
    );
    expect(await statusOf('GET', path, bearer(credential))).toBe(403);
    expect(await statusOf('GET', path, bearer(secrets.task))).toBe(200);
  });
});

function single<T extends object>(answer: T): Extract<T, { id: string }> {
  if ('id' in answer) return answer as Extract<T, { id: string }>;
  throw new Error('a page came instead of one');
}

describe('key', () => {
  it('a key is accepted as the user name of Basic authentication, with any password', async () => {
    const basic = (text: string): Record<string, string> => ({
      authorization: `Basic ${Buffer.from(text).toString('base64')}`,
    });
    for (const text of [`${secrets.viewer}:`, `${secrets.viewer}:x`, secrets.viewer]) {
      expect((await ask(`${product.url}/api/me`, { headers: basic(text) })).json()).toMatchObject({
        role: 'viewer',
        tenant: 'default',
      });
    }
    expect(await statusOf('GET', '/api/me', basic(`:${secrets.viewer}`))).toBe(401);
  });

  it('an invalid key is refused, even by public endpoints', async () => {
    const garbage = [
      '',
      'Bearer',
      'Bearer ',
      'Bearer x',
      'Basic',
      'Basic ???',
      'Digest a=b',
      secrets.root,
      `Bearer ${secrets.root}x`,
      'Bearer mrt_e30.e30',
      `bearer${secrets.root}`,
    ];
    for (const authorization of garbage) {
      expect([authorization, await statusOf('GET', '/api/jobs', { authorization })]).toEqual([authorization, 401]);
    }
    expect(await statusOf('GET', '/healthz', { authorization: 'Bearer x' })).toBe(401);
    const refused = await ask(`${product.url}/api/jobs`);
    expect(refused.headers).toMatchObject({
      'content-type': 'application/problem+json',
      'www-authenticate': expect.stringContaining('Bearer') as unknown,
    });
    expect(refused.json()).toMatchObject({ status: 401, code: 'unauthenticated' });
  });

  it('a revoked key is refused at once', async () => {
    const { id, key } = await makeKey('operator');
    expect(await statusOf('GET', '/api/jobs', bearer(key))).toBe(200);
    await product.call('DELETE /api/keys/{id}', { params: { id } });
    expect(await statusOf('GET', '/api/jobs', bearer(key))).toBe(401);
    const { items } = await product.call('GET /api/keys');
    expect(items.some((item) => item.id === id)).toBe(false);
    await expect(product.call('DELETE /api/keys/{id}', { params: { id } })).rejects.toMatchObject({ status: 404 });
  });

  it('a key is shown once, and never again', async () => {
    const { key } = await makeKey('viewer');
    const listed = await ask(`${product.url}/api/keys`, { headers: bearer(secrets.root) });
    expect(listed.text).not.toContain(key);
    expect(listed.text).not.toContain(product.rootKey);
    expect(listed.json()).toMatchObject({ next: null });
  });

  it('a key of an installation-wide role cannot have a tenant, nor any key an unknown tenant', async () => {
    const make = (body: object): Promise<Reply> =>
      ask(`${product.url}/api/keys`, {
        method: 'POST',
        headers: { ...bearer(secrets.root), 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    for (const body of [
      { name: 'r', role: 'root', tenant: 'default' },
      { name: 'v', role: 'viewer', tenant: 'nowhere' },
    ]) {
      const reply = await make(body);
      expect([reply.status, reply.json()]).toMatchObject([400, { faults: [{ path: 'body.tenant' }] }]);
    }
    expect((await make({ name: 'v', role: 'king' })).status).toBe(400);
  });
});

describe('other tenant', () => {
  let theirs: string;
  beforeAll(async () => {
    await product.call('POST /api/tenants', { body: { name: 'acme' } });
    theirs = (await makeKey('operator', 'acme')).key;
  });

  it('a tenant is reached below its prefix, by its own keys and by root', async () => {
    const project = {
      method: 'PUT',
      headers: { ...bearer(theirs), 'content-type': 'application/json' },
      body: '{"name":"theirs"}',
    };
    expect((await ask(`${product.url}/t/acme/api/projects`, project)).status).toBe(201);
    const seen = await ask(`${product.url}/t/acme/api/projects`, { headers: bearer(secrets.root) });
    expect(seen.json()).toMatchObject([{ name: 'theirs' }]);
    const ours = await ask(`${product.url}/api/projects`, { headers: bearer(secrets.root) });
    expect(ours.json()).toMatchObject([{ name: 'access' }]);
  });

  it('a tenant refuses keys and tasks of other tenants', async () => {
    for (const who of ['operator', 'viewer', 'client', 'publisher', 'subscriber', 'boundWorker', 'task'] as const) {
      const open = Object.entries(await walk('/t/acme', bearer(secrets[who]))).filter(([, status]) => status !== 403);
      expect(open).toEqual([]);
    }
    for (const prefix of ['', '/t/default']) {
      for (const [key, endpoint] of Object.entries<Endpoint>(tenantEndpoints)) {
        // whoever has the link of a human task needs no key
        if (endpoint.allow.includes('anyone')) continue;
        const [method, path] = pathOf(key, endpoint);
        expect([key, await statusOf(method, prefix + path, bearer(theirs))]).toEqual([key, 403]);
      }
    }
  });

  it('an unknown tenant is not found by root, forbidden to other keys, and needs a key', async () => {
    for (const path of ['/api/projects', '/api/me', '/healthcheck', '/healthz', '/api/nonsense', '/internal/claim']) {
      expect([path, await statusOf('GET', `/t/nowhere${path}`, bearer(secrets.root))]).toEqual([path, 404]);
      expect([path, await statusOf('GET', `/t/nowhere${path}`, bearer(secrets.viewer))]).toEqual([path, 403]);
    }
    expect(await statusOf('GET', '/t/nowhere/api/projects', {})).toBe(401);
    expect(await statusOf('GET', '/t/%ff/api/projects', bearer(secrets.root))).toBe(400);
  });

  it('a tenant’s tasks get the address of their own tenant', async () => {
    const headers = { ...bearer(theirs), 'content-type': 'application/json' };
    const script =
      'curl -sS -w %{http_code} -H "Authorization: Bearer $MILLRACE_CREDENTIAL" "$MILLRACE_URL/int-api/tasks/$MILLRACE_TASK_ID" -o /dev/null';
    const body = JSON.stringify({
      project: 'theirs',
      name: 'home',
      tasks: [{ name: 'call', process: { command: ['sh', '-c', script] } }],
    });
    const applied = (await ask(`${product.url}/t/acme/api/jobs`, { method: 'PUT', headers, body })).json() as {
      id: string;
    };
    const started = await ask(`${product.url}/t/acme/api/jobs/${applied.id}/run`, {
      method: 'POST',
      headers,
      body: '{}',
    });
    const { runs } = started.json() as { runs: string[] };
    const log = await ask(`${product.url}/t/acme/api/runs/${runs[0]}/logs?follow=true`, { headers });
    expect(log.text.trim()).toBe('200');
  });
});

describe('unknown path', () => {
  it.each(['/api/nonsense', '/int-api/x/y', '/internal/x', '/bus', '/t/default/api/nonsense', '/healthz/x'])(
    'the unknown path %s is answered with a problem, not a page',
    async (path) => {
      const reply = await ask(product.url + path, { headers: bearer(secrets.root) });
      expect([reply.status, reply.headers['content-type'], reply.json()]).toMatchObject([
        404,
        'application/problem+json',
        { code: 'not_found' },
      ]);
    },
  );

  it('a request with the wrong method is answered with the allowed ones', async () => {
    const reply = await ask(`${product.url}/api/me`, { method: 'DELETE', headers: bearer(secrets.root) });
    expect([reply.status, reply.json()]).toMatchObject([405, { detail: expect.stringContaining('GET') as unknown }]);
  });
});
