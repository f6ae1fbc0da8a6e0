import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  ended,
  executionId as id,
  sampleExecution,
  sampleNode,
  withIncidents,
} from '../../../../test/harness/cli/sample-execution.ts';
import {
  type LocalServer,
  type Ran,
  shell,
  type ShellOptions,
  type SomeHandlers,
  startLocalServer,
} from '../../../../test/harness/cli/shell.ts';
import { MillraceError } from '../../../errors.ts';
import type { Execution } from './execution.ts';

let server: LocalServer | undefined;
let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-flows-'));
});
afterEach(async () => {
  await server?.stop();
  server = undefined;
  await rm(folder, { recursive: true });
});

async function run(argv: readonly string[], handlers: SomeHandlers, options: ShellOptions = {}): Promise<Ran> {
  await server?.stop();
  server = await startLocalServer(handlers);
  return shell(['flow', ...argv], { env: server.env, cwd: folder, ...options });
}

const committed = async () => ({ outcome: 'committed' as const });
const operations: SomeHandlers = {
  'POST /api/executions/{id}/cancel': committed,
  'POST /api/executions/{id}/kill': committed,
  'POST /api/executions/{id}/pause': committed,
  'POST /api/executions/{id}/resume': committed,
  'POST /api/executions/{id}/nodes/{node}/retry': committed,
  'POST /api/executions/{id}/nodes/{node}/skip': committed,
  'POST /api/executions/{id}/nodes/{node}/cancel': committed,
};

function over(execution: Execution): SomeHandlers {
  return { ...operations, 'GET /api/executions/{id}': async () => execution };
}

const sentTo = (): string | undefined => server?.calls.at(-1)?.replace(`/api/executions/${id}`, '');

describe('operations on one execution', () => {
  it.each([
    ['cancel', 'is being cancelled'],
    ['kill', 'killed'],
    ['pause', 'paused'],
    ['resume', 'resumed'],
  ])('%s calls the endpoint of its name.', async (action, sentence) => {
    expect(await run([action, id], operations)).toEqual({ code: 0, stdout: `${sentence}\n`, stderr: '' });
    expect(server?.calls).toEqual([`POST /api/executions/${id}/${action}`]);
  });

  it('What is only accepted says what it waits for, and is no failure.', async () => {
    const accepted = async () => ({ outcome: 'accepted' as const, detail: 'no conductor is running' });
    const ran = await run(['pause', id], { 'POST /api/executions/{id}/pause': accepted });
    expect(ran).toEqual({ code: 0, stdout: 'accepted: no conductor is running\n', stderr: '' });
  });

  it('What is refused exits with 1 and the reason.', async () => {
    const ran = await run(['pause', id], {
      'POST /api/executions/{id}/pause': async () => {
        throw new MillraceError('conflict', 'the execution has ended');
      },
    });
    expect(ran).toEqual({ code: 1, stdout: '', stderr: 'error: the execution has ended\n' });
  });

  it('signal sends its payload.', async () => {
    const bodies: unknown[] = [];
    const handlers: SomeHandlers = {
      'POST /api/executions/{id}/signals': async ({ body }) => {
        bodies.push(body);
        return { outcome: 'committed' };
      },
    };
    expect((await run(['signal', id, 'paid', '--payload', '-'], handlers, { stdin: '{"a":1}' })).code).toBe(0);
    expect((await run(['signal', id, 'stop'], handlers)).stdout).toBe('signal stop sent\n');
    expect(bodies).toEqual([
      { name: 'paid', payload: { a: 1 } },
      { name: 'stop', payload: null },
    ]);
  });
});

