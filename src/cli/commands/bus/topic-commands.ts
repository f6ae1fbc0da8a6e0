/** `millrace topics` and `millrace publish`. */
import type { Command } from 'commander';
import { count, showTime } from '../../print/output.ts';
import { examples, wordsOf } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { listTopics } from '../../session/pages.ts';
import { noOptions, type Session, verb } from '../../session/session.ts';
import { eventTypes, publish, publishFlags } from './publish.ts';

export function addTopicCommands(program: Command, io: Io): void {
  const topics = program
    .command('topics')
    .description('List the topics of the event bus, with their owners and the number of their events.')
    .action(verb(io, noOptions, showTopics));
  examples(topics, [
    ['millrace topics', 'of the tenant `default`'],
    ["millrace topics --json | jq -r '.[].name'", 'only the names'],
  ]);
  addPublish(program, io);
}

function addPublish(program: Command, io: Io): void {
  const command = program
    .command('publish')
    .description(
      'Publish an event, or with -f many: one JSON object per line, with the fields type, url, timestamp, data, id, key and target. ' +
        'The first publisher of a topic owns it. Prints the numbers of the events after they are committed.',
    )
    .argument('<topic>', 'lower-case letters and underscores, such as orders')
    .argument('[url]', 'the https address of what has changed, without a query')
    .option('--type <type>', `${eventTypes.join(', ')} (needed without -f)`, wordsOf(eventTypes))
    .option('--data <json>', 'an object that travels with the event')
    .option('--key <key>', 'events with the same key are delivered in order (default: the address)')
    .option('--id <id>', 'your own id: an event with an id of the last 24 hours is stored once')
    .option('--target <subscriber>', 'the name of the only subscriber that receives it')
    .option('-f, --file <file>', 'a file of JSON lines; - reads stdin')
    .action(verb(io, publishFlags, publish));
  examples(command, [
    ['millrace publish orders https://shop.example/orders/1 --type update', 'one event'],
    [`millrace publish orders https://shop.example/orders/1 --type update --data '{"total": 5}'`, 'with data'],
    ['millrace publish orders -f events.ndjson', 'a file, in pages of 1,000 events'],
    [`jq -c '.orders[]' export.json | millrace publish orders -f -`, 'from another program'],
  ]);
  command.addHelpText(
    'after',
    `
A file is published in pages. Each page has a key made of its content, so after an interruption the same command
continues: pages of the last 24 hours are recognised and not published twice. This needs the same file; if you add lines
to it, give events an id.`,
  );
}

async function showTopics(session: Session): Promise<void> {
  const server = await session.connect();
  const topics = await listTopics(server);
  session.out.answer(topics, () => {
    if (topics.length === 0) return session.out.note('no topics; the first `millrace publish TOPIC …` creates one');
    session.out.table(
      [
        { title: 'TOPIC' },
        { title: 'EVENTS', align: 'right' },
        { title: 'OWNER', flexible: true },
        { title: 'CREATED' },
      ],
      topics.map((topic) => [topic.name, topic.events, topic.publisher, showTime(topic.created_at)]),
    );
    session.out.note(count(topics.length, 'topic'));
  });
}
