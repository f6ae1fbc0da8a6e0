/**
 * Explains a batch whose id names terms and no strand, such as `1a2b3c4d_r16_2_15`: a replay sends it, or the only strand of a
 * subscriber that was moved back.
 */
import type { Subscriber } from '../../../bus/subscribers/queries.ts';
import type { ApiContext } from '../../context.ts';
import { type Finding, finding } from './findings.ts';
import { findReplayOf, lastDelivery } from './queries.ts';

interface Batch {
  readonly id: string;
  readonly first: number;
  readonly last: number;
}

interface Explained {
  readonly state: 'delivered' | 'given_up' | 'retrying' | 'waiting';
  readonly findings: readonly Finding[];
}

/** Undefined: no replay has to do with it. */
export async function explainReplayed(
  ctx: ApiContext,
  subscriber: Subscriber,
  batch: Batch,
): Promise<Explained | undefined> {
  const delivery = await lastDelivery(ctx.db, subscriber.id, batch.id);
  const isAccepted = delivery?.status != null && delivery.status >= 200 && delivery.status < 300;
  if (isAccepted) {
    const data = { delivered_at: delivery.at.toISOString() };
    return { state: 'delivered', findings: [finding('delivered', 'it was delivered', data)] };
  }
  const replay = await findReplayOf(ctx.db, subscriber.id, batch);
  if (replay === undefined) return undefined;
  const { id, pos, attempts, run_at: runAt, reason } = replay;
  const data = { replay: id, position: String(pos), attempts };
  // not every success is in the delivery log
  if (pos >= batch.last)
    return { state: 'delivered', findings: [finding('delivered', `replay ${id} delivered it`, data)] };
  if (replay.state !== 'running') {
    const message = `replay ${id} was ${replay.state === 'failed' ? 'given up' : 'cancelled'} before it`;
    const next = `start another: millrace subscriber replay ${subscriber.name}`;
    return { state: 'given_up', findings: [finding('replay_ended', message, data, next)] };
  }
  const pending = { ...data, next_attempt_at: runAt?.toISOString() ?? null, reason };
  const findings = (message: string): Finding[] => [finding('replay_under_way', message, pending)];
  if (attempts === 0) return { state: 'waiting', findings: findings(`replay ${id} has come as far as ${pos}`) };
  const why = reason === null ? '' : ` (${reason})`;
  const when = runAt === null ? 'now' : `at ${runAt.toISOString()}`;
  return {
    state: 'retrying',
    findings: findings(
      `replay ${id} has failed ${attempts} times after ${pos}${why}; attempt ${attempts + 1} follows ${when}`,
    ),
  };
}
