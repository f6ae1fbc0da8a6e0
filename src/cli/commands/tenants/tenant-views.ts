/** Read-only commands about tenants (list, show, why, the migration script), and `millrace slots`. */
import type { Command } from 'commander';
import { z } from 'zod';
import { MillraceError } from '../../../errors.ts';
import type { CallAnswer } from '../../../http/client.ts';
import type { GatewayEndpoints } from '../../../gateway/installation/endpoints.ts';
import { pause } from '../../../kernel/service.ts';
import { newestFor } from '../../../kernel/text/version.ts';
import { byArgument } from '../../session/arguments.ts';
import { UsageError } from '../../session/exit.ts';
import { examples, requireText, integer } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { count, type Output, showTime } from '../../print/output.ts';
import { type Style } from '../../print/paint.ts';
import * as pages from '../../session/pages.ts';
import type { Server } from '../../session/server.ts';
import { noOptions, type Session, verb } from '../../session/session.ts';

export type Tenant = CallAnswer<GatewayEndpoints['GET /api/tenants/{name}']>;
export type Ordered = CallAnswer<GatewayEndpoints['GET /api/tenants/{name}/messages/{id}']>;
type Slots = Awaited<ReturnType<typeof pages.listSlots>>;

export const tenantArgument = ['<name>', 'as `millrace tenant list` shows it'] as const;
const sqlFlags = z.object({ to: z.string().optional(), from: z.string().optional() });
const slotFlags = z.object({ limit: z.int().optional(), yes: z.boolean().default(false) });
const maxSlots = 10_000;
const maxShownMessages = 10;

export function addTenantViews(tenant: Command, io: Io): void {
  const list = tenant
    .command('list')
    .description('List tenants: which run, which do not run yet and why, which are off and who stopped them.');
  list.action(verb(io, noOptions, listTenants));
  examples(list, [
    ['millrace tenant list --json | jq \'.[] | select(.standing != "runs")\'', 'tenants that do not run'],
  ]);
  const show = tenant
    .command('show')
    .description('Show a tenant: state, version, host, and the latest messages to the launcher.')
    .argument(...tenantArgument)
    .action(verb(io, noOptions, showTenant));
  examples(show, [['millrace tenant show shop', 'with its latest messages']]);
  const why = tenant
    .command('why')
    .description('Explain why a tenant runs or does not run, and what to do.')
    .argument(...tenantArgument)
    .action(verb(io, noOptions, showWhy));
  examples(why, [['millrace tenant why shop', 'with --json: the facts behind it']]);
  const script = tenant
    .command('sql')
    .description(
      'Print the SQL script that installs Millrace, or upgrades a tenant, for your own migration tool. Needs a running server.',
    )
    .argument('[name]', 'upgrade from the version of this tenant')
    .option(
      '--to <version>',
      'the target version (default: that of `tenant upgrade`, or to install, the running release)',
      requireText,
    )
    .option('--from <version>', 'the version to upgrade from; without it, install', requireText)
    .action(verb(io, sqlFlags, printScript));
  examples(script, [
    ['millrace tenant sql > install.sql', 'for a database without Millrace'],
    [
      'millrace tenant sql shop --to 0.2.0 | psql -v ON_ERROR_STOP=1 shop',
      'upgrades the tenant; no further step is needed',
    ],
  ]);
}

export function addSlots(program: Command, io: Io): void {
  const slots = program
    .command('slots')
    .description(
      'Show the slots for background work, their holders and those that wait, or change the number of slots.',
    )
    .option('--limit <n>', 'max_background_workers: counts the launcher and schedulers', integer(0, maxSlots))
    .option('--yes', 'do not ask if a lower limit stops schedulers')
    .action(verb(io, slotFlags, showSlots));
  examples(slots, [
    ['millrace slots', 'holders and waiting tenants'],
    ['millrace slots --limit 128', 'takes effect at once; asks first if it stops schedulers'],
  ]);
}

/** A tenant that runs with a problem is not green, and one that a user stopped is not red. */
function standingStyle({ standing, summary, reason_code: code }: Tenant): Style {
  if (standing === 'runs') return summary === 'runs' ? 'green' : 'yellow';
  if (standing === 'off') return code === 'stopped_by_user' || code === 'stopping' ? 'dim' : 'red';
  return code === 'starting' || code === 'no_slot' || code === 'waiting_on_transaction' ? 'cyan' : 'red';
}

export function stateLine({ name, standing, summary, version }: Tenant): string {
  const at = version === null ? '' : ` (version ${version})`;
  return `${name} ${standing === 'off' ? 'is ' : ''}${summary}${at}`;
}

