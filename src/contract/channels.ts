/**
 * Every wake-up between processes: its kind, and what it carries.
 *
 * Wake-ups are hints. Losing one costs time only, because a sweep finds what it announced. A receiver is therefore told
 * "something may have changed" (no payload) whenever a payload is missing: it was too long to send, the connection was lost
 * meanwhile, or another release wrote it in another form.
 */
import { z } from 'zod';
import { heldRun, invalidation } from './wire.ts';

const nothing = z.undefined();

/** Said by a tenant's engine after a commit, about that tenant. */
const hintPayloads = {
  /** Runs became ready, in these lanes. */
  ready: z.array(z.string()).readonly(),
  /** Triggers of these jobs changed. */
  triggers: z.array(z.string()).readonly(),
  /** Tokens may be released: a job was unpaused, a pool has grown. */
  tokens: nothing,
  /** Retries were scheduled. */
  retries: nothing,
  /** The event log has grown. */
  events: nothing,
  /** Output of runs was kept. */
  logs: nothing,
  /** Events were published. */
  bus: nothing,
  /** Messages wait for the conductors with these ids, or for any. */
  flows: z.array(z.string()).readonly(),
  /** A running run is to be killed. */
  cancel: heldRun,
  /** Workers may have cached an older state of this. */
  invalidate: invalidation,
} as const;

/** Said by the shell. */
const shellPayloads = {
  /** About a tenant: its version, name or state changed, or may have. True: its database certainly did. */
  tenant: z.boolean(),
  /** About a host: its orders changed. */
  orders: nothing,
  /** Hosts reported on their orders. */
  host_reports: nothing,
  /** Somebody sent the launcher a message. */
  messages: nothing,
  /** Keys or sessions were revoked. */
  revoked: nothing,
} as const;

export const channels = { ...hintPayloads, ...shellPayloads };

export type HintKind = keyof typeof hintPayloads;
export type WakeKind = keyof typeof channels;
export type WakePayload<K extends WakeKind> = z.infer<(typeof channels)[K]>;

/** A tenant's wake-ups, as its engine sends and hears them. */
export interface Hints {
  /** Call it after the commit that it announces. */
  send<K extends HintKind>(kind: K, payload?: WakePayload<K>): void;
  /** Returns how to stop listening. */
  on(kind: HintKind, listener: () => void): () => void;
}

/** What a wake-up is about if it concerns no single tenant or host. */
export const everyone = '*';
