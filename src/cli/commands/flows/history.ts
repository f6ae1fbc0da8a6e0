/** `millrace flow history`: the commits of an execution, each in one line. Following, it prints those to come until it ends. */
import { pause } from '../../../kernel/service.ts';
import { delayMs } from '../../../kernel/backoff.ts';
import { type Output, showTime } from '../../print/output.ts';
import { oneLine, truncate } from '../../print/width.ts';
import type { Server } from '../../session/server.ts';
import type { Session } from '../../session/session.ts';
import { isTransient, patienceMs } from '../runs/follow-runs.ts';
import { checkExecutionId, fetchExecution, isOver } from './execution.ts';

async function fetchHistory(server: Server, id: string, after: number, limit: number) {
  return server.tenant('GET /api/executions/{id}/history', { params: { id }, query: { after, limit } });
}

type HistoryEntry = Awaited<ReturnType<typeof fetchHistory>>['items'][number];

const pageSize = 200;
const polling = { firstMs: 200, capMs: 2_000, jitter: 0 };

/** The entries after a revision that are there now, in order. */
export async function* readHistory(server: Server, id: string, after: number): AsyncGenerator<HistoryEntry> {
  let next: number | undefined = after;
  while (next !== undefined) {
    const page = await fetchHistory(server, id, next, pageSize);
    yield* page.items;
    next = page.next === null ? undefined : Number(page.next);
  }
}

interface HistoryOptions {
  readonly follow: boolean;
  readonly after?: number | undefined;
}

export async function showHistory(
  session: Session,
  [text = '']: readonly string[],
  options: HistoryOptions,
): Promise<void> {
  const id = checkExecutionId(text);
  const server = await session.connect();
  let last = options.after ?? 0;
  let answeredAt = Date.now();
  for (let attempt = 0; ; attempt++) {
    session.signal.throwIfAborted();
    try {
      // the end is read first: what was committed before it is in the history that is read then
      const isEnd = !options.follow || isOver(await fetchExecution(server, id));
      for await (const entry of readHistory(server, id, last)) {
        print(session.out, entry);
        last = entry.rev;
        attempt = 0;
      }
      answeredAt = Date.now();
      if (isEnd) break;
    } catch (error) {
      if (!options.follow || !isTransient(error) || Date.now() - answeredAt > patienceMs) throw error;
    }
    await pause(delayMs(polling, attempt), session.signal);
  }
  if (last === (options.after ?? 0) && !session.out.json) session.out.note('no commits');
}

function print(out: Output, entry: HistoryEntry): void {
  out.line(out.json ? JSON.stringify(entry) : renderEntry(entry, out));
}

/** `   3 2026-01-31T00:00:00Z answer: done, by ann; approve ended, f.decision set; task pay` */
export function renderEntry(entry: HistoryEntry, { paint }: Pick<Output, 'paint'>): string {
  const { rev, at, point, summary, actor, planned_at: plannedAt, changes } = entry;
  const cause = [summary === '' ? point : `${point}: ${summary}`];
  if (plannedAt !== null) cause.push(`due ${showTime(plannedAt)}`);
  if (actor !== null) cause.push(`by ${actor}`);
  const effects = [...nodesOf(entry), ...fieldsOf(entry), ...sentOf(entry)];
  if (changes.status !== null) effects.push(changes.status);
  const number = paint('dim', `${String(rev).padStart(4)} ${showTime(at)}`);
  return [`${number} ${paint('bold', oneLine(cause.join(', ')))}`, ...effects.map(oneLine)].join('; ');
}

const maxShownNodes = 6;

/** Steps that began, ended, or failed; blocks are left out. */
function nodesOf({ changes }: HistoryEntry): string[] {
  const told = changes.nodes.filter(({ verb, from, to }) => verb !== 'sequence' && from !== to);
  const shown = told.slice(0, maxShownNodes).map(({ path, from, to }) => {
    if (from === null) return to === 'run' ? `${path} begun` : `${path} ${to}`;
    return to === null ? `${path} ended` : `${path} ${from} → ${to}`;
  });
  const others = told.length - shown.length;
  return others === 0 ? shown : [...shown, `${others} more steps`];
}

const maxFieldsLength = 200;

function fieldsOf({ changes }: HistoryEntry): string[] {
  const fields = Object.entries(changes.fields);
  if (fields.length === 0) return [];
  return fields.map(([name, value]) => truncate(`f.${name} = ${JSON.stringify(value)}`, maxFieldsLength));
}

function sentOf({ sent }: HistoryEntry): string[] {
  return sent.flatMap(({ kind, name, due_at: dueAt, execution }) => {
    if (kind === 'task') return [`task ${name} sent`];
    if (kind === 'launch') return [`flow ${name} launched as ${execution}`];
    if (kind === 'signal') return [`signal ${name} sent to ${execution}`];
    return kind === 'timer' ? [`timer ${name} at ${showTime(dueAt)}`] : [];
  });
}
