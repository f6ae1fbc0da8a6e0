/** The arguments of `commit_executions`: a part for each kind of rows, left out if there are none. */
import type { Secrets } from '../../../contract/context.ts';
import type { FlowRun } from '../../../contract/flows.ts';
import { nodeLaneOf, defaultQueue } from '../../../contract/lane.ts';
import { listOf, type Sql, sql } from '../../../kernel/sql.ts';
import {
  booleanArray,
  integerArray,
  jsonArray,
  smallIntegerArray,
  textArray,
  timeArray,
  uuidArray,
} from '../../../postgres/binary-array.ts';
import { isObject, type Json } from '../../json.ts';
import type { Chain } from './chains.ts';
import { formOf } from '../revisions/effects-of-run.ts';
import { entryText } from '../entry.ts';
import { callsOf, commitFormat, statusOf } from '../memory.ts';
import { childBody, messageText } from '../message-text.ts';
import { detailsOf, type NodeRun, type RunDetails, type WorkItem } from '../revisions/run-details.ts';
import { readableText } from './readable-text.ts';
import { isSealed, sealText, sealValue } from '../sealing.ts';
import { withdrawRuns } from './withdraw-runs.ts';

export interface CommitContext {
  readonly member: string;
  readonly commit: string;
  readonly atMs: number;
  readonly secrets: Secrets;
  /** When so many more children may begin. */
  childTimes(count: number): readonly number[];
}

/** A run with its details, and the secrets if its execution is sealed. */
interface Piece {
  readonly run: FlowRun;
  readonly details: RunDetails;
  readonly secrets: Secrets | undefined;
}

export function commitArguments(chains: readonly Chain[], how: CommitContext): Sql {
  const still = chains.filter(({ first, last, before }) => first.rev === last.rev && before.isStored);
  const kept = still.filter((chain) => !isClaim(chain, how));
  const moved = chains.filter(({ first, last }) => first.rev < last.rev);
  const pieces = moved.flatMap((chain) =>
    withdrawRuns(chain.runs.flatMap((run) => (run.from === run.to ? [] : [pieceOf(run, chain, how)]))),
  );
  return listOf([
    sql`p_member => ${how.member}::uuid, p_commit => ${how.commit}::uuid, p_at => ${new Date(how.atMs)}::timestamptz,
        p_format => ${commitFormat}::smallint`,
    ...seen(kept),
    ...heads([...moved.filter(({ before }) => before.isStored), ...still.filter((chain) => isClaim(chain, how))]),
    ...newHeads(moved.filter(({ before }) => !before.isStored)),
    ...commits(pieces),
    ...snapshots(pieces),
    ...documents(pieces),
    ...labels(pieces),
    ...timers(pieces),
    ...trackers(pieces),
    ...items(pieces),
    ...inbox(chains.filter(({ before }) => before.isStored)),
    ...children(pieces, how),
    ...messages(pieces, how),
    ...nodeRuns(pieces),
    ...events(pieces),
  ]);
}

function pieceOf(run: FlowRun, { after }: Chain, { secrets }: CommitContext): Piece {
  return { run, details: detailsOf(run), secrets: isSealed(after.flow) ? secrets : undefined };
}

type ListName = 'labels' | 'endedItems' | 'items' | 'children' | 'messages' | 'stoppedRuns' | 'runs';

/** Those with such rows: most have none. */
function having(pieces: readonly Piece[], list: ListName): Piece[] {
  return pieces.filter(({ details }) => details[list].length > 0);
}

function seen(chains: readonly Chain[]): Sql[] {
  if (chains.length === 0) return [];
  return [
    sql`p_seen => ${uuidArray(chains.map(({ first }) => first.id))}::uuid[],
        p_seen_revs => ${integerArray(chains.map(({ first }) => first.rev))}::integer[]`,
  ];
}

/** A message that changes nothing makes its conductor the owner, if the execution has not ended. */
function isClaim({ first: { rev, over, owner }, last, before }: Chain, { member }: CommitContext): boolean {
  return before.isStored && rev === last.rev && !over && owner !== member;
}