describe('operations on steps', () => {
  it('Without a step, retry and skip are about the only incident.', async () => {
    expect((await run(['retry', id], over(withIncidents('pay')))).stdout).toBe('0_0-9: tried again\n');
    expect(sentTo()).toBe('POST /nodes/0_0-9/retry');
    expect((await run(['skip', id, '--result', '{"id":1}'], over(withIncidents('pay')))).stdout).toBe(
      '0_0-9: skipped\n',
    );
    expect(sentTo()).toBe('POST /nodes/0_0-9/skip');
  });

  const twins = sampleExecution({
    nodes: [
      sampleNode('0_0-2', 'thumbnail'),
      sampleNode('0_0-3', 'thumbnail', { phase: 'incident' }),
      sampleNode('0_1-4', 'tell', { tag: 'last', path: 'steps[1]' }),
    ],
  });
  it.each([
    ['0_0-2', 'POST /nodes/0_0-2/skip'],
    ['thumbnail', 'POST /nodes/0_0-3/skip'],
    ['last', 'POST /nodes/0_1-4/skip'],
    ['steps[1]', 'POST /nodes/0_1-4/skip'],
  ])('A step is found by %s: its node, name, tag or place, one with an incident first.', async (reference, call) => {
    expect((await run(['skip', id, reference], over(twins))).code).toBe(0);
    expect(sentTo()).toBe(call);
  });

  it.each([
    [
      ['retry', id],
      over(sampleExecution()),
      5,
      'is waiting and has no incident; give a step; live steps: 0_0-2 (task approve)',
    ],
    [['retry', id], over(ended('done')), 5, 'is done and has no incident; give a step; no step is alive'],
    [['retry', id], over(withIncidents('pay', 'tell')), 2, '2 steps have an incident; give one: 0_0-9, 0_1-9'],
    [['skip', id, 'paye'], over(sampleExecution()), 5, 'no live step is called "paye"'],
    [
      ['skip', id, 'steps[0]'],
      over({ ...twins, nodes: twins.nodes.map((each) => ({ ...each, phase: 'run' as const })) }),
      2,
      'several live steps are called "steps[0]"; give a node: 0_0-2 (task thumbnail), 0_0-3',
    ],
    [['skip', 'e1'], {}, 2, '"e1" is not the UUID of an execution; `millrace flow executions` lists them'],
    [['cancel'], {}, 2, 'give the id of an execution, or flags such as --flow'],
    [['cancel', id, '--flow', 'a'], {}, 2, 'not both'],
    [['pause', id, 'step'], {}, 2, 'too many arguments'],
  ] as const)('millrace flow %j says what is missing.', async (argv, handlers, code, message) => {
    const ran = await run(argv, handlers);
    expect(ran).toMatchObject({ code, stderr: expect.stringContaining(message) as unknown });
  });

  it('cancel with a step cancels that step.', async () => {
    await run(['cancel', id, 'approve'], over(sampleExecution()));
    expect(sentTo()).toBe('POST /nodes/0_0-2/cancel');
  });
});

describe('operations on many executions', () => {
  /** 450 executions, of which one refuses. */
  function manyExecutions() {
    const bodies: { limit: number; dry_run: boolean; cursor?: string | undefined }[] = [];
    const handlers: SomeHandlers = {
      'POST /api/executions/operate': async ({ body }) => {
        bodies.push(body);
        const from = Number(body.cursor ?? 0);
        const matched = Math.min(body.limit, 450 - from);
        const next = from + matched < 450 ? String(from + matched) : null;
        const refused = next === null && !body.dry_run ? 1 : 0;
        const failures = refused === 1 ? [{ id, code: 'conflict', detail: 'it has ended' }] : [];
        return { matched, done: body.dry_run ? 0 : matched - refused, accepted: 0, refused, failures, next };
      },
    };
    return { bodies, handlers };
  }

  it('They are counted, and without a terminal need --yes.', async () => {
    const { handlers, bodies } = manyExecutions();
    const ran = await run(['cancel', '--flow', 'order', '--status', 'waiting'], handlers);
    expect(ran).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Cancel 450 executions? Add --yes') as unknown,
    });
    expect(bodies).toMatchObject([{ dry_run: true, action: 'cancel', filter: { flow: 'order', status: ['waiting'] } }]);
    expect((await run(['cancel', '--flow', 'order', '--dry-run'], handlers)).stdout).toBe('450 executions\n');
  });

  it('They are done in pages; what is refused is listed, and the command exits with 1.', async () => {
    const { handlers, bodies } = manyExecutions();
    const ran = await run(['retry', '--flow', 'order', '--yes'], handlers);
    expect(ran).toMatchObject({ code: 1, stdout: `449 done, 1 refused\n  ${id}: it has ended\n` });
    expect(bodies.filter(({ dry_run: isDry }) => !isDry).map(({ cursor }) => cursor)).toEqual([
      undefined,
      '200',
      '400',
    ]);
  });

  it('On a terminal the user is asked.', async () => {
    const { handlers, bodies } = manyExecutions();
    const ran = await run(['kill', '--flow', 'order'], handlers, { tty: true, stdin: 'n\n' });
    expect(ran).toMatchObject({ code: 1, stderr: expect.stringContaining('Kill 450 executions? [y/N]') as unknown });
    expect(bodies).toHaveLength(1);
  });
});

