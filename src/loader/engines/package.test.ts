import { expect, it } from 'vitest';
import { engine } from '../../engine/engine.ts';
import { checkFace, type EngineFace, faceOf } from './package.ts';

const { version } = engine;
const own = ['pending', 'migrate', 'scheduler', 'fetch', 'prune'];
const ofRuns = ['claim', 'report', 'renew', 'cancellations', 'logs', 'definitions', 'stash'];
const newer = ['offers', 'accept'];
const inRuns = (names: readonly string[]): string[] => names.map((name) => `runs.${name}`);

function missingOf(contract: number, functions: readonly string[]): string | undefined {
  const face: EngineFace = { version, contract, functions };
  try {
    checkFace(face, { version, contract });
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

it('The engine of this release has every function that its contract requires', () => {
  checkFace(faceOf(engine), { version, contract: engine.contract });
});

it.each([
  ['of contract 3 without groups is complete', 3, [...own, ...ofRuns], undefined],
  ['of contract 4 without the group runs is incomplete', 4, [...own, ...ofRuns], 'its engine lacks runs.claim, '],
  ['that offers no runs is incomplete', 4, [...own, ...inRuns(ofRuns)], 'its engine lacks runs.offers, runs.accept'],
  ['without bus and flows is complete', 4, [...own, ...inRuns([...ofRuns, ...newer])], undefined],
  [
    'with half a bus is incomplete',
    4,
    [...own, ...inRuns([...ofRuns, ...newer]), 'bus.publish'],
    'its engine lacks bus.courier',
  ],
])('An engine %s', (_, contract, functions, fault) => {
  const missing = missingOf(contract, functions);
  if (fault === undefined) expect(missing).toBeUndefined();
  else expect(missing).toContain(fault);
});
