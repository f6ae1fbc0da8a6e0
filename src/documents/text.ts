/**
 * Parses the text of a document: JSON, and YAML 1.2 with the core schema (so `on:` is a key and a timestamp is text).
 *
 * The YAML library is not safe for hostile text, so the text is checked before each step:
 *
 * 1. Punctuation is counted before the text is tokenized. Tokens take time and memory: 999,000 quotes took seconds and 700 MB.
 * 2. Nesting and aliases are limited before the tokens are composed. The composer is recursive: a few thousand open brackets
 *    end the whole process, past any catch (V8: "RegExpCompiler Allocation failed"). Resolving aliases takes quadratic time.
 * 3. Duplicate keys are found here, because the composer's own check takes quadratic time.
 */
import { Composer, CST, type Document, isMap, isScalar, isSeq, Lexer, LineCounter, Parser } from 'yaml';
import type { Fault } from '../errors.ts';
import { maxFaults } from './faults.ts';

export type DocumentFormat = 'json' | 'yaml';

export type ReadDocument =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly faults: readonly Fault[] };

interface PlacedDocument {
  readonly value: unknown;
  /** The line on which the document begins, counted from 1. */
  readonly line: number;
}

export type ReadDocuments =
  | { readonly ok: true; readonly documents: readonly PlacedDocument[] }
  | { readonly ok: false; readonly faults: readonly Fault[] };

const maxYamlChars = 1_000_000;
/** Characters that may begin a token. An ordinary document has one or two per value. */
const maxMarks = 100_000;
const maxDepth = 100;
const maxAliases = 1_000;
/** Documents in one text, including empty ones. */
const maxDocuments = 1_000;
const tooDeep = `nested deeper than ${maxDepth} levels`;
const tooManyDocuments = `more than ${maxDocuments} documents`;

/** Reads a text that holds exactly one document. */
export function readDocument(text: string, format: DocumentFormat): ReadDocument {
  if (format === 'json') return readJson(text);
  const read = readDocuments(text);
  if (!read.ok) return read;
  const [first, second] = read.documents;
  if (first === undefined) return reject('the document is empty');
  if (second !== undefined) return reject(`line ${second.line}: a second document begins; only one is expected`);
  return { ok: true, value: first.value };
}

/** Reads all documents of a YAML text, which `---` lines separate. Skips empty documents. JSON is also YAML. */
export function readDocuments(text: string): ReadDocuments {
  if (text.length > maxYamlChars) return reject(`more than ${maxYamlChars} characters of YAML; send it as JSON`);
  if (hasTooManyMarks(text))
    return reject(`more than ${maxMarks} lines and punctuation marks of YAML; send it as JSON`);
  return withoutStacks(() => composeDocuments(text));
}