/** Sorted by id: that is the order in which they are locked. */
function heads(unsorted: readonly Chain[]): Sql[] {
  if (unsorted.length === 0) return [];
  const chains = unsorted.toSorted((a, b) => (a.first.id < b.first.id ? -1 : 1));
  const parts = [
    sql`p_ids => ${uuidArray(chains.map(({ first }) => first.id))}::uuid[],
        p_revs => ${integerArray(chains.map(({ first }) => first.rev))}::integer[],
        p_steps => ${integerArray(chains.map(({ first, last }) => last.rev - first.rev))}::integer[],
        p_statuses => ${smallIntegerArray(chains.map(({ after }) => statusOf(after)))}::smallint[],
        p_calls => ${integerArray(chains.map(({ after }) => callsOf(after)))}::integer[],
        p_tasks => ${integerArray(chains.map(({ after }) => after.tally.tasks))}::integer[]`,
  ];
  const isStill = ({ first, last }: Chain): boolean => first.rev === last.rev;
  if (!chains.some(isStill)) return parts;
  const epochs = chains.map((chain) => (isStill(chain) ? chain.first.epoch : null));
  return [...parts, sql`p_epochs => ${integerArray(epochs)}::integer[]`];
}

/** Sorted by key, because two commits with the same keys wait for each other. */
function newHeads(unsorted: readonly Chain[]): Sql[] {
  if (unsorted.length === 0) return [];
  const hasKeys = unsorted.some(({ before }) => before.key !== null);
  const chains = hasKeys
    ? unsorted.toSorted((a, b) => ((a.before.key ?? '') < (b.before.key ?? '') ? -1 : 1))
    : unsorted;
  const parts = [
    sql`p_new_ids => ${uuidArray(chains.map(({ first }) => first.id))}::uuid[],
        p_new_steps => ${integerArray(chains.map(({ last }) => last.rev))}::integer[],
        p_new_statuses => ${smallIntegerArray(chains.map(({ after }) => statusOf(after)))}::smallint[],
        p_new_calls => ${integerArray(chains.map(({ after }) => callsOf(after)))}::integer[],
        p_new_tasks => ${integerArray(chains.map(({ after }) => after.tally.tasks))}::integer[],
        p_new_flows => ${uuidArray(chains.map(({ after }) => after.flow.flowId))}::uuid[],
        p_new_versions => ${integerArray(chains.map(({ after }) => after.flow.version))}::integer[]`,
  ];
  if (hasKeys) parts.push(sql`p_new_keys => ${textArray(chains.map(({ before }) => before.key))}::text[]`);
  if (chains.some(({ before }) => before.depth > 0))
    parts.push(sql`p_new_depths => ${smallIntegerArray(chains.map(({ before }) => before.depth))}::smallint[]`);
  return parts;
}

function commits(pieces: readonly Piece[]): Sql[] {
  if (pieces.length === 0) return [];
  const parts = [
    sql`p_commit_ids => ${uuidArray(pieces.map(({ run }) => run.to.id))}::uuid[],
        p_commit_revs => ${integerArray(pieces.map(({ run }) => run.to.rev))}::integer[],
        p_entries => ${jsonArray(pieces.map(({ details, secrets }) => entryText(details.entry, secrets)))}::json[]`,
  ];
  const actors = pieces.map(({ run }) => run.message.actor);
  if (actors.some((actor) => actor !== null)) parts.push(sql`p_actors => ${textArray(actors)}::text[]`);
  return parts;
}

/** Of several snapshots of an execution, the last. */
function snapshots(pieces: readonly Piece[]): Sql[] {
  const last = new Map<string, { readonly rev: number; readonly text: string }>();
  for (const { run, details, secrets } of pieces) {
    const { snapshot } = details;
    if (snapshot === null) continue;
    last.set(run.to.id, { rev: run.to.rev, text: secrets === undefined ? snapshot : sealText(secrets, snapshot) });
  }
  if (last.size === 0) return [];
  const all = [...last.values()];
  return [
    sql`p_snapshot_ids => ${uuidArray([...last.keys()])}::uuid[],
        p_snapshot_revs => ${integerArray(all.map(({ rev }) => rev))}::integer[],
        p_snapshots => ${jsonArray(all.map(({ text }) => text))}::json[]`,
  ];
}

