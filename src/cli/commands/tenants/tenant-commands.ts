/** `millrace tenant`: creates, changes and drops tenants (needs the root key). Read-only commands are in tenant-views. */
import type { Command } from 'commander';
import { z } from 'zod';
import { byArgument } from '../../session/arguments.ts';
import { Ended, exitCodes, UsageError } from '../../session/exit.ts';
import { examples, requireText } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { count } from '../../print/output.ts';
import type { Server } from '../../session/server.ts';
import { noOptions, type Session, verb } from '../../session/session.ts';
import { addTenantViews, hasLauncher, type Ordered, stateLine, tenantArgument } from './tenant-views.ts';
import { reportWaitsDuring } from './upgrade-progress.ts';

const newName = ['<name>', 'lower-case letters, digits, - and _; part of addresses: /t/NAME/'] as const;
const newFlags = z.object({
  database: z.string().optional(),
  engine: z.string().optional(),
  ownHost: z.boolean().optional(),
});
const newArguments = {
  'path.name': '<name>',
  'body.name': '<name>',
  'body.database': '--database',
  'body.version': '--engine',
};
const yesFlags = z.object({ yes: z.boolean().default(false) });
const upgradeFlags = z.object({ to: z.string().optional(), dryRun: z.boolean().default(false) });

export function addTenantCommands(program: Command, io: Io): void {
  const tenant = program.command('tenant').description('Create, show, upgrade and drop tenants (needs the root key).');
  addTenantViews(tenant, io);
  addMaking(tenant, io);
  addOrders(tenant, io);
  addChanges(tenant, io);
  addEnding(tenant, io);
}

function withNewFlags(command: Command): Command {
  return command
    .argument(...newName)
    .option('--database <name>', "its database (the tenant's name)")
    .option('--engine <version>', 'install this version instead of the running release', requireText)
    .option('--own-host', 'share no host process with other tenants');
}

function addMaking(tenant: Command, io: Io): void {
  const create = withNewFlags(tenant.command('create'))
    .description(
      'Create a tenant: a database with Millrace installed. Repeat the command to complete an interrupted one.',
    )
    .action(verb(io, newFlags, createTenant));
  examples(create, [
    ['millrace tenant create shop', 'then: millrace --tenant shop apply -f jobs/'],
    ['millrace tenant create shop --database shop_jobs --engine 0.1.0', 'elsewhere, at another version'],
  ]);
  const adopt = withNewFlags(tenant.command('adopt'))
    .description('Make an existing database a tenant. Installs Millrace in it if necessary.')
    .action(verb(io, newFlags, adoptTenant));
  examples(adopt, [['millrace tenant adopt shop --database shop_prod', 'next to the tables of the shop itself']]);
}

async function createTenant(session: Session, [name = '']: readonly string[], flags: NewFlags): Promise<void> {
  const server = await session.connect();
  session.out.note(`creating the tenant ${name} and its database…`);
  const call = server.gateway('POST /api/tenants', { body: { name, ...newTenantFields(flags) } });
  showMade(session, await byArgument(call, newArguments));
}

async function adoptTenant(session: Session, [name = '']: readonly string[], flags: NewFlags): Promise<void> {
  const server = await session.connect();
  session.out.note(`adopting ${flags.database ?? name}…`);
  const call = server.gateway('POST /api/tenants/{name}/adopt', { params: { name }, body: newTenantFields(flags) });
  showMade(session, await byArgument(call, newArguments));
}

type NewFlags = z.output<typeof newFlags>;

function newTenantFields({ database, engine: version, ownHost: own_host }: NewFlags) {
  return { database, version, own_host };
}

/** The tenant exists, even if it does not run yet. */
function showMade({ out }: Session, made: Ordered): void {
  out.answer(made, () => out.line(stateLine(made.tenant)));
  if (made.tenant.state !== 'STARTED')
    out.note(`\`millrace tenant why ${made.tenant.name}\` explains why it does not run yet`);
}

const orders = {
  start: ["Start a tenant's scheduler; does nothing if it runs. Exits with 1 if it does not start.", 'after a stop'],
  stop: [
    "Stop a tenant's scheduler until it is started again. Its API stays available.",
    'no trigger fires and no run starts',
  ],
  restart: ["Stop a tenant's scheduler if it runs, and start it again.", 'retries at once'],
} as const;

