/**
 * Answers that people and receivers of callbacks send to a task. The id of an answer names the attempt, so a second one has no
 * effect.
 */
import type { EngineContext } from '../../contract/context.ts';
import type { FlowMessage } from '../../contract/flow-messages.ts';
import { MillraceError } from '../../errors.ts';
import { onPool, sql } from '../../kernel/sql.ts';
import type { Json } from '../json.ts';

/** `accepted`: it is stored, and takes effect when a conductor takes it; `detail` says so. */
export interface AnswerReceipt {
  readonly outcome: 'committed' | 'accepted';
  readonly detail?: string;
}

/** An attempt of a node. */
export interface Attempt {
  readonly execution: string;
  readonly nid: string;
  readonly attempt: number;
}

/** How long a conductor may take to commit an answer. Then it is stored for it. */
const withinMs = 5_000;

/** Sends the answer. Throws `gone` if the task does not wait for one any more. */
export async function sendAnswer(
  ctx: EngineContext,
  { execution, nid, attempt }: Attempt,
  { result, actor }: { readonly result: Json; readonly actor: string | null },
): Promise<AnswerReceipt> {
  const body = { point: 'answer', nid, attempt, outcome: { kind: 'done', result } };
  const id = `answer/${nid}/${attempt}`;
  const message: FlowMessage = { id, execution, bornMs: ctx.time.now(), point: 'answer', actor, body };
  if (ctx.conductors === undefined) return store(ctx, message);
  const [delivered] = await ctx.conductors.deliver(ctx.tenant.id, [message], withinMs);
  if (delivered?.outcome === 'committed') return { outcome: 'committed' };
  if (delivered?.outcome === 'accepted') return accepted(delivered.detail);
  throw answeredAlready();
}

/** Without conductors, in this process or elsewhere: the message waits for the first one. */
async function store(
  ctx: EngineContext,
  { id, execution, bornMs, point, actor, body }: FlowMessage,
): Promise<AnswerReceipt> {
  const stored = await onPool(ctx.pool).exec(sql`
    insert into inbox (id, execution_id, at, body)
    select ${id}, e.id, ${new Date(bornMs)}, ${JSON.stringify({ point, bornMs, actor, body })}::json
      from execution e
     where e.id = ${execution} and e.status < 3
    on conflict do nothing`);
  if (stored === 0) throw answeredAlready();
  return accepted(undefined);
}

function accepted(detail: string | undefined): AnswerReceipt {
  return { outcome: 'accepted', detail: detail ?? 'the answer is stored, and takes effect when a conductor takes it' };
}

export function answeredAlready(): MillraceError {
  return new MillraceError('gone', 'the task was answered already, or its step has ended otherwise');
}
