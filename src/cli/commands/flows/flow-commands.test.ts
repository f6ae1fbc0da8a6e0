import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  ended,
  executionId as id,
  sampleExecution,
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

/** The executions that the server answers with, one after the other; the last of them for ever. */
function reading(...executions: readonly Execution[]): SomeHandlers {
  let reads = 0;
  return {
    'GET /api/executions/{id}': async () => executions[Math.min(reads++, executions.length - 1)] ?? sampleExecution(),
    'GET /api/executions/{id}/history': async () => ({ items: [], next: null }),
  };
}

describe('flow apply', () => {
  const flow = (name: string): string => `flow: ${name}\nsteps: [{wait: 1s}]\n`;

  it('Flows of a folder are applied, and unchanged ones are named.', async () => {
    await writeFile(join(folder, 'a.yaml'), `${flow('a')}---\n${flow('b')}`);
    const sent: unknown[] = [];
    const handlers: SomeHandlers = {
      'POST /api/flows': async ({ body, query }) => {
        const { flow: name } = JSON.parse(body.text) as { flow: string };
        sent.push([name, query.dry_run]);
        return Response.json({ name, version: 3, changed: name === 'a', warnings: [] });
      },
    };
    const ran = await run(['apply', '-f', folder], handlers);
    expect(ran).toEqual({ code: 0, stdout: '+ a version 3\n= b is version 3, unchanged\n', stderr: '' });
    expect((await run(['apply', '-f', 'a.yaml', '--dry-run'], handlers)).stdout).toContain('+ a would be version 3');
    expect(sent).toEqual([
      ['a', false],
      ['b', false],
      ['a', true],
      ['b', true],
    ]);
  });

  it('If one file has a fault, nothing is sent; every fault has its place.', async () => {
    await writeFile(join(folder, 'a.yaml'), flow('a'));
    await writeFile(join(folder, 'b.yaml'), 'flow: b\nsteps: [{tsk: x}, {wait: soon}]\n');
    await writeFile(join(folder, 'c.yaml'), flow('a'));
    const ran = await run(['apply', '-f', '.'], { 'POST /api/flows': async () => Response.error() });
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain('b.yaml:steps[0]: has no verb; did you mean task?');
    expect(ran.stderr).toContain('b.yaml:steps[1].wait');
    expect(ran.stderr).toContain('c.yaml:flow: a is also the flow in a.yaml');
    expect(server?.calls).toEqual([]);
  });

  it('A flow that the server rejects does not stop the others.', async () => {
    const fault = { path: 'project', message: 'there is no project shop' };
    const ran = await run(
      ['apply', '-f', '-'],
      {
        'POST /api/flows': async ({ body }) => {
          const { flow: name } = JSON.parse(body.text) as { flow: string };
          if (name === 'a') throw new MillraceError('bad_document', 'The flow is not valid', { faults: [fault] });
          return { name, version: 1, changed: true, warnings: [] };
        },
      },
      { stdin: `${flow('a')}---\n${flow('b')}` },
    );
    expect(ran.code).toBe(1);
    expect(ran.stdout).toContain(
      '✗ a: The flow is not valid\n    stdin#1:project: there is no project shop\n+ b version 1',
    );
  });
});

describe('flow start', () => {
  const started: SomeHandlers = { 'POST /api/executions': async () => ({ id, created: true }) };

  it('start prints the id, and sends input, key and version.', async () => {
    await writeFile(join(folder, 'in.json'), '{"amount": 12}');
    const bodies: unknown[] = [];
    const ran = await run(['start', 'expense', '--input', '@in.json', '--key', 'e1', '--flow-version', '2'], {
      'POST /api/executions': async ({ body }) => {
        bodies.push(body);
        return Response.json({ id, created: false });
      },
    });
    expect(ran).toEqual({ code: 0, stdout: `${id}\n`, stderr: 'the execution with the key e1 exists already\n' });
    expect(bodies).toEqual([{ flow: 'expense', version: 2, input: { amount: 12 }, key: 'e1' }]);
  });

  it('start --wait prints the result of an execution that is done, and exits with 0.', async () => {
    const ran = await run(['start', 'expense', '--wait'], {
      ...started,
      ...reading(sampleExecution(), ended('done', { result: { paid: true } })),
    });
    expect(ran).toMatchObject({ code: 0, stdout: '{\n  "paid": true\n}\n' });
  });

  it.each([
    ['failed', ended('failed'), 'failed: declined: no'],
    ['cancelled', ended('cancelled'), 'cancelled'],
    ['waiting for repair', withIncidents('pay'), `millrace flow retry ${id}\n`],
  ])('start --wait exits with 1 if the execution is %s.', async (_, execution, message) => {
    const ran = await run(['start', 'expense', '--wait'], { ...started, ...reading(execution) });
    expect(ran).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(message) as unknown });
    const json = await run(['start', 'expense', '--wait', '--json'], { ...started, ...reading(execution) });
    expect(JSON.parse(json.stdout)).toMatchObject({ id, status: execution.status });
  });

  it('start --wait goes on while other branches of an incident are at work.', async () => {
    const busy = { ...withIncidents('pay'), is_busy: true };
    const ran = await run(['start', 'expense', '--wait'], { ...started, ...reading(busy, ended('done')) });
    expect(ran).toMatchObject({ code: 0, stdout: 'null\n' });
  });

  it('On a terminal start --wait draws the tree, and replaces it by the next one.', async () => {
    const handlers = { ...started, ...reading(sampleExecution(), ended('done')) };
    const ran = await run(['start', 'expense', '--wait'], handlers, { tty: true });
    const [, first = '', second = ''] = ran.stderr.split('\u001b[?7l');
    expect(first).toContain('◦ task approve');
    expect(first).toContain('an answer of meg');
    const height = first.split('\n').length - 1;
    expect(first).toContain(`\u001b[${height}A`);
    expect(second).toContain('✓ task approve');
    expect(ran.stdout).toBe('null\n');
  });
});

