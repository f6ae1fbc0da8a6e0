/** Names of steps for lists in which there is no tree around them: `task charge`, or the part of a step that they are: `then`. */
import type { TreeStep } from './tree/tree-model.ts';

export interface StepName {
  readonly verb: string;
  readonly title: string;
  readonly path: string;
}

export interface StepNames {
  /** Of the step that a node visits; the id of the node if its step is not there any more. */
  readonly ofNode: (node: string) => StepName;
}

export function makeStepNames(root: TreeStep): StepNames {
  const names = new Map<string, StepName>();
  collect(root, names);
  return {
    ofNode: (node) => names.get(node.slice(0, node.lastIndexOf('-'))) ?? { verb: '', title: node, path: '' },
  };
}

function collect(step: TreeStep, names: Map<string, StepName>): void {
  names.set(step.at, nameOf(step));
  for (const child of step.children) collect(child, names);
}

function nameOf({ at, verb, title, branch, path, tag }: TreeStep): StepName {
  if (at === '0') return { verb: '', title: 'the whole flow', path: '' };
  if (branch !== null) return { verb: '', title: branch, path };
  return { verb, title: title === '' ? (tag ?? '') : title, path };
}
