/** Warnings about flows that are valid and still look like mistakes. */
import type { Fault } from '../../errors.ts';
import { didYouMean } from '../../kernel/text/suggest.ts';
import type { Reading } from './reading.ts';
import { eventsOf, type Flow, type SequenceStep, type Step } from './step.ts';

export function lintFlow(flow: Flow, reading: Reading): void {
  const tags = new Set([...flow.byPosition.values()].flatMap(({ tag }) => tag ?? []));
  for (const step of flow.byPosition.values()) {
    for (const { path, message } of lintStep(step, tags)) reading.warn(path, message);
  }
}

function lintStep(step: Step, tags: ReadonlySet<string>): Fault[] {
  const faults: Fault[] = [];
  const warn = (message: string): number => faults.push({ path: step.path, message });
  if (step.verb === 'cancel' && !tags.has(step.of)) warn(unknownTag(step.of, tags));
  for (const spec of eventsOf(step))
    if ((spec.kind === 'entered' || spec.kind === 'left') && !tags.has(spec.tag)) warn(unknownTag(spec.tag, tags));
  if (step.verb === 'sequence') for (const message of unreachable(step)) warn(message);
  if (step.onTimeout !== null && step.timeout === null) warn('has on_timeout, but no timeout');
  if (step.verb === 'task' && step.work.kind === 'human' && step.timeout === null)
    warn('waits for a person without a timeout: nobody is reminded');
  return faults;
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
