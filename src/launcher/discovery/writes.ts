/**
 * Writes the changes found on the server, in one transaction that is conditional on the launcher's epoch. If the database
 * rejects rows of some tenants, these are left out for a while and the others are written: no tenant keeps another from being
 * found, renamed or forgotten.
 */
import { isStatementRejection } from '../../errors.ts';
import { isolateRejected } from '../../kernel/isolate-rejected.ts';
import type { Log } from '../../kernel/log.ts';
import type { Db } from '../../kernel/sql.ts';
import type { WakeHub } from '../../postgres/wake.ts';
import { type Discovered, writeDiscovered } from './discovery.ts';
import { asLauncher } from '../lease.ts';
import { hintChanged } from '../../control/messages.ts';
import { RejectedTenants } from '../rejected-tenants.ts';

export interface DiscoveryOptions {
  readonly db: Db;
  readonly hub: WakeHub;
  readonly log: Log;
}

export class Discovery {
  readonly #options: DiscoveryOptions;
  readonly #rejected: RejectedTenants;

  constructor(options: DiscoveryOptions) {
    this.#options = options;
    this.#rejected = new RejectedTenants(options.log, 'discovery');
  }

  /** Returns whether anything was written. */
  async write(changed: Discovered, epoch: number, at: Date): Promise<boolean> {
    const { without, again } = this.#rejected.current();
    // tenants that are due for a retry are written with the others: two that have swapped names cannot be written singly
    const names = new Map([...namesIn(changed)].filter(([key]) => !without.has(key) || again.includes(key)));
    const write = async (keys: readonly string[]): Promise<void> => {
      const among = new Set(keys);
      const part = partOf(changed, (key) => among.has(key));
      await asLauncher(this.#options.db, epoch, (tx) => writeDiscovered(tx, part, at));
      for (const { id } of tenantsIn(part)) hintChanged(this.#options.hub, id);
    };
    const refused = await isolateRejected([...names.keys()], write, { isRejection: isStatementRejection });
    this.#rejected.note(refused, again, (key) => names.get(key) ?? key);
    return names.size > refused.size;
  }
}

function tenantsIn({ found, seen, renamed, gone }: Discovered): { readonly id: string; readonly name?: string }[] {
  return [...found, ...seen, ...renamed, ...gone];
}

/** A new database is identified by its oid, because it gets another tenant id at each discovery. */
const keyOf = ({ oid }: Discovered['found'][number]): string => `oid ${oid}`;

/** Names by tenant id, or by the key of a new database. */
function namesIn({ found, ...known }: Discovered): Map<string, string> {
  const names = new Map(tenantsIn({ found: [], ...known }).map(({ id, name }) => [id, name ?? id]));
  for (const each of found) names.set(keyOf(each), each.name);
  return names;
}

function partOf({ found, seen, renamed, gone }: Discovered, isIn: (key: string) => boolean): Discovered {
  const isKnownIn = ({ id }: { readonly id: string }): boolean => isIn(id);
  return {
    found: found.filter((each) => isIn(keyOf(each))),
    seen: seen.filter(isKnownIn),
    renamed: renamed.filter(isKnownIn),
    gone: gone.filter(isKnownIn),
  };
}
