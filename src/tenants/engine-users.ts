/** Which tenants use an engine, by the version that their databases record now, not by what the launcher saw last. */
import { within } from '../kernel/service.ts';
import { listTenants, type TenantRow } from '../control/queries.ts';
import { look } from '../loader/inspect.ts';
import type { Life } from './life.ts';

export interface EngineUsers {
  readonly tenants: string[];
  /** Tenants whose version could not be read. */
  readonly unknown: string[];
  /** The name of the last tenant that was inspected; null if there are no more. */
  readonly next: string | null;
}

const maxInspections = 16;
/** `lock`: how long an inspection waits for a migration that is under way. `all`: its limit in total. */
const inspectMs = { lock: 1_000, all: 5_000 } as const;

/** Inspects `limit` tenants, in the order of their names. */
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
  await Promise.all(Array.from({ length: maxInspections }, work));
  return users;
}

/** Null: Millrace is not installed. Undefined: unknown. */
async function recordedIn(life: Life, row: TenantRow): Promise<string | null | undefined> {
  // async, so that an error of `addressOf` is caught as well: some names cannot be written in an address
  const inspect = async (): ReturnType<typeof look> => look(life.addressOf(row), inspectMs.lock);
  const found = await within(inspectMs.all, inspect()).catch(() => undefined);
  if (found?.kind === 'installed') return found.version;
  return found?.kind === 'not_installed' || found?.kind === 'gone' ? null : undefined;
}
