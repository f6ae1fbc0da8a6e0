/** The steps of a flow as people see them: nested, each with its place in the document, its verb and one line about it. */
import type { Flow, SequenceStep, Step } from './step.ts';

export interface OutlineStep {
  /** The place in the document: `steps[0].then[1]`; `steps` for the root. */
  readonly path: string;
  /** The position in the tree, with which ids of nodes begin: `0_1`. */
  readonly at: string;
  readonly verb: Step['verb'];
  readonly title: string;
  readonly tag: string | null;
  /** Which part of the step around it: `then`, `else`, `case de`, `do`, `on_error`, `on_cancel`, `on_timeout`, `undo`. */
  readonly branch: string | null;
  readonly children: readonly OutlineStep[];
}

interface Part {
  readonly step: Step;
  readonly branch: string | null;
}

export function outlineOf({ root }: Pick<Flow, 'root'>): OutlineStep {
  return outline({ step: root, branch: null });
}

function outline({ step, branch }: Part): OutlineStep {
  const { path, at, verb, title, tag } = step;
  return { path, at, verb, title, tag, branch, children: partsOf(step).map(outline) };
}

/** The steps inside a step, in the order of the document; handlers and compensations come last. */
function partsOf(step: Step): Part[] {
  return [...mainParts(step), ...handlerParts(step)];
}

function mainParts(step: Step): Part[] {
  switch (step.verb) {
    case 'sequence':
    case 'parallel':
      return step.steps.map((inner) => ({ step: inner, branch: null }));
    case 'if':
      return [part(step.yes, 'then'), part(step.no, 'else')].flat();
    case 'switch':
      return [
        ...[...step.cases].map(([key, block]) => part(block, `case ${key}`)),
        part(step.otherwise, 'else'),
      ].flat();
    case 'loop':
    case 'each':
    case 'on':
      return part(step.body, 'do');
    case 'task':
    case 'call':
    case 'wait':
    case 'signal':
    case 'set':
    case 'fail':
    case 'cancel':
    case 'break':
    case 'continue':
      return [];
    default:
      return step satisfies never;
  }
}

function handlerParts({ onError, onTimeout, onCancel, undo }: Step): Part[] {
  return [
    ...onError.flatMap(({ block }) => part(block, 'on_error')),
    ...part(onTimeout, 'on_timeout'),
    ...part(onCancel, 'on_cancel'),
    ...part(undo?.block ?? null, 'undo'),
  ];
}

function part(block: SequenceStep | null, branch: string): Part[] {
  return block === null ? [] : [{ step: block, branch }];
}
