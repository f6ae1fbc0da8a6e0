/**
 * Reads job documents from files, folders and stdin, and validates them without a server: first each document, then all of
 * them together (duplicate names, references to tasks that do not exist).
 */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { Fault } from '../../../errors.ts';
import type { JobDefinition, ParentReference } from '../../../jobs/definition.ts';
import { parseJob } from '../../../jobs/document/parse-job.ts';
import { readDocument, readDocuments } from '../../../documents/text.ts';
import { UsageError } from '../../session/exit.ts';
import type { Io } from '../../session/io.ts';
import { oneLine } from '../../print/width.ts';

/** A fault or warning with its place. `source` is a file, with `#2` for its second document. */
export interface PlacedFault extends Fault {
  readonly source: string;
}

export interface JobDocument {
  readonly source: string;
  readonly job: JobDefinition;
}

export interface ReadJobs {
  readonly documents: readonly JobDocument[];
  readonly faults: readonly PlacedFault[];
  readonly warnings: readonly PlacedFault[];
}

const extensions = /\.(json|ya?ml)$/i;

/** Reads every job in the paths. A path that does not exist or cannot be read is a fault like any other. */
export async function readJobs(io: Io, paths: readonly string[]): Promise<ReadJobs> {
  if (paths.filter((path) => path === '-').length > 1) throw new UsageError('stdin can be read only once');
  const texts = await Promise.all(paths.map((path) => readPath(io, path)));
  const read = texts.flat().map(readText);
  const documents = read.flatMap((each) => each.documents);
  const together = [...findDuplicates(documents), ...findMissingParents(documents)];
  return {
    documents,
    faults: [...read.flatMap((each) => each.faults), ...together],
    warnings: read.flatMap((each) => each.warnings),
  };
}

export function showFault({ source, path, message }: PlacedFault): string {
  return oneLine(path === '' ? `${source}: ${message}` : `${source}:${path}: ${message}`);
}

type FileText = { readonly source: string; readonly text: string } | PlacedFault;

async function readPath(io: Io, path: string): Promise<FileText[]> {
  if (path === '-') return [decode('stdin', await buffer(io.stdin))];
  const absolute = resolve(io.cwd, path);
  try {
    if (!(await stat(absolute)).isDirectory()) return [decode(path, await readFile(absolute))];
    const names = (await readdir(absolute, { recursive: true })).filter(isJobFile).sort();
    if (names.length === 0) return [{ source: path, path: '', message: 'holds no .json, .yaml or .yml file' }];
    const files: FileText[] = [];
    // one after another, because a large folder may have more files than a process may open
    for (const name of names) files.push(decode(join(path, name), await readFile(join(absolute, name))));
    return files;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const missing = Reflect.get(error, 'code') === 'ENOENT' && Reflect.get(error, 'path') === absolute;
    if (missing) return [{ source: path, path: '', message: 'file not found' }];
    return [{ source: path, path: '', message: error.message.replaceAll(absolute, relative(io.cwd, absolute) || '.') }];
  }
}

/** Skips hidden files and folders, and node_modules. */
function isJobFile(name: string): boolean {
  return extensions.test(name) && !name.split('/').some((part) => part.startsWith('.') || part === 'node_modules');
}

function decode(source: string, bytes: Uint8Array): FileText {
  try {
    return { source, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    return { source, path: '', message: 'is not UTF-8 text' };
  }
}

function readText(file: FileText): ReadJobs {
  if (!('text' in file)) return { documents: [], faults: [file], warnings: [] };
  const values = /\.json$/i.test(file.source) ? readOne(file.text) : readMany(file.text);
  if (!values.ok) return { documents: [], faults: addSource(file.source, values.faults), warnings: [] };
  const several = values.values.length > 1;
  const read = values.values.map((value, i) => readJob(several ? `${file.source}#${i + 1}` : file.source, value));
  return {
    documents: read.flatMap((each) => each.documents),
    faults: read.flatMap((each) => each.faults),
    warnings: read.flatMap((each) => each.warnings),
  };
}

type Values =
  | { readonly ok: true; readonly values: unknown[] }
  | { readonly ok: false; readonly faults: readonly Fault[] };

function readOne(text: string): Values {
  const read = readDocument(text, 'json');
  return read.ok ? { ok: true, values: [read.value] } : read;
}

/** Reads YAML, which includes JSON. The JSON parser has wider limits, so it goes first. */
function readMany(text: string): Values {
  const json = text.trimStart().startsWith('{') ? readOne(text) : undefined;
  if (json?.ok) return json;
  const read = readDocuments(text);
  if (!read.ok) return read;
  if (read.documents.length === 0) return { ok: false, faults: [{ path: '', message: 'holds no document' }] };
  return { ok: true, values: read.documents.map((document) => document.value) };
}

function readJob(source: string, value: unknown): ReadJobs {
  const parsed = parseJob(value);
  if (!parsed.ok) return { documents: [], faults: addSource(source, parsed.faults), warnings: [] };
  return { documents: [{ source, job: parsed.job }], faults: [], warnings: addSource(source, parsed.warnings) };
}

function addSource(source: string, faults: readonly Fault[]): PlacedFault[] {
  return faults.map((fault) => ({ source, ...fault }));
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
