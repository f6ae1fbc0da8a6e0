/** `millrace subscribe` and `millrace subscribers`. */
import type { Command } from 'commander';
import { z } from 'zod';
import { parseDuration } from '../../../kernel/text/duration.ts';
import { count, type Output } from '../../print/output.ts';
import type { Style } from '../../print/paint.ts';
import { byArgument } from '../../session/arguments.ts';
import { UsageError } from '../../session/exit.ts';
import { examples, integer } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { listSubscribers } from '../../session/pages.ts';
import { noOptions, type Session, verb } from '../../session/session.ts';
import { formatAge } from '../../print/format-age.ts';
import { parseJsonFlag } from './json-flag.ts';

const flags = z.object({
  max: z.int().optional(),
  window: z.string().optional(),
  filter: z.string().optional(),
  uuid: z.string().optional(),
});

export function addSubscribeCommands(program: Command, io: Io): void {
  const subscribe = program
    .command('subscribe')
    .description(
      'Subscribe the key of this command: batches of events of these topics are sent to the address, in order, until it answers 2xx. ' +
        'A key has one subscriber; subscribing again replaces its address, topics and user name.',
    )
    .argument('<callback>', 'the https address that receives the batches')
    .argument('<topics...>', 'all topics that it shall receive; unknown ones are created')
    .option('--max <n>', 'at most so many events in a batch (100)', integer(1, 10_000))
    .option('--window <duration>', 'how long an event waits for others, such as 500ms or 2s (500ms)')
    .option('--filter <json>', 'only events that match; see docs/bus.md')
    .option('--uuid <name>', 'the user name of Basic authentication in deliveries')
    .action(verb(io, flags, subscribeKey));
  examples(subscribe, [
    ['millrace subscribe https://billing.example/events orders', 'the events of one topic'],
    [
      `millrace subscribe https://billing.example/events orders --filter '{"data.total": {"$gte": 100}}'`,
      'only some of them',
    ],
    ['MILLRACE_KEY=$(millrace key create --name billing --role client) millrace subscribe …', 'with a key of its own'],
    ['millrace subscriber test', 'then check that it answers'],
  ]);
  const list = program
    .command('subscribers')
    .description('List subscribers, with what is queued for each and how old the oldest event is.')
    .action(verb(io, noOptions, showSubscribers));
  examples(list, [
    ['millrace subscribers', 'of the tenant `default`'],
    ["millrace subscribers --json | jq '.[] | select(.events.queued > 0)'", 'those that are behind'],
  ]);
}

async function subscribeKey(
  session: Session,
  [callback = '', ...topics]: readonly string[],
  { max, window, filter, uuid }: z.output<typeof flags>,
): Promise<void> {
  const body = {
    callback,
    topics,
    max,
    timeout: window === undefined ? undefined : readWindow(window),
    filter: filter === undefined ? undefined : parseJsonFlag('--filter', filter),
    uuid,
  };
  const server = await session.connect();
  await byArgument(server.tenant('POST /bus/subscription', { body }), {
    'body.callback': 'callback',
    'body.topics': 'topics',
    'body.max': '--max',
    'body.timeout': '--window',
    'body.filter': '--filter',
    'body.uuid': '--uuid',
  });
  const made = await server.tenant('GET /bus/subscriber');
  session.out.answer(made, () => session.out.line(made.subscriber));
  session.out.note(
    `${count(made.topics.length, 'topic')} to ${made.callback ?? 'no address'}, at most ${made.max_events} events a batch, window ${made.timeout} ms`,
  );
}

function readWindow(text: string): number {
  const read = /^\d+$/.test(text) ? { ok: true as const, ms: Number(text) } : parseDuration(text);
  if (!read.ok) throw new UsageError(`--window: ${JSON.stringify(text)} ${read.message}`);
  return read.ms;
}

const styles: Readonly<Record<string, Style>> = { active: 'green', paused: 'yellow', disabled: 'red' };

export function subscriberStyle(state: string): Style {
  return styles[state] ?? 'bold';
}

async function showSubscribers(session: Session): Promise<void> {
  const server = await session.connect();
  const items = await listSubscribers(server);
  session.out.answer(items, () => {
    if (items.length === 0) return session.out.note('no subscribers; `millrace subscribe URL TOPIC` makes one');
    printSubscribers(session.out, items);
  });
}

function printSubscribers(out: Output, items: Awaited<ReturnType<typeof listSubscribers>>): void {
  const nowMs = Date.now();
  out.table(
    [
      { title: 'SUBSCRIBER' },
      { title: 'STATE' },
      { title: 'HEALTH', align: 'right' },
      { title: 'QUEUED', align: 'right' },
      { title: 'OLDEST', align: 'right' },
      { title: 'SENT', align: 'right' },
      { title: 'TOPICS', flexible: true },
      { title: 'CALLBACK', flexible: true },
    ],
    items.map(({ subscriber, state, health, events, topics, callback, kind }) => [
      subscriber,
      { text: state, style: subscriberStyle(state) },
      health,
      events.queued,
      formatAge(events.oldest, nowMs),
      events.sent,
      topics.join(','),
      kind === 'pull' ? '(pull)' : callback,
    ]),
  );
}
