/**
 * Decides what an import does about a job that may exist here already. Pure.
 *
 * Three sides are compared: the source, what an earlier import wrote, and the job here. A side that has not changed since
 * gives way to the one that has. If both have changed, it is a conflict, and only `overwrite` decides it.
 *
 * A job that is active here is never touched: its triggers and tokens have moved on, and those of the source would fire again.
 */

/** The job here. */
export interface KnownJob {
  readonly isDeleted: boolean;
  /** It was started or unpaused here, or it has runs since it was imported. */
  readonly isActive: boolean;
  readonly version: number;
  /** What an earlier import wrote; undefined: the job did not come from an import. */
  readonly imported: { readonly version: number; readonly digest: string } | undefined;
}

export type Decision =
  /** `document`: whether the source's replaces the one here. Marks and tokens are written either way. */
  | { readonly act: 'write'; readonly document: boolean; readonly reason: string | null }
  | { readonly act: 'leave'; readonly outcome: 'unchanged' | 'conflict'; readonly reason: string | null };

export function decide(known: KnownJob | undefined, digest: string, overwrite: boolean): Decision {
  if (known === undefined) return write();
  const { imported } = known;
  const isSame = imported?.digest === digest;
  if (known.isDeleted) return overwrite ? write() : conflict('it was deleted here; --overwrite creates it again');
  if (known.isActive) {
    if (isSame) return { act: 'leave', outcome: 'unchanged', reason: null };
    return conflict('it is active here; to import it again, delete it here and use --overwrite');
  }
  if (overwrite) return write();
  if (imported === undefined) return conflict('it exists here and was not imported; --overwrite replaces it');
  if (known.version === imported.version) return write();
  if (isSame) return { act: 'write', document: false, reason: 'its document was changed here and stays' };
  return conflict('its document was changed here and in the source; --overwrite takes that of the source');
}

function write(): Decision {
  return { act: 'write', document: true, reason: null };
}

function conflict(reason: string): Decision {
  return { act: 'leave', outcome: 'conflict', reason };
}
