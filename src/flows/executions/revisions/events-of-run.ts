/**
 * Events about executions, for the topic `millrace_executions`. They hold names and ids, and no values of fields.
 *
 * The actor is the sender of the message that caused the event. Events of which no person is the cause have none.
 */
import type { FlowMessage } from '../../../contract/flow-messages.ts';
import type { JsonObject } from '../../json.ts';
import type { Work } from './effects-of-run.ts';
import { type Memory, statusNumbers, statusOf } from '../memory.ts';
import type { Attempt, ExecutionEvent } from './run-details.ts';

interface Step {
  readonly message: FlowMessage;
  readonly before: Memory;
  readonly after: Memory;
  readonly work: Work;
  readonly endedItems: readonly Attempt[];
}

export function eventsOfRun({ message, before, after, work, endedItems }: Step): ExecutionEvent[] {
  const events: ExecutionEvent[] = [];
  const add = (type: string, actor: string | null, more: JsonObject = {}): void => {
    events.push({ type, actor, body: { flow: after.flow.name, ...more } });
  };
  const { actor, point } = message;
  if (before.state.counters.visits === 0 && after.state.counters.visits > 0)
    add('execution.started', actor, { version: after.flow.version, key: after.key });
  for (const item of work.items) add('workitem.created', null, { workitem: item.id, node: item.nid, name: item.name });
  const stopped = new Set(work.out.filter(({ kind }) => kind === 'stop').map(({ node }) => node));
  for (const { nid } of endedItems) if (!stopped.has(nid)) add('workitem.answered', actor, { node: nid });
  const [was, is] = [statusOf(before), statusOf(after)];
  if (before.state.isPaused && !after.state.isPaused) add('execution.resumed', actor);
  if (!before.state.isPaused && after.state.isPaused) add('execution.paused', actor);
  if (after.tally.incidents > before.tally.incidents) add('execution.incident', null, incidentOf(before, after));
  if (is === was) return events;
  const { ending } = after.state;
  if (ending?.kind === 'failed') add('execution.failed', null, { code: ending.error.code, node: ending.error.node });
  else if (ending?.kind === 'cancelled') add('execution.cancelled', point === 'operate' ? actor : null);
  else if (is === statusNumbers.done) add('execution.done', null);
  return events;
}

function incidentOf(before: Memory, after: Memory): JsonObject {
  const found = Object.entries(after.state.nodes).find(
    ([nid, { phase }]) => phase === 'incident' && before.state.nodes[nid]?.phase !== 'incident',
  );
  if (found === undefined) return {};
  const [nid, { error }] = found;
  return { node: nid, code: error?.code ?? null };
}
