/** What a dry run says a trigger would do at once, as lines for people. */
import type { z } from 'zod';
import type { outlook } from '../api/endpoints/triggers.ts';
import { showTime } from './output.ts';
import { oneLine } from './width.ts';

type Outlook = z.output<typeof outlook>;

const shown = 3;

export function outlookLines({ paused, triggers }: Outlook): string[] {
  const note = paused ? ' (paused: nothing fires before it is unpaused)' : '';
  return triggers.flatMap((trigger) => [
    `    trigger ${oneLine(trigger.name)}${note}`,
    ...factsOf(trigger).map(([what, text]) => `      ${`${what}:`.padEnd(12)} ${text}`),
  ]);
}

function factsOf(trigger: Outlook['triggers'][number]): [string, string][] {
  const { fires, caught_up: caughtUp, skipped, under_way: underWay, next } = trigger;
  const facts: [string, string][] = [];
  if (fires.length > 0) facts.push(['fires now', fires.map(showTime).join(', ')]);
  if (caughtUp.total > 0) facts.push(['catches up', `${caughtUp.total}: ${stretch(caughtUp)}`]);
  if (underWay > 0) facts.push(['under way', `${underWay} still to be caught up from before`]);
  if (skipped.total > 0) facts.push(['skips', `${skipped.total}: ${ends(skipped.first, skipped.last)}`]);
  facts.push(['next', next.map(({ due }) => showTime(due)).join(', ') || 'nothing more']);
  return facts;
}

/** The first few, and the last. */
function stretch({ total, first, last }: { total: number; first: readonly string[]; last: string | null }): string {
  const few = first.slice(0, shown).map(showTime).join(', ');
  if (total <= shown) return few;
  return `${few}${total > shown + 1 ? ' …' : ','} ${showTime(last)}`;
}

function ends(first: string | null, last: string | null): string {
  return first === last ? showTime(first) : `${showTime(first)} … ${showTime(last)}`;
}