async function listTenants(session: Session): Promise<void> {
  const server = await session.connect();
  const items = await pages.listTenants(server);
  session.out.answer(items, () => {
    session.out.table(
      [
        { title: 'TENANT', flexible: true },
        { title: 'STANDING', flexible: true },
        { title: 'STATE' },
        { title: 'VERSION' },
        { title: 'DATABASE', flexible: true },
      ],
      items.map((tenant) => [
        tenant.name,
        { text: tenant.summary, style: standingStyle(tenant) },
        tenant.state,
        tenant.version ?? '-',
        tenant.database,
      ]),
    );
  });
}

async function showTenant(session: Session, [name = '']: readonly string[]): Promise<void> {
  const server = await session.connect();
  const params = { name };
  const [tenant, { items: messages }] = await Promise.all([
    server.gateway('GET /api/tenants/{name}', { params }),
    server.gateway('GET /api/tenants/{name}/messages', { params, query: { limit: maxShownMessages } }),
  ]);
  session.out.answer({ ...tenant, messages }, () => {
    showFacts(session.out, tenant);
    if (messages.length === 0) return;
    session.out.line('');
    session.out.table(
      [
        { title: 'SENT' },
        { title: 'MESSAGE' },
        { title: 'FOR', flexible: true },
        { title: 'BY', flexible: true },
        { title: 'OUTCOME' },
      ],
      messages.map((m) => [showTime(m.sent_at), m.kind, m.cause, m.sender, outcomeOf(m)]),
    );
  });
}

/** The scheduler starts again even after a failed upgrade, so the version shows the result. */
function outcomeOf({ outcome, detail }: Ordered['message']): string {
  if (outcome === 'started' && detail !== null) return `${outcome} ${detail}`;
  return outcome ?? 'not received yet';
}

function showFacts(out: Output, tenant: Tenant): void {
  const { host, reason } = tenant;
  out.facts([
    ['tenant', tenant.name],
    ['standing', tenant.summary],
    ['id', tenant.id],
    ['state', `${tenant.state}${reason === null ? '' : ` (${reason})`}, since ${showTime(tenant.changed_at)}`],
    ['desired', tenant.desired],
    ['version', tenant.version ?? 'not installed, or not known yet'],
    ['database', tenant.database],
    ['host', host === null ? '-' : `${host.machine}, process ${host.pid}${tenant.own_host ? ', its own' : ''}`],
    ['failures', tenant.failures === 0 ? '0' : `${tenant.failures}, next try ${showTime(tenant.retry_at)}`],
    ['created', showTime(tenant.created_at)],
  ]);
}

async function showWhy(session: Session, [name = '']: readonly string[]): Promise<void> {
  const server = await session.connect();
  const why = await server.gateway('GET /api/explain/tenant/{name}', { params: { name } });
  session.out.answer(why, () => {
    session.out.line(why.summary);
    session.out.line(`  ${why.sentence}`);
    if (why.advice !== null) session.out.line(`  ${session.out.paint('dim', 'what to do:')} ${why.advice}`);
  });
}

async function printScript(
  session: Session,
  [name]: readonly string[],
  { to, from }: z.output<typeof sqlFlags>,
): Promise<void> {
  if (name !== undefined && from !== undefined) throw new UsageError('give the name of a tenant or --from, not both');
  const server = await session.connect();
  const start = name === undefined ? from : await versionOf(session, name);
  const version = to ?? (await findDefaultVersion(server, start));
  if (start === version) return nothingToDo(session, name, version);
  const call = server.gateway('GET /api/engines/{version}/sql', { params: { version }, query: { from: start } });
  const origin = name === undefined ? '--from' : `${name}, which is at ${start}`;
  const script = await byArgument(call, { 'path.version': '--to', 'query.from': origin });
  session.out.answer({ from: start ?? null, to: version, script }, () => session.out.line(script.trimEnd()));
}

/** Prints an empty script, which does nothing, so that a pipeline succeeds. */
function nothingToDo({ out }: Session, name: string | undefined, version: string): void {
  out.answer({ from: version, to: version, script: '' }, () =>
    out.note(
      `${name === undefined ? `from ${version} to ${version}` : `${name} is already at ${version}`}: nothing to do`,
    ),
  );
}

/** The version to which `tenant upgrade` upgrades, or which `tenant create` installs. */
async function findDefaultVersion(server: Server, from: string | undefined): Promise<string> {
  const release = (await server.gateway('GET /api/installation')).version;
  if (from === undefined) return release;
  const { items } = await server.gateway('GET /api/engines');
  const usable = items.filter(({ fault }) => fault === null).map(({ version }) => version);
  return newestFor(from, usable) ?? release;
}

async function versionOf(session: Session, name: string): Promise<string> {
  const server = await session.connect();
  const { version, reason_code: code } = await server.gateway('GET /api/tenants/{name}', { params: { name } });
  if (version !== null) return version;
  throw new MillraceError(
    'conflict',
    code === 'not_installed'
      ? `Millrace is not installed in ${name}; \`millrace tenant sql\`, without a name, prints the script that installs it`
      : `the version of ${name} is not known: its database has not been read yet, or cannot be read`,
  );
}

