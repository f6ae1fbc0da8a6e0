/** Reads documents from files, folders and stdin. What cannot be read is a fault with its source, like any other. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { readDocument, readDocuments } from '../../documents/text.ts';
import type { Fault } from '../../errors.ts';
import { oneLine } from '../print/width.ts';
import { UsageError } from './exit.ts';
import type { Io } from './io.ts';

/** A fault or warning with its place. `source` is a file, with `#2` for its second document. */
export interface PlacedFault extends Fault {
  readonly source: string;
}

export interface SourceDocument {
  readonly source: string;
  readonly value: unknown;
}

export interface DocumentFiles {
  readonly documents: readonly SourceDocument[];
  readonly faults: readonly PlacedFault[];
}

const extensions = /\.(json|ya?ml)$/i;

/** Reads every document in the paths. */
export async function readDocumentFiles(io: Io, paths: readonly string[]): Promise<DocumentFiles> {
  if (paths.filter((path) => path === '-').length > 1) throw new UsageError('stdin can be read only once');
  const texts = await Promise.all(paths.map((path) => readPath(io, path)));
  const read = texts.flat().map(readText);
  return { documents: read.flatMap((each) => each.documents), faults: read.flatMap((each) => each.faults) };
}

export function showFault({ source, path, message }: PlacedFault): string {
  return oneLine(path === '' ? `${source}: ${message}` : `${source}:${path}: ${message}`);
}

export function addSource(source: string, faults: readonly Fault[]): PlacedFault[] {
  return faults.map((fault) => ({ source, ...fault }));
}

type FileText = { readonly source: string; readonly text: string } | PlacedFault;

async function readPath(io: Io, path: string): Promise<FileText[]> {
  if (path === '-') return [decode('stdin', await buffer(io.stdin))];
  const absolute = resolve(io.cwd, path);
  try {
    if (!(await stat(absolute)).isDirectory()) return [decode(path, await readFile(absolute))];
    const names = (await readdir(absolute, { recursive: true })).filter(isDocumentFile).sort();
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
function isDocumentFile(name: string): boolean {
  return extensions.test(name) && !name.split('/').some((part) => part.startsWith('.') || part === 'node_modules');
}

function decode(source: string, bytes: Uint8Array): FileText {
  try {
    return { source, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    return { source, path: '', message: 'is not UTF-8 text' };
  }
}

function readText(file: FileText): DocumentFiles {
  if (!('text' in file)) return { documents: [], faults: [file] };
  const read = /\.json$/i.test(file.source) ? readOne(file.text) : readMany(file.text);
  if (!read.ok) return { documents: [], faults: addSource(file.source, read.faults) };
  const several = read.values.length > 1;
  const sourceOf = (i: number): string => (several ? `${file.source}#${i + 1}` : file.source);
  return { documents: read.values.map((value, i) => ({ source: sourceOf(i), value })), faults: [] };
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
