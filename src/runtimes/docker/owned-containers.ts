/**
 * Finds containers of Millrace whose worker is gone, by their labels, and removes them:
 *
 * - of earlier incarnations of this worker, at its start;
 * - of earlier leases of a run, before it is executed again. The worker of an earlier lease may be frozen;
 * - of this process, but of no run under way, regularly: the engine created them after their runs were killed;
 * - of processes of this machine that have ended, regularly. Their reaper removes them sooner, unless it was killed as well.
 */
import { z } from 'zod';
import { type Log, silent } from '../../kernel/log.ts';
import { warnThrottled } from '../../kernel/log-throttle.ts';
import { every, type Service } from '../../kernel/service.ts';
import type { RunFacts } from '../contract.ts';
import { removeContainer } from './container-calls.ts';
import { type EngineClient, EngineUnreachable } from './engine-client.ts';
import { judgeOwner, labels } from './owner.ts';

const listed = z.array(
  z.object({
    Id: z.string(),
    Names: z.array(z.string()).nullish(),
    State: z.string().default(''),
    Labels: z.record(z.string(), z.string()).nullish(),
  }),
);

interface Found {
  readonly id: string;
  readonly name: string;
  readonly isRunning: boolean;
  readonly labels: Readonly<Record<string, string>>;
}

/** Containers with all of these labels; a label without a value has any. */
export async function listContainers(
  client: EngineClient,
  wanted: readonly string[],
  signal?: AbortSignal,
): Promise<Found[]> {
  const filters = JSON.stringify({ label: wanted });
  const { body } = await client.call({
    method: 'GET',
    path: '/containers/json',
    query: { all: true, filters },
    signal,
  });
  return listed.parse(body).map(({ Id: id, Names, State, Labels }) => ({
    id,
    name: Names?.[0]?.replace(/^\//, '') ?? '',
    isRunning: State === 'running',
    labels: Labels ?? {},
  }));
}

/** The containers of this process. */
export interface OwnContainers {
  readonly owner: string;
  /** The names of those whose runs are under way. */
  readonly open: ReadonlySet<string>;
}

export class OwnedContainers {
  readonly #client: EngineClient;
  readonly #own: OwnContainers;
  readonly #log: Log;

  constructor(client: EngineClient, own: OwnContainers, log: Log = silent) {
    this.#client = client;
    this.#own = own;
    this.#log = log;
  }

  async endEarlierIncarnations(worker: string, incarnation: number): Promise<void> {
    const found = await listContainers(this.#client, [`${labels.worker}=${worker}`]);
    const earlier = found.filter((each) => Number(each.labels[labels.incarnation]) < incarnation);
    await this.#remove(earlier, 'of an earlier incarnation of this worker');
  }

  async endEarlierLeases({ run, tenant, lease, url }: RunFacts, signal: AbortSignal): Promise<void> {
    const wanted = [`${labels.run}=${run}`, `${labels.tenant}=${tenant}`, `${labels.installation}=${url}`];
    const found = await listContainers(this.#client, wanted, signal);
    const earlier = found.filter((each) => Number(each.labels[labels.lease]) < lease);
    await this.#remove(earlier, 'of an earlier lease');
  }

  /** Removes those of processes that have ended, and of this one those that belong to no run. */
  async sweep(signal?: AbortSignal): Promise<void> {
    const found = await listContainers(this.#client, [labels.owner], signal);
    const verdicts = new Map<string, ReturnType<typeof judgeOwner>>();
    const judge = (owner: string): ReturnType<typeof judgeOwner> => {
      const verdict = verdicts.get(owner) ?? judgeOwner(owner);
      verdicts.set(owner, verdict);
      return verdict;
    };
    const { owner: self, open } = this.#own;
    const abandoned = found.filter((each) => {
      const owner = each.labels[labels.owner] ?? '';
      if (owner === self) return !open.has(each.name);
      const verdict = judge(owner);
      return verdict === 'ended' || (verdict === 'rebooted' && !each.isRunning);
    });
    await this.#remove(abandoned, 'of a worker or a run that has ended');
  }

  sweeps(everyMs: number, isAvailable: () => boolean): Service {
    const warn = warnThrottled(this.#log, 'searching for abandoned containers failed, retrying');
    const pass = async (signal: AbortSignal): Promise<void> => {
      if (isAvailable()) await this.sweep(signal);
    };
    return every(everyMs, 'sweeps of containers', pass, (error) => {
      if (!(error instanceof EngineUnreachable)) warn(error);
    });
  }

  async #remove(containers: readonly Found[], what: string): Promise<void> {
    if (containers.length === 0) return;
    this.#log.info({ containers: containers.length, what }, 'removing abandoned containers');
    await Promise.all(containers.map(({ id }) => removeContainer(this.#client, id)));
  }
}
