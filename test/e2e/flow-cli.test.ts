/** The command line of flows against the product: start, watch, repair, change, fork, and operate on many. */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, millrace, type Product, removeHome, startProduct } from '../harness/product.ts';
import { makeTaskFolder } from '../harness/task-folder.ts';
import { until } from '../harness/until.ts';

const functions = `
export function pay({ amount }) {
  if (amount > 1000) throw Object.assign(new Error('the bank refuses'), { code: 'limit' });
  return { paid: amount };
}
`;

const flows = {
  payment: `flow: payment
labels: {customer: $(input.customer)}
steps:
- task: pay
  with: {amount: $(f.amount)}
  result: f.payment
- set: {ret: $(f.payment)}
`,
  gate: `flow: gate
steps:
- wait: {on: {signal: go}}
  tag: gate
  result: f.signal
- task: pay
  with: {amount: $(f.amount)}
`,
  refusal: `flow: refusal
steps:
- fail: {code: refused, message: as always}
`,
};

let product: Product;
let folder = '';

beforeAll(async () => {
  folder = await makeTaskFolder();
  await writeFile(join(folder, 'functions.mjs'), functions);
  for (const [name, text] of Object.entries(flows)) await writeFile(join(folder, `${name}.yaml`), text);
  product = await startProduct({ args: ['--functions', join(folder, 'functions.mjs')] });
  const applied = await flow('apply', '-f', '.');
  expect(applied).toMatchObject({ code: 0, stdout: '+ gate version 1\n+ payment version 1\n+ refusal version 1\n' });
}, 120_000);
afterAll(async () => {
  await product?.stop();
  if (product !== undefined) await removeHome(product.home);
  await rm(folder, { recursive: true, force: true });
});

function flow(...args: string[]): Promise<Answer> {
  return millrace(['flow', ...args], { home: product.home, cwd: folder });
}

async function start(name: string, input: unknown, ...more: string[]): Promise<string> {
  const started = await flow('start', name, '--input', JSON.stringify(input), ...more);
  expect(started, started.stderr).toMatchObject({ code: 0 });
  return started.stdout.trim();
}

async function shown(id: string) {
  return product.call('GET /api/executions/{id}', { params: { id }, query: {} });
}

type Shown = Awaited<ReturnType<typeof shown>>;

function reached(id: string, status: string): Promise<Shown> {
  return until(`the execution ${id} is ${status}`, async () => {
    const now = await shown(id);
    return now.status === status ? now : undefined;
  });
}

describe('flow start', () => {
  it('--wait prints the result and exits with 0 when it is done, and with 1 when it has failed', async () => {
    const done = await flow('start', 'payment', '--input', '{"amount": 5, "customer": "ann"}', '--wait');
    expect(done, done.stderr).toMatchObject({ code: 0, stdout: '{\n  "paid": 5\n}\n' });
    const failed = await flow('start', 'refusal', '--wait');
    expect(failed).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('refused: as always') as unknown,
    });
  });

  it('--wait ends at an incident with the commands that repair it', async () => {
    const stuck = await flow('start', 'payment', '--input', '{"amount": 5000, "customer": "bob"}', '--wait');
    expect(stuck).toMatchObject({ code: 1, stderr: expect.stringContaining('limit: the bank refuses') as unknown });
    const [command = ''] = /millrace flow retry \S+/.exec(stuck.stderr) ?? [];
    expect(await flow(...command.split(' ').slice(2))).toMatchObject({ code: 0 });
  });

  it('a second start with the same key answers with the first execution', async () => {
    const first = await start('gate', { amount: 1 }, '--key', 'once');
    const second = await flow('start', 'gate', '--key', 'once');
    expect(second).toMatchObject({ stdout: `${first}\n`, stderr: 'the execution with the key once exists already\n' });
    const found = JSON.parse((await flow('executions', '--key', 'once', '--json')).stdout) as { id: string }[];
    expect(found.map(({ id }) => id)).toEqual([first]);
  });

  it('an unknown flow, an unknown version and an unknown execution exit with 5', async () => {
    const unknown = '01890a5d-0000-7000-8000-000000000000';
    for (const args of [
      ['start', 'absent'],
      ['start', 'gate', '--flow-version', '9'],
      ['show', unknown],
      ['pause', unknown],
      ['versions', 'absent'],
    ])
      expect([args, (await flow(...args)).code]).toEqual([args, 5]);
  });
});

