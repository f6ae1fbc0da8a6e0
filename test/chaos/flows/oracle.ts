/**
 * The conditions that executions of flows (workload.ts) must meet when all have ended: each has ended as it would have without any
 * fault, its commits are one chain (I9), each message had one effect, no timer was early (I10), nothing left before its commit,
 * compensations ran once and last first, maps kept their limit, and nothing is left over.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Delta } from '../../../src/flows/interpreter/delta.ts';
import { foldDeltas } from '../../../src/flows/interpreter/delta.ts';
import type { FlowNode } from '../../../src/flows/interpreter/state.ts';
import { type Db, sql } from '../../../src/kernel/sql.ts';
import type { FlowLoad } from './load.ts';
import { flowEnds, type FlowKind, flowMaps } from './workload.ts';

interface Commit {
  readonly rev: number;
  readonly at: Date;
  readonly entry: {
    readonly m: {
      readonly id: string;
      readonly point: string;
      readonly nid?: string;
      readonly attempt?: number;
      readonly outcome?: string;
      readonly planned?: number;
    };
    readonly d: Delta;
    readonly out: readonly {
      readonly kind: string;
      readonly node: string;
      readonly attempt: number;
      readonly name: string;
    }[];
  };
}

interface Story {
  readonly id: string;
  readonly kind: FlowKind;
  readonly status: number;
  readonly rev: number;
  readonly commits: readonly Commit[];
}

/** What a hosted function wrote about its call, by key. */
type Calls = ReadonlyMap<string, string>;

const statuses = ['live', 'paused', 'incident', 'done', 'failed', 'cancelled'];
const page = 200;
/** Limits the output of a failed test. */
const maxFaults = 20;

/** Waits until all executions have ended, however slow the machine is. Gives up when nothing has changed for `stalledMs`. */
export async function waitUntilEnded(db: Db, stalledMs: number): Promise<string[]> {
  let seen = '';
  let movedAt = performance.now();
  while (performance.now() - movedAt < stalledMs) {
    const now = await summarize(db).catch(() => 'the database is away');
    if (now === '') return [];
    if (now !== seen) movedAt = performance.now();
    seen = now;
    await sleep(100);
  }
  return [`nothing has changed for ${stalledMs} ms: ${seen}`, ...(await stuckOnes(db))];
}

async function summarize(db: Db): Promise<string> {
  const rows = await db.rows<{ what: string }>(sql`
    select concat_ws(' ', f.name, count(*), 'live,', sum(e.rev), 'commits,', sum(e.calls), 'calls,', sum(e.tasks), 'runs') as what
      from execution e join flow f on f.id = e.flow_id
     where e.status < 3
     group by f.name
     order by f.name`);
  return rows.map(({ what }) => what).join('; ');
}

async function stuckOnes(db: Db): Promise<string[]> {
  const rows = await db.rows<{ what: string }>(sql`
    select json_build_object(
             'id', e.id, 'flow', f.name, 'rev', e.rev, 'owner', e.owner, 'calls', e.calls, 'tasks', e.tasks,
             'inbox', (select json_agg(i.id) from inbox i where i.execution_id = e.id),
             'timers', (select json_agg(t) from timer t where t.execution_id = e.id),
             'trackers', (select json_agg(t) from tracker t where t.execution_id = e.id),
             'last', (select c.entry from commit c where c.execution_id = e.id order by c.rev desc limit 1))::text as what
      from execution e join flow f on f.id = e.flow_id
     where e.status < 3
     limit 3`);
  return rows.map(({ what }) => what);
}

/** Descriptions of all faults; empty if there are none. All executions have ended. */
export async function flowFaults(db: Db, load: FlowLoad, evidence: Evidence): Promise<string[]> {
  const calls: Calls = new Map(
    evidence.calls.map((line) => line.split('\t')).map(([, key = '', of = '']) => [key, of]),
  );
  const faults: string[] = [];
  const ids = (await db.rows<{ id: string }>(sql`select id from execution order by id`)).map(({ id }) => id);
  const left = { calls: new Set(calls.keys()), sent: new Set(load.sent) };
  for (let at = 0; at < ids.length; at += page)
    for (const story of await readStories(db, ids.slice(at, at + page))) faults.push(...faultsOf(story, calls, left));
  if (left.calls.size > 0) faults.push(`${left.calls.size} calls without a commit, such as ${[...left.calls][0]}`);
  if (left.sent.size > 0) faults.push(`${left.sent.size} messages are lost, such as ${[...left.sent][0]}`);
  faults.push(...(await launchFaults(db, load)), ...(await findLeftovers(db)), ...(await eventFaults(db)));
  faults.push(...(await runFaults(db, evidence.executed)));
  return faults.slice(0, maxFaults);
}

