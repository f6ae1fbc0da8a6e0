/** The context of changes of subscribers: the tenant's database and installation, and the caller. */
import type { EngineContext } from '../../contract/context.ts';
import type { Db } from '../../kernel/sql.ts';

export interface BusContext extends EngineContext {
  readonly db: Db;
}

/** The actor and the time of a change, for its events. */
export interface Author {
  readonly actor: string;
  readonly at: Date;
}

/** The identity of a key, which owns topics and at most one subscriber. */
export interface Identity {
  readonly id: string;
  readonly name: string;
}