function documents(pieces: readonly Piece[]): Sql[] {
  const rows = pieces.flatMap(({ run, details: { document } }) => (document === null ? [] : [{ run, document }]));
  if (rows.length === 0) return [];
  return [
    sql`p_document_ids => ${uuidArray(rows.map(({ run }) => run.to.id))}::uuid[],
        p_document_revs => ${integerArray(rows.map(({ run }) => run.to.rev))}::integer[],
        p_documents => ${jsonArray(rows.map(({ document }) => document))}::json[]`,
  ];
}

function labels(pieces: readonly Piece[]): Sql[] {
  const rows = having(pieces, 'labels').flatMap(({ run, details }) =>
    details.labels.map(([name, value]) => [run.to.id, name, value] as const),
  );
  if (rows.length === 0) return [];
  return [
    sql`p_label_ids => ${uuidArray(rows.map(([id]) => id))}::uuid[],
        p_label_names => ${textArray(rows.map(([, name]) => name))}::text[],
        p_label_values => ${textArray(rows.map(([, , value]) => value))}::text[]`,
  ];
}

/** The net change of a chain: the last word about each timer counts. */
function timers(pieces: readonly Piece[]): Sql[] {
  const last = new Map<string, Partial<FlowRun['timers']['set'][number]> & { execution: string; name: string }>();
  for (const { run } of pieces) {
    for (const mark of run.timers.cleared) last.set(`${mark.execution}/${mark.name}`, mark);
    for (const mark of run.timers.set) last.set(`${mark.execution}/${mark.name}`, mark);
  }
  if (last.size === 0) return [];
  const all = [...last.values()];
  const cleared = all.filter(({ dueMs }) => dueMs === undefined);
  const set = all.filter(({ dueMs }) => dueMs !== undefined);
  const parts: Sql[] = [];
  if (cleared.length > 0)
    parts.push(sql`p_cleared_ids => ${uuidArray(cleared.map(({ execution }) => execution))}::uuid[],
        p_cleared => ${textArray(cleared.map(({ name }) => name))}::text[]`);
  if (set.length > 0)
    parts.push(sql`p_timer_ids => ${uuidArray(set.map(({ execution }) => execution))}::uuid[],
        p_timers => ${textArray(set.map(({ name }) => name))}::text[],
        p_generations => ${integerArray(set.map(({ generation = 0 }) => generation))}::integer[],
        p_dues => ${timeArray(set.map(({ dueMs = 0 }) => dueMs))}::timestamptz[]`);
  return parts;
}

function trackers(all: readonly Piece[]): Sql[] {
  const pieces = all.filter(({ details: { trackers } }) => trackers.set.length + trackers.cleared.length > 0);
  const cleared = pieces.flatMap(({ run, details }) =>
    details.trackers.cleared.map((name) => ({ id: run.to.id, name })),
  );
  const added = new Map<string, { readonly id: string; readonly name: string; readonly topic: string }>();
  for (const { run, details } of pieces) {
    for (const name of details.trackers.cleared) added.delete(`${run.to.id}/${name}`);
    for (const tracker of details.trackers.set)
      added.set(`${run.to.id}/${tracker.name}`, { id: run.to.id, ...tracker });
  }
  const set = [...added.values()];
  const parts: Sql[] = [];
  if (cleared.length > 0)
    parts.push(sql`p_untracked_ids => ${uuidArray(cleared.map(({ id }) => id))}::uuid[],
        p_untracked => ${textArray(cleared.map(({ name }) => name))}::text[]`);
  if (set.length > 0)
    parts.push(sql`p_tracker_ids => ${uuidArray(set.map(({ id }) => id))}::uuid[],
        p_trackers => ${textArray(set.map(({ name }) => name))}::text[],
        p_topics => ${textArray(set.map(({ topic }) => topic))}::text[]`);
  return parts;
}

