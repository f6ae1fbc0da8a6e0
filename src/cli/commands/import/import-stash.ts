/** Imports stash values, many in one request. */
import { maxEntries } from '../../../api/imports/endpoints.ts';
import type { SourceStash } from '../../../waterwheel/source.ts';
import { count } from '../../print/output.ts';
import type { ImportReport } from './import-report.ts';
import type { ImportWork } from './import-work.ts';

/** Bytes of values in one request; a larger value has a request of its own. */
const maxBatchBytes = 2 * 1024 * 1024;

function inBatches(entries: readonly SourceStash[]): SourceStash[][] {
  const batches: SourceStash[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const entry of entries) {
    const batch = batches.at(-1);
    if (batch === undefined || batch.length === maxEntries || bytes + entry.bytes > maxBatchBytes) {
      batches.push([entry]);
      bytes = entry.bytes;
    } else {
      batch.push(entry);
      bytes += entry.bytes;
    }
  }
  return batches;
}

export async function importStash({
  plan,
  server,
  source,
  options,
  progress,
}: ImportWork): Promise<ImportReport['stash']> {
  const total = { written: 0, unchanged: 0, kept: 0, conflicts: [] as string[] };
  const names = new Map(plan.projects.map(({ id, name }) => [id, name]));
  let done = 0;
  for (const batch of inBatches(plan.stash)) {
    const values = await source.values(batch);
    const entries = batch.map(({ project, job, instant, name }, i) => ({
      project,
      job,
      instant: instant?.toISOString() ?? null,
      name,
      data: values[i]?.toString('base64') ?? '',
    }));
    const body = { dry_run: options.dryRun, overwrite: options.overwrite, entries };
    const answer = await server.tenant('POST /api/imports/stash', { body });
    total.written += answer.written;
    total.unchanged += answer.unchanged;
    total.kept += answer.kept;
    for (const i of answer.conflicts) {
      const entry = batch[i];
      total.conflicts.push(`${entry?.project == null ? 'global' : names.get(entry.project)}: ${entry?.name}`);
    }
    done += batch.length;
    const verb = options.dryRun ? 'checked' : 'imported';
    progress(`${verb} ${done} of ${count(plan.stash.length, 'stash value')}`, done === plan.stash.length);
  }
  return total;
}
