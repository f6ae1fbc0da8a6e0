/**
 * Explains why a tenant's scheduler runs or does not: one sentence per reason, advice, and the facts behind it. The advice is
 * chosen by the cause of the reason, never by its text.
 */
import { defaultTenant } from '../../contract/tenants.ts';
import { shellWord } from '../../kernel/text/shell-word.ts';
import { isNewer } from '../../kernel/text/version.ts';
import { adoptCommand, howToLetIn, howToLetWrite } from '../../tenants/advice.ts';
import type { Life } from '../../tenants/life.ts';
import { slotLimit } from '../../tenants/orders.ts';
import { adviseEnding, adviseWaiting, type Blocker, blockersOf, describeBlocker } from '../../control/blockers.ts';
import { formatCause, formatMissingEngine } from '../../control/format-reason.ts';
import { usualTarget } from '../../tenants/target.ts';
import { messagesOf, type SentMessage } from '../../control/messages.ts';
import type { Reason, ReasonCode } from '../../control/reasons.ts';
import { quoted } from '../../postgres/databases.ts';
import type { DatabaseFault } from '../../postgres/database-health.ts';
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
  /** The last stop, also of a tenant that was renamed or upgraded since. */
  readonly lastStop: SentMessage | undefined;
  /** Whether the caller may see other tenants. */
  readonly isRoot: boolean;
}

interface Answer {
  readonly sentence: string;
  readonly advice: string | null;
  readonly facts?: Facts;
  /** The sentence already says whether a launcher is active. */
  readonly namesLauncher?: boolean;
}

export async function explainTenant(life: Life, tenant: queries.TenantState, isRoot: boolean) {
  const [circumstances, messages] = await Promise.all([
    readCircumstances(life),
    messagesOf(life.control, tenant.id, { limit: fewMessages }),
  ]);
  const { launcherActive: active, fault } = circumstances;
  const [last] = messages;
  const lastStop = messages.find(({ kind }) => kind === 'stop');
  const view = renderTenant(tenant, circumstances);
  const ground = { life, tenant, messages, lastStop, isRoot };
  const answered = await answer(ground, circumstances);
  const { sentence, advice } = active || fault !== undefined ? answered : addNoLauncher(answered, messages);
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
    facts: { ...facts, ...answered.facts, last_message: message },
  };
}

/** While the control database rejects writes, the state of a tenant is unknown. */
function answer(
  ground: Ground,
  { launcherActive: active, fault, clockFault }: Circumstances,
): Answer | Promise<Answer> {
  const { tenant } = ground;
  if (fault !== undefined && tenant.desired === 'on') return explainUnknown(tenant, fault);
  return tenant.state === 'STARTED' ? explainStarted(tenant, active, clockFault) : explainNotStarted(ground);
}

function explainUnknown({ name, state }: queries.TenantState, { detail, since }: DatabaseFault): Answer {
  const last = state === null ? '' : `; the last known state is ${state}`;
  return {
    sentence: `The state of ${name} cannot be kept up to date: ${detail}${last}.`,
    advice: 'repair the server of the control database; Millrace continues by itself once it accepts writes',
    facts: { database_fault_since: since.toISOString() },
    namesLauncher: true,
  };
}

/** Failures after which a tenant is retried. They remain its reason until it runs. */
const retriedCodes: ReadonlySet<ReasonCode> = new Set(['unreachable', 'crashed', 'failing']);

/** A tenant that no launcher has processed yet is stopped or starting, depending on its desired state. */
function explainNotStarted(ground: Ground): Answer | Promise<Answer> {
  const { desired, state, reason } = ground.tenant;
  const code = reason?.code ?? (desired === 'off' ? 'stopped_by_user' : 'starting');
  if (state === 'ALLOCATED' && waitsForLock(reason)) return explainHang(ground.tenant);
  if (state === 'ALLOCATED' && retriedCodes.has(code)) return explainRetry(ground);
  return explanations[code](ground);
}

/** The reason names the holders of the lock and the statement that ends them, so no advice is needed. */
function waitsForLock(reason: Reason | null): boolean {
  return reason?.cause === 'parts' && reason.data.faults.some(({ hang }) => hang?.kind === 'lock');
}

function explainRetry({ life, tenant }: Ground): Answer {
  const { name, database, failures } = tenant;
  const after = failures === null || failures <= 1 ? 'a failure' : `${failures} failures in a row`;
  return {
    sentence: `The scheduler of ${name} is being tried again after ${after}: ${detailOf(tenant)}.`,
    advice: remedyOf(life, tenant) ?? `remove the cause in the database ${database} and in the log of its host`,
  };
}

function explainStarted(tenant: queries.TenantState, active: boolean, clockFault: string | undefined): Answer {
  const absence = absenceOf(tenant);
  return absence === undefined ? explainRunning(tenant, clockFault) : explainAbsence(tenant, absence, active);
}

