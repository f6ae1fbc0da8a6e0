/** The context of a tenant's handlers: the engine's context with its pool as a `Db`. */
import type { EngineContext } from '../contract/context.ts';
import { actorOf, type Caller } from '../contract/roles.ts';
import { MillraceError } from '../errors.ts';
import type { EndpointTable, Handlers } from '../http/endpoint.ts';
import type { Db } from '../kernel/sql.ts';

export interface ApiContext extends EngineContext {
  readonly db: Db;
}

export type ApiHandlers<T extends EndpointTable> = Handlers<T, ApiContext>;

/** The actor and the time of a change, for its events. */
export function author(context: ApiContext, caller: Caller | undefined): { actor: string; at: Date } {
  return { actor: caller ? actorOf(caller) : 'anyone', at: new Date(context.time.now()) };
}

export function requireFound<T>(row: T | undefined, what: string, id: string): T {
  if (row === undefined) throw new MillraceError('not_found', `${what} not found: ${id}`);
  return row;
}

/** A `bad_request` error for one part of the request, such as `body.last`. */
export function badRequest(path: string, message: string): MillraceError {
  return new MillraceError('bad_request', `${path}: ${message}`, { faults: [{ path, message }] });
}
