/**
 * Every error that a person or a program outside can meet: one class, and one table that says which code means what.
 *
 * On the wire an error is `application/problem+json` (RFC 9457) with the code, a sentence, and for documents every
 * fault with its path.
 */

/** code → HTTP status, and the title that never changes with the case at hand. */
const table = {
  bad_request: [400, 'The request is not understood'],
  bad_document: [400, 'The document has faults'],
  bad_reference: [400, 'The document refers to something that does not exist'],
  unauthenticated: [401, 'A key is needed'],
  forbidden: [403, 'This key may not do that'],
  worker_refused: [403, 'This worker id cannot be used'],
  unknown_host: [403, 'The host name is not one of this server'],
  not_found: [404, 'Not found'],
  conflict: [409, 'Conflict'],
  too_large: [413, 'The body is too large'],
  unsupported_media_type: [415, 'The body is of a type that is not read here'],
  too_many: [429, 'Too many of these are open'],
  undecryptable: [422, 'The value cannot be decrypted here'],
  stash_too_large: [422, 'The stash values of the run are too large'],
  upgrade_required: [426, 'This is a WebSocket'],
  method_not_allowed: [405, 'Method not allowed'],
  migration_failed: [500, 'The migration failed, and nothing was changed'],
  not_supported: [501, 'The engine of this tenant does not have this'],
  internal: [500, 'Something went wrong here'],
  overloaded: [503, 'The server has too much to do now'],
  no_engine: [503, 'No engine of this version is installed'],
  no_bus: [503, 'This tenant has no event bus'],
  not_installed: [503, 'Millrace is not installed in the database of this tenant'],
  tenant_unavailable: [503, 'The tenant cannot be served now'],
  tenant_stopped: [503, 'The tenant was stopped by a person'],
  database_unavailable: [503, 'The database cannot be used now'],
  stopping: [503, 'This process is stopping'],
  embedded_postgres: [500, 'The embedded PostgreSQL did not start'],
  already_running: [409, 'Another one is running'],
  bad_configuration: [400, 'The configuration has faults'],
  unreachable: [503, 'The server cannot be reached'],
} as const satisfies Record<string, readonly [number, string]>;

export type ErrorCode = keyof typeof table;

/** One thing wrong with an input: where (a path such as `tasks[2].depends[0]`), and what. */
export interface Fault {
  readonly path: string;
  readonly message: string;
}

export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: ErrorCode;
  readonly detail: string;
  readonly faults?: readonly Fault[];
}

export class MillraceError extends Error {
  readonly code: ErrorCode;
  readonly faults: readonly Fault[];
  /** For the answer, where HTTP asks for some. */
  readonly headers: Readonly<Record<string, string>>;
  override readonly name = 'MillraceError';

  constructor(
    code: ErrorCode,
    detail: string,
    more: { faults?: readonly Fault[]; headers?: Readonly<Record<string, string>>; cause?: unknown } = {},
  ) {
    super(detail, more.cause === undefined ? undefined : { cause: more.cause });
    this.code = code;
    this.faults = more.faults ?? [];
    this.headers = more.headers ?? {};
  }

  get status(): number {
    return table[this.code][0];
  }

  problem(): Problem {
    const [status, title] = table[this.code];
    const problem = { type: `urn:millrace:error:${this.code}`, title, status, code: this.code, detail: this.message };
    return this.faults.length > 0 ? { ...problem, faults: this.faults } : problem;
  }
}

/** The client has disconnected. This is no fault of the server, so it is not logged. */
export function clientGone(cause?: unknown): MillraceError {
  return new MillraceError('bad_request', 'the client ended the connection before its answer', { cause });
}

/**
 * The error as one of ours, by what it says of itself: thrown by another version's code, it is of another class of the
 * same name.
 */
export function knownError(error: unknown): MillraceError | undefined {
  if (error instanceof MillraceError) return error;
  if (!(error instanceof Error) || error.name !== 'MillraceError') return undefined;
  const { code, faults, headers } = error as Error & Partial<MillraceError>;
  const known = code !== undefined && Object.hasOwn(table, code) ? code : 'internal';
  return new MillraceError(known, error.message, {
    ...(Array.isArray(faults) ? { faults } : {}),
    ...(headers === undefined ? {} : { headers }),
    cause: error,
  });
}

/** The message of pg's error for a pool that was closed. It has no code. */
export const poolClosed = 'Cannot use a pool after calling end on the pool';

/** The caller's engine is no longer, or may no longer be, the tenant's: ask the loader again. */
export function isStaleEngine(error: unknown): boolean {
  // by name: the error may come from another version's copy of the class
  return error instanceof Error && (error.name === 'VersionMismatch' || error.message === poolClosed);
}