type SlotFlags = z.output<typeof slotFlags>;

async function showSlots(session: Session, _: readonly string[], { limit, yes }: SlotFlags): Promise<void> {
  const server = await session.connect();
  if (limit !== undefined) await lowerOrRaise(session, server, limit, yes);
  const slots = limit === undefined ? await pages.listSlots(server) : await slotsWithin(server, limit);
  session.out.answer(slots, () => printSlots(session.out, slots));
  const late = stoppedBy(slots, slots.limit);
  if (late.length > 0) session.out.note(await whyLate(server, late));
}

const maxEffectMs = 3_000;
const pollEveryMs = 100;

/** Returns the slots once the new limit is in effect, or after `maxEffectMs`. Schedulers usually stop or start at once. */
async function slotsWithin(server: Server, limit: number): Promise<Slots> {
  const until = performance.now() + maxEffectMs;
  for (;;) {
    const slots = await pages.listSlots(server);
    if (isKept(slots, limit) || performance.now() > until || !(await hasLauncher(server))) return slots;
    await pause(pollEveryMs);
  }
}

/** Whether no more slots are taken than the limit allows, and no scheduler waits for a free slot. */
function isKept(slots: Slots, limit: number): boolean {
  const isWaiting = slots.items.some(({ position }) => position !== null);
  return stoppedBy(slots, limit).length === 0 && !(isWaiting && slots.taken < limit);
}

/** Explains why more slots are taken than the limit allows. */
async function whyLate(server: Server, late: readonly string[]): Promise<string> {
  const those = `${count(late.length, 'scheduler')} (${formatSome(late)})`;
  if (await hasLauncher(server)) return `${those} ${late.length === 1 ? 'has' : 'have'} not ended yet`;
  return `${those} will stop when a launcher is active again; none is active now`;
}

/** Without an active launcher, no order is carried out. */
export async function hasLauncher(server: Server): Promise<boolean> {
  return (await server.gateway('GET /api/launcher', { query: { limit: 1 } })).active !== null;
}

/** A lower limit stops schedulers, and their tenants fire nothing. So the user must confirm it. */
async function lowerOrRaise(session: Session, server: Server, limit: number, yes: boolean): Promise<void> {
  const before = await pages.listSlots(server);
  const stopped = stoppedBy(before, limit);
  const those = `${count(stopped.length, 'scheduler')} (${formatSome(stopped)})`;
  if (stopped.length > 0)
    await session.confirm(`A limit of ${limit} stops ${those}: their tenants will fire nothing. Set it?`, yes);
  await server.gateway('PUT /api/slots', { body: { limit } });
  if (stopped.length === 0) return;
  session.out.note(`${those} will stop; ${wayBack(before, stopped.length)}`);
}

/** A stopped scheduler queues again, behind those that already wait. */
function wayBack({ items, limit, taken }: Slots, stopped: number): string {
  const line = items.filter(({ kind, position }) => kind === 'scheduler' && position !== null).length;
  const enough = Math.max(limit, taken) + line;
  const they = stopped === 1 ? 'it' : 'them';
  if (line === 0) return `\`millrace slots --limit ${enough}\` brings ${they} back`;
  const before = `${count(line, 'scheduler')} ${line === 1 ? 'waits' : 'wait'} before ${they}`;
  return `${before}: a higher limit starts waiting schedulers in order, and \`millrace slots --limit ${enough}\` starts all of them`;
}

/** The schedulers that the launcher stops: those with the newest slots. It keeps its own slot. */
function stoppedBy({ items }: Slots, limit: number): string[] {
  const lasting = items.filter(({ position }) => position === null);
  const schedulers = lasting.filter(({ kind }) => kind === 'scheduler');
  const newestFirst = schedulers.toSorted((a, b) => Date.parse(b.since) - Date.parse(a.since));
  return newestFirst.slice(0, Math.max(0, lasting.length - limit)).map(({ tenant }) => tenant ?? '-');
}

const maxNamed = 10;

function formatSome(names: readonly string[]): string {
  return `${names.slice(0, maxNamed).join(', ')}${names.length > maxNamed ? ', …' : ''}`;
}

function printSlots(out: Output, { limit, taken, waiting, items }: Slots): void {
  out.line(`${taken} of ${limit} taken, ${waiting} waiting`);
  if (items.length === 0) return;
  out.table(
    [
      { title: 'KIND' },
      { title: 'TENANT', flexible: true },
      { title: 'SINCE' },
      { title: 'PLACE' },
      { title: 'HOLDER', flexible: true },
      { title: 'FOR', flexible: true },
    ],
    items.map(({ kind, tenant, since, position, holder, reason }) => [
      kind,
      tenant ?? '-',
      showTime(since),
      position !== null ? `waits as ${position}` : 'has it',
      holder === null ? '-' : `${holder.machine}, process ${holder.pid}`,
      reason,
    ]),
  );
}
