/** Why a tenant's scheduler runs, or why not: one sentence per reason, what to do about it, and the facts behind it. */
import { defaultTenant } from '../../contract/tenants.ts';
import { shellWord } from '../../kernel/text/shell-word.ts';
import { isNewer } from '../../kernel/text/version.ts';
import { lockStart } from '../../hosts/hang-cause.ts';
import { adoptCommand, howToLetIn, howToLetWrite } from '../../tenants/advice.ts';
import type { Life } from '../../tenants/life.ts';
import { slotLimit } from '../../tenants/orders.ts';
import { type Blocker, blockersOf, described, howToEnd, howToWait } from '../../control/blockers.ts';
import { usualTarget } from '../../tenants/target.ts';
import { installationFaultStart } from '../../loader/inspect.ts';
import { messagesOf, type SentMessage } from '../../control/messages.ts';
import { causeOf, type ReasonCode, reasons, schemaFaultStart } from '../../control/reasons.ts';
import { quoted } from '../../postgres/databases.ts';
import type { DatabaseFault } from '../../postgres/vitals.ts';
import { type Absence, absenceOf } from './stale-status.ts';
import { type Circumstances, readCircumstances } from './standing.ts';
import * as queries from './queries.ts';
import { renderMessage, renderTenant } from './views.ts';

type Facts = Record<string, unknown>;

interface Ground {
  readonly life: Life;
  readonly tenant: queries.TenantState;
  /** The newest first. */
  readonly messages: readonly SentMessage[];
  /** Who stopped it, though it was renamed or upgraded since. */
  readonly lastStop: SentMessage | undefined;
  /** Whether the caller may hear of other tenants. */
  readonly isRoot: boolean;
}

interface Said {
  readonly sentence: string;
  readonly advice: string | null;
  readonly facts?: Facts;
  /** The sentence says whether a launcher is active. */
  readonly tellsOfLauncher?: boolean;
}

export async function explainTenant(life: Life, tenant: queries.TenantState, isRoot: boolean) {
  const [circumstances, messages] = await Promise.all([
    readCircumstances(life),
    messagesOf(life.control, tenant.id, fewMessages),
  ]);
  const { launcherActive: active, fault } = circumstances;
  const [last] = messages;
  const lastStop = messages.find(({ kind }) => kind === 'stop');
  const view = renderTenant(tenant, circumstances);
  const ground = { life, tenant, messages, lastStop, isRoot };
  const said = await say(ground, circumstances);
  const { sentence, advice } = active || fault !== undefined ? said : unattended(said, messages);
  const { desired, version, host, failures, retry_at } = view;
  const facts = { desired, version, host, failures, retry_at, launcher_active: active };
  const message = last === undefined ? null : renderMessage(last);
  return {
    tenant: tenant.name,
    standing: view.standing,
    summary: view.summary,
    state: view.state,
    reason_code: view.reason_code,
    sentence,
    advice,
    facts: { ...facts, ...said.facts, last_message: message },
  };
}

/** While the control database takes no writes, nobody can say what has become of a tenant. */
function say(ground: Ground, { launcherActive: active, fault, clockFault }: Circumstances): Said | Promise<Said> {
  const { tenant } = ground;
  if (fault !== undefined && tenant.desired === 'on') return unknowable(tenant, fault);
  return tenant.state === 'STARTED' ? started(tenant, active, clockFault) : notStarted(ground);
}

function unknowable({ name, state }: queries.TenantState, { detail, since }: DatabaseFault): Said {
  const last = state === null ? '' : `; the last known state is ${state}`;
  return {
    sentence: `The state of ${name} cannot be kept up to date: ${detail}${last}.`,
    advice: 'see to the server of the control database; everything goes on by itself once it takes writes',
    facts: { database_fault_since: since.toISOString() },
    tellsOfLauncher: true,
  };
}

/** Failures after which a tenant is tried again; until it runs, they stay its reason. */
const retried: ReadonlySet<ReasonCode | null> = new Set(['unreachable', 'crashed', 'failing']);

