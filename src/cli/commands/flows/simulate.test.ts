import { describe, expect, it } from 'vitest';
import { type Ran, shell } from '../../../../test/harness/cli/shell.ts';

const expense = 'examples/flows/expense.yaml';
const input = JSON.stringify({ id: 'e1', amount: 12, manager: 'meg', employee: 'eve' });

function tryOut(argv: readonly string[], options: Parameters<typeof shell>[1] = {}): Promise<Ran> {
  return shell(['flow', 'test', ...argv], { cwd: process.cwd(), ...options });
}

/** What the table says, without times and steps. */
function happenings({ stdout }: Ran): string[] {
  const rows = stdout.split('\n\n')[0]?.split('\n').slice(1) ?? [];
  return rows.map((row) => row.replace(/^\S+\s+\S+\s+/, '').replace(/ {2,}\S+$/, ''));
}

describe('millrace flow test', () => {
  it('Time, signals and answers of people happen in the order of the command line.', async () => {
    const decision = '{"approved":false,"comment":"too late"}';
    const ran = await tryOut([expense, '--input', input, '--skip', '8d', '--answer', `approve=${decision}`]);
    expect(ran.code).toBe(0);
    const reminded = happenings(ran).filter((line) => line.startsWith('remind('));
    expect(reminded).toHaveLength(3);
    expect(happenings(ran).slice(-7)).toEqual([
      'the timeout is over',
      'approve is cancelled',
      'approve asks finance-leads: Escalated expense e1',
      `approve → ${decision}`,
      'tell({"to":"eve","why":"too late"})',
      'tell → null',
      'done: null',
    ]);
    expect(ran.stdout).toContain('clock:  2026-01-09T00:00:00Z, 8d after the start');
  });

  it('A long timeline is printed with its first and last lines, and whole as JSON.', async () => {
    const often = 'flow: often\nsteps:\n- on: {every: 1s}\n  do: [{task: remind}]\n- wait: 1h\n';
    const ran = await tryOut(['-', '--skip', '1h'], { stdin: often });
    expect(ran.code).toBe(0);
    expect(happenings(ran)).toHaveLength(201);
    expect(happenings(ran)[100]).toMatch(/^\s+… 10,\d\d\d more; --json has all$/);
    expect(happenings(ran).at(-1)).toBe('done: null');
    const whole: unknown = JSON.parse((await tryOut(['-', '--skip', '1h', '--json'], { stdin: often })).stdout);
    expect(whole).toHaveProperty('timeline.10000');
  });

  it('An answer that comes before its question names the tasks that are open.', async () => {
    const ran = await tryOut([
      expense,
      '--input',
      input,
      '--answer',
      'approve={"approved":true}',
      '--answer',
      'approve=1',
    ]);
    expect(ran).toMatchObject({ code: 2 });
    expect(ran.stderr).toContain('the task approve is not open at that time; open tasks: none');
  });

  it('A task that fails shows what is undone, and the command exits with 1.', async () => {
    const order = { order: { id: 'o1', items: ['a'], total: 5, card: 'c', email: 'e', customer: 'ann' } };
    const ran = await tryOut(
      [
        'examples/flows/order.yaml',
        '--input',
        '-',
        '--answer',
        'reserve-stock={"id":"r1"}',
        '--answer',
        'charge={"id":"p1"}',
        '--fail',
        'ship=no_carrier',
      ],
      { stdin: JSON.stringify(order) },
    );
    expect(ran.code).toBe(1);
    expect(happenings(ran)).toEqual(
      expect.arrayContaining([
        'refund({"payment":"p1"})',
        'release-stock({"id":"r1"})',
        'tell-customer({"why":"no_carrier"})',
      ]),
    );
    expect(ran.stdout).toContain('error:  no_carrier');
  });

  it('Several answers of one task are given one after the other, and the last of them for ever.', async () => {
    const states = ['running', 'running', 'done'].flatMap((state) => [
      '--answer',
      `export-status={"state":"${state}"}`,
    ]);
    const ran = await tryOut([
      'examples/flows/export.yaml',
      '--answer',
      'start-export={"id":"j"}',
      ...states,
      '--skip',
      '1m',
      '--json',
    ]);
    const result = JSON.parse(ran.stdout) as {
      status: string;
      timeline: { event: string; name: string; at: string }[];
    };
    expect(result.status).toBe('done');
    const asked = result.timeline.filter(({ event, name }) => event === 'called' && name === 'export-status');
    expect(asked.map(({ at }) => at)).toEqual([
      '2026-01-01T00:00:00.000Z',
      '2026-01-01T00:00:30.000Z',
      '2026-01-01T00:01:00.000Z',
    ]);
  });

  it('An expression that fails is an incident at its step, and the command exits with 1.', async () => {
    const ran = await tryOut(['examples/flows/thumbnails.yaml']);
    expect(ran.code).toBe(1);
    expect(ran.stdout).toContain('status: incident');
    expect(ran.stdout).toMatch(/incident: \{"code":"expression_error".*steps\[0\]/);
  });

  it.each([
    [['absent.yaml'], 'absent.yaml: file not found', 1],
    [[expense, '--input', '{'], '--input is not JSON', 2],
    [[expense, '--input', '@absent.json'], '--input: absent.json: file not found', 2],
    [[expense, '--skip', 'soon'], '--skip: "soon"', 2],
    [[expense, '--answer', 'aprove={}'], 'the flow has no task aprove; its tasks: approve, remind, pay, tell', 2],
    [[expense, '--answer', 'approve'], '--answer "approve" must be NAME=JSON', 2],
    [[expense, '--now', 'today'], 'the instant "today"', 2],
    [['examples/flows'], 'holds 5 flows; give a file with one', 2],
  ])('the command line %j names its fault', async (argv, message, code) => {
    const ran = await tryOut(argv);
    expect(ran.stderr).toContain(message);
    expect(ran.code).toBe(code);
  });

  it('A flow that calls another needs its result.', async () => {
    const stdin = 'flow: a\nsteps:\n- call: b\n  with: {x: 1}\n  result: f.b\n';
    const without = await tryOut(['-'], { stdin });
    expect(without.stderr).toContain('give its result: --answer FLOW=JSON');
    const ran = await tryOut(['-', '--answer', 'b={"y":2}'], { stdin });
    expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining('fields: {"b":{"y":2}}') as unknown });
  });
});
