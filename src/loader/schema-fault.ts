/**
 * Checks whether a tenant's schema matches its engine, before the tenant is started or served: a migration tool may have
 * recorded the version without its migrations or functions.
 */
import type { ClientBase } from 'pg';
import { type Engine, functionsStep, missingPartsPath } from '../contract/engine.ts';
import { boundText, type Reason } from '../control/reasons.ts';
import { knownError, type MillraceError } from '../errors.ts';

/** Returns undefined if it matches. */
export async function findSchemaFault(
  client: ClientBase,
  engine: Pick<Engine, 'pending' | 'version'>,
): Promise<Reason | undefined> {
  try {
    const missing = await engine.pending(client);
    return missing.length === 0 ? undefined : describeMissing(engine.version, missing);
  } catch (error) {
    const known = knownError(error);
    if (known?.code === 'bad_configuration') return describeRejection(engine.version, known);
    throw error;
  }
}

function describeRejection(engine: string, { message, faults }: MillraceError): Reason {
  const arePartsMissing = faults.some(({ path }) => path === missingPartsPath);
  return unfit(arePartsMissing ? 'being_restored' : 'schema_unfit', engine, message);
}

function unfit(cause: 'schema_unfit' | 'being_restored', engine: string, text: string): Reason {
  return { code: 'no_engine', cause, data: { engine, text: boundText(text) } };
}

/** A restore fills the table of the version before that of the migrations. Applying migrations then would spoil it. */
function describeMissing(engine: string, missing: readonly string[]): Reason {
  if (missing[0]?.startsWith('0001_') === true)
    return unfit('being_restored', engine, 'no migration is recorded: it is still being restored');
  const parts = missing.map((name) => (name === functionsStep ? 'its set of SQL functions' : name));
  return unfit('schema_unfit', engine, `${parts.join(', ')} ${missing.length === 1 ? 'is' : 'are'} missing`);
}
