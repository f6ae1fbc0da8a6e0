/**
 * Explains why a delivery has not happened, from the present tables: the position and lag of each strand, its errand, the
 * receiver's last answer, and whether a courier is alive. The most important finding comes first.
 */
import type { CallAnswer } from '../../../http/client.ts';
import type { Caller } from '../../../contract/roles.ts';
import { MillraceError } from '../../../errors.ts';
import { findById, type Subscriber } from '../../../bus/subscribers/queries.ts';
import type { ApiContext, ApiHandlers } from '../../context.ts';
import { type ReaderRow, readReaders } from '../subscribers/queries.ts';
import { isClient, namedSubscriber, ownSubscriber } from '../whose.ts';
import type { deliveryExplainEndpoints } from './endpoints.ts';
import { errandFinding, type Finding, finding, formatLag } from './findings.ts';
import { explainReplayed } from './replayed.ts';
import {
  countUnfanned,
  findByDigits,
  findDropped,
  findGapOf,
  findLetterOf,
  lastDelivery,
  lastStateChange,
} from './queries.ts';

type Endpoints = typeof deliveryExplainEndpoints;
type Explanation = CallAnswer<Endpoints['GET /api/explain/delivery/{id}']>;
type Findings = { readonly state: Explanation['state']; readonly findings: readonly Finding[] };

const batchPattern = /^([0-9a-f]{8})_(?:(\d+)(?:r\d+)?|r\d+)_(\d+)_(\d+)$/;
/** A courier without a beat for this long counts as gone. */
const courierLifeMs = 15_000;

async function explain(ctx: ApiContext, caller: Caller | undefined, id: string): Promise<Explanation> {
  const batch = batchPattern.exec(id);
  const subscriber = batch === null ? await namedSubscriber(ctx, id) : await subscriberOfBatch(ctx, id, batch[1] ?? '');
  if (isClient(caller) && (await ownSubscriber(ctx, caller)).id !== subscriber.id) {
    throw new MillraceError('not_found', `subscriber not found: ${id}`);
  }
  const found = batch === null ? undefined : await explainBatch(ctx, subscriber, id, batch);
  const { state, findings } = found ?? (await explainSubscriber(ctx, subscriber));
  const what = batch === null ? subscriber.name : `batch ${id} for ${subscriber.name}`;
  const [first, second] = findings;
  return {
    subject: { kind: batch === null ? 'subscriber' : 'batch', id, name: subscriber.name, subscriber: subscriber.id },
    state,
    summary: `${what}: ${[first, second].flatMap((f) => (f === undefined ? [] : [f.message])).join('; ')}.`,
    reasons: findings.map(({ code, message, data }) => ({ code, message, data })),
    next: findings.find(({ next }) => next !== undefined)?.next ?? null,
  };
}

async function subscriberOfBatch(ctx: ApiContext, id: string, digits: string): Promise<Subscriber> {
  const [only, ...others] = await findByDigits(ctx.db, digits);
  const found = only && others.length === 0 ? await findById(ctx.db, only.id) : undefined;
  if (found === undefined) throw new MillraceError('not_found', `no subscriber has a batch ${id}`);
  return found;
}

/** The findings about one batch; undefined: it waits for its turn, as all batches of its subscriber. */
async function explainBatch(
  ctx: ApiContext,
  subscriber: Subscriber,
  id: string,
  [, , labelled, first, last]: RegExpExecArray,
): Promise<Findings | undefined> {
  const letter = await findLetterOf(ctx.db, subscriber.id, id);
  if (letter !== undefined) {
    const words = letter.hasBody
      ? finding(
          'dead_letter',
          `it was given up after ${letter.attempts} attempts (${letter.code})`,
          { ...letter },
          `deliver it again: millrace deadletters replay ${letter.id}`,
        )
      : finding('dropped', gapMessage, { ...letter });
    return { state: 'given_up', findings: [words] };
  }
  const readers = await readReaders(ctx.db, subscriber.id);
  const isUnlabelled = labelled === undefined;
  if (isUnlabelled) {
    const found = await explainReplayed(ctx, subscriber, { id, first: Number(first), last: Number(last) });
    if (found !== undefined) return found;
  }
  // the only strand is not named beside the terms
  const strand = isUnlabelled && readers.length === 1 ? '0' : labelled;
  if (strand === undefined) return undefined;
  const gap = await findGapOf(ctx.db, { subscriber: subscriber.id, strand, last: Number(last) });
  if (gap !== undefined) return { state: 'given_up', findings: [finding('dropped', gapMessage, { ...gap })] };
  const reader = readers.find((one) => String(one.strand) === strand);
  if (reader !== undefined && reader.pos >= Number(last)) {
    const delivery = await lastDelivery(ctx.db, subscriber.id, id);
    const data = { position: String(reader.pos), delivered_at: delivery?.at.toISOString() ?? null };
    return { state: 'delivered', findings: [finding('delivered', 'it was delivered', data)] };
  }
  return undefined;
}

const gapMessage = 'the log of the bus was over its limit, and its events were dropped before they were delivered';

