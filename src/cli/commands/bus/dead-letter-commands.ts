/** `millrace deadletters list|show|replay|delete`: batches that were given up. */
import type { Command } from 'commander';
import { z } from 'zod';
import { isId } from '../../../kernel/id.ts';
import { count, type Output, showTime } from '../../print/output.ts';
import { oneLine } from '../../print/width.ts';
import { UsageError } from '../../session/exit.ts';
import { examples, integer } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { listDeadLetters } from '../../session/pages.ts';
import { noOptions, type Session, verb } from '../../session/session.ts';
import { followReplay } from './follow-replay.ts';
import { formatAge } from '../../print/format-age.ts';
import { makeSubscriberCalls } from './subscriber-calls.ts';

const maxListed = 10_000;
const listFlags = z.object({ subscriber: z.string().optional(), limit: z.int().default(50) });
const manyFlags = z.object({
  subscriber: z.string().optional(),
  all: z.boolean().default(false),
  yes: z.boolean().default(false),
  wait: z.boolean().default(false),
});
type ManyFlags = z.output<typeof manyFlags>;

const idArgument = ['[id]', 'as `millrace deadletters` lists them; or give --subscriber or --all'] as const;
const subscriberOption = ['--subscriber <name>', 'of this subscriber'] as const;
const allOption = ['--all', 'all of the subscriber of your own key'] as const;

export function addDeadLetterCommands(program: Command, io: Io): void {
  const letters = program
    .command('deadletters')
    .description('List batches that were given up, because they were refused or could not be delivered for too long.');
  const list = letters.command('list', { isDefault: true }).description('List dead letters, the newest first.');
  list.option(...subscriberOption).option('--limit <n>', 'how many at most (50)', integer(1, maxListed));
  list.action(verb(io, listFlags, showLetters));
  examples(list, [
    ['millrace deadletters', 'of all subscribers'],
    ['millrace deadletters list --subscriber billing--1a2b3c4d', 'of one'],
  ]);
  const show = letters.command('show').description('Show a dead letter with its events.');
  show.argument('<id>', 'as `millrace deadletters` lists them').action(verb(io, noOptions, showLetter));
  examples(show, [["millrace deadletters show 01890a5d-… --json | jq '.body[].url'", 'what it was about']]);
  const replay = letters
    .command('replay')
    .description('Deliver dead letters again. Each is deleted once the receiver accepts it.')
    .argument(...idArgument)
    .option(...subscriberOption)
    .option(...allOption)
    .option('--wait', 'wait until it ends, with progress; exits with 1 unless all is delivered')
    .action(verb(io, manyFlags, replayLetters));
  examples(replay, [
    ['millrace deadletters replay 01890a5d-…', 'one'],
    ['millrace deadletters replay --subscriber billing--1a2b3c4d --wait', 'all of one subscriber'],
  ]);
  const remove = letters
    .command('delete')
    .description('Delete dead letters. Only a replay of their range would deliver the events then.')
    .argument(...idArgument)
    .option(...subscriberOption)
    .option(...allOption)
    .option('--yes', 'do not ask')
    .action(verb(io, manyFlags, deleteLetters));
  examples(remove, [
    ['millrace deadletters delete 01890a5d-…', 'one'],
    ['millrace deadletters delete --subscriber billing--1a2b3c4d --yes', 'all of one subscriber'],
  ]);
}

async function showLetters(session: Session, _: readonly string[], flags: z.output<typeof listFlags>): Promise<void> {
  const server = await session.connect();
  const letters = await listDeadLetters(server, flags.subscriber, flags.limit);
  session.out.answer(letters, () => {
    if (letters.length === 0) return session.out.note('no dead letters');
    const nowMs = Date.now();
    session.out.table(
      [
        { title: 'ID' },
        { title: 'SUBSCRIBER', flexible: true },
        { title: 'AGE', align: 'right' },
        { title: 'EVENTS', align: 'right' },
        { title: 'ANSWER' },
      ],
      letters.map((letter) => [
        letter.id,
        letter.subscriber,
        formatAge(letter.at, nowMs),
        letter.events,
        letter.status ?? letter.code,
      ]),
    );
  });
}

