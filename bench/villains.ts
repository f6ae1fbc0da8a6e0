/**
 * The second part of `bench -- isolation`: four tenants beside one whose scheduler blocks, ends or fills its host. The
 * long test of the same villains (`test/chaos/long/neighbours.test.ts`) shares the measuring code.
 */
import { removeEngineBuilds } from '../test/harness/engine-builds.ts';
import { ages, type Harm, latenessAimMs, Neighbourhood, type Villain, villains } from '../test/harness/villains.ts';
import type { Options } from './options.ts';
import { type Aim, aim, figure, type Report } from './report.ts';

const titles: Readonly<Record<Villain, string>> = {
  spins: 'blocks the event loop as it starts',
  blocks: 'blocks it 0.2 s later',
  'blocks-later': 'blocks it 15 s later',
  exits: 'ends the process',
  leaks: 'leaks buffers, 100 MB/s',
  'leaks-heap': 'leaks heap, a million objects a second',
};

export async function measureVillains(
  { quick }: Options,
  report: Report,
): Promise<{ readonly aims: Aim[]; readonly harms: Readonly<Record<string, Harm>> }> {
  const harms = new Map<string, Harm>();
  const neighbourhood = await Neighbourhood.start();
  try {
    for (const villain of quick ? (['exits'] as const) : villains) {
      report.progress(`beside one that ${titles[villain]}`);
      for (const age of ages) harms.set(`${titles[villain]}, ${age}`, await neighbourhood.suffer(villain, age));
    }
  } finally {
    await neighbourhood.close();
    await removeEngineBuilds();
  }
  report.line('Four tenants beside a scheduler that misbehaves: the worst of the four, until it has a host for itself');
  report.line('old: the four have run for more than 10 s; new: for less; same: they start together with it');
  report.table(
    ['', 'late by, ms', 'late before, ms', 'restarts'],
    [...harms].map(([title, { latenessMs, controlMs, restarts }]) => [
      title,
      ...[latenessMs, controlMs, restarts].map(figure),
    ]),
  );
  const aims = [...harms].map(([title, { latenessMs }]) =>
    aim(`${title}: worst lateness`, latenessMs, { below: latenessAimMs }, ' ms'),
  );
  return { aims, harms: Object.fromEntries(harms) };
}
