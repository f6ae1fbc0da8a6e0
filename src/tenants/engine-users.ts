/** Which tenants need an engine: by what is recorded in their databases now, not by what the launcher saw last. */
import { within } from '../kernel/service.ts';
import { listTenants, type TenantRow } from '../control/queries.ts';
import { look } from '../loader/inspect.ts';
import type { Life } from './life.ts';

export interface EngineUsers {
  readonly tenants: string[];
  /** Those of which it could not be said. */
  readonly unknown: string[];
  /** The name of the last tenant that was looked at, where there are more. */
  readonly next: string | null;
}

const looksAtOnce = 16;
/** A look waits so long for a migration that is under way, and so long in all. */
const lookMs = { lock: 1_000, all: 5_000 } as const;

/** Looks at `limit` tenants, by name. */
export async function engineUsers(
  life: Life,
  version: string,
  { after, limit }: { readonly after: string | undefined; readonly limit: number },
): Promise<EngineUsers> {
  const rows = await listTenants(life.control, { after, limit: limit + 1 });
  const left = rows.slice(0, limit).toReversed();
  const users: EngineUsers = { tenants: [], unknown: [], next: rows.length > limit ? (left[0]?.name ?? null) : null };
  const work = async (): Promise<void> => {
    for (let row = left.pop(); row !== undefined; row = left.pop()) {
      const recorded = await recordedIn(life, row);
      if (recorded === undefined) users.unknown.push(row.name);
      else if (recorded === version) users.tenants.push(row.name);
    }
  };
  await Promise.all(Array.from({ length: looksAtOnce }, work));
  return users;
}

/** Null: none is; undefined: nobody knows. */
async function recordedIn(life: Life, row: TenantRow): Promise<string | null | undefined> {
  // a database that was given a name which no address can mean has none
  const lookAtIt = async (): ReturnType<typeof look> => look(life.addressOf(row), lookMs.lock);
  const found = await within(lookMs.all, lookAtIt()).catch(() => undefined);
  if (found?.kind === 'installed') return found.version;
  return found?.kind === 'not_installed' || found?.kind === 'gone' ? null : undefined;
}
