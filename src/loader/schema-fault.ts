/**
 * Whether a tenant's schema is the one that its engine was written for. A migration tool may have recorded the version
 * without its migrations or functions. Checked before a tenant is started or served.
 */
import type { ClientBase } from 'pg';
import { type Engine, functionsStep } from '../contract/engine.ts';
import { schemaFaultStart } from '../control/reasons.ts';
import { knownError } from '../errors.ts';

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
  const parts = missing.map((name) => (name === functionsStep ? 'its set of SQL functions' : name));
  return `${parts.join(', ')} ${be(missing)} missing`;
}

function be({ length }: readonly string[]): string {
  return length === 1 ? 'is' : 'are';
}
