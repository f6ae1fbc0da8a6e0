/**
 * Reads job documents from files, folders and stdin, and validates them without a server: first each document, then all of
 * them together (duplicate names, references to tasks that do not exist).
 */
import type { JobDefinition, ParentReference } from '../../../jobs/definition.ts';
import { parseJob } from '../../../jobs/document/parse-job.ts';
import { addSource, type PlacedFault, readDocumentFiles, type SourceDocument } from '../../session/document-files.ts';
import type { Io } from '../../session/io.ts';

export interface JobDocument {
  readonly source: string;
  readonly job: JobDefinition;
}

export interface ReadJobs {
  readonly documents: readonly JobDocument[];
  readonly faults: readonly PlacedFault[];
  readonly warnings: readonly PlacedFault[];
}

/** Reads every job in the paths. A path that does not exist or cannot be read is a fault like any other. */
export async function readJobs(io: Io, paths: readonly string[]): Promise<ReadJobs> {
  const files = await readDocumentFiles(io, paths);
  const read = files.documents.map(readJob);
  const documents = read.flatMap((each) => each.documents);
  const together = [...findDuplicates(documents), ...findMissingParents(documents)];
  return {
    documents,
    faults: [...files.faults, ...read.flatMap((each) => each.faults), ...together],
    warnings: read.flatMap((each) => each.warnings),
  };
}

function readJob({ source, value }: SourceDocument): ReadJobs {
  const parsed = parseJob(value);
  if (!parsed.ok) return { documents: [], faults: addSource(source, parsed.faults), warnings: [] };
  return { documents: [{ source, job: parsed.job }], faults: [], warnings: addSource(source, parsed.warnings) };
}

export function jobKey({ project, name }: { readonly project: string; readonly name: string }): string {
  return `${project}/${name}`;
}

/** Finds jobs with the same name or uuid: the later one would silently replace the earlier. */
function findDuplicates(documents: readonly JobDocument[]): PlacedFault[] {
  const seen = new Map<string, string>();
  return documents.flatMap(({ source, job }) => {
    const keys: [path: string, key: string][] = [['name', jobKey(job)]];
    if (job.uuid !== null) keys.push(['uuid', job.uuid]);
    return keys.flatMap(([path, key]) => {
      const first = seen.get(key);
      seen.set(key, first ?? source);
      return first === undefined
        ? []
        : [{ source, path, message: `${key} is also the ${path} of the job in ${first}` }];
    });
  });
}

/** Finds references to one of these jobs that name a task or trigger which it does not have. */
function findMissingParents(documents: readonly JobDocument[]): PlacedFault[] {
  const known = new Map(documents.map((document) => [jobKey(document.job), document]));
  return documents.flatMap(({ source, job }) =>
    job.foreignReferences.flatMap(({ path, reference }) => {
      const target = known.get(`${reference.project}/${reference.job}`);
      if (target === undefined || hasPart(target.job, reference)) return [];
      const owner = `${reference.project}/${reference.job}`;
      return [{ source, path, message: `${owner} in ${target.source} has no ${reference.kind} ${reference.name}` }];
    }),
  );
}

export function hasPart(job: JobDefinition, reference: ParentReference): boolean {
  const parts = reference.kind === 'task' ? job.tasks : job.triggers;
  return parts.some((part) => part.name === reference.name);
}
