/** How a command ends: the exit codes that scripts can use, and which error means which. */
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
  1    it failed: a run failed, a document has faults, the server refused
  2    the command line was not understood
  3    the server cannot be reached
  4    not authorised: no key, a wrong key, or a key without that right
  5    there is no such thing
  130  ended by Ctrl-C`;

/** All that was to be said has been said; only the exit code is left. */
export class Ended extends Error {
  override readonly name = 'Ended';
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode) {
    super(`ended with ${exitCode}`);
    this.exitCode = exitCode;
  }
}

/** The command line asks for something that makes no sense. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

export interface Ending {
  readonly exitCode: number;
  /** What is left to be told; nothing when the command has said it. */
  readonly message?: string;
  readonly faults?: readonly Fault[];
  /** With `--json`, told instead of the message. */
  readonly problem?: Partial<Problem>;
}

/** What a person can do something about, however many services it passed on its way. */
function rootOf(error: unknown): unknown {
  for (let at = error; at instanceof Error; at = at.cause) if (at instanceof MillraceError) return at;
  return error;
}

export function endingOf(thrown: unknown): Ending {
  const error = rootOf(thrown);
  if (error instanceof Ended) return { exitCode: error.exitCode };
  if (error instanceof CommanderError) return { exitCode: error.exitCode === 0 ? exitCodes.ok : exitCodes.usage };
  if (error instanceof UsageError) return { exitCode: exitCodes.usage, message: error.message };
  if (error instanceof CallFailed) return refusal(error);
  if (error instanceof MillraceError) {
    const exitCode = byCode[error.code] ?? exitCodes.failed;
    return { exitCode, message: error.message, faults: error.faults, problem: error.problem() };
  }
  return unforeseen(error);
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

function refusal(error: CallFailed): Ending {
  const exitCode = byStatus[error.status] ?? exitCodes.failed;
  const said = oneLine(error.message.trim()) || `the server answered ${error.status}`;
  const message = error.status === 401 ? `${said} (${keyHint})` : said;
  const faults = error.problem?.faults ?? [];
  return { exitCode, message, faults, problem: error.problem ?? { status: error.status, detail: said } };
}

/** What the system refuses (a file, a full disk) is told in a line; a fault of ours keeps its stack. */
function unforeseen(error: unknown): Ending {
  if (!(error instanceof Error)) return { exitCode: exitCodes.failed, message: String(error) };
  const refused = typeof Reflect.get(error, 'errno') === 'number';
  const message = refused ? error.message : (error.stack ?? error.message);
  return { exitCode: exitCodes.failed, message, problem: { code: 'internal', detail: error.message } };
}
