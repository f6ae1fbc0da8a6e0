/**
 * What workers in these suites are given by `--functions`: a module as text, because they run as plain Node. Each call
 * leaves a line in the file CHAOS_EVIDENCE, by which a suite sees what was executed really, beside what the database says.
 */
export const taskFunctions = `
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

function note({ run, lease }) {
  appendFileSync(process.env.CHAOS_EVIDENCE, run + ' ' + lease + '\\n');
}

// fails at the first attempt, for one instant of three
export function flaky(_, context) {
  note(context);
  if (context.attempt === 1 && Math.floor(context.instant.getTime() / 1_000) % 3 === 0) throw new Error('not yet');
}

export async function slow(_, context) {
  note(context);
  await sleep(50);
}
`;
