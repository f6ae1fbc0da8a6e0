/** Verbs that end at once: `set`, `fail`, `cancel`. */
import { isObject, type Json } from '../../json.ts';
import type { CancelStep, FailStep, SetStep } from '../../language/step.ts';
import { assign } from '../fields.ts';
import { checkSize, StepFailure, type VerbRules } from '../run.ts';

export const set: VerbRules<SetStep> = {
  execute(run, nid, { assignments }) {
    const values = assignments.map(({ target, value }) => ({ target, value: run.evaluate(nid, value) }));
    for (const { value } of values) checkSize(value);
    for (const { target, value } of values) assign(run.draft, nid, target, value);
    run.complete(nid);
  },
};

export const fail: VerbRules<FailStep> = {
  execute(run, nid, { error }) {
    const value = run.evaluate(nid, error);
    if (!isObject(value)) throw new StepFailure('failed', textOf(value), { isFinal: true });
    const { code = 'failed', message = '', data = null } = value;
    throw new StepFailure(textOf(code), textOf(message), { data, isFinal: true });
  },
};

function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

export const cancel: VerbRules<CancelStep> = {
  execute(run, nid, { of, kill }) {
    // it may be inside of what it cancels
    run.complete(nid);
    for (const [other, { at }] of Object.entries(run.draft.nodes))
      if (run.flow.byPosition.get(at)?.tag === of) run.close(other, { kind: kill ? 'kill' : 'cancel' });
  },
};
