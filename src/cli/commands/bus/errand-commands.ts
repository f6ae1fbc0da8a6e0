/** `millrace errands list|retry`: the background work of the bus. */
import type { Command } from 'commander';
import { z } from 'zod';
import { collectPages } from '../../../http/client.ts';
import { errandQueues, errandStates } from '../../../errands/contract.ts';
import { type Output, showTime } from '../../print/output.ts';
import { UsageError } from '../../session/exit.ts';
import { examples, integer, wordsOf } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import type { Server } from '../../session/server.ts';
import { type Session, verb } from '../../session/session.ts';

const maxListed = 10_000;
/** The most keys of one request. */
const maxRetried = 1_000;
const queue = z.enum(errandQueues);
const state = z.enum(errandStates);
const listFlags = z.object({ queue: queue.optional(), state: state.optional(), limit: z.int().default(50) });
const retryFlags = z.object({
  queue: queue.default('main'),
  subscriber: z.string().optional(),
  poisoned: z.boolean().default(false),
});

export function addErrandCommands(program: Command, io: Io): void {
  const errands = program
    .command('errands')
    .description('List the background work of the bus: deliveries, replays, tests and the relay.');
  const list = errands
    .command('list', { isDefault: true })
    .description('List errands, and count them by state. A poisoned one was set aside after five lost couriers.')
    .option('--queue <queue>', 'main: deliveries and replays; aux: all other work', wordsOf(errandQueues))
    .option('--state <state>', errandStates.join(', '), wordsOf(errandStates))
    .option('--limit <n>', 'how many at most (50)', integer(1, maxListed))
    .action(verb(io, listFlags, showErrands));
  examples(list, [
    ['millrace errands', 'all, with counts'],
    ['millrace errands list --state poisoned', 'those that were set aside'],
  ]);
  const retry = errands
    .command('retry')
    .description('Make scheduled errands ready now, and give poisoned ones another chance.')
    .argument('[keys...]', 'as `millrace errands --json` lists them, in quotes')
    .option('--queue <queue>', 'the queue of the keys (main)', wordsOf(errandQueues))
    .option('--subscriber <name>', 'all errands of this subscriber')
    .option('--poisoned', 'all poisoned errands of the queue')
    .action(verb(io, retryFlags, retryErrands));
  examples(retry, [
    ['millrace errands retry --subscriber billing--1a2b3c4d', 'do not wait for the next attempt'],
    ['millrace errands retry --poisoned', 'after the cause was removed'],
  ]);
}

type Wanted = Pick<z.output<typeof listFlags>, 'queue' | 'state'>;

async function listErrands(server: Server, wanted: Wanted, most: number) {
  let counts: Counts | undefined;
  const items = await collectPages(async (cursor, limit) => {
    const page = await server.tenant('GET /api/errands', { query: { ...wanted, cursor, limit } });
    counts = page.counts;
    return page;
  }, most);
  return { items, counts: counts ?? { main: noErrands, aux: noErrands } };
}

type QueueCounts = Readonly<Record<(typeof errandStates)[number], number>>;
type Counts = Readonly<Record<(typeof errandQueues)[number], QueueCounts>>;
const noErrands: QueueCounts = { scheduled: 0, ready: 0, pending: 0, poisoned: 0 };

async function showErrands(session: Session, _: readonly string[], flags: z.output<typeof listFlags>): Promise<void> {
  const { limit, ...wanted } = flags;
  const found = await listErrands(await session.connect(), wanted, limit);
  session.out.answer(found, () => printErrands(session.out, found));
  if (session.out.json) return;
  for (const each of errandQueues) {
    const counts = errandStates.map((name) => `${found.counts[each][name]} ${name}`).join(', ');
    session.out.note(`${each}: ${counts}`);
  }
}

function printErrands(out: Output, { items }: Awaited<ReturnType<typeof listErrands>>): void {
  if (items.length === 0) return out.note('no errands: nothing waits to be delivered');
  out.table(
    [
      { title: 'WORK' },
      { title: 'SUBSCRIBER' },
      { title: 'STATE' },
      { title: 'DUE' },
      { title: 'REASON', flexible: true },
    ],
    items.map((each) => [
      each.work ?? each.key,
      each.subscriber,
      { text: each.state, style: each.state === 'poisoned' ? 'red' : 'bold' },
      showTime(each.run_at),
      each.reason,
    ]),
  );
}

async function retryErrands(session: Session, keys: readonly string[], flags: z.output<typeof retryFlags>) {
  const { queue: name, subscriber, poisoned } = flags;
  if (keys.length > 0 === (poisoned || subscriber !== undefined)) {
    throw new UsageError('give the keys of errands, or --subscriber NAME, or --poisoned');
  }
  const server = await session.connect();
  const wanted = keys.length > 0 ? keys : await findKeys(server, { queue: name, subscriber, poisoned });
  const total = { promoted: 0, revived: 0 };
  for (let from = 0; from < wanted.length; from += maxRetried) {
    const body = { queue: flags.queue, keys: wanted.slice(from, from + maxRetried) };
    const done = await server.tenant('POST /api/errands/retry', { body });
    total.promoted += done.promoted;
    total.revived += done.revived;
  }
  session.out.answer(total, () => {
    session.out.line(`${total.promoted + total.revived} made ready (${total.revived} of them poisoned before)`);
  });
  if (total.promoted + total.revived === 0) session.out.note('none of them waits for a retry; see millrace errands');
}

interface Choice {
  readonly queue: (typeof errandQueues)[number];
  readonly subscriber: string | undefined;
  readonly poisoned: boolean;
}

async function findKeys(server: Server, { queue: name, subscriber, poisoned }: Choice): Promise<readonly string[]> {
  const wanted = poisoned ? { queue: name, state: 'poisoned' as const } : { queue: name };
  const { items } = await listErrands(server, wanted, maxListed);
  return items.filter((each) => subscriber === undefined || each.subscriber === subscriber).map(({ key }) => key);
}