function items(pieces: readonly Piece[]): Sql[] {
  const ended = having(pieces, 'endedItems').flatMap(({ run, details }) =>
    details.endedItems.map((item) => ({ id: run.to.id, ...item })),
  );
  const made = having(pieces, 'items').flatMap((piece) => piece.details.items.map((item) => itemRow(item, piece)));
  // one that was answered in the same commit was never there
  const open = made.filter(
    ({ id, nid, attempt }) => !ended.some((e) => e.id === id && e.nid === nid && e.attempt === attempt),
  );
  const parts: Sql[] = [];
  if (ended.length > 0)
    parts.push(sql`p_done_ids => ${uuidArray(ended.map(({ id }) => id))}::uuid[],
        p_done_nids => ${textArray(ended.map(({ nid }) => nid))}::text[],
        p_done_attempts => ${integerArray(ended.map(({ attempt }) => attempt))}::integer[]`);
  if (open.length > 0)
    parts.push(sql`p_item_ids => ${uuidArray(open.map(({ item }) => item))}::uuid[],
        p_item_executions => ${uuidArray(open.map(({ id }) => id))}::uuid[],
        p_item_nids => ${textArray(open.map(({ nid }) => nid))}::text[],
        p_item_attempts => ${integerArray(open.map(({ attempt }) => attempt))}::integer[],
        p_item_names => ${textArray(open.map(({ name }) => name))}::text[],
        p_item_titles => ${textArray(open.map(({ title }) => title))}::text[],
        p_assignees => ${textArray(open.map(({ assignee }) => assignee))}::text[],
        p_teams => ${textArray(open.map(({ team }) => team))}::text[],
        p_forms => ${jsonArray(open.map(({ form }) => form))}::json[],
        p_inputs => ${jsonArray(open.map(({ input }) => input))}::json[],
        p_item_dues => ${timeArray(open.map(({ dueMs }) => dueMs))}::timestamptz[]`);
  return parts;
}

/** Names by which people search must fit into an index. */
const maxNameChars = 500;

function itemRow({ id: item, nid, attempt, name, item: human, input, dueMs }: WorkItem, { run, secrets }: Piece) {
  const text = (value: Json | undefined): string | null =>
    typeof value === 'string' ? value.slice(0, maxNameChars) : null;
  const [title, form] = [text(human['title']) ?? name, formOf(human)];
  const base = { item, id: run.to.id, nid, attempt, name, dueMs };
  const people = { assignee: text(human['assignee']), team: text(human['team']) };
  if (secrets === undefined)
    return { ...base, ...people, title, form: JSON.stringify(form), input: JSON.stringify(input) };
  return {
    ...base,
    ...people,
    title: name,
    // a form that is not sealed is an object, whatever its fields are called
    form: '"sealed"',
    input: sealText(secrets, JSON.stringify({ title, form, input })),
  };
}

function inbox(chains: readonly Chain[]): Sql[] {
  const taken = chains.flatMap(({ runs }) => runs.filter(isTaken).map(({ message }) => message));
  if (taken.length === 0) return [];
  return [
    sql`p_taken_ids => ${uuidArray(taken.map(({ execution }) => execution))}::uuid[],
        p_taken => ${textArray(taken.map(({ id }) => id))}::text[]`,
  ];
}

function children(pieces: readonly Piece[], how: CommitContext): Sql[] {
  const rows = having(pieces, 'children').flatMap((piece) => piece.details.children.map((child) => ({ child, piece })));
  if (rows.length === 0) return [];
  const depths = rows.map(({ piece }) => (piece.run.to.sealed as { readonly depth: number }).depth + 1);
  const bodies = rows.map(({ child, piece }, i) =>
    childBody(child, { depth: depths[i] ?? 1, atMs: how.atMs, secrets: piece.secrets }),
  );
  return [
    sql`p_child_ids => ${uuidArray(rows.map(({ child }) => child.id))}::uuid[],
        p_child_flows => ${textArray(rows.map(({ child }) => child.flow))}::text[],
        p_child_parents => ${uuidArray(rows.map(({ piece }) => piece.run.to.id))}::uuid[],
        p_child_nids => ${textArray(rows.map(({ child }) => child.nid))}::text[],
        p_child_attempts => ${integerArray(rows.map(({ child }) => child.attempt))}::integer[],
        p_child_detached => ${booleanArray(rows.map(({ child }) => child.isDetached))}::boolean[],
        p_child_depths => ${smallIntegerArray(depths)}::smallint[],
        p_child_bodies => ${jsonArray(bodies)}::json[],
        p_child_at => ${timeArray(how.childTimes(rows.length))}::timestamptz[]`,
  ];
}

