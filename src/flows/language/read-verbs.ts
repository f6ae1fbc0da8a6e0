/** Reads what is special to each verb. `data` has passed the schema of the verb. */
import type { PathPart } from '../../kernel/text/path.ts';
import { documentedKinds } from '../../runtimes/kinds.ts';
import type { Json } from '../json.ts';
import { findFormFaults } from '../workitems/form.ts';
import { readDuration, readMoment } from './read-duration.ts';
import type { BlockReader, Place } from './reading.ts';
import type { StepData } from './shapes.ts';
import type { Attributes, EventSpec, SequenceStep, Step, TaskWork, Verb } from './step.ts';
import { parseTarget } from './target.ts';

const defaultMaxRounds = 10_000;

export function readVerb(reader: BlockReader, verb: Verb, data: unknown, base: Attributes, place: Place): Step {
  switch (verb) {
    case 'sequence': {
      const { sequence } = data as StepData<'sequence'>;
      return { ...base, verb, steps: reader.steps(sequence, below(place, verb)) };
    }
    case 'parallel':
      return readParallel(reader, data as StepData<'parallel'>, base, place);
    case 'if':
      return readIf(reader, data as StepData<'if'>, base, place);
    case 'switch':
      return readSwitch(reader, data as StepData<'switch'>, base, place);
    case 'loop':
      return readLoop(reader, data as StepData<'loop'>, base, place);
    case 'each':
      return readEach(reader, data as StepData<'each'>, base, place);
    case 'task':
      return readTask(reader, data as StepData<'task'>, base, place);
    case 'call': {
      const { call, with: input = {}, mode } = data as StepData<'call'>;
      const flow = reader.reading.value(call, place, [...place.path, 'call']);
      const given = reader.reading.value(input, place, [...place.path, 'with']);
      return { ...base, verb, flow, input: given, mode: mode ?? 'child' };
    }
    case 'wait':
      return readWait(reader, data as StepData<'wait'>, base, place);
    case 'on':
      return readOn(reader, data as StepData<'on'>, base, place);
    case 'signal':
      return readSignal(reader, data as StepData<'signal'>, base, place);
    case 'set': {
      const { set } = data as StepData<'set'>;
      const assignments = Object.entries(set).map(([path, value]) => ({
        target: parseTarget(path),
        value: reader.reading.value(value, place, [...place.path, 'set', path]),
      }));
      return { ...base, verb, assignments };
    }
    case 'fail': {
      const { fail } = data as StepData<'fail'>;
      return { ...base, verb, error: reader.reading.value(fail, place, [...place.path, 'fail']) };
    }
    case 'cancel': {
      const { cancel, kill } = data as StepData<'cancel'>;
      return { ...base, verb, of: cancel, kill: kill === true };
    }
    case 'break':
      return readBreak(reader, verb, (data as StepData<'break'>).break, base, place);
    case 'continue':
      return readBreak(reader, verb, (data as StepData<'continue'>).continue, base, place);
    default:
      return verb satisfies never;
  }
}

function below(place: Place, key: PathPart, more: Partial<Place> = {}): Place {
  return { ...place, path: [...place.path, key], ...more };
}

/** A block of steps as the n-th child. */
function child(reader: BlockReader, value: unknown, place: Place, key: PathPart, index: number): SequenceStep {
  return reader.block(value, below(place, key, { at: `${place.at}_${index}` }));
}

function readParallel(reader: BlockReader, data: StepData<'parallel'>, base: Attributes, place: Place): Step {
  const steps = reader.steps(data.parallel, below(place, 'parallel', { loops: [] }));
  const { expect = null } = data;
  const branches = steps.filter(({ background }) => !background).length;
  if (expect !== null && expect > branches)
    reader.reading.fault([...place.path, 'expect'], `must be at most the number of branches, ${branches}`);
  const { rest = 'cancel', merge = 'first', concurrent = null } = data;
  return { ...base, verb: 'parallel', steps, expect, rest, merge, concurrent };
}

function readIf(reader: BlockReader, data: StepData<'if'>, base: Attributes, place: Place): Step {
  const condition = reader.reading.expression(data.if, place, [...place.path, 'if']);
  const yes = child(reader, data.then, place, 'then', 0);
  const no = data.else === undefined ? null : child(reader, data.else, place, 'else', 1);
  return { ...base, verb: 'if', condition, yes, no };
}

