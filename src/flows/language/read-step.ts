/** Reads a step of a document: finds its verb, checks its fields, and compiles its expressions. */
import { faultsOf, type Vocabulary } from '../../documents/faults.ts';
import { readSpan, unwrapRead } from '../../documents/values.ts';
import { formatPath, isRecord, type PathPart } from '../../kernel/text/path.ts';
import { didYouMean } from '../../kernel/text/suggest.ts';
import { faultWords } from '../../kernel/text/shape-faults.ts';
import { hasExpression } from '../expression/expression.ts';
import { readDuration } from './read-duration.ts';
import { readVerb } from './read-verbs.ts';
import { parseTarget } from './target.ts';
import { titleOf } from './title.ts';
import type { BlockReader, Place, Reading } from './reading.ts';
import { type AttributeData, attributeShape, handlerShape, retryShape, verbSchemas, verbShapes } from './shapes.ts';
import {
  type Attributes,
  type ErrorHandler,
  type Retry,
  type SequenceStep,
  type Step,
  type UndoBlock,
  type Verb,
  verbs,
} from './step.ts';
import type { z } from 'zod';

/** Defaults of the document for its tasks. */
export interface TaskDefaults {
  readonly retry: Retry | null;
  readonly timeout: string | null;
}

const verbSet: ReadonlySet<string> = new Set(verbs);
const allFields = [...new Set([...verbs, ...Object.keys(attributeShape)])];

/** Words of other engines, and of earlier drafts, for the same thing. */
const otherWords = new Map([
  ['concurrence', 'parallel'],
  ['fork', 'parallel'],
  ['case', 'switch'],
  ['for', 'each'],
  ['foreach', 'each'],
  ['sleep', 'wait'],
  ['catch', 'on_error'],
  ['compensate', 'undo'],
  ['id', 'tag'],
]);

const none: Attributes = {
  at: '',
  path: '',
  title: '',
  tag: null,
  when: null,
  timeout: null,
  retry: null,
  onError: [],
  onCancel: null,
  onTimeout: null,
  vars: null,
  background: false,
  result: null,
  undo: null,
};

export class StepReader implements BlockReader {
  readonly reading: Reading;
  readonly defaults: TaskDefaults;

  constructor(reading: Reading, defaults: TaskDefaults) {
    this.reading = reading;
    this.defaults = defaults;
  }

  /** A list of steps at a position of its own. */
  block(value: unknown, place: Place, attributes: Partial<Attributes> = {}): SequenceStep {
    const steps = this.steps(value, place);
    const { at, path } = place;
    return this.#keep({ ...none, ...attributes, at, path: formatPath(path), verb: 'sequence', steps });
  }

  /** The children of a step: one for each entry of a list. */
  steps(value: unknown, place: Place): Step[] {
    if (!Array.isArray(value)) {
      this.reading.fault(place.path, 'must be a list of steps');
      return [];
    }
    const list: readonly unknown[] = value;
    return list.flatMap((entry, i) => {
      const step = this.#step(entry, { ...place, path: [...place.path, i], at: `${place.at}_${i}` });
      return step === undefined ? [] : [step];
    });
  }

  #step(value: unknown, place: Place): Step | undefined {
    const { reading } = this;
    if (typeof value === 'string' && (value === 'break' || value === 'continue'))
      return this.#step({ [value]: true }, place);
    if (!isRecord(value)) {
      reading.fault(place.path, 'must be a step: a mapping with a verb, such as {task: name}');
      return undefined;
    }
    const verb = this.#verbOf(value, place);
    if (verb === undefined) return undefined;
    const parsed = verbSchemas[verb].safeParse(value, faultWords);
    if (!parsed.success) {
      reading.faultsIn(place.path, faultsOf(value, parsed.error.issues, vocabularies[verb]));
      return undefined;
    }
    const attributes = { ...this.#attributes(verb, parsed.data, place), title: titleOf(verb, value) };
    return this.#keep(readVerb(this, verb, parsed.data, attributes, place));
  }

