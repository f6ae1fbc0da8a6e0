/**
 * Whether a database answers and takes writes, as this process observes it. Reading the record takes no query, so it answers
 * at once while the server is frozen.
 *
 * - Reads are tried twice a second, on a connection of their own. One that is not answered within a second means silence.
 * - Writes are those that the process makes anyway, with a trial of the disk (`disk-space.ts`). Their callers note the outcome.
 *
 * A fault lasts from the first failure until the next success.
 */
import { performance } from 'node:perf_hooks';
import { databaseTrouble, isConnectionLoss, sqlStateOf } from '../errors.ts';
import { every, type Service, within } from '../kernel/service.ts';

export interface DatabaseFault {
  /** `silent`: no answer. `unreachable`: no connection. `no_writes`: it answers, and refuses to write. */
  readonly kind: 'silent' | 'unreachable' | 'no_writes';
  readonly since: Date;
  /** One sentence without the server's message, for callers without a key. */
  readonly summary: string;
  /** The same with the server's message. */
  readonly detail: string;
}

export interface DatabaseHealthOptions {
  /** Any statement that only reads. */
  readonly read: () => Promise<unknown>;
  /** The clock for the times of faults, in milliseconds since the epoch. */
  readonly now?: () => number;
  readonly onChange?: (fault: DatabaseFault | undefined) => void;
  readonly answerMs?: number;
}

const readEveryMs = 500;
const usualAnswerMs = 1_000;
/** A single write may fail for its own reason, such as a locked row. */
const fewestWrites = 2;

interface Failing {
  readonly sinceMs: number;
  readonly times: number;
  readonly error: unknown;
}

const silence = Symbol('silence');

export class DatabaseHealth {
  readonly #now: () => number;
  readonly #onChange: (fault: DatabaseFault | undefined) => void;
  #reading: Failing | undefined;
  #writing: Failing | undefined;
  #told: DatabaseFault['kind'] | undefined;
  readonly service: Service;

  constructor({ read, now = Date.now, onChange = () => {}, answerMs = usualAnswerMs }: DatabaseHealthOptions) {
    this.#now = now;
    this.#onChange = onChange;
    const look = async (): Promise<void> => {
      const sentMs = now();
      const began = performance.now();
      const ended = read().then(
        () => ({ error: undefined }),
        (error: unknown) => ({ error }),
      );
      const { error } = (await within(answerMs, ended)) ?? { error: silence };
      // this process itself may have been suspended while the answer arrived
      if (error === silence && performance.now() - began > 2 * answerMs) return;
      this.#reading = error === undefined ? undefined : again(this.#reading, error, sentMs);
      this.#tell();
    };
    this.service = every(readEveryMs, 'databaseHealth', look, () => {});
  }

  /** Records that a write has succeeded, or failed with this error. */
  noteWrite(error?: unknown): void {
    // a lost connection is noticed by reads, and shows nothing about writes
    if (error !== undefined && isConnectionLoss(error)) return;
    this.#writing = error === undefined ? undefined : again(this.#writing, error, this.#now());
    this.#tell();
  }

  get fault(): DatabaseFault | undefined {
    const writing = this.#writing !== undefined && this.#writing.times >= fewestWrites ? this.#writing : undefined;
    if (this.#reading !== undefined) return readFault(this.#reading, writing);
    return writing && writeFault(writing);
  }

  #tell(): void {
    const { fault } = this;
    if (fault?.kind === this.#told) return;
    this.#told = fault?.kind;
    this.#onChange(fault);
  }
}

function again(before: Failing | undefined, error: unknown, atMs: number): Failing {
  return { sinceMs: before?.sinceMs ?? atMs, times: (before?.times ?? 0) + 1, error };
}

/** A server with a full disk ends and does not start again; the rejected writes before that name the cause. */
function readFault({ sinceMs, error }: Failing, writing: Failing | undefined): DatabaseFault {
  const since = new Date(sinceMs);
  const before = writing === undefined ? '' : `; before that, it refused writes: ${causeOf(writing.error)}`;
  if (error === silence) {
    const summary = `the database has not answered since ${since.toISOString()}${before}`;
    return { kind: 'silent', since, summary, detail: summary };
  }
  const code = sqlStateOf(error);
  const outage = `the database cannot be reached since ${since.toISOString()}${code === undefined ? '' : `: ${codeInWords(error, code)}`}`;
  return { kind: 'unreachable', since, summary: outage + before, detail: `${outage} (${messageOf(error)})${before}` };
}

function writeFault({ sinceMs, error }: Failing): DatabaseFault {
  const since = new Date(sinceMs);
  const summary = `the database refuses writes since ${since.toISOString()}: ${causeOf(error)}`;
  return { kind: 'no_writes', since, summary, detail: `${summary} (${messageOf(error)})` };
}

function causeOf(error: unknown): string {
  return codeInWords(error, sqlStateOf(error) ?? 'unknown');
}

/** Only the code, because messages name hosts and roles. */
function codeInWords(error: unknown, code: string): string {
  if (isErrno.test(code)) return code;
  return databaseTrouble(error) ?? `SQLSTATE ${code}`;
}

const isErrno = /^E[A-Z]{3,}/;

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