/** Turns stack traces off. A text may have thousands of faults, and capturing a stack for each takes most of the time. */
function withoutStacks<T>(work: () => T): T {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return work();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

function composeDocuments(text: string): ReadDocuments {
  const lines = new LineCounter();
  const tokens = tokensOf(text, lines);
  if (typeof tokens === 'string') return reject(tokens);
  const excess = excessOf(tokens);
  if (excess !== undefined) return reject(excess);
  const composer = new Composer({ version: '1.2', schema: 'core', uniqueKeys: false, prettyErrors: false });
  const composed = [...composer.compose(tokens)];
  const faults = composed.flatMap((document) => documentFaults(document, lines)).slice(0, maxFaults);
  if (faults.length > 0) return { ok: false, faults };
  return placedDocuments(composed.filter(isFilled), lines);
}

/** Returns the tokens, or the limit that they exceed. Stops at the first token that is nested too deep: each level costs more. */
function tokensOf(text: string, lines: LineCounter): CST.Token[] | string {
  const parser = new Parser(lines.addNewLine);
  const tokens: CST.Token[] = [];
  let documents = 0;
  lines.addNewLine(0);
  const add = (parsed: Iterable<CST.Token>): void => {
    for (const token of parsed) {
      tokens.push(token);
      if (token.type === 'document') documents++;
    }
  };
  for (const lexeme of new Lexer().lex(text)) {
    add(parser.next(lexeme));
    // the stack also holds the document and the current scalar
    if (parser.stack.length > maxDepth + 2) return tooDeep;
    if (documents > maxDocuments) return tooManyDocuments;
  }
  add(parser.end());
  return documents > maxDocuments ? tooManyDocuments : tokens;
}

const marks = new Uint8Array(128);
for (const mark of '\n\r"\'[]{},:-?&*!|>%#@`') marks[mark.charCodeAt(0)] = 1;

function hasTooManyMarks(text: string): boolean {
  let count = 0;
  for (let i = 0; i < text.length && count <= maxMarks; i++) count += marks[text.charCodeAt(i)] ?? 0;
  return count > maxMarks;
}

function isFilled({ contents }: Document.Parsed): boolean {
  return contents !== null && !(isScalar(contents) && contents.value === null);
}

function placedDocuments(composed: readonly Document.Parsed[], lines: LineCounter): ReadDocuments {
  try {
    // excessOf has limited the number of aliases, and plain-json.ts limits the size that they expand to
    const documents = composed.map((document): PlacedDocument => {
      const { line } = lines.linePos(document.contents?.range[0] ?? 0);
      return { value: document.toJS({ maxAliasCount: -1 }) as unknown, line };
    });
    return { ok: true, documents };
  } catch (error) {
    return reject(error instanceof Error ? error.message : 'not YAML');
  }
}

function readJson(text: string): ReadDocument {
  if (text.trim() === '') return reject('the document is empty');
  try {
    return { ok: true, value: JSON.parse(text) as unknown };
  } catch (error) {
    const message = error instanceof Error ? error.message : 'not JSON';
    return reject(message.replace(/ in JSON at position (\d+).*/, (_, at) => ` at ${lineAndColumn(text, Number(at))}`));
  }
}

function lineAndColumn(text: string, position: number): string {
  const before = text.slice(0, position).split('\n');
  return `line ${before.length}, column ${(before.at(-1) ?? '').length + 1}`;
}

/** Returns the limit of the composer that the tokens exceed. Does not recurse. */
function excessOf(tokens: readonly CST.Token[]): string | undefined {
  const stack: { readonly token: CST.Token; readonly depth: number }[] = tokens.map((token) => ({ token, depth: 0 }));
  let aliases = 0;
  for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
    const { token, depth } = top;
    if (depth > maxDepth) return tooDeep;
    if (token.type === 'alias' && ++aliases > maxAliases) return `more than ${maxAliases} aliases`;
    for (const child of childrenOf(token)) stack.push({ token: child, depth: depth + 1 });
  }
  return undefined;
}

function childrenOf(token: CST.Token): readonly CST.Token[] {
  if (token.type === 'document') return token.value === undefined ? [] : [token.value];
  if (!CST.isCollection(token)) return [];
  return token.items.flatMap(({ key, value }) => [key, value].filter((child) => child !== null && child !== undefined));
}

function documentFaults(document: Document.Parsed, lines: LineCounter): Fault[] {
  const at = (offset: number, message: string): Fault => {
    const { line, col } = lines.linePos(offset);
    return { path: '', message: `line ${line}, column ${col}: ${message}` };
  };
  // a warning is an unknown tag or directive, which would silently change the meaning
  const reported = [...document.errors, ...document.warnings].map(({ pos, message }) => at(pos[0], message));
  return [...reported, ...repeatedKeys(document.contents).map(([offset, key]) => at(offset, `${key} is given twice`))];
}

/** Finds keys that a mapping gives twice, with their offsets. Does not recurse. */
function repeatedKeys(root: unknown): [number, string][] {
  const repeated: [number, string][] = [];
  const stack: unknown[] = [root];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (isSeq(node)) for (const item of node.items) stack.push(item);
    if (!isMap(node)) continue;
    const seen = new Set<unknown>();
    for (const { key, value } of node.items) {
      const name: unknown = isScalar(key) ? key.value : key;
      if (seen.has(name)) repeated.push([isScalar(key) ? (key.range?.[0] ?? 0) : 0, JSON.stringify(name)]);
      seen.add(name);
      stack.push(value);
    }
  }
  return repeated;
}

function reject(message: string): { readonly ok: false; readonly faults: readonly Fault[] } {
  return { ok: false, faults: [{ path: '', message }] };
}
