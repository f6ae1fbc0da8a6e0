/** `millrace subscriber show|change|pause|resume|test|secret|replay|delete`: one subscriber of the event bus. */
import type { Command } from 'commander';
import { z } from 'zod';
import { MillraceError } from '../../../errors.ts';
import { CallFailed } from '../../../http/client.ts';
import { byArgument } from '../../session/arguments.ts';
import { UsageError } from '../../session/exit.ts';
import { examples } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { checkInstant } from '../../session/references.ts';
import { noOptions, type Session, verb } from '../../session/session.ts';
import { followReplay } from './follow-replay.ts';
import { parseJsonFlag } from './json-flag.ts';
import { makeSubscriberCalls, type SubscriberCalls, type SubscriberChange } from './subscriber-calls.ts';
import { showDetail, showTest } from './subscriber-views.ts';

const nameArgument = [
  '[name]',
  'its name or id, as `millrace subscribers` lists them; without it, the one of your own key',
] as const;

const resumeFlags = z.object({ from: z.string().optional() });
const secretFlags = z.object({ end: z.boolean().default(false), endAll: z.boolean().default(false) });
const replayFlags = z.object({
  from: z.string(),
  to: z.string().optional(),
  onlyUndelivered: z.boolean().default(false),
  wait: z.boolean().default(false),
});
const deleteFlags = z.object({ yes: z.boolean().default(false) });

export function addSubscriberCommands(program: Command, io: Io): void {
  const subscriber = program
    .command('subscriber')
    .description('Show, change, pause, test, replay and delete one subscriber.');
  const add = (name: string, description: string): Command =>
    subscriber
      .command(name)
      .description(description)
      .argument(...nameArgument);
  examples(
    add('show', 'Show a subscriber: its limits, its position, and what is queued.').action(verb(io, noOptions, show)),
    [
      ['millrace subscriber show billing--1a2b3c4d', 'as an operator'],
      ['millrace subscriber show', 'the one of your own key'],
    ],
  );
  addChange(add, io);
  const pausing = add('pause', 'Stop deliveries. Events are kept until it is resumed.').option(
    '--reason <text>',
    'shown beside the state',
  );
  examples(pausing.action(verb(io, z.object({ reason: z.string().optional() }), pauseIt)), [
    ['millrace subscriber pause billing--1a2b3c4d --reason "moves to the new host"', 'nothing is lost'],
  ]);
  addResume(add, io);
  examples(
    add(
      'test',
      'Send a test event to the callback, and print its answer. Exits with 1 unless the answer is 2xx within 5 s.',
    ).action(verb(io, noOptions, test)),
    [['millrace subscriber test billing--1a2b3c4d', 'does the receiver answer?']],
  );
  addSecret(add, io);
  addReplay(add, io);
  const remove = add('delete', 'Delete a subscriber with its position, dead letters and replays.').option(
    '--yes',
    'do not ask',
  );
  examples(remove.action(verb(io, deleteFlags, removeIt)), [
    ['millrace subscriber delete billing--1a2b3c4d --yes', 'in a script'],
  ]);
}

type Add = (name: string, description: string) => Command;

function addChange(add: Add, io: Io): void {
  const change = add('change', 'Change fields of a subscriber, such as its filter. Other fields keep their values.')
    .requiredOption('--set <json>', 'the fields: see `PATCH /bus/subscriber` in docs/bus.md; null restores a default')
    .action(verb(io, z.object({ set: z.string() }), changeIt));
  examples(change, [
    [`millrace subscriber change billing--1a2b3c4d --set '{"filter": {"data.total": {"$gte": 100}}}'`, 'fewer events'],
    [`millrace subscriber change billing--1a2b3c4d --set '{"ordering": "key", "strands": 8}'`, 'eight batches at once'],
    [`millrace subscriber change billing--1a2b3c4d --set '{"max_attempts": 50, "max_age": null}'`, 'when to give up'],
  ]);
}

function addResume(add: Add, io: Io): void {
  const resume = add('resume', 'Continue deliveries of a paused or disabled subscriber where they stopped.').option(
    '--from <point>',
    'now: skip what is queued; or an event number or a time: go there',
  );
  examples(resume.action(verb(io, resumeFlags, resumeIt)), [
    ['millrace subscriber resume billing--1a2b3c4d', 'with everything that was kept'],
    ['millrace subscriber resume billing--1a2b3c4d --from now', 'without what is queued'],
    ['millrace subscriber resume billing--1a2b3c4d --from 2030-01-31T00:00:00Z', 'from that time on, also again'],
  ]);
}

function addSecret(add: Add, io: Io): void {
  const secret = add(
    'secret',
    'Create a secret that signs deliveries (Standard Webhooks), and print it. It is shown only this once. The former one stays valid until you end it.',
  )
    .option('--end', 'end the older of two secrets instead')
    .option('--end-all', 'end all secrets instead: deliveries are no longer signed');
  examples(secret.action(verb(io, secretFlags, makeSecret)), [
    ['millrace subscriber secret billing--1a2b3c4d', 'give it to the receiver'],
    ['millrace subscriber secret billing--1a2b3c4d --end', 'when the receiver uses the new one'],
  ]);
}

