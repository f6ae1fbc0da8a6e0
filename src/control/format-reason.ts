/**
 * The sentences of all reasons. Code decides by code, cause and data, never by a sentence, so a sentence may be reworded at
 * any time.
 *
 * - `formatReason` names code and cause, for keys of the tenant.
 * - `formatCause` names the cause alone, for sentences that say the rest.
 * - `formatPlainReason` is for callers without a key: no messages of a server or an engine, no names of machines or people.
 */
import type { CauseCode, CauseData, HangFact, LockHolder, PartFact, Reason, ReasonCode } from './reasons.ts';

/** Sentences of codes without a cause. */
const codeSentences: Readonly<Record<ReasonCode, string>> = {
  stopped_by_user: 'stopped by user',
  starting: 'starting',
  stopping: 'stopping',
  waiting_on_transaction: 'waiting on a transaction',
  no_slot: 'no slot',
  no_engine: 'no engine',
  not_installed: 'not installed',
  unreachable: 'unreachable',
  not_connectable: 'its database accepts no connections',
  crashed: 'crashed',
  failing: 'failing',
  gone: 'gone: its database does not exist',
};

/** Put before the cause. Codes that are not listed need nothing before it. */
const prefixes: Partial<Record<ReasonCode, string>> = {
  starting: 'starting: ',
  no_engine: 'no engine: ',
  unreachable: 'unreachable: ',
  crashed: 'crashed: ',
  failing: 'failing: ',
};

/** Causes that are a whole sentence under any code. */
const whole: ReadonlySet<CauseCode> = new Set(['other', 'no_launcher', 'schema_unfit', 'being_restored']);

const readOnly = 'its database is read-only';
const missingRight = 'its role lacks a right';
const schemaFault = 'its schema does not match engine';

const sentences: { readonly [C in CauseCode]: (data: CauseData[C], code: ReasonCode) => string } = {
  none: (_, code) => codeSentences[code],
  error: ({ text }) => text,
  other: ({ text }) => text,
  no_launcher: () => 'no launcher is active',
  no_room: ({ engine }) => `no host of version ${engine} has room yet`,
  hosts_end: ({ how, times }) =>
    `processes for its host ended before they registered (${how}, ${times === 1 ? 'once' : `${times} times`})`,
  wrong_host: ({ engine, wanted }) => `its host is of engine ${engine}, not ${wanted}`,
  other_version: ({ version }) => `its version is ${version}`,
  being_changed: () => 'a transaction is changing it',
  other_scheduler: ({ name, pid }) =>
    `another scheduler of this tenant is still running${pid === null ? '' : ` (${name ?? 'of another user'}, backend ${pid})`}`,
  proving: ({ seconds }) => `it has started, and is watched for ${seconds} s before it is called running`,
  parts: ({ faults }) => faults.map(formatFault).join('; '),
  transaction: (data) => `waiting on transaction ${formatTransaction(data)}`,
  migration: () => 'waiting on transaction of a migration',
  locked_tables: () => 'waiting on transaction that has locked its tables',
  position: ({ position }) => `no slot (position ${position})`,
  engine_missing: (data) => `${formatMissingEngine(data)}; add it with \`millrace engine add\``,
  engine_unusable: ({ text }) => text,
  schema_unfit: ({ engine, text }) => `${schemaFault} ${engine}: ${text}`,
  being_restored: ({ engine, text }) => `${schemaFault} ${engine}: ${text}`,
  connection_lost: ({ text }) => `its database cannot be reached (${text})`,
  no_answer: ({ seconds }) => `its database does not answer within ${seconds} s`,
  lock_connection_lost: () => 'the connection that held its lock was lost',
  missing_right: ({ text }) => `${missingRight}: ${text}`,
  read_only: () => `${readOnly} (default_transaction_read_only, or a standby)`,
  installation_table: ({ text }) => `its table millrace.installation is not as Millrace makes it: ${text}`,
  template: () => 'its database is a template',
  unnameable: () => 'its database has a name that no address can mean; rename it',
  refuses_connections: () => 'its database accepts no connections',
  host_ended: ({ how }) => `its host ${how ?? 'has ended'}`,
  host_silent: ({ seconds }) => `its host was lost: it sent no heartbeat for ${seconds} s, or ignored its orders`,
  host_memory: ({ usedMib, limitMib }) => `its host ended: it uses ${usedMib} MiB of memory, more than ${limitMib}`,
  host_heap: ({ usedMib, limitMib }) =>
    `its host ended: it ran out of memory: its heap holds ${usedMib} MiB, more than ${limitMib}`,
  host_left: () => 'its host has left',
  late_load: ({ engine, seconds }) => `engine ${engine} did not load within ${seconds} s`,
  late_start: ({ seconds }) => `it did not start within ${seconds} s`,
  probe_unanswered: ({ seconds }) => `it hangs: no answer to a probe for ${seconds} s`,
  probe_failed: ({ text }) => `it hangs: ${text}`,
  told_to_end: () => 'its host was told to end it',
  withdrawn: () => 'it was withdrawn before it was begun',
  cut_off: () => 'it did not stop, and was cut off',
};

