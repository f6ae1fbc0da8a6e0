/**
 * Whether a tenant's schema is the one that its engine was written for. Its recorded version is only a word: a migration tool
 * may have recorded it without the migrations that belong to it. Asked once by whoever takes the tenant up.
 */
import type { ClientBase } from 'pg';
import type { Engine } from '../contract/engine.ts';
import { knownError } from '../errors.ts';

/** How every such sentence begins. */
export const schemaFaultStart = 'its schema is not that of engine';

/** Undefined: it is. */
export async function schemaFault(
  client: ClientBase,
  engine: Pick<Engine, 'pending' | 'version'>,
): Promise<string | undefined> {
  try {
    const missing = await engine.pending(client);
    return missing.length === 0 ? undefined : fault(engine.version, missingWords(missing));
  } catch (error) {
    const known = knownError(error);
    if (known?.code === 'bad_configuration') return fault(engine.version, known.message);
    throw error;
  }
}

function fault(version: string, detail: string): string {
  return `${schemaFaultStart} ${version}: ${detail}`;
}

/** A restore fills the table of the version before that of the migrations: whoever applied them then would spoil it. */
function missingWords(missing: readonly string[]): string {
  if (missing[0]?.startsWith('0001_') === true) return 'no migration is recorded: it is still being restored';
  return `${missing.join(', ')} ${be(missing)} missing`;
}

function be({ length }: readonly string[]): string {
  return length === 1 ? 'is' : 'are';
}
