/**
 * The event bus within the engine contract: gateways publish through it, and couriers deliver events by it. Outbound HTTP
 * belongs to the shell, so that no engine can bypass its checks.
 */
import type { Service } from '../kernel/service.ts';
import type { EngineContext } from './context.ts';
import type { Caller } from './roles.ts';

/** One request to publish, as received. */
export interface Post {
  readonly caller: Caller;
  readonly topic: string;
  readonly body: Uint8Array;
  /** The `Idempotency-Key`. */
  readonly key: string | null;
}

export type Posted = Accepted | { readonly refused: Refusal };

/** The events of a request are committed. An event's id is its number in the log. */
interface Accepted {
  /** The ids of the first and the last event of the request. */
  readonly first: string;
  readonly last: string;
  /** The request had an array of events. */
  readonly isBulk: boolean;
  /** An earlier request had published all of them. */
  readonly isRepeated: boolean;
}

/** The answer to a request that is refused. An engine of a later release may have codes that this shell does not know. */
export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly faults?: readonly { readonly path: string; readonly message: string }[];
}

export interface OutboundRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly connectMs: number;
  readonly totalMs: number;
}

export type OutboundAnswer =
  | { readonly status: number; readonly retryAfterMs: number | null; readonly excerpt: string; readonly ms: number }
  | {
      readonly code: 'refused_address' | 'dns' | 'connect' | 'tls' | 'timeout' | 'reset';
      readonly detail: string;
      readonly ms: number;
    };

export interface Outbound {
  post(request: OutboundRequest, signal: AbortSignal): Promise<OutboundAnswer>;
}

export interface CourierContext extends EngineContext {
  /**
   * This courier, the number of other couriers, and those whose processes are known to be gone: what they hold may be taken back at
   * once. A shell of an older build does not know the last ones.
   */
  readonly courier: { readonly id: string; readonly others: () => number; readonly lost?: () => readonly string[] };
  readonly outbound: Outbound;
}

/** Delivers a tenant's batches within one courier. */
export interface Courier extends Service {
  wake(): void;
  /** The time of its next work; undefined: nothing is due. */
  nextDueAt(): number | undefined;
  isIdle(): boolean;
  probe(): Promise<void>;
  /** The state of the tenant's bus, for metrics. Missing in an engine that does not report it. */
  standing?(mostSubscribers: number): Promise<BusStanding>;
}

export interface BusStanding {
  /** The number of errands by queue and state. */
  readonly errands: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** The subscribers with the most lag first. */
  readonly subscribers: readonly SubscriberStanding[];
}

export interface SubscriberStanding {
  readonly name: string;
  readonly queued: number;
  /** The age of the oldest event that waits; null: none waits. */
  readonly oldestMs: number | null;
  readonly health: number;
}

export interface BusEngine {
  /** Publishes many requests in one commit. Returns one outcome for each. */
  publish(ctx: EngineContext, posts: readonly Post[]): Promise<readonly Posted[]>;
  courier(ctx: CourierContext): Courier;
}
