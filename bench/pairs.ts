/**
 * A worker that hands over from a parent to its child, again and again, and takes the time at its own door: from its call with the
 * parent's report to the answer that holds the child. One pair is under way at a time, with a rest after each.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { engineVersion } from '../src/engine/engine.ts';
import { newId } from '../src/kernel/id.ts';
import { silent } from '../src/kernel/log.ts';
import type { Service } from '../src/kernel/service.ts';
import { sql } from '../src/kernel/sql.ts';
import { makeRuntimes } from '../src/runtimes/runtimes.ts';
import type { Answer, Carry } from '../src/worker/transport.ts';
import type { WorkerOptions } from '../src/worker/settings.ts';
import { makeWorker } from '../src/worker/worker.ts';
import { restMs } from './commits.ts';
import { atEnd } from './ending.ts';
import type { Tenant } from './tenant.ts';
import { chainOf } from './workloads.ts';

const stuckMs = 10_000;

export interface Wire {
  readonly carry: Carry;
  readonly url: string;
  readonly key: string;
}

export interface Pairs {
  /** Hands over so many times or for so long. `between`: is called after each, on an idle system. Returns the milliseconds of each. */
  handOver(
    extent: { readonly count: number } | { readonly ms: number },
    between?: () => Promise<void>,
  ): Promise<readonly number[]>;
  stop(): Promise<void>;
}

/** Starts the worker and applies its job. */
export async function startPairs(wire: Wire, tenant: Tenant): Promise<Pairs> {
  const watch = new Watch(wire.carry);
  const worker = workerOn({ ...wire, carry: watch.carry });
  await worker.start();
  const stop = atEnd(() => worker.stop());
  await tenant.apply([{ ...chainOf(2), name: 'pair' }]);
  const { id } = await tenant.db.one<{ id: string }>(
    sql`select t.id from trigger t join job j on j.id = t.job_id where j.name = 'pair'`,
  );
  let pairs = 0;
  return {
    async handOver(extent, between = async () => {}) {
      watch.samples.length = 0;
      const untilMs = 'ms' in extent ? performance.now() + extent.ms : Number.POSITIVE_INFINITY;
      const last = pairs + ('count' in extent ? extent.count : Number.POSITIVE_INFINITY);
      while (pairs < last && performance.now() < untilMs) {
        await watch.handover(tenant, id, pairs++);
        await between();
      }
      return [...watch.samples];
    },
    stop,
  };
}

function workerOn({ carry, url, key }: Wire): Service {
  const runtimes: WorkerOptions['runtimes'] = (worker) =>
    makeRuntimes(['none'], { functions: {}, environment: {}, worker });
  return makeWorker({ id: newId(), name: 'bench', version: engineVersion, url, key, carry, runtimes, log: silent });
}

/** Intercepts the worker's requests and takes the time of its reports and claims. */
class Watch {
  readonly samples: number[] = [];
  readonly carry: Carry;
  readonly #firstMs = Date.now() - 24 * 3_600_000;
  #reportedAt: number | undefined;
  #claims = 0;
  #reports = 0;

  constructor(carry: Carry) {
    this.carry = async (message, signal) => {
      const { pathname } = message.url;
      const isReport = pathname.endsWith('/report');
      if (isReport) this.#reportedAt = performance.now();
      const answer = await carry(message, signal);
      const at = performance.now();
      if (isReport) this.#reports++;
      if (isReport || pathname.endsWith('/claim')) this.#recordRuns(answer, at);
      return answer;
    };
  }

  /** Fires the pair once and waits until its second run has been reported and the system is idle again. */
  async handover(tenant: Tenant, triggerId: string, number: number): Promise<void> {
    this.#claims = 0;
    this.#reports = 0;
    this.#reportedAt = undefined;
    await tenant.fire([{ triggerId, instantMs: this.#firstMs + number * 1_000 }]);
    const firedAt = performance.now();
    while (this.#reports < 2) {
      if (performance.now() - firedAt > stuckMs) throw new Error(`a run has not ended within ${stuckMs / 1_000} s`);
      await sleep(1);
    }
    await sleep(restMs);
  }

  /** The answer to a claim has a list of runs, the answer to a report has such a list for each set of places. */
  #recordRuns(answer: Answer, at: number): void {
    const { runs = [] } = ('made' in answer ? answer.made : JSON.parse(answer.text)) as { runs?: unknown[] };
    if (runs.flat().length === 0) return;
    this.#claims += runs.flat().length;
    if (this.#claims === 2 && this.#reportedAt !== undefined) this.samples.push(at - this.#reportedAt);
  }
}
