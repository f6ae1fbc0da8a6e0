/** Renders what triggers would do after a dry run of apply, and what they do after a real one. */
import type { z } from 'zod';
import type { outlook } from '../../../api/triggers/endpoints.ts';
import { count, showTime } from '../../print/output.ts';
import { oneLine } from '../../print/width.ts';

type Outlook = z.output<typeof outlook>;
type Trigger = Outlook['triggers'][number];

const [indent, gap] = [' '.repeat(19), '  '];
/** Columns of a line, without a terminal. */
const defaultColumns = 100;

export function outlookLines({ paused, triggers }: Outlook, width = defaultColumns): string[] {
  const note = paused ? ' (paused: nothing fires before it is unpaused)' : '';
  return triggers.flatMap((trigger) => [
    `    trigger ${oneLine(trigger.name)}${note}`,
    ...factsOf(trigger, width - indent.length).flatMap(([what, [first = '', ...rest]]) => [
      `      ${`${what}:`.padEnd(12)} ${first}`,
      ...rest.map((line) => `${indent}${line}`),
    ]),
  ]);
}

/** One line for each trigger that fires or catches up now. */
export function startedLines({ paused, triggers }: Outlook): string[] {
  if (paused) return [];
  return triggers.flatMap(({ name, fires, caught_up: caughtUp }) => {
    const parts: string[] = [];
    if (caughtUp.total > 0) parts.push(`catches up ${count(caughtUp.total, 'instant')}`);
    if (fires.length > 0) parts.push(`fires ${fires.length} now`);
    return parts.length === 0 ? [] : [`    trigger ${oneLine(name)}: ${parts.join(', ')}`];
  });
}

function factsOf(trigger: Trigger, width: number): [what: string, lines: string[]][] {
  const { fires, caught_up: caughtUp, skipped, under_way: underWay, next } = trigger;
  const facts: [string, string[]][] = [];
  if (fires.length > 0) facts.push(['fires now', inRows(fires, width)]);
  if (caughtUp.total > 0) facts.push(['catches up', caughtUpLines(caughtUp, width)]);
  if (underWay > 0) facts.push(['under way', [`${underWay} instants of an earlier catch-up are left`]]);
  if (skipped.total > 0) facts.push(['skips', [`${skipped.total}: ${ends(skipped.first, skipped.last)}`]]);
  const due = next.map((each) => each.due);
  facts.push(['next due', due.length === 0 ? ['nothing more'] : inRows(due, width)]);
  return facts;
}

/** Lists every instant that the server returned, and says how to list the next ones. */
function caughtUpLines({ total, first, more, last }: Trigger['caught_up'], width: number): string[] {
  const rest = [
    `… and ${more} more, the last ${showTime(last)}`,
    `(--after ${showTime(first.at(-1) ?? null)} lists the next ones)`,
  ];
  return [count(total, 'instant'), ...inRows(first, width), ...(more > 0 ? rest : [])];
}

/** Puts as many instants in a row as fit. */
function inRows(instants: readonly string[], width: number): string[] {
  const shown = instants.map(showTime);
  const widest = Math.max(0, ...shown.map((text) => text.length));
  const perRow = Math.max(1, Math.floor((width + gap.length) / (widest + gap.length)));
  return Array.from({ length: Math.ceil(shown.length / perRow) }, (_, row) =>
    shown
      .slice(row * perRow, (row + 1) * perRow)
      .map((text) => text.padEnd(widest))
      .join(gap)
      .trimEnd(),
  );
}

function ends(first: string | null, last: string | null): string {
  return first === last ? showTime(first) : `${showTime(first)} … ${showTime(last)}`;
}