function addOrders(tenant: Command, io: Io): void {
  for (const kind of ['start', 'stop', 'restart'] as const) {
    const [description, example] = orders[kind];
    const command = tenant
      .command(kind)
      .description(description)
      .argument(...tenantArgument)
      .action(verb(io, noOptions, (session, [name = '']) => give(session, kind, name)));
    examples(command, [[`millrace tenant ${kind} shop`, example]]);
  }
}

/** How long the command waits for the outcome, and how often it prints the reason for the wait. */
const maxWaitMs = 60_000;
const progressEverySeconds = 5;

async function give(session: Session, kind: keyof typeof orders, name: string): Promise<void> {
  const server = await session.connect();
  const sent = await server.gateway(`POST /api/tenants/{name}/${kind}`, { params: { name } });
  const given = await followMessage(session, server, sent);
  const isDeferred = given.message.acknowledged_at === null && !(await hasLauncher(server));
  const later = `${name} will ${kind} when a launcher is active again; none is active now`;
  session.out.answer(given, () => session.out.line(isDeferred ? later : stateLine(given.tenant)));
  if (isDone(kind, given)) return;
  if (isDeferred) throw new Ended(exitCodes.failed);
  session.out.note(`it has not ${kind === 'stop' ? 'stopped' : 'started'}: ${whyNot(given)}`);
  throw new Ended(exitCodes.failed);
}

/** Waits until the outcome is known. Returns at once if no launcher is active. */
async function followMessage(session: Session, server: Server, sent: Ordered): Promise<Ordered> {
  const until = performance.now() + maxWaitMs;
  const params = { name: sent.tenant.name, id: sent.message.id };
  for (let last = ''; ; ) {
    const now = await server.gateway('GET /api/tenants/{name}/messages/{id}', {
      params,
      query: { wait: progressEverySeconds },
    });
    if (now.message.settled_at !== null || performance.now() > until || !(await hasLauncher(server))) return now;
    const progress = now.tenant.reason ?? '';
    if (progress !== last) session.out.note(`waiting: ${progress}`);
    last = progress;
  }
}

function whyNot({ message: { outcome, detail }, tenant }: Ordered): string {
  // the detail names only the message that superseded this one
  if (outcome === 'superseded') return [outcome, detail].join(' ').trim();
  return (
    (outcome === 'started' ? null : detail) ?? tenant.reason ?? outcome ?? 'no launcher has received the message yet'
  );
}

function isDone(kind: keyof typeof orders, { message, tenant }: Ordered): boolean {
  if (kind === 'stop') return message.outcome === 'stopped';
  return message.outcome === 'started' && tenant.state === 'STARTED';
}

function addChanges(tenant: Command, io: Io): void {
  const upgrade = tenant
    .command('upgrade')
    .description('Upgrade a tenant to another version, in one transaction.')
    .argument(...tenantArgument)
    .option(
      '--to <version>',
      'the target version (default: the newest usable stable one; from a pre-release, the newest of all)',
      requireText,
    )
    .option('--dry-run', 'only show what it would do')
    .action(verb(io, upgradeFlags, upgradeTenant));
  examples(upgrade, [
    ['millrace tenant upgrade shop --dry-run', 'both versions, and the migrations between them'],
    ['millrace tenant upgrade shop --to 0.2.0', '`millrace engine list` shows the installed versions'],
  ]);
  const rename = tenant
    .command('rename')
    .description('Rename a tenant. A database of the same name is renamed with it. Keys stay valid.')
    .argument(...tenantArgument)
    .argument('<new-name>', newName[1])
    .action(verb(io, noOptions, renameTenant));
  examples(rename, [['millrace tenant rename shop store', 'its paths are under /t/store/ from then on']]);
  const ownHost = tenant
    .command('own-host')
    .description('Give a tenant its own host process, or let it share one again.')
    .argument(...tenantArgument)
    .argument('<on|off>', 'whether it has its own host')
    .action(verb(io, noOptions, setOwnHost));
  examples(ownHost, [['millrace tenant own-host shop on', 'it moves at once']]);
}

