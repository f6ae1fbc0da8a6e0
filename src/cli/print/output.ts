/**
 * How commands answer: tables and lines for people, or with `--json` one JSON value (JSON lines where it is a stream).
 * The answer goes to stdout, everything else to stderr.
 */
import type { Io } from '../session/io.ts';
import { makePaint, type Paint, type Style } from './paint.ts';
import { type Column, type Row, renderTable } from './table.ts';
import { oneLine } from './width.ts';

export interface Output {
  readonly json: boolean;
  readonly paint: Paint;
  /** Columns of the terminal; undefined where there is none. */
  readonly width: number | undefined;
  /** Answers with one JSON value if `--json` was given, else as `show` does. */
  answer(value: unknown, show: () => void): void;
  line(text: string): void;
  table(columns: readonly Column[], rows: readonly Row[]): void;
  /** Names and values below each other. */
  facts(facts: readonly (readonly [name: string, value: string])[]): void;
  /** For people, on stderr. */
  note(text: string): void;
}

export function makeOutput(io: Io, json: boolean): Output {
  const paint = makePaint(io.stdout, io.env);
  const line = (text: string): void => void io.stdout.write(`${text}\n`);
  const width = io.stdout.isTTY === true ? io.stdout.columns : undefined;
  return {
    json,
    paint,
    width,
    answer(value, show) {
      if (json) line(JSON.stringify(value, null, 2));
      else show();
    },
    line,
    table(columns, rows) {
      for (const text of renderTable(columns, rows, { width, paint })) line(text);
    },
    facts(facts) {
      const longest = Math.max(...facts.map(([name]) => name.length));
      for (const [name, value] of facts) line(`${paint('dim', `${name}:`.padEnd(longest + 2))}${oneLine(value)}`);
    },
    note: (text) => void io.stderr.write(`${text}\n`),
  };
}

const stateStyles: Readonly<Record<string, Style>> = {
  success: 'green',
  failure: 'red',
  timeout: 'red',
  error: 'red',
  cancelled: 'yellow',
  retry: 'yellow',
  running: 'cyan',
  waiting: 'dim',
  up: 'green',
  gone: 'red',
};

/** The style of a run's or worker's state. */
export function stateStyle(state: string): Style {
  return stateStyles[state] ?? 'bold';
}

/** A state as screens name it: what is queued is `active` only where Waterwheel's paths say so. */
export function stateWord(state: string): string {
  return state === 'active' ? 'ready' : state;
}

export function stateCell(state: string): { readonly text: string; readonly style: Style } {
  return { text: stateWord(state), style: stateStyle(state) };
}

/** An instant or time as tables show it: to the second, or finer only where it is. */
export function showTime(text: string | null): string {
  return text === null ? '-' : new Date(text).toISOString().replace('.000Z', 'Z');
}

export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
