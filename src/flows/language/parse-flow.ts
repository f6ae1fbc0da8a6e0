/**
 * Parses a flow document to a flow, or to its faults (at most 100), each with its path.
 *
 * No document makes the parser throw. A stored document is parsed again whenever a conductor loads it: what the same release has
 * accepted, it accepts again.
 */
import { faultsOf, maxFaults, type Vocabulary } from '../../documents/faults.ts';
import { checkPlain } from '../../documents/plain-json.ts';
import { type DocumentFormat, readDocument } from '../../documents/text.ts';
import { readSpan } from '../../documents/values.ts';
import type { Fault } from '../../errors.ts';
import { faultWords } from '../../kernel/text/shape-faults.ts';
import { hasExpression } from '../expression/expression.ts';
import { lintFlow } from './lints.ts';
import { readDuration } from './read-duration.ts';
import { readRetry, StepReader, type TaskDefaults } from './read-step.ts';
import { type Place, Reading } from './reading.ts';
import { flowShape } from './shapes.ts';
import { eventsOf, type Flow, type Step } from './step.ts';

export type ParsedFlow =
  | { readonly ok: true; readonly flow: Flow; readonly warnings: readonly Fault[] }
  | { readonly ok: false; readonly faults: readonly Fault[] };

/** Values of a document together: texts, numbers, lists and mappings. */
const maxValues = 50_000;
/** Each is a row for every execution. */
const maxLabels = 50;
/** Steps of a flow, blocks and handlers included. */
const maxSteps = 5_000;

const names: ReadonlySet<string> = new Set(['f', 'v', 'ret', 'input', 'now', 'links', 'execution']);

const vocabulary: Vocabulary = {
  objects: new Map([['', { label: 'a flow', fields: Object.keys(flowShape.shape) }]]),
  movedFields: new Map([
    ['name', 'flow'],
    ['tasks', 'steps'],
    ['triggers', 'on: {every: …} or {cron: …} as a step'],
    ['input', '`input` in expressions: it needs no declaration'],
    ['version', 'nothing: applying a document numbers its versions'],
  ]),
};

export function parseFlowText(text: string, format: DocumentFormat): ParsedFlow {
  const read = readDocument(text, format);
  return read.ok ? parseFlow(read.value) : read;
}

export function parseFlow(document: unknown): ParsedFlow {
  const plain = checkPlain(document, { values: maxValues, strict: true });
  if (!plain.bounded || plain.faults.length > 0) return reject(plain.faults);
  const parsed = flowShape.safeParse(document, faultWords);
  if (!parsed.success) return reject(faultsOf(document, parsed.error.issues, vocabulary));
  const { data } = parsed;
  const reading = new Reading();
  const top: Place = { path: [], at: '0', names, loops: [] };
  const reader = new StepReader(reading, readDefaults(data.defaults, reading, top));
  const inside = { ...top, path: ['steps'] };
  const outer = (key: string, letter: string): Place => ({ ...top, path: [key], at: `0_${letter}` });
  const root = reader.block(data.steps, inside, {
    timeout: data.timeout === undefined ? null : readDuration(reading, data.timeout, top, ['timeout']),
    onError: reader.handlers(data.on_error, top, ['on_error']),
    onCancel: data.on_cancel === undefined ? null : reader.block(data.on_cancel, outer('on_cancel', 'c')),
    onTimeout: data.on_timeout === undefined ? null : reader.block(data.on_timeout, outer('on_timeout', 't')),
    vars: data.vars === undefined ? null : reading.value(data.vars, top, ['vars']),
  });
  const labels = Object.fromEntries(
    Object.entries(data.labels ?? {}).map(([name, value]) => [name, reading.value(value, top, ['labels', name])]),
  );
  for (const [name, { reads }] of Object.entries(labels))
    if (readsSealed(reads, data.sealed ?? []))
      reading.fault(['labels', name], 'reads a sealed field, and labels are stored in clear');
  if (Object.keys(labels).length > maxLabels) reading.fault(['labels'], `has more than ${maxLabels} labels`);
  if (reading.byPosition.size > maxSteps) reading.fault(['steps'], `has more than ${maxSteps} steps`);
  if (reading.faults.length > 0) return reject(reading.faults);
  const { byPosition } = reading;
  const heardTags = findHeardTags(byPosition.values());
  const flow = { name: data.flow, root, labels, sealed: data.sealed ?? [], byPosition, heardTags };
  lintFlow(flow, reading);
  return { ok: true, flow, warnings: reading.warnings };
}

/** The input becomes the fields. */
function readsSealed(reads: ReadonlySet<string>, sealed: readonly string[]): boolean {
  if (sealed.length === 0) return false;
  return ['f', 'input'].some((root) => reads.has(root) || sealed.some((field) => reads.has(field.replace(/^f/, root))));
}

function findHeardTags(steps: Iterable<Step>): ReadonlySet<string> {
  const specs = [...steps].flatMap(eventsOf);
  return new Set(specs.flatMap((spec) => (spec.kind === 'entered' || spec.kind === 'left' ? [spec.tag] : [])));
}

function readDefaults(
  defaults: { retry?: Parameters<typeof readRetry>[0] | undefined; timeout?: string | undefined } | undefined,
  reading: Reading,
  top: Place,
): TaskDefaults {
  const { retry, timeout } = defaults ?? {};
  // checked once here, and not again at each task
  if (timeout !== undefined && !hasExpression(timeout)) {
    const read = readSpan(timeout);
    if (!read.ok) {
      reading.fault([...top.path, 'defaults', 'timeout'], read.message);
      return { retry: null, timeout: null };
    }
  }
  return { retry: retry === undefined ? null : readRetry(retry), timeout: timeout ?? null };
}

function reject(faults: readonly Fault[]): ParsedFlow {
  if (faults.length <= maxFaults) return { ok: false, faults };
  const rest = { path: '', message: `has more than ${maxFaults} faults; the others are not listed` };
  return { ok: false, faults: [...faults.slice(0, maxFaults), rest] };
}