  #keep<S extends Step>(step: S): S {
    this.reading.byPosition.set(step.at, step);
    return step;
  }

  #verbOf(value: Readonly<Record<string, unknown>>, { path }: Place): Verb | undefined {
    const keys = Object.keys(value);
    const found = keys.filter((key) => verbSet.has(key)) as Verb[];
    const [first, second] = found;
    if (first !== undefined && second === undefined) return first;
    if (second !== undefined) {
      this.reading.fault(path, `has two verbs, ${first} and ${second}: make two steps of it`);
      return undefined;
    }
    if (keys.includes('true'))
      this.reading.fault(path, 'has the field true: in YAML 1.1 that is `on`; declare YAML 1.2 or quote it');
    else this.reading.fault(path, `has no verb${this.#verbHint(keys)}`);
    return undefined;
  }

  #verbHint(keys: readonly string[]): string {
    for (const key of keys) {
      const other = otherWords.get(key);
      if (other !== undefined) return `; ${key} is called ${other} here`;
      const hint = didYouMean(key, allFields);
      if (hint !== '') return hint;
    }
    return `; it needs one of ${verbs.join(', ')}`;
  }

  #attributes(verb: Verb, data: AttributeData, place: Place): Omit<Attributes, 'title'> {
    const { reading } = this;
    const { at, path } = place;
    const field = (key: string): readonly PathPart[] => [...path, key];
    const isTask = verb === 'task';
    const timeout = data.timeout ?? (isTask ? (this.defaults.timeout ?? undefined) : undefined);
    return {
      at,
      path: formatPath(path),
      tag: data.tag ?? null,
      when: data.when === undefined ? null : reading.expression(data.when, place, field('when')),
      timeout: timeout === undefined ? null : readDuration(reading, timeout, place, field('timeout')),
      retry: data.retry === undefined ? (isTask ? this.defaults.retry : null) : readRetry(data.retry),
      onError: this.handlers(data.on_error, place, field('on_error')),
      onCancel: this.#optional(data.on_cancel, { ...place, loops: [] }, 'on_cancel', 'c'),
      onTimeout: this.#optional(data.on_timeout, place, 'on_timeout', 't'),
      vars: data.vars === undefined ? null : reading.value(data.vars, place, field('vars')),
      background: data.background === true,
      result: data.result === undefined ? null : parseTarget(data.result),
      undo: this.#undo(data.undo, place),
    };
  }

  #optional(value: unknown, place: Place, key: string, letter: string): SequenceStep | null {
    if (value === undefined) return null;
    return this.block(value, { ...place, path: [...place.path, key], at: `${place.at}_${letter}` });
  }

  /** Either handlers or plain steps, which handle every error. */
  handlers(value: readonly unknown[] | undefined, place: Place, path: readonly PathPart[]): ErrorHandler[] {
    if (value === undefined) return [];
    const inside = { ...place, path, names: new Set([...place.names, 'err']) };
    if (!value.some(isHandler)) return [{ match: null, block: this.block(value, { ...inside, at: `${place.at}_e0` }) }];
    return value.flatMap((entry, i) => {
      const here = { ...inside, path: [...path, i], at: `${place.at}_e${i}` };
      const parsed = handlerShape.safeParse(entry, faultWords);
      if (parsed.success) return [this.#handler(parsed.data, here)];
      this.reading.faultsIn(here.path, faultsOf(entry, parsed.error.issues, handlerVocabulary));
      return [];
    });
  }

  #handler(data: z.infer<typeof handlerShape>, place: Place): ErrorHandler {
    const block = this.block(data.do, { ...place, path: [...place.path, 'do'] });
    const { match } = data;
    if (match === undefined) return { match: null, block };
    if (typeof match === 'string' && hasExpression(match)) {
      const condition = this.reading.value(match, place, [...place.path, 'match']);
      return { match: { condition }, block };
    }
    return { match: { codes: typeof match === 'string' ? [match] : match }, block };
  }

  #undo(value: unknown, place: Place): UndoBlock | null {
    if (value === undefined) return null;
    const before = this.reading.byPosition.size;
    const block = this.block(value, { ...place, path: [...place.path, 'undo'], at: `${place.at}_u`, loops: [] });
    const steps = [...this.reading.byPosition.values()].slice(before);
    return { block, reads: [...new Set(steps.flatMap(readsOf))] };
  }
}

/** The variables that the expressions of a step read. */
function readsOf(step: Step): string[] {
  const reads: string[] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    if ('reads' in value && value.reads instanceof Set) reads.push(...(value.reads as Set<string>));
    else if (value instanceof Map) for (const entry of value.values()) visitUnlessStep(entry);
    else for (const entry of Object.values(value)) visitUnlessStep(entry);
  };
  const visitUnlessStep = (value: unknown): void => {
    // child steps are visited by themselves
    if (!(isRecord(value) && typeof value['verb'] === 'string')) visit(value);
  };
  visit(step);
  return reads;
}

function isHandler(value: unknown): boolean {
  return isRecord(value) && 'do' in value && !Object.keys(value).some((key) => verbSet.has(key));
}

export function readRetry(data: z.infer<typeof retryShape>): Retry {
  const span = (value: string): number => unwrapRead(readSpan(value));
  return {
    maxAttempts: data.max_attempts,
    delayMs: data.delay === undefined ? 1_000 : span(data.delay),
    factor: data.factor ?? 2,
    capMs: data.cap === undefined ? 3_600_000 : span(data.cap),
    jitter: data.jitter ?? 0,
    on: data.on ?? null,
  };
}

const vocabularies = Object.fromEntries(
  verbs.map((verb) => [verb, vocabularyOf(`a ${verb} step`, { ...verbShapes[verb], ...attributeShape })]),
) as Readonly<Record<Verb, Vocabulary>>;

const handlerVocabulary = vocabularyOf('a handler', handlerShape.shape);

function vocabularyOf(label: string, shape: Readonly<Record<string, z.ZodType>>): Vocabulary {
  const objects = new Map([
    ['', { label, fields: Object.keys(shape) }],
    ['retry', { label: 'retry', fields: Object.keys(retryShape.shape) }],
  ]);
  return { objects, movedFields: otherWords };
}
