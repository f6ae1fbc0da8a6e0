/**
 * Whether the code of installed engines can be loaded, found out by trying it in a process of its own (`trial.ts`).
 *
 * 1. A trial runs again when a file of the engine has changed. After a failure it also runs again when somebody asks 10 s
 *    later, because the machine may have been short of memory.
 * 2. Callers that ask for the same engine meanwhile share a trial. One trial runs at a time.
 * 3. Nothing here throws.
 */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { makeSerial } from '../../kernel/serial.ts';
import { checkFace, type EnginePackage } from './package.ts';
import { tryEngine } from './trial.ts';

interface Check {
  readonly print: string;
  /** Why the code cannot be loaded; undefined: it can. */
  readonly fault: Promise<string | undefined>;
  failedMs?: number;
}

const retryMs = 10_000;

export class LoadChecks {
  readonly #checks = new Map<string, Check>();
  readonly #serial = makeSerial();

  /** Answers why the engine in this folder cannot be loaded; undefined: it can. */
  async findFault(folder: string, found: EnginePackage): Promise<string | undefined> {
    const print = await fingerprint(folder).catch(String);
    const known = this.#checks.get(folder);
    const isDue = known?.failedMs !== undefined && performance.now() - known.failedMs > retryMs;
    if (known?.print === print && !isDue) return known.fault;
    const check: Check = { print, fault: this.#serial(() => trialFault(folder, found)) };
    this.#checks.set(folder, check);
    const fault = await check.fault;
    if (fault !== undefined) check.failedMs = performance.now();
    return fault;
  }
}

/** Loads an engine's code in a process of its own. Answers why that fails; undefined: it succeeds. */
export async function trialFault(folder: string, found: EnginePackage): Promise<string | undefined> {
  try {
    checkFace(await tryEngine(folder), found);
    return undefined;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return `engine ${found.version} cannot be used: ${why}`;
  }
}

/** Changes with every file of the engine's code. */
async function fingerprint(folder: string): Promise<string> {
  const files = await readdir(join(folder, 'dist'), { recursive: true });
  const code = files.filter((name) => name.endsWith('.js')).toSorted();
  const states = await Promise.all(code.map((name) => stat(join(folder, 'dist', name))));
  return states.map(({ ino, size, mtimeMs }, i) => `${code[i]} ${ino} ${size} ${mtimeMs}`).join('\n');
}
