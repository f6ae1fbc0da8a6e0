/** `millrace workitems list|show|claim|release|answer`: tasks of people that wait for an answer. */
import type { Command } from 'commander';
import { z } from 'zod';
import { CallFailed } from '../../../http/client.ts';
import { isId } from '../../../kernel/id.ts';
import { formatAge } from '../../print/format-age.ts';
import { type Output, showTime } from '../../print/output.ts';
import { oneLine } from '../../print/width.ts';
import { UsageError } from '../../session/exit.ts';
import { examples, integer, requireText } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { jsonSource } from '../../session/json-value.ts';
import { listWorkitems } from '../../session/pages.ts';
import type { Server } from '../../session/server.ts';
import { noOptions, type Session, verb } from '../../session/session.ts';
import { readAnswer } from './read-answer.ts';

const idArgument = [
  '<id>',
  'the UUID of a work item, as `millrace workitems` lists it, or of an execution with exactly one',
] as const;
const maxListed = 100_000;
const listFlags = z.object({
  assignee: z.string().optional(),
  team: z.string().optional(),
  execution: z.string().optional(),
  mine: z.boolean().default(false),
  limit: z.int().default(50),
});

export function addWorkitemCommands(program: Command, io: Io): void {
  const workitems = program.command('workitems').description('List and answer tasks of flows that wait for a person.');
  examples(workitems, [
    ['millrace workitems', 'what waits for people'],
    ['millrace workitems show 01890a5d-…', 'what is to be decided, and the command that answers'],
    ['millrace workitems answer 01890a5d-… approved=true', 'decide; the flow goes on at once'],
  ]);
  addList(workitems, io);
  const show = workitems
    .command('show')
    .description('Show a work item with its input and the form of its answer.')
    .argument(...idArgument)
    .action(verb(io, noOptions, showItem));
  examples(show, [['millrace workitems show 01890a5d-…', 'what is to be decided?']]);
  addClaims(workitems, io);
  const answer = workitems
    .command('answer')
    .description('Answer a work item with the fields of its form. The flow goes on at once.')
    .argument(...idArgument)
    .argument('[field=value...]', 'the fields of the form, such as approved=true')
    .option('--input <json>', `all fields as one object: ${jsonSource}`)
    .action(verb(io, z.object({ input: z.string().optional() }), answerItem));
  examples(answer, [
    ['millrace workitems answer 01890a5d-… approved=true comment="looks good"', 'field by field'],
    [`millrace workitems answer 01890a5d-… --input '{"approved": true}'`, 'as JSON'],
  ]);
}

function addList(workitems: Command, io: Io): void {
  const list = workitems
    .command('list', { isDefault: true })
    .description('List open work items, the oldest first.')
    .option('--assignee <person>', 'only those of this person', requireText)
    .option('--team <team>', 'only those of this team', requireText)
    .option('--execution <id>', 'only those of this execution')
    .option('--mine', 'only those that are assigned to your key, or that it has claimed')
    .option('--limit <n>', 'how many at most (50)', integer(1, maxListed))
    .action(verb(io, listFlags, showItems));
  examples(list, [
    ['millrace workitems', 'all'],
    ['millrace workitems list --team finance-leads', 'of a team'],
  ]);
}

const claimFlags = z.object({ for: z.string().optional(), seconds: z.int().optional() });
const maxClaimSeconds = 604_800;

function addClaims(workitems: Command, io: Io): void {
  const claim = workitems
    .command('claim')
    .description('Claim a work item, so that others see that somebody is at it.')
    .argument(...idArgument)
    .option('--for <person>', 'in the name of this person (your key)', requireText)
    .option('--seconds <n>', 'how long (3600)', integer(1, maxClaimSeconds))
    .action(verb(io, claimFlags, claimItem));
  examples(claim, [['millrace workitems claim 01890a5d-… --for ann', 'for an hour']]);
  const release = workitems
    .command('release')
    .description('Give a claimed work item back.')
    .argument(...idArgument)
    .action(verb(io, noOptions, releaseItem));
  examples(release, [['millrace workitems release 01890a5d-…', 'somebody else may claim it']]);
}

/** Finds the item by its own id, or by that of the execution that waits for it. */
async function findItem(server: Server, text: string): Promise<Item> {
  if (!isId(text))
    throw new UsageError(`${JSON.stringify(text)} is not the UUID of a work item; \`millrace workitems\` lists them`);
  try {
    return await fetchItem(server, text);
  } catch (error) {
    if (!(error instanceof CallFailed) || error.status !== 404) throw error;
    const [only, ...others] = await listWorkitems(server, { execution: text }, maxListed);
    if (only === undefined) throw error;
    if (others.length === 0) return fetchItem(server, only.id);
    const list = [only, ...others].map(({ id, title }) => `${id} (${title})`).join(', ');
    throw new UsageError(`the execution waits for ${others.length + 1} people; give one work item: ${list}`);
  }
}

