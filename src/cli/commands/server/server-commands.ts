/** Commands about the installation: status, sign-in links, sessions, keys, events. */
import type { Command } from 'commander';
import { z } from 'zod';
import { roles } from '../../../contract/roles.ts';
import { isId } from '../../../kernel/id.ts';
import { byArgument } from '../../session/arguments.ts';
import { UsageError } from '../../session/exit.ts';
import { followEvents } from './follow-events.ts';
import { examples, integer, wordsOf } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { showTime } from '../../print/output.ts';
import * as pages from '../../session/pages.ts';
import { noOptions, type Session, verb } from '../../session/session.ts';
import { addSessionCommands } from './session-commands.ts';
import { showHealth } from './health.ts';
import { showStatus } from './status.ts';

export function addServerCommands(program: Command, io: Io): void {
  const open = program
    .command('open')
    .description('Print a fresh link that signs a browser in. It works once, for ten minutes.')
    .action(verb(io, noOptions, makeLink));
  examples(open, [['xdg-open "$(millrace open)"', 'straight into the browser']]);
  const status = program
    .command('status')
    .description(
      "Show the health of the server, its version and that of the tenant's engine, workers, schedulers and counts. Exits with 1 if something is not well.",
    )
    .action(verb(io, noOptions, showStatus));
  examples(status, [['millrace status --json | jq .counts', 'for a script']]);
  const health = program
    .command('health')
    .description('Ask the server whether it works, for health checks of containers. Needs no key; exits with 1 if not.')
    .action(verb(io, noOptions, showHealth));
  examples(health, [['millrace health --url http://127.0.0.1:8080', 'of `millrace api`']]);
  const events = program
    .command('events')
    .description('Print events as they happen, one per line, until Ctrl-C. Reconnects by itself.')
    .option('--topic <topic>', 'only events of this topic, such as millrace_runs')
    .option('--after <n>', 'begin after this event number instead of now', integer(0, Number.MAX_SAFE_INTEGER))
    .action(verb(io, z.object({ topic: z.string().optional(), after: z.int().optional() }), followEvents));
  examples(events, [
    ['millrace events --topic millrace_runs', 'the events of runs'],
    ['millrace events --after 0 --json', 'the whole log, as JSON lines'],
  ]);
  addSessionCommands(program, io);
  addKeys(program.command('key').description('Create, list, rotate and revoke API keys (needs the root key).'), io);
}

async function makeLink(session: Session): Promise<void> {
  const server = await session.connect();
  const link = await server.gateway('POST /api/session/links');
  session.out.answer(link, () => session.out.line(link.url));
  session.out.note(`works once, until ${showTime(link.expires_at)}`);
}

const createFlags = z.object({ name: z.string(), role: z.enum(roles) });
/** Keys of these roles belong to no tenant, unless --tenant names one. */
const installationRoles: ReadonlySet<string> = new Set(['root', 'worker', 'conductor']);

function addKeys(key: Command, io: Io): void {
  const create = key
    .command('create')
    .description(
      'Create a key and print it. It is shown only this once. It gives access to the tenant of --tenant, else to `default`; a worker key without --tenant serves all tenants.',
    )
    .requiredOption('--name <name>', 'the owner or the purpose of the key')
    .requiredOption('--role <role>', roles.join(', '), wordsOf(roles))
    .action(verb(io, createFlags, createKey));
  examples(create, [
    ['millrace key create --name ci --role operator', 'for a pipeline that applies jobs'],
    ['millrace key create --name box7 --role worker', 'for a worker on another machine'],
    ['millrace key create --name box8 --role worker --tenant shop', 'for a worker that runs tasks of shop only'],
    ['millrace key create --name ann --role viewer --tenant shop', 'access to the tenant shop only'],
    ['millrace key create --name billing --role client', 'for a service that publishes and subscribes'],
  ]);
  const list = key.command('list').description('List keys, without their secrets, which are not stored.');
  examples(list, [['millrace key list', 'with their owners and creators']]);
  list.action(verb(io, noOptions, listKeys));
  const rotate = key
    .command('rotate')
    .description(
      'Give a key another secret and print it. It is shown only this once. Topics and subscriber stay; the former secret works for 24 hours.',
    )
    .argument('<id>', 'as `millrace key list` shows it')
    .action(verb(io, noOptions, rotateKey));
  examples(rotate, [['millrace key rotate 01890a5d-…', 'then give it to the service within 24 hours']]);
  const revoke = key.command('revoke').description('Revoke a key, and end the browser sessions made with it.');
  examples(revoke, [['millrace key revoke 01890a5d-…', 'by its id']]);
  revoke.argument('<id>', 'as `millrace key list` shows it').action(verb(io, noOptions, revokeKey));
}

async function createKey(session: Session, _: readonly string[], options: z.output<typeof createFlags>): Promise<void> {
  const server = await session.connect();
  const { name, role } = options;
  const usual = installationRoles.has(role) ? undefined : session.usualTenant;
  const call = server.gateway('POST /api/keys', { body: { name, role, tenant: session.tenantName ?? usual } });
  const tenantFrom = session.tenantName === undefined ? 'MILLRACE_TENANT' : '--tenant';
  const made = await byArgument(call, { 'body.name': '--name', 'body.role': '--role', 'body.tenant': tenantFrom });
  session.out.answer(made, () => session.out.line(made.key));
  session.out.note(
    `key ${made.id}, role ${made.role}, ${made.tenant === null ? 'all tenants' : `tenant ${made.tenant}`}`,
  );
}

async function listKeys(session: Session): Promise<void> {
  const server = await session.connect();
  const items = await pages.listKeys(server);
  session.out.answer(items, () => {
    session.out.table(
      [
        { title: 'ID' },
        { title: 'NAME', flexible: true },
        { title: 'ROLE' },
        { title: 'TENANT', flexible: true },
        { title: 'CREATED' },
        { title: 'BY', flexible: true },
      ],
      items.map((key) => [key.id, key.name, key.role, key.tenant, showTime(key.created_at), key.created_by]),
    );
  });
}

async function rotateKey(session: Session, [id = '']: readonly string[]): Promise<void> {
  checkKeyId(id);
  const server = await session.connect();
  const made = await server.gateway('POST /api/keys/{id}/rotate', { params: { id } });
  session.out.answer(made, () => session.out.line(made.key));
  session.out.note(`key ${made.id} replaces ${id}, which works until ${showTime(made.former_expires_at)}`);
}

function checkKeyId(id: string): void {
  if (!isId(id)) throw new UsageError(`${JSON.stringify(id)} is not the id of a key; millrace key list shows them`);
}

async function revokeKey(session: Session, [id = '']: readonly string[]): Promise<void> {
  checkKeyId(id);
  const server = await session.connect();
  await server.gateway('DELETE /api/keys/{id}', { params: { id } });
  session.out.answer({ id, revoked: true }, () => session.out.line(`key ${id} is revoked`));
}