/** A tenant that no launcher has looked at is stopped or starting, by what is desired. */
function notStarted(ground: Ground): Said | Promise<Said> {
  const { code, desired, state, reason } = ground.tenant;
  if (state === 'ALLOCATED' && reason?.includes(lockStart)) return hanging(ground.tenant);
  if (state === 'ALLOCATED' && retried.has(code)) return retrying(ground);
  return explanations[code ?? (desired === 'off' ? 'stopped_by_user' : 'starting')](ground);
}

function retrying({ life, tenant }: Ground): Said {
  const { name, database, failures } = tenant;
  const after = failures === null || failures <= 1 ? 'a failure' : `${failures} failures in a row`;
  return {
    sentence: `The scheduler of ${name} is being tried again after ${after}: ${detailOf(tenant)}.`,
    advice: remedyOf(life, tenant) ?? `see to the cause in the database ${database} and in the log of its host`,
  };
}

function started(tenant: queries.TenantState, active: boolean, clockFault: string | undefined): Said {
  const absence = absenceOf(tenant);
  return absence === undefined ? running(tenant, clockFault) : absent(tenant, absence, active);
}

function running(
  { name, version, host, trouble, database }: queries.TenantState,
  clockFault: string | undefined,
): Said {
  const where = host === null ? '' : ` on ${host.machine}, process ${host.pid}`;
  const troubles = [trouble, clockFault].filter((text) => text !== null && text !== undefined);
  const but = troubles.length === 0 ? '' : `, but ${troubles.join('; ')}`;
  return {
    sentence: `The scheduler of ${name} runs at version ${version ?? 'unknown'}${where}${but}.`,
    advice: trouble === null || trouble.includes(lockStart) ? null : `see to the cause in the database ${database}`,
  };
}

/** It says itself whether anybody will do something about it. */
function absent({ name, desired }: queries.TenantState, { has, since }: Absence, active: boolean): Said {
  const anew = desired === 'on' ? ' to start it anew' : '';
  const then = active ? '; the launcher sees to it' : `, and no launcher is active${anew}`;
  const facts = { absent_since: since?.toISOString() ?? null };
  return { sentence: `The scheduler of ${name} has ${has}${then}.`, advice: null, facts, tellsOfLauncher: true };
}

function unattended({ sentence, tellsOfLauncher = false }: Said, messages: readonly SentMessage[]): Said {
  const told = tellsOfLauncher
    ? sentence
    : `No launcher is active, so nothing changes: ${sentence.replace(/^(?:The|No) /, (word) => word.toLowerCase())}`;
  return {
    sentence: `${told.replace(/\.$/, '')}${waitingFor(messages)}.`,
    advice: 'start one: `millrace launcher`, or `millrace up` for everything on one machine',
  };
}

/** What no launcher has come to yet: the newest decides, those before it are only counted. */
function waitingFor(messages: readonly SentMessage[]): string {
  const [newest, ...older] = messages.filter(({ settledAt }) => settledAt === null);
  if (newest === undefined) return '';
  const { kind, sender, sentAt } = newest;
  const before = older.length === 0 ? '' : `, and so ${older.length === 1 ? 'does' : 'do'} ${older.length} before it`;
  return `; a ${kind} by ${sender} at ${sentAt.toISOString()} waits for a launcher${before}`;
}

const fewMessages = 20;

/** Who sends what the launcher tells itself of transactions that nobody has announced. */
const bySql = 'sql';

type Explain = (ground: Ground) => Said | Promise<Said>;

