/** `millrace flow test`: executes a flow on this machine, with a clock that only the flags move, and prints what happens when. */
import { type ParsedFlow, parseFlow } from '../../../flows/language/parse-flow.ts';
import type { Json } from '../../../flows/json.ts';
import { FlowTest } from '../../../flows/testing/test-flow.ts';
import type { TimelineEntry } from '../../../flows/testing/timeline.ts';
import { MillraceError } from '../../../errors.ts';
import { formatDuration } from '../../../kernel/text/duration.ts';
import type { Style } from '../../print/paint.ts';
import type { Row } from '../../print/table.ts';
import { addSource, readDocumentFiles, showFault } from '../../session/document-files.ts';
import { Ended, exitCodes, UsageError } from '../../session/exit.ts';
import { readJsonFlag } from '../../session/json-value.ts';
import { checkInstant } from '../../session/references.ts';
import type { Session } from '../../session/session.ts';
import { perform, standIns, type TestAction } from './test-actions.ts';

export interface SimulateOptions {
  readonly input?: string | undefined;
  readonly now?: string | undefined;
}

export async function simulate(
  session: Session,
  path: string,
  options: SimulateOptions,
  actions: readonly TestAction[],
): Promise<void> {
  const flow = await readFlow(session, path);
  const input = options.input === undefined ? {} : await readJsonFlag(session.io, '--input', options.input);
  const now = options.now === undefined ? {} : { now: new Date(checkInstant(options.now)) };
  const test = new FlowTest(flow, { input, ...now, ...standIns(flow, actions), signal: session.signal });
  const startedAt = test.now;
  await withHint(async () => {
    await test.launch();
    await perform(test, flow, actions);
  });
  report(session, test, startedAt);
  if (['failed', 'incident'].includes(test.status)) throw new Ended(exitCodes.failed);
}

/** A flow that it calls has no result: the test does not know other flows. */
async function withHint(act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (!(error instanceof MillraceError) || error.code !== 'not_found') throw error;
    throw new UsageError(`${error.message}; give its result: --answer FLOW=JSON`);
  }
}

async function readFlow({ io }: Session, path: string): Promise<Extract<ParsedFlow, { ok: true }>['flow']> {
  const { documents, faults } = await readDocumentFiles(io, [path]);
  const parsed = documents.map(({ source, value }) => ({ source, result: parseFlow(value) }));
  const all = [
    ...faults,
    ...parsed.flatMap(({ source, result }) => (result.ok ? [] : addSource(source, result.faults))),
  ];
  if (all.length > 0) {
    const list = all.map((fault) => ({ path: '', message: showFault(fault) }));
    throw new MillraceError('bad_document', 'The flow is not valid', { faults: list });
  }
  const [first, ...more] = parsed.flatMap(({ result }) => (result.ok ? [result.flow] : []));
  if (first !== undefined && more.length === 0) return first;
  throw new UsageError(`${path} holds ${more.length + 1} flows; give a file with one`);
}

function report({ out, io }: Session, test: FlowTest, startedAt: Date): void {
  const { status, fields, result, error, open, now, timeline } = test;
  out.answer({ status, now, timeline, fields, result, error, open }, () => {
    const seconds = (at: Date): string => at.toISOString().replace(/\.\d+Z$/, 'Z');
    out.table(
      [{ title: 'TIME' }, { title: 'AFTER', align: 'right' }, { title: 'WHAT', flexible: true }, { title: 'STEP' }],
      shorten(timeline, (entry) => [
        seconds(entry.at),
        formatDuration(entry.at.getTime() - startedAt.getTime()),
        { text: sentenceOf(entry), style: styles[entry.event] ?? 'bold' },
        entry.path ?? '',
      ]),
    );
    out.line('');
    out.facts([
      ['status', status],
      ['clock', `${seconds(now)}, ${formatDuration(now.getTime() - startedAt.getTime())} after the start`],
      ['fields', JSON.stringify(fields)],
      ['result', JSON.stringify(result)],
      ...(error === null ? [] : [['error', `${error.code}: ${error.message}`] as const]),
      ...open.map((step) => ['open', step.task === null ? step.path : `${step.task}, at ${step.path}`] as const),
    ]);
  });
  if (open.length > 0 && !out.json && io.stderr.isTTY === true)
    out.note('go on with --skip 1d, --answer TASK=JSON or --signal NAME=JSON');
}

/** Lines of each end of a timeline that are printed, if it is longer than both. A week of reminders every 5 s has 360,000 lines. */
const maxEndLines = 100;

/** The rows of the timeline; of a long one, the first and the last. */
function shorten(timeline: readonly TimelineEntry[], rowOf: (entry: TimelineEntry) => Row): Row[] {
  const left = timeline.length - 2 * maxEndLines;
  if (left <= 0) return timeline.map(rowOf);
  const words = `… ${left.toLocaleString('en')} more; --json has all`;
  return [
    ...timeline.slice(0, maxEndLines).map(rowOf),
    ['', '', { text: words, style: 'dim' }, ''],
    ...timeline.slice(-maxEndLines).map(rowOf),
  ];
}

const styles: Partial<Record<TimelineEntry['event'], Style>> = {
  incident: 'red',
  failed: 'red',
  answered: 'green',
  asked: 'yellow',
  fired: 'dim',
};

const timers: Readonly<Record<string, string>> = {
  timeout: 'the timeout is over',
  retry: 'the next attempt begins',
  grace: 'the task has not stopped in time',
  wait: 'the wait is over',
  pause: 'the next round begins',
};

/** `remind({"to":"meg"})`, `approve → {"approved":true}` */
function sentenceOf({ event, name, value }: TimelineEntry): string {
  switch (event) {
    case 'launched':
      return `launched with ${show(value)}`;
    case 'called':
    case 'started':
      return `${name}(${show(value)})`;
    case 'asked':
      return `${name} asks ${personOf(value)}`;
    case 'answered':
      return `${name ?? 'the flow'} → ${show(value)}`;
    case 'failed':
      return `${name ?? 'the flow'} fails: ${show(value)}`;
    case 'stopped':
      return `${name ?? 'the flow'} is cancelled`;
    case 'fired':
      return timers[name ?? ''] ?? 'the time of the event has come';
    case 'signalled':
      return `signal ${name}: ${show(value)}`;
    case 'sent':
      return `sends the signal ${name}: ${show(value)}`;
    case 'operated':
      return `a person does ${name}`;
    case 'incident':
      return `incident: ${show(value)}`;
    case 'ended':
      return `${name}: ${show(value)}`;
    default:
      return event satisfies never;
  }
}

function show(value: Json): string {
  return JSON.stringify(value);
}

function personOf(item: Json): string {
  const field = (name: string): string => {
    const value: unknown = Reflect.get(Object(item), name);
    return typeof value === 'string' ? value : '';
  };
  return `${field('assignee') || field('team') || 'anybody'}: ${field('title')}`;
}
