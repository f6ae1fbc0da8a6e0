/**
 * Every error that a user or a client can receive: one class, and one table that maps each code to its meaning.
 *
 * On the wire an error is `application/problem+json` (RFC 9457) with the code, a sentence, and for documents every
 * fault with its path.
 */

/** code → HTTP status and title. The title is the same for every error of the code; the detail describes the single case. */
const table = {
  bad_request: [400, 'The request is not understood'],
  bad_document: [400, 'The document has faults'],
  bad_reference: [400, 'The document refers to something that does not exist'],
  unauthenticated: [401, 'A key is needed'],
  forbidden: [403, 'This key may not do that'],
  worker_refused: [403, 'This worker id cannot be used'],
  unknown_host: [403, 'This server does not have this host name'],
  not_found: [404, 'Not found'],
  conflict: [409, 'Conflict'],
  gone: [410, 'It has ended'],
  too_large: [413, 'The body is too large'],
  unsupported_media_type: [415, 'The media type of the body is not supported'],
  too_many: [429, 'Too many at once'],
  key_reused: [422, 'The idempotency key was used for another request'],
  undecryptable: [422, 'The value cannot be decrypted'],
  stash_too_large: [422, 'The stash values of the run are too large'],
  upgrade_required: [426, 'A WebSocket upgrade is required'],
  method_not_allowed: [405, 'Method not allowed'],
  migration_failed: [500, 'The migration failed, and nothing was changed'],
  not_supported: [501, 'The engine of this tenant does not support this'],
  internal: [500, 'Internal error'],
  overloaded: [503, 'The server is overloaded'],
  no_engine: [503, 'No engine of this version is installed'],
  no_bus: [503, 'This tenant has no event bus'],
  not_installed: [503, 'Millrace is not installed in the database of this tenant'],
  tenant_unavailable: [503, 'The tenant is unavailable'],
  tenant_stopped: [503, 'An operator stopped the tenant'],
  database_unavailable: [503, 'The database is unavailable'],
  stopping: [503, 'This process is stopping'],
  embedded_postgres: [500, 'The embedded PostgreSQL did not start'],
  already_running: [409, 'Another instance is running'],
  bad_configuration: [400, 'The configuration has faults'],
  unreachable: [503, 'The server cannot be reached'],
} as const satisfies Record<string, readonly [number, string]>;

export type ErrorCode = keyof typeof table;

/** One fault of an input: its path, such as `tasks[2].depends[0]`, and a message. */
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
  /** Response headers that HTTP requires for this error. */
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

/** The problem of an error that another release may have named. Its title is unknown if its code is. */
export function problemOf(error: Omit<Problem, 'type' | 'title' | 'code'> & { readonly code: string }): object {
  const { status, code, detail, faults } = error;
  const title = Object.hasOwn(table, code) ? table[code as ErrorCode][1] : code;
  return { type: `urn:millrace:error:${code}`, title, status, code, detail, ...(faults && { faults }) };
}

/** The client has disconnected. This is no fault of the server, so it is not logged. */
export function clientGone(cause?: unknown): MillraceError {
  return new MillraceError('bad_request', 'the client ended the connection before its answer', { cause });
}

/**
 * Converts an error to a `MillraceError`. An error of another version's code is an instance of another class, so it is
 * recognized by its name.
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

/** The caller's engine is, or may be, no longer the tenant's. The caller should get the engine from the loader again. */
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
const lostSocket = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOENT',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  // the server of names does not answer
  'EAI_AGAIN',
]);

/**
 * Whether the database could not be reached, rather than rejected the statement. Decided by SQLSTATE or errno, and by pg's
 * message only if it gives neither.
 */
export function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = sqlStateOf(error);
  if (code !== undefined) return lostConnection.test(code) || lostSocket.has(code);
  return lostMessages.has(error.message);
}

/** SQLSTATE → a message for users: why a reachable database cannot work now. */
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
  '58000': 'the operating system of the database reports an error',
  '58030': 'the database cannot read or write its files',
};

/** Why the database cannot execute a correct statement now; undefined: the error has another cause. */
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

/** An object with that name or id exists already. */
export function isUniqueViolation(error: unknown): boolean {
  return sqlStateOf(error) === '23505';
}

/** A deadlock or a serialization failure. The same work succeeds if it is repeated. */
export function isSerialization(error: unknown): boolean {
  const code = sqlStateOf(error);
  return code === '40P01' || code === '40001';
}

/** The role lacks a right in the database. */
export function isMissingRight(error: unknown): boolean {
  return sqlStateOf(error) === '42501';
}

/** A lock was not granted within its timeout. */
export function isLockTimeout(error: unknown): boolean {
  return sqlStateOf(error) === '55P03';
}

/** A session prevents a command that tolerates no other session. */
export function isInUse(error: unknown): boolean {
  return sqlStateOf(error) === '55006';
}

/** A schema or table of the statement does not exist. */
export function isMissingTable(error: unknown): boolean {
  const code = sqlStateOf(error);
  return code === '3F000' || code === '42P01';
}

/**
 * The database has another schema than the statement expects (classes 42, 3F), or rejects connections (28, 3D, 55000). The
 * caller may have the engine of another version, or of a tenant that is no longer installed.
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