export interface Evidence {
  /** Of hosted functions: name, key, and what was undone. */
  readonly calls: readonly string[];
  /** Of functions of workers: run and lease. */
  readonly executed: readonly string[];
}

async function readStories(db: Db, ids: readonly string[]): Promise<Story[]> {
  const heads = await db.rows<{ id: string; kind: FlowKind; status: number; rev: number }>(sql`
    select e.id, f.name as kind, e.status, e.rev
      from execution e join flow f on f.id = e.flow_id
     where e.id = any (${ids}::uuid[])`);
  const commits = await db.rows<Commit & { id: string }>(sql`
    select execution_id as id, rev, at, entry from commit where execution_id = any (${ids}::uuid[]) order by execution_id, rev`);
  const byId = new Map(ids.map((id) => [id, [] as Commit[]]));
  for (const { id, ...commit } of commits) byId.get(id)?.push(commit);
  return heads.map((head) => ({ ...head, commits: byId.get(head.id) ?? [] }));
}

interface Left {
  readonly calls: Set<string>;
  readonly sent: Set<string>;
}

function faultsOf(story: Story, calls: Calls, left: Left): string[] {
  const faults = [
    ...chainFaults(story),
    ...messageFaults(story, left.sent),
    ...endFaults(story),
    ...callFaults(story, calls, left.calls),
    ...undoFaults(story, calls),
    ...mapFaults(story),
  ];
  return faults.map((fault) => `${story.kind} ${story.id}: ${fault}`);
}

function chainFaults({ rev, commits }: Story): string[] {
  const revs = commits.map((commit) => commit.rev);
  const isChain = revs.length === rev && revs.every((each, i) => each === i + 1);
  return isChain ? [] : [`it is at revision ${rev}, and has the commits ${revs.join(' ')}`];
}

/** Each message has one effect, and timers are not early. */
function messageFaults({ commits }: Story, sent: Set<string>): string[] {
  const faults: string[] = [];
  const seen = new Set<string>();
  for (const { at, entry } of commits) {
    const { id, point, planned } = entry.m;
    if (point === 'continue') continue;
    if (seen.has(id)) faults.push(`${id} was taken twice`);
    seen.add(id);
    sent.delete(id.replace(/^key:/, ''));
    if (point === 'timer' && planned !== undefined && at.getTime() < planned) faults.push(`${id} was early`);
  }
  return faults;
}

function endFaults({ kind, status, commits }: Story): string[] {
  const end = flowEnds[kind];
  const fields = foldDeltas(commits.map(({ entry }) => entry.d)).f;
  if (statuses[status] !== end.status) return [`it is ${statuses[status]}`];
  if (end.fields === undefined || isDeepStrictEqual(fields, end.fields)) return [];
  return [`its fields are ${JSON.stringify(fields)}`];
}

interface Task {
  readonly key: string;
  readonly name: string;
  readonly by: string;
}

function tasksOf({ id, commits }: Story): Task[] {
  return commits.flatMap(({ entry }) =>
    entry.out
      .filter(({ kind }) => kind === 'task')
      .map((out) => ({
        ...(out as { name: string; by: string } & typeof out),
        key: `${id}/${out.node}/${out.attempt}`,
      })),
  );
}

/** Keys of tasks whose results were taken, in order. */
function completed({ id, commits }: Story): string[] {
  return commits
    .filter(({ entry: { m } }) => m.point === 'answer' && m.outcome === 'done')
    .map(({ entry: { m } }) => `${id}/${m.nid}/${m.attempt}`);
}

/** Nothing was called before its commit, and no result came without a call. */
function callFaults(story: Story, calls: Calls, uncommitted: Set<string>): string[] {
  const hosted = tasksOf(story).filter(({ by }) => by === 'hosted');
  for (const { key } of hosted) uncommitted.delete(key);
  const done = new Set(completed(story));
  const silent = hosted.filter(({ key }) => done.has(key) && !calls.has(key));
  const twice = hosted.length - new Set(hosted.map(({ key }) => key)).size;
  return [
    ...silent.map(({ key, name }) => `${name} has a result without a call: ${key}`),
    ...(twice > 0 ? [`${twice} attempts were begun twice`] : []),
  ];
}

