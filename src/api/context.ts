/** What a tenant's handlers are given beside the request: the engine's context with its pool as a `Db`. */
import type { EngineContext } from '../contract/context.ts';
import { actorOf, type Caller } from '../contract/roles.ts';
import { MillraceError } from '../errors.ts';
import type { EndpointTable, Handlers } from '../http/endpoint.ts';
import type { Db } from '../kernel/sql.ts';

export interface ApiContext extends EngineContext {
  readonly db: Db;
}

export type ApiHandlers<T extends EndpointTable> = Handlers<T, ApiContext>;

/** Who writes, and when: for changes and their events. */
export function author(context: ApiContext, caller: Caller | undefined): { actor: string; at: Date } {
  return { actor: caller ? actorOf(caller) : 'anyone', at: new Date(context.time.now()) };
}

export function found<T>(row: T | undefined, what: string, id: string): T {
  if (row === undefined) throw new MillraceError('not_found', `there is no ${what} ${id}`);
  return row;
}

/** A request that makes no sense, with the part of it that is wrong: `body.last`. */
export function badRequest(path: string, message: string): MillraceError {
  return new MillraceError('bad_request', `${path}: ${message}`, { faults: [{ path, message }] });
}
