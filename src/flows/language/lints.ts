/** Warnings about flows that are valid and still look like mistakes. */
import type { Fault } from '../../errors.ts';
import { didYouMean } from '../../kernel/text/suggest.ts';
import type { Reading } from './reading.ts';
import { eventsOf, type Flow, type SequenceStep, type Step } from './step.ts';

export function lintFlow(flow: Flow, reading: Reading): void {
  const tags = new Set([...flow.byPosition.values()].flatMap(({ tag }) => tag ?? []));
  for (const step of flow.byPosition.values()) {
    for (const { path, message } of lintStep(step, tags, flow.byPosition)) reading.warn(path, message);
  }
}

function lintStep(step: Step, tags: ReadonlySet<string>, byPosition: Flow['byPosition']): Fault[] {
  const faults: Fault[] = [];
  const warn = (message: string): number => faults.push({ path: step.path, message });
  if (step.verb === 'cancel' && !tags.has(step.of)) warn(unknownTag(step.of, tags));
  for (const spec of eventsOf(step))
    if ((spec.kind === 'entered' || spec.kind === 'left') && !tags.has(spec.tag)) warn(unknownTag(spec.tag, tags));
  if (step.verb === 'sequence') for (const message of unreachable(step)) warn(message);
  if (step.onTimeout !== null && step.timeout === null) warn('has on_timeout, but no timeout');
  if (step.verb === 'task' && step.work.kind === 'human' && !isBounded(step.at, byPosition))
    warn('waits for a person without a timeout, its own or one around it: it may wait for ever');
  return faults;
}

/** Whether the step or one around it has a timeout. That of a step does not hold in the step's handlers. */
function isBounded(at: string, byPosition: Flow['byPosition']): boolean {
  const keys = at.split('_');
  while (keys.length > 0) {
    const step = byPosition.get(keys.join('_'));
    if (step !== undefined && step.timeout !== null) return true;
    const isHandler = /^[a-z]/.test(keys.pop() ?? '');
    if (isHandler) keys.pop();
  }
  return false;
}

function unknownTag(tag: string, tags: ReadonlySet<string>): string {
  return `names the tag ${tag}, which no step has${didYouMean(tag, tags)}`;
}

const endings: ReadonlySet<Step['verb']> = new Set(['fail', 'break', 'continue']);

function unreachable({ steps }: SequenceStep): string[] {
  const end = steps.findIndex((step) => endings.has(step.verb) && step.when === null);
  const next = end < 0 ? undefined : steps[end + 1];
  return next === undefined ? [] : [`never reaches ${next.path}, because ${steps[end]?.path} ends it`];
}
