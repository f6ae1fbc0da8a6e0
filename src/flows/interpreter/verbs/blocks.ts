/** Verbs that begin their children one after the other, or choose one: `sequence`, `if`, `switch`. */
import type { Json } from '../../json.ts';
import type { IfStep, SequenceStep, SwitchStep } from '../../language/step.ts';
import type { Run, VerbRules } from '../run.ts';

export const sequence: VerbRules<SequenceStep> = {
  execute: (run, nid, step) => startNext(run, nid, step, 0),
  ended: (run, nid, step, { at }) => startNext(run, nid, step, indexOf(at) + 1),
};

/** Begins the next step, and the background steps before it. */
function startNext(run: Run, nid: string, { steps }: SequenceStep, from: number): void {
  for (const step of steps.slice(from)) {
    run.start(nid, step.at, { role: step.background ? 'background' : 'main' });
    if (!step.background) return;
  }
  run.complete(nid);
}

/** The last number of a position. */
export function indexOf(at: string): number {
  return Number(at.slice(at.lastIndexOf('_') + 1));
}

export const ifRules: VerbRules<IfStep> = {
  execute(run, nid, { condition, yes, no }) {
    const block = run.holds(nid, condition) ? yes : no;
    if (block === null) run.complete(nid);
    else run.start(nid, block.at);
  },
  ended: (run, nid) => run.complete(nid),
};

export const switchRules: VerbRules<SwitchStep> = {
  execute(run, nid, { value, cases, otherwise }) {
    const block = cases.get(textOf(run.evaluate(nid, value))) ?? otherwise;
    if (block === null) run.complete(nid, null);
    else run.start(nid, block.at);
  },
  ended: (run, nid) => run.complete(nid),
};

function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
