/**
 * Commits runs. Each execution is compared and set by itself: those that others have changed meanwhile are left out, and all others are
 * committed together.
 */
import type { Pool } from 'pg';
import type { EngineContext } from '../../../contract/context.ts';
import type { FlowRun, PutOutcome, PutResult } from '../../../contract/flows.ts';
import { sqlStateOf } from '../../../errors.ts';
import { type Db, empty, onPool, sql } from '../../../kernel/sql.ts';
import { uuidArray } from '../../../postgres/binary-array.ts';
import { type Chain, groupRuns, withoutRepeatedKeys } from './chains.ts';
import { childTimes } from './child-rate.ts';
import { commitArguments } from './commit-arguments.ts';
import { detailsOf } from '../revisions/run-details.ts';

interface Committing {
  readonly member: string;
  readonly commit: string;
  readonly atMs: number;
}

type CommitRow = {
  readonly lost: string[] | null;
  readonly known: string[] | null;
  readonly holders: string[] | null;
  readonly lanes: string[] | null;
  readonly passed: number | null;
  readonly cancelled_workers: string[] | null;
  readonly cancelled_runs: string[] | null;
  readonly cancelled_leases: number[] | null;
  readonly receivers: string[] | null;
  readonly owners: (string | null)[] | null;
};

export async function put(ctx: EngineContext, runs: readonly FlowRun[], as: Committing): Promise<PutResult> {
  const { chains, broken } = groupRuns(runs);
  const result = new Result(runs.length);
  for (const position of broken) result.set([position], { kind: 'lost' });
  let left = chains;
  for (let isChecked = false; left.length > 0; ) {
    const batch = withoutRepeatedKeys(left);
    const row = await commit(batch, { ctx, as, isChecked });
    // others have changed some of them: the next call finds out which
    isChecked = row === undefined;
    const decided = row === undefined ? undefined : result.take(row, batch);
    left = left.filter((chain) => decided?.has(chain) !== true);
  }
  if (result.hasPassed) ctx.hints.send('ready');
  if (result.hasEvents) ctx.hints.send('events');
  return result.finish();
}

interface Call {
  readonly ctx: EngineContext;
  readonly as: Committing;
  readonly isChecked: boolean;
}

/** The code of the exception that `commit_executions` raises. */
const lostState = 'MR409';

/** Undefined: some of them are lost. */
async function commit(batch: readonly Chain[], { ctx, as, isChecked }: Call): Promise<CommitRow | undefined> {
  const { pool, secrets } = ctx;
  const clock = { nowMs: as.atMs, runningMs: performance.now() };
  const children = (count: number): number[] => childTimes(pool, clock, count);
  const parts = commitArguments(batch, { ...as, secrets, childTimes: children });
  const check = isChecked ? sql`, p_check => true` : empty;
  try {
    return await onPool(pool).one<CommitRow>(sql`
      select lost, known, holders, lanes, passed, cancelled_workers, cancelled_runs, cancelled_leases, receivers, owners
        from commit_executions(${parts}${check})`);
  } catch (error) {
    if (sqlStateOf(error) === lostState) return undefined;
    throw error;
  }
}

/** Collects what the calls of one `put` have come to. */
class Result {
  readonly #outcomes: PutOutcome[];
  readonly #lanes = new Set<string>();
  readonly #cancelled: PutResult['cancelled'][number][] = [];
  readonly #receivers: PutResult['receivers'][number][] = [];
  hasPassed = false;
  hasEvents = false;

  constructor(count: number) {
    this.#outcomes = Array.from({ length: count }, () => ({ kind: 'lost' }));
  }

  set(positions: readonly number[], outcome: PutOutcome): void {
    for (const position of positions) this.#outcomes[position] = outcome;
  }

