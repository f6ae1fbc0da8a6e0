/** Traces a run back over the runs that caused it, to the trigger or the person that started the chain. */
import { isId } from '../../kernel/id.ts';
import type { ApiContext } from '../context.ts';
import {
  type BackfillOf,
  type CauseRow,
  findBackfillOf,
  findMaker,
  isCut,
  listCauses,
  listFirings,
} from './queries.ts';
import { type Finding, finding, type Link, nameOf, type Part, formatTime } from './findings.ts';

export interface Origin {
  readonly cause: Finding;
  readonly chain: readonly Link[];
}

/** The chain begins with the run itself. Returns undefined for a run that belongs to no task. */
export async function traceBack(ctx: ApiContext, run: string): Promise<Origin | undefined> {
  const rows = await listCauses(ctx.db, run);
  const [first, last] = [rows[0], rows.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  const links = rows.map((row, i) => linkOf(row, rows[i + 1], first));
  const second = rows[1];
  if (isCut(rows)) {
    const more: Link = { what: 'more', id: null, at: null, message: 'the chain is longer than shown' };
    return { cause: second === undefined ? forgotten : byRun(first, second), chain: [...links, more] };
  }
  const { cause, link } = await originOf(ctx, last, first);
  return { cause: second === undefined ? cause : byRun(first, second), chain: [...links, ...link] };
}

function isRetry(row: CauseRow, earlier: CauseRow): boolean {
  return row.attempt > 1 && row.id === earlier.id && row.instant.getTime() === earlier.instant.getTime();
}

function linkOf(row: CauseRow, earlier: CauseRow | undefined, home: Part): Link {
  const name = nameOf('task', row, home);
  const which = row.attempt > 1 ? `${name}, attempt ${row.attempt},` : name;
  const because = earlier === undefined ? '' : ` when ${endOf(row, earlier, home)}`;
  const message = `${which} was queued for ${formatTime(row.instant)}${because}`;
  return { what: 'run', id: row.run, at: row.queued_at.toISOString(), message };
}

function endOf(row: CauseRow, earlier: CauseRow, home: Part): string {
  if (isRetry(row, earlier)) return `the delay after attempt ${earlier.attempt} (${earlier.state}) was over`;
  return `${nameOf('task', earlier, home)} ended in ${earlier.state}`;
}

function byRun(row: CauseRow, earlier: CauseRow): Finding {
  const data = { run: earlier.run, task: earlier.id, instant: earlier.instant, state: earlier.state };
  if (isRetry(row, earlier)) {
    const message = `it is attempt ${row.attempt}, because attempt ${earlier.attempt} ended in ${earlier.state}`;
    return finding('retried', message, { ...data, attempt: row.attempt });
  }
  const counts = row.threshold > 1 ? `, the last of the ${row.threshold} counts it needs` : '';
  const message = `${nameOf('task', earlier, row)} ended in ${earlier.state}${counts}`;
  return finding('threshold_reached', message, { ...data, threshold: row.threshold });
}

const forgotten = finding('cause_forgotten', 'what caused it is no longer on record');

interface Beginning {
  readonly cause: Finding;
  readonly link: readonly Link[];
}

/** The cause of the oldest run of the chain. */
async function originOf(ctx: ApiContext, row: CauseRow, home: Part): Promise<Beginning> {
  if (row.trigger !== null) return byTrigger(ctx, row, row.trigger, home);
  return row.cause === null ? byPerson(ctx, row) : { cause: forgotten, link: [] };
}

async function byTrigger(ctx: ApiContext, row: CauseRow, trigger: Part, home: Part): Promise<Beginning> {
  const firings = await listFirings(ctx.db, { trigger: trigger.id, task: row.id, instant: row.instant });
  const causes = firings.map(({ cause }) => cause).filter(isId);
  const backfill = causes.length === 0 ? undefined : await findBackfillOf(ctx.db, causes, row);
  const instant = firings[0]?.instant ?? row.instant;
  const name = nameOf('trigger', trigger, home);
  const data = { trigger: trigger.id, instant };
  const link = (message: string): Link => {
    return { what: 'trigger', id: trigger.id, at: row.queued_at.toISOString(), message };
  };
  if (backfill !== undefined) {
    const message = `a backfill fired ${name} for ${formatTime(instant)}`;
    const cause = finding('backfilled', message, { ...data, backfill: backfill.id, actor: backfill.actor });
    return { cause, link: [link(message), ...backfillLinks(backfill)] };
  }
  if (row.priority === 'backfill') {
    const message = `${name} caught up ${formatTime(instant)}, which had been missed`;
    return { cause: finding('caught_up', message, data), link: [link(message)] };
  }
  const message = `${name} fired for ${formatTime(instant)}`;
  return { cause: finding('fired', message, data), link: [link(message)] };
}

function backfillLinks({ id, name, actor, created_at: madeAt }: BackfillOf): Link[] {
  const at = madeAt.toISOString();
  return [
    { what: 'backfill', id, at, message: name === null ? `backfill ${id}` : `the backfill ${name}` },
    { what: 'person', id: actor, at, message: `${actor} asked for it` },
  ];
}

async function byPerson(ctx: ApiContext, row: CauseRow): Promise<Beginning> {
  const act = await findMaker(ctx.db, row.run, row.job_id);
  const actor = act?.actor ?? null;
  const who = actor ?? 'someone';
  const whole = act?.type === 'job.run';
  const message = whole ? `${who} ran the job` : `${who} activated ${nameOf('task', row, row)}`;
  const link: Link = { what: 'person', id: actor, at: (act?.at ?? row.queued_at).toISOString(), message };
  const data = { actor, at: act?.at ?? row.queued_at, task: row.id, instant: row.instant };
  return { cause: finding(whole ? 'run_now' : 'activated', message, data), link: [link] };
}