async function upgradeTenant(
  session: Session,
  [name = '']: readonly string[],
  { to, dryRun }: z.output<typeof upgradeFlags>,
): Promise<void> {
  const { out } = session;
  const server = await session.connect();
  if (!dryRun) out.note(`upgrading ${name}…`);
  const params = { name };
  const call = server.gateway('POST /api/tenants/{name}/upgrade', { params, body: { to, dry_run: dryRun } });
  const done = await reportWaitsDuring({ session, server, name }, byArgument(call, { 'body.to': '--to' }));
  out.answer(done, () => {
    const isSame = done.from === done.to;
    if (isSame && done.migrations.length === 0) return out.line(`${name} is already at ${done.to}`);
    out.line(isSame ? `${name} is at ${done.to}, but lacked:` : `${name}: ${done.from} → ${done.to}`);
    for (const migration of done.migrations) out.line(`  ${migration}`);
    if (dryRun)
      return out.note(`nothing was changed; ${count(done.sessions ?? 0, 'connection')} would have to be closed`);
    out.line(stateLine(done.tenant));
  });
}

async function renameTenant(session: Session, [name = '', to = '']: readonly string[]): Promise<void> {
  const server = await session.connect();
  const call = server.gateway('POST /api/tenants/{name}/rename', { params: { name }, body: { name: to } });
  const tenant = await byArgument(call, { 'body.name': '<new-name>' });
  session.out.answer(tenant, () =>
    session.out.line(`${name} is now ${tenant.name}, in the database ${tenant.database}`),
  );
}

async function setOwnHost(session: Session, [name = '', text = '']: readonly string[]): Promise<void> {
  if (text !== 'on' && text !== 'off') throw new UsageError(`must be on or off, not ${JSON.stringify(text)}`);
  const own_host = text === 'on';
  const server = await session.connect();
  const tenant = await server.gateway('PATCH /api/tenants/{name}', { params: { name }, body: { own_host } });
  const shares = tenant.own_host ? 'has its own host' : 'shares a host';
  session.out.answer(tenant, () => session.out.line(`${name} ${shares}`));
}

function addEnding(tenant: Command, io: Io): void {
  const yes = ['--yes', 'do not ask'] as const;
  const drop = tenant
    .command('drop')
    .description('Drop a tenant with its database, running or not. Everything in it is lost.')
    .argument(...tenantArgument)
    .option(...yes)
    .action(verb(io, yesFlags, dropTenant));
  examples(drop, [['millrace tenant drop shop', 'asks first']]);
  const release = tenant
    .command('release')
    .description('Remove Millrace from a database, which is kept. Jobs, runs, stash and keys of the tenant are lost.')
    .argument(...tenantArgument)
    .option(...yes)
    .action(verb(io, yesFlags, releaseTenant));
  examples(release, [['millrace tenant release shop', 'drops the schema millrace; asks first']]);
}

type YesFlags = z.output<typeof yesFlags>;

async function dropTenant(session: Session, [name = '']: readonly string[], { yes }: YesFlags): Promise<void> {
  const server = await session.connect();
  const { database } = await server.gateway('GET /api/tenants/{name}', { params: { name } });
  const lost = 'Its jobs, runs, stash and keys, and everything else in that database, are lost.';
  await session.confirm(`Drop the tenant ${name} and its database ${database}? ${lost}`, yes);
  session.out.note(`dropping ${name}…`);
  await server.gateway('DELETE /api/tenants/{name}', { params: { name } });
  session.out.answer({ name, dropped: true }, () =>
    session.out.line(`${name} and its database ${database} are dropped`),
  );
}

async function releaseTenant(session: Session, [name = '']: readonly string[], { yes }: YesFlags): Promise<void> {
  const server = await session.connect();
  const { database } = await server.gateway('GET /api/tenants/{name}', { params: { name } });
  const lost = 'Its jobs, runs, stash and keys are lost; the database and all its other contents are kept.';
  await session.confirm(`Remove Millrace from the database ${database} of tenant ${name}? ${lost}`, yes);
  await server.gateway('POST /api/tenants/{name}/release', { params: { name } });
  session.out.answer({ name, released: true }, () =>
    session.out.line(`Millrace is no longer in the database ${database}`),
  );
}
