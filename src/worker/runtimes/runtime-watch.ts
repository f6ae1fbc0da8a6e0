/**
 * The runtimes of one incarnation of a worker, and which of them can execute tasks now. The worker takes work of a kind only
 * while a runtime that serves it is available.
 *
 * A runtime is
 * - unavailable, with a reason, from its start until its first check has succeeded, and whenever its `probe` returns a reason,
 *   fails, or takes longer than `answerMs`;
 * - available once a probe returned no reason and `adopt` has succeeded, which happens once per incarnation. A failed `adopt` is
 *   repeated at the next check.
 *
 * A runtime without `probe` and `adopt` is always available. A running task continues when its runtime becomes unavailable: the
 * runtime reports its outcome.
 */
import type { Log } from '../../kernel/log.ts';
import { all, type Service, within } from '../../kernel/service.ts';
import type { Runtime } from '../../runtimes/contract.ts';
import { printable } from '../../kernel/text/printable.ts';

export interface RuntimeTimes {
  /** The interval between two checks of a runtime. */
  readonly checkMs: number;
  /** The same while it is unavailable. */
  readonly recheckMs: number;
  /** The timeout of a check. The worker's start waits for the first checks at most this long. */
  readonly answerMs: number;
}

export const runtimeTimes: RuntimeTimes = { checkMs: 10_000, recheckMs: 2_000, answerMs: 5_000 };

export interface RuntimeWatchOptions {
  readonly runtimes: readonly Runtime[];
  readonly times: RuntimeTimes;
  readonly log: Log;
  /** A runtime has become available or unavailable. */
  onChange(): void;
}

interface Watched {
  readonly runtime: Runtime;
  /** Undefined: it is available. */
  reason: string | undefined;
  /** Has succeeded, or is under way. */
  adopting: Promise<void> | undefined;
  timer: NodeJS.Timeout | undefined;
}

export class RuntimeWatch implements Service {
  readonly name = 'runtimes';
  readonly #options: RuntimeWatchOptions;
  readonly #watched: readonly Watched[];
  readonly #services: Service;
  #isOver = false;

  constructor(options: RuntimeWatchOptions) {
    this.#options = options;
    this.#watched = options.runtimes.map((runtime) => ({
      runtime,
      reason: needsChecks(runtime) ? 'it has not been checked yet' : undefined,
      adopting: undefined,
      timer: undefined,
    }));
    this.#services = all(
      'runtime services',
      options.runtimes.flatMap((runtime) => runtime.service ?? []),
    );
  }

  async start(): Promise<void> {
    await this.#services.start();
    const checks = this.#watched
      .filter(({ runtime }) => needsChecks(runtime))
      .map((each) => this.#checkRepeatedly(each));
    await within(this.#options.times.answerMs, Promise.all(checks));
  }

  /** A check under way continues, but its result is ignored. */
  async stop(deadlineMs?: number): Promise<void> {
    this.#isOver = true;
    for (const { timer } of this.#watched) clearTimeout(timer);
    await this.#services.stop(deadlineMs);
  }

  /** All kinds of work that this worker may ever take. */
  get kinds(): readonly string[] {
    return kindsOf(this.#watched);
  }

  /** The kinds of work that it takes now. */
  get available(): readonly string[] {
    return kindsOf(this.#watched.filter(({ reason }) => reason === undefined));
  }

  /** The kinds of work that it does not take now, and why. */
  get unavailable(): Readonly<Record<string, string>> {
    const available = new Set(this.available);
    const away = this.#watched.flatMap(({ runtime, reason }) =>
      reason === undefined ? [] : runtime.serves.map((kind) => [kind, reason] as const),
    );
    return Object.fromEntries(away.filter(([kind]) => !available.has(kind)));
  }

  /** The runtime for this kind of work, or why there is none now; undefined if this worker never takes the kind. */
  find(kind: string): Runtime | { readonly unavailable: string } | undefined {
    const serving = this.#watched.filter(({ runtime }) => serves(runtime, kind));
    const ready = serving.find(({ reason }) => reason === undefined);
    if (ready !== undefined) return ready.runtime;
    const [first] = serving;
    return first?.reason === undefined ? undefined : { unavailable: first.reason };
  }

  /** Resolves after the first check. */
  async #checkRepeatedly(watched: Watched): Promise<void> {
    const reason = await this.#findReason(watched).catch(
      (error: unknown) => `its check failed: ${error instanceof Error ? error.message : String(error)}`,
    );
    if (this.#isOver) return;
    this.#note(watched, reason === undefined ? undefined : printable(reason, maxReasonChars));
    const { checkMs, recheckMs } = this.#options.times;
    watched.timer = setTimeout(
      () => void this.#checkRepeatedly(watched),
      watched.reason === undefined ? checkMs : recheckMs,
    );
  }

  async #findReason(watched: Watched): Promise<string | undefined> {
    const { answerMs } = this.#options.times;
    const { runtime } = watched;
    const probed = await within(answerMs, probe(runtime));
    if (probed === undefined) return `it did not answer within ${answerMs / 1_000} s`;
    if (probed.reason !== undefined) return probed.reason;
    watched.adopting ??= (runtime.adopt?.() ?? Promise.resolve()).catch((error: unknown) => {
      watched.adopting = undefined;
      throw error;
    });
    const adopted = await within(answerMs, watched.adopting.then(isDone));
    return adopted ? undefined : 'it is still ending tasks of an earlier incarnation of this worker';
  }

  #note(watched: Watched, reason: string | undefined): void {
    const { log } = this.#options;
    if (reason === watched.reason) return;
    const fields = { runtime: watched.runtime.name, reason };
    if (reason === undefined) log.info(fields, 'runtime available');
    // many machines never have a container engine
    else if (watched.adopting === undefined)
      log.info(fields, 'runtime not available, its tasks are left to other workers');
    else log.warn(fields, 'runtime unavailable, its tasks are left to other workers');
    watched.reason = reason;
    this.#options.onChange();
  }
}

/** The limit of a heartbeat. */
const maxReasonChars = 1_000;

async function probe(runtime: Runtime): Promise<{ readonly reason: string | undefined }> {
  return { reason: await runtime.probe?.() };
}

function isDone(): true {
  return true;
}

function needsChecks(runtime: Runtime): boolean {
  return 'probe' in runtime || 'adopt' in runtime;
}

function serves(runtime: Runtime, kind: string): boolean {
  return runtime.serves.some((each) => each === kind);
}

function kindsOf(watched: readonly Watched[]): string[] {
  return [...new Set(watched.flatMap(({ runtime }) => runtime.serves))];
}
