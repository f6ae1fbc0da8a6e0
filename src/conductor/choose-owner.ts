/**
 * Decides which conductor gets the messages of an execution: this one, or another. Everything that sends a message asks here, and
 * it is the place at which a ring of conductors will choose the receiver.
 *
 * 1. An execution stays with its owner as long as that is alive.
 * 2. An execution without a living owner goes to the conductor that hosts most of the functions its flow names; on ties, here.
 * 3. A wrong answer costs time only: every commit compares the revision.
 */
import type { Execution, Member } from '../contract/flows.ts';

interface LivingMember {
  readonly id: string;
  readonly functions: ReadonlySet<string>;
  /** It takes no new executions. */
  readonly isLeaving: boolean;
}

/** The conductors, as this one sees them. */
export interface MemberView {
  readonly id: string;
  readonly functions: ReadonlySet<string>;
  /** Other conductors that are alive. */
  readonly others: ReadonlyMap<string, LivingMember>;
}

/** The id of the conductor in charge, `view.id` included. */
export function ownerOf({ owner, functions = [] }: Pick<Execution, 'owner' | 'functions'>, view: MemberView): string {
  if (owner === view.id) return owner;
  if (owner !== null && view.others.has(owner)) return owner;
  return placeFor(functions, view);
}

function placeFor(names: readonly string[], view: MemberView): string {
  const count = (hosted: ReadonlySet<string>): number => names.filter((name) => hosted.has(name)).length;
  let best = { id: view.id, hosts: count(view.functions) };
  for (const { id, functions, isLeaving } of view.others.values()) {
    const hosts = isLeaving ? 0 : count(functions);
    if (hosts > best.hosts) best = { id, hosts };
  }
  return best.id;
}

/** Other conductors that host any of these functions. */
export function hostsOf(names: readonly string[], view: MemberView): string[] {
  return [...view.others.values()]
    .filter(({ functions }) => names.some((name) => functions.has(name)))
    .map(({ id }) => id);
}

const noFunctions: ReadonlySet<string> = new Set();

/** The view of a tenant that may not call hosted functions. */
export function withoutFunctions(view: MemberView): MemberView {
  const others = [...view.others].map(([id, other]) => [id, { ...other, functions: noFunctions }] as const);
  return { ...view, functions: noFunctions, others: new Map(others) };
}

/** The view as engines get it. */
export function memberOf(view: MemberView): Member {
  return { id: view.id, living: [view.id, ...view.others.keys()] };
}
