/** What each verb does. */
import type { Step, Verb } from '../../language/step.ts';
import type { VerbRules } from '../run.ts';
import { ifRules, sequence, switchRules } from './blocks.ts';
import { each, parallel } from './branches.ts';
import { on, signal, wait } from './events.ts';
import { leave, loop } from './loop.ts';
import { cancel, fail, set } from './simple.ts';
import { call, task } from './work.ts';

const rules: { readonly [V in Verb]: VerbRules<Extract<Step, { verb: V }>> } = {
  sequence,
  parallel,
  if: ifRules,
  switch: switchRules,
  loop,
  each,
  task,
  call,
  wait,
  on,
  signal,
  set,
  fail,
  cancel,
  break: leave,
  continue: leave,
};

/** The rules of a step's verb. They are given that step only, so its type fits. */
export function rulesOf({ verb }: Step): VerbRules {
  return rules[verb];
}
