/**
 * Executes one run, step by step: facts → templates → environment, with stash values → runtime, within the timeout →
 * outcome → its log complete → the report (I3: with the lease it was claimed under).
 *
 * Every error becomes the run's report; nothing is thrown. A run whose lease was lost has no report.
 */
import type { ClaimedRun, NodeWork, Report, ReportState, TaskDefinition } from '../contract/wire.ts';
import { formatDuration } from '../kernel/text/duration.ts';
import { failed, faulty, type KillReason, type Outcome, type Task } from '../runtimes/contract.ts';
import { expandBlock } from '../runtimes/kinds.ts';
import { declaredIn, EnvironmentError, environmentOf, secretsIn, stashNames } from '../runtimes/task/environment.ts';
import { factsOf, nodeFactsOf, type RunFacts } from '../runtimes/task/facts.ts';
import { Expansion, TemplateError } from '../runtimes/task/templates.ts';
import { retryBriefly, isTenantAway } from './client.ts';
import type { Hold } from './holdings.ts';
import type { LogShipper } from './output/log-shipper.ts';
import { maskText, SecretLines } from './output/mask.ts';
import { printable } from '../kernel/text/printable.ts';
import { RunLog } from './output/run-log.ts';
import type { RuntimeWatch } from './runtimes/runtime-watch.ts';

export interface ExecutorOptions {
  /** The named stash entries that exist. */
  stash(hold: Hold, names: string[]): Promise<Map<string, Buffer>>;
  readonly runtimes: Pick<RuntimeWatch, 'find' | 'kinds'>;
  readonly shipper: Pick<LogShipper, 'open'>;
  /** The API's address for tasks. */
  readonly taskUrl: string;
  readonly logLimitBytes: number;
  now(): number;
}

/** The work to execute: the definition of a task, or a node, which comes with its run. */
export type Executable = TaskDefinition | NodeWork;

interface Prepared {
  readonly task: Task;
  readonly secrets: SecretLines;
  readonly onEnded: () => void;
}

const killStates: Readonly<Record<Exclude<KillReason, 'lost'>, ReportState>> = {
  timeout: 'timeout',
  cancelled: 'cancelled',
  draining: 'returned',
  unserved: 'returned',
};

export class Executor {
  readonly #options: ExecutorOptions;

  constructor(options: ExecutorOptions) {
    this.#options = options;
  }

