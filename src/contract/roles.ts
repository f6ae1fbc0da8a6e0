/** Callers: the roles of keys, and the description of a caller that the gateway passes to an engine. */

/** The roles that a key can have. */
export const roles = [
  'root',
  'operator',
  'viewer',
  /** Publishes and subscribes. */
  'client',
  'publisher',
  'subscriber',
  'worker',
  'conductor',
] as const;
export type Role = (typeof roles)[number];

/** A running task, identified by a credential that is valid for one run and lease. */
export interface TaskCaller {
  readonly kind: 'task';
  readonly tenantId: string;
  readonly run: string;
  readonly lease: number;
}

export interface KeyCaller {
  readonly kind: 'key' | 'session';
  readonly role: Role;
  /** The id of the key; a session has none. */
  readonly keyId?: string;
  /** The owner of topics and subscriptions: the same for all secrets of a key that is rotated. A session has none. */
  readonly identity?: { readonly id: string; readonly name: string };
  /** The tenant that the key gives access to; null: all (root, conductor, and a worker key that is not bound to a tenant). */
  readonly tenantId: string | null;
  /** The recent name of that tenant, for display only. */
  readonly tenant: string | null;
  /** The name of the caller in events and the audit. */
  readonly actor: string;
}

export type Caller = TaskCaller | KeyCaller;

export function actorOf(caller: Caller): string {
  return caller.kind === 'task' ? `run:${caller.run}` : caller.actor;
}
