import { expect, it } from 'vitest';
import { answerFull, type DefinitionKey, type TaskDefinition } from '../contract/wire.ts';
import { newId } from '../kernel/id.ts';
import { DefinitionCache, type DefinitionCacheOptions } from './definition-cache.ts';

const project = { id: newId(), name: 'project' };
const key = (task = newId(), version = 1): DefinitionKey => ({ tenant: 'default', task, version });

function define(of: DefinitionKey): TaskDefinition {
  const more = { name: 'task', job: { id: newId(), name: 'job' }, project, timeout_ms: 1_000, params: {} };
  return { ...of, ...more, runtime: { kind: 'none' } };
}

class Source {
  readonly requests: (readonly DefinitionKey[])[] = [];
  readonly missing = new Set<string>();
  nowMs = 0;
  fail: Error | undefined;
  readonly now = (): number => this.nowMs;
  readonly away = new Set<string>();
  readonly fetch: DefinitionCacheOptions['fetch'] = async (keys) => {
    this.requests.push(keys);
    if (this.fail) throw this.fail;
    const found = keys.filter(({ task, tenant }) => !this.missing.has(task) && !this.away.has(tenant));
    const failed = [...this.away].map((tenant) => ({ tenant, code: 'tenant_unavailable', detail: 'out of reach' }));
    return { definitions: found.map(define), failed };
  };
}

it('all misses of one turn are fetched by one request, each once', async () => {
  const source = new Source();
  const cache = new DefinitionCache(source);
  const keys = Array.from({ length: 100 }, () => key());
  const found = await Promise.all([...keys, ...keys].map((each) => cache.get(each)));
  expect(source.requests.map((request) => request.length)).toEqual([100]);
  expect(found.map((each) => each?.task)).toEqual([...keys, ...keys].map((each) => each.task));
  expect(await cache.get(keys[0] ?? key())).toBe(found[0]);
  expect(source.requests).toHaveLength(1);
});

it('a request has at most 1,000 definitions', async () => {
  const source = new Source();
  const cache = new DefinitionCache(source);
  await Promise.all(Array.from({ length: 2_500 }, () => cache.get(key())));
  expect(source.requests.map((request) => request.length)).toEqual([1_000, 1_000, 500]);
});

it('versions and tenants have separate entries', async () => {
  const source = new Source();
  const cache = new DefinitionCache(source);
  const task = newId();
  const [one, two, other] = await Promise.all([
    cache.get(key(task, 1)),
    cache.get(key(task, 2)),
    cache.get({ ...key(task), tenant: 'other' }),
  ]);
  expect([one?.version, two?.version, other?.tenant]).toEqual([1, 2, 'other']);
});

it('the least recently used entries, and those older than a day, are dropped', async () => {
  const source = new Source();
  const cache = new DefinitionCache({ fetch: source.fetch, now: source.now, capacity: 2 });
  const [a, b, c] = [key(), key(), key()];
  await cache.get(a);
  await cache.get(b);
  cache.peek(a);
  await cache.get(c);
  expect([cache.peek(a), cache.peek(b), cache.peek(c)].map((each) => each !== undefined)).toEqual([true, false, true]);
  source.nowMs = 24 * 3_600_000 + 1;
  expect(cache.peek(a)).toBeUndefined();
});

it('an invalidation drops entries by task or by project, of its tenant only', async () => {
  const source = new Source();
  const cache = new DefinitionCache(source);
  const [a, b] = [key(), key()];
  await Promise.all([cache.get(a), cache.get(b)]);
  cache.drop({ tenant: 'other', kind: 'project', id: project.id });
  cache.drop({ tenant: 'default', kind: 'task', id: a.task });
  expect([cache.peek(a), cache.peek(b)].map((each) => each !== undefined)).toEqual([false, true]);
  cache.drop({ tenant: 'default', kind: 'project', id: project.id });
  expect(cache.peek(b)).toBeUndefined();
});

it('an answer is not kept if an invalidation arrived meanwhile', async () => {
  const source = new Source();
  const cache = new DefinitionCache(source);
  const a = key();
  const getting = cache.get(a);
  await Promise.resolve();
  cache.drop({ tenant: 'default', kind: 'task', id: a.task });
  expect(await getting).toMatchObject({ task: a.task });
  expect(cache.peek(a)).toBeUndefined();
});

it('neither missing definitions nor failed requests are cached', async () => {
  const source = new Source();
  const cache = new DefinitionCache(source);
  const a = key();
  source.missing.add(a.task);
  expect(await cache.get(a)).toBeUndefined();
  source.missing.clear();
  source.fail = new Error('refused');
  await expect(cache.get(a)).rejects.toThrow('refused');
  source.fail = undefined;
  expect(await cache.get(a)).toMatchObject({ task: a.task });
});

it('an unreachable tenant rejects the requests for its own definitions only', async () => {
  const source = new Source();
  const cache = new DefinitionCache(source);
  source.away.add('b');
  const [ofA, ofB] = [key(), { ...key(), tenant: 'b' }];
  const [a, b] = await Promise.allSettled([cache.get(ofA), cache.get(ofB)]);
  expect(a).toMatchObject({ status: 'fulfilled', value: { task: ofA.task } });
  expect(b).toMatchObject({ status: 'rejected', reason: { code: 'tenant_unavailable', message: 'out of reach' } });
  source.away.clear();
  expect(await cache.get(ofB)).toMatchObject({ tenant: 'b' });
});

it('definitions that did not fit into an answer are requested again', async () => {
  const source = new Source();
  const sizes: number[] = [];
  const fetch: DefinitionCacheOptions['fetch'] = async (keys) => {
    sizes.push(keys.length);
    const failed = keys.length > 2 ? [{ tenant: 'default', code: answerFull, detail: 'full' }] : [];
    return { definitions: keys.slice(0, 2).map(define), failed };
  };
  const cache = new DefinitionCache({ fetch, now: source.now });
  const keys = Array.from({ length: 5 }, () => key());
  const found = await Promise.all(keys.map((each) => cache.get(each)));
  expect(found.map((each) => each?.task)).toEqual(keys.map((each) => each.task));
  expect(sizes).toEqual([5, 3, 1]);
});

it('dropAll empties the cache', async () => {
  const source = new Source();
  const cache = new DefinitionCache(source);
  const one = key();
  await cache.get(one);
  cache.dropAll();
  expect(cache.peek(one)).toBeUndefined();
});