  /** `onEnded` is called when the task has ended; the remaining work needs no place. */
  async execute(hold: Hold, executable: Executable, onEnded: () => void): Promise<Report | undefined> {
    const startedAt = new Date(this.#options.now()).toISOString();
    const disarm = after(executable.timeout_ms, () => hold.kill('timeout'));
    const outcome = await this.#run(hold, executable, onEnded);
    hold.settle();
    disarm();
    return reportOf(hold, killOutcome(hold, executable) ?? withoutResult(outcome, hold.run), startedAt);
  }

  async #run(hold: Hold, executable: Executable, onEnded: () => void): Promise<Outcome> {
    try {
      const facts = factsOfRun(hold, executable, this.#options.taskUrl);
      const expansion = new Expansion(facts);
      const work = expandBlock(executable.runtime, expansion);
      const declared = declaredIn(executable.runtime);
      const stash = await this.#stash(hold, stashNames(declared));
      const env = environmentOf(declared, expansion, stash);
      const task = { work, facts, env, secrets: secretsIn(declared) };
      const secrets = new SecretLines([Buffer.from(facts.credential), ...stash.values()]);
      return await this.#logged(hold, { task, secrets, onEnded });
    } catch (error) {
      if (isTenantAway(error)) hold.kill('unserved');
      if (error instanceof TemplateError || error instanceof EnvironmentError) return faulty(error.message);
      return faulty(`the worker could not run it: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  async #stash(hold: Hold, names: string[]): Promise<Map<string, Buffer>> {
    if (names.length === 0) return new Map();
    return await retryBriefly(() => this.#options.stash(hold, names), hold.signal);
  }

  async #logged(hold: Hold, { task, secrets, onEnded }: Prepared): Promise<Outcome> {
    const { shipper, logLimitBytes: limitBytes } = this.#options;
    const log = new RunLog(shipper.open(hold.run), { secrets, limitBytes });
    const { signal } = hold;
    const abandon = (): void => {
      if (signal.reason === 'lost') log.abandon();
    };
    signal.addEventListener('abort', abandon, { once: true });
    abandon();
    const outcome = await this.#launch(hold, task, log);
    hold.settle();
    onEnded();
    await log.close();
    signal.removeEventListener('abort', abandon);
    return outcome.reason === null ? outcome : { ...outcome, reason: maskText(outcome.reason, secrets) };
  }

  async #launch(hold: Hold, task: Task, log: RunLog): Promise<Outcome> {
    const { runtimes } = this.#options;
    const { kind } = task.work;
    const runtime = runtimes.find(kind);
    if (runtime === undefined)
      return faulty(`this worker has no runtime "${kind}"; it has ${runtimes.kinds.join(', ')}`);
    if ('unavailable' in runtime) {
      hold.kill('unserved');
      return failed(runtime.unavailable);
    }
    if (runtime.outlives) hold.markOutliving();
    try {
      return await runtime.run(task, log, hold.signal);
    } catch (error) {
      return faulty(`the runtime "${runtime.name}" failed: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}

function factsOfRun({ run }: Hold, executable: Executable, url: string): RunFacts {
  if (run.node !== undefined) return nodeFactsOf(run, run.node, url);
  if ('task' in executable) return factsOf(run, executable, url);
  throw new Error('a run of a task was given the work of a node');
}

/** A kill determines the result, whatever the outcome of the task. A run that is returned as `unserved` keeps its reason. */
function killOutcome(hold: Hold, { timeout_ms: timeoutMs }: Executable): Outcome | undefined {
  if (hold.killed === 'timeout')
    return failed(`it ran longer than its timeout of ${formatDuration(timeoutMs)} and was killed`);
  if (hold.killed === 'cancelled') return failed('it was cancelled');
  return hold.killed === 'draining' ? failed('its worker was stopped before it ended') : undefined;
}

/** The report of a run with this outcome; a kill takes precedence. None if the lease was lost. */
export function reportOf(hold: Hold, outcome: Outcome, startedAt: string | null): Report | undefined {
  if (hold.killed === 'lost') return undefined;
  const { tenant, run, lease } = hold.run;
  return {
    tenant,
    run,
    lease,
    state: hold.killed === undefined ? outcome.state : killStates[hold.killed],
    reason: outcome.reason === null ? null : printable(outcome.reason, maxReasonChars),
    exit_code: outcome.exitCode,
    started_at: startedAt,
    ...(outcome.result === undefined ? {} : { result: outcome.result }),
  };
}

/** The limit of the wire. */
const maxReasonChars = 4_000;

/**
 * A result that cannot be stored is named in the reason. The steps after a node need its result, so the node has failed; a task
 * that has done its work has still succeeded.
 */
function withoutResult({ unkept, ...outcome }: Outcome, run: ClaimedRun): Outcome {
  if (unkept === undefined) return outcome;
  const reason = outcome.reason === null ? unkept : `${outcome.reason}; ${unkept}`;
  const isFailed = outcome.state === 'success' && run.node !== undefined;
  return { ...outcome, state: isFailed ? 'failure' : outcome.state, reason };
}

/** A timer without the platform's maximum. Returns a function that disarms it. */
function after(ms: number, ring: () => void): () => void {
  const longestMs = 2 ** 31 - 1;
  let left = ms;
  let timer: NodeJS.Timeout;
  const arm = (): void => {
    const stepMs = Math.min(left, longestMs);
    left -= stepMs;
    timer = setTimeout(() => (left > 0 ? arm() : ring()), stepMs);
  };
  arm();
  return () => clearTimeout(timer);
}
