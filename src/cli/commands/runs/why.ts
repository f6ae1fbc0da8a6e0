/** `millrace why`: explains a run, an execution, a task at an instant, a trigger, or a delivery of the bus. */
import type { Command } from 'commander';
import { type CallAnswer, CallFailed } from '../../../http/client.ts';
import type { explainEndpoints } from '../../../api/explain/endpoints.ts';
import { MillraceError } from '../../../errors.ts';
import { isId } from '../../../kernel/id.ts';
import { UsageError } from '../../session/exit.ts';
import { examples } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { type Output, showTime, stateWord } from '../../print/output.ts';
import { checkInstant, findJob, findTask, findTrigger } from '../../session/references.ts';
import type { Server } from '../../session/server.ts';
import { noOptions, type Session, verb } from '../../session/session.ts';
import { oneLine } from '../../print/width.ts';

type Explanation = CallAnswer<(typeof explainEndpoints)['GET /api/explain/run/{id}']>;

export function addWhy(program: Command, io: Io): void {
  const why = program
    .command('why')
    .description('Explain why something ran or has not run: what it waits for, what caused it, what to do.')
    .argument(
      '<what>',
      'the UUID of a run or execution, PROJECT/JOB/TASK or PROJECT/JOB/trigger/NAME; append @INSTANT for an instant other than the newest',
    )
    .action(verb(io, noOptions, showWhy));
  examples(why, [
    ['millrace why 01890a5d-…', 'a run, or an execution of a flow'],
    ['millrace why shop/daily/load', 'a task, at its newest instant'],
    ['millrace why shop/daily/load@2030-01-31T00:00:00Z', 'at that instant'],
    ['millrace why shop/daily/trigger/night', 'when it fires next'],
    ['millrace why delivery billing--1a2b3c4d', 'what its events wait for'],
  ]);
  addWhyExecution(why, io);
  const delivery = why
    .command('delivery')
    .description(
      'Explain why events have not been delivered: what the receiver answered, what happens next, what to do.',
    )
    .argument(
      '<what>',
      'the name or id of a subscriber, or the id of a batch, as `webhook-id` and dead letters have it',
    )
    .action(verb(io, noOptions, showWhyDelivery));
  examples(delivery, [
    ['millrace why delivery billing--1a2b3c4d', 'a subscriber, by its name'],
    ['millrace why delivery 1a2b3c4d_0_17_19', 'a batch'],
  ]);
}

function addWhyExecution(why: Command, io: Io): void {
  const execution = why
    .command('execution')
    .description('Explain why an execution of a flow is where it is: what started it, what it waits for, what to do.')
    .argument('<id>', 'its UUID, as `millrace flow executions` lists it')
    .action(
      verb(io, noOptions, async (session, [id = '']) =>
        showWhyOf(session, await whyExecution(await session.connect(), id)),
      ),
    );
  examples(execution, [['millrace why execution 01890a5d-…', 'what does it wait for?']]);
}

async function showWhyDelivery(session: Session, [id = '']: readonly string[]): Promise<void> {
  const server = await session.connect();
  const why = await server.tenant('GET /api/explain/delivery/{id}', { params: { id } });
  const { kind, name } = why.subject;
  const ids =
    kind === 'batch'
      ? ([
          ['batch', why.subject.id],
          ['subscriber', name],
        ] as const)
      : ([['subscriber', name]] as const);
  session.out.answer(why, () => show(session.out, { ...why, chain: [] }, ids));
}

async function showWhy(session: Session, [text = '']: readonly string[]): Promise<void> {
  const subject = readSubject(text);
  const server = await session.connect();
  showWhyOf(session, await ask(server, subject));
}

function showWhyOf({ out }: Session, why: Explanation): void {
  out.answer(why, () => show(out, why, [['id', why.subject.id]]));
}

type Wanted =
  | { readonly kind: 'run'; readonly id: string }
  | { readonly kind: 'token'; readonly task: string; readonly job?: string; readonly instant: string | undefined }
  | { readonly kind: 'trigger'; readonly name: string; readonly job: string; readonly instant: string | undefined };

/** Names contain neither `/` nor `@`. */
function readSubject(text: string): Wanted {
  const at = text.indexOf('@');
  const name = at < 0 ? text : text.slice(0, at);
  const instant = at < 0 ? undefined : checkInstant(text.slice(at + 1));
  if (isId(name)) return at < 0 ? { kind: 'run', id: name } : { kind: 'token', task: name, instant };
  const parts = name.split('/');
  const [project, job, kind, last] = parts.length === 3 ? [parts[0], parts[1], 'task', parts[2]] : parts;
  if (!project || !job || !last || parts.length > 4 || (kind !== 'task' && kind !== 'trigger')) {
    throw new UsageError(
      `${JSON.stringify(text)} is neither the UUID of a run nor PROJECT/JOB/TASK or PROJECT/JOB/trigger/NAME`,
    );
  }
  const owner = `${project}/${job}`;
  return kind === 'task'
    ? { kind: 'token', task: last, job: owner, instant }
    : { kind: 'trigger', name: last, job: owner, instant };
}

async function ask(server: Server, wanted: Wanted): Promise<Explanation> {
  if (wanted.kind === 'run') return whyRun(server, wanted.id).catch(orExecution(server, wanted.id));
  const { instant } = wanted;
  if (wanted.kind === 'trigger') {
    const id = await findTrigger(server, await findJob(server, wanted.job), wanted.name);
    return server.tenant('GET /api/explain/trigger/{id}', { params: { id }, query: { instant } });
  }
  const { job } = wanted;
  const task = job === undefined ? wanted.task : await findTask(server, await findJob(server, job), wanted.task);
  const id = instant === undefined ? task : `${task}@${instant}`;
  return server.tenant('GET /api/explain/token/{id}', { params: { id } });
}

export function whyRun(server: Server, id: string): Promise<Explanation> {
  return server.tenant('GET /api/explain/run/{id}', { params: { id } });
}

function whyExecution(server: Server, id: string): Promise<Explanation> {
  return server.tenant('GET /api/explain/execution/{id}', { params: { id } });
}

/** An id that is not of a run may be of an execution. */
function orExecution(server: Server, id: string): (error: unknown) => Promise<Explanation> {
  const isMissing = (error: unknown): boolean => error instanceof CallFailed && error.status === 404;
  return async (error) => {
    if (!isMissing(error)) throw error;
    return whyExecution(server, id).catch((other: unknown) => {
      throw isMissing(other) ? new MillraceError('not_found', `there is no run and no execution ${id}`) : other;
    });
  };
}

type Shown = Pick<Explanation, 'summary' | 'chain' | 'next'> & {
  readonly state: string;
  readonly reasons: readonly { readonly code: string; readonly message: string }[];
};

function show(out: Output, why: Shown, ids: readonly (readonly [name: string, value: string])[]): void {
  const { paint } = out;
  out.line(oneLine(why.summary));
  out.line('');
  out.facts([['state', stateWord(why.state)], ...ids]);
  section(
    out,
    'why',
    why.reasons.map(({ code, message }) => `${oneLine(message)} ${paint('dim', `(${code})`)}`),
  );
  section(
    out,
    'how it came about',
    why.chain.map(({ at, message }) => `${at === null ? '' : `${showTime(at)} `}${oneLine(message)}`),
  );
  if (why.next !== null) section(out, 'next', [oneLine(why.next)]);
}

function section(out: Output, title: string, lines: readonly string[]): void {
  if (lines.length === 0) return;
  out.line('');
  out.line(out.paint('bold', `${title}:`));
  for (const line of lines) out.line(`  ${line}`);
}
