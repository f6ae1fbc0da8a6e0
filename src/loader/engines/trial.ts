/** Loads an engine's code in a process of its own, to see whether it can be loaded: whatever it does, it does there. */
import { spawn } from 'node:child_process';
import { type EngineFace, EngineFault, entryUrl } from './package.ts';

const longestMs = 20_000;

/** As `faceOf` sees it; a program of its own, since it has nothing of ours. */
const program = `
  const say = (word) => process.send(word, () => process.exit(0));
  try {
    const { engine } = await import(process.argv[1]);
    if (typeof engine !== 'object' || engine === null) say({});
    else {
      const namesOf = (group) => Object.keys(group).filter((key) => typeof group[key] === 'function');
      const groups = Object.keys(engine).filter((key) => typeof engine[key] === 'object' && engine[key] !== null);
      const functions = [
        ...namesOf(engine),
        ...groups.flatMap((group) => namesOf(engine[group]).map((name) => group + '.' + name)),
      ];
      say({ face: { version: engine.version, contract: engine.contract, functions } });
    }
  } catch (error) {
    say({ fault: String(error?.message ?? error) });
  }
`;

interface Word {
  readonly face?: EngineFace;
  readonly fault?: string;
}

/** What it exports as its engine, if anything. Throws an EngineFault where its code cannot be loaded. */
export async function tryEngine(folder: string): Promise<EngineFace | undefined> {
  const url = await entryUrl(folder);
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program, url], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    // it needs nothing of ours, and gets none of our secrets
    env: { PATH: process.env['PATH'] },
    timeout: longestMs,
    killSignal: 'SIGKILL',
  });
  let word: Word | undefined;
  child.on('message', (said: Word) => {
    word = said;
  });
  const ended = await new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => resolve(signal === null ? `it ended its process with ${code}` : tooLong));
  });
  if (word === undefined) throw new EngineFault(`its code cannot be loaded: ${ended}`);
  if (word.fault !== undefined) throw new EngineFault(`its code cannot be loaded: ${word.fault}`);
  return word.face;
}

const tooLong = `it did not come to an end within ${longestMs / 1000} s`;
