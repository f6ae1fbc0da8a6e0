/**
 * The broker carries hints, and offers of runs, between engines, hosts, gateways and workers.
 *
 * Every driver keeps these rules (`test/conformance/broker.ts`):
 * 1. A message names runs; the row in `live` stays the queue. The broker may lose, double, delay or reorder anything: that
 *    costs time, and nothing else.
 * 2. Hints are sent after the commit that they announce. Listeners of the same process are called at once. After a lost
 *    connection every listener is called without a payload, because it may have missed something.
 * 3. `room` is the back-pressure. It is 0 while the lane has no consumer, or while the broker is blocked or away. A driver that has
 *    no queues of its own always answers 0; workers then claim over HTTP.
 * 4. `publish` resolves once the broker has confirmed and routed the message. A rejection needs no undo.
 *
 * A driver that keeps connections of its own exports its `Service` beside the broker. Workers consume offers, and gateways
 * consume results, with the driver's own client: neither passes through an engine.
 */
import type { Hints, HintKind, WakePayload } from '../contract/channels.ts';
import type { Offer } from '../contract/engine.ts';

export interface Broker {
  /** A tenant's hints, for its engine. */
  hintsOf(tenantId: string): Hints;
  /** Hears a kind of hint of all tenants. `tenantId` is undefined when something may have been missed about any. */
  onAny<K extends HintKind>(
    kind: K,
    listener: (tenantId: string | undefined, payload: WakePayload<K> | undefined) => void,
  ): () => void;
  /**
   * How many runs of the tenant may be outstanding in the lane: published and still ready. The publisher, which alone can see
   * what is still ready, subtracts those that it has published.
   */
  room(tenantId: string, lane: string): number;
  publish(tenantId: string, lane: string, offers: readonly Offer[]): Promise<void>;
}