  /** Returns the chains that are decided. If some of the batch were left out, the others were not committed either. */
  take(row: CommitRow, batch: readonly Chain[]): ReadonlySet<Chain> {
    if (row.lost === null && row.known === null) {
      for (const chain of batch) this.set(chain.positions, { kind: 'won' });
      this.#note(row);
      this.hasEvents ||= batch.some(hasEvents);
      return new Set(batch);
    }
    const lost = new Set(row.lost);
    const known = new Map((row.known ?? []).map((id, i) => [id, row.holders?.[i] ?? id]));
    const out = batch.filter(({ first: { id } }) => lost.has(id) || known.has(id));
    for (const { first, positions } of out) {
      const holder = known.get(first.id);
      this.set(positions, holder === undefined ? { kind: 'lost' } : { kind: 'known', execution: holder });
    }
    return new Set(out);
  }

  #note({ lanes, passed, cancelled_workers, cancelled_runs, cancelled_leases, receivers, owners }: CommitRow): void {
    for (const lane of lanes ?? []) this.#lanes.add(lane);
    this.hasPassed ||= (passed ?? 0) > 0;
    for (const [i, worker] of (cancelled_workers ?? []).entries())
      this.#cancelled.push({ worker, run: cancelled_runs?.[i] ?? '', lease: cancelled_leases?.[i] ?? 0 });
    for (const [i, execution] of (receivers ?? []).entries())
      this.#receivers.push({ execution, owner: owners?.[i] ?? null });
  }

  finish(): PutResult {
    const [cancelled, receivers] = [this.#cancelled, this.#receivers];
    return { outcomes: this.#outcomes, lanes: [...this.#lanes], cancelled, receivers };
  }
}

type SettledRow = {
  readonly id: string;
  readonly rev: number | null;
  readonly epoch: number | null;
  readonly head_commit: string | null;
  readonly commit_id: string | null;
  readonly key_of: string | null;
};

/**
 * The outcomes of a `put` whose answer was lost. A chain was committed if its last revision is on record under this commit. What the
 * commit made for others is not known any more: they find it by themselves.
 */
export async function settle(
  { pool }: { readonly pool: Pool },
  runs: readonly FlowRun[],
  commitId: string,
): Promise<PutResult> {
  const { chains, broken } = groupRuns(runs);
  const result = new Result(runs.length);
  for (const position of broken) result.set([position], { kind: 'lost' });
  const rows = await readSettled(onPool(pool), chains);
  for (const [i, chain] of chains.entries()) {
    const row = rows[i];
    if (row !== undefined && wasCommitted(chain, row, commitId)) result.set(chain.positions, { kind: 'won' });
    else if (row?.key_of != null && row.key_of !== chain.first.id)
      result.set(chain.positions, { kind: 'known', execution: row.key_of });
  }
  return result.finish();
}

/** One row for each chain, in order. */
function readSettled(db: Db, chains: readonly Chain[]): Promise<SettledRow[]> {
  return db.rows<SettledRow>(sql`
    select u.id, h.rev, h.epoch, h.commit_id as head_commit, (select c.commit_id from commit c where c.execution_id = u.id and c.rev = u.rev) as commit_id,
           (select e.id from execution e where e.key = u.key) as key_of
      from unnest(${uuidArray(chains.map(({ first }) => first.id))}::uuid[],
                  ${chains.map(({ last }) => last.rev)}::integer[],
                  ${chains.map(({ before }) => (before.isStored ? null : before.key))}::text[])
           with ordinality as u (id, rev, key, n)
      left join execution h on h.id = u.id
     order by u.n`);
}

/** A chain without a revision has nothing that could be lost, unless it makes an owner. */
function wasCommitted({ first, last }: Chain, row: SettledRow, commitId: string): boolean {
  if (first.rev < last.rev) return row.commit_id === commitId;
  return row.head_commit === commitId || (row.rev === first.rev && row.epoch === first.epoch);
}

function hasEvents({ runs }: Chain): boolean {
  return runs.some((run) => detailsOf(run).events.length > 0);
}