function readSwitch(reader: BlockReader, data: StepData<'switch'>, base: Attributes, place: Place): Step {
  const value = reader.reading.expression(data.switch, place, [...place.path, 'switch']);
  const entries = Object.entries(data.cases);
  if (entries.length === 0) reader.reading.fault([...place.path, 'cases'], 'must not be empty');
  const cases = new Map(
    entries.map(([key, steps], i) => [
      key,
      reader.block(steps, { ...below(place, 'cases'), path: [...place.path, 'cases', key], at: `${place.at}_${i}` }),
    ]),
  );
  const otherwise = data.else === undefined ? null : child(reader, data.else, place, 'else', entries.length);
  return { ...base, verb: 'switch', value, cases, otherwise };
}

function readLoop(reader: BlockReader, data: StepData<'loop'>, base: Attributes, place: Place): Step {
  const { reading } = reader;
  const inside = { ...place, loops: [...place.loops, base.tag] };
  const { while: test, until, every, max = defaultMaxRounds } = data;
  if (
    test === undefined &&
    until === undefined &&
    data.max === undefined &&
    every === undefined &&
    !hasBreak(data.loop)
  )
    reading.warn(
      base.path,
      `has no end: give it while, until, max or a break; it fails after ${defaultMaxRounds} rounds`,
    );
  return {
    ...base,
    verb: 'loop',
    body: child(reader, data.loop, inside, 'loop', 0),
    while: test === undefined ? null : reading.expression(test, place, [...place.path, 'while']),
    until: until === undefined ? null : reading.expression(until, place, [...place.path, 'until']),
    every: every === undefined ? null : readDuration(reading, every, place, [...place.path, 'every']),
    max,
  };
}

/** Whether a document has a `break` somewhere. */
function hasBreak(value: unknown): boolean {
  if (value === 'break') return true;
  if (typeof value !== 'object' || value === null) return false;
  return 'break' in value || Object.values(value).some(hasBreak);
}

function readEach(reader: BlockReader, data: StepData<'each'>, base: Attributes, place: Place): Step {
  const items = reader.reading.expression(data.each, place, [...place.path, 'each']);
  const names = new Set([...place.names, 'it', 'index', 'key']);
  const body = child(reader, data.do, { ...place, names, loops: [...place.loops, base.tag] }, 'do', 0);
  const { concurrent = 1, merge = 'first' } = data;
  return { ...base, verb: 'each', items, body, concurrent, merge };
}

function readTask(reader: BlockReader, data: StepData<'task'>, base: Attributes, place: Place): Step {
  const { reading } = reader;
  const fields: Readonly<Record<string, unknown>> = data;
  const blocks = [...documentedKinds.map(({ kind }) => kind), 'human'].filter((kind) => fields[kind] !== undefined);
  if (blocks.length > 1) reading.fault(place.path, `has ${blocks.join(' and ')}: a task has at most one of them`);
  const human = data.human;
  if (human !== undefined && human.assignee === undefined && human.team === undefined)
    reading.fault([...place.path, 'human'], 'needs an assignee or a team');
  const { task, with: input = {}, queue = null, pool = null, priority = 'normal' } = data;
  return {
    ...base,
    verb: 'task',
    name: task,
    input: reading.value(input, place, [...place.path, 'with']),
    work: readWork(reader, fields, blocks[0], place),
    queue,
    pool,
    priority,
  };
}

function readWork(
  reader: BlockReader,
  fields: Readonly<Record<string, unknown>>,
  kind: string | undefined,
  place: Place,
): TaskWork {
  if (kind === undefined) return { kind: 'hosted' };
  const path = [...place.path, kind];
  const { reading } = reader;
  const documented = documentedKinds.find((each) => each.kind === kind);
  if (documented === undefined) {
    const { form = {} } = fields[kind] as { readonly form?: Json };
    reading.faultsIn([...path, 'form'], findFormFaults(form));
    return { kind: 'human', item: reading.value(fields[kind], place, path) };
  }
  const { callback } = fields[kind] as { readonly callback?: string };
  return {
    kind: 'run',
    runtime: kind,
    block: reading.value(documented.build(fields[kind]), place, path),
    callback: callback === undefined ? null : readDuration(reading, callback, place, [...path, 'callback']),
  };
}