const explanations: Readonly<Record<ReasonCode, Explain>> = {
  stopped_by_user: ({ tenant: { name, leaving }, lastStop }) => {
    const who = lastStop === undefined ? '' : ` by ${lastStop.sender} at ${lastStop.sentAt.toISOString()}`;
    const word = shellWord(name);
    if (leaving)
      return {
        sentence: `${name} was stopped${who} to be dropped, and is still there.`,
        advice: `\`millrace tenant drop ${word}\` completes that, \`millrace tenant start ${word}\` takes it back`,
      };
    return { sentence: `${name} was stopped${who}.`, advice: `\`millrace tenant start ${word}\`` };
  },
  starting: ({ tenant: { name, state, reason } }) => {
    if (state === null) return { sentence: `No launcher has looked at ${name} yet.`, advice: null };
    const told = state === 'ENABLED' ? `${name} is to be started` : `The scheduler of ${name} is starting`;
    const detail = reason?.startsWith('starting: ') ? reason.slice('starting'.length) : '';
    return { sentence: `${told}${detail}.`, advice: null };
  },
  stopping: ({ tenant: { name } }) => ({ sentence: `The scheduler of ${name} is ending.`, advice: null }),
  waiting_on_transaction: waitingOnTransaction,
  no_slot: noSlot,
  no_engine: noEngine,
  not_installed: ({ tenant: { name, database } }) => ({
    sentence: `Millrace is not installed in the database ${database}.`,
    advice: `\`${adoptCommand(name, database)}\` installs it`,
  }),
  unreachable: ({ life, tenant }) => ({
    sentence: `The database of ${tenant.name} cannot be used: ${detailOf(tenant)}; tried ${times(tenant)}${nextTry(tenant)}.`,
    advice: `${remedyOf(life, tenant) ?? seeTo(tenant)}; \`millrace tenant restart ${shellWord(tenant.name)}\` tries at once`,
  }),
  not_connectable: async ({ life, tenant: { name, database, reason } }) => ({
    sentence: `${name} does not run: ${reason ?? 'its database lets nobody in'}.`,
    advice:
      reason === reasons.isUnnameable.text
        ? `alter database ${quoted(database)} rename to …`
        : await howToLetIn(life.control, { name, database }),
  }),
  crashed: ({ life, tenant }) => {
    const remedy = remedyOf(life, tenant);
    const what = remedy === undefined ? 'has ended' : 'cannot run, tried';
    return {
      sentence: `The scheduler of ${tenant.name} ${what} ${times(tenant)}: ${detailOf(tenant)}${nextTry(tenant)}.`,
      advice: `${remedy ?? 'the log of its host says more'}; \`millrace tenant restart ${shellWord(tenant.name)}\` tries at once`,
    };
  },
  failing: ({ tenant }) => (tenant.state === 'ALLOCATED' && tenant.host !== null ? hanging(tenant) : failing(tenant)),
  gone: ({ tenant: { name, database } }) => ({
    sentence: `The database ${database} of ${name} does not exist.`,
    advice:
      name === defaultTenant
        ? `restore it as ${database}, or restart Millrace, which makes an empty one`
        : `restore it, or \`millrace tenant drop ${shellWord(name)}\``,
  }),
};

function failing(tenant: queries.TenantState): Said {
  return {
    sentence: `The scheduler of ${tenant.name} was ended because a part of it does not work: ${detailOf(tenant)}${nextTry(tenant)}.`,
    advice: `see to the cause in the database ${tenant.database}; \`millrace tenant restart ${shellWord(tenant.name)}\` tries at once`,
  };
}

/** Its host has it, whether it hangs or is being tried again. */
function hanging(tenant: queries.TenantState): Said {
  return {
    sentence: `The scheduler of ${tenant.name} does not do its work: ${detailOf(tenant)}.`,
    advice: tenant.reason?.includes(lockStart)
      ? null
      : `see to the cause in the database ${tenant.database}; everything goes on by itself once it is gone`,
  };
}

function detailOf({ reason }: queries.TenantState): string {
  return causeOf(reason ?? 'unknown');
}

function remedyOf(life: Life, tenant: queries.TenantState): string | undefined {
  return howToLetWrite(detailOf(tenant), life.addressOf(tenant));
}

function seeTo({ reason, database }: queries.TenantState): string {
  const isOurs = !reason?.includes(installationFaultStart);
  return isOurs
    ? `see to the server of the database ${database}`
    : `restore that table in the database ${database}, with the version that its schema is at`;
}

function times({ failures }: queries.TenantState): string {
  return failures === null || failures <= 1 ? 'once' : `${failures} times in a row`;
}

function nextTry({ retryAt }: queries.TenantState): string {
  return retryAt === null ? '' : `; the next try is at ${retryAt.toISOString()}`;
}

