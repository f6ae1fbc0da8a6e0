/** An entry of the history as people see it: what a commit changed and sent. Pure. Values are masked before. */
import type { HistoryEntry } from '../../../flows/executions/history.ts';
import type { Delta } from '../../../flows/interpreter/delta.ts';
import type { FlowNode, FlowState } from '../../../flows/interpreter/state.ts';
import { type Json, type JsonObject, memberOf, sizeOf } from '../../../flows/json.ts';
import type { Flow } from '../../../flows/language/step.ts';
import type { CallAnswer } from '../../../http/client.ts';
import { shownMessageId } from '../deliver.ts';
import { isoOf } from '../views/nodes.ts';
import type { executionHistoryEndpoints } from './endpoints.ts';

export type EntryView = CallAnswer<
  (typeof executionHistoryEndpoints)['GET /api/executions/{id}/history']
>['items'][number];
type NodeChange = EntryView['changes']['nodes'][number];
type Sent = EntryView['sent'][number];

/** Maximum nodes, and what was sent, of one entry. */
const maxListed = 200;
/** Longer values are shown as their length. */
const maxValueChars = 4_000;

/** Renders the entries of one execution in order. It remembers the nodes, so that each change has its `from`. */
export class HistoryRenderer {
  readonly #flow: Flow;
  readonly #nodes: Map<string, FlowNode>;

  /** `nodes`: as they were before the first entry. */
  constructor(flow: Flow, nodes: FlowState['nodes']) {
    this.#flow = flow;
    this.#nodes = new Map(Object.entries(nodes));
  }

  render({ rev, at, actor, member, message, delta, out }: HistoryEntry): EntryView {
    const { id, point, nid, plannedAt, summary } = message;
    const timers = this.#newTimers(delta);
    const changed = Object.entries(delta.nodes ?? {}).map(([node, to]) => this.#change(node, to));
    return {
      rev,
      at: at.toISOString(),
      actor,
      member,
      point: point as EntryView['point'],
      message_id: shownMessageId(id),
      node: nid,
      planned_at: plannedAt?.toISOString() ?? null,
      summary: summary ?? '',
      changes: {
        fields: shortened(delta.f ?? {}),
        nodes: changed.slice(0, maxListed),
        nodes_total: changed.length,
        ...(delta.ret !== undefined && { result: shorten(delta.ret) }),
        status: statusIn(delta),
      },
      sent: [...out.flatMap(sentOf), ...timers].slice(0, maxListed),
    };
  }

  /** Timers that were set. */
  #newTimers({ nodes = {} }: Delta): Sent[] {
    return Object.entries(nodes).flatMap(([nid, node]) => {
      const before = this.#nodes.get(nid)?.timers ?? {};
      return Object.entries(node?.timers ?? {})
        .filter(([name, { generation }]) => before[name]?.generation !== generation)
        .map(([name, { dueMs }]) => ({ ...noSent, kind: 'timer', node: nid, name, due_at: isoOf(dueMs) }));
    });
  }

  #change(nid: string, to: NonNullable<Delta['nodes']>[string] | undefined): NodeChange {
    const from = this.#nodes.get(nid)?.phase ?? null;
    if (to === null || to === undefined) this.#nodes.delete(nid);
    else this.#nodes.set(nid, to);
    const step = this.#flow.byPosition.get(to?.at ?? nid.slice(0, nid.lastIndexOf('-')));
    return {
      id: nid,
      path: step?.path ?? '',
      verb: step?.verb ?? null,
      from,
      to: to?.phase ?? null,
      attempt: to?.attempt ?? null,
    };
  }
}

function shortened(values: JsonObject): Record<string, Json> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, shorten(value)]));
}

function shorten(value: Json): Json {
  return sizeOf(value, maxValueChars) <= maxValueChars ? value : `… (${JSON.stringify(value).length} characters)`;
}

function statusIn({ isPaused, ending }: Delta): EntryView['changes']['status'] {
  if (ending !== undefined && ending !== null) return ending.kind;
  if (isPaused === undefined) return null;
  return isPaused ? 'paused' : 'resumed';
}

const noSent: Omit<Sent, 'kind'> = { node: null, name: null, attempt: null, due_at: null, execution: null };

function sentOf(out: JsonObject): Sent[] {
  const text = (name: string): string | null => {
    const value = memberOf(out, name);
    return typeof value === 'string' ? value : null;
  };
  const attempt = typeof out['attempt'] === 'number' ? out['attempt'] : null;
  const base = { ...noSent, node: text('node'), attempt };
  switch (text('kind')) {
    case 'task':
      return [{ ...base, kind: 'task', name: text('name') }];
    case 'call':
      return [{ ...base, kind: 'launch', name: text('flow'), execution: text('execution') }];
    case 'signal':
      return [{ ...base, kind: 'signal', name: text('name'), execution: text('to') }];
    case 'stop':
      return [{ ...base, kind: 'stop' }];
    case null:
    default:
      return [];
  }
}