export function formatReason(reason: Reason): string {
  const { code, cause } = reason;
  const isWhole = cause === 'none' || whole.has(cause);
  return isWhole ? formatCause(reason) : `${prefixes[code] ?? ''}${formatCause(reason)}`;
}

export function formatCause<C extends CauseCode>({ code, cause, data, wasCutOff }: Reason<C>): string {
  const sentence = sentences[cause](data, code);
  return wasCutOff ? `${sentence}; ${sentences.cut_off({}, code)}` : sentence;
}

const plainSentences: Readonly<Record<ReasonCode, string>> = {
  stopped_by_user: 'stopped by a person',
  starting: 'it is starting',
  stopping: 'it is ending',
  waiting_on_transaction: 'it waits for the end of a transaction on its database',
  no_slot: 'it waits for a slot',
  no_engine: 'the engine of its version is missing, cannot be loaded or does not fit its schema',
  not_installed: 'Millrace is not installed in its database',
  unreachable: 'its database cannot be reached or used',
  not_connectable: 'its database accepts no connections',
  crashed: 'its scheduler or the process that runs it has ended',
  failing: 'a part of its scheduler does not work',
  gone: 'its database does not exist',
};

export function formatPlainReason(reason: Reason): string {
  if (reason.cause === 'parts') return reason.data.faults.map(formatPlainFault).join('; ');
  if (reason.cause === 'read_only') return readOnly;
  if (reason.cause === 'missing_right') return missingRight;
  if (reason.cause === 'no_launcher') return formatCause(reason);
  return plainSentences[reason.code];
}

export function formatMissingEngine({ version, available }: CauseData['engine_missing']): string {
  return `engine ${version} is not here, only ${available.join(', ')}`;
}

function formatTransaction({ xid, virtualTransaction, pid, isPrepared }: CauseData['transaction']): string {
  if (xid !== null) return isPrepared ? `${xid} (prepared)` : xid;
  return `${virtualTransaction ?? 'unknown'} (pid ${pid ?? 'unknown'})`;
}

function formatFault(fault: PartFact): string {
  const { message, hang } = fault;
  const why = [message, hang === null ? null : formatHang(hang)].filter((words) => words !== null).join('; ');
  return `${formatPlainFault(fault)}${why === '' ? '' : `: ${why}`}`;
}

function formatPlainFault({ doing, since, message }: PartFact): string {
  return `${doing} ${message === null ? 'has made no progress' : 'has failed'} since ${since}`;
}

function formatHang(hang: HangFact): string {
  if (hang.kind === 'lock')
    return `it waits for a lock held by ${hang.holders.map(formatHolder).join(', ')}; ${formatFreeing(hang.holders)}, or wait`;
  if (hang.kind === 'statement')
    return `PostgreSQL has been at work on its statement since ${hang.since} (backend ${hang.pid})`;
  if (hang.kind === 'no_statement') return 'PostgreSQL works on none of its statements';
  return hang.kind === 'no_answer' ? 'its database does not answer' : `its database cannot be queried: ${hang.text}`;
}

/** Names a transaction, for users who have to talk to its owner. */
export function formatHolder({ pid, gid, application, user, since }: LockHolder): string {
  const who = pid === null ? `prepared transaction ${quoteLiteral(gid)}` : `backend ${pid}`;
  const about = [
    ...(application === null ? [] : [application]),
    ...(user === null ? [] : [`role ${user}`]),
    ...(since === null ? [] : [`in a transaction since ${since}`]),
  ];
  return about.length === 0 ? who : `${who} (${about.join(', ')})`;
}

/** The statements that end these transactions. */
export function formatFreeing(holders: readonly Pick<LockHolder, 'pid' | 'gid'>[]): string {
  const statements = holders.map(({ pid, gid }) =>
    pid === null ? formatPreparedEnd(gid) : `select pg_terminate_backend(${pid})`,
  );
  return `end ${holders.length === 1 ? 'it' : 'them'} (${statements.join('; ')})`;
}

export function formatPreparedEnd(gid: string | null): string {
  return `commit prepared ${quoteLiteral(gid)}, or rollback prepared ${quoteLiteral(gid)}`;
}

function quoteLiteral(gid: string | null): string {
  return `'${(gid ?? '').replaceAll("'", "''")}'`;
}