async function showItems(session: Session, _: readonly string[], options: z.output<typeof listFlags>): Promise<void> {
  const { limit, mine, execution, ...filter } = options;
  if (execution !== undefined && !isId(execution))
    throw new UsageError(`--execution ${JSON.stringify(execution)} is not a UUID`);
  const wanted = { ...filter, execution, mine: mine ? ('true' as const) : undefined };
  const items = await listWorkitems(await session.connect(), wanted, limit);
  const nowMs = Date.now();
  session.out.answer(items, () => {
    if (items.length === 0) return session.out.note('no work items: nothing waits for a person');
    session.out.table(
      [
        { title: 'WORK ITEM' },
        { title: 'TITLE', flexible: true },
        { title: 'FOR', flexible: true },
        { title: 'FLOW', flexible: true },
        { title: 'AGE', align: 'right' },
        { title: 'DUE' },
        { title: 'CLAIMED BY', flexible: true },
      ],
      items.map((item) => [
        item.id,
        item.title,
        item.assignee ?? item.team,
        item.flow,
        formatAge(item.created_at, nowMs),
        showTime(item.due_at),
        item.claimed_by,
      ]),
    );
  });
}

async function fetchItem(server: Server, id: string) {
  return server.tenant('GET /api/workitems/{id}', { params: { id } });
}

type Item = Awaited<ReturnType<typeof fetchItem>>;

async function showItem(session: Session, [text = '']: readonly string[]): Promise<void> {
  const item = await findItem(await session.connect(), text);
  session.out.answer(item, () => printItem(session.out, item));
}

function printItem(out: Output, item: Item): void {
  out.facts([
    ['title', item.title],
    ['for', item.assignee ?? (item.team === null ? 'anybody' : `the team ${item.team}`)],
    ['task', `${item.name}, node ${item.node}`],
    ['execution', `${item.execution} of the flow ${item.flow}`],
    ['since', showTime(item.created_at)],
    ...(item.due_at === null ? [] : [['due', showTime(item.due_at)] as const]),
    ...(item.claimed_by === null
      ? []
      : [['claimed', `by ${item.claimed_by} until ${showTime(item.claimed_until)}`] as const]),
    ['input', JSON.stringify(item.input ?? null)],
  ]);
  if (item.form.length > 0) {
    out.line('');
    out.table(
      [{ title: 'FIELD' }, { title: 'TYPE' }, { title: 'REQUIRED' }, { title: 'LABEL', flexible: true }],
      item.form.map((field) => [
        field.name,
        field.type === 'choice' ? field.choices.join(' | ') : field.type,
        field.required ? 'yes' : '',
        field.label,
      ]),
    );
  }
  const required = item.form.filter((field) => field.required);
  const fields = (required.length > 0 ? required : item.form).map(({ name }) => ` ${name}=…`);
  out.line('');
  out.line(`${out.paint('dim', 'answer:')} ${oneLine(`millrace workitems answer ${item.id}${fields.join('')}`)}`);
}

async function claimItem(
  session: Session,
  [text = '']: readonly string[],
  flags: z.output<typeof claimFlags>,
): Promise<void> {
  const server = await session.connect();
  const { id } = await findItem(server, text);
  const item = await server.tenant('POST /api/workitems/{id}/claim', { params: { id }, body: flags });
  session.out.answer(item, () =>
    session.out.line(`claimed by ${item.claimed_by} until ${showTime(item.claimed_until)}`),
  );
}

async function releaseItem(session: Session, [text = '']: readonly string[]): Promise<void> {
  const server = await session.connect();
  const { id } = await findItem(server, text);
  const item = await server.tenant('POST /api/workitems/{id}/release', { params: { id } });
  session.out.answer(item, () => session.out.line('released'));
}

async function answerItem(
  session: Session,
  [text = '', ...fields]: readonly string[],
  { input }: { readonly input?: string | undefined },
): Promise<void> {
  const server = await session.connect();
  const { id, form } = await findItem(server, text);
  const body = await readAnswer(session.io, { input, fields }, form);
  const answer = await server.tenant('POST /api/workitems/{id}/answer', { params: { id }, body });
  session.out.answer(answer, () =>
    session.out.line(
      answer.outcome === 'accepted'
        ? `accepted: ${answer.detail ?? 'it takes effect when a conductor takes it'}`
        : 'answered',
    ),
  );
}
