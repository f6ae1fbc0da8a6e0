/**
 * An operation on the executions of a filter, a page at a time. Each execution has its own outcome, and its own entry in its history.
 *
 * `retry` and `skip` are sent to every incident of an execution. An execution without one is refused.
 */
import type { Delivered } from '../../../contract/flow-messages.ts';
import { fetchExecutions } from '../../../flows/executions/load.ts';
import { memoryOf } from '../../../flows/executions/memory.ts';
import { searchHeads } from '../../../flows/executions/search-heads.ts';
import type { CallAnswer } from '../../../http/client.ts';
import type { Input } from '../../../http/endpoint.ts';
import type { ApiContext } from '../../context.ts';
import { deliver, type Letter, messageIdOf } from '../deliver.ts';
import { filterOf } from '../filter.ts';
import { requireSmall } from '../value-size.ts';
import type { operateEndpoints } from './endpoints.ts';

type Endpoint = (typeof operateEndpoints)['POST /api/executions/operate'];
type Answer = CallAnswer<Endpoint>;
type Body = Input<Endpoint>['body'];

/** Failures that an answer lists. */
const maxFailures = 100;
/** Executions whose states are read at once to find their incidents. */
const readAtOnce = 50;

export async function operateMany({ body, caller, request }: Input<Endpoint>, ctx: ApiContext): Promise<Answer> {
  const { filter, limit, cursor, action } = body;
  const { heads, next } = await searchHeads(ctx.db, { ...filterOf({ ...filter, cursor }, 'body'), limit });
  const ids = heads.map(({ id }) => id);
  const answer: Answer = { matched: ids.length, done: 0, accepted: 0, refused: 0, failures: [], next };
  if (body.dry_run || ids.length === 0) return answer;
  const key = messageIdOf(request);
  const letters = await lettersFor(ctx, ids, action, key);
  const delivered = letters.length === 0 ? [] : await deliver(ctx, caller, letters);
  count(answer, ids, delivered);
  return answer;
}

async function lettersFor(
  ctx: ApiContext,
  ids: readonly string[],
  action: Body['action'],
  key: string | undefined,
): Promise<Letter[]> {
  const idOf = (what: string): string | undefined => (key === undefined ? undefined : `${key}/${what}`);
  switch (action) {
    case 'retry':
    case 'skip':
      return (await listIncidents(ctx, ids)).map(({ execution, nid, attempt }) => ({
        execution,
        id: idOf(`${nid}/${attempt}`),
        body: {
          point: 'operate',
          operation: action === 'retry' ? { action, nid } : { action, nid, result: null },
        },
      }));
    case 'cancel':
    case 'kill':
      return ids.map((execution) => ({
        execution,
        id: idOf(action),
        body: { point: 'operate', operation: { action, nid: null } },
      }));
    case 'pause':
    case 'resume':
      return ids.map((execution) => ({
        execution,
        id: idOf(action),
        body: { point: 'operate', operation: { action } },
      }));
    default: {
      const { name, payload } = action.signal;
      const body = { point: 'signal', name, payload: requireSmall(payload, 'body.action.signal.payload') } as const;
      return ids.map((execution) => ({ execution, id: idOf('signal'), body }));
    }
  }
}

interface Incident {
  readonly execution: string;
  readonly nid: string;
  readonly attempt: number;
}

async function listIncidents(ctx: ApiContext, ids: readonly string[]): Promise<Incident[]> {
  const incidents: Incident[] = [];
  for (let i = 0; i < ids.length; i += readAtOnce) {
    for (const execution of await fetchExecutions(ctx, ids.slice(i, i + readAtOnce))) {
      for (const [nid, { phase, attempt }] of Object.entries(memoryOf(execution).state.nodes))
        if (phase === 'incident') incidents.push({ execution: execution.id, nid, attempt });
    }
  }
  return incidents;
}

/** An execution with several messages is refused if one of them is, and accepted if one is only stored. */
function count(answer: Answer, ids: readonly string[], delivered: readonly Delivered[]): void {
  const byExecution = new Map<string, Delivered[]>();
  for (const each of delivered) byExecution.set(each.execution, [...(byExecution.get(each.execution) ?? []), each]);
  for (const id of ids) {
    const own = byExecution.get(id) ?? [];
    const failure = own.find(({ outcome }) => outcome === 'refused' || outcome === 'gone');
    if (own.length === 0) addFailure(answer, id, { code: 'no_incident', detail: 'the execution has no incident' });
    else if (failure !== undefined) addFailure(answer, id, failure);
    else if (own.some(({ outcome }) => outcome === 'accepted')) answer.accepted += 1;
    else answer.done += 1;
  }
}

function addFailure(answer: Answer, id: string, { code, detail }: Pick<Delivered, 'code' | 'detail'>): void {
  answer.refused += 1;
  if (answer.failures.length < maxFailures)
    answer.failures.push({ id, code: code ?? 'gone', detail: detail ?? 'the execution is gone' });
}