describe('flow show, why and history', () => {
  it('show draws what an execution waits for, and why explains it', async () => {
    const id = await start('gate', { amount: 1 });
    await reached(id, 'waiting');
    const drawn = await flow('show', id);
    expect(drawn.stdout).toMatch(/├─ ◦ wait .*#gate +waiting +.*signal go/);
    expect(drawn.stdout).toContain('└─ · task pay');
    const why = await millrace(['why', id], { home: product.home });
    expect(why, why.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining('go') as unknown });
  });

  it('history follows an execution to its end, and revisions can be looked at', async () => {
    const id = await start('gate', { amount: 7 });
    const following = flow('history', id, '--follow');
    await reached(id, 'waiting');
    await flow('signal', id, 'go', '--payload', '{"by":"ann"}');
    const { stdout, code } = await following;
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^ +1 .* launch.*\n(.*\n)* .*signal: .*go.*f\.signal = \{"by":"ann"\}/),
    ]);
    const { rev, status } = await shown(id);
    expect([status, stdout.trim().split('\n')]).toEqual(['done', expect.objectContaining({ length: rev })]);
    const past = JSON.parse((await flow('show', id, '--rev', '1', '--json')).stdout) as Shown;
    expect(past).toMatchObject({ rev: 1, fields: { amount: 7 } });
    expect(past.fields).not.toHaveProperty('signal');
  });

  it('list counts executions, and versions grow with changed documents', async () => {
    await writeFile(join(folder, 'refusal.yaml'), `description: changed\n${flows.refusal}`);
    expect((await flow('apply', '-f', 'refusal.yaml', '--dry-run')).stdout).toBe('+ refusal would be version 2\n');
    expect((await flow('apply', '-f', 'refusal.yaml')).stdout).toBe('+ refusal version 2\n');
    expect((await flow('apply', '-f', 'refusal.yaml')).stdout).toBe('= refusal is version 2, unchanged\n');
    const listed = await flow('list');
    expect(listed.stdout, listed.stderr).toMatch(/^refusal +2 +0 +0 +0 +0 .* changed$/m);
    expect((await flow('versions', 'refusal')).stdout.split('\n')).toHaveLength(4);
  });
});

