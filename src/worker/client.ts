/**
 * The typed client of the wire under `/internal`: one method per message, sent by the given carrier (the network, or under
 * `up` the process itself).
 *
 * 1. Answers are parsed; an invalid one counts as none.
 * 2. Temporary errors (no connection, no answer in time, 5xx, a key not accepted at the moment) are thrown as `unreachable`;
 *    `#persistently` retries without a limit. Permanent errors are thrown as they are.
 * 3. An unavailable tenant does not count as an outage of the API: a request for several tenants gets a list of the failed
 *    ones, a request for one gets `tenant_unavailable`.
 */
import { setMaxListeners } from 'node:events';
import { z } from 'zod';
import {
  type ClaimAnswer,
  type ClaimRequest,
  claimAnswer,
  type DefinitionsRequest,
  definitionsAnswer,
  type Failure,
  type HeartbeatAnswer,
  type HeartbeatRequest,
  heartbeatAnswer,
  type LogsRequest,
  logsAnswer,
  type ReportRequest,
  type ReportAnswer,
  reportAnswer,
  type SecretsRequest,
  secretsAnswer,
  type TaskDefinition,
} from '../contract/wire.ts';
import { type ErrorCode, MillraceError } from '../errors.ts';
import { persist, reconnect } from '../kernel/backoff.ts';
import type { Log } from '../kernel/log.ts';
import { LogThrottle } from '../kernel/log-throttle.ts';
import type { Carry } from './transport.ts';

export interface ClientOptions {
  readonly url: string;
  readonly key: string;
  readonly carry: Carry;
  readonly outage: Outage;
}

/** Statuses that the same request will always get. */
const hopeless = new Set([400, 413, 415, 422]);
const answerWithinMs = 15_000;

export class Client {
  readonly #options: ClientOptions;
  readonly #urls = new Map<string, URL>();

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  /** Waits as long as the request asks for. */
  claim(request: ClaimRequest, signal: AbortSignal): Promise<ClaimAnswer> {
    return this.#post('claim', request, { schema: claimAnswer, signal, withinMs: request.wait_ms + answerWithinMs });
  }

  /** Returns the reports that could not be applied, and runs for the places of the request. */
  report(request: ReportRequest, signal: AbortSignal): Promise<ReportAnswer> {
    return this.#persistently(() => this.#post('report', request, { schema: reportAnswer, signal }), signal);
  }

  /** One attempt only, because the next heartbeat has newer data than a repeated one. */
  heartbeat(request: HeartbeatRequest, withinMs: number, signal?: AbortSignal): Promise<HeartbeatAnswer> {
    return this.#post('heartbeat', request, { schema: heartbeatAnswer, withinMs, signal });
  }

  /** Sends chunks of one tenant. Retries without a limit, also while the tenant is unavailable. */
  async logs(request: LogsRequest, signal: AbortSignal): Promise<void> {
    const send = async (): Promise<void> => {
      const { failed } = await this.#post('logs', request, { schema: logsAnswer, signal });
      if (failed[0] !== undefined) throw new MillraceError('tenant_unavailable', failed[0].detail);
    };
    const giveUp = (error: unknown): boolean => !isUnreachable(error) && !isTenantAway(error);
    await persist(send, { backoff: reconnect, signal, giveUp });
  }

  /** The definitions that exist, and the tenants that could not be reached. */
  async definitions(
    body: DefinitionsRequest,
    signal: AbortSignal,
  ): Promise<{ definitions: TaskDefinition[]; failed: Failure[] }> {
    return this.#persistently(() => this.#post('definitions', body, { schema: definitionsAnswer, signal }), signal);
  }

  /** The named stash entries that exist. */
  async secrets(body: SecretsRequest, signal: AbortSignal): Promise<Map<string, Buffer>> {
    const { values } = await this.#persistently(
      () => this.#post('secrets', body, { schema: secretsAnswer, signal }),
      signal,
    );
    return new Map(Object.entries(values).map(([name, value]) => [name, Buffer.from(value, 'base64')]));
  }

  #persistently<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return persist(work, { backoff: reconnect, signal, giveUp: (error) => !isUnreachable(error) });
  }

  async #post<S extends z.ZodType>(path: string, body: object, how: How<S>): Promise<z.infer<S>> {
    const limit = new Limit(how.withinMs ?? answerWithinMs, how.signal);
    try {
      const answer = await this.#exchange(path, body, { ...how, signal: limit.signal });
      this.#options.outage.worked();
      return answer;
    } catch (error) {
      const known = error instanceof MillraceError ? error : unreachable(path, error);
      if (isTenantAway(known) || ownCodes.includes(known.code)) this.#options.outage.worked();
      else if (!isUnreachable(known)) this.#options.outage.refused(known);
      else if (!how.signal?.aborted) this.#options.outage.failed(known);
      throw known;
    } finally {
      limit.release();
    }
  }

  async #exchange<S extends z.ZodType>(path: string, body: object, { schema, signal }: Sent<S>): Promise<z.infer<S>> {
    const { key, carry } = this.#options;
    const answer = await carry({ url: this.#urlOf(path), key, body }, signal);
    if ('made' in answer) return answer.made as z.infer<S>;
    const { status, text } = answer;
    if (status < 200 || status > 299) throw makeError(path, status, text);
    const parsed = schema.safeParse(JSON.parse(text));
    if (parsed.success) return parsed.data;
    throw new MillraceError('unreachable', `the answer to ${path} is not valid`, { cause: parsed.error });
  }

  #urlOf(path: string): URL {
    const known = this.#urls.get(path);
    if (known !== undefined) return known;
    const { url } = this.#options;
    const made = new URL(`internal/${path}`, url.endsWith('/') ? url : `${url}/`);
    this.#urls.set(path, made);
    return made;
  }
}