/** Events that were dropped are named last: they do not explain what waits now. */
async function explainSubscriber(ctx: ApiContext, subscriber: Subscriber): Promise<Findings> {
  const [{ state, findings }, dropped] = await Promise.all([
    explainWaiting(ctx, subscriber),
    findDropped(ctx.db, subscriber.id),
  ]);
  if (dropped === null) return { state, findings };
  const { events, first, last } = dropped;
  const message = `${events} events between ${first} and ${last} were dropped: the log of the bus was over its limit`;
  return { state, findings: [...findings, finding('dropped', message, { ...dropped })] };
}

async function explainWaiting(ctx: ApiContext, subscriber: Subscriber): Promise<Findings> {
  const readers = await readReaders(ctx.db, subscriber.id);
  const waiting = readers.filter(({ queued }) => queued > 0);
  const lag = lagOf(waiting, ctx.time.now());
  if (subscriber.state !== 'active')
    return { state: 'stopped', findings: [await stopFinding(ctx, subscriber), ...lag] };
  const courier = await courierFinding(ctx);
  if (waiting.length === 0) return explainNothing(ctx, courier);
  if (subscriber.kind === 'pull') return { state: 'waiting', findings: [...pullFindings(ctx, waiting), ...lag] };
  const answer = await answerFinding(ctx, subscriber);
  const errands = waiting.map((reader) => errandFinding(reader, ctx.time.now()));
  const isRetrying = waiting.some(({ attempts }) => attempts > 0);
  const isHeld = waiting.some(({ errand }) => errand === 'p');
  const findings = [...courier, ...(isRetrying ? answer : []), ...errands, ...lag];
  return { state: isRetrying ? 'retrying' : isHeld ? 'delivering' : 'waiting', findings };
}

async function explainNothing(ctx: ApiContext, courier: readonly Finding[]): Promise<Findings> {
  const uncounted = await countUnfanned(ctx.db);
  if (uncounted === 0) return { state: 'idle', findings: [finding('nothing_queued', 'nothing is queued')] };
  const message = `${uncounted} accepted events are not counted for their readers yet`;
  return { state: 'waiting', findings: [...courier, finding('not_counted_yet', message, { events: uncounted })] };
}

async function stopFinding(ctx: ApiContext, subscriber: Subscriber): Promise<Finding> {
  const change = await lastStateChange(ctx.db, subscriber);
  const since = change === undefined ? '' : ` since ${change.at.toISOString()} by ${change.actor ?? 'Millrace'}`;
  const reason = subscriber.reason === null ? '' : ` (${subscriber.reason})`;
  const data = { reason: subscriber.reason, by: change?.actor ?? null, since: change?.at.toISOString() ?? null };
  const code = subscriber.state === 'paused' ? 'paused' : 'disabled';
  return finding(
    code,
    `it is ${code}${since}${reason}`,
    data,
    `continue: millrace subscriber resume ${subscriber.name}`,
  );
}

/** Empty if a courier is alive, or if the shell cannot tell. */
async function courierFinding(ctx: ApiContext): Promise<Finding[]> {
  const couriers = await ctx.directory.couriers?.(new Date(ctx.time.now() - courierLifeMs));
  if (couriers === undefined || couriers.length > 0) return [];
  return [finding('no_courier', 'no courier is running', {}, 'start one: millrace courier, or millrace up')];
}

/** The receiver's last answer. */
async function answerFinding(ctx: ApiContext, { id, callback, first_failed_at }: Subscriber): Promise<Finding[]> {
  const last = await lastDelivery(ctx.db, id);
  if (last === undefined) return [];
  const data = {
    at: last.at.toISOString(),
    status: last.status,
    code: last.code,
    excerpt: last.excerpt,
    failing_since: first_failed_at?.toISOString() ?? null,
  };
  const since = first_failed_at === null ? '' : `; every delivery has failed since ${first_failed_at.toISOString()}`;
  if (last.status === null) {
    return [finding('receiver_unreachable', `${callback} could not be reached: ${last.code}${since}`, data)];
  }
  return [finding('receiver_failed', `the receiver answered ${last.status}${since}`, data)];
}

function pullFindings(ctx: ApiContext, waiting: readonly ReaderRow[]): Finding[] {
  const now = ctx.time.now();
  return waiting.map(({ leased_until: until, strand, attempts }) =>
    until !== null && until.getTime() > now
      ? finding('leased', `a consumer has the batch until ${until.toISOString()}`, { strand, lease: attempts })
      : finding('waiting_for_pull', 'no consumer has fetched the batch', { strand }, 'GET /bus/subscriber/batch'),
  );
}

function lagOf(waiting: readonly ReaderRow[], now: number): Finding[] {
  const queued = waiting.reduce((sum, reader) => sum + reader.queued, 0);
  if (queued === 0) return [];
  return [formatLag(waiting, queued, now)];
}

export const deliveryExplainHandlers: ApiHandlers<Endpoints> = {
  'GET /api/explain/delivery/{id}': ({ params, caller }, ctx) => explain(ctx, caller, params.id),
};