describe('repair', () => {
  it('skip gives the result of the step, and the execution goes on', async () => {
    const id = await start('payment', { amount: 5000, customer: 'bob' });
    await reached(id, 'incident');
    const skipped = await flow('skip', id, 'pay', '--result', '{"paid": 5000}');
    expect(skipped, skipped.stderr).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^0_0-\d+: skipped\n$/) as unknown,
    });
    expect(await reached(id, 'done')).toMatchObject({ fields: { payment: { paid: 5000 } } });
  });

  it('patch corrects a field, and retry succeeds then', async () => {
    const id = await start('payment', { amount: 5000, customer: 'bob' });
    await reached(id, 'incident');
    expect(await flow('patch', id, '--set', 'f.amount=10')).toMatchObject({ code: 0, stdout: 'changed\n' });
    expect(await flow('retry', id)).toMatchObject({ code: 0 });
    expect(await reached(id, 'done')).toMatchObject({ fields: { payment: { paid: 10 } } });
  });

  it('patch replaces a step: a dry run shows the difference, and changes nothing', async () => {
    const id = await start('gate', { amount: 1 });
    await reached(id, 'waiting');
    await writeFile(join(folder, 'by-hand.yaml'), '- set: {f.by: hand}\n- set: {f.paid: true}\n');
    const argv = ['patch', id, '--swap', 'steps[1]=by-hand.yaml'];
    const dry = await flow(...argv, '--dry-run');
    expect(dry, dry.stderr).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('nothing was changed') as unknown,
    });
    expect(dry.stdout).toContain('steps[1]');
    expect(await flow(...argv)).toMatchObject({ code: 0 });
    expect((await flow('show', id)).stdout).toContain('document: its own');
    await flow('signal', id, 'go');
    expect(await reached(id, 'done')).toMatchObject({ fields: { by: 'hand', paid: true } });
  });

  it('a document with faults names each of them, and changes nothing', async () => {
    const id = await start('gate', { amount: 1 });
    await writeFile(join(folder, 'bad.yaml'), '- tsk: x\n');
    const ran = await flow('patch', id, '--swap', 'steps[1]=bad.yaml');
    expect(ran).toMatchObject({ code: 1, stderr: expect.stringContaining('did you mean task?') as unknown });
  });

  it('fork begins with the state of an earlier revision', async () => {
    const id = await start('payment', { amount: 5000, customer: 'bob' });
    await reached(id, 'incident');
    const forked = await flow('fork', id, '--rev', '1', '--set', 'amount=3');
    expect(forked, forked.stderr).toMatchObject({ code: 0 });
    await until(
      'the fork has an end or an incident',
      async () => ['done', 'incident'].includes((await shown(forked.stdout.trim())).status) || undefined,
    );
    expect(await shown(id)).toMatchObject({ status: 'incident' });
  });
});

describe('operations', () => {
  it('pause holds signals until resume', async () => {
    const id = await start('gate', { amount: 2 });
    await reached(id, 'waiting');
    expect((await flow('pause', id)).stdout).toBe('paused\n');
    await flow('signal', id, 'go');
    expect(await shown(id)).toMatchObject({ status: 'paused' });
    expect((await flow('resume', id)).stdout).toBe('resumed\n');
    await reached(id, 'done');
    expect(await flow('pause', id)).toMatchObject({ code: 1, stderr: expect.stringContaining('ended') as unknown });
  });

  it('many executions are counted, and cancelled in pages', async () => {
    const ids = await Promise.all([1, 2, 3].map((amount) => start('gate', { amount }, '--key', `many-${amount}`)));
    await Promise.all(ids.map((id) => reached(id, 'waiting')));
    const filter = ['--flow', 'gate', '--status', 'waiting'];
    const counted = await flow('cancel', ...filter, '--dry-run');
    expect(Number.parseInt(counted.stdout, 10)).toBeGreaterThanOrEqual(3);
    expect(await flow('cancel', ...filter)).toMatchObject({ code: 2 });
    expect(await flow('cancel', ...filter, '--yes')).toMatchObject({
      code: 0,
      stdout: counted.stdout.replace(/ .*/, ' done'),
    });
    for (const id of ids) await reached(id, 'cancelled');
  });

  it('labels, statuses and times choose executions', async () => {
    await start('payment', { amount: 1, customer: 'carl' });
    const found = await flow('executions', '--label', 'customer=carl', '--json');
    expect(JSON.parse(found.stdout)).toMatchObject([{ labels: { customer: 'carl' } }]);
    const none = await flow('executions', '--label', 'customer=carl', '--before', '2020-01-01T00:00:00Z');
    expect(none).toEqual({ code: 0, stdout: '', stderr: 'no executions\n' });
  });

  it('a deleted flow cannot be started, and its executions go on', async () => {
    await writeFile(join(folder, 'temporary.yaml'), flows.gate.replace('flow: gate', 'flow: temporary'));
    await flow('apply', '-f', 'temporary.yaml');
    const id = await start('temporary', { amount: 4 });
    await reached(id, 'waiting');
    expect((await flow('delete', 'temporary', '--yes')).stdout).toBe('temporary is deleted\n');
    expect(await flow('start', 'temporary')).toMatchObject({ code: 5 });
    await flow('signal', id, 'go');
    await reached(id, 'done');
  });
});
