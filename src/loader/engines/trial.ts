/** Loads an engine's code in a process of its own, to find out whether it can be loaded without any effect on this process. */
import { spawn } from 'node:child_process';
import { z } from 'zod';
import { type EngineFace, EngineFault, entryUrl } from './package.ts';

const maxLoadMs = 20_000;

/** Does what `faceOf` does. It is a separate program because the process imports none of our modules. */
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

/** The code that is tried can send anything. */
const trialResult = z.object({
  face: z
    .object({
      version: z.unknown().optional(),
      contract: z.unknown().optional(),
      functions: z.array(z.string()).max(1_000),
    })
    .optional(),
  fault: z.string().optional(),
});

/** Returns the face of the exported engine, if there is one. Throws an EngineFault if the code cannot be loaded. */
export async function tryEngine(folder: string): Promise<EngineFace | undefined> {
  const url = await entryUrl(folder);
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program, url], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    // gets none of our secrets
    env: { PATH: process.env['PATH'] },
    timeout: maxLoadMs,
    killSignal: 'SIGKILL',
  });
  let result: z.output<typeof trialResult> | undefined;
  // only the first message counts: code that sends many would keep this process busy
  child.once('message', (message) => {
    result = trialResult.safeParse(message).data ?? { fault: 'it sent an invalid message' };
    child.kill('SIGKILL');
  });
  const ended = await new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => resolve(signal === null ? `it ended its process with ${code}` : tooLong));
  });
  if (result === undefined) throw new EngineFault(`its code cannot be loaded: ${ended}`);
  if (result.fault !== undefined) throw new EngineFault(`its code cannot be loaded: ${result.fault}`);
  return result.face && { ...result.face, version: result.face.version, contract: result.face.contract };
}

const tooLong = `it did not finish loading within ${maxLoadMs / 1000} s`;
