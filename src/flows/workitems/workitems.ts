/**
 * Work items: tasks that people answer.
 *
 * 1. A claim lasts for an hour, and claiming again renews it. It keeps others from claiming and, unless they are operators, from
 *    answering.
 * 2. An answer is checked against the form of the task before it is sent. The first answer counts.
 * 3. An item whose step has ended is `gone`, whatever one wants to do with it.
 */
import type { EngineContext } from '../../contract/context.ts';
import { type Fault, MillraceError } from '../../errors.ts';
import { type Db, onPool } from '../../kernel/sql.ts';
import type { Json } from '../json.ts';
import { answeredAlready, type AnswerReceipt, sendAnswer } from './answers.ts';
import { checkAnswer } from './form.ts';
import {
  findWorkitem,
  listOpenWorkitems,
  removeClaim,
  setClaim,
  type Workitem,
  type WorkitemFilter,
  type WorkitemPage,
} from './queries.ts';

export type { Workitem, WorkitemFilter } from './queries.ts';
export type { AnswerReceipt } from './answers.ts';

/** Who acts on a work item. */
export interface Person {
  /** As in events and the audit; null: somebody with a link. */
  readonly actor: string | null;
  /** May answer what others have claimed. */
  readonly isOperator: boolean;
}

const claimMs = 3_600_000;

/** Those that wait for an answer, the oldest first. */
export function listWorkitems(ctx: EngineContext, filter: WorkitemFilter): Promise<WorkitemPage> {
  return listOpenWorkitems(onPool(ctx.pool), filter, nowIn(ctx));
}

export function readWorkitem(ctx: EngineContext, id: string): Promise<Workitem> {
  return requireOpen(onPool(ctx.pool), id, nowIn(ctx));
}

/** Claims an item, by default for an hour, or renews the claim. Returns the item as it is then. */
export async function claimWorkitem(
  ctx: EngineContext,
  id: string,
  actor: string,
  forMs: number = claimMs,
): Promise<Workitem> {
  const db = onPool(ctx.pool);
  const at = nowIn(ctx);
  const isClaimed = await setClaim(db, id, { actor, at, until: new Date(at.getTime() + forMs) });
  const item = await requireOpen(db, id, at);
  if (!isClaimed) throw claimedByOther(item);
  return item;
}

export async function releaseWorkitem(ctx: EngineContext, id: string, actor: string): Promise<Workitem> {
  const db = onPool(ctx.pool);
  const isReleased = await removeClaim(db, id, actor);
  const item = await requireOpen(db, id, nowIn(ctx));
  if (!isReleased && item.claimedBy !== null) throw claimedByOther(item);
  return item;
}

/** Sends the answer of a person to the execution. Faults have paths such as `body.approved`. */
export async function answerWorkitem(
  ctx: EngineContext,
  id: string,
  body: Json,
  person: Person,
): Promise<AnswerReceipt> {
  const item = await requireOpen(onPool(ctx.pool), id, nowIn(ctx));
  return answerItem(ctx, item, body, person);
}

export function answerItem(ctx: EngineContext, item: Workitem, body: Json, person: Person): Promise<AnswerReceipt> {
  if (item.claimedBy !== null && item.claimedBy !== person.actor && !person.isOperator) throw claimedByOther(item);
  const checked = checkAnswer(item.form, body);
  if (!checked.ok) throw wrongAnswer(checked.faults);
  return sendAnswer(ctx, item, { result: checked.answer, actor: person.actor });
}

async function requireOpen(db: Db, id: string, at: Date): Promise<Workitem> {
  const item = await findWorkitem(db, id, at);
  if (item === undefined) throw new MillraceError('not_found', `work item not found: ${id}`);
  if (item.endedAt !== null) throw answeredAlready();
  return item;
}

function claimedByOther({ claimedBy, claimedUntil }: Workitem): MillraceError {
  const until = claimedUntil === null ? '' : ` until ${claimedUntil.toISOString()}`;
  return new MillraceError(
    'conflict',
    `${claimedBy ?? 'somebody'} has claimed it${until}; ask for its release, or wait`,
  );
}

function wrongAnswer(faults: readonly Fault[]): MillraceError {
  const inBody = faults.map(({ path, message }) => ({ path: path === '' ? 'body' : joinPath(path), message }));
  const detail = inBody.map(({ path, message }) => `${path}: ${message}`).join('; ');
  return new MillraceError('bad_request', detail, { faults: inBody });
}

function joinPath(path: string): string {
  return path.startsWith('[') ? `body${path}` : `body.${path}`;
}

function nowIn(ctx: EngineContext): Date {
  return new Date(ctx.time.now());
}