describe('flow patch and fork', () => {
  const diff = {
    tree: [
      { path: 'steps[1]', from: 'task pay', to: 'task pay-by-hand' },
      { path: 'steps[2]', from: null, to: 'task tell' },
    ],
    cancelled: ['0_1-4'],
    timers_removed: ['0_1-4/timeout'],
  };

  it('patch sends fields and steps, and shows the difference.', async () => {
    await writeFile(join(folder, 'pay.yaml'), '- task: pay-by-hand\n- task: tell\n');
    await writeFile(join(folder, 'one.yaml'), 'task: tell\n');
    const bodies: unknown[] = [];
    const handlers: SomeHandlers = {
      'PATCH /api/executions/{id}': async ({ body }) => {
        bodies.push(body);
        return { outcome: body.dry_run ? 'dry_run' : 'committed', diff };
      },
    };
    const argv = [
      'patch',
      id,
      '--set',
      'f.amount=5',
      '--set',
      'note="x=y"',
      '--swap',
      'steps[1]=pay.yaml',
      '--swap',
      'steps[3]=one.yaml',
    ];
    const ran = await run([...argv, '--dry-run'], handlers);
    expect(bodies).toEqual([
      {
        fields: { amount: 5, note: 'x=y' },
        swap: { 'steps[1]': [{ task: 'pay-by-hand' }, { task: 'tell' }], 'steps[3]': [{ task: 'tell' }] },
        dry_run: true,
        force: false,
      },
    ]);
    expect(ran.stdout.split('\n')).toEqual([
      '    ~ steps[1]: "task pay" → "task pay-by-hand"',
      '    + steps[2]: "task tell"',
      '    - node 0_1-4 ends',
      '    - timer 0_1-4/timeout is removed',
      'nothing was changed: this was a dry run',
      '',
    ]);
    expect((await run([...argv, '--force'], handlers)).stdout).toMatch(/\nchanged\n$/);
  });

  it.each([
    [['patch', id], 'give --set or --swap'],
    [['patch', id, '--set', 'f.order.total=5'], 'write --set f.order=JSON with all of it'],
    [['patch', id, '--set', 'f.total'], 'must be NAME=JSON'],
    [['patch', id, '--swap', 'steps[0]'], 'must be STEP=FILE'],
    [['patch', id, '--swap', 'steps[0]=absent.yaml'], 'absent.yaml: file not found'],
  ])('millrace flow %j says what is missing.', async (argv, message) => {
    expect(await run(argv, {})).toMatchObject({ code: 2, stderr: expect.stringContaining(message) as unknown });
  });

  it('fork prints the id of the new execution.', async () => {
    const ran = await run(['fork', id, '--rev', '3', '--set', 'amount=1'], {
      'POST /api/executions/{id}/fork': async ({ body }) => {
        expect(body).toMatchObject({ rev: 3, fields: { amount: 1 } });
        return { id, created: true };
      },
    });
    expect(ran).toEqual({ code: 0, stdout: `${id}\n`, stderr: '' });
  });
});

describe('flow list, versions and delete', () => {
  const counts = { running: 1, waiting: 2, paused: 0, incident: 3 };
  const listed = {
    name: 'expense',
    version: 2,
    description: 'asks',
    project: null,
    updated_at: '2026-01-01T00:00:00Z',
    updated_by: 'ann',
    counts,
  };

  it('list counts the executions of each flow.', async () => {
    const ran = await run(['list'], { 'GET /api/flows': async () => ({ items: [listed], next: null }) });
    expect(ran.stdout).toMatch(/^expense +2 +1 +2 +0 +3 {2}2026-01-01T00:00:00Z {2}asks$/m);
  });

  it('delete says how many executions go on, and asks.', async () => {
    const { nodes: _, ...head } = sampleExecution();
    const handlers: SomeHandlers = {
      'GET /api/executions': async () => ({ items: [head], next: null }),
      'DELETE /api/flows/{name}': async () => {},
    };
    const asked = await run(['delete', 'expense'], handlers, { tty: true, stdin: 'y\n' });
    expect(asked.stderr).toContain('Delete the flow expense? 1 execution under way will go on. [y/N]');
    expect(asked.stdout).toBe('expense is deleted\n');
    expect(server?.calls.at(-1)).toBe('DELETE /api/flows/expense');
  });
});
