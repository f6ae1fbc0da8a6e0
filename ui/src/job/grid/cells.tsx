/** The meaning of the letters of a grid's row, and how each is drawn. */
import type { ReactElement } from 'react';
import type { cellLetters } from '../../../../src/api/jobs/view-endpoints.ts';
import type { State } from '../../../../src/api/shapes.ts';
import { type Shown, shapeOf, wordOf } from '../../kit/state.tsx';

type Letter = (typeof cellLetters)[keyof typeof cellLetters];

const states: Readonly<Record<Exclude<Letter, '-'>, State>> = {
  w: 'waiting',
  q: 'active',
  r: 'running',
  y: 'retry',
  s: 'success',
  f: 'failure',
  t: 'timeout',
  e: 'error',
  c: 'cancelled',
};

export interface Cell {
  readonly state: State | undefined;
  readonly word: string;
  /** Made once, so that a cell that keeps its state is not drawn again. */
  readonly shape: ReactElement | null;
}

const none: Cell = { state: undefined, word: 'not begun', shape: null };

const cells = new Map<string, Cell>(
  Object.entries(states).map(([letter, state]) => [
    letter,
    { state, word: wordOf(state), shape: <Shape state={state} /> },
  ]),
);

/** For the legend, in order of importance. */
export const shownStates: readonly State[] = Object.values(states);

export function cellOf(letter: string | undefined): Cell {
  return cells.get(letter ?? '') ?? none;
}

export function Shape({ state }: { readonly state: Shown }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={shapeOf(state)} />
    </svg>
  );
}
