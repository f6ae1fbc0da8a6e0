/** Traces an execution back: who launched it, or which executions called each other until it. */
import type { Head } from '../../../flows/executions/heads.ts';
import type { ApiContext } from '../../context.ts';
import { type Finding, finding, formatTime, type Link } from '../findings.ts';
import { type Caller, findLaunch, listCallers } from './queries.ts';

/** Executions of a chain. */
const maxLinks = 20;

export interface Origin {
  /** Empty: the first commit is not kept any more. */
  readonly cause: readonly Finding[];
  /** The execution comes first. */
  readonly chain: readonly Link[];
}

export async function traceExecution(ctx: ApiContext, { id, parent }: Pick<Head, 'id' | 'parent'>): Promise<Origin> {
  const callers = await listCallers(ctx.db, id, maxLinks);
  const first = callers.at(-1);
  const isCut = callers.length === maxLinks && first !== undefined && first.parent_nid !== null;
  const launch = first === undefined || isCut ? undefined : await findLaunch(ctx.db, first.id);
  const links = callers.map((caller, i) => linkOf(caller, callers[i + 1]));
  if (isCut) links.push({ what: 'more', id: null, at: null, message: 'the chain is longer than shown' });
  else if (launch !== undefined) links.push(launchLink(launch));
  const caller = callers[1];
  if (parent !== null && caller !== undefined) return { cause: [calledBy(caller, parent)], chain: links };
  return { cause: launch === undefined ? [] : [launchedBy(launch)], chain: links };
}

function nameOf({ flow, key, id }: Caller): string {
  return `${flow} ${key ?? id}`;
}

function linkOf(caller: Caller, earlier: Caller | undefined): Link {
  const because = earlier === undefined ? '' : `, called by ${nameOf(earlier)} at its step ${caller.parent_nid ?? ''}`;
  const message = `${nameOf(caller)} was launched${because}`;
  return { what: 'execution', id: caller.id, at: caller.created_at.toISOString(), message };
}

type Launch = NonNullable<Awaited<ReturnType<typeof findLaunch>>>;

function launchLink({ actor, at, fork }: Launch): Link {
  if (fork !== null) return { what: 'execution', id: fork, at: at.toISOString(), message: `it is a fork of ${fork}` };
  return { what: 'person', id: actor, at: at.toISOString(), message: `${actor ?? 'a machine'} launched it` };
}

function calledBy({ id, flow }: Caller, { nid }: { readonly nid: string }): Finding {
  return finding('called', `the step ${nid} of an execution of ${flow} called it`, { execution: id, node: nid });
}

function launchedBy({ actor, at, fork }: Launch): Finding {
  const who = actor ?? 'a machine';
  if (fork !== null)
    return finding('forked', `${who} forked it from ${fork} at ${formatTime(at)}`, { actor, at, execution: fork });
  return finding('launched', `${who} launched it at ${formatTime(at)}`, { actor, at });
}