async function showLetter(session: Session, [id = '']: readonly string[]): Promise<void> {
  const server = await session.connect();
  const letter = await server.tenant('GET /bus/dead_letters/{id}', { params: { id: checkId(id) } });
  session.out.answer(letter, () => printLetter(session.out, letter));
}

type Letter = Awaited<ReturnType<typeof listDeadLetters>>[number] & {
  readonly body: readonly unknown[] | null;
  readonly complete: boolean;
};

function printLetter(out: Output, letter: Letter): void {
  out.facts([
    ['id', letter.id],
    ['subscriber', letter.subscriber],
    ['batch', letter.batch],
    ['last answer', `${letter.status ?? letter.code}, after ${count(letter.attempts, 'attempt')}`],
    ['failing since', showTime(letter.first_failed_at)],
    ['given up', showTime(letter.at)],
    ['events', String(letter.events)],
  ]);
  if (letter.body === null) return out.note('retention dropped its events before they could be delivered');
  out.line('');
  for (const element of letter.body) out.line(oneLine(JSON.stringify(element)));
  if (!letter.complete) out.note(`the other ${letter.events - letter.body.length} events are not shown`);
}

async function replayLetters(session: Session, [id]: readonly string[], flags: ManyFlags): Promise<void> {
  const wanted = checkWanted(id, flags);
  const server = await session.connect();
  const subscriber = wanted.id === undefined ? wanted.subscriber : await ownerOf(session, wanted.id);
  const started =
    wanted.id === undefined
      ? await server.tenant('POST /bus/dead_letters/replay', { query: { subscriber } })
      : await server.tenant('POST /bus/dead_letters/{id}/replay', { params: { id: wanted.id } });
  if (!flags.wait) return session.out.answer(started, () => session.out.line(started.id));
  await followReplay(
    session,
    makeSubscriberCalls(server, (await isClient(session)) ? undefined : subscriber),
    started.id,
  );
}

async function ownerOf(session: Session, id: string): Promise<string> {
  const server = await session.connect();
  return (await server.tenant('GET /bus/dead_letters/{id}', { params: { id } })).subscriber;
}

/** A client reads replays of its own subscriber only, by other calls. */
async function isClient(session: Session): Promise<boolean> {
  const { role } = await (await session.connect()).gateway('GET /api/me');
  return role === 'client' || role === 'subscriber';
}

async function deleteLetters(session: Session, [id]: readonly string[], flags: ManyFlags): Promise<void> {
  const wanted = checkWanted(id, flags);
  const server = await session.connect();
  if (wanted.id !== undefined) {
    await server.tenant('DELETE /bus/dead_letters/{id}', { params: { id: wanted.id } });
    return session.out.answer({ deleted: 1 }, () => session.out.line('1 dead letter deleted'));
  }
  await session.confirm(`Delete all dead letters of ${wanted.subscriber ?? 'your subscriber'}?`, flags.yes);
  const answer = await server.tenant('DELETE /bus/dead_letters', { query: { subscriber: wanted.subscriber } });
  session.out.answer(answer, () => session.out.line(`${count(answer.deleted, 'dead letter')} deleted`));
}

interface Wanted {
  /** Undefined: all of the subscriber. */
  readonly id?: string;
  readonly subscriber?: string;
}

function checkWanted(id: string | undefined, { subscriber, all }: ManyFlags): Wanted {
  const ways = [id !== undefined, subscriber !== undefined, all].filter(Boolean).length;
  if (ways !== 1) throw new UsageError('give the id of a dead letter, or --subscriber NAME, or --all');
  if (id !== undefined) return { id: checkId(id) };
  return subscriber === undefined ? {} : { subscriber };
}

function checkId(id: string): string {
  if (isId(id)) return id;
  throw new UsageError(`${JSON.stringify(id)} is not the id of a dead letter; millrace deadletters lists them`);
}