/** Each completed step with a compensation is compensated once, the last one first. */
function undoFaults(story: Story, calls: Calls): string[] {
  if (story.kind !== 'saga' && story.kind !== 'cancelled') return [];
  const tasks = tasksOf(story);
  const names = new Map(tasks.map(({ key, name }) => [key, name]));
  const what = (key: string): string => calls.get(key) || (names.get(key) ?? '');
  const undone = tasks.filter(({ name }) => name === 'undo').map(({ key }) => what(key));
  const done = completed(story)
    .filter((key) => names.get(key) !== 'undo')
    .map(what);
  const expected = done.toReversed();
  const isRight =
    story.kind === 'saga'
      ? isDeepStrictEqual(undone, expected)
      : isDeepStrictEqual(
          undone,
          // a step whose result came after the cancellation does not count as completed
          expected.filter((each) => undone.includes(each)),
        );
  return isRight ? [] : [`done: ${done.join(', ')}; undone: ${undone.join(', ')}`];
}

function mapFaults({ kind, commits }: Story): string[] {
  const map = flowMaps[kind];
  if (map === undefined) return [];
  const counts = commits
    .flatMap(({ entry }) => Object.values(entry.d.nodes ?? {}))
    .filter((node): node is FlowNode => node?.at === map.at)
    .map(({ children }) => children.length);
  const most = Math.max(0, ...counts);
  return most > map.concurrent ? [`${most} items were under way at once`] : [];
}

/** Each launch made one execution, each call of a flow one child. */
async function launchFaults(db: Db, { launched }: FlowLoad): Promise<string[]> {
  const { roots, children, callers } = await db.one<{ roots: number; children: number; callers: number }>(sql`
    select count(*) filter (where parent is null)::integer as roots,
           count(*) filter (where parent is not null)::integer as children,
           count(distinct parent)::integer as callers
      from execution`);
  const parents = [...launched.values()].filter((kind) => kind === 'parent').length;
  return [
    ...(roots === launched.size ? [] : [`${roots} executions of ${launched.size} launches`]),
    ...(children === parents && callers === parents
      ? []
      : [`${children} children of ${callers} of ${parents} parents`]),
  ];
}

async function findLeftovers(db: Db): Promise<string[]> {
  const rows = await db.rows<{ what: string; n: number }>(sql`
    select 'messages' as what, count(*)::integer as n from inbox
    union all select 'timers', count(*)::integer from timer
    union all select 'trackers', count(*)::integer from tracker
    union all select 'live runs', count(*)::integer from live
    union all select 'open work items', count(*)::integer from workitem where ended_at is null`);
  return rows.filter(({ n }) => n > 0).map(({ what, n }) => `${n} ${what} are left`);
}

/** Each execution has announced its begin and its end, once each. One may be cancelled before it begins. */
async function eventFaults(db: Db): Promise<string[]> {
  const ends = ['execution.done', 'execution.failed', 'execution.cancelled'];
  const rows = await db.rows<{ id: string; begun: number; started: number; ended: number }>(sql`
    select e.id,
           (select count(*) from commit c where c.execution_id = e.id and c.entry #>> '{m,point}' = 'launch')::integer as begun,
           count(*) filter (where v.type = 'execution.started')::integer as started,
           count(*) filter (where v.type = any (${ends}::text[]))::integer as ended
      from execution e
      left join event v on v.subject = e.id
     group by e.id`);
  return rows
    .filter(({ begun, started, ended }) => started !== begun || ended !== 1)
    .map(({ id, started, ended }) => `${id} has announced ${started} begins and ${ended} ends`);
}

/** A hand-out is executed at most once, and a success was executed under the lease that counted. */
async function runFaults(db: Db, executed: readonly string[]): Promise<string[]> {
  const lines = new Set(executed);
  const runs = await db.rows<{ id: string; lease: number }>(sql`
    select run.id, run.lease
      from run join node_run on node_run.run_id = run.id
     where run.state = 'success' and node_run.work #>> '{runtime,name}' = 'triple'`);
  const unseen = runs.filter(({ id, lease }) => !lines.has(`${id} ${lease}`));
  return [
    ...(lines.size < executed.length ? [`${executed.length - lines.size} hand-outs were executed twice`] : []),
    ...unseen.map(({ id, lease }) => `run ${id} succeeded under lease ${lease}, which was never executed`),
  ];
}