function readWait(reader: BlockReader, { wait }: StepData<'wait'>, base: Attributes, place: Place): Step {
  const { reading } = reader;
  const path = [...place.path, 'wait'];
  if (typeof wait === 'string')
    return { ...base, verb: 'wait', for: readDuration(reading, wait, place, path), until: null, on: [] };
  const { for: time, until, on } = wait;
  if (time === undefined && until === undefined && on === undefined) reading.fault(path, 'needs for, until or on');
  const specs = on === undefined ? [] : Array.isArray(on) ? on : [on];
  return {
    ...base,
    verb: 'wait',
    for: time === undefined ? null : readDuration(reading, time, place, [...path, 'for']),
    until: until === undefined ? null : readMoment(reading, until, place, [...path, 'until']),
    on: specs.flatMap((spec, i) => readSpec(reader, spec, place, [...path, 'on', ...(Array.isArray(on) ? [i] : [])])),
  };
}

type SpecData = StepData<'on'>['on'];

/** The fields of an event: which kind they make, and the fields that go with it. */
const specFields = {
  signal: ['match'],
  entered: [],
  left: [],
  every: ['missed'],
  cron: ['timezone', 'missed'],
} as const;

function readSpec(reader: BlockReader, data: SpecData, place: Place, path: readonly PathPart[]): EventSpec[] {
  const { reading } = reader;
  const kinds = Object.keys(specFields) as (keyof typeof specFields)[];
  const [kind, other] = kinds.filter((each) => data[each] !== undefined);
  if (kind === undefined || other !== undefined) {
    reading.fault(path, `needs exactly one of ${kinds.join(', ')}`);
    return [];
  }
  const allowed: ReadonlySet<string> = new Set([kind, ...specFields[kind]]);
  for (const field of Object.keys(data))
    if (!allowed.has(field)) reading.fault([...path, field], `does not go with ${kind}`);
  const { missed = 'one' } = data;
  if (data.signal !== undefined) {
    const inside = { ...place, names: new Set([...place.names, 'event']) };
    const match = data.match === undefined ? null : reading.expression(data.match, inside, [...path, 'match']);
    return [{ kind: 'signal', name: reading.value(data.signal, place, [...path, 'signal']), match }];
  }
  if (data.entered !== undefined) return [{ kind: 'entered', tag: data.entered }];
  if (data.left !== undefined) return [{ kind: 'left', tag: data.left }];
  if (data.every !== undefined)
    return [{ kind: 'every', every: readDuration(reading, data.every, place, [...path, 'every']), missed }];
  return [{ kind: 'cron', cron: data.cron ?? '', timezone: data.timezone ?? null, missed }];
}

function readOn(reader: BlockReader, data: StepData<'on'>, base: Attributes, place: Place): Step {
  const [event] = readSpec(reader, data.on, place, [...place.path, 'on']);
  const names = new Set([...place.names, 'event']);
  const body = child(reader, data.do, { ...place, names, loops: [] }, 'do', 0);
  const { count = null, mode } = data;
  const spec = event ?? { kind: 'entered', tag: '' };
  // the steps after it begin at once
  return { ...base, background: true, verb: 'on', event: spec, body, count, inOrder: mode !== 'parallel' };
}

function readSignal(reader: BlockReader, data: StepData<'signal'>, base: Attributes, place: Place): Step {
  const { reading } = reader;
  return {
    ...base,
    verb: 'signal',
    name: reading.value(data.signal, place, [...place.path, 'signal']),
    to: data.to === undefined ? null : reading.value(data.to, place, [...place.path, 'to']),
    payload: reading.value(data.payload, place, [...place.path, 'payload']),
  };
}

function readBreak(
  reader: BlockReader,
  verb: 'break' | 'continue',
  of: string | true,
  base: Attributes,
  place: Place,
): Step {
  const tag = of === true ? null : of;
  const isInside = tag === null ? place.loops.length > 0 : place.loops.includes(tag);
  if (!isInside)
    reader.reading.fault(
      [...place.path, verb],
      tag === null ? 'must be inside a loop or an each' : `names no loop or each around it: ${tag}`,
    );
  return { ...base, verb, of: tag };
}
