/** Who is calling: the roles a key can have, and what the gateway tells an engine about the caller. */

/** Roles that a key can be given. */
export const roles = ['root', 'operator', 'viewer', 'publisher', 'subscriber', 'worker', 'conductor'] as const;
export type Role = (typeof roles)[number];

/** A running task, known by the credential that was made for that run and lease. */
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
  /** The tenant that the key opens; null opens all (root, conductor, and a worker key that is bound to none). */
  readonly tenantId: string | null;
  /** What that tenant was called a moment ago: to be shown, and nothing more. */
  readonly tenant: string | null;
  /** How the caller is named in events and the audit. */
  readonly actor: string;
}

export type Caller = TaskCaller | KeyCaller;

export function actorOf(caller: Caller): string {
  return caller.kind === 'task' ? `run:${caller.run}` : caller.actor;
}
