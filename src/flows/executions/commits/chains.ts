/**
 * Groups the runs of a commit by execution. The runs of one execution are a chain: each begins where the one before has ended. All of
 * them count, or none.
 */
import type { Execution, FlowRun } from '../../../contract/flows.ts';
import { type Memory, memoryOf } from '../memory.ts';

export interface Chain {
  readonly runs: readonly FlowRun[];
  /** Their positions in the call. */
  readonly positions: readonly number[];
  /** What the caller has read, and what it comes to. */
  readonly first: Execution;
  readonly last: Execution;
  readonly before: Memory;
  readonly after: Memory;
}

export interface Grouped {
  readonly chains: readonly Chain[];
  /** Positions of runs that do not follow the one before. */
  readonly broken: readonly number[];
}

export function groupRuns(runs: readonly FlowRun[]): Grouped {
  const groups = new Map<string, number[]>();
  for (const [position, { from }] of runs.entries()) {
    const group = groups.get(from.id);
    if (group === undefined) groups.set(from.id, [position]);
    else group.push(position);
  }
  const chains: Chain[] = [];
  const broken: number[] = [];
  for (const positions of groups.values()) {
    const chain = chainOf(runs, positions);
    if (chain === undefined) broken.push(...positions);
    else chains.push(chain);
  }
  return { chains, broken };
}

function chainOf(all: readonly FlowRun[], positions: readonly number[]): Chain | undefined {
  const runs = positions.flatMap((position) => all[position] ?? []);
  const [first] = runs;
  const last = runs.at(-1);
  if (first === undefined || last === undefined) return undefined;
  for (const [i, run] of runs.entries()) if (i > 0 && run.from.rev !== runs[i - 1]?.to.rev) return undefined;
  const [from, to] = [first.from, last.to];
  return { runs, positions, first: from, last: to, before: memoryOf(from), after: memoryOf(to) };
}

/** Those that may be committed together: no two of them launch with the same key. */
export function withoutRepeatedKeys(chains: readonly Chain[]): readonly Chain[] {
  const keys = new Set<string>();
  return chains.filter(({ before }) => {
    if (before.isStored || before.key === null) return true;
    if (keys.has(before.key)) return false;
    keys.add(before.key);
    return true;
  });
}