function explainRunning(
  { name, version, host, trouble, database }: queries.TenantState,
  clockFault: string | undefined,
): Answer {
  const where = host === null ? '' : ` on ${host.machine}, process ${host.pid}`;
  const ofParts = trouble === null ? [] : [formatCause(trouble)];
  const troubles = clockFault === undefined ? ofParts : [...ofParts, clockFault];
  const but = troubles.length === 0 ? '' : `, but ${troubles.join('; ')}`;
  return {
    sentence: `The scheduler of ${name} runs at version ${version ?? 'unknown'}${where}${but}.`,
    advice: trouble === null || waitsForLock(trouble) ? null : `remove the cause in the database ${database}`,
  };
}

/** The sentence includes whether a launcher will act. */
function explainAbsence({ name, desired }: queries.TenantState, { has, since }: Absence, active: boolean): Answer {
  const anew = desired === 'on' ? ' to start it anew' : '';
  const then = active ? '; the launcher sees to it' : `, and no launcher is active${anew}`;
  const facts = { absent_since: since?.toISOString() ?? null };
  return { sentence: `The scheduler of ${name} has ${has}${then}.`, advice: null, facts, namesLauncher: true };
}

function addNoLauncher({ sentence, namesLauncher = false }: Answer, messages: readonly SentMessage[]): Answer {
  const whole = namesLauncher
    ? sentence
    : `No launcher is active, so nothing changes: ${sentence.replace(/^(?:The|No) /, (word) => word.toLowerCase())}`;
  return {
    sentence: `${whole.replace(/\.$/, '')}${describeWaiting(messages)}.`,
    advice: 'start one: `millrace launcher`, or `millrace up` for everything on one machine',
  };
}

/** Messages that no launcher has processed yet. The newest decides; older ones are only counted. */
function describeWaiting(messages: readonly SentMessage[]): string {
  const [newest, ...older] = messages.filter(({ settledAt }) => settledAt === null);
  if (newest === undefined) return '';
  const { kind, sender, sentAt } = newest;
  const before = older.length === 0 ? '' : `, and so ${older.length === 1 ? 'does' : 'do'} ${older.length} before it`;
  return `; a ${kind} by ${sender} at ${sentAt.toISOString()} waits for a launcher${before}`;
}

const fewMessages = 20;

/** The sender of restarts for transactions that no message announced. */
const bySql = 'sql';

type Explain = (ground: Ground) => Answer | Promise<Answer>;

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
    const what = state === 'ENABLED' ? `${name} is to be started` : `The scheduler of ${name} is starting`;
    const isPlain = reason === null || reason.cause === 'none' || reason.cause === 'no_launcher';
    return { sentence: `${what}${isPlain ? '' : `: ${formatCause(reason)}`}.`, advice: null };
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
    sentence: `${name} does not run: ${reason === null ? 'its database accepts no connections' : formatCause(reason)}.`,
    advice:
      reason?.cause === 'unnameable'
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
  failing: ({ tenant }) =>
    tenant.state === 'ALLOCATED' && tenant.host !== null ? explainHang(tenant) : explainFailing(tenant),
  gone: ({ tenant: { name, database } }) => ({
    sentence: `The database ${database} of ${name} does not exist.`,
    advice:
      name === defaultTenant
        ? `restore it as ${database}, or restart Millrace, which makes an empty one`
        : `restore it, or \`millrace tenant drop ${shellWord(name)}\``,
  }),
};

function explainFailing(tenant: queries.TenantState): Answer {
  return {
    sentence: `The scheduler of ${tenant.name} was ended because a part of it does not work: ${detailOf(tenant)}${nextTry(tenant)}.`,
    advice: `remove the cause in the database ${tenant.database}; \`millrace tenant restart ${shellWord(tenant.name)}\` tries at once`,
  };
}

/** A host runs it: it hangs, or it is being retried. */
function explainHang(tenant: queries.TenantState): Answer {
  return {
    sentence: `The scheduler of ${tenant.name} does not do its work: ${detailOf(tenant)}.`,
    advice: waitsForLock(tenant.reason)
      ? null
      : `remove the cause in the database ${tenant.database}; the scheduler continues by itself once it is gone`,
  };
}

function detailOf({ reason }: queries.TenantState): string {
  return reason === null ? 'unknown' : formatCause(reason);
}

function remedyOf(life: Life, tenant: queries.TenantState): string | undefined {
  return tenant.reason === null ? undefined : howToLetWrite(tenant.reason, life.addressOf(tenant));
}

function seeTo({ reason, database }: queries.TenantState): string {
  return reason?.cause === 'installation_table'
    ? `restore that table in the database ${database}, with the version that its schema is at`
    : `repair the server of the database ${database}`;
}