describe('flow show', () => {
  it('show draws the tree with the reason for the wait, without colours if there is no terminal.', async () => {
    const ran = await run(['show', id], reading(sampleExecution()));
    expect(ran.code).toBe(0);
    expect(ran.stdout).not.toContain('\u001b');
    const [heading, ...lines] = ran.stdout.split('\n');
    expect(heading).toMatch(new RegExp(`^expense v1 ${id} waiting, \\d+d since its last commit$`));
    expect(lines.slice(0, 4)).toEqual(['labels: customer=ann', 'input: {"amount":12}', 'fields: {"amount":12}', '']);
    expect(lines[5]).toMatch(/^├─ ◦ task approve  waiting  an answer of meg  \d+d  0_0-2$/);
    const coloured = await run(['show', id], reading(sampleExecution()), { tty: true });
    expect(coloured.stdout).toContain('\u001b[33mwaiting\u001b[0m');
  });

  it('show names the commands that repair each incident.', async () => {
    const one = await run(['show', id], reading(withIncidents('pay')));
    expect(one.stdout).toContain(`incident in task pay at steps[0]`);
    expect(one.stdout).toContain(`  try again:        millrace flow retry ${id}\n`);
    const two = await run(['show', id], reading(withIncidents('pay', 'tell')));
    expect(two.stdout).toContain(`  go on without it: millrace flow skip ${id} 0_1-9 --result null\n`);
  });

  it('show --follow ends with the execution, and with --json prints each change as a line.', async () => {
    const steps = [sampleExecution(), sampleExecution(), withIncidents('pay'), ended('done')].map((each, rev) => ({
      ...each,
      rev: Math.max(1, rev),
    }));
    const ran = await run(['show', id, '--follow', '--json'], reading(...steps));
    const seen = ran.stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as Execution).status);
    expect([ran.code, seen]).toEqual([0, ['waiting', 'incident', 'done']]);
    const plain = await run(['show', id, '--follow'], reading(...steps));
    expect(plain.stdout).toMatch(/^expense v1 .* done, at 2026-01-02T00:00:00Z\n/);
  });

  it('An execution that no conductor has taken says so.', async () => {
    const ran = await run(['show', id], reading(sampleExecution({ rev: 0, nodes: [] })));
    expect(ran.stdout).toContain(`not begun: no conductor has taken it yet; millrace why ${id}\n`);
  });

  it('show passes the revision on, and prints the document.', async () => {
    await run(['show', id, '--rev', '1'], reading(sampleExecution()));
    expect(server?.calls).toEqual([`GET /api/executions/${id}?rev=1`]);
    const ran = await run(['show', id, '--document'], {
      'GET /api/executions/{id}/document': async () => ({ flow: 'a' }),
    });
    expect(JSON.parse(ran.stdout)).toEqual({ flow: 'a' });
    expect((await run(['show', id, '--document', '--follow'], {})).code).toBe(2);
  });
});

describe('flow executions and history', () => {
  it('executions passes its filters on.', async () => {
    const { nodes: _, ...head } = sampleExecution({ key: 'e1' });
    const ran = await run(
      [
        'executions',
        '--flow',
        'expense',
        '--status',
        'waiting,incident',
        '--label',
        'customer=a:b',
        '--before',
        '2027-01-01T00:00:00Z',
        '--limit',
        '5',
      ],
      { 'GET /api/executions': async () => ({ items: [head], next: null }) },
    );
    const query = new URL(`http://x${server?.calls[0]?.slice(4)}`).searchParams;
    expect(Object.fromEntries(query)).toEqual({
      flow: 'expense',
      status: 'waiting,incident',
      label: 'customer:a:b',
      created_before: '2027-01-01T00:00:00.000Z',
      limit: '5',
    });
    expect(ran.stdout).toMatch(/expense v1 {2}waiting {2}2026-01-01T00:00:00Z .* e1 {3}customer=ann/);
  });

  it('history prints each commit in a line, and follows until the execution ends.', async () => {
    const entry = {
      rev: 1,
      at: '2026-01-01T00:00:00Z',
      actor: 'ann',
      member: null,
      point: 'operate' as const,
      message_id: 'm',
      node: null,
      planned_at: null,
      summary: 'skip 0_1-9',
      changes: {
        fields: { paid: true },
        nodes: [{ id: '0_1-9', path: 'steps[1]', verb: 'task', from: 'incident', to: null, attempt: 1 }],
        nodes_total: 1,
        status: null,
      },
      sent: [{ kind: 'task' as const, node: '0_2-3', name: 'tell', attempt: 1, due_at: null, execution: null }],
    };
    const handlers: SomeHandlers = {
      ...reading(sampleExecution({ rev: 1 }), ended('done')),
      'GET /api/executions/{id}/history': async ({ query: { after } }) => {
        const items = [1, 2, 3]
          .filter((rev) => rev > after)
          .slice(0, 2)
          .map((rev) => ({ ...entry, rev }));
        return { items, next: items.length === 2 ? String(items.at(-1)?.rev) : null };
      },
    };
    const ran = await run(['history', id, '--follow'], handlers);
    expect(ran.stdout.split('\n').slice(0, 3)).toEqual(
      [1, 2, 3].map(
        (rev) =>
          `   ${rev} 2026-01-01T00:00:00Z operate: skip 0_1-9, by ann; steps[1] ended; f.paid = true; task tell sent`,
      ),
    );
    const json = await run(['history', id, '--after', '2', '--json'], handlers);
    expect(JSON.parse(json.stdout)).toMatchObject({ rev: 3 });
  });
});
