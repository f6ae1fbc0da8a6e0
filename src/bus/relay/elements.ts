/** The elements of copied events, without their last brace: the id is added when it is known. */
import { EventTimes } from '../publish/event-times.ts';
import type { LifecycleRow, OutboxRow } from './queries.ts';

/** Receivers drop an event with the URL and the time of another. */
const times = new EventTimes();

export function renderOutbox({ topic, type, url, data, at }: OutboxRow): string {
  return render({ topic, type, url, at, data });
}

/** `data` has the lifecycle event: its type, subject, actor, cause and body. The URL names its subject. */
export function renderLifecycle(row: LifecycleRow, publicUrl: string | undefined): { url: string; body: string } {
  const { topic, type, subject, actor, cause, at } = row;
  const kind = topic.replace('millrace_', '');
  const url = `${publicUrl ?? 'https://millrace.invalid'}/${kind}${subject === null ? '' : `/${subject}`}`;
  const fields = JSON.stringify({ event: type, seq: String(row.seq), subject, actor, cause, at: at.toISOString() });
  const data = `${fields.slice(0, -1)},"body":${row.body}}`;
  return { url, body: render({ topic, type: wireType(type), url, at, data }) };
}

interface Element {
  readonly topic: string;
  readonly type: string;
  readonly url: string;
  readonly at: Date;
  readonly data: string | null;
}

function render({ topic, type, url, at, data }: Element): string {
  const t = times.next(url, undefined, at.getTime());
  const head = `{"topic":"${topic}","type":"${type}","url":${JSON.stringify(url)},"t":${t}`;
  return data === null ? head : `${head},"data":${data}`;
}

function wireType(type: string): 'create' | 'update' | 'delete' {
  // the URL of a work item's event is that of its execution
  if (type === 'execution.started' || (type.endsWith('.created') && type !== 'workitem.created')) return 'create';
  return type.endsWith('.deleted') ? 'delete' : 'update';
}