function messages(pieces: readonly Piece[], { atMs }: CommitContext): Sql[] {
  const rows = having(pieces, 'messages').flatMap(({ details, secrets }) =>
    details.messages.map((sent) => ({ sent, secrets })),
  );
  if (rows.length === 0) return [];
  const bodies = rows.map(({ sent: { point, body }, secrets }) =>
    messageText({ point, bornMs: atMs, actor: null, body }, secrets),
  );
  return [
    sql`p_receivers => ${uuidArray(rows.map(({ sent }) => sent.execution))}::uuid[],
        p_message_ids => ${textArray(rows.map(({ sent }) => sent.id))}::text[],
        p_messages => ${jsonArray(bodies)}::json[]`,
  ];
}

function nodeRuns(pieces: readonly Piece[]): Sql[] {
  const stopped = having(pieces, 'stoppedRuns').flatMap(({ run, details }) =>
    details.stoppedRuns.map((attempt) => ({ id: run.to.id, ...attempt })),
  );
  const queued = having(pieces, 'runs').flatMap((piece) => piece.details.runs.map((node) => ({ node, piece })));
  const parts: Sql[] = [];
  if (stopped.length > 0)
    parts.push(sql`p_stop_ids => ${uuidArray(stopped.map(({ id }) => id))}::uuid[],
        p_stop_nids => ${textArray(stopped.map(({ nid }) => nid))}::text[],
        p_stop_attempts => ${integerArray(stopped.map(({ attempt }) => attempt))}::integer[]`);
  if (queued.length > 0)
    parts.push(sql`p_run_ids => ${uuidArray(queued.map(({ piece }) => piece.run.to.id))}::uuid[],
        p_run_nids => ${textArray(queued.map(({ node }) => node.nid))}::text[],
        p_run_attempts => ${integerArray(queued.map(({ node }) => node.attempt))}::integer[],
        p_works => ${jsonArray(queued.map(({ node, piece }) => workText(node, piece.secrets)))}::json[],
        p_projects => ${uuidArray(queued.map(({ piece }) => projectOf(piece)))}::uuid[],
        p_lanes => ${textArray(queued.map(({ node: { work } }) => nodeLaneOf(work.runtime, work.queue ?? defaultQueue)))}::text[],
        p_priorities => ${queued.map(({ node }) => node.work.priority)}::priority[],
        p_pools => ${textArray(queued.map(({ node }) => node.work.pool))}::text[]`);
  return parts;
}

function projectOf({ run }: Piece): string | null {
  return (run.to.sealed as Chain['after']).flow.projectId;
}

/** `callback` tells the commit that ends the run to wait for an answer by its link, without opening what is sealed. */
function workText({ name, input, timeoutMs, work }: NodeRun, secrets: Secrets | undefined): string {
  const params = isObject(input) ? input : { input };
  const { queue, block } = work;
  const plain = { name, timeout_ms: timeoutMs, params, queue: queue ?? defaultQueue, runtime: block };
  const callback = typeof block['answer_url'] === 'string' ? { callback: true } : {};
  if (secrets === undefined) return readableText({ ...plain, ...callback });
  return readableText({ sealed: sealValue(secrets, plain), ...callback });
}

function events(pieces: readonly Piece[]): Sql[] {
  const rows = pieces.flatMap(({ run, details }) => details.events.map((event) => ({ id: run.to.id, ...event })));
  if (rows.length === 0) return [];
  return [
    sql`p_event_types => ${textArray(rows.map(({ type }) => type))}::text[],
        p_event_subjects => ${uuidArray(rows.map(({ id }) => id))}::uuid[],
        p_event_actors => ${textArray(rows.map(({ actor }) => actor))}::text[],
        p_event_bodies => ${textArray(rows.map(({ body }) => JSON.stringify(body)))}::text[]`,
  ];
}

/** A message that this release cannot apply waits for one that can. */
function isTaken({ message, refused }: FlowRun): boolean {
  return message.isStored === true && refused?.code !== 'unreadable';
}
