/** Judges the parents of a waiting token: whether a parent has counted; if not, why, and whether it still can. */
import { shellWord } from '../../kernel/text/shell-word.ts';
import type { ApiContext } from '../context.ts';
import { type BlockedRow, listBlocked, listParentTriggers, type ParentRow } from './graph-queries.ts';
import { judgeInstant } from './trigger.ts';
import { type Finding, finding, jobNameOf, type Link, nameOf, type Part, formatTime, tokenIdOf } from './findings.ts';

/** A parent, and why it has not counted since the last clear of the token; `finding` is undefined if it has. */
export interface Judged {
  readonly name: string;
  readonly kind: 'trigger' | ParentRow['kind'];
  readonly instant: Date;
  readonly finding: Finding | undefined;
}

export function judgeParent(parent: ParentRow, child: Part, clearedAt: Date | null): Judged {
  const name = nameOf('task', parent, child);
  const { kind, instant } = parent;
  const hasCounted = counts(parent) && (clearedAt === null || (parent.finished_at ?? clearedAt) > clearedAt);
  return { name, kind, instant, finding: hasCounted ? undefined : whyNot(parent, name) };
}

/** Whether the newest run ended in the way that the edge requires, and no further attempt follows. */
function counts({ kind, run_state: state, retrying }: ParentRow): boolean {
  if (state === null || state === 'cancelled' || retrying) return false;
  return kind === 'done' || (kind === 'success') === (state === 'success');
}

const wanted = { success: 'only its success counts', failure: 'only its failure counts', done: 'only its end counts' };

function whyNot(parent: ParentRow, name: string): Finding {
  const { state, instant, kind } = parent;
  const data = { task: parent.id, instant, kind, state, token: tokenIdOf(parent.id, instant), run: parent.run };
  if (parent.paused && (state === 'waiting' || state === 'active')) {
    const next = `millrace unpause ${jobNameOf(parent)}`;
    return finding('parent_paused', `the job of ${name} is paused`, { ...data, job: parent.job_id }, next);
  }
  const unfinished = moving[state];
  if (unfinished !== undefined) return unfinished(parent, name, data);
  return counts(parent) ? before(parent, name, data) : otherwise(parent, name, data);
}

type Data = Record<string, unknown>;

type Explainer = (parent: ParentRow, name: string, data: Data) => Finding;

const waiting: Explainer = ({ begun, count, threshold, instant }, name, data) => {
  if (!begun) return finding('parent_not_begun', `nothing has counted for ${name} at ${formatTime(instant)} yet`, data);
  const message = `${name} waits itself, with ${count} of ${threshold} counts, at ${formatTime(instant)}`;
  return finding('parent_waiting', message, { ...data, count, threshold });
};

const retrying: Explainer = ({ instant, retry_at }, name, data) => {
  const due = retry_at === null ? '' : `, due at ${formatTime(retry_at)}`;
  const message = `${name} is to be tried again for ${formatTime(instant)}${due}`;
  return finding('parent_retrying', message, { ...data, retry_at });
};

/** Explainers of the states that are not final. */
const moving: Partial<Record<ParentRow['state'], Explainer>> = {
  waiting,
  active: ({ instant }, name, data) => finding('parent_queued', `${name} is queued for ${formatTime(instant)}`, data),
  running: ({ instant }, name, data) =>
    finding('parent_running', `${name} is running for ${formatTime(instant)}`, data),
  retry: retrying,
};

const before: Explainer = (parent, name, data) => {
  const message = `${name} ended for ${formatTime(parent.instant)}, but what it counted was cleared`;
  return finding('parent_counted_before', message, data, again(parent));
};

const otherwise: Explainer = (parent, name, data) => {
  const { state, instant, kind } = parent;
  const message = `${name} ended in ${state} for ${formatTime(instant)}, where ${wanted[kind]}`;
  if (state === 'success') return finding('parent_succeeded', message, data);
  return finding(state === 'cancelled' ? 'parent_cancelled' : 'parent_failed', message, data, again(parent));
};

function again(parent: ParentRow): string {
  return `millrace activate ${jobNameOf(parent)} ${shellWord(parent.name)} ${formatTime(parent.instant)} runs it again`;
}

/** The chain of tokens that block a token, up to one that is not waiting, or to a trigger. */
export async function blockedChain(ctx: ApiContext, token: Part & { readonly instant: Date }): Promise<Link[]> {
  const rows = await listBlocked(ctx.db, token.id, token.instant);
  const links = rows.map((row, i) => blockedLink(row, rows[i + 1], token));
  const last = rows.at(-1);
  if (last === undefined || last.state !== 'waiting') return links;
  const triggers = await listParentTriggers(ctx.db, last.id, last.instant);
  const verdicts = triggers.map((trigger) => ({
    id: trigger.id,
    ...judgeInstant(trigger, nameOf('trigger', trigger, token), ctx.time.now()),
  }));
  const open = verdicts.find(({ state }) => state !== 'fired') ?? verdicts[0];
  return open === undefined
    ? links
    : [...links, { what: 'trigger', id: open.id, at: null, message: open.finding.message }];
}

function blockedLink(row: BlockedRow, parent: BlockedRow | undefined, home: Part): Link {
  const others = row.several ? 'among others ' : '';
  const blocked = parent === undefined ? '' : `, ${others}for ${nameOf('task', parent, home)}`;
  const message = `${nameOf('task', row, home)} ${stateNow[row.state]} for ${formatTime(row.instant)}${blocked}`;
  return { what: 'token', id: tokenIdOf(row.id, row.instant), at: null, message };
}

const stateNow: Readonly<Record<BlockedRow['state'], string>> = {
  waiting: 'waits',
  active: 'is queued',
  running: 'is running',
  retry: 'is to be tried again',
  success: 'succeeded',
  failure: 'failed',
  timeout: 'timed out',
  error: 'could not be run',
  cancelled: 'was cancelled',
};
