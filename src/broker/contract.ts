/**
 * The broker carries hints, and offers of runs, between engines, hosts, gateways and workers.
 *
 * Every driver keeps these rules (`test/conformance/broker.ts`):
 * 1. A message names runs; the row in `live` stays the queue. The broker may lose, double, delay or reorder any message: that
 *    only costs time.
 * 2. Hints are sent after the commit that they announce. Listeners of the same process are called at once. After a lost
 *    connection every listener is called without a payload, because it may have missed something.
 * 3. `room` is the back-pressure. It is 0 while the lane has no consumer, and while the broker is blocked or unreachable. A
 *    driver without queues always returns 0; workers then claim over HTTP.
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
  /** Listens to a kind of hint of all tenants. `tenantId` is undefined if hints about any tenant may have been lost. */
  onAny<K extends HintKind>(
    kind: K,
    listener: (tenantId: string | undefined, payload: WakePayload<K> | undefined) => void,
  ): () => void;
  /**
   * The maximum number of the tenant's runs in the lane that are published and still ready. The publisher subtracts those
   * that it has published already, because only it knows which are still ready.
   */
  room(tenantId: string, lane: string): number;
  publish(tenantId: string, lane: string, offers: readonly Offer[]): Promise<void>;
}
