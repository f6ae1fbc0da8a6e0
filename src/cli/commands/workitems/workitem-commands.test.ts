import { afterEach, describe, expect, it } from 'vitest';
import { MillraceError } from '../../../errors.ts';
import { executionId } from '../../../../test/harness/cli/sample-execution.ts';
import {
  type LocalServer,
  type Ran,
  shell,
  type SomeHandlers,
  startLocalServer,
} from '../../../../test/harness/cli/shell.ts';

let server: LocalServer | undefined;
afterEach(async () => {
  await server?.stop();
  server = undefined;
});

async function run(argv: readonly string[], handlers: SomeHandlers): Promise<Ran> {
  await server?.stop();
  server = await startLocalServer(handlers);
  return shell(['workitems', ...argv], { env: server.env });
}

const id = '019b0000-0000-7000-8000-000000000002';
const item = {
  id,
  execution: executionId,
  flow: 'expense',
  node: '0_0_1-4',
  name: 'approve',
  title: 'Expense e1',
  assignee: 'meg',
  team: null,
  form: [
    { name: 'approved', type: 'boolean' as const, label: 'Approved?', required: true, choices: [] },
    { name: 'comment', type: 'text' as const, label: 'Comment', required: false, choices: [] },
    { name: 'account', type: 'choice' as const, label: 'Account', required: false, choices: ['a', 'b'] },
  ],
  due_at: null,
  claimed_by: null,
  claimed_until: null,
  created_at: '2026-01-01T00:00:00Z',
  input: { amount: 12 },
};

describe('millrace workitems', () => {
  it('The list has the person or team, and passes filters on.', async () => {
    const handlers: SomeHandlers = { 'GET /api/workitems': async () => ({ items: [item], next: null, total: 1 }) };
    const ran = await run(['--mine', '--limit', '3'], handlers);
    expect(ran.stdout).toMatch(new RegExp(`^${id}  Expense e1  meg  expense  \\d+d  -    -$`, 'm'));
    expect(server?.calls).toEqual(['GET /api/workitems?mine=true&limit=3']);
  });

  it('show prints the form, and the command that answers it.', async () => {
    const ran = await run(['show', id], { 'GET /api/workitems/{id}': async () => item });
    expect(ran.stdout).toMatch(/^approved {2}boolean {2}yes {7}Approved\?$/m);
    expect(ran.stdout).toMatch(/^account {3}a \| b /m);
    expect(ran.stdout).toContain(`answer: millrace workitems answer ${id} approved=…\n`);
  });

  it('answer reads fields by their type in the form, or one object.', async () => {
    const bodies: unknown[] = [];
    const handlers: SomeHandlers = {
      'GET /api/workitems/{id}': async () => item,
      'POST /api/workitems/{id}/answer': async ({ body }) => {
        bodies.push(body);
        return { outcome: 'committed' };
      },
    };
    expect((await run(['answer', id, 'approved=true', 'comment=12'], handlers)).stdout).toBe('answered\n');
    await run(['answer', id, '--input', '{"approved":false}'], handlers);
    await run(['answer', id, 'approved=no'], handlers);
    expect(bodies).toEqual([{ approved: true, comment: '12' }, { approved: false }, { approved: false }]);
  });

  it('An execution that waits for one person stands for its work item.', async () => {
    const handlers: SomeHandlers = {
      'GET /api/workitems/{id}': async ({ params }) => {
        if (params.id === id) return item;
        throw new MillraceError('not_found', 'there is no such work item');
      },
      'GET /api/workitems': async () => ({ items: [item], next: null, total: 1 }),
      'POST /api/workitems/{id}/answer': async ({ params }) => {
        expect(params.id).toBe(id);
        return { outcome: 'committed' };
      },
    };
    expect((await run(['answer', executionId, 'approved=true'], handlers)).stdout).toBe('answered\n');
    const two = { ...handlers, 'GET /api/workitems': async () => ({ items: [item, item], next: null, total: 2 }) };
    expect((await run(['show', executionId], two)).stderr).toContain(
      'the execution waits for 2 people; give one work item',
    );
    const none = { ...handlers, 'GET /api/workitems': async () => ({ items: [], next: null, total: 0 }) };
    expect(await run(['show', executionId], none)).toMatchObject({
      code: 5,
      stderr: 'error: there is no such work item\n',
    });
  });

  it.each([
    [['answer', id, 'aproved=true'], 'the form has no field aproved; its fields: approved, comment, account'],
    [['answer', id, 'approved=perhaps'], 'approved must be true or false (or yes or no), not "perhaps"'],
    [['answer', id, 'approved'], '"approved" must be FIELD=VALUE'],
    [['answer', id, '--input', '[]'], '--input must be a JSON object'],
    [['answer', id, 'a=1', '--input', '{}'], 'not both'],
    [['show', 'e1'], '"e1" is not the UUID of a work item'],
  ])('millrace workitems %j says what is wrong.', async (argv, message) => {
    const ran = await run(argv, { 'GET /api/workitems/{id}': async () => item });
    expect(ran).toMatchObject({ code: 2, stderr: expect.stringContaining(message) as unknown });
  });

  it('claim and release name the person.', async () => {
    const claimed = { ...item, claimed_by: 'ann', claimed_until: '2026-01-01T01:00:00Z' };
    const handlers: SomeHandlers = {
      'POST /api/workitems/{id}/claim': async ({ body }) => ({
        ...claimed,
        claimed_by: `${body.for}, ${body.seconds}`,
      }),
      'POST /api/workitems/{id}/release': async () => item,
      'GET /api/workitems/{id}': async () => item,
    };
    expect((await run(['claim', id, '--for', 'ann'], handlers)).stdout).toBe(
      'claimed by ann, 3600 until 2026-01-01T01:00:00Z\n',
    );
    expect((await run(['release', id], handlers)).stdout).toBe('released\n');
  });
});
