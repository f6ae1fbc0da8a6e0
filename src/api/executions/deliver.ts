/**
 * Sends messages to executions, and turns their outcomes into answers.
 *
 * 1. An answer of 200 or 201 follows the commit in which the message has had its effect.
 * 2. A message that no conductor takes in time is stored and answered with 202. The detail says what it waits for.
 * 3. The id of a message of a client is its `Idempotency-Key`, behind a prefix that no other message has.
 */
import type { Delivered, FlowMessage } from '../../contract/flow-messages.ts';
import type { Caller } from '../../contract/roles.ts';
import { MillraceError } from '../../errors.ts';
import type { Operation } from '../../flows/interpreter/state.ts';
import type { Json } from '../../flows/json.ts';
import { newId } from '../../kernel/id.ts';
import { type ApiContext, author, badRequest } from '../context.ts';
import { schedulerAway } from '../explain/fleet.ts';
import { WaitingRequests } from '../live/waiting.ts';
import { restrictTask } from '../tasks/task-scope.ts';

/** How long a request waits for the commit. */
const withinMs = 10_000;
/** Requests of one key that wait for commits. */
const maxWaiting = 1_000;
const waiting = new WaitingRequests(maxWaiting);

/** What clients send to an execution that exists. */
export type ClientBody =
  | { readonly point: 'signal'; readonly name: string; readonly payload: Json }
  | { readonly point: 'operate'; readonly operation: Operation }
  | { readonly point: 'launch' };

export interface Letter {
  readonly execution: string;
  readonly body: ClientBody;
  /** Undefined: a new id. */
  readonly id?: string | undefined;
}

/** Sends messages, and returns one outcome for each, in order. Throws if the caller is a task whose run has ended. */
export async function deliver(
  ctx: ApiContext,
  caller: Caller | undefined,
  letters: readonly Letter[],
): Promise<Delivered[]> {
  const { conductors } = ctx;
  await restrictTask(ctx, caller, {});
  if (conductors === undefined) throw new MillraceError('not_supported', 'this process cannot reach conductors');
  const { actor, at } = author(ctx, caller);
  const messages = letters.map(
    ({ execution, body, id = newId() }): FlowMessage => ({
      id,
      execution,
      bornMs: at.getTime(),
      point: body.point,
      actor,
      body,
    }),
  );
  return waiting.during(caller, () => conductors.deliver(ctx.tenant.id, messages, withinMs));
}

const maxKeyChars = 200;

/** The message id that an `Idempotency-Key` stands for; undefined: the request has none. */
export function messageIdOf({ headers }: Pick<Request, 'headers'>): string | undefined {
  const key = headers.get('idempotency-key');
  if (key === null) return undefined;
  if (key !== '' && key.length <= maxKeyChars) return `${clientPrefix}${key}`;
  throw badRequest('Idempotency-Key', `must have 1 to ${maxKeyChars} characters`);
}

const clientPrefix = 'key:';

/** The id of a message as its sender knows it. */
export function shownMessageId(id: string): string {
  return id.startsWith(clientPrefix) ? id.slice(clientPrefix.length) : id;
}

/** The answer to a request with one message. */
export async function answerOf(ctx: ApiContext, delivered: Delivered | undefined): Promise<Response> {
  if (delivered === undefined) throw new MillraceError('internal', 'the message has no outcome');
  const { outcome } = delivered;
  if (outcome === 'accepted')
    return Response.json({ outcome, detail: await whyWaiting(ctx, delivered) }, { status: 202 });
  if (outcome === 'gone') throw new MillraceError('not_found', `execution not found: ${delivered.execution}`);
  if (outcome === 'refused') throw refusalOf(delivered);
  return Response.json({ outcome });
}

const refusals: Readonly<Record<string, MillraceError['code']>> = {
  no_such_flow: 'not_found',
  no_such_version: 'not_found',
  no_such_node: 'not_found',
  no_such_step: 'not_found',
  bad_request: 'bad_request',
  bad_message: 'bad_request',
  bad_document: 'bad_document',
  too_large: 'too_large',
  too_many_signals: 'too_many',
  // a fault of the interpreter itself
  internal: 'internal',
};

export function refusalOf({
  code = '',
  detail = 'it has no effect',
}: Pick<Delivered, 'code' | 'detail'>): MillraceError {
  return new MillraceError(refusals[code] ?? 'conflict', detail);
}

/** Why a message is only stored. */
export async function whyWaiting(ctx: ApiContext, { detail }: Pick<Delivered, 'detail'>): Promise<string> {
  const living = await ctx.directory.conductors?.();
  if (living?.length === 0)
    return 'no conductor is running; the message is stored and takes effect when one starts (millrace conductor, or millrace up)';
  if ((await schedulerAway(ctx)) !== undefined)
    return 'the tenant does not run; the message is stored and takes effect when it runs again (`millrace why` says what keeps it)';
  return (
    detail ?? `no conductor took the message within ${withinMs / 1_000} s; it is stored and takes effect when one does`
  );
}
