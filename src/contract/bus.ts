/**
 * The part of the engine contract that is the event bus: gateways publish through it, couriers deliver by it. Outbound
 * HTTP belongs to the shell, so that no engine gets around its guard.
 */
import type { Service } from '../kernel/service.ts';
import type { EngineContext } from './context.ts';
import type { Caller } from './roles.ts';

/** One request to publish, as it came. */
interface Post {
  readonly caller: Caller;
  readonly topic: string;
  readonly body: Uint8Array;
  /** The `Idempotency-Key`. */
  readonly key: string | null;
}

type Posted =
  | { readonly ids: readonly string[]; readonly isRepeated: boolean }
  | { readonly refused: { readonly code: string; readonly detail: string } };

interface OutboundRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly connectMs: number;
  readonly totalMs: number;
}

type OutboundAnswer =
  | { readonly status: number; readonly retryAfterMs: number | null; readonly excerpt: string; readonly ms: number }
  | {
      readonly code: 'refused_address' | 'dns' | 'connect' | 'tls' | 'timeout' | 'reset';
      readonly detail: string;
      readonly ms: number;
    };

interface Outbound {
  post(request: OutboundRequest, signal: AbortSignal): Promise<OutboundAnswer>;
}

interface CourierContext extends EngineContext {
  /** This courier, and how many others there are. */
  readonly courier: { readonly id: string; readonly others: () => number };
  readonly outbound: Outbound;
}

/** What delivers a tenant's batches within one courier. */
interface Courier extends Service {
  wake(): void;
  /** When it has something to do next; undefined: nothing is due. */
  nextDueAt(): number | undefined;
  isIdle(): boolean;
  probe(): Promise<void>;
}

export interface BusEngine {
  /** Takes many requests in one commit; answers one outcome each. */
  publish(ctx: EngineContext, posts: readonly Post[]): Promise<readonly Posted[]>;
  courier(ctx: CourierContext): Courier;
}