async function waitingOnTransaction({ life, tenant, messages }: Ground): Promise<Said> {
  const blockers = await blockersOf(life.control, tenant.id);
  const [first] = blockers;
  const transaction = tenant.waitOn ?? first?.transaction ?? null;
  const facts = {
    transaction,
    blockers: blockers.map(({ since, ...rest }) => ({ ...rest, since: since?.toISOString() ?? null })),
  };
  const announced = messages.find(({ xid, sender }) => xid !== null && xid === transaction && sender !== bySql);
  if (announced !== undefined) return { ...underWay(tenant, announced, blockers), facts };
  const whose = first === undefined ? '' : ` (${described(first)})`;
  const which = transaction === null ? 'a transaction' : `transaction ${transaction}`;
  const sentence = `${tenant.name} waits for the end of ${which}${whose}.`;
  return { sentence, advice: first === undefined ? null : howToEnd(first), facts };
}

/** A transaction of a command of ours, which has told of it before its first statement. */
function underWay({ name }: queries.TenantState, by: SentMessage, blockers: readonly Blocker[]): Said {
  const { cause, sender, sentAt, xid } = by;
  const own = blockers.find(({ transaction }) => xid !== null && transaction === lockNumber(xid));
  const where = own === undefined ? '' : `, backend ${own.pid}`;
  return {
    sentence: `${name} waits: ${cause}, by ${sender}, is under way since ${sentAt.toISOString()} (transaction ${xid}${where}).`,
    advice: howToWait(own?.pid ?? null, blockers),
  };
}

/** Locks know 32 bits of a transaction's number. */
function lockNumber(xid: string): string {
  return String(BigInt.asUintN(32, BigInt(xid)));
}

async function noSlot({ life, tenant, isRoot }: Ground): Promise<Said> {
  const [limit, slots] = await Promise.all([slotLimit(life), queries.slotRows(life.control)]);
  const position = slots.find((slot) => slot.tenantId === tenant.id && slot.kind === 'scheduler')?.position ?? null;
  const holders = slots.filter((slot) => slot.position === null);
  const place = position === null ? '' : ` as number ${position} in the line`;
  // room for those who have one, though the limit was lowered under them, and for the line up to this one
  const enough = Math.max(limit, holders.length) + (position ?? 1);
  return {
    sentence: `${tenant.name} waits for a slot${place}: ${holders.length} of ${limit} are taken.`,
    advice: `\`millrace slots\` shows who has them; \`millrace slots --limit ${enough}\` makes room`,
    facts: { position, limit, taken: holders.length, holders: isRoot ? holders.map(shownHolder) : null },
  };
}

function shownHolder({ kind, tenant, reason, since }: queries.SlotRow): Facts {
  return { kind, tenant, reason, since: since.toISOString() };
}

const untilRestored =
  'wait for the end of the restore; where nobody restores it, bring back what is missing. It is looked at again within a minute';
const repair =
  'apply and record what is missing, or put the right version in its place: see "By a migration tool of your own" in docs/operations.md';

async function noEngine({ life, tenant, isRoot }: Ground): Promise<Said> {
  const { name, version, reason } = tenant;
  const [engines, newest] = await Promise.all([life.engines.list(), usualTarget(life, version)]);
  const at = version ?? 'unknown';
  // what to do about it is said below
  const why = causeOf(reason ?? 'no engine').replace(/; add it with `millrace engine add`$/, '');
  const sentence = `${name} is at version ${at}, and ${why}.`;
  const bring = `\`millrace engine add\` brings ${version === null ? 'its version' : at}`;
  if (reason?.includes(schemaFaultStart))
    return { sentence, advice: reason.includes('still being restored') ? untilRestored : repair };
  const isWay = newest !== undefined && version !== null && !isNewer(version, newest);
  const advice = isWay
    ? `${bring}; \`millrace tenant upgrade ${shellWord(name)}\` goes to ${newest}, which is here`
    : bring;
  return { sentence, advice, facts: { engines: isRoot ? engines : engines.map((engine) => engine.version) } };
}