function addReplay(add: Add, io: Io): void {
  const replay = add('replay', 'Deliver a range of the past again, beside the ordinary deliveries.')
    .requiredOption('--from <point>', 'the first event: its number, or a time')
    .option('--to <point>', 'the last event (the newest)')
    .option('--only-undelivered', 'only what was given up or dropped')
    .option('--wait', 'wait until it ends, with progress; exits with 1 unless all is delivered');
  examples(replay.action(verb(io, replayFlags, replayIt)), [
    ['millrace subscriber replay billing--1a2b3c4d --from 1200 --to 1300', 'events by number'],
    ['millrace subscriber replay billing--1a2b3c4d --from 2030-01-31T00:00:00Z --wait', 'all since then'],
    ['millrace subscriber replay billing--1a2b3c4d --from 1 --only-undelivered', 'what it has missed'],
  ]);
}

async function open(session: Session, name: string | undefined): Promise<SubscriberCalls> {
  const server = await session.connect();
  if (name === undefined) await server.tenant('GET /bus/subscriber').catch(explainMissing);
  return makeSubscriberCalls(server, name);
}

/** Without a name, a command is about the subscriber of the caller's key, and most keys of people have none. */
function explainMissing(error: unknown): never {
  if (!(error instanceof CallFailed) || error.status !== 404) throw error;
  throw new MillraceError(
    'not_found',
    'this key has no subscriber: give a name as `millrace subscribers` lists it, or set MILLRACE_KEY to the key of the subscriber',
  );
}

async function show(session: Session, [name]: readonly string[]): Promise<void> {
  const detail = await (await open(session, name)).show();
  session.out.answer(detail, () => showDetail(session.out, detail));
}

async function changeIt(session: Session, [name]: readonly string[], flags: { readonly set: string }): Promise<void> {
  // the server checks the fields, and names those that are not right
  const body = parseJsonFlag('--set', flags.set) as SubscriberChange;
  const calls = await open(session, name);
  const detail = await byArgument(calls.change(body), { body: '--set' });
  session.out.answer(detail, () => showDetail(session.out, detail));
}

async function pauseIt(session: Session, [name]: readonly string[], { reason }: { reason?: string | undefined }) {
  const detail = await (await open(session, name)).pause({ reason });
  session.out.answer(detail, () =>
    session.out.line(`${detail.subscriber} is paused, with ${detail.events.queued} queued`),
  );
}

async function resumeIt(session: Session, [name]: readonly string[], flags: z.output<typeof resumeFlags>) {
  const from = flags.from === undefined || flags.from === 'now' ? flags.from : checkPoint('--from', flags.from);
  const detail = await (await open(session, name)).resume({ from });
  session.out.answer(detail, () =>
    session.out.line(`${detail.subscriber} is ${detail.state}, with ${detail.events.queued} queued`),
  );
}

async function test(session: Session, [name]: readonly string[]): Promise<void> {
  showTest(session, await (await open(session, name)).test());
}

async function makeSecret(session: Session, [name]: readonly string[], flags: z.output<typeof secretFlags>) {
  if (flags.end && flags.endAll) throw new UsageError('give --end or --end-all, not both');
  const calls = await open(session, name);
  if (flags.end || flags.endAll) {
    await calls.endSecrets(flags.endAll);
    const { subscriber, secrets } = await calls.show();
    const text = secrets === 0 ? 'deliveries are no longer signed' : `valid secrets: ${secrets}`;
    session.out.answer({ subscriber, valid: secrets }, () => session.out.line(`${subscriber}: ${text}`));
    return;
  }
  const made = await calls.addSecret();
  session.out.answer(made, () => session.out.line(made.secret));
  if (made.valid > 1) session.out.note('the former secret stays valid; --end ends it');
}

async function replayIt(session: Session, [name]: readonly string[], flags: z.output<typeof replayFlags>) {
  const from = checkPoint('--from', flags.from);
  const to = flags.to === undefined ? undefined : checkPoint('--to', flags.to);
  const calls = await open(session, name);
  const { id } = await calls.startReplay({ from, to, only_undelivered: flags.onlyUndelivered });
  if (flags.wait) return followReplay(session, calls, id);
  session.out.answer({ id }, () => session.out.line(id));
}

async function removeIt(session: Session, [name]: readonly string[], { yes }: z.output<typeof deleteFlags>) {
  const calls = await open(session, name);
  const { subscriber, events, dead_letters: letters } = await calls.show();
  await session.confirm(`Delete ${subscriber}, with ${events.queued} queued events and ${letters} dead letters?`, yes);
  await calls.remove();
  session.out.answer({ subscriber, deleted: true }, () => session.out.line(`${subscriber} is deleted`));
}

/** The number of an event, or a time, which is checked here so that a typing error is one of the command line. */
function checkPoint(flag: string, text: string): string {
  if (/^\d{1,15}$/.test(text)) return text;
  if (/^\d{4}-/.test(text)) return checkInstant(text);
  throw new UsageError(
    `${flag}: ${JSON.stringify(text)} is neither the number of an event nor a time such as 2030-01-31T00:00:00Z`,
  );
}
