/** Tasks that workers, receivers of callbacks and people perform: what they get, and which values fail the step before. */
import { describe, expect, it } from 'vitest';
import { interpret } from '../interpret.ts';
import { blankState, type MessageBody } from '../state.ts';
import type { Effect } from '../effects.ts';
import type { Json } from '../../json.ts';
import { parseFlow } from '../../language/parse-flow.ts';
import { testFlow, type TestFlowOptions } from '../../testing/test-flow.ts';

function start(steps: unknown, options: TestFlowOptions = {}) {
  return testFlow({ flow: 'f', steps }, options);
}

/** The effects of launching a flow of one step. */
function effectsOf(step: unknown, input: Json = {}): readonly Effect[] {
  const parsed = parseFlow({ flow: 'f', steps: [step] });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  const body: MessageBody = { point: 'launch', input };
  const execution = { id: '00000000-0000-7000-8000-000000000000', key: null };
  const link = (nid: string, attempt: number) => `https://m.test/answers/${nid}.${attempt}`;
  const limits = { seed: 's', maxMessages: 100, isSpent: () => false };
  // other members of the circumstances have no meaning for tasks
  const how = { nowMs: 0, execution, link, depth: 0, newId: () => execution.id, ...limits };
  return interpret(parsed.flow, blankState, { id: 'm', body }, how).effects;
}

const faultsOf = (step: unknown) => {
  const parsed = parseFlow({ flow: 'f', steps: [step] });
  return parsed.ok ? [] : parsed.faults;
};

describe('http', () => {
  it('the block has the values of its expressions, and headers become variables with stash entries', () => {
    const http = {
      method: 'PUT',
      url: 'https://a.test/orders/$(f.id)',
      headers: { 'X-Id': '$(f.id)', authorization: { stash: 'token' } },
      body: { id: '$(f.id)', lines: '$(f.lines)' },
      expect: [201, 409],
    };
    const [effect] = effectsOf({ task: 'send', http }, { id: '7', lines: [1, 2] });
    expect(effect).toMatchObject({
      kind: 'task',
      work: {
        kind: 'run',
        runtime: 'http',
        block: {
          kind: 'http',
          method: 'PUT',
          url: 'https://a.test/orders/7',
          env: { 'X-Id': '7', authorization: { stash: 'token' } },
          body: { id: '7', lines: [1, 2] },
          expect: [201, 409],
        },
      },
    });
    expect(JSON.stringify(effect)).not.toContain('answer_url');
  });

  it.each([
    [{ url: 'nonsense' }, 'steps[0].http.url', /must be a URL/],
    [{ url: 'ftp://a.test/' }, 'steps[0].http.url', /must be a URL/],
    [{ url: 'https://u:p@a.test/' }, 'steps[0].http.url', /must not contain a password/],
    [{ url: 'https://a.test/', headers: { 'a b': 'x' } }, 'steps[0].http.headers["a b"]', /name of a header/],
    [{ url: 'https://a.test/', headers: { Host: 'x' } }, 'steps[0].http.headers.Host', /set by Millrace/],
    [{ url: 'https://a.test/', headers: { 'X-A': 'x\ny' } }, 'steps[0].http.headers.X-A', /one line/],
    [{ url: 'https://a.test/', headers: { 'X-A': 7 } }, 'steps[0].http.headers.X-A', /numbers in quotes/],
    [{ url: 'https://a.test/', method: 'TRACE' }, 'steps[0].http.method', /GET/],
    [{ url: 'https://a.test/', callback: 'soon' }, 'steps[0].http.callback', /write it like/],
    [{ url: 'https://a.test/', redirect: true }, 'steps[0].http.redirect', /not a field/],
  ])('the fault of %j is found when the flow is applied', (http, path, message) => {
    expect(faultsOf({ task: 'send', http })).toEqual([{ path, message: expect.stringMatching(message) as string }]);
  });

  it.each([
    ['a header that is no text', { url: 'https://a.test/', headers: { n: '$(f.n)' } }],
    ['a url that is no text', { url: '$(f.n)' }],
  ])('%s fails the step, and no run is queued', async (_, http) => {
    expect(effectsOf({ task: 'send', http }, { n: 7 }).filter(({ kind }) => kind === 'task')).toEqual([]);
    const t = await start([{ task: 'send', http }], { input: { n: 7 } });
    expect(t.open).toMatchObject([{ phase: 'incident', error: { code: 'expression_error' } }]);
  });
});