const lostConnection = /^(08|57P0[1-4]|53300)/;
/**
 * Messages of errors that pg itself makes, without SQLSTATE, errno or class. `errors.test.ts` provokes the common ones, so that
 * a new version of pg that words these differently is noticed.
 */
const lostMessages = new Set([
  'timeout exceeded when trying to connect',
  'Connection terminated',
  'Connection terminated unexpectedly',
  'Connection terminated due to connection timeout',
  'Client has encountered a connection error and is not queryable',
  'Client was closed and is not queryable',
  poolClosed,
]);
const lostSocket = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ENOENT', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENOTFOUND']);

/**
 * Whether the database was out of reach rather than the statement wrong: by SQLSTATE or errno, and by pg's own message only
 * where it gives neither.
 */
export function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = sqlStateOf(error);
  if (code !== undefined) return lostConnection.test(code) || lostSocket.has(code);
  return lostMessages.has(error.message);
}

/** By SQLSTATE: what keeps a database that answers from doing its work, in words for people. */
const databaseTroubles: Readonly<Record<string, string>> = {
  '25006': 'the database is read-only; it may be a standby',
  '42501': 'the role that Millrace connects as lacks a right in the database',
  '53000': 'the database is short of resources',
  '53100': 'the disk of the database is full',
  '53200': 'the database is out of memory',
  '53300': 'the database has no connection left',
  '53400': 'the database has reached a limit of its configuration',
  '57P01': 'the database is being shut down',
  '57P02': 'the database has crashed and is restarting',
  '57P03': 'the database is starting or shutting down',
  '58000': 'the system of the database reports an error',
  '58030': 'the database cannot read or write its files',
};

/** Why the database cannot do now what it was asked, where the statement itself is right. */
export function databaseTrouble(error: unknown): string | undefined {
  const code = sqlStateOf(error);
  if (code !== undefined && Object.hasOwn(databaseTroubles, code)) return databaseTroubles[code];
  return isConnectionLoss(error) ? 'the database cannot be reached' : undefined;
}

/** The SQLSTATE of an error, or the system's errno; undefined: it has neither. */
export function sqlStateOf(error: unknown): string | undefined {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
  return typeof code === 'string' ? code : undefined;
}

/** Something of that name or id is there already. */
export function isUniqueViolation(error: unknown): boolean {
  return sqlStateOf(error) === '23505';
}

/** Two writers met in opposite order, or one gave way: the same work again will go through. */
export function isSerialization(error: unknown): boolean {
  const code = sqlStateOf(error);
  return code === '40P01' || code === '40001';
}

/** The role may not do that in the database. */
export function isMissingRight(error: unknown): boolean {
  return sqlStateOf(error) === '42501';
}

/** A lock did not come within the time that was allowed for it. */
export function isLockTimeout(error: unknown): boolean {
  return sqlStateOf(error) === '55P03';
}

/** A session is in the way of a command that tolerates none. */
export function isInUse(error: unknown): boolean {
  return sqlStateOf(error) === '55006';
}

/** A schema or a table that the statement names is not there. */
export function isMissingTable(error: unknown): boolean {
  const code = sqlStateOf(error);
  return code === '3F000' || code === '42P01';
}

/**
 * The database is not what the statement takes it for (classes 42, 3F), or lets nobody in (28, 3D, 55000): whoever asked
 * may have the engine of another version, or of a tenant that is not installed any more.
 */
export function isDoubtful(error: unknown): boolean {
  const code = sqlStateOf(error);
  return typeof code === 'string' && /^(?:42|3F|28|3D|55000)/.test(code);
}

/** PostgreSQL rejected a value or a row (classes 22 and 23): the same statement will be rejected again. */
export function isRefusal(error: unknown): boolean {
  return /^2[23]/.test(sqlStateOf(error) ?? '');
}

/** As `isRefusal`, or a function in the database raised an exception (class P0). Without these rows, others can be written. */
export function isRowRejection(error: unknown): boolean {
  return isRefusal(error) || (sqlStateOf(error) ?? '').startsWith('P0');
}

/**
 * The server rejected a statement for any reason that may lie in its rows, a lock timeout included. Excluded are a server
 * that is short of resources or broken (25, 53, 54, 57, 58, XX), lost connections, and Millrace's own conditions (MR).
 */
export function isStatementRejection(error: unknown): boolean {
  return /^(?!25|53|54|57|58|XX|MR)[0-9A-Z]{5}$/.test(sqlStateOf(error) ?? '') && !isConnectionLoss(error);
}