interface Sent<S> {
  readonly schema: S;
  readonly signal: AbortSignal;
}

interface How<S> {
  readonly schema: S;
  readonly withinMs?: number;
  readonly signal?: AbortSignal | undefined;
}

function makeError(path: string, status: number, text: string): MillraceError {
  const answered = `${path} was answered ${status}: ${text.slice(0, 1_000)}`;
  const { code, detail } = problemIn(text);
  if (status === 503 && awayCodes.has(code)) return new MillraceError('tenant_unavailable', answered);
  const own = ownCodes.find((each) => each === code);
  if (own !== undefined) return new MillraceError(own, detail ?? answered);
  return new MillraceError(hopeless.has(status) ? 'bad_request' : 'unreachable', answered);
}

/**
 * Errors that the API would repeat although it works. Stash values that cannot be read, or are too large, end their run. A worker
 * whose id is refused takes another one.
 */
const ownCodes: readonly ErrorCode[] = ['undecryptable', 'stash_too_large', 'worker_refused'];

/** The codes of problems that concern one tenant. */
const awayCodes: ReadonlySet<unknown> = new Set(['tenant_unavailable', 'not_installed', 'no_engine']);

const problem = z.object({ code: z.string(), detail: z.string() }).partial();

function problemIn(text: string): z.infer<typeof problem> {
  try {
    return problem.safeParse(JSON.parse(text)).data ?? {};
  } catch {
    return {};
  }
}

export function isTenantAway(error: unknown): boolean {
  return error instanceof MillraceError && error.code === 'tenant_unavailable';
}

/** The worker must take another id. */
export function isWorkerRefused(error: unknown): error is MillraceError {
  return error instanceof MillraceError && error.code === 'worker_refused';
}

/** A longer retry would keep a place that runs of other tenants wait for. */
const maxRetryMs = 2_000;

/** Retries for 2 s while the tenant of the run is unavailable. */
export function retryBriefly<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  const untilMs = performance.now() + maxRetryMs;
  const giveUp = (error: unknown): boolean => !isTenantAway(error) || performance.now() > untilMs;
  return persist(work, { backoff: { firstMs: 100, capMs: 1_000, jitter: 0.5 }, signal, giveUp });
}

function isUnreachable(error: unknown): boolean {
  return error instanceof MillraceError && error.code === 'unreachable';
}

function unreachable(path: string, cause: unknown): MillraceError {
  return new MillraceError('unreachable', `no answer to ${path}`, { cause });
}

/** Aborts after a time or with another signal. (`AbortSignal.any` keeps memory on a long-lived one in Node 20.) */
class Limit {
  readonly #control = new AbortController();
  readonly #timer: NodeJS.Timeout;
  readonly #outer: AbortSignal | undefined;
  readonly #abort = (): void => this.#control.abort();

  constructor(ms: number, outer: AbortSignal | undefined) {
    this.#timer = setTimeout(this.#abort, ms);
    this.#outer = outer;
    // each request under way has a listener until it is over
    if (outer !== undefined) setMaxListeners(0, outer);
    outer?.addEventListener('abort', this.#abort, { once: true });
    if (outer?.aborted) this.#abort();
  }

  get signal(): AbortSignal {
    return this.#control.signal;
  }

  release(): void {
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener('abort', this.#abort);
  }
}

/** Logs that the API does not answer, or rejects what this worker sends. */
export class Outage {
  readonly #log: Log;
  readonly #now: () => number;
  readonly #throttle: LogThrottle;
  #sinceMs: number | undefined;

  constructor(log: Log, now: () => number) {
    this.#log = log;
    this.#now = now;
    this.#throttle = new LogThrottle({ clock: now });
  }

  failed(error: unknown): void {
    const nowMs = this.#now();
    this.#sinceMs ??= nowMs;
    if (this.#throttle.isDue('outage', 'no answer'))
      this.#log.warn({ err: error, forMs: nowMs - this.#sinceMs }, 'API unreachable; running tasks continue');
  }

  refused(error: unknown): void {
    if (this.#throttle.isDue('rejection', 'rejected'))
      this.#log.error({ err: error }, 'API rejects messages of this worker; their versions may differ');
  }

  worked(): void {
    if (this.#sinceMs === undefined) return;
    this.#log.info({ forMs: this.#now() - this.#sinceMs }, 'API reachable again');
    this.#sinceMs = undefined;
    this.#throttle.clear('outage');
  }
}