describe('http with callback', () => {
  const send = { task: 'send', http: { url: 'https://a.test/', callback: '1d' } };

  it('the request carries the link, which is in `links` as well', () => {
    const http = { ...send.http, body: { answer: '$(links.send)' } };
    const effects = effectsOf({ ...send, http });
    const url = expect.stringMatching(/^https:\/\/m\.test\/answers\/.+\.1$/) as string;
    expect(effects).toMatchObject([
      { kind: 'task', work: { block: { answer_url: url, body: { answer: url } } } },
      { kind: 'set_timer', dueMs: 86_400_000 },
    ]);
  });

  it('the step waits after the request, and ends with the answer that comes by the link', async () => {
    const urls: (string | null)[] = [];
    const tasks = { send: (_: Json, { answerUrl }: { answerUrl: string | null }) => void urls.push(answerUrl) };
    const t = await start([{ ...send, result: 'f.answer' }], { tasks });
    expect([t.status, urls.length, urls[0]]).toEqual(['waiting', 1, expect.stringContaining('/answers/')]);
    await t.skip('23h');
    await t.answer('send', { paid: true });
    expect([t.status, t.fields]).toEqual(['done', { answer: { paid: true } }]);
  });

  it('after the time of the callback the step fails with `timeout`, and late answers have no effect', async () => {
    const t = await start([{ ...send, on_error: [{ match: 'timeout', do: [{ set: { 'f.late': true } }] }] }]);
    await t.skip('25h');
    expect([t.status, t.fields]).toEqual(['done', { late: true }]);
    await expect(t.answer('send')).rejects.toThrow('No task send waits');
  });

  it('a request that fails fails the step at once, and a retry sends a request with another link', async () => {
    const urls = new Set<string | null>();
    const fail = (_: Json, { answerUrl, attempt }: { answerUrl: string | null; attempt: number }): Json => {
      urls.add(answerUrl);
      if (attempt === 1) throw Object.assign(new Error('503'), { code: 'failure' });
      return null;
    };
    const t = await start([{ ...send, retry: { max_attempts: 2, delay: '1s' } }], { tasks: { send: fail } });
    await t.skip('2s');
    expect(urls.size).toBe(2);
    await t.answer('send', 1);
    expect([t.status, t.result]).toEqual(['done', 1]);
  });

  it('a cancelled step does not wait for anybody', async () => {
    const t = await start([send]);
    await t.cancel();
    expect([t.status, t.open]).toEqual(['cancelled', []]);
  });

  it('the time may be an expression; one that is no time fails the step before the request', async () => {
    const http = { url: 'https://a.test/', callback: '$(f.limit)' };
    const t = await start([{ task: 'send', http }], { input: { limit: '2h' } });
    await t.skip('3h');
    expect(t.open).toMatchObject([{ phase: 'incident', error: { code: 'timeout' } }]);
    expect(effectsOf({ task: 'send', http }, { limit: 'x' }).filter(({ kind }) => kind === 'task')).toEqual([]);
  });

  it('a crash forgets nothing of it', async () => {
    const t = await start([send]);
    t.crash();
    await t.answer('send', 'ok');
    expect(t.result).toBe('ok');
  });
});

describe('process', () => {
  it('a variable that is no text fails the step, and says what to do', async () => {
    const process = { command: ['true'], env: { N: '$(f.n)' } };
    const t = await start([{ task: 'count', process }], { input: { n: 7 } });
    expect(t.open).toMatchObject([{ error: { message: expect.stringContaining('string()') as string } }]);
  });
});

describe('human', () => {
  const approve = (human: object) => ({ task: 'approve', human: { assignee: 'meg', title: 'Pay', ...human } });

  it('the faults of a form are found when the flow is applied, with their paths', () => {
    const form = { approved: 'bolean', comment: { type: 'text', labl: 'x' } };
    expect(faultsOf(approve({ form })).map(({ path }) => path)).toEqual([
      'steps[0].human.form.approved',
      'steps[0].human.form.comment.labl',
    ]);
  });

  it('texts and choices of a form may be expressions, and are checked when the step begins', async () => {
    const human = { title: '$(f.n)', form: { who: { type: 'text', choices: '$(f.names)', default: '$(f.names[0])' } } };
    const t = await start([{ ...approve(human), result: 'f.r' }], { input: { n: 7, names: ['a', 'b'] } });
    await expect(t.answer('approve', { who: 'c' })).rejects.toThrow('must be one of "a", "b"');
    await t.answer('approve', {});
    expect(t.fields['r']).toEqual({ who: 'a' });
    const wrong = await start([approve(human)], { input: { n: 7, names: [] } });
    expect(wrong.status).toBe('incident');
  });

  it('an answer that does not fit the form is rejected, and the task waits on', async () => {
    const t = await start([approve({ form: { approved: { type: 'boolean', required: true } } })]);
    await expect(t.answer('approve', {})).rejects.toThrow('approved is required');
    await t.answer('approve', { approved: false });
    expect(t.result).toEqual({ approved: false });
  });

  it('an item whose title is no text fails the step', async () => {
    const t = await start([approve({ title: '$(f.o)' })], { input: { o: { a: 1 } } });
    expect(t.open).toMatchObject([{ phase: 'incident' }]);
  });
});
