/**
 * Verbs whose children run at the same time: `parallel` and `each`. Each child has a frame: what it sets is merged when it has ended.
 *
 * Results and items are stored apart from the node, because a node is stored anew with every change.
 */
import { brief } from '../../expression/values.ts';
import { isList, isObject, type Json, type JsonObject } from '../../json.ts';
import type { EachStep, ParallelStep, Step } from '../../language/step.ts';
import { mergeAnswers, mergeFields } from '../fields.ts';
import { type ChildEnd, checkSize, type Run, StepFailure, type VerbRules } from '../run.ts';
import { indexOf } from './blocks.ts';

export const parallel: VerbRules<ParallelStep> = {
  execute(run, nid, step) {
    const { main } = branchesOf(step);
    for (const { at, background } of step.steps) if (background) run.start(nid, at, { role: 'background' });
    run.remember(nid, { next: 0, ended: 0, answered: 0 });
    for (let i = 0; i < Math.min(main.length, step.concurrent ?? main.length); i++) startBranch(run, nid, step);
    if (main.length === 0) run.complete(nid, []);
  },
  ended(run, nid, step, child) {
    // enough have answered, and this one was on its way already
    if (run.memory(nid)['isOver'] === true) return;
    const { main, places } = branchesOf(step);
    const index = places.get(child.at) ?? -1;
    const { ended, answered } = noteAnswer(run, nid, child, index, step.merge);
    const isMet = answered >= (step.expect ?? main.length);
    const begun = isMet ? Number(run.memory(nid)['next']) : main.length;
    if (ended === begun || (isMet && step.rest === 'cancel')) completeBranches(run, nid, main.length);
    else if (!isMet) startBranch(run, nid, step);
  },
};

interface Branches {
  readonly main: readonly Step[];
  /** By position: the place among them. */
  readonly places: ReadonlyMap<string, number>;
}

const knownBranches = new WeakMap<ParallelStep, Branches>();

/** The steps that are waited for. There may be thousands, and each of them asks. */
function branchesOf(step: ParallelStep): Branches {
  const known = knownBranches.get(step);
  if (known !== undefined) return known;
  const main = step.steps.filter(({ background }) => !background);
  const branches = { main, places: new Map(main.map(({ at }, i) => [at, i] as const)) };
  knownBranches.set(step, branches);
  return branches;
}

function startBranch(run: Run, nid: string, parallelStep: ParallelStep): void {
  const next = Number(run.memory(nid)['next'] ?? 0);
  const step = branchesOf(parallelStep).main[next];
  if (step === undefined) return;
  run.remember(nid, { next: next + 1 });
  run.start(nid, step.at, { frame: { f: {}, ret: null }, vars: {} });
}

/**
 * Keeps the result of a child, and its fields until all are merged. Cancelled children count as ended only. An item that was left has
 * no result, but what it has set counts.
 */
function noteAnswer(run: Run, nid: string, child: ChildEnd, index: number, merge: ParallelStep['merge']) {
  const { frame, kind } = child;
  const memory = run.memory(nid);
  const isAnswer = kind === 'done';
  if (kind !== 'cancelled' && frame !== null) {
    if (isAnswer) keepAnswer(run, nid, index, frame.ret);
    if (Object.keys(frame.f).length > 0) {
      const before = asFields(run.draft.stored(`${nid}.merged`));
      run.draft.keep(`${nid}.merged`, mergeAnswers(before, frame.f, merge));
    }
  }
  const counts = {
    ended: Number(memory['ended'] ?? 0) + 1,
    answered: Number(memory['answered'] ?? 0) + (isAnswer ? 1 : 0),
  };
  run.remember(nid, counts);
  return counts;
}

function keepAnswer(run: Run, nid: string, index: number, ret: Json): void {
  checkSize(ret);
  run.draft.keep(`${nid}.r${index}`, ret);
}

function asFields(value: Json | undefined): JsonObject {
  return value !== undefined && isObject(value) ? value : {};
}

/** The result is the list of results, in the order of the children. */
function completeBranches(run: Run, nid: string, count: number): void {
  run.remember(nid, { isOver: true });
  mergeFields(run.draft, nid, asFields(run.draft.stored(`${nid}.merged`)));
  const results = Array.from({ length: count }, (_, i) => run.draft.stored(`${nid}.r${i}`) ?? null);
  run.complete(nid, results);
}

export const each: VerbRules<EachStep> = {
  execute(run, nid, step) {
    const { items, keys } = itemsOf(run.evaluate(nid, step.items));
    run.draft.keep(`${nid}.items`, items);
    if (keys !== null) run.draft.keep(`${nid}.keys`, keys);
    run.remember(nid, { next: 0, ended: 0, answered: 0 });
    for (let i = 0; i < Math.min(items.length, step.concurrent); i++) startItem(run, nid, step);
    if (items.length === 0) run.complete(nid, []);
  },
  ended(run, nid, step, child) {
    if (run.memory(nid)['isOver'] === true) return;
    const index = Number(child.locals?.['index'] ?? indexOf(child.at));
    const { ended } = noteAnswer(run, nid, child, index, step.merge);
    // one after the other: each item sees what those before it have set
    if (step.concurrent === 1 && child.kind !== 'cancelled' && step.merge !== 'ignore')
      mergeFields(run.draft, nid, child.frame?.f ?? {});
    const count = listOf(run.draft.stored(`${nid}.items`)).length;
    const isLeft = run.memory(nid)['leaving'] === 'break';
    run.remember(nid, { leaving: null });
    if (isLeft || ended === count) completeItems(run, nid, step, count);
    else startItem(run, nid, step);
  },
};

function completeItems(run: Run, nid: string, step: EachStep, count: number): void {
  if (step.concurrent === 1) run.draft.drop(`${nid}.merged`);
  completeBranches(run, nid, count);
}

function startItem(run: Run, nid: string, { body }: EachStep): void {
  const index = Number(run.memory(nid)['next'] ?? 0);
  const items = listOf(run.draft.stored(`${nid}.items`));
  if (index >= items.length) return;
  const key = listOf(run.draft.stored(`${nid}.keys`))[index] ?? index;
  run.remember(nid, { next: index + 1 });
  run.start(nid, body.at, { locals: { it: items[index] ?? null, index, key }, vars: {}, frame: { f: {}, ret: null } });
}

function listOf(value: Json | undefined): readonly Json[] {
  return value !== undefined && isList(value) ? value : [];
}

function itemsOf(value: Json): { readonly items: readonly Json[]; readonly keys: readonly string[] | null } {
  if (isList(value)) return { items: value, keys: null };
  if (isObject(value)) return { items: Object.values(value), keys: Object.keys(value) };
  throw new StepFailure('expression_error', `each needs a list or a mapping, not ${brief(value)}`);
}
