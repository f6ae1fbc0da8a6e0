/**
 * The module for workers' `--functions`, as text because workers run as plain Node. Each call adds a line to the file
 * CHAOS_EVIDENCE, so that a suite can compare what was really executed with the database.
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

// for tasks of flows
export async function triple({ n }, context) {
  note(context);
  await sleep(10);
  return n * 3;
}
`;