function times({ failures }: queries.TenantState): string {
  return failures === null || failures <= 1 ? 'once' : `${failures} times in a row`;
}

function nextTry({ retryAt }: queries.TenantState): string {
  return retryAt === null ? '' : `; the next try is at ${retryAt.toISOString()}`;
}

async function waitingOnTransaction({ life, tenant, messages }: Ground): Promise<Answer> {
  const blockers = await blockersOf(life.control, tenant.id);
  const [first] = blockers;
  const transaction = tenant.waitOn ?? first?.transaction ?? null;
  const facts = {
    transaction,
    blockers: blockers.map(({ since, ...rest }) => ({ ...rest, since: since?.toISOString() ?? null })),
  };
  const announced = messages.find(({ xid, sender }) => xid !== null && xid === transaction && sender !== bySql);
  if (announced !== undefined) return { ...explainCommand(tenant, announced, blockers), facts };
  const whose = first === undefined ? '' : ` (${describeBlocker(first)})`;
  const which = transaction === null ? 'a transaction' : `transaction ${transaction}`;
  const sentence = `${tenant.name} waits for the end of ${which}${whose}.`;
  return { sentence, advice: first === undefined ? null : adviseEnding(first), facts };
}

/** The transaction of a Millrace command, which announced it before its first statement. */
function explainCommand({ name }: queries.TenantState, by: SentMessage, blockers: readonly Blocker[]): Answer {
  const { cause, sender, sentAt, xid } = by;
  const own = blockers.find(({ transaction }) => xid !== null && transaction === lockNumber(xid));
  const where = own === undefined ? '' : `, backend ${own.pid}`;
  return {
    sentence: `${name} waits: ${cause}, by ${sender}, is under way since ${sentAt.toISOString()} (transaction ${xid}${where}).`,
    advice: adviseWaiting(own?.pid ?? null, blockers),
  };
}

/** Locks show only 32 bits of a transaction number. */
function lockNumber(xid: string): string {
  return String(BigInt.asUintN(32, BigInt(xid)));
}

/** The maximum number of slot holders in an explanation; `millrace slots` lists all. */
const maxHolders = 100;

async function noSlot({ life, tenant, isRoot }: Ground): Promise<Answer> {
  const [limit, { taken, position }, first] = await Promise.all([
    slotLimit(life),
    queries.slotCounts(life.control, tenant.id),
    queries.slotRows(life.control, { after: undefined, limit: maxHolders }),
  ]);
  const holders = first.filter((slot) => slot.position === null);
  const place = position === null ? '' : ` as number ${position} in the line`;
  // enough for all holders, even above a lowered limit, and for the queue up to this tenant
  const enough = Math.max(limit, taken) + (position ?? 1);
  return {
    sentence: `${tenant.name} waits for a slot${place}: ${taken} of ${limit} are taken.`,
    advice: `\`millrace slots\` shows who has them; \`millrace slots --limit ${enough}\` makes room`,
    facts: { position, limit, taken, holders: isRoot ? holders.map(renderHolder) : null },
  };
}

function renderHolder({ kind, tenant, reason, since }: queries.SlotRow): Facts {
  return { kind, tenant, reason, since: since.toISOString() };
}

const untilRestored =
  'wait for the end of the restore. If no restore is under way, bring back the missing parts. The database is checked again within a minute';
const repair =
  'apply and record what is missing, or put the right version in its place: see "By a migration tool of your own" in docs/operations.md';

async function noEngine({ life, tenant, isRoot }: Ground): Promise<Answer> {
  const { name, version, reason } = tenant;
  const [engines, newest] = await Promise.all([life.engines.list(), usualTarget(life, version)]);
  const at = version ?? 'unknown';
  const sentence = `${name} is at version ${at}, and ${describeEngine(reason)}.`;
  const isHere = engines.some((engine) => engine.version === version);
  const add = isHere ? 'millrace engine add --replace --force' : 'millrace engine add';
  const bring = `\`${add}\` brings ${version === null ? 'its version' : at}${isHere ? ' anew' : ''}`;
  if (reason?.cause === 'being_restored') return { sentence, advice: untilRestored };
  if (reason?.cause === 'schema_unfit') return { sentence, advice: repair };
  const isWay = newest !== undefined && version !== null && isNewer(newest, version);
  const advice = isWay
    ? `${bring}; \`millrace tenant upgrade ${shellWord(name)}\` goes to ${newest}, which is here`
    : bring;
  return { sentence, advice, facts: { engines: isRoot ? engines : engines.map((engine) => engine.version) } };
}

/** Without the hint how to add an engine, which is part of the advice. */
function describeEngine(reason: Reason | null): string {
  if (reason?.cause === 'engine_missing') return formatMissingEngine(reason.data);
  return reason === null ? 'no engine' : formatCause(reason);
}
