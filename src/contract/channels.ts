/**
 * Every wake-up between processes: its kind, and its payload.
 *
 * Wake-ups are hints. Losing one costs time only, because a sweep finds the change that it announced. A wake-up without its
 * payload means "something may have changed". That happens if the payload was too long to send, the connection was lost
 * meanwhile, or another release sent it in another form.
 */
import { z } from 'zod';
import { heldRun, invalidation } from './wire.ts';

const nothing = z.undefined();

/** Sent by a tenant's engine after a commit, about that tenant. */
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
  /** Output of runs was stored. */
  logs: nothing,
  /** Events were published. */
  bus: nothing,
  /** Events were put into the outbox. A host sends it, because it holds the only connection that listens in the tenant's database. */
  outbox: nothing,
  /** Messages wait for the conductors with these ids; null: for any. */
  flows: z.array(z.string().nullable()).readonly(),
  /** A running run must be killed. */
  cancel: heldRun,
  /** Workers may have cached an older state of this object. */
  invalidate: invalidation,
} as const;

/** Sent by the shell. */
const shellPayloads = {
  /** About a tenant: its version, name or state changed, or may have. True: its database certainly changed. */
  tenant: z.boolean(),
  /** About a host: its orders changed. */
  orders: nothing,
  /** Hosts reported on their orders. */
  host_reports: nothing,
  /** The launcher has a new message. */
  messages: nothing,
  /** Keys or sessions were revoked. */
  revoked: nothing,
} as const;

export const channels = { ...hintPayloads, ...shellPayloads };

/**
 * Kinds that are sent to other processes after a short delay, several at once. Their listeners only update displays, and each
 * report of a run sends one.
 */
export const patientKinds: ReadonlySet<string> = new Set<WakeKind>(['events', 'logs']);

export type HintKind = keyof typeof hintPayloads;
export type WakeKind = keyof typeof channels;
export type WakePayload<K extends WakeKind> = z.infer<(typeof channels)[K]>;

/** A tenant's wake-ups, as its engine sends and receives them. */
export interface Hints {
  /** Call it after the commit that the hint announces. */
  send<K extends HintKind>(kind: K, payload?: WakePayload<K>): void;
  /** Returns a function that removes the listener. */
  on(kind: HintKind, listener: () => void): () => void;
}

/** The subject of a wake-up that concerns no single tenant or host. */
export const everyone = '*';
