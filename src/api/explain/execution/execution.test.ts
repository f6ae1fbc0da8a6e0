import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { refusal, textWith } from '../../../../test/harness/expected.ts';
import { type FlowApi, makeFlowApi } from '../../../../test/harness/flows/flow-api.ts';
import { newId } from '../../../kernel/id.ts';
import { makeTenantCalls } from '../../../../test/harness/tenant-router.ts';
import { until } from '../../../../test/harness/until.ts';

let api: FlowApi;
beforeAll(async () => {
  api = await makeFlowApi({
    fail: () => {
      throw Object.assign(new Error('no money'), { code: 'declined' });
    },
    never: (_, { signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
  });
  const flows = {
    signals: [{ wait: { on: { signal: 'paid' }, for: '1h' } }],
    sleeps: [{ wait: '1h' }],
    retries: [{ task: 'fail', retry: { max_attempts: 3, delay: '1h' } }],
    fails: [{ task: 'fail' }],
    ends: [{ fail: { code: 'broken', message: 'by design' } }],
    works: [{ task: 'never' }],
    unhosted: [{ task: 'somewhere-else' }],
    runs: [{ task: 'ship', docker: { image: 'alpine' } }],
    asks: [{ task: 'approve', human: { assignee: 'meg', title: 'ok?', due: '1h' }, timeout: '1d' }],
    calls: [{ call: 'signals', tag: 'calling' }],
    many: [{ each: '[1, 2, 3]', concurrent: 3, do: [{ task: 'never' }] }],
    mixed: [
      {
        parallel: [
          { on: { every: '1h' }, do: [] },
          { wait: '1h', tag: 'cooling' },
        ],
      },
    ],
  };
  for (const [flow, steps] of Object.entries(flows)) await api.apply({ flow, steps });
});
afterAll(() => api.close());

const explain = (id: string) => api.call('GET /api/explain/execution/{id}', { params: { id } });

/** The explanation of a new execution, once its first reason has this code. */
async function explained(flow: string, code: string) {
  const id = await api.launch(flow);
  const why = await until(`${flow} is explained by ${code}`, async () => {
    const explanation = await explain(id);
    return explanation.reasons[0]?.code === code ? explanation : undefined;
  });
  return { id, why };
}

describe('why an execution waits', () => {
  it('for a signal, with the command that sends it, and who launched it', async () => {
    const { id, why } = await explained('signals', 'waits_for_signal');
    expect(why).toMatchObject({
      subject: { kind: 'execution', id, name: `signals ${id}`, instant: null, job: null },
      state: 'waiting',
      summary: textWith(`signals ${id} waits: steps[0] waits for the signal paid, until `),
      next: `millrace flow signal ${id} paid`,
    });
    expect(why.reasons[0]?.data).toMatchObject({ node: '0_0-2', path: 'steps[0]', names: ['paid'] });
    expect(why.reasons.at(-1)).toMatchObject({ code: 'launched', message: textWith('key:operator launched it at ') });
    expect(why.chain.map(({ what, id: of }) => [what, of])).toEqual([
      ['execution', id],
      ['person', 'key:operator'],
    ]);
  });

  it('for its time, or for the next attempt', async () => {
    expect((await explained('sleeps', 'waits_for_time')).why.summary).toMatch(
      /steps\[0\] waits for its time, at 2\d\d\d-/,
    );
    const { id, why } = await explained('retries', 'waits_for_retry');
    expect(why.reasons[0]?.message).toMatch(/^fail \(steps\[0\]\) tries again: attempt 2, at 2/);
    expect(why.next).toBe(`at once: millrace flow retry ${id} 0_0-2`);
  });

  it('for a repair, with the error and both ways on', async () => {
    const { id, why } = await explained('fails', 'incident');
    expect(why.state).toBe('incident');
    expect(why.reasons[0]).toMatchObject({
      message: 'fail (steps[0]) failed (declined: no money), and nothing in the flow handles that',
      data: { code: 'declined', node: '0_0-2' },
    });
    expect(why.next).toContain(`millrace flow retry ${id} 0_0-2`);
    expect(why.next).toContain(`millrace flow skip ${id} 0_0-2`);
  });

  it('for a function, or for a conductor that has the function', async () => {
    const { why } = await explained('works', 'waits_for_function');
    expect(why).toMatchObject({ state: 'running', reasons: [{ data: { function: 'never', hosts: 1 } }, {}] });
    const other = await explained('unhosted', 'function_unhosted');
    expect(other.why.summary).toContain('no conductor that is running hosts the function somewhere-else');
    expect(other.why.next).toContain('millrace conductor --functions');
  });

  it('for a function that the tenant may not call', async () => {
    const { id } = await explained('unhosted', 'function_unhosted');
    const { tenant, settings } = api.ctx;
    const shop = {
      ...api.ctx,
      tenant: { ...tenant, name: 'shop' },
      settings: { ...settings, localTasks: 'default' },
    } as const;
    const { reasons, next } = await makeTenantCalls(shop).call('GET /api/explain/execution/{id}', { params: { id } });
    expect(reasons[0]).toMatchObject({
      code: 'runtime_not_allowed',
      message: textWith('MILLRACE_LOCAL_TASKS=default'),
      data: { path: 'steps[0]', runtime: 'function' },
    });
    expect(next).toContain('ask the operator of the installation');
  });

  it('for a run of a worker, with the reasons of the run; and the run explains its step', async () => {
    const { id, why } = await explained('runs', 'waits_for_run');
    expect(why.reasons.map(({ code }) => code)).toEqual(['waits_for_run', 'no_worker', 'launched']);
    const run = String(why.reasons[0]?.data['run']);
    const ofRun = await api.call('GET /api/explain/run/{id}', { params: { id: run } });
    expect(ofRun.subject).toMatchObject({ kind: 'run', name: 'runs ship' });
    expect(ofRun.reasons.map(({ code }) => code)).toEqual(['no_worker', 'performs_step']);
    expect(ofRun.reasons[1]).toMatchObject({ data: { execution: id, node: '0_0-2', attempt: 1 } });
    expect(ofRun.chain.map(({ what }) => what)).toEqual(['execution', 'person']);
  });

  it('for a person, with who has claimed the work item', async () => {
    const { id, why } = await explained('asks', 'waits_for_person');
    expect(why.reasons[0]?.message).toMatch(/^approve \(steps\[0\]\) waits for meg to answer approve, due at 2/);
    const item = String(why.reasons[0]?.data['workitem']);
    expect(why.next).toBe(`millrace workitems answer ${item} FIELD=VALUE; its form: millrace workitems show ${item}`);
    await api.call('POST /api/workitems/{id}/claim', { params: { id: item }, body: { for: 'ann' } });
    expect((await explain(id)).reasons[0]?.message).toContain('waits for ann, who has claimed it, to answer approve');
  });

  it('for an execution that it has called, which links up', async () => {
    const { id, why } = await explained('calls', 'waits_for_child');
    const child = String(why.reasons[0]?.data['execution']);
    await api.reached(child, 'waiting');
    expect((await explain(id)).reasons[0]).toMatchObject({
      message: `signals (steps[0]) waits for the execution ${child} of signals, which is waiting`,
      data: { status: 'waiting' },
    });
    expect((await explain(id)).next).toBe(`millrace why ${child}`);
    const ofChild = await explain(child);
    expect(ofChild.reasons.at(-1)).toMatchObject({ code: 'called', data: { execution: id, node: '0_0-2' } });
    expect(ofChild.chain.map(({ what, id: of }) => [what, of])).toEqual([
      ['execution', child],
      ['execution', id],
      ['person', 'key:operator'],
    ]);
  });

  it('for many items at once, in one reason that counts them', async () => {
    const { why } = await explained('many', 'waits_for_function');
    expect(why.reasons.map(({ code }) => code)).toEqual(['waits_for_function', 'launched']);
    expect(why.reasons[0]?.message).toMatch(/^never \(steps\[0\]\.do\[0\]\) waits for the function never/);
    expect(why.reasons[0]).toMatchObject({
      message: textWith('; 2 other items of it do so too'),
      data: { alike: 2 },
    });
  });

  it('naming the step by its tag or its event, if it has one', async () => {
    const { why } = await explained('mixed', 'waits_for_time');
    const [first, second] = why.reasons.map(({ message }) => message.split(' waits')[0]);
    expect([first, second]).toEqual(['on every 1h (steps[0].parallel[0])', 'cooling (steps[0].parallel[1])']);
  });

  it('because it is paused, by whom; and for messages that came meanwhile', async () => {
    const id = await api.launch('signals');
    await api.call('POST /api/executions/{id}/pause', { params: { id } });
    await api.call('POST /api/executions/{id}/signals', { params: { id }, body: { name: 'paid' } });
    const why = await explain(id);
    expect(why.state).toBe('paused');
    expect(why.reasons.map(({ code }) => code)).toEqual([
      'execution_paused',
      'messages_waiting',
      'waits_for_signal',
      'launched',
    ]);
    expect(why.reasons[0]?.message).toMatch(/^it is paused since 2.*, by key:operator$/);
    expect(why.summary).toMatch(/ is paused: since 2\S+, by key:operator; 1 message /);
    expect(why.next).toBe(`millrace flow resume ${id}`);
  });

  it('and names signals that nothing has waited for', async () => {
    const id = await api.launch('sleeps');
    await api.call('POST /api/executions/{id}/signals', { params: { id }, body: { name: 'payd' } });
    const early = (await explain(id)).reasons.find(({ code }) => code === 'signals_early');
    expect(early?.message).toBe('1 signal came that no step has waited for yet: payd');
  });
});

describe('why nothing moves', () => {
  it('no conductor is running, or the tenant is off', async () => {
    const known = await api.launch('signals');
    await api.stopConductor();
    const id = await api.launch('signals');
    await api.call('POST /api/executions/{id}/signals', { params: { id: known }, body: { name: 'paid' } });
    const why = await explain(id);
    expect(why.reasons.map(({ code }) => code)).toEqual(['no_conductor', 'not_begun']);
    expect(why.next).toBe('start one: millrace conductor, or millrace up');
    expect((await explain(known)).reasons.map(({ code }) => code)).toEqual([
      'no_conductor',
      'messages_waiting',
      'waits_for_signal',
      'launched',
    ]);
    const schedulers = api.schedulers.splice(0);
    expect((await explain(id)).reasons[1]).toMatchObject({ code: 'tenant_off' });
    api.schedulers.push(...schedulers);
    await api.startConductor();
  });
});

describe('how an execution has ended', () => {
  it('done, failed or cancelled by somebody', async () => {
    const done = await explained('ends', 'execution_failed');
    expect(done.why).toMatchObject({ state: 'failed', summary: textWith('in steps[0]: broken: by design') });
    expect(done.why.next).toContain(`millrace flow fork ${done.id}`);
    const id = await api.launch('signals');
    await api.call('POST /api/executions/{id}/cancel', { params: { id } });
    await api.reached(id, 'cancelled');
    const why = await explain(id);
    expect(why.reasons[0]).toMatchObject({ code: 'execution_cancelled', message: textWith(' by key:operator') });
    const other = await api.launch('signals');
    await api.call('POST /api/executions/{id}/signals', { params: { id: other }, body: { name: 'paid' } });
    await api.reached(other, 'done');
    expect((await explain(other)).summary).toMatch(/is done: it ended at 2/);
    await expect(explain(newId())).rejects.toEqual(refusal(404));
  });

  it('a fork names the execution that it comes from', async () => {
    const id = await api.launch('signals');
    const fork = await api.call('POST /api/executions/{id}/fork', { params: { id }, body: {} });
    const why = await explain(fork.id);
    expect(why.reasons.at(-1)).toMatchObject({ code: 'forked', data: { execution: id, actor: 'key:operator' } });
    expect(why.chain.map(({ id: of }) => of)).toEqual([fork.id, id]);
  });
});
