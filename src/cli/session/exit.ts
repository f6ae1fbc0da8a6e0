/** The exit codes of commands, and the mapping of errors to exit codes. */
import { CommanderError } from 'commander';
import { type ErrorCode, type Fault, MillraceError, type Problem } from '../../errors.ts';
import { CallFailed } from '../../http/client.ts';
import { oneLine } from '../print/width.ts';

export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 2,
  unreachable: 3,
  unauthorised: 4,
  notFound: 5,
  interrupted: 130,
} as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

export const exitCodeHelp = `Exit codes:
  0    done
  1    failed: a run failed, a document has faults, or the server rejected the request
  2    the command line was not understood
  3    the server cannot be reached
  4    not authorised: no key, a wrong key, or a key without that right
  5    not found
  130  ended by Ctrl-C`;

/** Ends a command that has already printed everything. */
export class Ended extends Error {
  override readonly name = 'Ended';
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode) {
    super(`ended with ${exitCode}`);
    this.exitCode = exitCode;
  }
}

/** The command line is wrong. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

export interface Ending {
  readonly exitCode: number;
  /** The message to print; undefined if the command has already printed it. */
  readonly message?: string;
  readonly faults?: readonly Fault[];
  /** Printed instead of the message with `--json`. */
  readonly problem?: Partial<Problem>;
}

/** Finds the MillraceError in the chain of causes, because its message is meant for users. */
function rootOf(error: unknown): unknown {
  for (let at = error; at instanceof Error; at = at.cause) if (at instanceof MillraceError) return at;
  return error;
}

export function endingOf(thrown: unknown): Ending {
  const error = rootOf(thrown);
  if (error instanceof Ended) return { exitCode: error.exitCode };
  if (error instanceof CommanderError) return { exitCode: error.exitCode === 0 ? exitCodes.ok : exitCodes.usage };
  if (error instanceof UsageError) return { exitCode: exitCodes.usage, message: error.message };
  if (error instanceof CallFailed) return endingOfCall(error);
  if (error instanceof MillraceError) {
    const exitCode = byCode[error.code] ?? exitCodes.failed;
    return { exitCode, message: error.message, faults: error.faults, problem: error.problem() };
  }
  return endingOfUnexpected(error);
}

const byCode: Partial<Record<ErrorCode, ExitCode>> = {
  unreachable: exitCodes.unreachable,
  unauthenticated: exitCodes.unauthorised,
  forbidden: exitCodes.unauthorised,
  not_found: exitCodes.notFound,
};

const byStatus: Readonly<Record<number, ExitCode>> = {
  401: exitCodes.unauthorised,
  403: exitCodes.unauthorised,
  404: exitCodes.notFound,
};

const keyHint = 'the key is MILLRACE_KEY, or root-key in $MILLRACE_HOME';

function endingOfCall(error: CallFailed): Ending {
  const exitCode = byStatus[error.status] ?? exitCodes.failed;
  const detail = oneLine(error.message.trim()) || `the server answered ${error.status}`;
  const message = error.status === 401 ? `${detail} (${keyHint})` : detail;
  const faults = error.problem?.faults ?? [];
  return { exitCode, message, faults, problem: error.problem ?? { status: error.status, detail } };
}

/** Prints an error of the system (a missing file, a full disk) in one line, and an internal error with its stack. */
function endingOfUnexpected(error: unknown): Ending {
  if (!(error instanceof Error)) return { exitCode: exitCodes.failed, message: String(error) };
  const isSystemError = typeof Reflect.get(error, 'errno') === 'number';
  const message = isSystemError ? error.message : (error.stack ?? error.message);
  return { exitCode: exitCodes.failed, message, problem: { code: 'internal', detail: error.message } };
}
