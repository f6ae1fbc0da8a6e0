/**
 * The output of commands: tables and lines for people, or with `--json` one JSON value (JSON lines for a stream). Results go
 * to stdout, everything else to stderr.
 */
import type { Io } from '../session/io.ts';
import { makePaint, type Paint, type Style } from './paint.ts';
import { type Column, type Row, renderTable } from './table.ts';
import { oneLine } from './width.ts';

export interface Output {
  readonly json: boolean;
  readonly paint: Paint;
  /** Columns of the terminal; undefined without a terminal. */
  readonly width: number | undefined;
  /** Prints one JSON value if `--json` was given, else calls `show`. */
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

/** The name of a state on screen. The API of Waterwheel calls the state of queued runs `active`; screens say `ready`. */
export function stateWord(state: string): string {
  return state === 'active' ? 'ready' : state;
}

export function stateCell(state: string): { readonly text: string; readonly style: Style } {
  return { text: stateWord(state), style: stateStyle(state) };
}

/** Formats a time to the second, with milliseconds only if they are not zero. */
export function showTime(text: string | null): string {
  return text === null ? '-' : new Date(text).toISOString().replace('.000Z', 'Z');
}

export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
